"""Slack exports: which records are messages, whom they address, and in which order they stand."""

import json

import pytest

from warmprefix import chatlogs
from warmprefix.chatlogs import slack
from warmprefix.errors import InputError


def rows(tmp_path, *records, users=(), **days):
    room = tmp_path / "export" / "room"
    room.mkdir(parents=True, exist_ok=True)
    days = days or {"d2024_01_01": records}
    for day, content in days.items():
        (room / f"{day[1:].replace('_', '-')}.json").write_text(json.dumps(content), encoding="utf-8")
    (room.parent / "users.json").write_text(json.dumps(users), encoding="utf-8")
    return slack.read(room.parent).messages


def said(user, ts, text, **more):
    return {"type": "message", "user": user, "ts": ts, "text": text, **more}


SYSTEM = ["channel_join", "channel_leave", "channel_topic", "channel_purpose", "channel_name", "channel_archive"]
SYSTEM += ["channel_unarchive", "group_join", "group_topic", "pinned_item", "unpinned_item", "bot_add", "bot_remove"]


@pytest.mark.parametrize("subtype", [*SYSTEM, "tombstone"])
def test_records_of_the_system_are_no_rows(tmp_path, subtype):
    note = said("U1", "2.0", "<@U2> did it", subtype=subtype)
    assert [m.text for m in rows(tmp_path, said("U1", "1.0", "hi"), note)] == ["hi"]


@pytest.mark.parametrize("subtype", ["file_share", "me_message", "thread_broadcast", "file_mention", None])
def test_what_people_write_is_a_row(tmp_path, subtype):
    assert [m.text for m in rows(tmp_path, said("U1", "1.0", "hi", subtype=subtype))] == ["hi"]


def test_mentions_are_bare_or_labelled(tmp_path):
    text = "<@U1> and <@U2|bo> and <@U1|al>, not <!here> <#C1|room> <@> @U3 <https://x/@U4>"
    (row,) = rows(tmp_path, said("U9", "1.0", text))
    assert row.mentions == ("U1", "U2") and row.text == text


def test_days_are_ordered_by_ts_and_rows_of_one_second_by_its_fraction(tmp_path):
    got = rows(
        tmp_path,
        d2024_01_02=[said("U1", "1704153600.000300", "c"), said("U2", "1704153600.000200", "b")],
        d2024_01_01=[said("U1", "1704153500.000100", "a"), said("U1", "1704240000.000100", "d")],
    )
    assert [m.text for m in got] == ["a", "b", "c", "d"]
    assert [m.position for m in got] == [0, 1, 2, 3]


def test_threads_and_broadcasts(tmp_path):
    reply = said("U2", "3.0", "re", thread_ts="1.0")
    broadcast = said("U2", "4.0", "to all", thread_ts="1.0", subtype="thread_broadcast", root={"ts": "1.0"})
    pointer = said("U2", "5.0", "", subtype="reply_broadcast", broadcast_thread_ref="C1/4.0")
    early = said("U3", "0.5", "before its root", thread_ts="1.0")
    got = rows(tmp_path, said("U1", "1.0", "root", thread_ts="1.0"), reply, broadcast, broadcast, pointer, early)
    assert [(m.id, m.thread_root_id) for m in got] == [("0.5", "1.0"), ("1.0", None), ("3.0", "1.0"), ("4.0", "1.0")]


def test_two_people_at_one_stamp_are_two_rows(tmp_path):
    got = rows(tmp_path, said("U1", "1.0", "a"), said("U2", "1.0", "b"), said("U1", "1.0", "a"))
    assert [(m.id, m.text) for m in got] == [("1.0", "a"), ("1.0/U2", "b")]


def test_who_is_an_agent(tmp_path):
    users = [
        {"id": "U1", "name": "ann", "profile": {"display_name": "", "real_name": "Ann A"}},
        {"id": "U2", "name": "bot", "is_bot": True, "profile": {}},
    ]
    got = rows(
        tmp_path,
        said("U1", "1.0", "by hand"),
        said("U1", "2.0", "through an app", bot_id="B1"),
        said("U2", "3.0", "bot", bot_id="B2"),
        {"type": "message", "subtype": "bot_message", "ts": "4.0", "text": "hook", "bot_id": "B3", "username": "ci"},
        said("U7", "5.0", "a bot nobody lists", bot_id="B4", bot_profile={"name": "helper"}),
        said("U8", "6.0", "a stranger", user_profile={"display_name": "sam"}),
        users=users,
    )
    assert [(m.author, m.name, m.agent) for m in got] == [
        ("U1", "Ann A", False),
        ("U1", "Ann A", False),
        ("U2", "bot", True),
        ("B3", "ci", True),
        ("U7", "helper", True),
        ("U8", "sam", False),
    ]


