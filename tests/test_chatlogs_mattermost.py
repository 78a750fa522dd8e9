"""Mattermost: bulk exports and posts with ids."""

import json

import pytest

from warmprefix.chatlogs import mattermost
from warmprefix.errors import InputError


def post(user, at, message, channel="room", **more):
    body = {"team": "t", "channel": channel, "user": user, "message": message, "create_at": at, **more}
    return {"type": "post", "post": body}


def rows(tmp_path, *records, channel=None, name="export.jsonl"):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return mattermost.read(path, channel=channel).messages


def test_replies_follow_the_clock_and_know_their_root(tmp_path):
    replies = [{"user": "bo", "message": "re", "create_at": 9000}, {"user": "cy", "message": "pre", "create_at": 500}]
    got = rows(tmp_path, post("ann", 1000, "root", replies=replies), post("dee", 5000, "next"))
    assert [(m.text, m.created_at, m.thread_root_id) for m in got] == [
        ("pre", 0.5, "1"),
        ("root", 1.0, None),
        ("next", 5.0, None),
        ("re", 9.0, "1"),
    ]


def test_system_posts_and_deleted_ones_are_no_rows(tmp_path):
    got = rows(
        tmp_path,
        post("ann", 1, "ann joined", type="system_join_channel"),
        post("ann", 2, "gone", delete_at=3),
        post("ann", 3, "waves", type="me"),
        post("ann", 4, "stays", delete_at=0, type=""),
    )
    assert [m.text for m in got] == ["waves", "stays"]


@pytest.mark.parametrize(
    ("message", "mentions"),
    [
        ("@scout look", ("scout",)),
        ("ask @scout. Or @Scout!", ("scout",)),
        ("@dr.who. @a.b-", ("dr.who.", "a.b")),
        ("@all @channel @here", ()),
        ("mail me@scout.org, `@scout`, path/@scout, @@scout", ()),
        ("```\n@scout\n```\n", ()),
        ("(@scout) @bo,@cy", ("scout", "bo", "cy")),
    ],
)
def test_a_username_in_the_text_is_a_mention(tmp_path, message, mentions):
    known = {"type": "user", "user": {"username": "dr.who."}}
    (got,) = rows(tmp_path, known, post("ann", 1, message))
    assert got.mentions == mentions


def test_bots_and_hooks_are_agents(tmp_path):
    got = rows(
        tmp_path,
        {"type": "version", "version": 1},
        {"type": "bot", "bot": {"username": "scout", "owner": "ann"}},
        {"type": "emoji", "emoji": {"name": "x"}},
        post("scout", 1, "a"),
        post("ann", 2, "b", props={"from_webhook": "true", "override_username": "ci"}),
        post("ann", 3, "c", props={"from_bot": "false"}),
        post("ann", 4, "", attachments=[{"path": "data/x/a.png"}]),
        post("ann", 5, "", props={"attachments": [{"fallback": "build 7 passed"}, {"text": "12 s"}, {}]}),
    )
    assert [(m.name, m.agent, m.text) for m in got] == [
        ("scout", True, "a"),
        ("ci", True, "b"),
        ("ann", False, "c"),
        ("ann", False, "[file: a.png]"),
        ("ann", False, "build 7 passed\n12 s"),
    ]


def test_several_channels_want_a_choice(tmp_path):
    both = post("ann", 1, "a"), post("ann", 2, "b", channel="attic")
    with pytest.raises(InputError, match="holds 2 channels; choose one with --channel: t/attic, t/room"):
        rows(tmp_path, *both)
    assert [m.text for name in ("attic", "t/attic") for m in rows(tmp_path, *both, channel=name)] == ["b", "b"]
    with pytest.raises(InputError, match="holds no channel 'cellar'; choose one with --channel: t/attic, t/room"):
        rows(tmp_path, *both, channel="cellar")
    with pytest.raises(InputError, match="channel 't/room': holds no message"):
        rows(tmp_path, post("ann", 1, "ann joined", type="system_join_channel"))
    with pytest.raises(InputError, match=r"holds no channel"):
        rows(tmp_path, {"type": "direct_post", "direct_post": {"channel_members": ["a", "b"], "message": "psst"}})


def test_posts_with_ids_in_every_wrapping(tmp_path):
    first = {"id": "p1", "create_at": 2000, "user_id": "u1", "channel_id": "c", "message": "a @bo", "root_id": ""}
    second = first | {"id": "p2", "create_at": 1000, "root_id": "p1", "message": "b"}
    for name, content in [
        ("list.json", [first, second]),
        ("page.json", {"order": ["p1", "p2"], "posts": {"p1": first, "p2": second}}),
    ]:
        (tmp_path / name).write_text(json.dumps(content))
        got = mattermost.read(tmp_path / name).messages
        assert [(m.id, m.thread_root_id, m.mentions) for m in got] == [("p2", "p1", ()), ("p1", None, ("bo",))]
    assert rows(tmp_path, first, second) == got


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"a": 1}, "line 1: is no record of a Mattermost export"),
        ({"type": "post", "post": "x"}, "line 1: field 'post' must be an object, not a text"),
        (post(None, 1, "x"), "line 1, field 'post': field 'user' is missing"),
        (post("ann", None, "x"), "line 1, field 'post': field 'create_at' is missing"),
        (post("ann", 1e18, "x"), "line 1, field 'post': field 'create_at' is no time before the year 3000"),
        (post("ann", 1, None), "line 1, field 'post': field 'message' is missing"),
        (post("ann", 1, "x", replies=[1]), "line 1, field 'post': field 'replies' must hold objects, not a number"),
    ],
)
def test_faults_name_line_and_field(tmp_path, record, fault):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, record)
    assert f"export.jsonl: {fault}" in str(caught.value)
