"""Runs of a chosen shape: how many blocks a turn adds, how much old output it drags along, when it loads tools."""

from collections.abc import Sequence
from itertools import chain

from warmprefix.harness import markers as marking
from warmprefix.harness import trimming
from warmprefix.harness.session import Sent
from warmprefix.harness.transcript import (
    ASSISTANT,
    USER,
    Piece,
    Transcript,
    reference_piece,
    result_piece,
    text_piece,
    use_piece,
)
from warmprefix.harness.wire import APPEND, INLINE, INSERT, assemble
from warmprefix.prompt import MESSAGES
from warmprefix.tools.catalogue import Tool
from warmprefix.tools.surface import Surface

Delta = Sequence[Piece]


def filler(tokens: int, label: str = "") -> str:
    """A text of about that many tokens; texts with different labels differ from the start.

    >>> from warmprefix.tools.catalogue import token_count
    >>> token_count(filler(100))
    100
    """
    return label + " log" * tokens


def parallel_calls(turn: int, calls: int, tokens: int = 200) -> tuple[Piece, ...]:
    """A turn in which many tools are called at once: a run of calls, then a run of results, two blocks a call."""
    ids = [f"call_{turn}_{i}" for i in range(calls)]
    used = [use_piece(ident, "read_file", {"path": f"{ident}.txt"}) for ident in ids]
    return (*used, *(result_piece(ident, filler(tokens, ident)) for ident in ids))


def alternating_calls(turn: int, calls: int, tokens: int = 200) -> tuple[Piece, ...]:
    """The same calls with a word before each, so that no two of them are neighbours; three blocks a call."""
    ids = [f"call_{turn}_{i}" for i in range(calls)]
    used = [(text_piece(ASSISTANT, f"Now {i}."), use_piece(i, "read_file", {"path": f"{i}.txt"})) for i in ids]
    return (*chain(*used), *(result_piece(ident, filler(tokens, ident)) for ident in ids))


def texts(turn: int, blocks: int, tokens: int = 200) -> tuple[Piece, ...]:
    """A turn of text blocks only, as of a pasted thread."""
    return tuple(text_piece(USER, filler(tokens, f"message {turn} {i}:")) for i in range(blocks))


def conversation(
    surface: Surface,
    instructions: str,
    deltas: Sequence[Delta],
    *,
    style: str = marking.PAIR,
    pace: float = 30.0,
    first_token: float = 2.0,
    activate: Sequence[Sequence[Tool]] = (),
    placement: str = APPEND,
    trim: trimming.Policy | None = None,
) -> tuple[list[Sent], Transcript]:
    """The requests of a run that adds one delta after another, a request for each, and its transcript.

    `activate[n]` are the deferred tools that are loaded behind request n (from 0); `pace` and `first_token` are
    seconds. With a policy, stale output is trimmed before any request for which it pays.
    """
    transcript, loaded, sent = Transcript(), list[Tool](), list[Sent]()
    previous: int | None = None
    for number, delta in enumerate(deltas):
        transcript.append(*delta)
        if trim:
            changes, reclaimed = trimming.plan(transcript.pieces, trim)
            if changes:
                transcript.rewrite(changes, reclaimed, number)
        pieces = assemble(surface, loaded, instructions, transcript.pieces, placement)
        in_block = len(surface.resident) + (len(loaded) if placement == INSERT else 0)
        at = number * pace
        sent.append(Sent(pieces, marking.place(pieces, in_block, previous, style), at, at + first_token))
        previous = sum(piece.tier == MESSAGES for piece in pieces)
        new = activate[number] if number < len(activate) else ()
        loaded += new
        if placement == INLINE:
            transcript.append(*(reference_piece(tool) for tool in new))
    return sent, transcript


def tool_turns(outputs: Sequence[int], calls: int = 1) -> list[Delta]:
    """Turns with tool output of these many tokens each, from so many calls; two requests a turn, to be trimmed or not.

    >>> [len(delta) for delta in tool_turns([100, 100])]
    [1, 2, 2, 2]
    """
    deltas: list[Delta] = []
    answer: list[Piece] = []
    for turn, tokens in enumerate(outputs):
        deltas.append((*answer, text_piece(USER, f"Please look at number {turn}.")))
        deltas.append(parallel_calls(turn, calls, tokens // calls))
        answer = [text_piece(ASSISTANT, f"Number {turn} is in order.")]
    return deltas
