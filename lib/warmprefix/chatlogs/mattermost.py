"""Mattermost: bulk exports (JSON lines, or the zip around them) and posts with ids as its own interface gives them."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_entries, json_lines
from warmprefix.chatlogs.markup import without_code
from warmprefix.chatlogs.records import Record, chosen, drained, once
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

EVERYBODY = frozenset(["all", "channel", "here"])
MILLISECONDS = 0.001

_MENTION = re.compile(r"(?<![\w@/.`-])@([A-Za-z0-9][A-Za-z0-9._-]*)")


@dataclass
class _Found:
    """What has been read so far: the rows of each channel (of one that is not asked for, none), and who is known."""

    rooms: dict[str, list[Message]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # username by id, where the export tells
    bots: set[str] = field(default_factory=set)


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read one Mattermost channel, ordered by time.

    A bulk export holds posts with their replies inside; its user ids are usernames, and rows are numbered by line.
    Posts with ids (a list, JSON lines, or an object with `posts`) name their thread in `root_id`. `channel` chooses
    among several by name, `team/name` or id. System posts and deleted ones are no rows, nor are direct messages.
    `mentions` are the `@username` of the text outside code. A row written by a bot or a webhook is an agent's. Raises
    `InputError`.
    """
    found = _Found()
    with opened(path, encoding) as export:
        for member in _members(export):
            for record in _records(export, member):
                _take(record, found, channel)
        stem = export.stem
    wanted = channel
    if channel is not None and "/" not in channel and channel not in found.rooms:
        wanted = next((room for room in found.rooms if room.endswith(f"/{channel}")), channel)
    name = chosen(found.rooms, wanted, os.fspath(path))
    rows = found.rooms[name]
    if not rows:
        raise InputError(os.fspath(path), f"channel {name!r}", "holds no message", "choose another with --channel")
    rows.sort(key=lambda row: row.created_at)
    return Channel.of(name or stem, once(drained(rows)))


def _members(export: Export) -> Iterator[Member]:
    for member in export.members:
        if not export.whole or (member.name.suffix in (".jsonl", ".json") and "data" not in member.name.parts):
            yield member


def _records(export: Export, member: Member) -> Iterator[Record]:
    """The records of a bulk export, a list, JSON lines, or an object whose `posts` are keyed by id."""
    if member.name.suffix == ".jsonl" or _is_lines(export, member):
        yield from json_lines(export, member)
        return
    for key, value in json_entries(export, member):
        if isinstance(value, Record) and key == "posts" and "message" not in value.fields:
            yield from filter(None, map(value.inner, value.fields))
        elif isinstance(value, Record) and key in ("", "posts"):
            yield value


def _is_lines(export: Export, member: Member) -> bool:
    head = next(export.text(member), "").lstrip()[:200]
    return re.match(r'\{\s*"(?:type|id|create_at)"', head) is not None


def _take(record: Record, found: _Found, channel: str | None) -> None:
    kind = record.fields.get("type")
    if kind in ("user", "bot") and (person := record.inner(str(kind))):
        found.names[person.identity("username")] = person.identity("username")
        if kind == "bot":
            found.bots.add(person.identity("username"))
    elif kind == "post" and (post := record.inner("post")):
        room = f"{post.identity('team', '')}/{post.identity('channel')}".lstrip("/")
        rows = found.rooms.setdefault(room, [])
        if channel in (None, room, room.rpartition("/")[2]):
            rows.extend(_bulk(record, post, found))
    elif "message" in record.fields and "create_at" in record.fields:
        room = record.identity("channel_id", "")
        rows = found.rooms.setdefault(room, [])
        if channel in (None, room):
            rows.extend(_row(record, "user_id", record.identity("id", shared=False), found))
    elif not isinstance(kind, str):
        raise InputError(record.file, record.place, "is no record of a Mattermost export", "is this the right format?")


def _bulk(record: Record, post: Record, found: _Found) -> Iterator[Message]:
    id = record.place.removeprefix("line ").removeprefix("record ")
    yield from _row(post, "user", id, found)
    for number, reply in enumerate(post.items("replies"), 1):
        yield from _row(reply, "user", f"{id}.{number}", found, root=id)


def _row(post: Record, writer: str, id: str, found: _Found, root: str = "") -> Iterator[Message]:
    if post.text("type", "").startswith("system_") or post.fields.get("delete_at"):
        return
    author, text = post.identity(writer), post.text("message")
    props = post.inner("props")
    automatic = props is not None and any(_true(props, key) for key in ("from_bot", "from_webhook", "from_plugin"))
    shown_as = props.text("override_username", "") if props and automatic else ""
    yield Message(
        id=id,
        author=author,
        text=text or _stand_in(post),
        created_at=(at := post.seconds("create_at", MILLISECONDS)),
        name=sys.intern(shown_as or author),
        agent=automatic or author in found.bots,
        mentions=tuple(dict.fromkeys(_addressed(text, found.names.__contains__))),
        thread_root_id=post.identity("root_id", root) or root or None,
        edited_at=post.later("edit_at", at, MILLISECONDS),
    )


def _true(record: Record, key: str) -> bool:
    return record.fields.get(key) in (True, "true")


def _addressed(text: str, known: Callable[[str], bool]) -> Iterator[str]:
    """The usernames mentioned; a name ends with no stop or dash unless somebody is called so."""
    if "@" not in text:
        return
    for match in _MENTION.finditer(without_code(text)):
        name = match[1].lower()
        name = name if known(name) else name.rstrip("._-")
        if name not in EVERYBODY:
            yield sys.intern(name)


def _stand_in(post: Record) -> str:
    """What to show of a post without text: the words of what a hook attached, and the names of its files."""
    props, metadata = post.inner("props"), post.inner("metadata")
    parts = [item.first("fallback", "text", "title") for item in (props.items("attachments") if props else [])]
    files = [os.path.basename(file.text("path", "")) for file in post.items("attachments")]
    files += [file.text("name", "unnamed") for file in (metadata.items("files") if metadata else [])]
    return "\n".join([part for part in parts if part] + [f"[file: {name}]" for name in files if name])
