"""Pages read back and compaction: what joins the history, what leaves it, and that nothing else changes."""

from dataclasses import replace
from itertools import pairwise

import pytest

from warmprefix import spread, studies
from warmprefix.calibrate import Sample, published
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.history import COMPACTION, PAGE, Paging, compacted, paged, summary_of
from warmprefix.ledger import records
from warmprefix.request import Blocks
from warmprefix.simulate import Step, simulate
from warmprefix.strategies import STRATEGIES, Strategy
from warmprefix.sweep import measure


@pytest.fixture(scope="module")
def sample() -> Sample:
    return published()


def run(sample: Sample, blocks: Blocks, strategy: Strategy = STRATEGIES["watermark"], **knobs: object) -> list[Step]:
    return list(simulate(sample.channel, sample.mentions, strategy, blocks, sample.setting, **knobs))  # type: ignore[arg-type]


def sent(steps: list[Step]) -> list[list[str]]:
    return [[block.key for block in step.request.blocks] for step in steps]


@pytest.mark.parametrize("knobs", [{}, {"evict_at": (9,)}, {"fail_at": (5, 6)}, {"evict_at": (7,), "fail_at": (7, 12)}])
def test_a_limit_out_of_reach_and_a_rate_of_nothing_change_nothing(
    sample: Sample, blocks: Blocks, knobs: dict[str, tuple[int, ...]]
) -> None:
    plain = run(sample, blocks, **knobs)
    same = list(compacted(run(sample, blocks, **knobs), 10**9, 100, blocks))
    idle = list(paged(run(sample, blocks, **knobs), sample.channel, sample.mentions, Paging(0.0), 600, blocks))
    assert sent(same) == sent(idle) == sent(plain)
    assert [step.request.output for step in same] == [step.request.output for step in plain]


def test_no_request_passes_the_limit_and_only_the_prefix_stays_cached(sample: Sample, blocks: Blocks) -> None:
    limit, tokens = 7_000, 500
    steps = list(compacted(run(sample, blocks), limit, tokens, blocks))
    turns = records(steps, sample.channel, sample.mentions, STRATEGIES["watermark"], blocks)
    kinds = [step.kind for step in steps]
    assert 3 < kinds.count(COMPACTION) < 12 and kinds.count("mention") == 30
    prefix = sum(block.tokens for block in steps[0].request.blocks[: -len(steps[0].parts)])
    for number, (step, turn) in enumerate(zip(steps, turns, strict=True)):
        if step.kind == "mention":
            assert turn["total"] + turn["output"] <= limit
        else:
            assert turn["output"] == tokens
            after = turns[number + 1]
            assert after["cached"] == prefix
            assert after["total"] == prefix + tokens + sum(part.tokens for part in steps[number + 1].parts)


def test_compaction_keeps_the_mark_so_no_row_is_sent_again(sample: Sample, blocks: Blocks) -> None:
    plain, cut = run(sample, blocks), list(compacted(run(sample, blocks), 9_000, 500, blocks))
    assert [step.shown for step in cut if step.kind == "mention"] == [step.shown for step in plain]
    assert {step.session for step in cut} == {"native-1"}


def test_the_window_is_compacted_sooner() -> None:
    first = {name: studies.compaction(20_000, 1_000, name, turns=60, seed=4)["first"] for name in studies.STABLE}
    assert first["window"] < first["watermark"]
    assert studies.compaction(10**6, 1_000, "window", turns=60, seed=4)["compactions"] == 0


@pytest.mark.parametrize("tokens", [3, 17, 2_000])
def test_a_summary_has_its_size_and_differs_from_the_next(blocks: Blocks, tokens: int) -> None:
    first, second = (summary_of(tokens, number, blocks).text for number in (1, 2))
    assert blocks.tokenizer.count(first) == blocks.tokenizer.count(second) == tokens
    assert blocks.tokenizer.ids(first)[0] != blocks.tokenizer.ids(second)[0]


def test_an_impossible_summary_and_an_impossible_rate_are_refused(blocks: Blocks) -> None:
    for wrong in (lambda: summary_of(0, 1, blocks), lambda: Paging(1.5), lambda: Paging(0.5, 101)):
        with pytest.raises(InputError) as error:
            wrong()
        assert "\n" not in str(error.value)


def test_who_reads_everything_back_has_seen_everything(sample: Sample, blocks: Blocks) -> None:
    strategy = replace(STRATEGIES["watermark"], limits=Limits(rows=4))
    steps = list(paged(run(sample, blocks, strategy), sample.channel, sample.mentions, Paging(1.0), 600, blocks))
    seen = {row.position for step in steps for row in step.shown}.union(sample.mentions)
    assert set(range(sample.mentions[-1])) <= seen
    full = measure(sample, rows=4, paging=1.0)
    assert (full["unshown"], full["cut_chars"], full["lost_chars"]) == (0, 0, 0)
    assert full["turns"] > 30


def test_a_page_is_a_request_more_and_stays_in_the_history(sample: Sample, blocks: Blocks) -> None:
    strategy = replace(STRATEGIES["watermark"], limits=Limits(rows=4))
    steps = list(paged(run(sample, blocks, strategy), sample.channel, sample.mentions, Paging(1.0), 600, blocks))
    for step, page in pairwise(steps):
        before, after = list(step.request.blocks), list(page.request.blocks)
        assert after[: len(before)] == before, "the conversation only grows"
        if page.kind == PAGE:
            assert after[len(before) :] == list(page.parts) and page.turn == step.turn
            calls = [part for part in page.parts if part.kind == "tool call"]
            assert step.request.output == sum(call.tokens for call in calls)
            assert page.request.output == blocks.tokenizer.count(sample.replies[page.turn - 1])
    replied = blocks.tokenizer.count(sample.replies[0])
    assert steps[-1].request.tokens > run(sample, blocks, strategy)[-1].request.tokens + replied


@pytest.mark.parametrize("rate", [0.25, 0.5, 0.75])
def test_the_rate_is_the_share_of_what_was_missed(sample: Sample, blocks: Blocks, rate: float) -> None:
    def calls(rate: float) -> int:
        strategy = replace(STRATEGIES["watermark"], limits=Limits(rows=4))
        steps = paged(run(sample, blocks, strategy), sample.channel, sample.mentions, Paging(rate), 600, blocks)
        return sum(part.kind == "tool call" for step in steps for part in step.parts)

    assert calls(rate) == int(calls(1.0) * rate) > 0


def test_where_nothing_was_missed_nothing_is_looked_up(sample: Sample) -> None:
    assert measure(sample, rows=None, body=None, fetch=None, paging=1.0)["turns"] == 30


def test_a_long_session_has_the_published_density() -> None:
    sample = spread.long_sample(1, 60)
    assert len(sample.mentions) == len(sample.replies) == 60 and len(sample.channel.messages) == 400
