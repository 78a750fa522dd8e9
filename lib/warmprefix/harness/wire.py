"""A request as it goes out: tools, then system, then messages; the one path for runs, reports and views."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from warmprefix.harness.transcript import Piece, system_piece, tool_piece
from warmprefix.prompt import SYSTEM, TOOLS
from warmprefix.request import Block, Request
from warmprefix.tools.catalogue import Tool, compact, token_count
from warmprefix.tools.surface import Surface

# Where an activated schema goes: sorted into the tool block, behind it, or into the conversation.
INSERT, APPEND, INLINE = "insert", "append", "inline"
PLACEMENTS = (INSERT, APPEND, INLINE)


def assemble(
    surface: Surface,
    loaded: Sequence[Tool],
    instructions: str,
    said: Sequence[Piece],
    placement: str = APPEND,
) -> tuple[Piece, ...]:
    """The pieces of a request in wire order.

    `loaded` are the deferred tools that have been activated, in that order; with the placement `inline` they stand
    in `said` already. The name index never changes during a run, whatever has been loaded.
    """
    in_block = () if placement == INLINE else tuple(loaded)
    tools = (*surface.resident, *in_block)
    if placement == INSERT:
        tools = tuple(sorted(tools, key=lambda tool: tool.name))
    system = [system_piece(text) for text in (instructions, surface.index()) if text]
    return (*(tool_piece(tool) for tool in tools), *system, *said)


def body(pieces: Sequence[Piece], markers: Mapping[int, str], model: str = "") -> str:
    """The request's JSON in the form of the Anthropic Messages API; `markers` gives lifetimes by position.

    >>> body([system_piece("Be brief.")], {0: "1h"})
    '{"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[]}'
    """
    blocks = [(piece, _sent(piece, markers.get(i))) for i, piece in enumerate(pieces)]
    tiers = {name: [block for piece, block in blocks if piece.tier == name] for name in (TOOLS, SYSTEM)}
    said = [(piece, block) for piece, block in blocks if piece.role]
    messages = [
        {"role": role, "content": [block for _, block in turn]}
        for role, turn in groupby(said, lambda pair: pair[0].role)
    ]
    head = {"model": model} if model else {}
    return compact(head | {name: tier for name, tier in tiers.items() if tier} | {"messages": messages})


def _sent(piece: Piece, lifetime: str | None) -> dict[str, object]:
    block: dict[str, object] = json.loads(piece.body)
    return block | ({"cache_control": {"type": "ephemeral", "ttl": lifetime}} if lifetime else {})


def request(
    pieces: Sequence[Piece],
    markers: Mapping[int, str],
    *,
    at: float = 0.0,
    first_token_at: float | None = None,
    model: str = "",
    scope: str = "",
    output: int = 0,
) -> Request:
    """The same request for the cache models: a block a piece, keyed by its bytes; a marker is no part of them."""
    blocks = tuple(_block(piece, markers.get(i)) for i, piece in enumerate(pieces))
    return Request(blocks, at, first_token_at, model, scope, output)


def _block(piece: Piece, marker: str | None) -> Block:
    key, tokens = _key_and_tokens(piece)
    return Block(piece.tier, piece.kind, key, tokens, marker)


@lru_cache(maxsize=100_000)
def _key_and_tokens(piece: Piece) -> tuple[str, int]:
    sent = "\0".join((piece.tier, piece.role, piece.body, piece.text))
    return hashlib.sha256(sent.encode()).hexdigest()[:32], token_count(piece.text)
