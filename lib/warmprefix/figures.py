"""Figures to publish: one style for every series, and everything that a page needs written from one drawing."""

import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from warmprefix import atomic
from warmprefix.errors import InputError

WIDTH = 720  # pixels: the column of a page
THEMES = ("light", "dark")

# Chosen so that any two hues of a theme stay apart under normal, red-, green- and blue-blind sight and each stands out
# from its ground by 4.5:1, as text has to (a test measures both). A dash and a marker say the same without colour.
_LOOKS: tuple[tuple[str, str, Any, str], ...] = (
    ("#701A09", "#EE3D05", (0, (6, 2)), "s"),  # red, dashed, square
    ("#063B8B", "#3588F8", "solid", "o"),  # blue, solid, circle
    ("#D02081", "#AC6592", (0, (1, 1.5)), "^"),  # pink, dotted, triangle
    ("#236F4E", "#AFFECE", (0, (6, 2, 1, 2)), "D"),  # green, dash-dot, diamond
    ("#89720E", "#FBCD30", (0, (3, 1.5)), "v"),  # yellow, short dashes, triangle down
    ("#067E9B", "#73D6F6", (0, (8, 2, 1, 2, 1, 2)), "P"),  # sky, dash-dot-dot, plus
    ("#3D3D3D", "#A6A6A6", (0, (2, 3)), "X"),  # grey, sparse dots, cross
)
# The same name has the same look in every figure; names of one row share a look, so they never meet in one figure.
_NAMES: tuple[tuple[str, ...], ...] = (
    ("window", "duplicated", "write", "every turn", "status head", "each turn"),
    ("watermark", "cached", "read", "measured", "status tail", "each day", "12 rows"),
    ("unstable", "uncached", "cold", "evicted", "status system", "each minute", "pressure", "few rows", "recommended"),
    ("status tool", "new", "warm", "strict", "deferred", "each hour", "meeting", "some rows", "chosen"),
    ("snapshot", "unshown", "restored", "faithful", "resident", "idle", "forum", "many rows"),
    ("prefix", "system", "tools", "turns", "on join or leave", "community", "all rows"),
    ("published", "band", "other", "limit"),
)
_LOOK_OF = {name: look for look, names in zip(_LOOKS, _NAMES, strict=True) for name in names}
_GROUNDS = {"light": ("#FFFFFF", "#1F2328", "#D0D7DE"), "dark": ("#0D1117", "#E6EDF3", "#30363D")}


@dataclass(frozen=True, slots=True)
class Style:
    """A theme: its `ground`, `ink` (text and axes) and `faint` (grid) colours, and a look for every series name."""

    theme: str
    ground: str
    ink: str
    faint: str

    def colour(self, name: str) -> str:
        """The hue of the series `name`; raises `InputError` for a name that has none."""
        return self._look(name)[THEMES.index(self.theme)]

    def line(self, name: str) -> dict[str, Any]:
        """Keywords of `Axes.plot` for the series `name`: its hue, dash and marker."""
        _, _, dash, marker = self._look(name)
        return {"color": self.colour(name), "linestyle": dash, "marker": marker, "label": name}

    def fill(self, name: str) -> dict[str, Any]:
        """Keywords of `Axes.bar` or `Axes.fill_between` for the series `name`: its hue, edged by the ground."""
        return {"facecolor": self.colour(name), "edgecolor": self.ground, "linewidth": 0.8, "label": name}

    def _look(self, name: str) -> tuple[str, str, Any, str]:
        try:
            return _LOOK_OF[name]
        except KeyError:
            known = ", ".join(_LOOK_OF)
            raise InputError("", f"series {name}", "has no look", f"give it one in figures, or use: {known}") from None


def style(theme: str) -> Style:
    """The style of the theme `light` or `dark`.

    >>> style("light").colour("window") == style("light").colour("watermark")
    False
    """
    return Style(theme, *_GROUNDS[theme])


