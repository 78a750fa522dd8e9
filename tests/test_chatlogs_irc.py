"""IRC logs: what is a row, who wrote it and when."""

import pytest

from warmprefix.chatlogs import irc
from warmprefix.errors import InputError


def rows(tmp_path, text, name="room.log", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return irc.read(path, **options).messages


def told(messages):
    return [(m.author, m.kind, m.text) for m in messages]


@pytest.mark.parametrize(
    "log",
    [
        "[03:38] <ann> hi\n[03:38] * bob waves\n[03:39] -svc- up\n[03:39] * Joins: cy (u@h)\n"
        "[03:40] * cy is now known as dee\n",
        "[03:38:01] <@ann> hi\n[03:38:02] * bob waves\n[03:39:00] -svc- up\n[03:39:00] *** Joins: cy (u@h)\n"
        "[03:39:00] *** cy sets mode: +o ann\n[03:40:00] *** Quits: cy (u@h) (bye)\n",
        "--- Log opened Mon Nov 11 00:00:00 2013\n03:38 < ann> hi\n03:38  * bob waves\n03:39 -svc:#room- up\n"
        "03:39 -!- cy [u@h] has joined #room\n03:39 -!- mode/#room [+o cy] by ann\n"
        "--- Log closed Mon Nov 11 23:00:00 2013\n",
        "2013-11-11 03:38:01\t@ann\thi\n2013-11-11 03:38:02\t *\tbob waves\n2013-11-11 03:39:00\t--\tNotice(svc): up\n"
        "2013-11-11 03:39:00\t-->\tcy (u@h) has joined #room\n2013-11-11 03:39:00\t--\tMode #room [+o cy] by ann\n"
        "2013-11-11 03:40:00\t<--\tcy (u@h) has quit (bye)\n",
        "**** BEGIN LOGGING AT Mon Nov 11 03:38:00 2013\n\nNov 11 03:38:01 <ann>\thi\nNov 11 03:38:02 *\tbob waves\n"
        "Nov 11 03:39:00 -svc-\tup\nNov 11 03:39:00 *\tcy (u@h) has joined\nNov 11 03:39:01 *\tcy has quit (bye)\n"
        "Nov 11 03:39:01 *\tChanServ gives channel operator status to ann\n"
        "Nov 11 03:39:02 -->\tdee (u@h) has joined #room\n"
        "Nov 11 03:39:02 ---\tdee is now known as eve\n**** ENDING LOGGING AT Mon Nov 11 04:00:00 2013\n",
        "[03:38] <ann> hi\n[03:38]  * bob waves\n=== cy [n=cy@h]  has joined #room\n[03:39] -svc- up\n"
        "=== cy is now known as dee\n",
        "[00:00] --- Mon Nov 11 2013\n[03:38] <ann> hi\n[03:38] Action: bob waves\n[03:39] -svc:#room- up\n"
        "[03:39] cy (u@h) joined #room.\n[03:40] Nick change: cy -> dee\n[03:40] dee (u@h) left irc: bye\n",
        "[2013-11-11T03:38:01.250Z] <+ann> hi\n[2013-11-11T03:38:02Z] * bob waves\n[2013-11-11T03:39:00Z] -svc- up\n"
        "[2013-11-11T03:39:00Z] *** cy (u@h) joined\n",
    ],
    ids=["bot", "znc", "irssi", "weechat", "hexchat", "ubuntu", "eggdrop", "dated"],
)
def test_every_dialect_gives_the_same_rows(tmp_path, log):
    expected = [("ann", "message", "hi"), ("bob", "action", "waves"), ("svc", "notice", "up")]
    assert told(rows(tmp_path, log)) == expected
    assert told(rows(tmp_path, log.replace("\n", "\r\n"))) == expected
    assert told(rows(tmp_path, b"\xef\xbb\xbf" + log.encode())) == expected


@pytest.mark.parametrize(
    "line",
    [
        "world is now known as a fine typist",
        "bob has quit smoking",
        "bob has quit IRC for good",
        "bob has left the building",
        "bob has joined the dots",
        "bob sets the mode",
        "bob was kicked by",
        "Joins the party",
        "Topic is not mine",
        "bob gives voice lessons",
    ],
)
def test_an_action_is_not_mistaken_for_the_server(tmp_path, line):
    nick, _, text = line.partition(" ")
    assert told(rows(tmp_path, f"[03:38] * {line}\n")) == [(nick, "action", text)]


@pytest.mark.parametrize(
    "line",
    [
        "world is now known as ping",
        "Quits: bob (u@h) (bye)",
        "Parts: bob (u@h)",
        "bob has left #room",
        'bob (u@h) has left #room ("later")',
        "bob (~u@h) Quit (Quit: bye)",
        "bob has quit (Ping timeout)",
        "bob has quit IRC (Ping timeout)",
        "bob has quit IRC",
        "bob sets mode: +o-v ann cy",
        "bob changes topic to 'new'",
        "ann was kicked by bob (no)",
        "Topic is 'old'",
        "Now talking in #room",
        "You are now known as bob2",
    ],
)
def test_the_server_writes_no_rows(tmp_path, line):
    assert told(rows(tmp_path, f"[03:38] <ann> hi\n[03:38] * {line}\n")) == [("ann", "message", "hi")]


def test_text_is_kept_as_it_was_said(tmp_path):
    log = "[03:38] <ann> <dudes\\>\n[03:38] <bob>   two  spaces \n[03:38] <cy> \n[03:39] <dee>\n[03:39] * eve\n"
    log += "[03:39] <fay> \x0304,01red\x03 and \x02bold\x0f\n[03:39] <gus> a\u2028b\x85c\n"
    assert told(rows(tmp_path, log)) == [
        ("ann", "message", "<dudes\\>"),
        ("bob", "message", "  two  spaces "),
        ("cy", "message", ""),
        ("dee", "message", ""),
        ("eve", "action", ""),
        ("fay", "message", "red and bold"),
        ("gus", "message", "a\u2028b\x85c"),
    ]


def test_minutes_count_on_over_midnight_but_not_when_the_clock_is_set_back(tmp_path):
    log = "[23:58] <a> 1\n[23:58] <b> 2\n[00:01] <a> 3\n"
    log += "[02:59] <a> 4\n[02:00] <a> 5\n[01:00] * Joins: x (u@h)\n[02:00] <a> 6\n"
    got = [m.created_at for m in rows(tmp_path, log)]
    day = 86_400
    assert got == [86_280, 86_280, day + 60, day + 10_740, day + 7_200, day + 7_200]


def test_a_twelve_hour_clock_goes_on_after_twelve(tmp_path):
    got = [m.created_at for m in rows(tmp_path, "[12:59] <a> 1\n[01:00] <a> 2\n[01:05 PM] <a> 3\n")]
    assert got == sorted(got) and got[0] < got[1] < got[2]


def test_a_day_without_its_year_goes_on_after_new_year(tmp_path):
    log = "Dec 31 23:59:59 <a> 1\nJan 01 00:00:01 <a> 2\nFeb 29 00:00:00 <a> 3\nMar 01 00:00:00 <a> 4\n"
    first, *rest = (m.created_at for m in rows(tmp_path, log))
    assert rest[0] - first == 2 and rest == sorted(rest) and rest[2] - rest[1] == 86_400
    begun = "**** BEGIN LOGGING AT Sat Dec 31 23:00:00 2011\n" + log
    assert [m.created_at for m in rows(tmp_path, begun)][2:] == [1_330_473_600, 1_330_560_000]


@pytest.mark.parametrize(
    "header",
    ["--- Day changed Tue Nov 12 2013", "Session Time: Tue Nov 12 00:00:00 2013", "--- Day changed 2013-11-12"],
)
def test_a_named_day_is_that_day(tmp_path, header):
    log = f"--- Log opened Mon Nov 11 09:00:00 2013\n09:00 <a> 1\n{header}\n09:00 <a> 2\n"
    assert [m.created_at for m in rows(tmp_path, log)] == [1_384_160_400, 1_384_246_800]


def test_a_folder_of_days_is_read_in_order(tmp_path):
    for name, text in [("2013-11-12.log", "[09:00] <b> two\n"), ("2013-11-11.log", "[10:00] <a> one\n")]:
        (tmp_path / name).write_text(text)
    got = irc.read(tmp_path).messages
    assert [(m.text, m.created_at) for m in got] == [("one", 1_384_164_000), ("two", 1_384_246_800)]
    assert len({m.id for m in got}) == 2


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (b"", "room.log: holds no line of an IRC log"),
        (b'{"id": 1}\n{"id": 2}\n', "room.log: line 1: is no line of an IRC log"),
        (b"Dear all,\nplease see below.\n[03:38] <ann> hi\n", "room.log: line 1: is no line of an IRC log"),
        (b"[03:38] <ann> hi\n[03:39] <bo", "room.log: line 2: is cut off in the nick"),
        (
            b"[03:38] <ann> hi\n[03:39] <bob> caf\xe9\n",
            "room.log: line 2: byte 0xe9 is not utf-8; add --encoding latin-1",
        ),
        (b"[03:38] <ann> \x93hi\x94\n", "room.log: line 1: byte 0x93 is not utf-8; add --encoding cp1252"),
        ("[03:38] <ann> hi\n".encode("utf-16"), "room.log: line 1: is utf-16, not utf-8; add --encoding utf-16"),
        (b"[03:38] <ann> hi\n[03:38] <bob> " + b"x" * 70_000, "room.log: line 2: is longer than 65,536 characters"),
        (b"[25:61] <ann> hi\n", "room.log: line 1: no such time of day"),
    ],
    ids=["empty", "json", "prose", "cut", "latin-1", "cp1252", "utf-16", "huge", "clock"],
)
def test_faults_name_file_and_line(tmp_path, log, said):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, log)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_an_encoding_can_be_named(tmp_path):
    assert rows(tmp_path, "[03:38] <ann> café\n".encode("latin-1"), encoding="latin-1")[0].text == "café"
    assert rows(tmp_path, "[03:38] <ann> café\n".encode("utf-16"), encoding="utf-16")[0].text == "café"
    with pytest.raises(InputError, match="--encoding klingon: is no text encoding"):
        rows(tmp_path, "[03:38] <ann> hi\n", encoding="klingon")
