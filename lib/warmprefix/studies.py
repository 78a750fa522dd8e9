"""The sweeps of the notebooks: which points each one visits."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from warmprefix import clock, spread
from warmprefix.calibrate import Sample
from warmprefix.channel import Channel
from warmprefix.errors import InputError
from warmprefix.history import COMPACTION, compacted
from warmprefix.ledger import records
from warmprefix.prompt import SYSTEM, TOOLS
from warmprefix.simulate import simulate
from warmprefix.status import evenly, line, rates
from warmprefix.strategies import named
from warmprefix.sweep import grid, measure, memo, sweep

STABLE = ("window", "watermark")
# The grid of the published figure of limits, and the draws of that of a status line.
ROWS = (2, 4, 6, 8, 10, 12, 16, 20, None)
BODIES = (100, 200, 300, 600, 1000, 2000, None)
FETCHED = (5, 10, 20, 30, None)
DRAWS, DRAWN_FROM = 20, 50


def evictions(sample: Sample, most: int = 1, executor: Executor | None = None) -> pd.DataFrame:
    """Every eviction point, and with `most` 2 every pair, under window and watermark.

    Columns: `strategy`, `first` and `second` (the mentions evicted before, 0 for none), and `sweep.COLUMNS`.
    """
    if most not in (0, 1, 2):
        raise InputError("", f"most={most}", "evictions in one run are not swept", "take 0, 1 or 2")
    turns = range(1, len(sample.mentions) + 1)
    points = [evicted for count in range(most + 1) for evicted in combinations(turns, count)]
    table = sweep(partial(measure, sample), grid(strategy=STABLE, evict_at=points), executor)
    evicted = pd.DataFrame([(*each, 0, 0)[:2] for each in table.pop("evict_at")], columns=["first", "second"])
    return pd.concat([table[["strategy"]], evicted, table.drop(columns="strategy")], axis=1)


def cold_turns(sample: Sample, strategy: str = "watermark") -> pd.DataFrame:
    """What a cold turn at each mention sends, and what the same turn costs when it is kept warm, in tokens.

    Columns: `mention`, `prefix`, `turn` (without rows), `snapshot` (rows that nobody had been shown), `resent` (rows
    that the ended process had), and `warm`, the uncached input of the warm turn.
    """
    blocks, point = memo(), named(strategy)

    def steps(evicted: tuple[int, ...]) -> list[Any]:
        return list(simulate(sample.channel, sample.mentions, point, blocks, sample.setting, evict_at=evicted))

    kept = records(steps(()), sample.channel, sample.mentions, point, blocks)
    rows = []
    for turn in range(1, len(sample.mentions) + 1):
        step = steps((turn,))[turn - 1]
        shown = sum(row.tokens for row in step.rows)
        again = sum(r.tokens for m, r in zip(step.shown, step.rows, strict=True) if m.position in step.resent)
        turn_alone = sum(part.tokens for part in step.parts)
        prefix = step.request.tokens - turn_alone
        rows.append((turn, prefix, turn_alone - shown, shown - again, again, kept[turn - 1]["new"]))
    return pd.DataFrame(rows, columns=["mention", "prefix", "turn", "snapshot", "resent", "warm"])


def pools(
    channels: Sequence[int], idle: Sequence[float], seeds: int, takes: float = 120.0, executor: Executor | None = None
) -> pd.DataFrame:
    """So many channels on a pool of four, by idle limit (seconds) and seed: see `clock.shared` for the columns."""
    points = grid(channels=channels, idle=idle, seed=range(seeds), strategy=STABLE, takes=[takes])
    return sweep(clock.shared, points, executor)


def compaction(context_limit: int, summary: int, strategy: str, turns: int, seed: int) -> dict[str, Any]:
    """What one session of so many turns costs when it is compacted at a limit.

    Gives `first` (the mention at which compaction first comes, NaN for never), `compactions`, `total`, `uncached` and
    `output` over all requests, those that summarise among them.
    """
    table = compacted_run(context_limit, summary, strategy, turns, seed)
    at = table.loc[table["kind"] == COMPACTION, "turn"]
    return {
        "first": float(at.iloc[0]) if len(at) else float("nan"),
        "compactions": len(at),
        **{
            name: int(table[column].sum())
            for name, column in (("total", "total"), ("uncached", "new"), ("output", "output"))
        },
    }


def compacted_run(context_limit: int, summary: int, strategy: str, turns: int, seed: int) -> pd.DataFrame:
    """The table of one such session, one row a request, with `kind`: `mention` or `compaction`."""
    sample, blocks, point = spread.long_sample(seed, turns), memo(), named(strategy)
    steps = simulate(sample.channel, sample.mentions, point, blocks, sample.setting)
    kept = list(compacted(steps, context_limit, summary, blocks))
    table = pd.DataFrame(records(kept, sample.channel, sample.mentions, point, blocks, context_limit=context_limit))
    return table.assign(kind=[step.kind for step in kept])


def limits(
    samples: Sequence[Sample],
    rows: Sequence[int | None],
    body: Sequence[int | None],
    fetch: Sequence[int | None],
    strategy: str = "watermark",
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Row limit by body limit by rows fetched, added up over the samples.

    Columns: `rows`, `body`, `fetch` (NaN for no limit), `total`, `uncached`, `unshown`, `cut_chars`, `lost_chars`, and
    whether no other point is at least as good and better in one: `front_rows` in tokens and rows never shown,
    `front_chars` in tokens and lost characters, `front` in all three.
    """
    _some(samples)
    points = grid(rows=rows, body=body, fetch=fetch, strategy=[strategy])
    tables = [sweep(partial(measure, sample), points, executor) for sample in samples]
    table = tables[0][["rows", "body", "fetch"]].astype(float)
    for name in ("total", "uncached", "unshown", "cut_chars", "lost_chars"):
        table[name] = sum(each[name] for each in tables)
    fronts = {"front_rows": ["unshown"], "front_chars": ["lost_chars"], "front": ["unshown", "lost_chars"]}
    return table.assign(**{name: front(table[["total", *lost]].to_numpy(float)) for name, lost in fronts.items()})


