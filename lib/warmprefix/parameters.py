"""What a notebook can be told: the typed literals of its cell tagged `parameters`, and values checked against them."""

import ast
import difflib
import io
import json
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warmprefix.errors import InputError

_WORDS = {"none": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One knob of a notebook: its default `value`, its `type` as written, the `comment` behind it (its unit), and
    whether any other code cell reads it."""

    name: str
    value: Any
    type: str
    comment: str = ""
    read: bool = True


def cells(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook file as plain data, each source one string.

    Raises `InputError` where the file is no notebook.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return [{**cell, "source": "".join(cell["source"])} for cell in found]
    except OSError as error:
        raise InputError(path, "", error.strerror or "cannot be read", "name a notebook that exists") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(path, "", f"not a notebook: {error!r}", "save it from Jupyter, format 4.5") from None


def tags(cell: Mapping[str, Any]) -> list[str]:
    """The tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def parameters(path: Path) -> dict[str, Parameter]:
    """The parameters that the notebook at `path` declares, in order, from its cell tagged `parameters`.

    Each statement of that cell is a typed literal such as `limit: int | None = 12  # rows`; a notebook without such a
    cell takes no parameters. Raises `InputError` for anything else in the cell, and for more than one such cell.
    """
    code = [cell for cell in cells(path) if cell.get("cell_type") == "code"]
    tagged = [cell["source"] for cell in code if "parameters" in tags(cell)]
    if len(tagged) > 1:
        raise InputError(path, "cells tagged `parameters`", f"there are {len(tagged)}", "keep one")
    read = {name for cell in code if "parameters" not in tags(cell) for name in _names_read(cell["source"])}
    return {p.name: p for source in tagged for p in _declared(path, source, read)}


def _declared(path: Path, source: str, read: set[str]) -> Iterator[Parameter]:
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise InputError(path, f"cell tagged `parameters`, line {error.lineno}", str(error.msg)) from None
    comments = _comments(source)
    for statement in statements:
        place = f"cell tagged `parameters`, line {statement.lineno}"
        try:
            if not isinstance(statement, ast.AnnAssign) or statement.value is None:
                raise ValueError("not a typed literal")
            value = fit(ast.literal_eval(statement.value), statement.annotation)
        except (ValueError, TypeError) as error:
            raise InputError(path, place, str(error), "write each line as `name: type = literal`") from None
        name, kind = ast.unparse(statement.target), ast.unparse(statement.annotation)
        yield Parameter(name, value, kind, comments.get(statement.end_lineno or 0, ""), name in read)


def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}


def _names_read(source: str) -> set[str]:
    lines = ("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())  # not Python
    try:
        tree = ast.parse("\n".join(lines))
    except SyntaxError:
        return set()  # the run will say so, with the line
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def fit(value: Any, kind: ast.expr) -> Any:
    """`value` as the annotation `kind` wants it: an int becomes a float, a list a tuple, where that is asked for.

    >>> fit([1, 2], ast.parse("tuple[float, ...] | None", mode="eval").body)
    (1.0, 2.0)

    Raises `ValueError` where it does not fit.
    """
    match kind:
        case ast.Constant(value=None) if value is None:
            return None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            for side in (left, right):
                try:
                    return fit(value, side)
                except ValueError:
                    continue
        case ast.Name(id="float") if type(value) is int:
            return float(value)
        case ast.Name(id=name) if type(value).__name__ == name:
            return value
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            options = ast.literal_eval(choices)
            if value in (options if isinstance(options, tuple) else (options,)):
                return value
        case ast.Subscript(value=ast.Name(id="list"), slice=item) if isinstance(value, list):
            return [fit(each, item) for each in value]
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)) if isinstance(value, list | tuple):
            if isinstance(items[-1], ast.Constant) and items[-1].value is ...:
                items = items[:1] * len(value)
            if len(items) == len(value):
                return tuple(fit(each, item) for each, item in zip(value, items, strict=True))
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, item])) if isinstance(value, dict):
            return {fit(k, key): fit(v, item) for k, v in value.items()}
    raise ValueError(f"{value!r} is not `{ast.unparse(kind)}`")


def read_text(text: str, kind: ast.expr) -> Any:
    """The value that `text` from a command line stands for, under the annotation `kind`.

    >>> read_text("none", ast.parse("int | None", mode="eval").body) is None
    True
    >>> read_text("window,watermark", ast.parse("list[str]", mode="eval").body)
    ['window', 'watermark']

    Raises `ValueError` where no reading of it fits.
    """
    for reading in _readings(text):
        try:
            return fit(reading, kind)
        except ValueError:
            continue
    raise ValueError(f"{text!r} is not `{ast.unparse(kind)}`")


def _readings(text: str) -> Iterator[Any]:
    if text.lower() in _WORDS:
        yield _WORDS[text.lower()]
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        yield ast.literal_eval(text)
    yield text
    yield [next(_readings(part.strip())) for part in text.split(",")]


def checked(
    path: Path, known: Mapping[str, Parameter], values: Mapping[str, Any], texts: Sequence[str] = ()
) -> dict[str, Any]:
    """The given values, typed as the notebook at `path` declares them; `texts` are `name=value` strings and win.

    Raises `InputError` for a name that the notebook does not declare, a value of another type, and a parameter that no
    other cell reads (it would change nothing).
    """
    given: dict[str, Any] = {}
    for name, value, convert in [*((n, v, fit) for n, v in values.items()), *_split(path, texts)]:
        if name not in known:
            raise InputError(path, f"parameter {name}", "unknown", suggestion(name, known))
        if not known[name].read:
            raise InputError(path, f"parameter {name}", "no cell reads it", "use it in a cell or take it out")
        try:
            given[name] = convert(value, ast.parse(known[name].type, mode="eval").body)
        except ValueError as error:
            raise InputError(path, f"parameter {name}", str(error), f"the default is {known[name].value!r}") from None
    return given


def _split(path: Path, texts: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(path, f"-p {text}", "has no value", "write it as name=value")
        yield name.strip(), value, read_text


def suggestion(word: str, known: Iterable[str]) -> str:
    """The remedy for an unknown `word`: the nearest of the known ones, or all of them.

    >>> suggestion("limt", ["limit", "seed"])
    'did you mean `limit`?'
    """
    options = list(known)
    near = difflib.get_close_matches(word, options, 1, 0.6)
    return f"did you mean `{near[0]}`?" if near else f"choose from: {', '.join(options) or '(none)'}"
