"""Zulip: archive pages (`topic-*.json`, rendered HTML), the official export, and message lists of its own interface."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_entries, json_records
from warmprefix.chatlogs.markup import rendered, without_code
from warmprefix.chatlogs.records import Record, chosen, drained, once
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

STREAM = 2  # the official export's number for a recipient that is a stream
EVERYBODY = frozenset(["all", "everyone", "channel", "stream", "topic"])

_MENTION = re.compile(r"(?<![\w`])@\*\*([^*\n|]*)(?:\|(\d+))?\*\*")
_QUOTE = re.compile(r"^ {0,3}(`{3,}|~{3,}) *quote\b.*?(?:^ {0,3}\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class _People:
    """Whom the official export knows: names and bots by id, and ids by name where only one person has it."""

    names: dict[str, str]
    bots: frozenset[str]

    def id_of(self, name: str) -> str:
        found = [id for id, known in self.names.items() if known == name]
        return found[0] if len(found) == 1 else name


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read one stream of Zulip, ordered by id over all its topics, repeated ids kept once.

    A folder or zip holds either archive pages, one topic a file, or an official export (`messages-000001.json` beside
    `realm.json`); one file may hold either. `channel` chooses among several streams by name or id. Rendered HTML is
    turned into text; an official export's Markdown is kept. `mentions` are the user ids that are addressed aloud: a
    silent mention (`@_**Name**`), one inside code or a quotation, and `@**all**` address nobody. Where an archive names
    senders only, a sender who was mentioned by id gets that id. Raises `InputError`.
    """
    with opened(path, encoding) as export:
        official = [m for m in export.members if fnmatch(m.name.name, "messages-*.json")] if export.whole else []
        seen: dict[str, set[str]] = {}  # the ids under which each name was mentioned
        name, rows = _official(export, official, channel) if official else _pages(export, channel, seen)
    if not rows:
        raise InputError(os.fspath(path), "", "holds no message", "is this the right export and format?")
    rows.sort(key=lambda row: int(row.id))
    ids = {name: next(iter(found)) for name, found in seen.items() if len(found) == 1}
    return Channel.of(name, (_identified(row, ids) for row in once(drained(rows))))


def _identified(row: Message, ids: dict[str, str]) -> Message:
    """A sender whom the archive only names, under the id by which others mention that name."""
    return replace(row, author=ids[row.author]) if row.author in ids else row


def _pages(export: Export, channel: str | None, seen: dict[str, set[str]]) -> tuple[str, list[Message]]:
    """The rows of archive pages, or of one file of messages."""
    streams: dict[str, list[Member]] = {}
    for member in export.members:
        if not export.whole or _is_page(export, member):
            stream = member.name.parent.name or export.stem
            streams.setdefault(stream, []).append(member)
    name = chosen(streams, channel if export.whole else None, export.label)
    rows = []
    for member in streams[name]:
        for _, record in json_records(export, member, "", "messages", "zerver_message"):
            rows.append(_message(record, _People({}, frozenset()), seen))
    return name, rows


def _is_page(export: Export, member: Member) -> bool:
    """Whether a file of an archive is a topic's page, by its name or by what its first entry looks like."""
    if fnmatch(member.name.name, "topic-*.json"):
        return True
    if member.name.suffix != ".json" or any(fnmatch(other.name.name, "topic-*.json") for other in export.members):
        return False
    first = next(iter(json_entries(export, member)), ("", None))[1]
    return isinstance(first, Record) and {"content", "id"} <= first.fields.keys()


def _official(export: Export, members: list[Member], channel: str | None) -> tuple[str, list[Message]]:
    """The rows of one stream of the official export."""
    people, streams = _realm(export)
    found: dict[str, list[Message]] = {}
    for member in members:
        for _, record in json_records(export, member, "zerver_message"):
            recipient = record.identity("recipient", "")
            stream = streams.get(recipient) if streams else recipient
            if stream is not None and channel in (None, stream, recipient):
                found.setdefault(stream, []).append(_message(record, people, {}))
    name = chosen(found or streams.values(), channel if channel not in streams else streams[str(channel)], export.label)
    return name, found.get(name, [])


def _realm(export: Export) -> tuple[_People, dict[str, str]]:
    """The people of `realm.json`, and the name of the stream behind each recipient id."""
    names, bots, recipients, streams = {}, set(), {}, {}
    for member in export.members:
        if member.name.name != "realm.json":
            continue
        for key, entry in json_entries(export, member):
            if not isinstance(entry, Record):
                continue
            if key in ("zerver_userprofile", "zerver_userprofile_crossrealm", "zerver_userprofile_mirrordummy"):
                id = entry.identity("id")
                names[id] = entry.text("full_name", "") or entry.text("email", id)
                bots |= {id} if entry.flag("is_bot") else set()
            elif key == "zerver_recipient" and entry.fields.get("type") == STREAM:
                recipients[entry.identity("id")] = entry.identity("type_id")
            elif key == "zerver_stream":
                streams[entry.identity("id")] = entry.identity("name")
    return _People(names, frozenset(bots)), {id: streams.get(stream, stream) for id, stream in recipients.items()}


def _message(record: Record, people: _People, seen: dict[str, set[str]]) -> Message:
    if not {"id", "content"} <= record.fields.keys():
        raise InputError(
            record.file, record.place, "is no Zulip message: it wants 'id' and 'content'", "is this the right format?"
        )
    id, raw = record.identity("id", shared=False), record.text("content")
    if not id.isdecimal():
        raise record.fault("id", f"is no number: {id[:20]!r}", "is this the right format?")
    author = record.identity("sender_id" if "sender_id" in record.fields else "sender", "")
    full_name = record.text("sender_full_name", "")
    author = author or sys.intern(full_name) or record.identity("sender_full_name")
    if _is_html(record, raw):
        shown = rendered(raw)
        text, mentions = shown.text, shown.mentions
        for mention, label in mentions.items():
            seen.setdefault(label, set()).add(mention)
    else:
        html = record.text("rendered_content", "")
        text, mentions = raw, rendered(html).mentions if html else _addressed(raw, people.id_of)
    return Message(
        id=id,
        author=author,
        text=text,
        created_at=(at := record.seconds("timestamp" if "timestamp" in record.fields else "date_sent")),
        name=sys.intern(people.names.get(author, "") or full_name or author),
        agent=author in people.bots,
        mentions=tuple(map(sys.intern, mentions)),
        edited_at=_edited_at(record, at),
    )


def _edited_at(record: Record, at: float) -> float | None:
    """When the words were changed: a move to another topic is stored as an edit too, one without `prev_content`."""
    history = record.fields.get("edit_history")  # JSON as a text in an official export, a list elsewhere
    if history and not ("prev_content" in history if isinstance(history, str) else _has_words(history)):
        return None
    return record.later("last_edit_timestamp", at) or record.later("last_edit_time", at)


def _has_words(history: object) -> bool:
    return isinstance(history, list) and any(isinstance(each, dict) and "prev_content" in each for each in history)


def _is_html(record: Record, raw: str) -> bool:
    stated = record.text("content_type", "")
    if stated:
        return stated == "text/html"
    return "date_sent" not in record.fields and raw.lstrip().startswith("<")


def _addressed(markdown: str, id_of: Callable[[str], str]) -> dict[str, str]:
    """The people that Markdown mentions aloud, by id."""
    if "@**" not in markdown:
        return {}
    found: Iterator[re.Match[str]] = _MENTION.finditer(without_code(_QUOTE.sub("", markdown)))
    return {match[2] or id_of(match[1]): match[1] for match in found if match[2] or match[1] not in EVERYBODY}
