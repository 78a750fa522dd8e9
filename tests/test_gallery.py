"""The committed figures are what the code draws, and what they say is computed."""

from pathlib import Path

import pytest

from warmprefix import calibrate, gallery
from warmprefix.errors import InputError
from warmprefix.figures import save
from warmprefix.request import Blocks
from warmprefix.tokens import Tokenizer

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    for drawing in gallery.drawings():
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
        gallery.eviction_figure(calibrate.published(), Blocks(Tokenizer()), evict_at)
