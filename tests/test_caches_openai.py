"""OpenAI's two regimes, and the caches that work like the older one."""

from dataclasses import replace

import numpy as np
import pytest

from warmprefix.caches import Usage
from warmprefix.caches.gemini import GeminiExplicit, GeminiImplicit
from warmprefix.caches.openai import OpenAI, overflow
from warmprefix.caches.openai_breakpoints import BOTH, ENDING, EXPLICIT, OpenAIBreakpoints, breakpoints
from warmprefix.errors import InputError
from warmprefix.request import Block, Request


def text(name, tokens, tier="messages"):
    return Block(tier, "text", f"{name}*{tokens}", tokens)


def ids(block):
    """A block's token ids: blocks of one name begin alike, whatever their length."""
    name, _, tokens = block.key.partition("*")
    return [sum(name.encode()) * 1000 + i for i in range(int(tokens))]


def sent(*parts, at=0.0, **fields):
    return Request(parts, at, **fields)


class TestPrefix:
    def test_it_is_rounded_down(self):
        cache = OpenAI(ids)
        assert cache.charge(sent(text("a", 1800))) == Usage(uncached=1800)
        assert cache.charge(sent(text("a", 1800), text("b", 500))) == Usage(uncached=508, cache_read=1792)

    def test_the_prefix_goes_by_tokens_not_by_blocks(self):
        cache = OpenAI(ids)
        cache.charge(sent(text("a", 1500), text("b", 800)))
        assert cache.charge(sent(text("a", 1500), text("b", 400), text("c", 400))).cache_read == 1792
        assert cache.charge(sent(text("a", 1400), text("c", 400))).cache_read == 1280

    @pytest.mark.parametrize(("tokens", "read"), [(1023, 0), (1024, 1024), (1151, 1024), (1152, 1152)])
    def test_the_minimum(self, tokens, read):
        cache = OpenAI(ids)
        cache.charge(sent(text("a", tokens)))
        assert cache.charge(sent(text("a", tokens), text("z", 9))).cache_read == read

    @pytest.mark.parametrize(("settings", "gap", "read"), [("", 600, 2048), ("", 601, 0), ("24h", 86_400, 2048)])
    def test_the_lifetime(self, settings, gap, read):
        cache = OpenAI(ids)
        cache.charge(sent(text("a", 2048), settings=settings))
        assert cache.charge(sent(text("a", 2048), at=gap, settings=settings)).cache_read == read

    def test_any_earlier_request_counts_and_one_in_flight_does_not(self):
        cache = OpenAI(ids)
        for name in "ab":
            cache.charge(sent(text(name, 2000), first_token_at=5.0))
        assert cache.charge(sent(text("a", 2000), at=4.0)).cache_read == 0
        assert cache.charge(sent(text("a", 2000), at=5.0)).cache_read == 1920

    def test_models_and_accounts_share_nothing(self):
        cache = OpenAI(ids)
        cache.charge(sent(text("a", 2048), model="gpt-4o"))
        assert cache.charge(sent(text("a", 2048), model="gpt-4.1")).cache_read == 0
        assert cache.charge(sent(text("a", 2048), model="gpt-4o", scope="other")).cache_read == 0

    def test_overflow_is_off_unless_asked_for_and_seeded(self):
        def reads(**settings):
            cache = OpenAI(ids, **settings)
            return [cache.charge(sent(text("a", 2048), at=float(i))).cache_read > 0 for i in range(60)]

        assert all(reads()[1:])
        some = reads(overflow=overflow(np.random.default_rng(1)))
        assert some == reads(overflow=overflow(np.random.default_rng(1)))
        assert some.count(False) in (3, 4) and all(some[1:15])  # 60 a minute need four machines


