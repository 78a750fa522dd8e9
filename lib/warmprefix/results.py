"""What the runs of a batch found: the numbers that a notebook reports, and all runs' numbers in one table."""

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.io.formats.style import Styler

from warmprefix.errors import InputError

KEY = "warmprefix"  # in an executed notebook's metadata: what was run
WRITTEN = "figures"  # the parameter that names where a notebook writes, in every notebook that does
MIME = "application/vnd.warmprefix.numbers+json"
_NOT_IN_JSON = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}


@dataclass(frozen=True, slots=True)
class Report:
    """Numbers that a cell shows as a table, or under another one, and that `results` finds in the executed notebook.

    >>> sorted(report({"window": {"turns": 30}})._repr_mimebundle_())
    ['application/vnd.warmprefix.numbers+json', 'text/html', 'text/plain']
    """

    numbers: Mapping[str, Any]
    table: pd.DataFrame | Styler | None = None

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        shown = self.table
        if shown is None:
            nested = all(isinstance(value, dict) for value in self.numbers.values())
            shown = pd.DataFrame(self.numbers if nested else {"value": flat(self.numbers)}).map(readable)
        options = {"index": False} if shown is self.table and isinstance(shown, pd.DataFrame) else {}
        with pd.option_context("display.max_colwidth", None):
            html, text = shown.to_html(**options), shown.to_string(**options)
        return {MIME: dict(self.numbers), "text/html": html, "text/plain": text}


def report(numbers: Mapping[str, Any] | pd.DataFrame, table: pd.DataFrame | Styler | None = None) -> Report:
    """The value of a cell that reports numbers, by name or by group and name; what is not finite becomes `None`.

    The columns of a frame are groups. `table` is what people see instead of the bare numbers.

    >>> report({"turns": 30, "share": float("nan")}).numbers
    {'turns': 30, 'share': None}
    """
    return Report({str(name): _plain(value) for name, value in numbers.items()}, table)


def _plain(value: Any) -> Any:
    """JSON's own kinds, from numpy's and pandas' as well."""
    if isinstance(value, Mapping | pd.Series):
        return {str(name): _plain(each) for name, each in value.items()}
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def readable(value: Any) -> str:
    """A value as people read it: a number to six digits, its thousands apart.

    >>> readable(511806), readable(1 / 3), readable("window")
    ('511,806', '0.333333', 'window')
    """
    numeric = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return f"{value:,.6g}" if numeric else str(value)


def flat(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers in one level, groups and names joined with a dot.

    >>> flat({"window": {"turns": 30}, "seeds": 2})
    {'window.turns': 30, 'seeds': 2}
    """
    found: dict[str, Any] = {}
    for name, value in numbers.items():
        inner = flat(value) if isinstance(value, Mapping) else None
        found |= {name: value} if inner is None else {f"{name}.{key}": each for key, each in inner.items()}
    return found


def about(notebook: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What an executed notebook says of its run, in JSON that every reader takes."""
    return {"notebook": notebook, "parameters": json.loads(json.dumps(parameters), parse_constant=str)}


def reported(path: str | Path) -> dict[str, Any]:
    """The numbers that the executed notebook at `path` reports, all its reports together; none where there is no file.

    Raises `InputError` where the file is no notebook.
    """
    if not Path(path).is_file():
        return {}
    with _faults(path):
        return _reported(_read(Path(path)))


def results(out: str | Path) -> pd.DataFrame:
    """One row a run that the folder `out` holds: notebook, status, every parameter, every reported number, path, error.

    Numbers in groups are called `group.name`; a number that has a parameter's name is called `reported.name`. Of runs
    of one notebook with the same parameters, say before and after the library changed, the newest counts. Raises
    `InputError` where there is no folder, or a file that is no notebook.
    """
    if not Path(out).is_dir():
        raise InputError(out, "", "no such folder", "name the one that a batch wrote to")
    # The name decides between files of one instant.
    paths = sorted(Path(out).glob("*.ipynb"), key=lambda path: (path.stat().st_mtime_ns, path.name))
    rows = {}
    for path in paths:
        with _faults(path):
            notebook = _read(path)
            if KEY in notebook["metadata"]:
                what = notebook["metadata"][KEY]
                knobs = {name: value for name, value in what["parameters"].items() if name != WRITTEN}
                rows[json.dumps([what["notebook"], knobs])] = what["notebook"], knobs, _row(path, notebook)
    ordered = sorted(rows.values(), key=lambda row: (row[0], [_order(value) for value in row[1].values()]))
    found = [row for _, _, row in ordered]
    names = dict.fromkeys(["notebook", "status", *(name for row in found for name in row)])
    columns = [*(name for name in names if name not in ("path", "error")), "path", "error"]
    return pd.DataFrame(found, columns=columns).convert_dtypes()  # whole numbers stay whole where one is missing


def _order(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, value if number else 0.0, str(value)


def _row(path: Path, notebook: dict[str, Any]) -> dict[str, Any]:
    what = notebook["metadata"][KEY]
    given = {name: _value(value) for name, value in what["parameters"].items()}
    numbers = flat(_reported(notebook))
    return {
        "notebook": what["notebook"],
        "status": "failed" if path.name.endswith(".failed.ipynb") else "done",
        **given,
        **{f"reported.{name}" if name in given else name: _value(value) for name, value in numbers.items()},
        "path": str(path),
        "error": next((f"{o['ename']}: {o['evalue']}" for o in _outputs(notebook) if "ename" in o), ""),
    }


def _value(value: Any) -> Any:
    """A value as it was: what JSON does not know read back, a list as the tuple that a table can group by."""
    if isinstance(value, list):
        return tuple(_value(each) for each in value)
    return _NOT_IN_JSON.get(value, value) if isinstance(value, str) else value


def _reported(notebook: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for output in _outputs(notebook):
        found |= output.get("data", {}).get(MIME, {})
    return found


def _outputs(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return (output for cell in notebook["cells"] for output in cell.get("outputs", []))


def _read(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"], notebook["metadata"]
    return notebook


@contextmanager
def _faults(path: str | Path) -> Iterator[None]:
    """Whatever a file lacks of a notebook, said of the file."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(path, "", "not a notebook", "take it out of the folder, or run it again") from None
