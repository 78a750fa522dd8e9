"""The front of settings for one channel as a figure: what is sent against what is left out."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Canvas

from warmprefix.advice import Advice, Outcome, named
from warmprefix.figures import Drawing, Style, label_ends, name_axes
from warmprefix.watermark import FAITHFUL

FRONT, BEST = "front", "recommended"


def front_figure(advice: Advice, channel: str, seed: int, slug: str = "65-front") -> Drawing:
    """Tokens against rows behind `channel_history` for the front, the published setting and the window.

    `channel` is what the caption calls the channel; `seed` is the one that resampled it.
    """
    marked = {"published": advice.published, "window": advice.window}
    if advice.recommended:
        marked[BEST] = advice.recommended
    data = pd.DataFrame(
        [_row(FRONT, outcome) for outcome in advice.front] + [_row(name, each) for name, each in marked.items()]
    )
    best = advice.recommended
    return Drawing(
        slug,
        _draw,
        data=data,
        alt=f"A falling line of {len(advice.front)} settings, from {advice.front[0].behind} rows left out at "
        f"{advice.front[0].tokens:,} tokens to {advice.front[-1].behind} at {advice.front[-1].tokens:,}; the published "
        f"setting leaves out {advice.published.behind} at {advice.published.tokens:,}.",
        caption=f"{channel}: {advice.published.turns} mentions. The input of all requests against the rows that only "
        "channel_history has, or has in full; on the line are the settings that no other beats in both. The published "
        f"setting is {named(advice.published.strategy)}; "
        + (f"recommended is {named(best.strategy)}. " if best else "no other is surely better. ")
        + "Labels: rows/characters/fetched. The axis of tokens does not start at zero.",
        parameters={"price": round(advice.price, 1), "settings": advice.tried},
        seeds=[seed],
        height=360,
    )


def _row(name: str, outcome: Outcome) -> dict[str, object]:
    limits = outcome.strategy.limits
    return {
        "what": name,
        "behind": outcome.behind,
        "tokens": outcome.tokens,
        "missed": outcome.missed,
        "cut": outcome.cut,
        "rows": limits.rows,
        "body": limits.body,
        "fetch": limits.fetch,
        "cursor": outcome.strategy.cursor,
    }


def _draw(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    front = data[data["what"] == FRONT]
    axes.plot(front["behind"], front["tokens"], **look.line("watermark") | {"drawstyle": "steps-pre"})
    ends, texts = {"watermark": float(front["tokens"].iloc[-1])}, {"watermark": "the front"}
    for point in data[data["what"] != FRONT].itertuples():
        line = look.line(point.what) | {"linestyle": "none", "markersize": 9, "clip_on": False, "zorder": 3}
        axes.plot([point.behind], [point.tokens], **line)
        ends[point.what], texts[point.what] = float(point.tokens), f"{point.what}: {_short(point)}"
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    name_axes(axes, ("never shown, or shown cut", "rows"), ("input of all requests", "tokens"))
    label_ends(axes, ends, look, texts)


def _short(point: Any) -> str:
    """A setting as rows / characters / fetched, in the order in which the published one is quoted."""
    limits = "/".join("none" if pd.isna(each) else f"{each:.0f}" for each in (point.rows, point.body, point.fetch))
    return limits if point.cursor == FAITHFUL else f"{limits}, {point.cursor}"