def _some(samples: Sequence[Sample]) -> None:
    if not samples:
        raise InputError("", "channels", "there are none to add up over", "give 1 or more")


def front(values: np.ndarray) -> np.ndarray:
    """Which rows no other row is at most equal to in all columns and below in one: the Pareto front, less is better.

    >>> front(np.array([[1, 3], [2, 2], [2, 4]])).tolist()
    [True, True, False]
    """
    no_worse = (values[:, None, :] <= values[None, :, :]).all(axis=2)
    better = (values[:, None, :] < values[None, :, :]).any(axis=2)
    return np.asarray(~(no_worse & better).any(axis=0))


def paging(
    samples: Sequence[Sample],
    rows: Sequence[int | None],
    rate: Sequence[float],
    page: int = 30,
    strategy: str = "watermark",
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Row limit by the rate at which the agent reads back what it missed, added up over the samples."""
    _some(samples)
    points = grid(rows=rows, paging=rate, page=[page], strategy=[strategy])
    tables = [sweep(partial(measure, sample), points, executor) for sample in samples]
    table = tables[0][["rows", "paging"]].astype(float)
    for name in ("turns", "total", "uncached", "unshown", "lost_chars"):
        table[name] = sum(each[name] for each in tables)
    return table


def statuses(
    sample: Sample,
    places: Sequence[str],
    copies: Sequence[int],
    order: tuple[str, str] = (SYSTEM, TOOLS),
    away: float = 900.0,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Place by rate of change by size; columns `place`, `change`, `size` (tokens) and `sweep.COLUMNS`.

    The first row is the run without a line. Rates are those of `status.rates`.
    """
    by_rate = rates(sample.channel, away)
    points = [{"status": None}, *grid(status=places, changes=list(by_rate.values()), copies=copies, order=[order])]
    table = sweep(partial(measure, sample), points, executor)
    tokens = {count: memo().tokenizer.count(line(None, count)(0.0)) for count in copies}
    named = pd.DataFrame(
        [("none", "never", 0), *((place, change, tokens[n]) for place in places for change in by_rate for n in copies)],
        columns=["place", "change", "size"],
    )
    return pd.concat(
        [named, table.drop(columns=[c for c in ("status", "changes", "copies", "order") if c in table])], axis=1
    )


def status_changes(
    sample: Sample, draws: int, seed: int, place: str = "before system", executor: Executor | None = None
) -> pd.DataFrame:
    """A line in front that changes before 0, 1, … of the mentions: `changes`, `draw`, and `sweep.COLUMNS`.

    Draw 0 spreads the changes evenly; the others draw the mentions. The channel's clock gives way to one second a
    message, so that every mention has a time of its own.
    """
    if draws < 1:
        raise InputError("", f"draws={draws}", "are none", "take 1 or more")
    ticking = replace(sample, channel=_ticking(sample.channel))
    times, rng = [float(position) for position in sample.mentions], np.random.default_rng(seed)
    chosen = [
        (
            count,
            draw,
            evenly(times, count) if not draw else tuple(np.sort(rng.choice(times[1:], count, replace=False)).tolist()),
        )
        for count in range(len(times))
        for draw in range(1 if count in (0, len(times) - 1) else draws)
    ]
    points = [{"status": place, "changes": changes} for _, _, changes in chosen]
    table = sweep(partial(measure, ticking), points, executor).drop(columns=["status", "changes"])
    named = pd.DataFrame([(count, draw) for count, draw, _ in chosen], columns=["changes", "draw"])
    return pd.concat([named, table], axis=1)


def one_change(sample: Sample, place: str = "before system", executor: Executor | None = None) -> pd.DataFrame:
    """A line in front that changes once, before each mention but the first: `mention`, and `extra` uncached tokens."""
    ticking = replace(sample, channel=_ticking(sample.channel))
    points = [(), *((float(position),) for position in sample.mentions[1:])]
    uncached = sweep(partial(measure, ticking), grid(status=[place], changes=points), executor)["uncached"]
    return pd.DataFrame({"mention": range(2, len(points) + 1), "extra": (uncached[1:] - uncached[0]).to_numpy()})


def _ticking(channel: Channel) -> Channel:
    return Channel.of(channel.id, (replace(row, created_at=float(row.position)) for row in channel.messages))


def break_even(one: pd.DataFrame, many: pd.DataFrame, text_tokens: int) -> float:
    """How many changes make a line in front cost as much uncached input as all channel text.

    `one` is from `one_change`, `many` from `status_changes`. Between whole numbers by a straight line: one change costs
    the mean over all mentions, more the median over the draws; NaN where even a change at every mention costs less.
    """
    extra = many.groupby("changes")["uncached"].median() - many.loc[many["changes"] == 0, "uncached"].iloc[0]
    extra[1] = one["extra"].mean()
    return float(np.interp(text_tokens, extra, extra.index)) if extra.max() >= text_tokens else float("nan")
