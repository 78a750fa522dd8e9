"""The generic half of the figures: what is saved, its bytes, and that the palette keeps series apart."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as Canvas

from warmprefix import figures
from warmprefix.errors import InputError

DATA = pd.DataFrame(
    {"turn": [1, 2, 1, 2], "tokens": [100.0, 1 / 3, 120, 300], "strategy": ["window"] * 2 + ["watermark"] * 2}
)
TEXT = {
    "alt": 'Two lines, "window" above',
    "caption": "Input <a turn>",
    "parameters": {"limit": np.int64(12)},
    "seeds": (1,),
}


def draw(canvas: Canvas, data: pd.DataFrame, look: figures.Style) -> None:
    axes = canvas.subplots()
    for name, rows in data.groupby("strategy"):
        axes.plot(rows["turn"], rows["tokens"], **look.line(str(name)))
    figures.name_axes(axes, ("mention", "number"), ("input", "tokens"))
    figures.from_zero(axes)
    figures.label_ends(axes, data.groupby("strategy")["tokens"].last().to_dict(), look)


def save(folder: Path, png: bool = True, **changed: object) -> figures.Figure:
    options = {"data": DATA, **TEXT, **changed}
    return figures.save(figures.Drawing("10-lines", draw, **options), folder, png=png)  # type: ignore[arg-type]


def test_everything_a_page_needs_is_written(tmp_path: Path) -> None:
    saved = save(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(
        f"10-lines.{ending}" for ending in ("csv", "json", "light.svg", "dark.svg", "light.png", "dark.png")
    )
    assert saved.path("csv").read_text() == (
        "turn,tokens,strategy\n1,100,window\n2,0.3333333333,window\n1,120,watermark\n2,300,watermark\n"
    )
    about = json.loads(saved.path("json").read_text())
    assert about == {**TEXT, "parameters": {"limit": 12}, "seeds": [1]}
    light, dark = (saved.path(f"{theme}.svg").read_text() for theme in figures.THEMES)
    assert 'width="540pt"' in light, "540 points are 720 pixels"
    assert figures.style("light").colour("window").lower() in light
    assert figures.style("dark").colour("window").lower() in dark
    assert "<dc:date>" not in light and "<text" not in light
    assert saved._repr_mimebundle_()["image/svg+xml"] == light


def test_pictures_are_twice_the_column_on_an_opaque_ground(tmp_path: Path) -> None:
    saved = save(tmp_path)
    for theme, ground in (("light", "#FFFFFF"), ("dark", "#0D1117")):
        pixels = matplotlib.image.imread(saved.path(f"{theme}.png"))
        assert pixels.shape[:2] == (810, 1440)
        assert pixels[0, 0] == pytest.approx([*to_rgb(ground), 1], abs=0.01)


def test_the_same_input_gives_the_same_bytes_in_another_process_and_under_other_settings(tmp_path: Path) -> None:
    save(tmp_path / "here")
    code = "import sys, pathlib, test_figures\ntest_figures.save(pathlib.Path(sys.argv[1]))"
    (tmp_path / "matplotlibrc").write_text("axes.linewidth: 9\nxtick.major.size: 20\n")
    folders = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code, tmp_path / "there"], env=environment, check=True)
    for name in os.listdir(tmp_path / "here"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes(), name


@pytest.mark.parametrize("field", ["data", "alt", "caption"])
def test_nothing_is_saved_without_data_alt_and_caption(tmp_path: Path, field: str) -> None:
    with pytest.raises(InputError, match=f"10-lines: {field}: is empty"):
        save(tmp_path, **{field: DATA.head(0) if field == "data" else " "})
    assert not os.listdir(tmp_path)


def test_a_drawing_that_fails_leaves_no_files_and_no_settings(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    with pytest.raises(InputError, match="series nobody: has no look"):
        save(tmp_path, data=DATA.assign(strategy="nobody"))
    assert not os.listdir(tmp_path)
    assert dict(matplotlib.rcParams) == before


def test_only_the_vectors_on_request(tmp_path: Path) -> None:
    save(tmp_path, png=False)
    assert not list(tmp_path.glob("*.png")) and len(list(tmp_path.glob("*.svg"))) == 2


def test_a_drawing_cannot_change_what_is_written_as_its_numbers(tmp_path: Path) -> None:
    def spoil(canvas: Canvas, data: pd.DataFrame, look: figures.Style) -> None:
        data["tokens"] = 0

    figures.save(figures.Drawing("10-spoilt", spoil, DATA, **TEXT), tmp_path)  # type: ignore[arg-type]
    assert list(DATA["tokens"]) == [100.0, 1 / 3, 120, 300]


def test_axes_need_units() -> None:
    with pytest.raises(InputError, match="axis input: needs a quantity and a unit"):
        figures.name_axes(Canvas().subplots(), ("mention", "number"), ("input", ""))


def test_end_labels_do_not_overlap_and_stay_in_order() -> None:
    canvas = Canvas(figsize=(7.5, 4), layout="constrained")
    axes = canvas.subplots()
    ends = {"window": 100.0, "watermark": 100.0, "unstable": 101.0, "snapshot": 0.0}
    axes.set_ylim(0, 110)
    figures.label_ends(axes, ends, figures.style("light"), {"window": "window, 12 rows"})
    canvas.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(low.y1 <= high.y0 for low, high in itertools.pairwise(boxes))
    assert [text.get_text() for text in axes.texts] == ["snapshot", "watermark", "window, 12 rows", "unstable"]
    assert all(box.x1 <= canvas.bbox.x1 for box in boxes), "the layout leaves room for them"


def test_picture_shows_the_readers_theme(tmp_path: Path) -> None:
    save(tmp_path)
    snippet = figures.picture("10-lines", tmp_path)
    assert '<source media="(prefers-color-scheme: dark)" srcset="' in snippet
    assert 'alt="Two lines, &quot;window&quot; above"' in snippet
    assert "<figcaption>Input &lt;a turn&gt;</figcaption>" in snippet
    with pytest.raises(InputError, match="no such figure"):
        figures.picture("99-none", tmp_path)


# How colours look to the red-, green- and blue-blind, in linear RGB: Machado, Oliveira and Fernandes, "A
# physiologically based model for simulation of color vision deficiency", 2009, at full severity.
SIGHT = {
    "normal": np.eye(3),
    "red": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "green": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9690]]),
    "blue": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}
# From linear RGB to the OKLab space, in which equal distances look equal: B. Ottosson, 2020.
CONES = np.array([[0.41222, 0.53633, 0.05145], [0.21190, 0.68070, 0.10740], [0.08830, 0.28172, 0.62998]])
LAB = np.array([[0.21045, 0.79362, -0.00407], [1.97800, -2.42859, 0.45059], [0.02590, 0.78277, -0.80868]])


def linear(colour: str) -> np.ndarray:
    values = np.array(to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("theme", figures.THEMES)
def test_series_stay_apart_for_every_kind_of_sight(theme: str) -> None:
    hues = [look[figures.THEMES.index(theme)] for look in figures._LOOKS]
    for sight, matrix in SIGHT.items():
        seen = {hue: LAB @ np.cbrt(CONES @ np.clip(matrix @ linear(hue), 0, 1)) for hue in hues}
        for a, b in itertools.combinations(hues, 2):
            assert np.linalg.norm(seen[a] - seen[b]) > 0.07, f"{a} and {b} look alike to {sight}"
    luminance = np.array([0.2126, 0.7152, 0.0722])
    ground = luminance @ linear(figures.style(theme).ground)
    for hue in (*hues, figures.style(theme).ink):
        low, high = sorted([ground, luminance @ linear(hue)])
        assert (high + 0.05) / (low + 0.05) >= 4.5, f"{hue} is faint"


def test_series_differ_without_colour() -> None:
    for part in (2, 3):
        assert len({str(look[part]) for look in figures._LOOKS}) == len(figures._LOOKS)