def test_a_comment_on_a_file_is_its_writers(tmp_path):
    comment = {"type": "message", "subtype": "file_comment", "ts": "1.0", "text": "<@U1|ann> commented on <@U2>'s file"}
    (row,) = rows(tmp_path, comment | {"comment": {"user": "U1", "comment": "nice"}})
    assert (row.author, row.mentions) == ("U1", ("U1", "U2"))


def test_a_row_without_text_shows_what_it_carries(tmp_path):
    got = rows(
        tmp_path,
        said("U1", "1.0", "", files=[{"name": "a.png"}, {"mode": "tombstone"}]),
        said("U1", "2.0", None, attachments=[{"fallback": "build 7 passed"}, {"text": "12 s"}]),
        said("U1", "3.0", "see", files=[{"name": "b.png"}]),
    )
    assert [m.text for m in got] == ["[file: a.png]\n[file: unnamed]", "build 7 passed\n12 s", "see"]


def test_blocks_speak_where_there_is_no_text(tmp_path):
    words = [{"type": "text", "text": "ask "}, {"type": "user", "user_id": "U2"}, {"type": "emoji", "name": "wave"}]
    rich = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": words}]}
    item = {"type": "rich_text_section", "elements": [{"type": "link", "url": "https://x.org", "text": "x"}]}
    listed = {"type": "rich_text", "elements": [{"type": "rich_text_list", "elements": [item, item]}]}
    section = {
        "type": "section",
        "text": {"type": "mrkdwn", "text": "*build* 7"},
        "fields": [{"type": "mrkdwn", "text": "<@U3>"}],
    }
    deep = {"type": "rich_text"}
    for _ in range(200):
        deep = {"type": "rich_text", "elements": [deep]}
    got = rows(
        tmp_path,
        said("U1", "1.0", "", blocks=[rich, listed]),
        said("U1", "2.0", None, blocks=[section, {"type": ["?"]}, {"type": "divider"}, deep]),
        said("U1", "3.0", "text counts", blocks=[rich]),
    )
    assert [(m.text, m.mentions) for m in got] == [
        ("ask <@U2>:wave:\n<https://x.org>\n<https://x.org>", ("U2",)),
        ("*build* 7\n<@U3>", ("U3",)),
        ("text counts", ()),
    ]


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        (["x"], "2024-01-01.json: record 1: must be an object, not a list"),
        ({"user": "U1"}, "2024-01-01.json: record 1: field 'ts' is missing; is this the right format?"),
        (said("U1", "soon", "x"), "2024-01-01.json: record 1: field 'ts' is no time: 'soon'"),
        (said("U1", "nan", "x"), "2024-01-01.json: record 1: field 'ts' is no time before the year 3000: 'nan'"),
        (said("U1", "1.0", ["x"]), "2024-01-01.json: record 1: field 'text' must be a text, not a list"),
        (said("U1", "1.0", "x", comment="y"), "record 1: field 'comment' must be an object, not a text"),
        (said("U1", "1.0", "", blocks=["y"]), "record 1: field 'blocks' must hold objects, not a text"),
        (said("U1", "1.0", "", files=["y"]), "record 1: field 'files' must hold objects, not a text"),
    ],
)
def test_faults_name_day_record_and_field(tmp_path, record, fault):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, record)
    assert fault in str(caught.value)


def test_one_day_file_can_be_read_alone(tmp_path):
    rows(tmp_path, said("U1", "1.0", "hi"))
    day = tmp_path / "export" / "room" / "2024-01-01.json"
    (row,) = slack.read(day).messages
    assert row.text == "hi"
    page = tmp_path / "page.json"
    page.write_text(json.dumps({"ok": True, "messages": [said("U1", "2.0", "ho"), *json.loads(day.read_text())]}))
    assert chatlogs.recognise(page) == "slack" and [m.text for m in slack.read(page).messages] == ["hi", "ho"]
