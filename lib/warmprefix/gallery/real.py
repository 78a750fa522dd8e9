"""The figures of real channels: what becomes of their rows, and how near the burst laws come to them."""

from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from warmprefix.delivery import Limits
from warmprefix.figures import Drawing, Style

_PARTS = {"shown": "watermark", "limit": "limit", "cursor": "unstable"}
_SAID = {
    "shown": "shown",
    "limit": "never shown at this row limit",
    "cursor": "hidden by equal or earlier stamps",
}


def lost_rows_figure(data: pd.DataFrame, limits: Limits) -> Drawing:
    """`65-lost-rows`: the rows before the last mention of each case, from the table of `cases.side_by_side`."""
    worst = data.assign(share=(data["limit"] + data["cursor"]) / data["rows"]).sort_values("share").iloc[-1]
    return Drawing(
        "65-lost-rows",
        _draw_lost,
        data=data[["case", "rows", *_PARTS]],
        alt=f"Bars of {len(data)} channels, split into rows shown, beyond the limit, and hidden by the cursor.",
        caption="What becomes of the rows before the last mention under the watermark. The limit alone loses "
        f"{data['limit'].sum() / data['rows'].sum():.0%} of them over all channels; the published faithful cursor "
        f"hides {data['cursor'].sum() / data['rows'].sum():.0%} more, and in {worst['case']} the two together "
        f"{worst['share']:.0%}. The strict cursor hides none. What is missing to 100 % are messages of mentions, sent "
        "in full in their own turns, that no later block repeats.",
        parameters={"limits": asdict(limits)},
        seeds=[],
        height=120 + 26 * len(data),
    )


def _draw_lost(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    left = np.zeros(len(data))
    for part, series in _PARTS.items():
        share = (data[part] - (data["cursor"] if part == "shown" else 0)) / data["rows"]
        fill = look.fill(series) | {"label": _SAID[part], "hatch": "////" if part == "cursor" else None}
        axes.barh(range(len(data)), share, left=left, **fill)
        left += share.to_numpy()
    axes.set_yticks(range(len(data)), [f"{row.case}, {row.rows} rows" for row in data.itertuples()])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("rows before the last mention (share)")
    canvas.legend(loc="outside lower center", ncols=2)


def laws_figure(data: pd.DataFrame, seed: int) -> Drawing:
    """`65-laws`: the public logs' own numbers beside what channels drawn from their laws give (`bursts.compare`)."""
    shares = data[(data["real"] <= 1) & (data["high"] <= 1)].dropna().reset_index(drop=True)
    inside = int(shares["inside"].sum())
    return Drawing(
        "65-laws",
        _draw_laws,
        data=shares,
        alt=f"{len(shares)} statistics of {shares['law'].nunique()} laws, public value and generated band; {inside} "
        "agree.",
        caption="Generated against real. Bars: 5-95 % of batches as large as the public log's; points: the log itself. "
        f"{inside} of {len(shares)} shares and correlations lie inside; the docstring of `warmprefix.bursts` says why "
        "the others do not.",
        parameters={},
        seeds=[seed],
        height=110 + 13 * len(shares),
    )


def _draw_laws(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    places = range(len(data))
    axes.hlines(places, data["low"], data["high"], color=look.colour("band"), linewidth=5)
    axes.plot(data["generated"], places, "|", color=look.ink, markersize=9)
    axes.plot(data["real"], places, "o", color=look.colour("measured"), markersize=4)
    starts = [0, *(b for a, b in pairwise(places) if data["law"][a] != data["law"][b])]
    for start in starts:
        axes.axhline(start - 0.5, color=look.ink, linewidth=0.8)
        axes.text(1.0, start, data["law"][start], ha="right", va="center", color=look.ink, fontweight="bold")
    axes.set_yticks(places, data["statistic"])
    axes.set_ylim(len(data) - 0.5, -0.5)
    axes.set_xlim(min(0.0, float(data["low"].min()) - 0.02), 1)
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share, or correlation (1 is all)")
    keys = [
        Line2D([], [], color=look.colour("measured"), marker="o", linestyle="", label="public log"),
        Line2D([], [], color=look.colour("band"), linewidth=5, label="generated, 5-95 %"),
        Line2D([], [], color=look.ink, marker="|", linestyle="", label="generated, median"),
    ]
    canvas.legend(handles=keys, loc="outside lower center", ncols=3)
