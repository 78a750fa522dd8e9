"""OpenAI bodies as requests, of the chat and of the Responses interface: tools, instructions, then messages."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from warmprefix.caches.facts import fact
from warmprefix.caches.openai_breakpoints import BOTH, ENDING, EXPLICIT, endings
from warmprefix.chatlogs.records import Record, kind_of
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.rawlogs.blocks import PICTURE, BlockMaker
from warmprefix.request import Block, Request

_ROLES = {"system": "developer", "function": "tool"}
_MARK = "prompt_cache_breakpoint"


class _Piece(NamedTuple):
    block: Block
    role: str = ""
    ends: bool = False
    marked: bool = False


def request(body: Record, maker: BlockMaker, at: float, first_token_at: float | None) -> Request:
    """The request of one body; raises `InputError` for a body of another shape."""
    if body.fields.get("previous_response_id") or body.fields.get("conversation"):
        raise body.fault("previous_response_id", "leaves the history with the provider", "log the whole input")
    pieces = list(_pieces(body, maker))
    options = body.inner("prompt_cache_options")
    found = set(endings([piece.role for piece in pieces], [piece.ends for piece in pieces]))
    if options is not None and options.fields.get("mode") == "explicit":
        found = set()
    marked = {i for i, piece in enumerate(pieces) if piece.marked}
    model = body.text("model")
    kept = body.fields.get("prompt_cache_retention") == "24h" and fact("openai", "regime", model) == "prefix"
    return Request(
        tuple(piece.block for piece in pieces),
        at,
        first_token_at,
        model,
        settings="24h" if kept else "",
        markers=tuple(
            (i, BOTH if i in found and i in marked else ENDING if i in found else EXPLICIT)
            for i in sorted(found | marked)
        ),
    )


def _pieces(body: Record, maker: BlockMaker) -> Iterator[_Piece]:
    for key in ("tools", "functions"):
        for tool in body.items(key):
            yield _Piece(maker.json(TOOLS, "", "tool", tool.fields))
    text = body.inner("text")
    for form in (body.inner("response_format"), text and text.inner("format")):
        if form is not None and form.fields.get("type") == "json_schema":
            yield _Piece(maker.json(TOOLS, "", "schema", form.fields))
    tier = SYSTEM
    if isinstance(body.fields.get("instructions"), str):
        yield _Piece(maker.text(SYSTEM, "developer", body.text("instructions")), "developer", True)
    for item in _items(body):
        role = str(item.fields.get("role") or _role(item))
        role = _ROLES.get(role, role)
        tier = tier if role == "developer" else MESSAGES
        yield from _message(item, tier, role, maker)


def _items(body: Record) -> list[Record]:
    """The messages of a chat body, or the input items of a Responses body."""
    if "messages" in body.fields:
        return body.items("messages")
    if isinstance(body.fields.get("input"), str):
        return [Record(body.file, body.place, {"role": "user", "content": body.fields["input"]})]
    if "input" not in body.fields:
        raise body.fault("messages", "is missing", "a chat body has messages, a Responses body has input")
    return body.items("input")


def _role(item: Record) -> str:
    """The role that an input item of the Responses interface is said in, where it names none."""
    kind = str(item.fields.get("type", ""))
    if not kind:
        raise item.fault("role", "is missing", "add it or drop the record")
    return "tool" if kind.endswith("_output") else "assistant"


def _message(item: Record, tier: str, role: str, maker: BlockMaker) -> Iterator[_Piece]:
    """The blocks of one message or input item, the last of which ends it."""
    fields = item.fields
    if fields.keys() == {"role", "content"} and isinstance(fields["content"], str):  # nearly all, so without detours
        yield _Piece(maker.text(tier, role, fields["content"]), role, True)
        return
    names = (fields.get("name"), fields.get("tool_call_id") or fields.get("call_id"))
    said = f"{role}\0{names[0] or ''}\0{names[1] or ''}" if any(names) else role
    made = list(_parts(item, tier, said, maker))
    marked = bool(fields.get(_MARK))
    for i, (block, mark) in enumerate(made):
        last = i == len(made) - 1
        yield _Piece(block, role, last, mark or (marked and last))


def _parts(item: Record, tier: str, said: str, maker: BlockMaker) -> Iterator[tuple[Block, bool]]:
    fields = item.fields
    if "content" not in fields and "tool_calls" not in fields and "role" not in fields:
        counted = next((fields[key] for key in ("arguments", "output", "input") if key in fields), None)
        if isinstance(counted, list):
            yield from _content(item, counted, tier, said, maker)
            return
        bare = {key: value for key, value in fields.items() if key not in (_MARK, "id", "status")}
        yield maker.json(tier, said, str(fields.get("type")), bare, _said(counted)), False
        return
    content = fields.get("content")
    if isinstance(content, str):
        yield maker.text(tier, said, content), False
    elif isinstance(content, list):
        yield from _content(item, content, tier, said, maker)
    elif content is not None:
        raise item.fault("content", f"must be a text or a list, not {kind_of(content)}")
    for call in item.items("tool_calls"):
        what = call.inner("function") or call.inner("custom") or call
        counted = _said(what.fields.get("arguments", what.fields.get("input")))
        yield maker.json(tier, said, "tool call", call.fields, counted), False


def _said(counted: Any) -> str | None:
    return counted if isinstance(counted, str) else None


def _content(item: Record, content: list[Any], tier: str, said: str, maker: BlockMaker) -> Iterator[tuple[Block, bool]]:
    for part in content:
        if not isinstance(part, dict):
            raise item.fault("content", f"must hold objects, not {kind_of(part)}")
        mark = bool(part.get(_MARK))
        text = part.get("text")
        if isinstance(text, str):
            yield maker.text(tier, said, text), mark
        else:
            bare = {key: value for key, value in part.items() if key != _MARK}
            kind = str(part.get("type", ""))
            yield maker.json(tier, said, kind, bare, PICTURE if "image" in kind else None), mark
