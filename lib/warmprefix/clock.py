"""Many channels share a pool of processes on one simulated clock: which mention waits, and which finds no process."""

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import simpy

from warmprefix import calibrate
from warmprefix.calibrate import Sample
from warmprefix.errors import InputError
from warmprefix.residency import Pool
from warmprefix.sweep import measure, memo

FIRST, IDLE, PRESSURE, WARM = "first", "idle", "pressure", "warm"


@dataclass(frozen=True, slots=True)
class Served:
    """One mention's turn: when it was asked for, began and ended (seconds), and why its process was new, if it was.

    `why` is `warm`, or why the process was cold: the `first` of its channel, its predecessor ended because it was
    `idle` for too long, or under `pressure`, for another channel.
    """

    key: str
    turn: int
    asked: float
    started: float
    ended: float
    why: str


def serve(asked: Mapping[str, Sequence[float]], seconds: Mapping[str, Sequence[float]], pool: Pool) -> list[Served]:
    """The turns of all channels, in the order in which they ended.

    >>> [turn.why for turn in serve({"a": [0.0, 50.0], "b": [20.0]}, {"a": [9.0, 9.0], "b": [9.0]}, Pool(size=1))]
    ['first', 'first', 'pressure']

    `asked` are each channel's times of mention, ascending, and `seconds` how long each turn takes.
    """
    env, served = simpy.Environment(), list[Served]()
    waiting: dict[str, deque[simpy.Event]] = {key: deque() for key in asked}
    ended: dict[str, float] = {}

    def turn(key: str, number: int, at: float, takes: float) -> Generator[simpy.Event, Any, None]:
        yield env.timeout(at)
        lease = pool.acquire(key, env.now)
        if lease is None:
            granted = env.event()
            waiting[key].append(granted)
            lease = yield granted
        started, why = env.now, WARM
        if lease.cold:
            idle = key in ended and started - ended[key] > pool.idle
            why = FIRST if key not in ended else IDLE if idle else PRESSURE
        yield env.timeout(takes)
        ended[key] = env.now
        served.append(Served(key, number, at, started, env.now, why))
        for next_lease in pool.release(lease, env.now):
            waiting[next_lease.key].popleft().succeed(next_lease)

    for key, times in asked.items():
        for number, (at, takes) in enumerate(zip(times, seconds[key], strict=True), start=1):
            env.process(turn(key, number, at, takes))
    env.run()
    return served


def shared(
    channels: int = 6,
    idle: float = 1800.0,
    size: int = 4,
    seed: int = 0,
    strategy: str = "watermark",
    takes: float = 120.0,
    spread: float = 3600.0,
) -> dict[str, Any]:
    """What so many channels cost when they share a pool: the cold turns by why, waits, and the tokens of all of them.

    The channels are those of the seeds from `seed * channels` on; each begins up to `spread` seconds after nine, and a
    turn takes `takes` seconds on average (exponential). `kept_*` is the same work with a process for each channel that
    nothing ends. Raises `InputError` for no channel, no process and a time below zero.
    """
    for name, value, least in (("channels", channels, 1), ("size", size, 1), ("idle", idle, 0), ("takes", takes, 0)):
        if not value >= least:  # so that what is no number is refused as well
            raise InputError("", f"{name}={value}", "is too small", f"take {least} or more")
    rng = np.random.default_rng([seed, channels])
    samples = [_sample(seed * channels + i) for i in range(channels)]
    asked, seconds = {}, {}
    for i, sample in enumerate(samples):
        shift = float(rng.uniform(0, spread))
        asked[str(i)] = [sample.channel.messages[position].created_at + shift for position in sample.mentions]
        seconds[str(i)] = rng.exponential(takes, len(sample.mentions)).tolist()
    turns = serve(asked, seconds, Pool(size, idle))
    cold = {
        str(i): [turn.turn for turn in turns if turn.key == str(i) and turn.why in (IDLE, PRESSURE)]
        for i in range(channels)
    }
    runs = [measure(s, strategy=strategy, evict_at=tuple(sorted(cold[str(i)]))) for i, s in enumerate(samples)]
    kept = [measure(sample, strategy=strategy) for sample in samples]
    waits = [turn.started - turn.asked for turn in turns]
    return {
        "turns": len(turns),
        **{f"cold_{why}": sum(turn.why == why for turn in turns) for why in (FIRST, IDLE, PRESSURE)},
        "waited": sum(wait > 0 for wait in waits),
        "wait": sum(waits) / len(waits),
        **{name: sum(run[name] for run in runs) for name in ("total", "uncached", "resent_tokens", "forgotten")},
        **{f"kept_{name}": sum(run[name] for run in kept) for name in ("total", "uncached")},
    }


@lru_cache(maxsize=512)
def _sample(seed: int) -> Sample:
    return calibrate.sample(seed, memo())
