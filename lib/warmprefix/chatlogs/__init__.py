"""Chat logs: one reader a format, each `read(path, encoding=None, channel=None) -> Channel` in store order."""

import os
import re
from itertools import islice

from warmprefix.channel import Channel
from warmprefix.chatlogs import discord, github, irc, jsonl, mattermost, slack, zulip
from warmprefix.chatlogs.documents import json_entries
from warmprefix.chatlogs.records import Record
from warmprefix.chatlogs.source import Export, Member, opened
from warmprefix.errors import InputError

FORMATS = {
    "jsonl": jsonl.read,
    "irc": irc.read,
    "slack": slack.read,
    "discord": discord.read,
    "zulip": zulip.read,
    "mattermost": mattermost.read,
    "github": github.read,
}

# The names that give an export away, the surest first.
_NAMES = (
    (re.compile(r"(?:^|/)\d{4}-\d\d-\d\d\.json$"), "slack"),
    (re.compile(r"(?:^|/)(?:topic-[^/]*|messages-\d+|stream_index)\.json$"), "zulip"),
)
# The fields of a message in each format's JSON, the most particular first.
_FIELDS = (
    ({"content", "author", "timestamp"}, "discord"),
    ({"content", "sender_full_name"}, "zulip"),
    ({"content", "sender", "date_sent"}, "zulip"),
    ({"message", "create_at"}, "mattermost"),
    ({"type", "post"}, "mattermost"),
    ({"type", "version"}, "mattermost"),
    ({"type", "ts"}, "slack"),
    ({"author", "text", "created_at"}, "jsonl"),
    ({"body", "user"}, "github"),
    ({"body", "author"}, "github"),
)
_OBJECTS = {"guild": "discord", "zerver_message": "zulip", "posts": "mattermost", "issue": "github"}


def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    encoding: str | None = None,
    channel: str | None = None,
) -> Channel:
    """Read a channel in one of `FORMATS`, recognised where it is not named.

    `encoding` is utf-8 unless named; `channel` chooses one of several channels in an export by name or id. Raises
    `InputError` naming file and place for whatever cannot be read.
    """
    name = format or recognise(path, encoding=encoding)
    if name not in FORMATS:
        raise InputError("", f"--format {name}", "is no known format", f"use one of {', '.join(FORMATS)}")
    return FORMATS[name](path, encoding=encoding, channel=channel)


def recognise(path: str | os.PathLike[str], *, encoding: str | None = None) -> str:
    """The name of the format that an export looks like, by its files' names and then by how they begin.

    Raises `InputError` where it looks like none.
    """
    remedy = f"name its format with --format: {', '.join(FORMATS)}"
    with opened(path, encoding) as export:
        if export.whole:
            for pattern, name in _NAMES:
                if any(pattern.search(str(member.name)) for member in export.members):
                    return name
        for member in export.members:
            if found := _member_format(export, member):
                return found
    raise InputError(os.fspath(path), "", "looks like no chat export", remedy)


def _member_format(export: Export, member: Member) -> str | None:
    if export.whole and member.name.suffix not in (".json", ".jsonl", ".log", ".txt", ".irc", ""):
        return None
    try:
        head = next(export.text(member), "").lstrip()
        if head.startswith("{") or re.match(r"\[\s*[\[{\]]", head):
            return _json_format(export, member)
        return "irc" if irc.looks_like(head) else None
    except InputError:
        if not export.whole:
            raise
        return None  # another file of the folder may be the log


def _json_format(export: Export, member: Member) -> str | None:
    """The format of JSON, judged by its first values; a damaged end is for the format's reader to name."""
    keys: set[str] = set()
    try:
        for key, value in islice(json_entries(export, member), 1000):
            if name := _OBJECTS.get(key) or (_named(_fields(value)) if key in ("", "messages", "items") else None):
                return name
            keys.add(key)
    except InputError:
        if not _named(keys):
            raise
    return _named(keys)


def _fields(value: object) -> set[str]:
    inner = value[0] if isinstance(value, list) and value else value  # a page in a list of pages
    return set(inner.fields if isinstance(inner, Record) else inner if isinstance(inner, dict) else ())


def _named(fields: set[str]) -> str | None:
    return next((name for wanted, name in _FIELDS if wanted <= fields), None)
