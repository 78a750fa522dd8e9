"""The knobs of a session under one's hands: sliders beside the figure and the table that follow them."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import Any

import pandas as pd

from warmprefix import gallery
from warmprefix.calibrate import Sample
from warmprefix.delivery import Limits
from warmprefix.figures import WIDTH, Drawing, svg
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import PLACES, STRATEGIES, Strategy
from warmprefix.watermark import FAITHFUL, STRICT

REFERENCES = ("window", "watermark")
# Where the status line stands is a knob of its own, so the strategies that differ in nothing else are no choices.
BASES = tuple(name for name, strategy in STRATEGIES.items() if strategy.status is None)
_ROWS = {
    "total_input": "all input (tokens)",
    "cached": "of it cached (tokens)",
    "cache_share": "cached share of the input",
    "new_per_warm_turn": "new in a warm turn (tokens)",
    "shown": "rows shown",
    "duplicated": "of them shown before (rows)",
    "unshown": "never shown (rows)",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Where the knobs stand; `evict_at` is the mention before which the process is ended, `None` for never."""

    base: str = "watermark"
    limits: Limits = Limits()
    cursor: str = FAITHFUL
    status: str | None = None
    evict_at: int | None = None

    @property
    def strategy(self) -> Strategy:
        """The strategy chosen, called `chosen`."""
        knobs = {"limits": self.limits, "cursor": self.cursor, "status": self.status}
        return replace(STRATEGIES[self.base], name="chosen", **knobs)  # type: ignore[arg-type]


def attended() -> bool:
    """Whether somebody watches the cell that runs: the front end that sent it can ask a person for input.

    Jupyter's execute request says so itself (`allow_stdin`): an editor's does, that of nbclient, nbconvert or papermill
    does not. Outside of a kernel nobody is there.
    """
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return kernel is not None and bool(kernel.get_parent().get("content", {}).get("allow_stdin"))


def explore(sample: Sample, blocks: Blocks, start: Choice = Choice()) -> Any:
    """The `panel` where somebody can use it, else `None`, which a cell shows as nothing at all."""
    return panel(sample, blocks, start) if attended() else None


def panel(sample: Sample, blocks: Blocks, start: Choice = Choice()) -> Any:
    """An ipywidgets box: the knobs of a `Choice`, standing as in `start`, above the view that follows them."""
    import ipywidgets as widgets

    def pick(label: str, options: Sequence[tuple[str, Any]], value: Any, kind: Any = widgets.SelectionSlider) -> Any:
        # By label alone, since ipywidgets takes a value of None for no choice.
        at = next(name for name, option in options if option == value)
        width = "21em" if kind is widgets.Dropdown else "32em"
        style, layout = {"description_width": "9.5em"}, widgets.Layout(width=width)
        return kind(options=dict(options).keys(), value=at, description=label, style=style, layout=layout)

    limits = start.limits
    options = _options(start, len(sample.mentions))
    choices = {
        "base": pick("strategy", options["base"], start.base, widgets.Dropdown),
        "status": pick("status line", options["status"], start.status, widgets.Dropdown),
        "cursor": pick("cursor", options["cursor"], start.cursor, widgets.Dropdown),
    }
    sliders = {
        "rows": pick("row limit", options["rows"], limits.rows),
        "body": pick("body limit (chars)", options["body"], limits.body),
        "fetch": pick("rows fetched", options["fetch"], limits.fetch),
        "evict_at": pick("evicted at mention", options["evict_at"], start.evict_at),
    }
    knobs = {**choices, **sliders}
    references, shown = _references(sample, blocks), widgets.HTML()
    shown.add_class("jp-RenderedHTMLCommon")  # the notebook's own look of tables

    def follow(_: Any = None) -> None:
        at = {name: dict(options[name])[knob.value] for name, knob in knobs.items()}
        choice = Choice(
            at["base"], Limits(at["rows"], at["body"], at["fetch"]), at["cursor"], at["status"], at["evict_at"]
        )
        shown.value = page(view(sample, blocks, choice, references))

    for knob in knobs.values():
        knob.observe(follow, "value")
    follow()
    columns = [widgets.VBox([*column.values()]) for column in (choices, sliders)]
    box = widgets.VBox([widgets.HBox(columns), shown])
    box.add_class("warmprefix-explorer")
    return box


