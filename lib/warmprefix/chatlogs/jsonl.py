"""Our own JSON lines: one message a line, in store order."""

import dataclasses
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from warmprefix.atomic import write_text
from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_lines
from warmprefix.chatlogs.records import Record
from warmprefix.chatlogs.source import Export, opened
from warmprefix.errors import InputError

KINDS = ("message", "action", "notice")

log = logging.getLogger(__name__)


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read messages that each stand on a line of their own.

    A line is an object with `id`, `author`, `text` and `created_at` (seconds, or ISO 8601), and may have `name`,
    `agent`, `local`, `kind`, `mentions` (a list of ids), `thread_root_id`, `broadcast`, `edited_at` and `deleted_at`;
    other fields are ignored. A line whose id came before is left out, and the log says so. `channel` names the result
    (by default the file does). Raises `InputError`.
    """
    with opened(path, encoding) as export:
        result = Channel.of(channel or export.stem, _rows(export))
    if not result.messages:
        raise InputError(os.fspath(path), "", "holds no message", "is this the right file?")
    return result


def _rows(export: Export) -> Iterator[Message]:
    seen: set[str] = set()
    first, repeated = "", 0
    for record in json_lines(export, member := export.only()):
        row = message(record)
        if row.id not in seen:
            seen.add(row.id)
            yield row
            continue
        first, repeated = first or record.place, repeated + 1
    if repeated:
        log.warning(
            "%s: %s: has the id of an earlier line and is left out; such lines: %d", member.label, first, repeated
        )


def message(record: Record) -> Message:
    """The row that one line states."""
    kind = record.identity("kind", "message")
    if kind not in KINDS:
        raise record.fault("kind", f"is {kind!r}", f"use one of {', '.join(KINDS)}")
    mentions = record.values("mentions")
    if not all(isinstance(mention, str) for mention in mentions):
        raise record.fault("mentions", "must be a list of ids, each a text")
    author = record.identity("author")
    id, root = record.identity("id", shared=False), record.identity("thread_root_id", "")
    return Message(
        id=id,
        author=author,
        text=record.text("text"),
        created_at=(at := record.seconds("created_at")),
        name=record.identity("name", author) or author,
        agent=record.flag("agent"),
        local=record.flag("local"),
        kind=kind,
        mentions=tuple(sys.intern(mention) for mention in mentions),
        thread_root_id=root if root and root != id else None,
        broadcast=record.flag("broadcast"),
        edited_at=record.later("edited_at", at),
        deleted_at=record.later("deleted_at", at),
    )


def write(channel: Channel, path: str | Path) -> Path:
    """Write a channel in the form that `read` reads, whole or not at all; fields at their default are left out."""
    lines = []
    for row in channel.messages:
        fields = {name: getattr(row, name) for name in ("id", "author", "text", "created_at")}
        for field in dataclasses.fields(Message):
            if field.name not in {*fields, "position"} and getattr(row, field.name) != field.default:
                fields[field.name] = getattr(row, field.name)
        lines.append(json.dumps(fields, ensure_ascii=False) + "\n")
    return write_text(path, "".join(lines))
