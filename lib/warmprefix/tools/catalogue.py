"""A catalogue of tools, read from any answer to `tools/list`, the same whatever order it arrived in."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from warmprefix.channel import clean
from warmprefix.datafiles import DATA
from warmprefix.errors import InputError
from warmprefix.tokens import encoding

OWN = DATA / "tools.json"

_DEPTH = 64  # of nested JSON; real schemas stay below ten
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a server lists it, and what a harness keeps about it without sending it.

    `heading` groups it in the name index; `resident` says that its schema is in every request; `delivers` names the
    mode whose result it delivers; `read_only` and `asks` (needs approval) follow the annotations of the Model Context
    Protocol, whose defaults are the careful ones; `does` says which handler runs it; `wishes` are everyday wordings
    that only the search index sees.
    """

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=lambda: _NO_ARGUMENTS)
    server: str = ""
    heading: str = ""
    resident: bool = False
    delivers: str = ""
    read_only: bool = False
    asks: bool = True
    does: Mapping[str, Any] = field(default_factory=dict)
    wishes: str = ""


def compact(value: object) -> str:
    """JSON without a superfluous byte.

    >>> compact({"name": "größe", "n": [1, 2]})
    '{"name":"größe","n":[1,2]}'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def listed(tool: Tool) -> str:
    """The tool as its catalogue states it, in compact JSON: what the token counts of catalogues count.

    >>> listed(Tool("now", "Tell the time."))
    '{"name":"now","description":"Tell the time.","inputSchema":{"type":"object","properties":{}}}'
    """
    return compact({"name": tool.name, "description": tool.description, "inputSchema": tool.schema})


def definition(tool: Tool) -> str:
    """The tool as it is sent: the same bytes for the same tool, though its server lists keys in another order.

    >>> definition(Tool("now", "Tell the time."))
    '{"name":"now","description":"Tell the time.","input_schema":{"properties":{},"type":"object"}}'
    """
    return compact({"name": tool.name, "description": tool.description, "input_schema": canonical(tool.schema)})


def canonical(schema: Any) -> Any:
    """A JSON schema with its keys sorted, and also its lists that are sets: `required`, and `type` where it is a list.

    >>> canonical({"type": "object", "required": ["b", "a"]})
    {'required': ['a', 'b'], 'type': 'object'}

    Values that a user may have ordered on purpose (`enum`, `default`, `examples`) keep their order.
    """
    if isinstance(schema, Mapping):
        return {key: _sorted_set(key, canonical(schema[key])) for key in sorted(schema)}
    return [canonical(item) for item in schema] if isinstance(schema, list) else schema


def _sorted_set(key: str, value: Any) -> Any:
    is_set = key in ("required", "type") and isinstance(value, list) and all(isinstance(item, str) for item in value)
    return sorted(value) if is_set else value


def token_count(text: str, encoding_name: str = "cl100k_base") -> int:
    """The tokens of any text.

    >>> token_count(listed(Tool("now", "Tell the time.")))
    22
    """
    return len(encoding(encoding_name).encode_ordinary(text))


@cache
def own_catalogue() -> tuple[Tool, ...]:
    """The 126 tools of this project (`data/tools.json`)."""
    return read(OWN)


def read(path: str | os.PathLike[str]) -> tuple[Tool, ...]:
    """The tools of a catalogue file, by name: an answer to `tools/list`, or the bare list of its tools.

    A definition may use the keys of the Model Context Protocol (`inputSchema`), of the Anthropic API (`input_schema`)
    or of the OpenAI API (`parameters`, also inside `function`). A tool without a schema takes no arguments. A tool
    that is listed twice alike counts once; one name from two servers is two tools. Raises `InputError`.
    """
    file = os.fspath(path)
    try:
        raw = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(file, "", f"unreadable: {error.strerror}", "name a JSON file") from None
    except UnicodeDecodeError as error:
        raise InputError(file, f"byte {error.start}", "is not UTF-8", "save the file as UTF-8") from None
    try:
        answer = json.loads(raw, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(file, f"line {error.lineno}", f"is not JSON: {error.msg}", "mend or fetch it again") from None
    except (ValueError, RecursionError) as error:
        problem = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(file, "", problem, "list tools with plain JSON schemas") from None
    return from_answer(answer, file)


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"holds {constant}, which is not JSON")


def from_answer(answer: Any, file: str = "") -> tuple[Tool, ...]:
    """The tools of a decoded `tools/list` answer, or of the bare list, by name; raises `InputError` naming `file`.

    >>> [tool.name for tool in from_answer({"tools": [{"name": "b"}, {"name": "a"}]})]
    ['a', 'b']

    An answer that came in pages is the list of its pages.
    """
    in_pages = isinstance(answer, list) and any(_unwrapped(page) is not page for page in answer)
    pages = [_unwrapped(page) for page in (answer if in_pages else [answer])]
    if not all(isinstance(page, list) for page in pages):
        raise InputError(file, "", "holds no list of tools", 'give the answer to tools/list: {"tools": [...]}')
    entries = list(chain(*pages))
    if not entries:
        raise InputError(file, "", "holds no tool", "is the server's list complete?")
    tools = [_tool(entry, file, f"tool {number}") for number, entry in enumerate(entries, start=1)]
    # Two that are sent alike may differ in what only the harness keeps: the careful one stays, in any order of arrival.
    tools = [*_once(sorted(tools, key=lambda tool: (tool.name, tool.server, not tool.asks, repr(tool))), file)]
    names(tools, file)
    return tuple(tools)


def _unwrapped(answer: Any) -> Any:
    """What stands for the list of tools in an answer, bare or in the envelope of JSON-RPC."""
    for key in ("result", "tools"):
        if isinstance(answer, dict) and key in answer:
            answer = answer[key]
    return answer


def names(catalogue: Sequence[Tool], file: str = "") -> list[str]:
    """What a run calls each tool: its name, with the server's where several servers have one of that name.

    >>> names([Tool("search", server="web"), Tool("search", server="mail"), Tool("now", server="web")])
    ['web__search', 'mail__search', 'now']

    Raises `InputError` when two tools end up with one name, since no request may hold both.
    """
    times = Counter(tool.name for tool in catalogue)
    called = [
        f"{tool.server}__{tool.name}" if times[tool.name] > 1 and tool.server else tool.name for tool in catalogue
    ]
    for name, count in Counter(called).items():
        if count > 1:
            raise InputError(file, f"tool {name!r}", "is the name of two tools", "rename one or its server")
    return called


def qualified(catalogue: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools by the name that a run calls them; raises `InputError`."""
    named = zip(catalogue, names(catalogue), strict=True)
    return tuple(sorted((replace(tool, name=name) for tool, name in named), key=lambda tool: tool.name))


