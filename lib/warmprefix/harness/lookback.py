"""What the end markers find after turns of any shape, and what each set of markers saves over a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from warmprefix.caches.anthropic import Anthropic
from warmprefix.harness import markers as marking
from warmprefix.harness.billing import ANTHROPIC, BEDROCK, Provider, charged
from warmprefix.harness.session import Sent
from warmprefix.harness.transcript import Piece
from warmprefix.harness.workloads import Delta, alternating_calls, conversation, parallel_calls, texts
from warmprefix.prompt import MESSAGES
from warmprefix.tools.surface import Surface

# How a turn of so many blocks looks: tool calls come as a call and its result each, and one word before it.
SHAPES: Mapping[str, Callable[[int, int], tuple[Piece, ...]]] = {
    "text blocks": lambda turn, blocks: texts(turn, blocks),
    "alternating tool blocks": lambda turn, blocks: alternating_calls(turn, blocks // 3),
    "parallel tool calls": lambda turn, blocks: parallel_calls(turn, blocks // 2),
}
RAW, RUNS = "every block counts", "a run counts once"
RULES = {RAW: False, RUNS: True}
CONSTANT = "tools and system only"
_RUN_KINDS = ("tool_use", "tool_result")


def positions(pieces: Sequence[Piece], collapse_runs: bool) -> int:
    """How many positions these blocks take in a lookback, by either counting rule.

    >>> positions(parallel_calls(0, 10), False), positions(parallel_calls(0, 10), True)
    (20, 2)
    """
    if not collapse_runs:
        return len(pieces)
    kinds = [piece.kind for piece in pieces]
    return sum(i == 0 or kind not in _RUN_KINDS or kind != kinds[i - 1] for i, kind in enumerate(kinds))


def after_a_turn(
    surface: Surface, instructions: str, blocks: Sequence[int], history: int = 40_000, pace: float = 30.0
) -> pd.DataFrame:
    """What the request after one turn finds again of the request before: a row a shape, turn, rule and end marker.

    `blocks` is how many the turn adds (as many as its shape can make of the number), `positions` what they count for
    by the rule; `before` are the tokens of the request before, of which `read` were found and `paid_again` were not;
    `head` are those of tools and system prompt.
    """
    rows = []
    opening = texts(0, 1, history)
    for shape, turn in SHAPES.items():
        for count in blocks:
            added = turn(1, count)
            if not added:
                continue
            for style in (marking.SINGLE, marking.PAIR):
                sent, _ = conversation(surface, instructions, [opening, added], style=style, pace=pace)
                for rule, collapse_runs in RULES.items():
                    table = charged(sent, _counting(collapse_runs))
                    before, read = int(table["total"].iloc[0]), int(table["read"].iloc[1])
                    rows.append(
                        {
                            "shape": shape,
                            "blocks": len(added),
                            "rule": rule,
                            "positions": positions(added, collapse_runs),
                            "marker": style,
                            "head": sum(b.tokens for b in sent[0].request().blocks if b.tier != MESSAGES),
                            "before": before,
                            "read": read,
                            "paid_again": before - read,
                        }
                    )
    return pd.DataFrame(rows).drop_duplicates(ignore_index=True)


def _counting(collapse_runs: bool) -> Provider:
    return replace(ANTHROPIC, cache=lambda ids: Anthropic(collapse_runs=collapse_runs))


def placed(sent: Sent) -> pd.DataFrame:
    """The markers of a request: the block each stands on, the tokens up to it, its lifetime."""
    request = sent.request()
    return pd.DataFrame(
        {
            "position": position,
            "tier": request.blocks[position].tier,
            "kind": request.blocks[position].kind,
            "tokens up to it": sum(block.tokens for block in request.blocks[: position + 1]),
            "lifetime": lifetime,
        }
        for position, lifetime in sorted(sent.markers.items())
    )


def marker_costs(
    surface: Surface, instructions: str, runs: Mapping[str, Sequence[Delta]], provider: Provider = BEDROCK
) -> pd.DataFrame:
    """What each set of markers makes of each run: `read` and `fresh` tokens, their `share` read, and `usd`."""
    rows = []
    for run, deltas in runs.items():
        for style in (marking.NONE, CONSTANT, marking.SINGLE, marking.PAIR):
            base = marking.PAIR if style == CONSTANT else style
            sent, _ = conversation(surface, instructions, deltas, style=base)
            table = charged([_constant(each) for each in sent] if style == CONSTANT else sent, provider)
            sums = table.sum()
            rows.append(
                {
                    "run": run,
                    "markers": style,
                    "read": int(sums["read"]),
                    "fresh": int(sums["fresh"]),
                    "share": sums["read"] / sums["total"],
                    "usd": sums["usd"],
                }
            )
    return pd.DataFrame(rows)


def _constant(sent: Sent) -> Sent:
    kept = {i: lifetime for i, lifetime in sent.markers.items() if sent.pieces[i].tier != MESSAGES}
    return replace(sent, markers=kept)


def after_a_pause(
    surface: Surface,
    instructions: str,
    pauses: Sequence[float],
    deltas: Sequence[Delta],
    provider: Provider = ANTHROPIC,
) -> pd.DataFrame:
    """What a request reads when so many seconds have passed since the one before, by the head's lifetime.

    `constant` is the lifetime of the markers on tools and system prompt; the end of the conversation has five minutes.
    """
    rows = []
    for constant in (marking.SHORT, marking.LONG):
        for pause in pauses:
            sent, _ = conversation(surface, instructions, deltas, pace=pause)
            table = charged([_lasting(each, constant) for each in sent], provider)
            last = table.iloc[-1]
            rows.append({"pause": pause, "constant": constant, "read": int(last["read"]), "fresh": int(last["fresh"])})
    return pd.DataFrame(rows)


def _lasting(sent: Sent, constant: str) -> Sent:
    def lifetime(i: int) -> str:
        return marking.SHORT if sent.pieces[i].tier == MESSAGES else constant

    return replace(sent, markers={i: lifetime(i) for i in sent.markers})