class TestBreakpoints:
    def chat(self, *messages, at=0.0, **fields):
        """A system message and then user messages, each an ending."""
        parts = (text("system", 1500, "system"), *messages)
        return sent(*parts, at=at, markers=tuple((i, ENDING) for i in range(len(parts))), **fields)

    def test_append_only_reads_the_whole_last_prompt(self):
        cache = OpenAIBreakpoints()
        assert cache.charge(self.chat(text("a", 300))) == Usage(cache_write_5m=1800)
        assert cache.charge(self.chat(text("a", 300), text("b", 501))) == Usage(cache_read=1800, cache_write_5m=501)

    def test_a_stable_system_message_is_looked_up_but_was_not_written(self):
        cache = OpenAIBreakpoints()
        cache.charge(self.chat(text("a", 300)))
        assert cache.charge(self.chat(text("b", 300))) == Usage(cache_write_5m=1800)
        marked = [replace(self.chat(text(n, 300)), markers=((0, BOTH), (1, ENDING))) for n in "cd"]
        assert cache.charge(marked[0]) == Usage(cache_write_5m=1800)
        assert cache.charge(marked[1]) == Usage(cache_read=1500, cache_write_5m=300)

    def test_extending_the_last_message_loses_its_ending(self):
        cache = OpenAIBreakpoints()
        cache.charge(self.chat(text("a", 300)))
        assert cache.charge(self.chat(text("a", 400))).cache_read == 0

    def test_explicit_breakpoints_alone(self):
        cache = OpenAIBreakpoints()
        request = replace(self.chat(text("a", 300)), markers=((0, EXPLICIT),))
        assert cache.charge(request) == Usage(uncached=300, cache_write_5m=1500)
        assert cache.charge(replace(request, markers=())) == Usage(uncached=1800)
        assert cache.charge(replace(request, at=1.0)) == Usage(uncached=300, cache_read=1500)

    @pytest.mark.parametrize(("settings", "more", "hit"), [({}, 20, 1), ({}, 21, 0), ({"lookback": 80}, 21, 1)])
    def test_how_many_earlier_endings_are_looked_up(self, settings, more, hit):
        cache = OpenAIBreakpoints(**settings)
        cache.charge(self.chat(text("a", 300)))
        later = self.chat(text("a", 300), *(text(f"m{i}", 10) for i in range(more)))
        assert (cache.charge(later).cache_read == 1800) == hit

    def test_the_end_of_the_opening_is_looked_up_from_anywhere(self):
        cache = OpenAIBreakpoints()
        cache.charge(self.chat())
        assert cache.charge(self.chat(*(text(f"m{i}", 10) for i in range(40)))).cache_read == 1500

    def test_at_most_four_are_written_the_latest(self):
        assert breakpoints([0, 7, 9], [1, 2, 3, 4], 4) == [2, 3, 4, 9]
        assert breakpoints([], [0, 1, 2, 3, 4], 4) == [1, 2, 3, 4]
        assert breakpoints([5], [5], 4) == [5]

    @pytest.mark.parametrize(("gap", "read"), [(1800, 1800), (1801, 0)])
    def test_the_lifetime(self, gap, read):
        cache = OpenAIBreakpoints()
        cache.charge(self.chat(text("a", 300)))
        assert cache.charge(self.chat(text("a", 300), at=gap)).cache_read == read

    def test_below_the_minimum_nothing_is_written(self):
        cache = OpenAIBreakpoints()
        request = sent(text("a", 1023), text("b", 1), markers=((0, BOTH), (1, ENDING)))
        assert cache.charge(request) == Usage(cache_write_5m=1024)
        assert cache.charge(replace(request, blocks=request.blocks[:1], markers=((0, BOTH),))) == Usage(uncached=1023)

    def test_overflow(self):
        cache = OpenAIBreakpoints(overflow=overflow(np.random.default_rng(1)))
        reads = [cache.charge(self.chat(text("a", 300), at=float(i))).cache_read > 0 for i in range(60)]
        assert reads.count(False) in (3, 4)


def test_padding_breaks_even_at_221():
    """Padding L tokens to M pays off over N requests when writing M once and reading it beats L at the full price."""
    most, read, write, requests = 1024, 0.1, 1.25, 10

    def padded():
        cache = OpenAIBreakpoints()
        usages = [cache.charge(sent(text("a", most), at=i, markers=((0, ENDING),))) for i in range(requests)]
        return sum(u.cache_read * read + u.cache_write_5m * write for u in usages)

    least = next(length for length in range(most) if length * requests > padded())
    assert least == 221


class TestGemini:
    def test_implicit(self):
        cache = GeminiImplicit(ids)
        cache.charge(sent(text("a", 5001), model="gemini-2.5-pro"))
        assert cache.charge(sent(text("a", 4095), text("b", 9), model="gemini-2.5-pro")).cache_read == 0
        assert cache.charge(sent(text("a", 4097), text("b", 9), model="gemini-2.5-pro")).cache_read == 4097
        with pytest.raises(InputError, match="no minimum prefix of gemini"):
            GeminiImplicit(ids).charge(sent(text("a", 9), model="llama"))

    def test_explicit_is_created_stored_and_ends(self):
        cache = GeminiExplicit(minimum=2048)
        for at in (0.0, 3600.0, 3601.0):
            usage = cache.charge(sent(text("a", 3000), text("b", 100), at=at, markers=((0, "cached"),)))
            assert usage == Usage(uncached=100, cache_read=3000)
        assert cache.created == 6000
        assert cache.token_hours(3601.0 + 1800.0) == pytest.approx(3000 * 1.5)
        assert cache.charge(sent(text("c", 100), markers=((0, "cached"),))) == Usage(uncached=100)
        assert cache.charge(sent(text("c", 100))) == Usage(uncached=100)
