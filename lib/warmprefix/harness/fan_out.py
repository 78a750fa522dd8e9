"""Subagents that share a prefix: the first one warms it, its siblings follow at its first token or at the bound."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from warmprefix.caches import Usage
from warmprefix.errors import InputError


@dataclass(frozen=True, slots=True)
class Child:
    """How a subagent's request goes, in seconds after it is sent: first token, end, and when it fails instead."""

    first_token: float
    duration: float
    fails_after: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """When a child was sent, began to answer (None when it failed before) and ended, in seconds."""

    child: int
    sent: float
    first_token: float | None
    ended: float
    failed: bool


def fan_out(children: Sequence[Child], bound: float, *, lead: bool = True) -> tuple[Start, ...]:
    """The event log of a fan-out, by child.

    >>> [start.sent for start in fan_out([Child(2.0, 9.0)] * 3, bound=5.0)]
    [0.0, 2.0, 2.0]
    >>> [start.sent for start in fan_out([Child(60.0, 70.0)] * 3, bound=5.0)]
    [0.0, 5.0, 5.0]

    An entry can be read only when the request that wrote it begins to answer, so the siblings wait for the first
    token of the first child, and never longer than `bound` seconds: a slow first child costs its siblings the hit,
    never the fan-out. When it fails before it answers, the next child leads within what is left of the same bound.
    Without `lead` all are sent at once. Raises `InputError` for a negative bound.
    """
    if bound < 0:
        raise InputError("", "bound", f"is {bound}", "wait 0 seconds or more")
    env = simpy.Environment(0.0)
    starts: dict[int, Start] = {}
    warm = env.event()

    def one(number: int, child: Child, ended: simpy.Event) -> Generator[simpy.Event, Any, None]:
        sent = env.now
        fails = child.fails_after
        if fails is not None and fails < child.first_token:
            yield env.timeout(fails)
            starts[number] = Start(number, sent, None, env.now, True)
        else:
            yield env.timeout(child.first_token)
            first = env.now
            if not warm.triggered:
                warm.succeed()
            last = child.duration if fails is None else min(fails, child.duration)
            yield env.timeout(max(last - child.first_token, 0.0))
            starts[number] = Start(number, sent, first, env.now, fails is not None and fails < child.duration)
        ended.succeed()

    def lead_then_rest() -> Generator[simpy.Event, Any, None]:
        waiting = list(enumerate(children))
        over = env.timeout(bound)
        while lead and waiting and not warm.triggered and not over.processed:
            failed = env.event()
            env.process(one(*waiting.pop(0), failed))
            yield warm | failed | over
        for number, child in waiting:
            env.process(one(number, child, env.event()))

    env.process(lead_then_rest())
    env.run()
    return tuple(starts[number] for number in sorted(starts))


def usages(starts: Sequence[Start], prefix: int, own: int = 0) -> tuple[Usage, ...]:
    """What each child reads and writes of a shared prefix of that many tokens, with `own` uncached ones of its own.

    A child reads the prefix when another one had begun to answer by the time it was sent. One that failed before its
    first token is not billed.
    """

    def warmed(start: Start, other: Start) -> bool:
        earlier = (other.sent, other.child) < (start.sent, start.child)  # two that are sent at once do not both read
        return earlier and other.first_token is not None and other.first_token <= start.sent

    def of(start: Start) -> Usage:
        if start.first_token is None:
            return Usage()
        if any(warmed(start, other) for other in starts):
            return Usage(uncached=own, cache_read=prefix)
        return Usage(uncached=own, cache_write_5m=prefix)

    return tuple(of(start) for start in starts)


def input_cost(used: Sequence[Usage], usd_per_million: float, read: float = 0.1, write: float = 1.25) -> float:
    """The price of the input in US dollars, with what reads and writes cost in multiples of a fresh token.

    >>> together = usages(fan_out([Child(2.0, 9.0)] * 8, bound=5.0, lead=False), 40_000)
    >>> first = usages(fan_out([Child(2.0, 9.0)] * 8, bound=5.0), 40_000)
    >>> round(input_cost(together, 2.0), 3), round(input_cost(first, 2.0), 3)
    (0.8, 0.156)
    """
    tokens = sum(usage.uncached + read * usage.cache_read + write * usage.cache_write_5m for usage in used)
    return tokens * usd_per_million / 1e6


def requests_per_minute(limit: int, usage: Usage) -> float:
    """How many requests like this one a limit of input tokens a minute allows: tokens read from the cache are free.

    >>> requests_per_minute(400_000, Usage(uncached=40_000)), requests_per_minute(400_000, Usage(2_000, 38_000))
    (10.0, 200.0)
    """
    counted = usage.total - usage.cache_read
    return limit / counted if counted else float("inf")