Draw = Callable[[Canvas, pd.DataFrame, Style], None]


@dataclass(frozen=True, slots=True)
class Figure:
    """A saved figure: where its files are. A notebook shows the light picture."""

    slug: str
    folder: Path
    alt: str
    caption: str

    def path(self, ending: str) -> Path:
        """The file with that ending: `light.svg`, `dark.svg`, `light.png`, `dark.png`, `csv` or `json`."""
        return self.folder / f"{self.slug}.{ending}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self.path("light.svg").read_text(encoding="utf-8"), "text/plain": self.alt}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure before it is saved: the function that draws it, its numbers, and what a page says of it.

    `draw(figure, data, style)` draws onto an empty figure; `height` is in pixels, the width is 720.
    """

    slug: str
    draw: Draw
    data: pd.DataFrame
    alt: str
    caption: str
    parameters: Mapping[str, Any]
    seeds: Sequence[int]
    height: int = 405


def save(drawing: Drawing, folder: str | Path, *, png: bool = True) -> Figure:
    """Draw for both themes with the one function and write all that a page needs.

    Writes `slug.light.svg`, `slug.dark.svg`, the same as PNG at twice the size (unless `png` is false), `slug.csv`
    (exactly the plotted numbers) and `slug.json` (alt, caption, parameters, seeds) into `folder`. The same input gives
    the same bytes. Raises `InputError` where data, alt or caption is missing, and writes nothing unless everything
    could be drawn.
    """
    missing = {"data": drawing.data.empty, "alt": not drawing.alt.strip(), "caption": not drawing.caption.strip()}
    for field in (field for field, is_missing in missing.items() if is_missing):
        raise InputError(drawing.slug, field, "is empty", "a figure is published with data, alt text and caption")
    about = {
        "alt": drawing.alt,
        "caption": drawing.caption,
        "parameters": dict(drawing.parameters),
        "seeds": list(drawing.seeds),
    }
    files: dict[str, bytes] = {
        "csv": drawing.data.to_csv(index=False, float_format="%.10g", lineterminator="\n").encode(),
        "json": (json.dumps(about, ensure_ascii=False, indent=2, default=_plain) + "\n").encode(),
    }
    for theme in THEMES:
        files |= {f"{theme}.{kind}": body for kind, body in _drawn(drawing, style(theme), png)}
    figure = Figure(drawing.slug, Path(folder), drawing.alt, drawing.caption)
    for ending, body in files.items():
        atomic.write_bytes(figure.path(ending), body)
    return figure


def svg(drawing: Drawing, theme: str = "light") -> str:
    """The picture for one theme as SVG text, saved nowhere."""
    ((_, body),) = _drawn(drawing, style(theme), png=False)
    return body.decode()


def _plain(value: Any) -> Any:
    """What JSON does not know: numpy's numbers and arrays, and anything with a name of its own."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _drawn(drawing: Drawing, look: Style, png: bool) -> Iterator[tuple[str, bytes]]:
    with _rules(look):
        # An SVG's points are 1/72 inch and a page's pixels 1/96 inch; so 7.5 inches are 720 pixels.
        canvas = Canvas(figsize=(WIDTH / 96, drawing.height / 96), layout="constrained")
        drawing.draw(canvas, drawing.data.copy(), look)
        for kind, options in [("svg", {"Date": None, "Creator": None}), ("png", {"Software": None})][: 1 + png]:
            body = io.BytesIO()
            canvas.savefig(body, format=kind, dpi=192, metadata=options)
            yield kind, body.getvalue()


