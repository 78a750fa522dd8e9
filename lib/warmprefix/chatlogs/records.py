"""JSON and lines read in pieces, and the fields of one record: every fault names file, record and field."""

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from warmprefix.channel import Message, clean
from warmprefix.chatlogs.source import Export, Member
from warmprefix.errors import InputError

LINE = 16 << 20  # characters in one line or one record
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

    def identity(self, key: str, default: str | None = None) -> str:
        """A text that many records share or that must not be empty: an id or a name."""
        value = self.text(key, default)
        if not value and default is None:
            raise self.fault(key, "is empty", "add it or drop the record")
        return sys.intern(value)

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

    def _refuse(self, key: str, value: object) -> bool:
        raise self.fault(key, f"must hold objects, not {kind_of(value)}")


def iso_seconds(value: str) -> float | None:
    """Seconds since 1970 of an ISO 8601 time or of a number written as text; None where it is neither.

    >>> iso_seconds("2013-11-11T03:38:00Z"), iso_seconds("12.5"), iso_seconds("soon")
    (1384141080.0, 12.5, None)
    """
    try:
        return float(value)
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
    text = repr(value) if not isinstance(value, int | float) or math.isfinite(value) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def lines(export: Export, member: Member, limit: int = LINE) -> Iterator[tuple[int, str]]:
    """Every line with its number from 1, without its end; raises `InputError` for one longer than `limit`."""
    number, rest = 1, ""
    for piece in export.text(member):
        *whole, rest = (rest + piece).split("\n") if "\n" in piece else (rest + piece,)
        for line in whole:
            if len(line) > limit:
                break
            yield number, line.removesuffix("\r")
            number += 1
        else:
            line = rest
        if len(line) > limit:
            raise InputError(
                member.label, f"line {number}", f"is longer than {limit:,} characters", "is this a chat log?"
            )
    if rest:
        yield number, rest.removesuffix("\r")


def json_lines(export: Export, member: Member) -> Iterator[Record]:
    """One record a line, blank lines skipped; raises `InputError` for a line that is not a JSON object."""
    for number, line in lines(export, member):
        if line and not line.isspace():
            place = f"line {number}"
            value = parse(line, member.label, place)
            if not isinstance(value, dict):
                raise InputError(member.label, place, f"must be a JSON object, not {kind_of(value)}")
            yield Record(member.label, place, value)


def parse(text: str, file: str, place: str) -> Any:
    """The JSON value of a text; raises `InputError` for one that is cut off, damaged or nested too deeply."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{place}, column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        raise InputError(file, where, f"is not JSON: {error.msg}", "is the file cut off?") from None
    except RecursionError:
        raise InputError(file, place, "is nested too deeply", "no chat export is") from None
    except ValueError:  # a whole number of thousands of digits
        raise InputError(file, place, "holds a number that is too long", "no chat export does") from None


def once(rows: Iterable[Message]) -> Iterator[Message]:
    """The rows without those whose id came before."""
    seen: set[str] = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            yield row
