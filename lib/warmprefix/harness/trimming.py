"""Stale tool output goes only when enough comes back: a rare, deep rewrite instead of a steady miss."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from warmprefix.harness.transcript import Piece, turn_starts
from warmprefix.tools.catalogue import compact, token_count

_STUB = re.compile(r"\[\d+ tokens of old output removed; call the tool again for them\]")


@dataclass(frozen=True, slots=True)
class Policy:
    """Trim the tool output of all but the newest `keep` turns when at least `threshold` tokens come back.

    A threshold of 0 trims whatever can be trimmed, every time: the steady small cut.
    """

    threshold: int = 20_000
    keep: int = 2


def plan(pieces: Sequence[Piece], policy: Policy) -> tuple[Mapping[int, Piece], int]:
    """The stubs by position that a trim would put in place, and the tokens it would reclaim; empty below the threshold.

    The piece of an output that has been cut already, or is shorter than its stub, stays as it is.
    """
    starts = turn_starts(pieces)
    stale = starts[-policy.keep] if len(starts) > policy.keep > 0 else 0
    if policy.keep == 0:
        stale = len(pieces)
    changes: dict[int, Piece] = {}
    reclaimed = 0
    for position, piece in enumerate(pieces[:stale]):
        if piece.kind == "tool_result" and not _STUB.fullmatch(piece.text):
            stub, gain = _stub(piece)
            if gain > 0:
                changes[position], reclaimed = stub, reclaimed + gain
    return (changes, reclaimed) if changes and reclaimed >= policy.threshold else ({}, 0)


@lru_cache(maxsize=100_000)  # every request asks again about every output that is still whole
def _stub(piece: Piece) -> tuple[Piece, int]:
    """What stands in an output's place, and the tokens that it gives back."""
    tokens = token_count(piece.text)
    text = f"[{tokens} tokens of old output removed; call the tool again for them]"
    call = piece.body.partition(',"content":')[0]
    return replace(piece, body=f'{call},"content":{compact(text)}}}', text=text), tokens - token_count(text)
