"""Laws, lengths, tokenizers and the closed form."""

import numpy as np
import pandas as pd
import pytest

from warmprefix import calibrate, claims, gallery, spread, vocabularies
from warmprefix.errors import InputError
from warmprefix.figures import svg
from warmprefix.request import Blocks
from warmprefix.simulate import simulate
from warmprefix.strategies import STRATEGIES
from warmprefix.sweep import grid, sweep
from warmprefix.tokens import Tokenizer

each_carrier = pytest.mark.parametrize("name", vocabularies.CARRIERS)


@pytest.mark.parametrize("law", spread.laws())
def test_a_channel_of_every_law_has_thirty_mentions_and_comes_again(law: str) -> None:
    sample = spread.drawn(law, 5)
    spread.drawn.cache_clear()
    assert spread.drawn(law, 5) == sample
    assert len(sample.mentions) == len(sample.replies) == 30
    if law != spread.PUBLISHED_LAW:
        assert sample.mentions[0] == spread.LEAD and sample.mentions[-1] == len(sample.channel.messages) - 1


def test_an_unknown_law_is_refused() -> None:
    with pytest.raises(InputError, match="take one of published"):
        spread.drawn("poisson", 1)


def test_a_channel_of_the_published_law_gives_what_the_claims_measure(blocks: Blocks) -> None:
    told = spread.channel(spread.PUBLISHED_LAW, 2)
    measured = claims.measure(calibrate.sample(2, blocks), blocks)
    assert told == {name: measured[name] for name in spread.FIGURES}


def test_published_figures_are_placed() -> None:
    claim = claims.claim("total.window")
    values = [claim.published * factor for factor in (0.9, 1.0, 1.1, 1.2)]  # type: ignore[operator]
    table = pd.DataFrame([{"law": "x", **dict.fromkeys(spread.FIGURES, value)} for value in values])
    row = spread.placed(table).set_index("figure").loc["total.window"]
    assert row["rank"] == pytest.approx(0.375) and row["inside"]
    assert row["p50"] == pytest.approx(np.percentile(values, 50))
    assert not spread.placed(table.tail(1)).set_index("figure").loc["total.window", "inside"]
    assert gallery.spread.ranks(spread.placed(table)).loc["total.window", "x"] == pytest.approx(0.375)


def test_one_length_at_a_time() -> None:
    table = sweep(spread.scaled, grid(seed=[3], what=("reply", "row", "brief"), factor=(1.0, 4.0)))
    same = table[table["factor"] == 1.0]
    assert same["ratio"].nunique() == same["total"].nunique() == 1, "factor 1 is the same run, whatever is varied"
    longer = table[table["factor"] == 4.0].set_index("what")
    assert (longer["total"] > same["total"].iloc[0]).all()
    assert longer.loc["row", "ratio"] > same["ratio"].iloc[0] > longer.loc["brief", "ratio"]
    with pytest.raises(InputError, match="reply, row, brief"):
        spread.scaled("mood", 1.0, 1)


def test_the_figure_of_one_length_has_one_panel() -> None:
    table = sweep(spread.scaled, grid(seed=[3], what=("row",), factor=(1.0, 4.0)))
    figure = gallery.spread.sensitivity_figure(table)
    assert svg(figure).startswith("<?xml")
    least, most = table["ratio"]
    assert f"rows {least:.2f} to {most:.2f}." in figure.alt and "replies" not in figure.alt


def test_the_closed_form_is_the_sum_of_its_turns() -> None:
    form = spread.ClosedForm(2_000.0, 700.0)
    turns = [2_000 + 700 * n for n in range(1, 31)]
    assert form.total(30) == sum(turns)
    assert form.total(30, [15]) == sum(turns[:14]) + sum(turns[:16])
    assert form.total(30, [1, 31, 15]) == form.total(30, [15]), "before the first and after the last is no eviction"
    fit = spread.fitted(turns, 2_000.0)
    assert fit.growth == pytest.approx(700.0)


def test_the_closed_form_departs_where_the_snapshot_weighs() -> None:
    run = spread.departure(spread.PUBLISHED_LAW, 1, "watermark")
    assert run["turn_1"] > 0.05 and abs(run["turn_30"]) < 0.02 and abs(run["evicted"]) < 0.05
    assert run["growth"] == pytest.approx(run["mean_growth"], rel=0.05)


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "find_spec", lambda name: None)
    assert vocabularies.installed() == ()
    assert "warmprefix[tokenizers]" in vocabularies.missing() and "\n" not in vocabularies.missing()
    vocabularies.encoder.cache_clear()
    with pytest.raises(InputError, match="is not installed"):
        Tokenizer("qwen3.6")
    with pytest.raises(InputError, match="unknown"):
        vocabularies.encoder("gpt-9")


@each_carrier
def test_segments_add_up_under_other_tokenizers_too(name: str) -> None:
    if name not in vocabularies.installed():
        pytest.skip(vocabularies.missing())
    sample, blocks = calibrate.published(), Blocks(Tokenizer(name))
    steps = list(simulate(sample.channel, sample.mentions, STRATEGIES["unstable"], blocks, sample.setting))
    for step in steps[::10]:
        text = "".join(map(blocks.text, step.request.blocks))
        assert len(blocks.tokenizer.ids(text)) == step.request.tokens


def test_deepseek_counts_are_those_of_the_reference() -> None:
    if "deepseek-v4" not in vocabularies.installed():
        pytest.skip(vocabularies.missing())
    # Counted with Hugging Face's tokenizers 0.23.3 and the package's own tokenizer.json.
    text = "a  b\n\n  7c 12345 naïve 日本語かな！\tDon't  😀\r\n-- /x"
    assert len(Tokenizer("deepseek-v4").ids(text)) == 26


@each_carrier
def test_the_ratio_hardly_depends_on_the_tokenizer(name: str) -> None:
    if name not in vocabularies.installed():
        pytest.skip(vocabularies.missing())
    ours, theirs = (spread.tokenized(each, spread.PUBLISHED_LAW, 4) for each in ("cl100k_base", name))
    assert ours["total"] != theirs["total"]
    for ratio in ("window : watermark, total", "cached share, watermark"):
        assert theirs[ratio] == pytest.approx(ours[ratio], rel=0.05)
