"""Our own JSON lines: what a line may say, and how each fault is named."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmprefix import chatlogs
from warmprefix.channel import Message
from warmprefix.chatlogs import jsonl
from warmprefix.errors import InputError

GOOD = {"id": "1", "author": "ann", "text": "hi", "created_at": 5}


def rows(tmp_path, *lines, **options):
    path = tmp_path / "room.jsonl"
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text(text, encoding="utf-8")
    return jsonl.read(path, **options).messages


def test_a_line_is_a_message(tmp_path):
    full = {
        "id": 2,
        "author": "bot",
        "name": "Bot",
        "text": "ho\nho",
        "created_at": "2013-11-11T03:38:00Z",
        "agent": True,
    }
    full |= {"kind": "notice", "mentions": ["ann"], "thread_root_id": "1", "local": False, "weather": {"deep": [1]}}
    assert rows(tmp_path, GOOD, "", full) == (
        Message("1", "ann", "hi", 5, "ann"),
        Message("2", "bot", "ho\nho", 1_384_141_080.0, "Bot", True, False, "notice", ("ann",), "1", 1),
    )


def test_a_root_that_names_itself_stands_in_the_channel(tmp_path):
    got = rows(tmp_path, GOOD | {"thread_root_id": "1"}, GOOD | {"id": "2", "thread_root_id": "1"})
    assert [m.thread_root_id for m in got] == [None, "1"]


def test_a_repeated_id_is_kept_once_and_order_is_the_files(tmp_path, caplog):
    got = rows(tmp_path, GOOD | {"id": "9", "created_at": 9}, GOOD, GOOD | {"text": "again"}, GOOD)
    assert [(m.id, m.text) for m in got] == [("9", "hi"), ("1", "hi")]
    assert [record.getMessage().partition(".jsonl: ")[2] for record in caplog.records] == [
        "line 3: has the id of an earlier line and is left out; such lines: 2"
    ]


def test_a_lone_surrogate_cannot_get_in(tmp_path):
    (row,) = rows(tmp_path, '{"id": "a\\ud800", "author": "\\udfff", "text": "\\ud83d", "created_at": 0}')
    assert (row.id, row.author, row.text) == ("a\ufffd", "\ufffd", "\ufffd")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[1]", "line 2: must be a JSON object, not a list"),
        ('{"id": "2", "author": "a', "line 2, column 23: is not JSON"),
        ({**GOOD, "id": None}, "line 2: field 'id' is missing"),
        ({**GOOD, "id": ""}, "line 2: field 'id' is empty"),
        ({**GOOD, "author": ["x"]}, "line 2: field 'author' must be a text, not a list"),
        ({**GOOD, "text": True}, "line 2: field 'text' must be a text, not true or false"),
        ({**GOOD, "agent": "yes"}, "line 2: field 'agent' must be true or false, not a text"),
        ({**GOOD, "kind": "shout"}, "line 2: field 'kind' is 'shout'; use one of message, action, notice"),
        ({**GOOD, "mentions": "ann"}, "line 2: field 'mentions' must be a list, not a text"),
        ({**GOOD, "mentions": [1]}, "line 2: field 'mentions' must be a list of ids"),
        ({**GOOD, "created_at": "soon"}, "line 2: field 'created_at' is no time: 'soon'"),
        ({**GOOD, "created_at": float("nan")}, "line 2: field 'created_at' is no time before the year 3000: nan"),
        ({**GOOD, "created_at": "inf"}, "line 2: field 'created_at' is no time before the year 3000"),
        ({**GOOD, "created_at": 1_700_000_000_000}, "line 2: field 'created_at' is no time before the year 3000"),
        ({**GOOD, "created_at": 10**400}, "line 2: field 'created_at' is no time before the year 3000: 1000"),
        ({**GOOD, "created_at": -1}, "line 2: field 'created_at' is no time before the year 3000"),
        ({**GOOD, "created_at": True}, "line 2: field 'created_at' is no time: True"),
        ('{"id": ' + "9" * 5000 + "}", "line 2: holds a number that is too long"),
        ('{"x": ' + "[" * 100_000, "line 2: is nested too deeply"),
        ('{"x": "' + "y" * (17 << 20) + '"}', "line 2: is longer than 16,777,216 characters"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_faults_name_line_and_field(tmp_path, line, said):
    with pytest.raises(InputError) as caught:
        rows(tmp_path, GOOD, line)
    assert f"room.jsonl: {said}" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_nothing_is_no_channel(tmp_path, content):
    (tmp_path / "room.jsonl").write_bytes(content)
    with pytest.raises(InputError, match="holds no message"):
        jsonl.read(tmp_path / "room.jsonl")


def test_what_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere: cannot be read: No such file"):
        jsonl.read(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no file"):
        jsonl.read(tmp_path)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*GOOD, "name", "kind", "mentions", "agent", "thread_root_id"]), ANYTHING))
def test_any_record_is_read_or_refused(tmp_path, record):
    try:
        assert len(rows(tmp_path, GOOD | {"id": "0"}, record)) in (1, 2)
    except InputError as error:
        assert "room.jsonl: line 2" in str(error)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60), format=st.sampled_from(sorted(chatlogs.FORMATS)))
def test_any_bytes_are_read_or_refused(tmp_path, content, format):
    path = tmp_path / "any"
    path.write_bytes(content)
    for name in (format, None):
        try:
            assert chatlogs.read(path, name).messages
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
