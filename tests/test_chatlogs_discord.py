"""Discord: what is a row, whom its text addresses, and in which order rows stand."""

import json

import pytest

from warmprefix.chatlogs import discord
from warmprefix.errors import InputError

BOT = {"id": "99", "name": "helper", "nickname": "Helper"}


def row(id, content, author="1", **more):
    who = {"id": author, "name": f"n{author}", "nickname": f"N{author}"}
    return {"id": str(id), "timestamp": "2024-01-01T00:00:00+00:00", "content": content, "author": who, **more}


def rows(tmp_path, *messages, wrap=True, name="room.json"):
    path = tmp_path / name
    channel = {"channel": {"id": "7", "name": "room"}, "messages": messages}
    path.write_text(json.dumps(channel if wrap else messages), encoding="utf-8")
    return discord.read(path).messages


@pytest.mark.parametrize("type", ["RecipientAdd", "Call", "ChannelPinnedMessage", "GuildMemberJoin", "ThreadCreated"])
@pytest.mark.parametrize("number", [None, 1, 6, 7, 8, 18, 21, 24])
def test_events_are_no_rows(tmp_path, type, number):
    got = rows(tmp_path, row(1, "hi"), row(2, "Joined the server.", type=type if number is None else number))
    assert [m.text for m in got] == ["hi"]


@pytest.mark.parametrize("type", ["Default", "Reply", "20", "23", 0, 19, 20, None])
def test_messages_replies_and_answers_to_commands_are_rows(tmp_path, type):
    assert len(rows(tmp_path, row(1, "hi", type=type))) == 1


@pytest.mark.parametrize(
    ("content", "listed", "mentions"),
    [
        ("<@99> look", [BOT], ("99",)),
        ("<@!99> look <@99>", [], ("99",)),
        ("@Helper look", [BOT], ("99",)),
        ("@helper look", [BOT], ("99",)),
        ("look", [BOT], ()),  # the silent ping of a reply
        ("@Helper look", [], ()),
        ("<@&99> <#99> mail@helper @helpers", [BOT], ()),
        ("<@3> and <@99>", [BOT], ("3", "99")),
    ],
)
def test_the_text_says_who_is_addressed(tmp_path, content, listed, mentions):
    (got,) = rows(tmp_path, row(1, content, type="Reply", mentions=listed, reference={"messageId": "0"}))
    assert got.mentions == mentions and got.thread_root_id is None


def test_order_is_the_files_and_an_id_counts_once(tmp_path):
    late = row(5, "first", timestamp="2024-01-02T00:00:00.1234567+00:00")
    got = rows(tmp_path, late, row(3, "second"), row(4, "third"), row(3, "again"))
    assert [m.text for m in got] == ["first", "second", "third"]
    assert got[0].created_at > got[1].created_at == got[2].created_at == 1_704_067_200


def test_a_plain_list_from_new_to_old_is_turned_round(tmp_path):
    plain = [row(id, str(id), type=0) for id in (3, 2, 1)]
    assert [m.id for m in rows(tmp_path, *plain, wrap=False)] == ["1", "2", "3"]
    assert [m.id for m in rows(tmp_path, *plain, wrap=True)] == ["3", "2", "1"]
    mixed = [plain[0], plain[2], plain[1]]
    assert [m.id for m in rows(tmp_path, *mixed, wrap=False)] == ["3", "1", "2"]


def test_several_plain_lists_are_pages(tmp_path):
    for name, ids in [("page-1.json", (5, 4)), ("page-2.json", (3, 2)), ("page-3.json", (2, 1))]:
        page = [row(id, str(id), channel_id="7", type=0) for id in ids]
        (tmp_path / name).write_text(json.dumps(page), encoding="utf-8")
    assert [m.id for m in discord.read(tmp_path).messages] == ["1", "2", "3", "4", "5"]


def test_names_and_agents(tmp_path):
    person = {"id": "1", "username": "ann", "global_name": "Ann", "bot": False}
    got = rows(
        tmp_path,
        row(1, "a") | {"author": person},
        row(2, "b") | {"author": {"id": "2", "username": "b", "global_name": None, "bot": True}},
        row(3, "c", webhook_id="5"),
        row(4, "d") | {"author": {"id": "4", "name": "d", "isBot": True}},
        wrap=False,
    )
    assert [(m.name, m.agent) for m in got] == [("Ann", False), ("b", True), ("N1", True), ("d", True)]


def test_a_row_without_text_shows_what_it_carries(tmp_path):
    got = rows(
        tmp_path,
        row(1, "", attachments=[{"fileName": "a.png"}, {"filename": "b.png"}]),
        row(2, "", stickers=[{"name": "wave"}], embeds=[{"title": "Build 7"}, {"description": "passed"}]),
        row(3, ""),
        row(4, "", forwardedMessage={"content": "<@99> said", "attachments": [{"fileName": "c.png"}]}),
        row(5, "", message_snapshots=[{"message": {"content": "said too"}}, {}]),
    )
    assert [m.text for m in got] == [
        "[file: a.png]\n[file: b.png]",
        "[sticker: wave]\nBuild 7\npassed",
        "",
        "<@99> said\n[file: c.png]",
        "said too",
    ]
    assert not got[3].mentions, "who passes a message on addresses nobody"


def test_a_folder_of_parts_is_one_channel(tmp_path):
    for part in (10, 2, 1):
        rows(tmp_path, row(part, str(part)), name=f"room [part {part}].json")
    assert [m.text for m in discord.read(tmp_path).messages] == ["1", "2", "10"]
    other = {"channel": {"id": "8", "name": "attic"}, "messages": [row(1, "x")]}
    (tmp_path / "attic.json").write_text(json.dumps(other))
    with pytest.raises(InputError, match="holds 2 channels; choose one with --channel: 7, 8"):
        discord.read(tmp_path)
    assert len(discord.read(tmp_path, channel="attic").messages) == len(discord.read(tmp_path, channel="8").messages)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("x", "messages, record 1: must be an object, not a text"),
        ({**row(1, "a"), "author": None}, "messages, record 1: field 'author' is missing"),
        ({**row(1, "a"), "author": {"name": "x"}}, "messages, record 1, field 'author': field 'id' is missing"),
        ({**row(1, "a"), "timestamp": "never"}, "messages, record 1: field 'timestamp' is no time: 'never'"),
        ({**row(1, "a"), "content": 1.5}, "messages, record 1: field 'content' must be a text, not a number"),
        ({**row(1, "@a"), "mentions": ["1"]}, "messages, record 1: field 'mentions' must hold objects, not a text"),
    ],
)
def test_faults_name_record_and_field(tmp_path, message, fault):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, message)
    assert f"room.json: {fault}" in str(caught.value)
