"""Documents in pieces: the same values as when read whole, in the memory of one element."""

import json
import tracemalloc
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.chatlogs.documents import json_entries, lines
from warmprefix.chatlogs.records import Record
from warmprefix.chatlogs.source import opened
from warmprefix.errors import InputError

MEMBER = SimpleNamespace(label="x.json")


def in_pieces(text, size):
    return SimpleNamespace(text=lambda member: (text[i : i + size] for i in range(0, len(text), size)))


def plain(value):
    return value.fields if isinstance(value, Record) else value


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3), max_leaves=8
)


@given(
    st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.integers(1, 9),
    st.sampled_from([None, 1]),
)
def test_pieces_give_what_the_whole_gives(document, size, indent):
    text = json.dumps(document, indent=indent)
    got = [(key, plain(value)) for key, value in json_entries(in_pieces(text, size), MEMBER)]
    if isinstance(document, list):
        assert got == [("", value) for value in document]
    else:
        assert got == [
            (key, inner) for key, value in document.items() for inner in (value if isinstance(value, list) else [value])
        ]


@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4), st.integers(1, 9), st.data())
def test_a_document_that_is_cut_off_is_refused(document, size, data):
    text = json.dumps(document)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(InputError, match=r"x\.json: line 1: "):
        list(json_entries(in_pieces(text[:cut], size), MEMBER))


@given(st.text(alphabet="ab\n\r\u2028", max_size=30), st.integers(1, 5))
def test_lines_in_pieces_are_the_lines(text, size):
    whole = text.split("\n")
    whole = [line.removesuffix("\r") for line in (whole if whole[-1] else whole[:-1])]
    assert list(lines(in_pieces(text, size), MEMBER)) == list(enumerate(whole, 1))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "line 1: is empty"),
        ("\n\n  7", "line 3: is no JSON document"),
        ('[1,\n{"a":\n}]', "line 3: is not JSON"),
        ("[1,\n2 3]", "line 2: is not JSON: ',' or ']' is expected"),
        ('{"a": 1,\n2: 3}', "line 2: is not JSON: a key is expected"),
        ("{}\n{}", "line 2: goes on after the end of its document"),
        ("[1,]", "line 1: is not JSON: Expecting value"),
        ("[" + "9" * 5000 + "]", "line 1: holds a number that is too long"),
        ("[" * 100_000, "line 1: is nested too deeply"),
        ('{"a":' * 100_000, "line 1: is nested too deeply"),
        ('["' + "x" * (17 << 20) + '"]', "line 1: holds a record longer than 16,777,216 characters"),
    ],
    ids=lambda value: value[:20],
)
def test_faults_name_the_line(text, fault):
    with pytest.raises(InputError) as caught:
        list(json_entries(in_pieces(text, 1 << 18), MEMBER))
    assert str(caught.value).startswith(f"x.json: {fault}")


@pytest.mark.parametrize("separator", [",", ",\n"])
def test_a_long_document_takes_the_memory_of_a_short_one(tmp_path, separator):
    peaks = []
    for count in (4_000, 40_000):
        path = tmp_path / f"{count}.json"
        path.write_text("[" + separator.join([json.dumps({"text": "x" * 150})] * count) + "]")
        tracemalloc.start()
        with opened(path) as export:
            assert sum(1 for _ in json_entries(export, export.only())) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 100_000