@contextmanager
def _rules(look: Style) -> Iterator[None]:
    """matplotlib's own defaults with this style on them, whatever the user's settings say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "axes.axisbelow": True,
                "axes.edgecolor": look.ink,
                "axes.facecolor": look.ground,
                "axes.grid": True,
                "axes.grid.axis": "y",
                "axes.labelcolor": look.ink,
                "axes.spines.right": False,
                "axes.spines.top": False,
                "figure.facecolor": look.ground,
                "font.family": "DejaVu Sans",  # comes with matplotlib, so it is there and the same everywhere
                "font.size": 9,
                "grid.color": look.faint,
                "hatch.color": look.ground,
                "legend.frameon": False,
                "lines.linewidth": 1.8,
                "lines.markersize": 4,
                "savefig.facecolor": look.ground,
                "svg.fonttype": "path",
                "svg.hashsalt": "warmprefix",
                "text.color": look.ink,
                "xtick.color": look.ink,
                "ytick.color": look.ink,
            }
        )
        yield


def name_axes(axes: Axes, x: tuple[str, str], y: tuple[str, str]) -> None:
    """Label both axes as `quantity (unit)`; raises `InputError` where either is missing."""
    for put, (quantity, unit) in ((axes.set_xlabel, x), (axes.set_ylabel, y)):
        if not quantity or not unit:
            raise InputError(
                "", f"axis {quantity or unit}", "needs a quantity and a unit", "a count's unit is its noun"
            )
        put(f"{quantity} ({unit})")


def from_zero(axes: Axes) -> None:
    """Start the y axis at zero and write its large numbers with commas, as sums of tokens need it."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")


def label_ends(axes: Axes, ends: Mapping[str, float], look: Style, texts: Mapping[str, str] | None = None) -> None:
    """Write each series' name, or its text in `texts`, in its hue beside its last value `ends[name]`; none overlap.

    Call it last: the labels are placed for the limits and the size that the axes have by then.
    """
    canvas = axes.get_figure(root=True)
    assert canvas is not None
    canvas.draw_without_rendering()  # the layout decides how high the axes are
    names = sorted(ends, key=lambda name: (ends[name], name))
    size = matplotlib.rcParams["font.size"]
    step = 1.25 * size / 72 * canvas.dpi / axes.bbox.height
    to_axes = axes.transData + axes.transAxes.inverted()
    wanted = [float(to_axes.transform((axes.get_xlim()[1], ends[name]))[1]) for name in names]
    for name, height in zip(names, spread(wanted, step), strict=True):
        text = (texts or {}).get(name, name)
        axes.text(1.01, height, text, transform=axes.transAxes, va="center", color=look.colour(name), fontsize=size)


def spread(wanted: Sequence[float], step: float) -> list[float]:
    """Ascending places at least `step` apart and as near to the ascending `wanted` ones as least squares can be.

    >>> spread([0.0, 0.0, 1.0], 0.5)
    [-0.25, 0.25, 1.0]
    """
    # Without i * step, "at least a step apart" is "not descending": pool what descends and give the pool its mean.
    pools: list[list[float]] = []
    for index, place in enumerate(wanted):
        pools.append([place - index * step])
        while len(pools) > 1 and _mean(pools[-2]) > _mean(pools[-1]):
            last = pools.pop()
            pools[-1] += last
    flat = [_mean(pool) for pool in pools for _ in pool]
    return [place + index * step for index, place in enumerate(flat)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def picture(slug: str, folder: str | Path = "figures") -> str:
    """HTML that shows a saved figure in the reader's own light or dark theme, with its alt text and caption.

    Raises `InputError` where the figure was not saved.
    """
    path = Path(folder) / f"{slug}.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(path, "", "no such figure", "save it first, or check its name") from None
    base = escape((Path(folder) / slug).as_posix())
    return (
        "<figure>\n  <picture>\n"
        f'    <source media="(prefers-color-scheme: dark)" srcset="{base}.dark.svg">\n'
        f'    <img src="{base}.light.svg" width="{WIDTH}" alt="{escape(about["alt"])}">\n'
        f"  </picture>\n  <figcaption>{escape(about['caption'], quote=False)}</figcaption>\n</figure>\n"
    )
