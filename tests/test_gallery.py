"""The committed figures are what the code draws, and what they say is computed."""

from pathlib import Path

import pytest

from warmprefix import calibrate, gallery
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