def _options(start: Choice, mentions: int) -> dict[str, list[tuple[str, Any]]]:
    """What each knob can be set to: labels and values."""
    limits = start.limits
    return {
        "base": [(name, name) for name in BASES],
        "status": [(_place(place), place) for place in PLACES],
        "cursor": [(name, name) for name in (FAITHFUL, STRICT)],
        "rows": _numbers(range(31), limits.rows),
        "body": _numbers(range(0, 2001, 50), limits.body),
        "fetch": _numbers(range(1, 61), limits.fetch),
        "evict_at": [("never", None), *((str(turn), turn) for turn in range(2, mentions + 1))],
    }


def _numbers(usual: range, given: int | None) -> list[tuple[str, int | None]]:
    """The stops of a slider: the usual ones, the given one, and `none` at the end."""
    return [*((str(n), n) for n in sorted({*usual, *([] if given is None else [given])})), ("none", None)]


def _place(place: str | None) -> str:
    """A place with the name of the strategy that is known for it."""
    names = [name for name, strategy in STRATEGIES.items() if place and strategy.status == place]
    return f"{place or 'nowhere'}{f' ({names[0]})' if names else ''}"


def _references(sample: Sample, blocks: Blocks) -> dict[str, pd.DataFrame]:
    return {
        name: ledger(sample.channel, sample.mentions, STRATEGIES[name], blocks, sample.setting) for name in REFERENCES
    }


@dataclass(frozen=True, slots=True)
class View:
    """What the explorer shows of a choice: a figure, and the sums beside those of the published strategies."""

    drawing: Drawing
    sums: pd.DataFrame


def view(sample: Sample, blocks: Blocks, choice: Choice, references: dict[str, pd.DataFrame] | None = None) -> View:
    """The figure and the table of a choice; `references` are the published strategies' tables, as far as at hand."""
    evicted = () if choice.evict_at is None else (choice.evict_at,)
    table = ledger(sample.channel, sample.mentions, choice.strategy, blocks, sample.setting, evict_at=evicted)
    tables = {**(references or _references(sample, blocks)), "chosen": table}
    sums = pd.DataFrame({name: summary(each) for name, each in tables.items()})
    chosen, base = sums["chosen"], sums["watermark"]
    total = f"{chosen['total_input']:,.0f}"
    drawing = Drawing(
        "explorer",
        partial(
            gallery.simulation.draw_cumulative, one_scale=False
        ),  # or a moved knob would hardly be seen on the right
        data=gallery.simulation.cumulative(tables),
        alt=f"Cumulative input and cumulative uncached input by mention; the chosen knobs end at {total} tokens.",
        caption=f"The chosen knobs send {total} tokens, {chosen['total_input'] / base['total_input'] - 1:+.1%} against "
        f"the published watermark. Of them {chosen['cache_share']:.1%} are cached (there {base['cache_share']:.1%}). "
        f"Rows never shown: {chosen['unshown']:,.0f} (there {base['unshown']:,.0f}).",
        parameters={},
        seeds=gallery.simulation.SEEDS,
        height=340,
    )
    return View(drawing, sums.loc[list(_ROWS)].rename(index=_ROWS))


def page(shown: View) -> str:
    """The view as HTML, its figure with the alt text and the caption."""
    picture = base64.b64encode(svg(shown.drawing).encode()).decode()
    table = shown.sums.map(lambda value: f"{value:,.4g}" if abs(value) < 1 else f"{value:,.0f}")
    return (
        f'<figure style="margin:0"><img width="{WIDTH}" alt="{escape(shown.drawing.alt)}" '
        f'src="data:image/svg+xml;base64,{picture}"><figcaption>{escape(shown.drawing.caption)}</figcaption></figure>'
        + table.to_html(border=0).replace("<table", '<table style="margin-left:0"')
    )
