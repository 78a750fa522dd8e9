"""The conversation of a run: an append-only list of pieces, each with the bytes that are sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warmprefix.channel import clean
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.tools.catalogue import Tool, compact, definition

USER, ASSISTANT = "user", "assistant"


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of a request: where it stands, its JSON as sent, and the text of it that is counted in tokens."""

    tier: str
    role: str
    kind: str
    body: str
    text: str


def tool_piece(tool: Tool) -> Piece:
    """A tool's definition in the tool block."""
    return Piece(TOOLS, "", "tool", definition(tool), definition(tool))


def system_piece(text: str) -> Piece:
    """A block of the system prompt."""
    text = clean(text)
    return Piece(SYSTEM, "", "text", compact({"type": "text", "text": text}), text)


def text_piece(role: str, text: str) -> Piece:
    """What the user or the assistant says."""
    text = clean(text)
    return Piece(MESSAGES, role, "text", compact({"type": "text", "text": text}), text)


def use_piece(call_id: str, name: str, arguments: Mapping[str, Any]) -> Piece:
    """The assistant's call of a tool."""
    body = compact({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
    return Piece(MESSAGES, ASSISTANT, "tool_use", body, compact(arguments))


def result_piece(call_id: str, text: str) -> Piece:
    """What a tool answered."""
    text = clean(text)
    body = compact({"type": "tool_result", "tool_use_id": call_id, "content": text})
    return Piece(MESSAGES, USER, "tool_result", body, text)


def reference_piece(tool: Tool) -> Piece:
    """A tool's definition, expanded where the conversation stands instead of in the tool block."""
    body = compact({"type": "tool_reference", "tool_name": tool.name})
    return Piece(MESSAGES, USER, "tool_reference", body, definition(tool))


@dataclass(frozen=True, slots=True)
class Trim:
    """A rewrite that says so: before which request (from 0), from which piece on, how many, and what it reclaimed."""

    request: int
    first: int
    pieces: int
    reclaimed: int


@dataclass
class Transcript:
    """Pieces in the order they were said; only `rewrite` changes one, and it leaves a `Trim`.

    >>> talk = Transcript()
    >>> talk.append(text_piece("user", "hi"))
    >>> len(talk.pieces), talk.trims
    (1, [])
    """

    _pieces: list[Piece] = field(default_factory=list)
    trims: list[Trim] = field(default_factory=list)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """What has been said so far."""
        return tuple(self._pieces)

    def append(self, *pieces: Piece) -> None:
        """Put pieces behind the last one."""
        self._pieces.extend(pieces)

    def rewrite(self, changes: Mapping[int, Piece], reclaimed: int, request: int) -> Trim:
        """Replace the pieces at these positions and record it."""
        for position, piece in changes.items():
            self._pieces[position] = piece
        trim = Trim(request, min(changes), len(changes), reclaimed)
        self.trims.append(trim)
        return trim


def turn_starts(pieces: Sequence[Piece]) -> list[int]:
    """The positions at which a turn starts: a text of the user's."""
    return [i for i, piece in enumerate(pieces) if piece.role == USER and piece.kind == "text"]
