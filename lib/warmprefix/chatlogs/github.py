"""GitHub threads: issues, comments, reviews and review comments as its REST interface or its own tool lists them."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from warmprefix.channel import Channel, Message
from warmprefix.chatlogs.documents import json_entries
from warmprefix.chatlogs.markup import without_code
from warmprefix.chatlogs.records import Record, drained, once
from warmprefix.chatlogs.source import opened
from warmprefix.errors import InputError

LISTS = ("comments", "reviews", "review_comments", "issues", "timeline", "events", "nodes", "items")
GHOST = "ghost"  # whom GitHub shows for an account that is gone

_MENTION = re.compile(r"(?<![\w@/.`-])@([A-Za-z0-9][A-Za-z0-9-]{0,38})(?![\w/-])")
_NUMBER = re.compile(r"/(?:issues|pull|pulls)/(\d+)(?:$|[/#?])")
_TIMES = ("created_at", "createdAt", "submitted_at", "submittedAt")


def read(path: str | os.PathLike[str], *, encoding: str | None = None, channel: str | None = None) -> Channel:
    """Read an issue's or pull request's thread, ordered by time.

    A file holds a list (of issues, comments, reviews, review comments, or a timeline), or an object: an issue, with its
    lists inside or beside it. A folder or zip of such files is one source. `channel` chooses an issue by its number;
    otherwise all are read, and where there are several each is a thread. A review comment's answers belong to the
    comment's thread. A review without words or not yet submitted and the events of a timeline are no rows. `mentions`
    are the `@login` of the text outside code; bots are agents. Raises `InputError`.
    """
    found: list[tuple[str, Message]] = []
    with opened(path, encoding) as export:
        for member in export.members:
            if export.whole and member.name.suffix != ".json":
                continue
            top: dict[str, Any] = {}
            for key, value in json_entries(export, member):
                if key == "" or (key in LISTS and isinstance(value, Record | list)):
                    found += _rows(value, key or member.name.stem, member.label)
                elif key in ("issue", "pull_request") and isinstance(value, Record):
                    found += _rows(value, "issue", member.label)
                else:
                    top[key] = value.fields if isinstance(value, Record) else value
            if "body" in top and any(time in top for time in _TIMES):  # the document is itself an issue
                found += _rows(Record(member.label, "the issue", top), "issue", member.label)
        stem = export.stem
    return _channel(found, channel, os.fspath(path), stem)


def _channel(found: list[tuple[str, Message]], channel: str | None, label: str, stem: str) -> Channel:
    numbers = sorted({number for number, _ in found if number}, key=int)
    if channel is not None:
        found = [(number, row) for number, row in found if number == channel.lstrip("#")]
    if not found:
        listed = f"; it has {', '.join(numbers[:8])}" if numbers and channel else ""
        problem = f"holds no issue {channel}{listed}" if numbers and channel else "holds no comment"
        raise InputError(label, "", problem, "is this the right export and format?")
    several = channel is None and len(numbers) > 1
    rows = [_threaded(number, row) if several else row for number, row in found]
    rows.sort(key=lambda row: row.created_at)
    only = channel.lstrip("#") if channel else numbers[0] if len(numbers) == 1 else stem
    return Channel.of(only, once(drained(rows)))


def _threaded(number: str, row: Message) -> Message:
    root = f"issue-{number}"
    return row if row.thread_root_id or row.id == root or not number else replace(row, thread_root_id=root)


def _rows(value: Any, origin: str, label: str) -> Iterator[tuple[str, Message]]:
    """Issue number and row of each record in a list, in pages of lists, or alone."""
    if isinstance(value, list):
        for place, inner in enumerate(value, 1):
            record = Record(label, f"{origin}, record {place}", inner) if isinstance(inner, dict) else None
            yield from _rows(record, origin, label)
        return
    if not isinstance(value, Record):
        raise InputError(label, "", "holds something else than issues and comments", "is this the right format?")
    kind, number = _kind(value, origin), _issue_number(value)
    if kind != "event" and (kind != "review" or _is_said(value)):
        yield number, _message(value, kind, number)
    for key in LISTS if kind == "issue" else ():
        if isinstance(value.fields.get(key), list):
            for _, row in _rows(value.fields[key], key, label):
                yield number, row


def _kind(record: Record, origin: str) -> str:
    """What a record is, by its own fields before the name of the list it stands in."""
    fields = record.fields
    if "event" in fields and fields["event"] not in ("commented", "reviewed"):
        return "event"
    if fields.keys() & {"diff_hunk", "pull_request_review_id", "in_reply_to_id"}:
        return "review_comment"
    if fields.get("event") == "reviewed" or origin == "reviews" or fields.keys() & {"submitted_at", "submittedAt"}:
        return "review"
    if "state" in fields and not fields.keys() & {"title", "number"}:  # a pending review in a list of everything
        return "review"
    return "issue" if "title" in fields or origin == "issue" else "comment"


def _is_said(review: Record) -> bool:
    """Whether a review has words that others can read: only its writer sees a pending one."""
    return review.text("state", "") != "PENDING" and review.text("body", "") != ""


def _issue_number(record: Record) -> str:
    if isinstance(record.fields.get("number"), int):
        return record.text("number")
    for key in ("issue_url", "pull_request_url", "html_url", "url"):
        if found := _NUMBER.search(record.text(key, "")):
            return found[1]
    return ""


def _message(record: Record, kind: str, number: str) -> Message:
    time = next((key for key in _TIMES if record.fields.get(key) is not None), "created_at")
    user = record.inner("user") or record.inner("author") or record.inner("actor")
    login = (user.identity("login", "") if user else "") or GHOST
    bot = user is not None and (
        user.text("type", "") == "Bot" or user.fields.get("is_bot") is True or login.endswith("[bot]")
    )
    if "body" not in record.fields:
        raise record.fault("body", "is missing", "is this the right format?")
    body = record.text("body", "").replace("\r\n", "\n")
    title = record.text("title", "") if kind == "issue" else ""
    answered = record.identity("in_reply_to_id", "")
    id = number if kind == "issue" and number else record.identity("id", "", shared=False) or record.place
    return Message(
        id=f"{kind}-{id}",
        author=login,
        text="\n\n".join(filter(None, (title, body))),
        created_at=(at := record.seconds(time)),
        name=login,
        agent=bot,
        mentions=tuple(dict.fromkeys(map(sys.intern, _addressed(body)))),
        thread_root_id=f"{kind}-{answered}" if answered else None,
        # An issue's own `updated_at` moves with everything that happens to it.
        edited_at=record.later("updated_at", at) if kind in ("comment", "review_comment") else None,
    )


def _addressed(body: str) -> list[str]:
    return _MENTION.findall(without_code(body)) if "@" in body else []
