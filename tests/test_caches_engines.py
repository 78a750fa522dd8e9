"""DeepSeek and the open engines: small cases worked by hand; `referees` checks the engines against the real ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmprefix.caches import Usage
from warmprefix.caches.deepseek import DeepSeek
from warmprefix.caches.facts import fact, facts
from warmprefix.caches.llamacpp import LlamaCpp
from warmprefix.caches.sglang import SGLang
from warmprefix.caches.vllm import VLLM
from warmprefix.request import Block, Request


def ids(block):
    return [ord(letter) for letter in block.key]


def said(*texts, at=0.0, answer="", **fields):
    """A request whose letters are its tokens."""
    return Request(
        tuple(Block("messages", "text", text, len(text)) for text in texts),
        at,
        answer=(Block("messages", "reply", answer, len(answer)),) if answer else (),
        output=len(answer),
        **fields,
    )


def reads(cache, *requests):
    return [cache.charge(request).cache_read for request in requests]


A, B, C, D = ("a" * 200, "b" * 200, "c" * 200, "d" * 200)


class TestDeepSeek:
    def test_a_common_prefix_is_persisted_by_the_second_that_has_it(self):
        assert reads(DeepSeek(ids), said(A, B), said(A, C), said(A, D)) == [0, 0, 128]

    def test_input_and_answer_are_units(self):
        first = said(A, B, answer=C)
        assert reads(DeepSeek(ids), first, said(A, B, C, D)) == [0, 512]  # floor128(400 + 200)
        assert reads(DeepSeek(ids), replace(first, answer=()), said(A, B, C, D)) == [0, 384]  # floor128(400)

    def test_intervals(self):
        assert reads(DeepSeek(ids, interval=128), said(A, B), said(A, C)) == [0, 128]

    def test_the_unit_is_a_parameter(self):
        assert reads(DeepSeek(ids, unit=1), said("abcd"), said("abcdx"), said("abcdy")) == [0, 4, 4]


class TestVLLM:
    def test_full_blocks_only(self):
        assert reads(VLLM(ids, 4), said("0123456789", "abcdef"), said("0123456789", "ghijkl")) == [0, 8]

    def test_the_last_token_is_always_computed(self):
        assert reads(VLLM(ids, 4), said("abcdefgh"), said("abcdefgh"), said("abcdefghi")) == [0, 4, 8]

    def test_the_least_recently_used_block_goes_the_tail_first(self):
        cache = VLLM(ids, 4, pool=4)
        assert reads(cache, said("aaaabbbbcccc"), said("xxxx")) == [0, 0]  # takes the one free block
        assert reads(cache, said("yyyy")) == [0]  # takes the tail of the first
        assert reads(cache, said("aaaabbbbcccc")) == [8]

    def test_a_request_that_does_not_fit(self):
        with pytest.raises(ValueError, match="the pool of 2 blocks has 2 free, and the request needs 3"):
            VLLM(ids, 4, pool=2).charge(said("aaaabbbbc"))

    def test_running_requests_hold_their_blocks(self):
        cache = VLLM(ids, 4, pool=3)
        cache.charge(said("aaaabbbb", completed_at=10.0))
        with pytest.raises(ValueError, match="1 free"):
            cache.charge(said("xxxxyyyy", at=9.0))
        assert cache.charge(said("xxxxyyyy", at=10.0)).cache_read == 0

    def test_answers_are_kept_but_for_their_last_token(self):
        assert reads(VLLM(ids, 4), said("abc", answer="defgh"), said("abcdefghij")) == [0, 4]
        assert reads(VLLM(ids, 4), said("abc", answer="defghi"), said("abcdefghij")) == [0, 8]


class TestSGLang:
    def test_tokens_and_pages(self):
        stream = said("abcdef"), said("abcdxy"), said("abcdef")
        assert reads(SGLang(ids), *stream) == [0, 4, 5]
        assert reads(SGLang(ids, page_size=2), *stream) == [0, 4, 4]

    def test_the_least_recently_used_leaf_goes(self):
        cache = SGLang(ids, capacity=8)
        assert reads(cache, said("abcd"), said("xyzw"), said("abcd"), said("mnop")) == [0, 0, 3, 0]
        assert reads(cache, said("abcd"), said("xyzw")) == [3, 0]
        assert cache.size <= 8

    def test_answers(self):
        assert reads(SGLang(ids), said("abc", answer="def"), said("abcdefg")) == [0, 5]


class TestLlamaCpp:
    def test_one_slot_keeps_one_prompt(self):
        assert reads(LlamaCpp(ids), said("abcd"), said("abcdef"), said("xy"), said("abcd")) == [0, 4, 0, 0]

    def test_one_token_less_only_where_the_whole_prompt_matches(self):
        assert reads(LlamaCpp(ids), said("abcd"), said("abcd"), said("abc"), said("abcx")) == [0, 3, 2, 3]

    def test_slots(self):
        assert reads(LlamaCpp(ids, slots=2), said("abcd"), said("wxyz"), said("abcde"), said("wxyz")) == [0, 0, 4, 3]

    def test_after_an_answer_of_k_tokens_the_slot_holds_k_minus_one(self):
        assert reads(LlamaCpp(ids), said("abc", answer="def"), said("abc", "def", "g")) == [0, 5]


ENGINES = [
    lambda: VLLM(ids, 4),
    lambda: VLLM(ids, 4, pool=12),
    lambda: SGLang(ids),
    lambda: SGLang(ids, 2, 30),
    lambda: LlamaCpp(ids, 2),
    lambda: DeepSeek(ids, unit=4),
]


@pytest.mark.parametrize("make", ENGINES)
@given(stream=st.lists(st.tuples(st.text("ab", min_size=1, max_size=30), st.text("ab", max_size=6)), max_size=12))
def test_usages_add_up_and_reads_are_common_prefixes(make, stream):
    cache, earlier = make(), []
    for prompt, answer in stream:
        usage = cache.charge(said(prompt, answer=answer))
        assert usage == Usage(len(prompt) - usage.cache_read, usage.cache_read, output=len(answer))
        assert usage.cache_read == 0 or any(text.startswith(prompt[: usage.cache_read]) for text in earlier)
        earlier.append(prompt + answer)


@given(stream=st.lists(st.text("ab", min_size=1, max_size=30), max_size=12))
def test_an_unbounded_tree_reads_the_longest_common_prefix(stream):
    cache, earlier = SGLang(ids), []
    for prompt in stream:
        longest = max((common(prompt[:-1], text) for text in earlier), default=0)
        assert cache.charge(said(prompt)).cache_read == longest
        earlier.append(prompt)


def common(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def test_every_fact_has_its_source():
    assert len(facts()) > 40
    for row in facts():
        assert row.sure in "RSC" and row.source and row.unit and row.date.year >= 2025, row
    keys = [(row.provider, row.name, row.model) for row in facts()]
    assert len(keys) == len(set(keys))
    assert fact("openai", "regime", "gpt-5.5") == "prefix"
    assert fact("openai", "regime", "openai/gpt-5.6-luna") == "breakpoints"
    assert fact("openai", "regime", "gpt-6.1-sol") == "breakpoints"
    assert fact("openai", "regime", "o4-mini-2025-04-16") == "prefix"
