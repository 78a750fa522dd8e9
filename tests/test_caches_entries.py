"""Entries refreshed when they are looked at, beside the obvious way that refreshes them all at every read."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmprefix.caches import entries as module
from warmprefix.caches.entries import EXACT, PATH, Entries, Entry
from warmprefix.caches.prefixes import Prefixes
from warmprefix.request import Block, Request


@dataclass
class Obvious:
    """The same rules without a thought of time: every read walks its whole path."""

    rule: str
    entries: dict = field(default_factory=dict)

    def live(self, path, i, at):
        entry = self.entries.get(path[i])
        return entry if entry is not None and entry.live(at) else None

    def readable(self, path, i, at):
        entry = self.live(path, i, at)
        return entry is not None and entry.readable <= at

    def read(self, path, i, at):
        for j in range(i + 1) if self.rule == PATH else [i]:
            if entry := self.live(path, j, at):
                entry.used = at

    def prolong(self, path, i, at, lifetime):
        if entry := self.live(path, i, at):
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)

    def write(self, path, i, at, lifetime, readable):
        if entry := self.live(path, i, at):
            entry.used, entry.lifetime = at, max(entry.lifetime, lifetime)
            entry.readable = min(entry.readable, readable)
        else:
            self.entries[path[i]] = Entry(at, lifetime, readable)


ACTS = st.tuples(
    st.text("ab", min_size=1, max_size=6),  # a request, one letter a block
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["read", "prolong", "write"])), min_size=1, max_size=3),
    st.sampled_from([5.0, 60.0]),
    st.sampled_from([0.0, 1.0, 4.0, 5.0, 6.0, 30.0, 61.0]),
    st.sampled_from([0.0, 3.0]),
)


@pytest.mark.parametrize("rule", [PATH, EXACT])
@pytest.mark.parametrize("many", [1, 2, 32])
@settings(max_examples=300)
@given(acts=st.lists(ACTS, max_size=30))
def test_the_same_as_the_obvious_way(rule, many, acts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MANY", many)
        prefixes, ours, obvious, at = Prefixes(), Entries(rule), Obvious(rule), 0.0
        for letters, what, lifetime, pause, delay in acts:
            at += pause
            path = prefixes.path(Request(tuple(Block("messages", "text", letter, 1) for letter in letters)))
            for i in range(len(path)):
                assert ours.readable(path, i, at) == obvious.readable(path, i, at)
            for i, act in what:
                i = min(i, len(path) - 1)
                for way in (ours, obvious):
                    if act == "read" and way.readable(path, i, at):
                        way.read(path, i, at)
                    elif act == "prolong":
                        way.prolong(path, i, at, lifetime)
                    elif act == "write":
                        way.write(path, i, at, lifetime, at + delay)


def test_a_read_further_down_refreshes_nothing_above_it():
    path = Prefixes().path(Request(tuple(Block("messages", "text", letter, 1) for letter in "abcdef")))
    entries = Entries()
    for i in (1, 4):
        entries.write(path, i, 0.0, 5.0, 0.0)
    entries.read(path, 1, 4.0)
    entries.write(path, 5, 8.0, 5.0, 8.0)
    entries.read(path, 5, 9.0)
    assert [entries.readable(path, i, 9.0) for i in (1, 4, 5)] == [True, False, True]


def test_many_conversations_in_turns_cost_what_their_length_does():
    prefixes, entries, looked = Prefixes(), Entries(), []
    with pytest.MonkeyPatch.context() as patch:
        refresh = module._Reads.refresh
        patch.setattr(module._Reads, "refresh", lambda *found: looked.append(1) or refresh(*found))
        for turn in range(400):
            told = [Block("messages", "text", f"{turn % 100} {i}", 1) for i in range(turn // 100 + 20)]
            path = prefixes.path(Request((Block("system", "text", "one for all", 1), *told)))
            hit = max((i for i in range(len(path)) if entries.readable(path, i, float(turn))), default=-1)
            if hit >= 0:
                entries.read(path, hit, float(turn))
            for i in range(hit + 1, len(path)):
                entries.write(path, i, float(turn), 300.0, float(turn))
    assert len(looked) < 400 * 25
