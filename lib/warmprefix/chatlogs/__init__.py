"""Chat logs: one reader a format, each `read(path, encoding=None, channel=None) -> Channel` in store order."""

import os

from warmprefix.channel import Channel
from warmprefix.chatlogs import irc, jsonl
from warmprefix.chatlogs.source import opened
from warmprefix.errors import InputError

FORMATS = {"jsonl": jsonl.read, "irc": irc.read}


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
    """The name of the format that an export looks like; raises `InputError` where it looks like none."""
    with opened(path, encoding) as export:
        for piece in export.text(export.members[0]):
            return "jsonl" if piece.lstrip().startswith("{") else "irc"
    raise InputError(os.fspath(path), "", "is empty", f"name its format with --format: {', '.join(FORMATS)}")
