"""One tidy table, one row a turn, and its sums."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from warmprefix.caches.ideal import IdealPrefix
from warmprefix.channel import Channel
from warmprefix.request import Blocks, Wire
from warmprefix.simulate import Setting, Step, forever_unshown, simulate
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
    if context_limit < 1:
        raise ValueError(f"context_limit must be at least 1 token; it is {context_limit}")
    steps = simulate(channel, mentions, strategy, blocks, setting, evict_at=evict_at, fail_at=fail_at)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    passing = _noted(steps, columns, strategy, IdealPrefix(blocks.ids), context_limit)
    unshown = Counter(bisect_right(mentions, position) for position in forever_unshown(channel, mentions, passing))
    columns["unshown"] = [unshown[turn] for turn in range(len(columns["turn"]))]
    return pd.DataFrame(columns)


def _noted(
    steps: Iterable[Step], columns: dict[str, list[Any]], strategy: Strategy, cache: IdealPrefix, context_limit: int
) -> Iterator[Step]:
    """The steps, each noted in the columns as it passes: they are not kept, so that a long channel fits in memory."""
    for step, row in _rows(steps, strategy, cache, context_limit):
        for name, value in row.items():
            columns[name].append(value)
        yield step


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
        growth = (carried - sum(block.tokens for block in wire.head)) / turns_of[step.session]
        tokens = {message.position: row.tokens for message, row in zip(step.shown, step.rows, strict=True)}
        body = strategy.limits.body
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
            "row_tokens": sum(tokens.values()),
            "shown_chars": sum(len(m.text) if body is None else min(len(m.text), body) for m in step.shown),
            "cut": len(cut),
            "cut_chars": sum(cut),
            "duplicated": len(step.repeated),
            "duplicated_tokens": sum(tokens[position] for position in step.repeated),
            "resent": len(step.resent),
            "resent_tokens": sum(tokens[position] for position in step.resent),
            "notices": len(step.notices),
            "notice_tokens": sum(block.tokens for block in step.notices),
            "turns_left": max(0, int((context_limit - carried) // growth)),
        }
        yield step, row


def summary(table: pd.DataFrame) -> dict[str, int | float | None]:
    """The sums of one run's table.

    `distinct` counts rows shown at least once by a run that did not fail; `new_per_warm_turn` is a mean over warm
    turns, `None` without one; `cache_share` is cached over total input, cold turns included.
    """
    # `loc`, since the columns of an empty table are of no type and would be taken for names.
    warm, delivered = table.loc[~table["cold"]], table.loc[~table["failed"]]
    total, cached = int(table["total"].sum()), int(table["cached"].sum())
    return {
        "turns": len(table),
        "shown": int(table["shown"].sum()),
        "distinct": int((delivered["shown"] - delivered["duplicated"] - delivered["resent"]).sum()),
        "duplicated": int(table["duplicated"].sum()),
        "unshown": int(table["unshown"].sum()),
        "shown_chars": int(table["shown_chars"].sum()),
        "duplicated_tokens": int(table["duplicated_tokens"].sum()),
        "total_input": total,
        "cached": cached,
        "cache_share": cached / total if total else None,
        "new_per_warm_turn": float(warm["new"].mean()) if len(warm) else None,
    }
