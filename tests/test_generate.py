"""Every constraint of a plan is met exactly or refused with its reason."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from warmprefix.channel import gaps, mentions
from warmprefix.errors import InputError
from warmprefix.generate import HANDLE, Plan, generate, prose, replies
from warmprefix.tokens import is_segment


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@settings(max_examples=40)  # a plan that is only just impossible costs all its draws
@given(
    messages=st.integers(1, 300),
    people=st.integers(1, 8),
    count=st.integers(0, 40),
    long=st.integers(0, 10),
    lead=st.integers(0, 20),
    gap_min=st.none() | st.integers(0, 3),
    gap_median=st.none() | st.integers(0, 8),
    gap_max=st.none() | st.integers(0, 30),
    beyond=st.none() | st.integers(0, 40),
    seed=st.integers(0, 5),
)
def test_a_plan_is_met_or_refused(seed: int, count: int, **chosen: int) -> None:
    plan = Plan(mentions=count, **chosen)  # type: ignore[arg-type]
    try:
        channel = generate(plan, rng(seed))
    except InputError as refused:
        assert "\n" not in str(refused)
        assume(False)
    rows, where = channel.messages, mentions(channel, [HANDLE])
    between = gaps(where)
    assert (len(rows), len(where)) == (plan.messages, count)
    assert len({row.author for row in rows}) == plan.people
    assert sum(len(row.text) > plan.long_over for row in rows) == plan.long
    assert all(a.created_at < b.created_at for a, b in pairwise(rows))
    if count:
        assert where[0] == plan.lead
    if count > 1:
        for name, want in (("min", plan.gap_min), ("median", plan.gap_median), ("max", plan.gap_max)):
            assert want is None or between[name] == want
        beyond = sum(max(b - a - 1 - plan.row_limit, 0) for a, b in pairwise(where))
        assert plan.beyond is None or beyond == plan.beyond


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"messages": 40}, "more messages"),
        ({"gap_median": 22}, "median"),
        ({"gap_min": 30}, "minimum"),
        ({"beyond": 5}, "longest gap alone"),
        ({"beyond": 10_000}, "more rows lie beyond"),
        ({"messages": 20_000, "mentions": 3_000, "beyond": 2_500}, "in 200 draws"),  # no more work than for a short one
        ({"long": 171}, "free rows"),
        ({"people": 0}, "person"),
        ({"people": 99}, "names for 12 people"),
        ({"messages": 4, "mentions": 0, "long": 0, "beyond": None}, "more people than messages"),
        ({"lead": -5}, "negative"),
        ({"gap_min": -3}, "negative"),
        ({"within": -1.0}, "negative"),
        ({"body_median": 0.0}, "median above zero"),
        ({"long_most": 600}, "longer than"),
        ({"gap_before": {15: 40}}, "fixed gap"),
        ({"gap_before": {31: 3}}, "does not exist"),
        ({"long": 1, "long_at": (1, 2)}, "fixed ones"),
        ({"long_at": (12,)}, "fixed ones"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(chosen: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        generate(Plan(**chosen), rng())  # type: ignore[arg-type]


def test_everybody_writes_and_nobody_twice_in_a_row() -> None:
    for seed in range(40):
        plan = Plan(messages=14, people=12, mentions=0, long=0, beyond=None)
        authors = [row.author for row in generate(plan, rng(seed)).messages]
        assert len(set(authors)) == 12
        assert all(a != b for a, b in pairwise(authors))


def test_fixed_gaps_stand_where_they_were_asked_for() -> None:
    for seed in range(5):
        where = mentions(generate(Plan(gap_before={2: 1, 3: 1, 15: 10}), rng(seed)), [HANDLE])
        assert (where[1] - where[0], where[2] - where[1], where[14] - where[13]) == (2, 2, 11)


def test_gaps_come_in_bursts() -> None:
    """Short gaps follow short ones more often than in a shuffled channel."""
    runs = shuffled = 0
    for seed in range(60):
        order = np.diff(mentions(generate(Plan(), rng(seed)), [HANDLE])) - 1
        mixed = rng(seed).permutation(order)
        runs += int(((order[1:] > 4) == (order[:-1] > 4)).sum())
        shuffled += int(((mixed[1:] > 4) == (mixed[:-1] > 4)).sum())
    assert runs > 1.05 * shuffled


def test_the_same_seed_gives_the_same_channel() -> None:
    assert generate(Plan(), rng(3)) == generate(Plan(), rng(3)) != generate(Plan(), rng(4))


def test_the_agents_replies_can_be_rows() -> None:
    channel = generate(Plan(agent_rows=True), rng())
    agents = [m for m in channel.messages if m.agent]
    assert len(channel.messages) == 230 and len(agents) == 30
    assert all(channel.messages[m.position - 1].text.startswith(HANDLE) for m in agents)
    assert len(mentions(channel, [HANDLE])) == 30


@given(kind=st.sampled_from(["chat", "reply"]), chars=st.integers(1, 900), seed=st.integers(0, 20))
def test_prose_is_about_as_long_as_asked_for(kind: str, chars: int, seed: int) -> None:
    text = prose(rng(seed), kind, chars)
    assert text and text == text.strip() and "{" not in text
    assert abs(len(text) - chars) <= 30 + 0.4 * chars


def test_replies_are_segments() -> None:
    told = replies(200, 120.0, rng())
    assert all(is_segment(reply) for reply in told)
    assert 100 < np.mean([len(reply) for reply in told]) < 140
