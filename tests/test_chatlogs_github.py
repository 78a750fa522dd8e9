"""GitHub threads: issues, comments, reviews and review comments, in the shapes that the interface and the tool give."""

import json

import pytest

from warmprefix.chatlogs import github
from warmprefix.errors import InputError

BASE = "https://api.example.org/repos/o/r/issues/"


def comment(id, at, body, login="ann", **more):
    return {"id": id, "user": {"login": login}, "created_at": f"2024-01-01T00:00:{at:02d}Z", "body": body, **more}


def read(tmp_path, content, name="thread.json", channel=None):
    (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    return github.read(tmp_path / name, channel=channel).messages


ISSUE = comment(900, 1, "It fails", number=12, title="Bug", comments=2)


def test_an_issue_and_its_lists_are_one_thread_in_time(tmp_path):
    reviews = [
        {"id": 5, "user": {"login": "bo"}, "body": "", "state": "APPROVED", "submitted_at": "2024-01-01T00:00:09Z"},
        {"id": 6, "user": {"login": "bo"}, "body": "ok", "state": "APPROVED", "submitted_at": "2024-01-01T00:00:08Z"},
    ]
    reviews.append({"id": 7, "user": {"login": "bo"}, "body": "not yet", "state": "PENDING"})
    inline = [comment(5, 6, "why?", diff_hunk="@@"), comment(7, 7, "so", in_reply_to_id=5)]
    content = {"issue": ISSUE, "comments": [comment(5, 3, "me too")], "reviews": reviews, "review_comments": inline}
    got = read(tmp_path, content)
    assert [(m.id, m.text, m.thread_root_id) for m in got] == [
        ("issue-12", "Bug\n\nIt fails", None),
        ("comment-5", "me too", None),
        ("review_comment-5", "why?", None),
        ("review_comment-7", "so", "review_comment-5"),
        ("review-6", "ok", None),
    ]
    folder = tmp_path / "pull"
    folder.mkdir()
    for name, part in content.items():
        (folder / f"{name}.json").write_text(json.dumps(part))
    assert github.read(folder).messages == got
    assert read(tmp_path, [ISSUE, comment(5, 3, "me too"), *reviews, *inline]) == got


def test_the_tools_own_export_is_read(tmp_path):
    answer = {"id": "IC_2", "author": {"login": "bo"}, "createdAt": "2024-01-01T00:00:02Z", "body": "@ann yes"}
    issue = {"number": 3, "title": "T", "body": None, "author": {"login": "ann", "is_bot": False}}
    issue |= {"createdAt": "2024-01-01T00:00:01Z", "comments": [answer], "reviews": None}
    assert [(m.author, m.text, m.mentions) for m in read(tmp_path, issue)] == [
        ("ann", "T", ()),
        ("bo", "@ann yes", ("ann",)),
    ]


def test_several_issues_are_threads_unless_one_is_chosen(tmp_path):
    other = comment(901, 2, "", number=13, title="Wish")
    replies = [comment(1, 3, "a", issue_url=f"{BASE}13"), comment(2, 4, "b", issue_url=f"{BASE}12")]
    content = {"issues": [ISSUE, other], "comments": replies}
    assert [(m.id, m.thread_root_id) for m in read(tmp_path, content)] == [
        ("issue-12", None),
        ("issue-13", None),
        ("comment-1", "issue-13"),
        ("comment-2", "issue-12"),
    ]
    for number in ("13", "#13"):
        got = read(tmp_path, content, channel=number)
        assert [(m.id, m.thread_root_id) for m in got] == [("issue-13", None), ("comment-1", None)]
    with pytest.raises(InputError, match="holds no issue 14; it has 12, 13"):
        read(tmp_path, content, channel="14")


def test_pages_and_timelines_are_read(tmp_path):
    assert [m.text for m in read(tmp_path, [[comment(2, 2, "b")], [comment(1, 1, "a"), comment(2, 2, "b")]])] == [
        "a",
        "b",
    ]
    label = {"event": "labeled", "actor": {"login": "ann"}, "created_at": "2024-01-01T00:00:01Z"}
    said = comment(1, 2, "a", event="commented") | {"user": None, "actor": {"login": "bo"}}
    assert [(m.author, m.text) for m in read(tmp_path, [label, said])] == [("bo", "a")]


@pytest.mark.parametrize(
    ("body", "mentions"),
    [
        ("@bo look, @Ann", ("bo", "Ann")),
        ("mail@bo.org `@bo` @o/team x/@bo ", ()),
        ("```\n@bo\n```\nand ``@bo``", ()),
        ("> @bo said\n\n(@bo)", ("bo",)),
        (None, ()),
    ],
)
def test_a_login_outside_code_is_a_mention(tmp_path, body, mentions):
    got = read(tmp_path, [comment(1, 1, body)])
    assert got[0].mentions == mentions


def test_bots_are_agents_and_the_gone_are_ghosts(tmp_path):
    people = [{"login": "x[bot]"}, {"login": "y", "type": "Bot"}, {"login": "z", "type": "User"}, None]
    got = read(tmp_path, [comment(i, i, "a") | {"user": user} for i, user in enumerate(people)])
    assert [(m.author, m.agent) for m in got] == [("x[bot]", True), ("y", True), ("z", False), ("ghost", False)]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ([1], "holds something else than issues and comments"),
        ([], "holds no comment"),
        ({"a": 1}, "holds no comment"),
        ([{"id": 1}], "record 1: field 'body' is missing"),
        ([comment(1, 1, "a") | {"created_at": "?"}], "record 1: field 'created_at' is no time: '?'"),
        ([comment(1, 1, "a") | {"user": "ann"}], "record 1: field 'user' must be an object, not a text"),
        ([comment(1, 1, ["a"])], "record 1: field 'body' must be a text, not a list"),
        ({"issue": ISSUE | {"comments": [{"id": 1}]}}, "comments, record 1: field 'body' is missing"),
    ],
)
def test_faults_name_record_and_field(tmp_path, content, fault):
    with pytest.raises(InputError) as caught:
        read(tmp_path, content)
    assert f"thread.json: {fault}" in str(caught.value)
