"""Grids over the knobs: every point is one simulated run, every sweep one tidy table, whoever does the work."""

import inspect
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import pandas as pd

from warmprefix.calibrate import Sample
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.history import PAGE, Paging, paged
from warmprefix.ledger import records, sums
from warmprefix.parameters import suggestion
from warmprefix.request import Blocks
from warmprefix.simulate import Setting, Step, forever_unshown, simulate
from warmprefix.status import line
from warmprefix.strategies import Strategy, named
from warmprefix.tokens import Tokenizer

COLUMNS = {
    "turns": "requests, those that follow a page read among them",
    "total": "input tokens of all requests",
    "cached": "of them, read from the ideal prefix",
    "uncached": "of them, the rest",
    "cache_share": "cached over total",
    "output": "tokens of the answers and of tool calls",
    "new_per_warm_turn": "mean uncached tokens of a warm turn",
    "row_tokens": "tokens of all rows in context blocks",
    "duplicated_tokens": "of them, of rows that the process had been shown before",
    "resent": "rows that only an earlier, ended process had been shown",
    "resent_tokens": "tokens of those",
    "unshown": "rows before the last mention that no turn ever showed or addressed",
    "cut_chars": "characters that the body limit cut from rows whose whole body no turn ever showed",
    "lost_chars": "those, and all characters of the rows never shown",
    "forgotten": "rows that an ended process had been shown and the last one never was",
    "cold_uncached": "uncached tokens of the cold turns after the first",
}


def grid(**knobs: Iterable[Any]) -> list[dict[str, Any]]:
    """Every combination of the values of each knob, the last knob changing fastest.

    >>> grid(rows=(6, 12), strategy=["window"])
    [{'rows': 6, 'strategy': 'window'}, {'rows': 12, 'strategy': 'window'}]
    """
    return [dict(zip(knobs, values, strict=True)) for values in product(*map(tuple, knobs.values()))]


