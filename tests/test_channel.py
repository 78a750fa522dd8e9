"""Rows keep their order and are clean; who is addressed, and how far apart."""

import pytest
from drawn import hostile
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.channel import Channel, Message, clean, gaps, mentions
from warmprefix.errors import InputError


@given(hostile)
def test_clean_text_can_be_encoded_and_is_cleaned_once(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert clean(cleaned) == cleaned
    assert len(cleaned) == len(text)
    assert all(a == b or (b == "\ufffd" and 0xD800 <= ord(a) < 0xE000) for a, b in zip(text, cleaned, strict=True))


def test_store_order_counts_and_the_clock_does_not():
    channel = Channel.of("ch", [Message("b", "ann", "late", 9.0), Message("a", "bob", "early", 1.0)])
    assert [(m.id, m.position) for m in channel.messages] == [("b", 0), ("a", 1)]


def test_a_row_without_a_name_carries_its_authors_id():
    assert Channel.of("ch", [Message("1", "u7", "hi\ud800", 0.0)]).messages[0] == Message(
        "1", "u7", "hi\ufffd", 0.0, name="u7"
    )


def test_numbering_again_changes_nothing():
    channel = Channel.of("ch", [Message(str(i), "ann", "ä\udfff", 0.0) for i in range(3)])
    assert Channel.of("ch", channel.messages) == channel


ROWS = (
    Message("1", "ann", "agent: look", 0.0),
    Message("2", "Bot", "agent: me too", 1.0, name="Helper"),
    Message("3", "bob", "agent: acts", 2.0, kind="action"),
    Message("4", "cyd", "says agent: in passing", 3.0, mentions=("U1",)),
    Message("5", "U1", "to myself", 4.0, mentions=("U1", "U2")),
    Message("6", "ann", "two of you", 5.0, mentions=("U2", "U1")),
    Message("7", "svc", "agent: notice", 6.0, kind="notice", mentions=("U1",)),
)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"patterns": [r"^agent:"]}, (0, 1)),
        ({"patterns": [r"agent:"]}, (0, 1, 3)),
        ({"targets": ["U1"]}, (3, 5)),
        ({"targets": ["u1"]}, (3, 5)),
        ({"targets": ["U2"]}, (4, 5)),
        ({"patterns": [r"^agent:"], "targets": ["U1"]}, (0, 1, 3, 5)),
        ({"patterns": ["nobody"]}, ()),
        ({}, ()),
    ],
)
def test_who_is_addressed(how, expected):
    assert mentions(Channel.of("ch", ROWS), **how) == expected


def test_an_agents_row_never_addresses():
    channel = Channel.of("ch", ROWS).with_agents(["helper", "CYD", "absent"])
    assert [m.id for m in channel.messages if m.agent] == ["2", "4"]
    assert mentions(channel, patterns=["agent:"], targets=["U1"]) == (0, 5)
    assert [m.role for m in channel.messages[:2]] == ["user", "assistant"]


def test_agents_nobody_has_heard_of_are_an_error_and_no_agents_are_none():
    channel = Channel.of("ch", ROWS)
    with pytest.raises(InputError, match=r"^--agent nemo: nobody of that name wrote here; check the spelling$"):
        channel.with_agents(["nemo"])
    assert channel.with_agents([]) == channel


def test_a_channel_without_its_agents_is_numbered_anew():
    rest = Channel.of("ch", ROWS).with_agents(["helper"]).without_agents()
    assert [(m.id, m.position) for m in rest.messages] == [(id, i) for i, id in enumerate("134567")]


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 3000])
def test_a_pattern_that_is_none_is_one_line(pattern):
    with pytest.raises(InputError) as error:
        mentions(Channel.of("ch", ROWS), patterns=[pattern])
    assert "not a regular expression" in str(error.value) and "\n" not in str(error.value)


def test_gaps_lie_strictly_between():
    assert gaps((0, 1, 4, 10)) == {"min": 0, "median": 2, "mean": 7 / 3, "max": 5}


@given(st.lists(st.integers(0, 99), max_size=1))
def test_fewer_than_two_mentions_have_no_gap(index):
    assert gaps(index) == {"min": None, "median": None, "mean": None, "max": None}
