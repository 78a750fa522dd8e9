"""The figures of the harness: nothing stands on a line or is cut off at an edge."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas

from warmprefix.figures import Drawing, Style, svg
from warmprefix.gallery.harness import bound_figure, threshold_figure, throughput_figure
from warmprefix.gallery.tools import break_even_figure
from warmprefix.harness.subagents import by_bound, throughput

BILLS = [0.90, 0.74, 0.70, 0.71, 0.78, 0.98, 1.42]
THRESHOLDS = [0, 2_500, 5_000, 10_000, 20_000, 40_000, None]


def drawn(drawing: Drawing) -> Canvas:
    """The canvas of a drawing as it is saved."""
    kept = []

    def draw(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
        drawing.draw(canvas, data, look)
        canvas.draw_without_rendering()
        kept.append(canvas)

    svg(replace(drawing, draw=draw))
    return kept[0]


def test_no_count_of_cuts_stands_on_the_line() -> None:
    table = pd.DataFrame(
        {
            "threshold": pd.Series(THRESHOLDS, dtype=object),
            "cuts": [38, 19, 12, 6, 3, 1, 0],
            "usd": BILLS,
            "input": 1e6,
            "fresh": 1e5,
        }
    )
    left = drawn(threshold_figure(table, "Anthropic")).axes[0]
    line = left.transData.transform(left.lines[0].get_xydata())
    along = np.linspace(line[0, 0], line[-1, 0], 500)
    heights = np.interp(along, line[:, 0], line[:, 1])
    boxes = [text.get_window_extent() for text in left.texts]
    assert len(boxes) == len(BILLS)
    for box in boxes:
        assert not any(box.contains(x, y) for x, y in zip(along, heights, strict=True))
    assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])


def test_the_markers_at_the_ends_are_whole() -> None:
    run = pd.DataFrame(
        {
            "activations": [0, 0, 0, 0, 8, 8, 8, 8],
            "placement": ["off", "insert", "append", "inline"] * 2,
            "usd": [1.0, 0.5, 0.5, 0.5, 1.0, 1.4, 1.2, 0.6],
        }
    )
    for drawing in (
        break_even_figure(run, run, "Anthropic"),
        throughput_figure(throughput([5_000, 100_000], [400_000])),
    ):
        for axes in drawn(drawing).axes:
            low, high = axes.get_xlim()
            for line in axes.lines:
                places = np.asarray(line.get_xdata(), float)
                assert low < places.min() and places.max() < high


def test_a_caption_names_what_its_numbers_hang_on() -> None:
    said = throughput_figure(throughput([50_000], [300_000], own=3_000)).caption
    assert "the 3,000 tokens of each request's own do" in said and "it is 100, without 5.7" in said
    drawn_kinds = {"steady": by_bound([0.0, 2.0], np.random.default_rng(7), draws=2)}
    assert bound_figure(drawn_kinds, 7).seeds == [7]
