"""The committed figures are what the code draws, and what they say is computed."""

from pathlib import Path

import pytest

from warmprefix import gallery
from warmprefix.figures import save

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
