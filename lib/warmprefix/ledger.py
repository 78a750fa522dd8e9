"""One tidy table, one row a turn, and its sums."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from warmprefix.caches.ideal import IdealPrefix
from warmprefix.channel import Channel
from warmprefix.request import Blocks, Wire
from warmprefix.simulate import MENTION, Setting, Step, forever_unshown, simulate
from warmprefix.strategies import Strategy

COLUMNS = {
    "strategy": "the strategy's name",
    "turn": "the mention's number, from 1",
    "position": "the addressed message's place in the channel, from 0",
    "message_id": "its id",
    "at": "simulated time of the request, seconds",
    "session": "the native id of the process that answered",
    "cold": "whether that process had yet to hear anything",
    "failed": "whether the run failed, so that its mark was discarded",
    "total": "input tokens of the request",
    "cached": "of them, the longest common prefix with the session's previous request",
    "new": "of them, the rest",
    "output": "tokens of the answer",
    "shown": "rows in the context block",
    "row_tokens": "tokens of those rows, the header not counted",
    "shown_chars": "characters of their bodies, cut as shown",
    "cut": "of the rows that no process had been shown before, how many were cut",
    "cut_chars": "characters cut away from those",
    "duplicated": "of those rows, how many this session had been shown in an earlier turn",
    "duplicated_tokens": "tokens of those",
    "resent": "of the shown rows, how many only an earlier, ended process had been shown",
    "resent_tokens": "tokens of those",
    "notices": "lines that tell of shown rows edited or deleted since",
    "notice_tokens": "tokens of those",
    "unshown": "rows since the previous mention that no turn ever shows or addresses",
    "turns_left": "turns until the context limit, at the session's mean growth so far",
}
_NO_COUNTS = ("strategy", "message_id", "at", "session", "cold", "failed")
_ADDED = ("shown", "duplicated", "unshown", "shown_chars", "duplicated_tokens")


def ledger(
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    blocks: Blocks,
    setting: Setting | None = None,
    *,
    evict_at: Collection[int] = (),
    fail_at: Collection[int] = (),
    context_limit: int = 200_000,
) -> pd.DataFrame:
    """The table of one run under the ideal prefix; `COLUMNS` says what each column holds.

    `context_limit` is in tokens; the other parameters are those of `simulate.simulate`.
    """
    steps = simulate(channel, mentions, strategy, blocks, setting, evict_at=evict_at, fail_at=fail_at)
    # Numbers as objects, for as many turns as a long channel has, would weigh as much as its rows.
    columns: dict[str, Any] = {name: [] if name in _NO_COUNTS else array("q") for name in COLUMNS}

    def note(row: dict[str, Any]) -> None:
        for name, value in row.items():
            columns[name].append(value)

    columns["unshown"] = array("q", _unshown(steps, channel, mentions, strategy, blocks, context_limit, note))
    return pd.DataFrame({name: each if name in _NO_COUNTS else np.array(each) for name, each in columns.items()})


def records(
    steps: Iterable[Step],
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    blocks: Blocks,
    *,
    context_limit: int = 200_000,
) -> list[dict[str, Any]]:
    """The rows of `ledger` for simulated steps as plain records: what a sweep of thousands adds up."""
    rows: list[dict[str, Any]] = []
    unshown = _unshown(steps, channel, mentions, strategy, blocks, context_limit, rows.append)
    return [row | {"unshown": count} for row, count in zip(rows, unshown, strict=True)]


def _unshown(
    steps: Iterable[Step],
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    blocks: Blocks,
    context_limit: int,
    note: Callable[[dict[str, Any]], None],
) -> list[int]:
    """Each turn's count of rows never shown; on the way every turn's other columns are noted and its step let go."""
    if context_limit < 1:
        raise ValueError(f"context_limit must be at least 1 token; it is {context_limit}")
    turns = 0

    def passing() -> Iterator[Step]:
        nonlocal turns
        for step, row in _rows(steps, strategy, IdealPrefix(blocks.ids), context_limit):
            turns += 1
            note(row)
            yield step

    counted = Counter(bisect_right(mentions, position) for position in forever_unshown(channel, mentions, passing()))
    return [counted[turn] for turn in range(turns)]


def _rows(
    steps: Iterable[Step], strategy: Strategy, cache: IdealPrefix, context_limit: int
) -> Iterator[tuple[Step, dict[str, Any]]]:
    turns_of: Counter[str] = Counter()
    for step in steps:
        usage = cache.charge(step.request)
        turns_of[step.session] += 1
        wire = step.request.blocks
        assert isinstance(wire, Wire)
        carried = usage.total + usage.output
        growth = (wire.log.sums[wire.stop] + usage.output) / turns_of[step.session]
        body = strategy.limits.body if step.kind == MENTION else None
        new = [message for message in step.shown if message.position not in step.repeated | step.resent]
        cut = [] if body is None else [len(message.text) - body for message in new if len(message.text) > body]
        row: dict[str, Any] = {
            "strategy": strategy.name,
            "turn": step.turn,
            "position": step.mention.position,
            "message_id": step.mention.id,
            "at": step.request.at,
            "session": step.session,
            "cold": step.cold,
            "failed": step.failed,
            "total": usage.total,
            "cached": usage.cache_read,
            "new": usage.total - usage.cache_read,
            "output": usage.output,
            "shown": len(step.shown),
            "row_tokens": sum(row.tokens for row in step.rows),
            "shown_chars": sum(len(m.text) if body is None else min(len(m.text), body) for m in step.shown),
            "cut": len(cut),
            "cut_chars": sum(cut),
            "duplicated": len(step.repeated),
            "duplicated_tokens": _tokens(step, step.repeated),
            "resent": len(step.resent),
            "resent_tokens": _tokens(step, step.resent),
            "notices": len(step.notices),
            "notice_tokens": sum(block.tokens for block in step.notices),
            "unshown": 0,  # known when the last turn has been seen
            "turns_left": max(0, int((context_limit - carried) // growth)),
        }
        yield step, row


def _tokens(step: Step, positions: Collection[int]) -> int:
    if not positions:
        return 0
    pairs = zip(step.shown, step.rows, strict=True)
    return sum(row.tokens for message, row in pairs if message.position in positions)


def summary(table: pd.DataFrame) -> dict[str, int | float | None]:
    """The sums of one run's table, as `sums` defines them."""
    return sums(table.to_dict("records"))


def sums(turns: Sequence[Mapping[Any, Any]]) -> dict[str, int | float | None]:
    """The sums of one run's records.

    `distinct` counts rows shown at least once by a run that did not fail; `new_per_warm_turn` is a mean over warm
    turns, `None` without one; `cache_share` is cached over total input, cold turns included.
    """

    def added(column: str) -> int:
        return sum(turn[column] for turn in turns)

    delivered = [turn for turn in turns if not turn["failed"]]
    warm = [turn["new"] for turn in turns if not turn["cold"]]
    total, cached = added("total"), added("cached")
    return {
        "turns": len(turns),
        "shown": added("shown"),
        "distinct": sum(turn["shown"] - turn["duplicated"] - turn["resent"] for turn in delivered),
        "duplicated": added("duplicated"),
        "unshown": added("unshown"),
        "shown_chars": added("shown_chars"),
        "duplicated_tokens": added("duplicated_tokens"),
        "total_input": total,
        "cached": cached,
        "cache_share": cached / total if total else None,
        "new_per_warm_turn": fmean(warm) if warm else None,
    }
