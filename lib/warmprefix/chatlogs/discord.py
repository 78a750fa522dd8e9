"""Discord: DiscordChatExporter's JSON and the plain message lists of Discord's own interface."""

import os
import re
import sys
from collections.abc import Iterator
from itertools import pairwise

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_entries, json_records
from warmprefix.chatlogs.records import Record, chosen, drained, once
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

# What people and bots write: plain messages, replies, and answers to commands. Everything else tells of an event
# (RecipientAdd, Call, ChannelPinnedMessage, GuildMemberJoin, ThreadCreated, boosts ...).
WRITTEN = frozenset(
    ["Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "ApplicationCommand", "0", "19", "20", "23"]
)

_MENTION = re.compile(r"<@!?(\d+)>")
_NUMBERS = re.compile(r"(\d+)")


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read one Discord channel in file order, repeated ids kept once.

    A file is one channel; in a folder or zip, `channel` chooses it by name or id, and the parts of one channel are read
    in the order of their numbers. A plain list that runs from new to old throughout, as Discord hands it out, is turned
    round, and several of them are pages, ordered by id. A row addresses whom its text names: `<@id>`, `<@!id>`, or
    `@name` of somebody in its list of mentions; the silent ping of a reply does not count. Events are no rows; an
    attachment or a forwarded message without text is. Raises `InputError`.
    """
    with opened(path, encoding) as export:
        name, members = _parts(export, channel)
        rows = _rows(export, members)
    if not rows:
        raise InputError(os.fspath(path), "", "holds no message", "is this the right export and format?")
    return Channel.of(name, once(drained(rows)))


def _parts(export: Export, channel: str | None) -> tuple[str, list[Member]]:
    """The channel's id and the files that hold it."""
    parts: dict[str, list[Member]] = {}
    aliases: dict[str, str] = {}
    for member in sorted(export.members, key=lambda member: _natural(str(member.name))):
        if export.whole and member.name.suffix != ".json":
            continue
        head = _head(export, member)
        if head is None and export.whole:
            continue
        id, name = head or (member.name.stem, member.name.stem)
        parts.setdefault(id, []).append(member)
        aliases[name] = id
    id = chosen(parts, aliases.get(channel, channel) if channel else None, export.label)
    return id, parts[id]


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBERS.split(name[:200])]


def _head(export: Export, member: Member) -> tuple[str, str] | None:
    """Id and name of the channel in a file, or None where it holds no messages."""
    found = None
    for key, entry in json_entries(export, member):
        if key == "channel" and isinstance(entry, Record):
            id = entry.identity("id", "") or member.name.stem
            found = id, entry.text("name", "") or id
        elif key in ("", "messages"):
            if not isinstance(entry, Record) or not {"content", "author"} <= entry.fields.keys():
                return None
            id = entry.identity("channel_id", "") or member.name.stem
            return found or (id, id)
    return found


def _rows(export: Export, members: list[Member]) -> list[Message]:
    plain = False
    rows = []
    for member in members:
        for key, record in json_records(export, member, "", "messages"):
            plain = plain or not key
            if record.text("type", "Default") in WRITTEN:
                rows.append(_message(record))
    if plain and (len(members) > 1 or all(_number(b.id) < _number(a.id) for a, b in pairwise(rows))):
        rows.sort(key=lambda row: _number(row.id))
    return rows


def _number(id: str) -> int:
    return int(id) if id.isdecimal() and len(id) < 40 else 0


def _message(record: Record) -> Message:
    author = record.inner("author")
    if author is None:
        raise record.fault("author", "is missing", "is this the right format?")
    id, content = author.identity("id"), record.text("content")
    return Message(
        id=record.identity("id", shared=False),
        author=id,
        text=content or _stand_in(record),
        created_at=(at := record.seconds("timestamp")),
        name=sys.intern(author.first("nickname", "global_name", "name", "username") or id),
        agent=author.flag("isBot") or author.flag("bot") or bool(record.text("webhook_id", "")),
        mentions=tuple(dict.fromkeys(_addressed(record, content))),
        edited_at=record.later("timestampEdited", at) or record.later("edited_timestamp", at),
    )


def _addressed(record: Record, content: str) -> Iterator[str]:
    yield from map(sys.intern, _MENTION.findall(content))
    if "@" in content:
        for entry in record.items("mentions"):
            names = [entry.text(key, "") for key in ("nickname", "name", "global_name", "username")]
            if any(name and re.search(rf"(?<!\w)@{re.escape(name)}(?!\w)", content) for name in names):
                yield entry.identity("id")


def _stand_in(record: Record) -> str:
    """What to show of a row without text: what it carries, and what the message said that it passes on."""
    passed_on = [snapshot.inner("message") for snapshot in record.items("message_snapshots")]
    passed_on.append(record.inner("forwardedMessage"))
    parts = _carried(record)
    for message in filter(None, passed_on):
        parts += [message.text("content", ""), *_carried(message)]
    return "\n".join(filter(None, parts))


def _carried(record: Record) -> list[str]:
    """The names of its files and stickers, the words of its embeds."""
    parts = [f"[file: {file.first('fileName', 'filename') or 'unnamed'}]" for file in record.items("attachments")]
    stickers = record.items("stickers") + record.items("sticker_items")
    parts += [f"[sticker: {sticker.text('name', 'unnamed')}]" for sticker in stickers]
    return parts + [embed.first("title", "description", "url") for embed in record.items("embeds")]
