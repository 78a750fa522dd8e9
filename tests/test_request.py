"""Requests share what they have in common, and their common prefix is exact to the token."""

import hashlib

import pytest
from drawn import hostile
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.channel import clean
from warmprefix.prompt import MESSAGES, SYSTEM, Segment
from warmprefix.request import Blocks, Log, Request, Wire, common_prefix
from warmprefix.tokens import Tokenizer, is_segment

WORDS = ["one\n", "one two\n", "one two three\n", "two\n", "on\n", "one\ntwo\n", "日本\n", "日\n"]
PIECES = st.lists(
    st.one_of(st.sampled_from(WORDS), hostile.map(lambda t: clean(t) + "\n").filter(is_segment)), max_size=6
)


def made(blocks, texts):
    return [blocks.of(MESSAGES, Segment("row", text)) for text in texts]


def shared(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


@given(a=PIECES, b=PIECES, same=st.integers(0, 6))
def test_the_common_prefix_is_that_of_the_token_lists(blocks, a, b, same):
    b = a[:same] + b
    ids = blocks.tokenizer.ids
    expected = shared(ids("".join(a)), ids("".join(b)))
    assert common_prefix(made(blocks, a), made(blocks, b), blocks.ids) == expected
    assert common_prefix(made(blocks, b), made(blocks, a), blocks.ids) == expected


@given(a=PIECES, b=PIECES)
def test_text_cut_in_other_places_is_the_same_text(blocks, a, b):
    joined = ["".join(a)] if a else []
    assert common_prefix(made(blocks, joined + b), made(blocks, a), blocks.ids) == sum(
        x.tokens for x in made(blocks, a)
    )


@given(a=PIECES, b=PIECES, more=PIECES)
def test_appending_never_lowers_what_is_read(blocks, a, b, more):
    before = common_prefix(made(blocks, a), made(blocks, b), blocks.ids)
    assert common_prefix(made(blocks, a), made(blocks, b + more), blocks.ids) >= before
    assert common_prefix(made(blocks, a + more), made(blocks, b), blocks.ids) >= before


@given(
    heads=st.lists(PIECES, min_size=2, max_size=2),
    same_head=st.booleans(),
    log=PIECES,
    stops=st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_requests_of_one_conversation_compare_like_plain_lists(blocks, heads, same_head, log, stops):
    conversation = Log()
    conversation.extend(made(blocks, log))
    heads[1] = heads[0] if same_head else heads[1]
    a, b = (
        Wire(tuple(made(blocks, head)), conversation, min(stop, len(log)))
        for head, stop in zip(heads, stops, strict=True)
    )
    assert common_prefix(a, b, blocks.ids) == common_prefix(list(a), list(b), blocks.ids)
    assert common_prefix(a, list(b), blocks.ids) == common_prefix(list(a), b, blocks.ids)
    assert Request(a).tokens == Request(list(a)).tokens == sum(block.tokens for block in a)


def test_token_ids_are_asked_only_where_the_requests_part():
    blocks, asked = Blocks(Tokenizer()), []
    a = made(blocks, ["one\n", "two\n", "three\n", "five\n"])
    b = made(blocks, ["one\n", "two\n", "four\n", "five\n"])
    assert common_prefix(a, b, lambda block: asked.append(blocks.text(block)) or blocks.ids(block)) == 4
    assert asked == ["three\n", "four\n"]
    assert common_prefix(a, a[:2], lambda block: pytest.fail("a prefix needs no ids")) == 4


def test_a_wire_is_a_sequence_that_later_turns_leave_alone(blocks):
    log, (head, *rest) = Log(), made(blocks, ["h\n", "a\n", "b\n", "c\n"])
    log.extend(rest[:2])
    wire = Wire((head,), log, 2)
    log.extend(rest[2:])
    assert list(wire) == [head, *rest[:2]] == [wire[i] for i in range(3)] == list(wire[:])
    assert (len(wire), wire[-1], wire[1:]) == (3, rest[1], tuple(rest[:2]))
    assert wire.tokens == 6
    for outside in (3, -4):
        with pytest.raises(IndexError):
            wire[outside]


def test_a_shortened_log_is_its_own(blocks):
    log = Log()
    log.extend(made(blocks, ["a\n", "b\n"]))
    short = log.first(1)
    short.extend(made(blocks, ["c\n"]))
    assert [blocks.text(block) for block in log.blocks] == ["a\n", "b\n"]
    assert [blocks.text(block) for block in short.blocks] == ["a\n", "c\n"]
    assert list(short.sums) == [0, 2, 4]


def test_a_key_stands_for_the_bytes_and_nothing_else():
    blocks = Blocks(Tokenizer())
    row, system, other = (
        blocks.of(MESSAGES, Segment("row", "a\n")),
        blocks.of(SYSTEM, Segment("system", "a\n")),
        blocks.of(MESSAGES, Segment("row", "b\n")),
    )
    assert row.key == system.key == hashlib.sha256(b"a\n").hexdigest()[:32] != other.key
    assert (row.tier, row.kind, system.tier, system.kind) == (MESSAGES, "row", SYSTEM, "system")
    assert blocks.text(row) == "a\n" and blocks.ids(row) == blocks.tokenizer.ids("a\n")


def test_a_maker_that_keeps_few_texts_makes_the_same_blocks(monkeypatch):
    tokenizer, encoded = Tokenizer(), []
    encode = tokenizer._encode
    monkeypatch.setattr(tokenizer, "_encode", lambda text: encoded.append(text) or encode(text))
    few, all_of_them = Blocks(tokenizer, keep=2), Blocks(Tokenizer())
    texts = ["a\n", "b\n", "a\n", "c\n", "a\n", "d\n", "e\n", "f\n", "a\n"]
    assert made(few, texts) == made(all_of_them, texts)
    assert encoded == ["a\n", "b\n", "c\n", "d\n", "e\n", "f\n", "a\n"]  # used again it stays, forgotten it comes anew
    assert few.text(made(few, ["f\n"])[0]) == "f\n"
    with pytest.raises(KeyError):
        few.text(made(all_of_them, ["b\n"])[0])