def _once(tools: Sequence[Tool], file: str) -> Iterator[Tool]:
    previous = None
    for tool in tools:
        if previous is None or (tool.name, tool.server) != (previous.name, previous.server):
            yield tool
        elif definition(tool) != definition(previous):
            problem = f"name {tool.name!r} stands for two different tools of one server"
            raise InputError(file, "", problem, "rename one, or say in a field `server` where each comes from")
        previous = tool


def _tool(entry: Any, file: str, place: str) -> Tool:
    if not isinstance(entry, dict):
        raise InputError(file, place, f"is {_kind(entry)}", "every tool is an object with `name` and `inputSchema`")
    if isinstance(entry.get("function"), dict):
        entry = entry | entry["function"]
    entry = _clean(entry, file, place)
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > 128 or not name.isprintable():
        shown = repr(name[:40]) if isinstance(name, str) else _kind(name)
        raise InputError(file, place, f"field `name` is {shown}", "a name has 1 to 128 printable characters")
    place = f"{place} ({name})"
    description = _text(entry, "description", file, place)
    schema = next((entry[key] for key in ("inputSchema", "input_schema", "parameters") if key in entry), None)
    if schema is not None and not isinstance(schema, dict):
        raise InputError(file, place, f"field `inputSchema` is {_kind(schema)}", "a schema is an object")
    hints, meta = _object(entry, "annotations", file, place), _object(entry, "_meta", file, place)
    read_only = hints.get("readOnlyHint") is True
    careless = hints.get("destructiveHint") is False and hints.get("openWorldHint") is False
    return Tool(
        name,
        description,
        _NO_ARGUMENTS if schema is None else schema,
        server=_text(entry, "server", file, place),
        heading=_text(meta, "heading", file, place),
        resident=meta.get("resident") is True,
        delivers=_text(meta, "delivers", file, place),
        read_only=read_only,
        asks=not read_only and not careless,
        does={key: meta[key] for key in meta if key not in ("heading", "resident", "delivers", "wishes")},
        wishes=_text(meta, "wishes", file, place),
    )


def _text(entry: Mapping[str, Any], key: str, file: str, place: str) -> str:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(file, place, f"field `{key}` is {_kind(value)}", "make it a text or leave it out")
    return value or ""


def _object(entry: Mapping[str, Any], key: str, file: str, place: str) -> Mapping[str, Any]:
    value = entry.get(key)
    if value is not None and not isinstance(value, dict):
        raise InputError(file, place, f"field `{key}` is {_kind(value)}", "make it an object or leave it out")
    return value or {}


def _clean(value: Any, file: str, place: str, depth: int = 0) -> Any:
    """The value without halves of surrogate pairs, which no encoding can carry; numbers must be ones that JSON has."""
    if depth > _DEPTH:
        raise InputError(file, place, f"is nested deeper than {_DEPTH} levels", "flatten its schema")
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(file, place, "holds a number beyond all bounds", "no schema needs one above 1e308")
    if isinstance(value, list):
        return [_clean(item, file, place, depth + 1) for item in value]
    if isinstance(value, dict):
        return {clean(key): _clean(value[key], file, place, depth + 1) for key in value}
    return value


def _kind(value: Any) -> str:
    names = {type(None): "missing", bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(value), "a list" if isinstance(value, list) else "an object")
