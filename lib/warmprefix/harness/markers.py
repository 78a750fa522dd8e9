"""Where a request says "write here": behind the tools, the system prompt, the last request and this one."""

from collections.abc import Sequence

from warmprefix.harness.transcript import Piece
from warmprefix.prompt import MESSAGES, SYSTEM

PAIR, SINGLE, NONE = "pair", "single", "none"
LONG, SHORT = "1h", "5m"


def place(
    pieces: Sequence[Piece], resident: int, previous: int | None, style: str = PAIR, constant: str = LONG
) -> dict[int, str]:
    """The markers of a request, as lifetimes by position; at most four.

    `resident` counts the tools at the head that never change: a schema loaded later stands behind the marked block.
    `previous` counts the message blocks of the request before (None for the first): marking where it ended makes its
    entry a certain hit however many blocks have come since, where `single` relies on the lookback. Tools and system
    live longer (`constant`), because every run of this shape shares them.
    """
    if style == NONE:
        return {}
    messages = [i for i, piece in enumerate(pieces) if piece.tier == MESSAGES]
    system = [i for i, piece in enumerate(pieces) if piece.tier == SYSTEM]
    marked: dict[int, str] = {}
    if resident:
        marked[resident - 1] = constant
    if system:
        marked[system[-1]] = constant
    if messages and previous and style == PAIR:
        marked[messages[previous - 1]] = SHORT
    if messages:
        marked[messages[-1]] = SHORT
    return marked
