"""The committed figures are what the code draws, and what they say is computed."""

from pathlib import Path

import pytest

from warmprefix import calibrate, cases, gallery, lifetimes, studies
from warmprefix.burstlaw import law, names
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.figures import save
from warmprefix.request import Blocks
from warmprefix.tokens import Tokenizer
from warmprefix.watermark import STRICT

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    for drawing in gallery.published.drawings():
        save(drawing, folder, png=False)
    return folder


def test_the_committed_figures_are_current(drawn: Path) -> None:
    names = sorted(path.name for path in drawn.iterdir())
    assert names == sorted(path.name for path in (ROOT / "figures").iterdir())
    stale = [name for name in names if (drawn / name).read_bytes() != (ROOT / "figures" / name).read_bytes()]
    assert not stale, "make figures"


@pytest.mark.parametrize("evict_at", [0, 31])
def test_there_is_no_figure_of_an_eviction_that_never_comes(evict_at: int) -> None:
    with pytest.raises(InputError, match="there are 30 mentions"):
        gallery.simulation.eviction_figure(calibrate.published(), Blocks(Tokenizer()), evict_at)


def test_figures_of_a_turned_knob_say_so() -> None:
    sample, blocks, limits = calibrate.published(), Blocks(Tokenizer()), Limits(6, 100, 20)
    priced = gallery.simulation.ablation(sample, blocks, limits, STRICT, 9_000)
    for figure in (
        gallery.simulation.cumulative_figure(gallery.simulation.runs(sample, blocks), limits, STRICT),
        gallery.simulation.ablation_figure(priced, limits, STRICT, 9_000),
        gallery.simulation.eviction_figure(sample, blocks, 7, limits, STRICT),
    ):
        told = dict(figure.parameters)
        assert (told["limits"], told["cursor"]) == ({"rows": 6, "body": 100, "fetch": 20}, "strict")
        assert told.get("context_limit", 9_000) == 9_000 and told.get("evict_at", 7) == 7


def test_the_figures_of_the_providers_say_which_channels_they_are_of() -> None:
    blocks, knobs = Blocks(Tokenizer()), {"sessions": 1, "mentions": 8, "idle": 7200.0}
    drawn = lifetimes.sessions([law(name) for name in names()], 1, 8, 5)
    table = lifetimes.bills(drawn, lifetimes.settings(), ["watermark"], blocks, 7200.0)
    fates = gallery.providers.fates_figure(lifetimes.fates(table), **knobs, seed=5)
    for figure in (
        fates,
        gallery.providers.lifetimes_figure(lifetimes.sums(table, ["law", "provider"]), **knobs, seed=5),
    ):
        assert (dict(figure.parameters), list(figure.seeds)) == (knobs, [5])
    assert "after 120 idle minutes" in fates.caption
    late = table[(table["provider"] == "1h") & ~table["cold"] & (table["read"] == 0)]
    assert len(late) and "that does not happen" not in fates.caption, "an hour's entry dies where a process waits two"


def test_the_figures_of_the_limits_name_the_strategy() -> None:
    table = studies.limits([calibrate.published()], (12, None), (600, None), (30,), "window")
    figure = gallery.knobs.limits_figure(table, strategy="window")
    assert figure.parameters["strategy"] == "window" and "(window, 1 channel)" in figure.caption


def test_the_rows_that_are_lost_are_lost_at_some_limit() -> None:
    table = cases.side_by_side(cases.listed(ROOT / "tests/samples/cases.toml")[:1], Blocks(Tokenizer()), Limits(3))
    figure = gallery.real.lost_rows_figure(table, Limits(3))
    assert figure.parameters["limits"] == {"rows": 3, "body": 600, "fetch": 30}
