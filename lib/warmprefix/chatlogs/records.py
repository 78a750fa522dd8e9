"""The fields of one record of an export, where every fault names file, record and field; and rows on their way out."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from warmprefix.channel import Message, clean
from warmprefix.errors import InputError

LATEST = 32_503_680_000.0  # the year 3000 in seconds


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of an export with the place it stands at."""

    file: str
    place: str
    fields: dict[str, Any]

    def fault(self, key: str, problem: str, remedy: str = "") -> InputError:
        """The error that names this record and one of its fields."""
        return InputError(self.file, self.place, f"field {key!r} {problem}", remedy)

    def text(self, key: str, default: str | None = None) -> str:
        """A text, where a number is read as its digits; raises `InputError` for anything else, or for nothing."""
        value = self.fields.get(key)
        if isinstance(value, str):
            return clean(value)
        if value is None and default is not None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 80:
            return str(value)
        if value is None:
            raise self.fault(key, "is missing", "add it or drop the record")
        raise self.fault(key, f"must be a text, not {kind_of(value)}")

    def first(self, *keys: str) -> str:
        """The first of these fields that holds a text; empty where none does."""
        return next(filter(None, (self.text(key, "") for key in keys)), "")

    def identity(self, key: str, default: str | None = None, *, shared: bool = True) -> str:
        """An id or a name, which must not be empty where it has no default; one that records share is kept once."""
        value = self.text(key, default)
        if not value and default is None:
            raise self.fault(key, "is empty", "add it or drop the record")
        return sys.intern(value) if shared else value

    def flag(self, key: str) -> bool:
        """True or false; missing means false."""
        value = self.fields.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self.fault(key, f"must be true or false, not {kind_of(value)}")

    def inner(self, key: str) -> "Record | None":
        """The object inside this field, or None where there is none."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, dict):
            return Record(self.file, f"{self.place}, field {key!r}", value)
        raise self.fault(key, f"must be an object, not {kind_of(value)}")

    def items(self, key: str) -> "list[Record]":
        """The objects of the list inside this field; missing means none."""
        return [
            Record(self.file, f"{self.place}, field {key!r}", value)
            for value in self.values(key)
            if isinstance(value, dict) or self._refuse(key, value)
        ]

    def values(self, key: str) -> list[Any]:
        """The list inside this field; missing means empty."""
        value = self.fields.get(key)
        if value is None or isinstance(value, list):
            return value or []
        raise self.fault(key, f"must be a list, not {kind_of(value)}")

    def seconds(self, key: str, unit: float = 1.0) -> float:
        """A time in seconds since 1970, from a number of `unit` seconds or an ISO 8601 text (UTC without a zone)."""
        value = self.fields.get(key)
        if value is None:
            raise self.fault(key, "is missing", "add it or drop the record")
        found = iso_seconds(value) if isinstance(value, str) else value
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.fault(key, f"is no time: {shown(value)}", "give seconds since 1970 or ISO 8601")
        if not 0 <= found < LATEST / unit:
            raise self.fault(key, f"is no time before the year 3000: {shown(value)}", "give seconds since 1970")
        return found * unit

    def later(self, key: str, than: float, unit: float = 1.0) -> float | None:
        """The time of a change to what was made at `than`; None where the field is empty or names no later time."""
        if self.fields.get(key) in (None, "", 0, "0"):
            return None
        at = self.seconds(key, unit)
        return at if at > than else None

    def _refuse(self, key: str, value: object) -> bool:
        raise self.fault(key, f"must hold objects, not {kind_of(value)}")


def iso_seconds(value: str) -> float | None:
    """Seconds since 1970 of an ISO 8601 time or of a number written as text; None where it is neither.

    >>> iso_seconds("2013-11-11T03:38:00Z"), iso_seconds("12.5"), iso_seconds("soon")
    (1384141080.0, 12.5, None)
    """
    try:
        return float(value) if "_" not in value else None  # Python's own digit grouping is no export's
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def kind_of(value: object) -> str:
    """JSON's own word for a value's type."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def shown(value: object) -> str:
    """A value as an error quotes it: short and in one line."""
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def once(rows: Iterable[Message]) -> Iterator[Message]:
    """The rows without those whose id came before."""
    seen: set[str] = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            yield row


def drained(rows: list[Message]) -> Iterator[Message]:
    """The rows in order, each let go as it is taken, so that numbering them does not hold them twice."""
    rows.reverse()
    while rows:
        yield rows.pop()


def chosen(found: Iterable[str], channel: str | None, label: str) -> str:
    """The one channel asked for, or the only one there is; otherwise raises `InputError` that lists them."""
    names = sorted(set(found))
    if channel is None and len(names) == 1:
        return names[0]
    if not names:
        raise InputError(label, "", "holds no channel", "is this the right export and format?")
    if channel in names:
        return channel
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    problem = f"holds {len(names)} channels" if channel is None else f"holds no channel {channel!r}"
    raise InputError(label, "", problem, f"choose one with --channel: {listed}")