def sweep(
    work: Callable[..., Mapping[str, Any]], points: Sequence[Mapping[str, Any]], executor: Executor | None = None
) -> pd.DataFrame:
    """One row a point, in the order of the points: its knobs, then what `work(**point)` measured.

    >>> sweep(lambda rows: {"double": 2 * rows}, grid(rows=[6, 12])).to_dict("list")
    {'rows': [6, 12], 'double': [12, 24]}

    The points go through `executor`, by default one after the other in this process; for other processes `work` has to
    be a function of a module, or a `functools.partial` of one. Raises `InputError` for no points and for a point whose
    knobs `work` does not take, before anything runs.
    """
    if not points:
        raise InputError("", "grid", "has no points", "give every knob at least one value")
    known = inspect.signature(work).parameters
    for name in dict.fromkeys(name for point in points for name in point):
        if name not in known:
            raise InputError("", f"knob {name}", "unknown", suggestion(name, known))
    chunk = max(1, min(32, len(points) // 16))
    measured = (executor or Serial()).map(partial(_row, work), points, chunksize=chunk)
    return pd.DataFrame(list(measured))


def _row(work: Callable[..., Mapping[str, Any]], point: Mapping[str, Any]) -> dict[str, Any]:
    measured = work(**point)
    if clash := point.keys() & measured.keys():
        raise InputError("", f"column {min(clash)}", "is both a knob and a result", "rename one of them")
    return {**point, **measured}


class Serial(Executor):
    """An executor that works at once, in this thread: what a sweep runs on when nobody gives it another."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """The future of a call that has been made."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def workers(count: int) -> Iterator[Executor]:
    """An executor of so many processes, this one alone for 1; the processes end with the block, or with this process.

    Raises `InputError` for fewer than 1.
    """
    if count < 1:
        raise InputError("", f"workers {count}", "nobody would work", "ask for 1 or more")
    if count == 1:
        yield Serial()
        return
    # Spawned, since the kernel of a notebook has threads, which a fork would leave half-way.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent) as pool:
        yield pool


def _end_with_parent() -> None:
    """Nobody else ends a worker whose parent was killed: it would wait for work for good."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@cache
def memo(encoding: str = "cl100k_base") -> Blocks:
    """This process's token counts, shared by every run that it makes."""
    return Blocks(Tokenizer(encoding))


def measure(
    sample: Sample,
    *,
    strategy: str = "watermark",
    rows: int | None = 12,
    body: int | None = 600,
    fetch: int | None = 30,
    cursor: str = "faithful",
    evict_at: tuple[int, ...] = (),
    status: str | None = "",
    order: tuple[str, str] = ("system", "tools"),
    changes: tuple[float, ...] | float | None = None,
    copies: int = 1,
    paging: float = 0.0,
    page: int = 30,
    encoding: str = "cl100k_base",
) -> dict[str, Any]:
    """What one run of a sample costs and loses: the values of `COLUMNS`.

    `strategy` names the point from which the other knobs depart; `status` is a place of `strategies.PLACES`, "" the
    strategy's own; `changes` and `copies` are those of `status.line`, `paging` and `page` those of `history.Paging`.
    Raises `InputError` for a strategy that there is not, and an eviction before a mention that never comes.
    """
    base, blocks = named(strategy), memo(encoding)
    point = replace(
        base,
        limits=Limits(rows, body, fetch),
        cursor=cursor,
        status=base.status if status == "" else status,
        order=order,
    )
    if bad := [turn for turn in evict_at if not 1 <= turn <= len(sample.mentions)]:
        raise InputError("", f"evict_at={bad[0]}", f"there are {len(sample.mentions)} mentions", "count from 1")
    setting = sample.setting
    if changes is not None or copies != 1:
        setting = replace(setting, status=line(changes, copies))
    steps: list[Step] = list(simulate(sample.channel, sample.mentions, point, blocks, setting, evict_at=evict_at))
    if paging:
        steps = list(paged(steps, sample.channel, sample.mentions, Paging(paging, page), body, blocks))
    return summed(steps, sample, point, blocks)


def ran(sample: Sample, setting: Setting, strategy: str, encoding: str = "cl100k_base") -> dict[str, Any]:
    """What one run with other surroundings than the sample's own costs: the values of `COLUMNS`."""
    point, blocks = named(strategy), memo(encoding)
    steps = list(simulate(sample.channel, sample.mentions, point, blocks, setting))
    return summed(steps, sample, point, blocks)


def summed(steps: Sequence[Step], sample: Sample, strategy: Strategy, blocks: Blocks) -> dict[str, Any]:
    """The values of `COLUMNS` for the steps of a run over a sample."""
    turns = records(steps, sample.channel, sample.mentions, strategy, blocks)
    never = forever_unshown(sample.channel, sample.mentions, steps)
    cut = _cut(steps, strategy.limits.body)
    added = {
        name: sum(turn[name] for turn in turns)
        for name in ("output", "row_tokens", "duplicated_tokens", "resent", "resent_tokens", "unshown")
    }
    all_sums = sums(turns)
    total, cached = (int(all_sums[name] or 0) for name in ("total_input", "cached"))
    return {
        "turns": len(turns),
        "total": total,
        "cached": cached,
        "uncached": total - cached,
        "cache_share": all_sums["cache_share"],
        "new_per_warm_turn": all_sums["new_per_warm_turn"],
        **added,
        "cut_chars": cut,
        "lost_chars": cut + sum(len(sample.channel.messages[position].text) for position in never),
        "forgotten": _forgotten(steps),
        "cold_uncached": sum(turn["new"] for turn in turns[1:] if turn["cold"]),
    }


def _cut(steps: Sequence[Step], body: int | None) -> int:
    """Characters never shown of rows that were: a page shows bodies whole, a context block cuts them."""
    if body is None:
        return 0
    long = {row.position: len(row.text) - body for step in steps for row in step.shown if len(row.text) > body}
    whole = {row.position for step in steps if step.kind == PAGE for row in step.shown}
    return sum(chars for position, chars in long.items() if position not in whole)


def _forgotten(steps: Sequence[Step]) -> int:
    known: dict[str, set[int]] = {}
    for step in steps:
        known.setdefault(step.session, set()).update(row.position for row in step.shown)
    last = known[steps[-1].session] if steps else set()
    return len(set[int]().union(*known.values()) - last)
