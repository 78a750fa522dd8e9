"""Slack exports: a folder or zip with a folder of day files a channel, `users.json` and `channels.json`."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_entries, json_records
from warmprefix.chatlogs.records import Record, chosen, drained
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

_PLACE = ("join", "leave", "topic", "purpose", "name", "archive", "unarchive")
SYSTEM = frozenset(
    [f"{room}_{what}" for room in ("channel", "group") for what in _PLACE]
    + ["pinned_item", "unpinned_item", "bot_add", "bot_remove", "bot_enable", "bot_disable", "tombstone"]
    + ["message_changed", "message_deleted", "message_replied"]  # events about a message, not messages
)
LISTS = ("channels", "groups", "mpims", "dms")

_DAY = re.compile(r"\d{4}-\d\d-\d\d\.json$")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_BREAKS = re.compile(r"\n{2,}")
# How an element of a block reads in a message's text, and the field that it says it with; else it is its `text`.
_ELEMENTS = {
    "user": ("<@{}>", "user_id"),
    "channel": ("<#{}>", "channel_id"),
    "usergroup": ("<!subteam^{}>", "usergroup_id"),
    "broadcast": ("<!{}>", "range"),
    "emoji": (":{}:", "name"),
    "link": ("<{}>", "url"),
    "mrkdwn": ("{}\n", "text"),
    "plain_text": ("{}\n", "text"),
}


@dataclass(frozen=True)
class _User:
    name: str
    bot: bool


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read one channel of a Slack export, ordered by `ts` over all its day files.

    `channel` is its name or id, needed where the export holds several. Joins, leaves, topics, purposes, renames,
    archivings, pins, bots added or removed and tombstones are records of the system and no rows; uploads, comments on
    files and thread replies are rows, and a reply that was sent to the channel too is one row. A row keeps Slack's own
    markup, which its blocks give where it has no text; its `mentions` are the ids in `<@U1>` and `<@U1|name>`. A row
    written by a bot is an agent's. Raises `InputError`.
    """
    with opened(path, encoding) as export:
        folders = _folders(export)
        names = _channel_names(export)
        wanted = names.get(channel, channel) if channel else None
        folder = chosen(folders, wanted, export.label)
        users = _users(export)
        rows = [row for member in folders[folder] for row in _rows(export, member, users)]
    if not rows:
        remedy = "choose another with --channel" if len(folders) > 1 else "is this the right export and format?"
        raise InputError(os.fspath(path), f"channel {folder!r}", "holds no message", remedy)
    rows.sort(key=lambda row: row.created_at)
    ids = {name: id for id, name in names.items()}
    return Channel.of(ids.get(folder, folder), _distinct(drained(rows)))


def _folders(export: Export) -> dict[str, list[Member]]:
    """The day files of each channel; a day file that is named alone is a channel of its own."""
    if not export.whole:
        return {export.only().name.stem: [export.only()]}
    found: dict[str, list[Member]] = {}
    for member in export.members:
        if _DAY.match(member.name.name):
            found.setdefault(member.name.parent.name or export.stem, []).append(member)
    return found


def _lists(export: Export, *stems: str) -> Iterator[Record]:
    if export.whole:
        for member in export.members:
            if member.name.suffix == ".json" and member.name.stem in stems:
                yield from (entry for _, entry in json_entries(export, member) if isinstance(entry, Record))


def _channel_names(export: Export) -> dict[str, str]:
    """The folder of each channel id; a direct conversation's folder is its id."""
    return {record.identity("id"): record.identity("name", record.identity("id")) for record in _lists(export, *LISTS)}


def _users(export: Export) -> dict[str, _User]:
    users = {}
    for record in _lists(export, "users"):
        profile = record.inner("profile") or record
        name = profile.first("display_name", "real_name") or record.text("name", "")
        users[record.identity("id")] = _User(name, record.flag("is_bot"))
    return users


def _rows(export: Export, member: Member, users: dict[str, _User]) -> Iterator[Message]:
    for _, record in json_records(export, member, "", "messages"):
        if "ts" not in record.fields:
            raise record.fault("ts", "is missing", "is this the right format?")
        if record.text("type", "message") == "message" and record.text("subtype", "") not in SYSTEM:
            row = _message(record, users)
            if row is not None:
                yield row


def _message(record: Record, users: dict[str, _User]) -> Message | None:
    subtype, raw, at = record.text("subtype", ""), record.text("text", ""), record.seconds("ts")
    if subtype == "reply_broadcast" and not raw:  # the older form: an empty pointer to a reply that stands for itself
        return None
    raw = raw or _block_text(record.items("blocks"))
    comment = record.inner("comment")
    author = record.identity("user", "") or (comment.identity("user", "") if comment else "")
    user = users.get(author)
    bot = record.identity("bot_id", "")
    by_bot = subtype in ("bot_message", "slackbot_response") or author == "USLACKBOT"
    by_bot = by_bot or (user.bot if user else bool(bot))
    name = user.name if user else record.text("username", "") or _profile_name(record)
    author = author or bot or name or "unknown"
    ts, root, edited = record.identity("ts", shared=False), record.identity("thread_ts", ""), record.inner("edited")
    return Message(
        id=ts,
        author=author,
        text=raw or _stand_in(record),
        created_at=at,
        name=sys.intern(name or author),
        agent=by_bot,
        mentions=tuple(dict.fromkeys(sys.intern(id) for id in _MENTION.findall(raw))),
        thread_root_id=root if root and root != ts else None,
        broadcast=subtype in ("thread_broadcast", "reply_broadcast"),
        edited_at=edited.later("ts", at) if edited else None,
    )


def _profile_name(record: Record) -> str:
    profile = record.inner("user_profile") or record.inner("bot_profile")
    return profile.first("display_name", "real_name", "name") if profile else ""


def _block_text(blocks: list[Record]) -> str:
    """What blocks say, in the markup of a message's text and a line for each of their parts."""
    parts: list[str] = []
    todo: list[Any] = [block.fields for block in reversed(blocks)]
    while todo:
        item = todo.pop()
        if item == "\n":
            parts.append(item)
        elif isinstance(item, dict):
            form, key = _ELEMENTS.get(str(item.get("type")), ("{}", "text"))
            if isinstance(item.get(key), str):
                parts.append(form.format(item[key]))
            else:  # a section holds its text as an object, everything else a list of elements
                inner = [item.get(key), *_listed(item, "fields"), *_listed(item, "elements")]
                todo += ["\n", *inner[::-1]]
    return _BREAKS.sub("\n", "".join(parts)).strip()


def _listed(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    return value if isinstance(value, list) else []


def _stand_in(record: Record) -> str:
    """What to show of a row without text: the words of its attachments and the names of its files."""
    parts = [item.first("fallback", "text", "title") for item in record.items("attachments")]
    files: list[Any] = [file for file in (record.inner("file"), *record.items("files")) if file is not None]
    parts += [f"[file: {file.first('name', 'title') or 'unnamed'}]" for file in files]
    return "\n".join(filter(None, parts))


def _distinct(rows: Iterator[Message]) -> Iterator[Message]:
    """Each row once: a reply that was sent to the channel too may be stored twice, under one `ts` by one author."""
    ts, writers = "", set[str]()
    for row in rows:
        if row.id != ts:
            ts, writers = row.id, set()
        if row.author not in writers:
            writers.add(row.author)
            yield row if len(writers) == 1 else replace(row, id=f"{ts}/{row.author}")
