"""Zulip: rendered pages and raw exports, silent mentions, and topics merged by id."""

import json

import pytest

from warmprefix.chatlogs import zulip
from warmprefix.errors import InputError

HELPER = '<span class="user-mention" data-user-id="9">@helper</span>'
SILENT = '<span class="user-mention silent" data-user-id="9">helper</span>'


def page(id, content, sender="Ann", at=100):
    return {"id": id, "content": content, "sender_full_name": sender, "timestamp": at + id}


def rows(tmp_path, *pages, channel=None):
    for number, messages in enumerate(pages, 1):
        (tmp_path / f"topic-{number:02d}.json").write_text(json.dumps(messages), encoding="utf-8")
    return zulip.read(tmp_path, channel=channel).messages


def test_topics_are_merged_by_id_whatever_the_clock_says(tmp_path):
    got = rows(tmp_path, [page(5, "<p>e</p>", at=0), page(1, "<p>a</p>")], [page(3, "<p>c</p>"), page(1, "<p>a</p>")])
    assert [(m.id, m.text) for m in got] == [("1", "a"), ("3", "c"), ("5", "e")]
    assert got[2].created_at < got[1].created_at


@pytest.mark.parametrize(
    ("content", "mentions"),
    [
        (f"<p>{HELPER} look</p>", ("9",)),
        (f"<p>{SILENT} was here</p>", ()),
        (f"<p>{SILENT} and {HELPER}</p>", ("9",)),
        (f"<blockquote><p>{SILENT} said</p></blockquote><p>yes</p>", ()),
        ('<p><span class="user-mention" data-user-id="*">@all</span></p>', ()),
        ('<p><span class="user-group-mention" data-user-group-id="9">@team</span></p>', ()),
        ("<p>@helper <code>@helper</code></p>", ()),
        ('<p><span data-user-id="9" class="user-mention user-mention-me">@<b>helper</b></span></p>', ("9",)),
    ],
)
def test_only_a_loud_mention_addresses(tmp_path, content, mentions):
    (got,) = rows(tmp_path, [page(1, content)])
    assert got.mentions == mentions


def test_a_sender_known_by_name_gets_the_id_that_others_mention(tmp_path):
    got = rows(tmp_path, [page(1, f"<p>{HELPER}</p>"), page(2, f"<p>I am {HELPER}</p>", "helper")])
    assert [(m.author, m.name) for m in got] == [("Ann", "Ann"), ("9", "helper")]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<p>a &lt;b&gt; &amp; c</p>", "a <b> & c"),
        ("<p>one<br>\ntwo</p>\n<p>three</p>", "one\ntwo\nthree"),
        ("<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n<p>c</p>", "- a\n- b\nc"),
        ("<blockquote>\n<p>old</p>\n</blockquote>\n<p>new</p>", "> old\nnew"),
        (
            '<p>so:</p><div class="codehilite"><pre><span></span><code>if x:\n    y\n</code></pre></div><p>ok</p>',
            "so:\n```\nif x:\n    y\n```\nok",
        ),
        ('<p>hm <span class="emoji" title="x">:x:</span> <img class="emoji" alt=":y:"></p>', "hm :x: :y:"),
        (
            '<p><span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>x</mi></mrow>'
            '<annotation encoding="application/x-tex">x^2</annotation></semantics></math></span>'
            '<span class="katex-html" aria-hidden="true"><span>x2</span></span></span> is small</p>',
            "x^2 is small",
        ),
        ("<p>open <b>never closed", "open never closed"),
        ("", ""),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
    ],
)
def test_html_becomes_text(tmp_path, content, text):
    (got,) = rows(tmp_path, [page(1, content)])
    assert got.text == text


def realm(tmp_path, messages, **more):
    people = [{"id": 1, "full_name": "Ann"}, {"id": 9, "full_name": "helper", "is_bot": True}]
    recipients = [{"id": 31, "type": 2, "type_id": 3}, {"id": 32, "type": 2, "type_id": 4}, {"id": 41, "type": 1}]
    streams = [{"id": 3, "name": "room"}, {"id": 4, "name": "attic"}]
    about = {"zerver_userprofile": people, "zerver_recipient": recipients, "zerver_stream": streams}
    (tmp_path / "realm.json").write_text(json.dumps(about))
    (tmp_path / "messages-000001.json").write_text(json.dumps({"zerver_message": messages}))
    return zulip.read(tmp_path, **more).messages


