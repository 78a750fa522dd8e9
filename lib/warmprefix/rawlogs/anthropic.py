"""Anthropic Messages bodies as requests: tools, then system, then messages, with their cache markers."""

import json
from collections.abc import Iterator
from typing import Any

from warmprefix.caches.anthropic import FIVE_MINUTES, automatic
from warmprefix.caches.entries import Refused
from warmprefix.chatlogs.records import Record, kind_of, shown
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.rawlogs.blocks import PICTURE, BlockMaker
from warmprefix.request import Block, Request

_PLAIN = {"type", "text", "cache_control"}


def request(body: Record, maker: BlockMaker, at: float, first_token_at: float | None) -> Request:
    """The request of one body.

    Raises `InputError` for a body of another shape and `Refused` for markers that the provider refuses.
    """
    pieces = list(_pieces(body, maker))
    blocks = tuple(block for block, _ in pieces)
    markers = tuple((i, _lifetime(control)) for i, (_, controls) in enumerate(pieces) for control in controls)
    output = body.inner("output_config")
    effort = None if output is None else output.fields.get("effort")
    made = Request(
        blocks,
        at,
        first_token_at,
        body.text("model"),
        scope="" if effort is None else f"effort {effort}",
        settings=json.dumps(
            [
                body.fields.get("tool_choice") or {"type": "auto"},
                body.fields.get("thinking") or {"type": "disabled"},
                bool(maker.pictured) and any(block.key in maker.pictured for block in blocks),
            ]
        ),
        markers=markers,
    )
    control = body.fields.get("cache_control")
    return made if control is None else automatic(made, _lifetime(control))


def _pieces(body: Record, maker: BlockMaker) -> Iterator[tuple[Block, list[Any]]]:
    """Every block with its cache controls; tools that are deferred are not part of the prefix."""
    for tool in body.items("tools"):
        if not tool.fields.get("defer_loading"):
            yield maker.json(TOOLS, "", "tool", _bare(tool.fields)), _controls(tool.fields)
        elif _controls(tool.fields):
            raise Refused("a deferred tool cannot carry a cache marker")
    yield from _content(body, "system", body.fields.get("system"), SYSTEM, "", maker)
    for message in body.items("messages"):
        yield from _content(message, "content", message.fields.get("content"), MESSAGES, message.text("role"), maker)


def _content(
    where: Record, key: str, content: Any, tier: str, role: str, maker: BlockMaker
) -> Iterator[tuple[Block, list[Any]]]:
    if content is None:
        return
    if isinstance(content, str):
        yield maker.text(tier, role, content), []
        return
    if not isinstance(content, list):
        raise where.fault(key, f"must be a text or a list, not {kind_of(content)}")
    for part in content:
        if not isinstance(part, dict):
            raise where.fault(key, f"must hold objects, not {kind_of(part)}")
        controls, text, inner = _controls(part), part.get("text"), part.get("content")
        if part.keys() <= _PLAIN and isinstance(text, str):
            yield maker.text(tier, role, text), controls
            continue
        bare = _bare(part)
        if isinstance(inner, list):
            controls = [*(control for piece in inner for control in _controls(piece)), *controls]
            bare["content"] = [_bare(piece) if isinstance(piece, dict) else piece for piece in inner]
        kind = str(part.get("type", "text"))
        yield maker.json(tier, role, kind, bare, lambda value: _texts(value, maker)), controls


def _bare(fields: dict[str, Any]) -> dict[str, Any]:
    """An object without its cache control, which is no part of the content."""
    return {key: value for key, value in fields.items() if key != "cache_control"}


def _controls(piece: Any) -> list[Any]:
    """The cache control of an object in a list, which is empty where it has none."""
    control = piece.get("cache_control") if isinstance(piece, dict) else None
    return [] if control is None else [control]


def _texts(value: Any, maker: BlockMaker) -> Iterator[str]:
    """What of a content block is counted."""
    kind = value.get("type") if isinstance(value, dict) else None
    source = value.get("source") if isinstance(value, dict) else None
    if isinstance(value, str):
        yield value
    elif kind in ("text", "thinking") and isinstance(value.get(kind), str):
        yield value[kind]
    elif kind == "tool_use":
        yield maker.dump(value.get("input"))
    elif kind == "tool_result":
        inner = value.get("content")
        for piece in inner if isinstance(inner, list) else [inner or ""]:
            yield from _texts(piece, maker)
    elif kind == "image" or (isinstance(source, dict) and source.get("type") == "base64"):
        yield PICTURE
    else:
        yield maker.dump(value)


def _lifetime(control: Any) -> str:
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        raise Refused(f"cache_control {shown(control)} is not of the type ephemeral")
    lifetime = control.get("ttl") or FIVE_MINUTES
    return lifetime if isinstance(lifetime, str) else shown(lifetime)
