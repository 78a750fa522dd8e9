"""Lines and JSON documents read in pieces, in the memory of one line or one element; every fault names its line."""

import json
import re
from collections.abc import Iterator
from typing import Any

from warmprefix.channel import clean
from warmprefix.chatlogs.records import Record, kind_of
from warmprefix.chatlogs.source import Export, Member
from warmprefix.errors import InputError

LINE = 16 << 20  # characters in one line or one record

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


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


def json_entries(export: Export, member: Member) -> Iterator[tuple[str, Record | Any]]:
    """What one JSON document holds, a piece at a time.

    An object gives `(key, value)` for each value, or for each element of a value that is a list; a list gives
    `("", value)` for each element; a value that is an object is given as a `Record`. The memory is that of one element,
    whatever the document's size, and what is nested too deeply is refused before it can grow. Raises `InputError` for a
    document that is cut off, damaged or no JSON.
    """
    cursor = _Cursor(member.label, export.text(member))
    opening = cursor.peek()
    if opening == "[":
        yield from _elements(cursor, "")
    elif opening == "{":
        for key in cursor.object():
            if cursor.peek() == "[":
                yield from _elements(cursor, key)
            else:
                yield key, _record(cursor.value(), member.label, f"field {key!r}")
    else:
        raise cursor.fault("is no JSON document" if opening else "is empty", "is this the right file and format?")
    if cursor.peek():
        raise cursor.fault("goes on after the end of its document", "is this a file of JSON lines?")


def json_records(export: Export, member: Member, *lists: str) -> Iterator[tuple[str, Record]]:
    """The objects in the lists of one JSON document that are named, `""` being the document itself, each with its list.

    Raises `InputError` for anything else in them, and for what `json_entries` refuses.
    """
    numbers = dict.fromkeys(lists, 0)
    for key, value in json_entries(export, member):
        if key in numbers:
            numbers[key] += 1
            if not isinstance(value, Record):
                place = _place(key, numbers[key])
                raise InputError(
                    member.label, place, f"must be an object, not {kind_of(value)}", "is this the right format?"
                )
            yield key, value


def _elements(cursor: "_Cursor", key: str) -> Iterator[tuple[str, Record | Any]]:
    for number, value in enumerate(cursor.list(), 1):
        yield key, _record(value, cursor.label, _place(key, number))


def _place(key: str, number: int) -> str:
    return f"{key}, record {number}" if key else f"record {number}"


def _record(value: Any, label: str, place: str) -> Record | Any:
    return Record(label, place, value) if isinstance(value, dict) else value


class _Cursor:
    """Walks a JSON text that arrives in pieces; the values themselves are the standard decoder's.

    A streaming parser would do, but those at hand keep the whole path of a value, so that a file of brackets alone
    costs the square of its size.
    """

    def __init__(self, label: str, pieces: Iterator[str]) -> None:
        self.label, self._pieces = label, pieces
        self._text, self._at, self._line = "", 0, 1

    def fault(self, problem: str, remedy: str = "", at: int | None = None) -> InputError:
        line = self._line + self._text.count("\n", 0, self._at if at is None else at)
        return InputError(self.label, f"line {line}", problem, remedy)

    def peek(self) -> str:
        """The next character that is no white space, not consumed; empty at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(1):
                return ""

    def value(self) -> Any:
        """The next value, however many pieces it takes."""
        self.peek()
        while True:
            fault = None
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                fault, end = error, len(self._text)
            except RecursionError:
                raise self.fault("is nested too deeply", "no chat export is") from None
            except ValueError:  # a whole number of thousands of digits
                raise self.fault("holds a number that is too long", "no chat export does") from None
            if end - self._at > LINE:
                raise self.fault(f"holds a record longer than {LINE:,} characters, or a damaged one")
            if fault is None and (self._ends(end) or not self._more(1)):
                self._at = end
                return value
            if fault is not None and not self._more(end - self._at):  # twice as much, so that long records cost little
                raise self.fault(f"is not JSON: {fault.msg}", "is the file cut off?", fault.pos)

    def _ends(self, end: int) -> bool:
        """Whether a value surely ends here: a number may go on in the next piece."""
        return self._text[end - 1] in '}]"' or (end < len(self._text) and self._text[end] in " \t\r\n,]}")

    def list(self) -> Iterator[Any]:
        """The elements of the list that begins here."""
        self._at += 1
        if self.peek() == "]":
            self._at += 1
            return
        while True:
            yield self.value()
            if self._after("]"):
                return

    def object(self) -> Iterator[str]:
        """The keys of the object that begins here; the caller consumes each value."""
        self._at += 1
        if self.peek() == "}":
            self._at += 1
            return
        while True:
            key = self.value() if self.peek() == '"' else None
            if key is None or self.peek() != ":":
                raise self.fault("is not JSON: a key is expected", "is the file cut off?")
            self._at += 1
            yield clean(key)
            if self._after("}"):
                return

    def _after(self, closing: str) -> bool:
        found = self.peek()
        if found not in (closing, ",") or not found:
            raise self.fault(f"is not JSON: ',' or '{closing}' is expected", "is the file cut off?")
        self._at += 1
        return found == closing

    def _more(self, least: int) -> bool:
        """Drop what is consumed and add at least `least` characters; False at the end."""
        self._line += self._text.count("\n", 0, self._at)
        parts, added = [self._text[self._at :]], 0
        for piece in self._pieces:
            parts.append(piece)
            added += len(piece)
            if added >= least:
                break
        self._text, self._at = "".join(parts), 0
        return added > 0
