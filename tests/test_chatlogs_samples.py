"""The sample exports in every format, and the public channels where their folder is at hand."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from warmprefix import chatlogs
from warmprefix.channel import mentions
from warmprefix.errors import InputError

SAMPLES = Path(__file__).parent / "samples"
PUBLIC = Path(__file__).resolve().parents[2] / "shared" / "data" / "channels"
NICKS = ("relay", "recorder", "issuebot")

# source, format, channel, rows, authors, agents' rows, rows in threads, how the agent is addressed, mention_index
IMPORT, FIGURES = (6, 9, 16, 24, 34, 36, 41), (6, 8, 21, 30, 32, 43, 47)
CASES = [
    ("import-team.jsonl", "jsonl", None, 45, 4, 10, 1, "scout", IMPORT),
    ("slack", "slack", "import-team", 45, 5, 10, 5, "U09SCOUT", IMPORT),
    ("figures-discord.json", "discord", None, 49, 5, 8, 0, "180000000000031676", FIGURES),
    ("zulip", "zulip", None, 49, 5, 0, 0, "501", FIGURES),
    ("zulip-export", "zulip", None, 45, 4, 10, 0, "501", IMPORT),
    ("mattermost-import.jsonl", "mattermost", None, 45, 4, 10, 5, "scout", IMPORT),
    ("github-pull-41.json", "github", None, 49, 6, 8, 6, "scout", FIGURES),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_sample_is_recognised_and_read(case):
    source, format, room, rows, authors, agents, threaded, target, index = case
    path = SAMPLES / source
    assert chatlogs.recognise(path) == format
    channel = chatlogs.read(path, channel=room)
    assert channel == chatlogs.read(path, format, channel=room)
    assert len(channel.messages) == len({m.id for m in channel.messages}) == rows
    assert len({m.author for m in channel.messages}) == authors
    assert sum(m.agent for m in channel.messages) == agents
    assert sum(m.thread_root_id is not None for m in channel.messages) == threaded
    assert mentions(channel, targets=[target]) == index


def test_the_irc_sample_is_recognised_and_read():
    assert chatlogs.recognise(SAMPLES / "import.log") == "irc"
    channel = chatlogs.read(SAMPLES / "import.log").with_agents(["scout"])
    kinds = [m.kind for m in channel.messages]
    assert (len(kinds), kinds.count("action"), kinds.count("notice")) == (49, 3, 1)
    assert mentions(channel, ["^scout[:,]"]) == (6, 9, 17, 26, 37, 39, 44)
    assert channel.messages[0].created_at == 1_710_545_100  # 23:25 on the day that the log was opened
    assert channel.messages[-1].created_at > 1_710_547_200  # after midnight


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_zip_is_the_same_as_the_folder(tmp_path, case):
    path = SAMPLES / case[0]
    folder = shutil.copytree(path, tmp_path / "in" / path.name) if path.is_dir() else None
    if folder is None:
        folder = tmp_path / "in"
        folder.mkdir()
        shutil.copy(path, folder)
    packed = shutil.make_archive(str(tmp_path / path.stem), "zip", folder)
    if case[1] == "jsonl":  # one file is one channel: no zip
        with pytest.raises(InputError, match="is a zip or a folder; name the file itself"):
            chatlogs.read(packed, case[1])
        return
    assert chatlogs.recognise(packed) == case[1]
    got, wanted = (chatlogs.read(source, channel=case[2]).messages for source in (packed, path))
    assert got == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_one_format_is_not_taken_for_another(case):
    others = set(chatlogs.FORMATS) - {case[1]}
    for other in sorted(others):
        with pytest.raises(InputError) as caught:
            chatlogs.read(SAMPLES / case[0], other)
        assert case[0] in str(caught.value) and "\n" not in str(caught.value)


def harmed(data, how):
    if how == "truncated":
        return data[: len(data) * 3 // 5]
    if how == "latin-1":
        return data.replace(b"the ", b"th\xe9 ")
    if how == "nested":
        return b'{"messages": ' + b"[" * 200_000
    if how == "huge":
        return b'[{"id": "1", "ts": "1", "content": "' + b"x" * (17 << 20) + b'"}]'
    return b""


@pytest.mark.parametrize("how", ["truncated", "latin-1", "nested", "huge", "empty"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_harmed_file_is_one_clear_line(tmp_path, case, how):
    source = SAMPLES / case[0]
    path = tmp_path / source.name
    shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)
    files = sorted(path.rglob("2024-03-15.json")) or sorted(path.rglob("*01.json")) or [path]
    files[0].write_bytes(harmed(files[0].read_bytes(), how))
    for format in (case[1], None):
        with pytest.raises(InputError) as caught:
            chatlogs.read(path, format, channel=case[2])
        said = str(caught.value)
        assert said.startswith(str(path)) and "\n" not in said
        if how in ("truncated", "latin-1", "nested"):
            assert files[0].name in said and "line " in said
        if how == "latin-1":
            assert "add --encoding latin-1" in said
    if how == "latin-1":
        assert chatlogs.read(path, case[1], encoding="latin-1", channel=case[2]).messages


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "looks like no chat export; name its format with --format: jsonl, irc"),
        (b"\x00\x01\x02", "looks like no chat export"),
        (b"Dear all,\nsee below.\n", "looks like no chat export"),
        (b"<html><p>hi</p></html>", "looks like no chat export"),
        (b"a,b\n1,2\n", "looks like no chat export"),
        (b'{"a": 1}', "looks like no chat export"),
        (b"[]", "looks like no chat export"),
        (b"[1, 2]", "looks like no chat export"),
        (b'[{"a": 1}', "line 1: is not JSON"),
        (b"PK\x03\x04rest", "is a damaged zip; unpack it"),
        (b"\x1f\x8b\x08rest", "is a gzip archive; unpack it"),
    ],
)
def test_what_is_no_export_is_not_recognised(tmp_path, content, said):
    path = tmp_path / "what"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        chatlogs.read(path)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_an_unknown_format_is_named():
    with pytest.raises(InputError, match="--format teams: is no known format; use one of jsonl, irc, slack"):
        chatlogs.read(SAMPLES / "import.log", "teams")


def packed(tmp_path, members, **options):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../out/2024-01-01.json", "/etc/2024-01-01.json", "a/../../x.json", "c:\\x.json"])
def test_a_zip_may_not_lead_out_of_itself(tmp_path, name):
    with pytest.raises(InputError, match="leads out of the archive"):
        chatlogs.read(packed(tmp_path, {name: "[]"}))


def test_a_zip_may_not_unpack_to_a_flood(tmp_path):
    path = packed(tmp_path, {"room/2024-01-01.json": b" " * (8 << 20)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match=r"unpacks from [\d,]+ to 8,388,608 bytes, more than a chat does"):
        chatlogs.read(path)


def test_a_damaged_member_of_a_zip_is_named(tmp_path):
    content = (SAMPLES / "slack" / "import-team" / "2024-03-15.json").read_bytes()
    path = packed(tmp_path, {"room/2024-03-15.json": content})
    data = path.read_bytes()
    path.write_bytes(data.replace(b"nightly import", b"nightly export"))
    with pytest.raises(InputError, match=r"export\.zip/room/2024-03-15\.json: is a damaged zip: Bad CRC"):
        chatlogs.read(path)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"export\.zip: is a damaged zip"):
        chatlogs.read(path)
    path.write_bytes(data[:26] + b"\xff\x0f" + data[28:])  # the length of its name in front of the member
    with pytest.raises(InputError, match=r"is a damaged zip: File name in directory .{1,150}$"):
        chatlogs.read(path)


def test_several_channels_want_a_choice():
    with pytest.raises(InputError, match="slack: holds 2 channels; choose one with --channel: import-team, random"):
        chatlogs.read(SAMPLES / "slack")
    with pytest.raises(InputError, match="slack: holds no channel 'attic'; choose one with --channel: import-team"):
        chatlogs.read(SAMPLES / "slack", channel="attic")
    by_name, by_id = (chatlogs.read(SAMPLES / "slack", channel=name) for name in ("random", "C02RANDOM"))
    assert by_name == by_id and len(by_id.messages) == 2


@pytest.mark.parametrize(
    ("case", "source", "format", "address", "agents"),
    [
        ("irc_w3c_css_20131111", "channel.log", "irc", {"patterns": [rf"^\s*(?i:{'|'.join(NICKS)})\s*[,:]"]}, NICKS),
        ("slack_houston_general", "", "slack", {"targets": ["U30215248"]}, ()),
        ("discord_nous_200", "channel.json", "discord", {"targets": ["300000000000000001"]}, ()),
        ("zulip_bot_topic_200", "", "zulip", {"targets": ["900001"]}, ("helper",)),
    ],
)
def test_public_channels_have_their_right_values(case, source, format, address, agents):
    folder = PUBLIC / case
    if not folder.is_dir():
        pytest.skip(f"the public channels are not at {PUBLIC}")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert chatlogs.recognise(folder) == chatlogs.recognise(folder / source) == format
    channel = chatlogs.read(folder / source).with_agents(agents)
    assert len(channel.messages) == expected["messages"]
    assert len({m.author for m in channel.messages}) == expected["authors"]
    assert sum(m.agent for m in channel.messages) == expected["bot_messages"]
    assert mentions(channel, **address) == tuple(expected["mention_index"])
    alone = channel.without_agents()
    assert len(mentions(alone, **address)) == expected["replay_without_bot_messages"]["window_limit12_fetch30"]["turns"]
    assert len(alone.messages) == expected["messages"] - expected["bot_messages"]
