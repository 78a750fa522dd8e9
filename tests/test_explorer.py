"""The explorer without a browser: its knobs move the view, its numbers are the ledger's, and nobody there sees none."""

import re
from typing import Any

import pytest

from warmprefix import calibrate, explorer
from warmprefix.calibrate import Sample
from warmprefix.delivery import Limits
from warmprefix.explorer import Choice
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES


@pytest.fixture(scope="module")
def sample() -> Sample:
    return calibrate.published()


def knobs(box: Any) -> dict[str, Any]:
    return {knob.description: knob for column in box.children[0].children for knob in column.children}


def test_the_knobs_are_the_choice(sample: Sample, blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Choice] = []
    monkeypatch.setattr(explorer, "view", lambda sample, blocks, choice, references: seen.append(choice))
    monkeypatch.setattr(explorer, "page", lambda shown: "")
    start = Choice(limits=Limits(rows=None, body=777, fetch=30))
    box = explorer.panel(sample, blocks, start)
    assert seen == [start]
    moved = {"row limit": "3", "body limit (chars)": "none", "rows fetched": "none", "cursor": "strict"}
    moved |= {"evicted at mention": "15", "status line": "before system (unstable)", "strategy": "window"}
    for name, label in moved.items():
        knobs(box)[name].value = label
    assert seen[-1] == Choice("window", Limits(3, None, None), "strict", "before system", 15)
    assert len(seen) == 8, "each move is followed"
    knobs(box)["evicted at mention"].value, knobs(box)["status line"].value = "never", "nowhere"
    assert (seen[-1].evict_at, seen[-1].status) == (None, None)


def test_a_moved_knob_redraws_the_figure_and_the_table(sample: Sample, blocks: Blocks) -> None:
    box = explorer.panel(sample, blocks)
    before = box.children[1].value
    knobs(box)["row limit"].value = "3"
    after = box.children[1].value
    for pattern in ('src="(.*?)"', "<figcaption>(.*?)<", "<tbody>(.*?)</tbody>"):
        assert re.findall(pattern, before, re.DOTALL) != re.findall(pattern, after, re.DOTALL)


def test_the_view_is_the_ledgers(sample: Sample, blocks: Blocks) -> None:
    choice = Choice("window", Limits(5, 100, 20), status="before system", evict_at=15)
    shown = explorer.view(sample, blocks, choice)
    table = ledger(sample.channel, sample.mentions, choice.strategy, blocks, sample.setting, evict_at=[15])
    sums = summary(table)
    assert shown.sums["chosen"].tolist() == [sums[name] for name in explorer._ROWS]
    assert shown.drawing.data["chosen input"].iloc[-1] == sums["total_input"]
    assert f"{sums['total_input']:,} tokens" in shown.drawing.caption
    page = explorer.page(shown)
    assert f"<td>{sums['total_input']:,}</td>" in page and 'alt="Cumulative input' in page


def test_every_strategy_can_be_chosen(sample: Sample) -> None:
    named = {(base, place) for base in explorer.BASES for place in explorer.PLACES}
    for name, strategy in STRATEGIES.items():
        base = "watermark" if strategy.status else name
        assert (base, strategy.status) in named
        chosen = Choice(base, status=strategy.status).strategy
        assert (chosen.omits, chosen.resident, chosen.status) == (strategy.omits, strategy.resident, strategy.status)


def test_there_is_none_where_nobody_can_use_it(sample: Sample, blocks: Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explorer.explore(sample, blocks) is None
    for asked in (True, False):
        kernel = type("Kernel", (), {"get_parent": lambda self, asked=asked: {"content": {"allow_stdin": asked}}})
        shell = type("Shell", (), {"kernel": kernel()})
        monkeypatch.setattr("IPython.get_ipython", shell)
        assert explorer.attended() is asked