def raw(id, content, recipient=31, sender=1, **more):
    return {"id": id, "content": content, "recipient": recipient, "sender": sender, "date_sent": 100.5 + id, **more}


@pytest.mark.parametrize(
    ("content", "mentions"),
    [
        ("@**helper** look", ("9",)),
        ("@**Some Body|9** and @**Ann|1**", ("9", "1")),
        ("@_**helper|9** was here", ()),
        ("@**all** @**everyone** @*team* @**stream**", ()),
        ("`@**helper**` and\n```\n@**helper**\n```\n", ()),
        ("```quote\n@**helper**\n```\nyes", ()),
        ("@**nobody known**", ("nobody known",)),
    ],
)
def test_markdown_mentions_in_an_official_export(tmp_path, content, mentions):
    (got,) = realm(tmp_path, [raw(1, content)])
    assert got.mentions == mentions and got.text == content


def test_what_was_rendered_decides_where_the_export_has_it(tmp_path):
    (got,) = realm(tmp_path, [raw(1, "@**helper**", rendered_content=f"<p>{SILENT}</p>")])
    assert got.mentions == ()


def test_an_official_export_knows_streams_and_bots(tmp_path):
    messages = [raw(2, "b", sender=9), raw(1, "a"), raw(3, "other", 32), raw(4, "private", 41)]
    with pytest.raises(InputError, match="holds 2 channels; choose one with --channel: attic, room"):
        realm(tmp_path, messages)
    for channel in ("room", "31"):
        got = realm(tmp_path, messages, channel=channel)
        assert [(m.text, m.name, m.agent) for m in got] == [("a", "Ann", False), ("b", "helper", True)]


@pytest.mark.parametrize(
    ("history", "edited"),
    [
        (None, True),
        ('[{"prev_subject": "old topic"}]', False),
        ('[{"prev_subject": "old topic"}, {"prev_content": "a"}]', True),
        ([{"prev_topic": "old topic", "topic": "new"}], False),
        ([{"prev_content": "a", "prev_rendered_content": "<p>a</p>"}], True),
    ],
)
def test_a_move_to_another_topic_is_no_edit(tmp_path, history, edited):
    (got,) = realm(tmp_path, [raw(1, "a", last_edit_time=2_000_000_000.0, edit_history=history)])
    assert got.edited_at == (2_000_000_000.0 if edited else None)


def test_a_list_of_the_interface_is_read(tmp_path):
    path = tmp_path / "messages.json"
    message = {"id": 1, "sender_id": 4, "sender_full_name": "Di", "timestamp": 5, "content": f"<p>{HELPER} x</p>"}
    plain = message | {"id": 2, "content": "a < b", "content_type": "text/x-markdown"}
    path.write_text(json.dumps({"result": "success", "messages": [message, plain]}))
    assert [(m.author, m.text, m.mentions) for m in zulip.read(path).messages] == [
        ("4", "@helper x", ("9",)),
        ("4", "a < b", ()),
    ]


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (7, "topic-01.json: record 1: must be an object, not a number"),
        ({"id": 1}, "topic-01.json: record 1: is no Zulip message: it wants 'id' and 'content'"),
        (page(1, None), "topic-01.json: record 1: field 'content' is missing"),
        ({**page(1, "x"), "id": "x"}, "topic-01.json: record 1: field 'id' is no number: 'x'"),
        ({**page(1, "x"), "sender_full_name": None}, "topic-01.json: record 1: field 'sender_full_name' is missing"),
        ({**page(1, "x"), "timestamp": 1e300}, "topic-01.json: record 1: field 'timestamp' is no time before"),
        ({**page(1, "x"), "timestamp": None}, "topic-01.json: record 1: field 'timestamp' is missing"),
    ],
)
def test_faults_name_page_record_and_field(tmp_path, message, fault):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, [message])
    assert fault in str(caught.value)
