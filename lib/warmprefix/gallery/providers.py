"""The figures of the providers' caches: for each its numbers, its drawing, its alt text and its caption."""

from collections.abc import Sequence
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from warmprefix.burstlaw import law, names
from warmprefix.caches.anthropic import FIVE_MINUTES, ONE_HOUR
from warmprefix.calibrate import SEED, Sample
from warmprefix.figures import Drawing, Style
from warmprefix.lifetimes import FATES, bills, fates, month, search, sessions, settings, sums
from warmprefix.placement import everywhere, named
from warmprefix.prices import stamp
from warmprefix.providers import PROVIDERS, Provider, bill, idle_evictions, steps_of
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES

SESSIONS, MENTIONS, IDLE, MONTH_SEED = 6, 30, 1800.0, 11
PANELS = ("ideal prefix", "Anthropic 5m", "Anthropic 1h", "OpenAI to 5.5", "OpenAI from 5.6", "DeepSeek")
DRAWN: dict[str, Any] = {"sessions": SESSIONS, "mentions": MENTIONS, "idle": IDLE, "seed": SEED}
MONTHLY = ("window", "watermark", "status-tail", "unstable", "memoryless")


def drawings(sample: Sample, blocks: Blocks) -> list[Drawing]:
    """The figures of notebook 60 with its published parameters."""
    drawn = sessions([law(name) for name in names()], SESSIONS, MENTIONS, SEED)
    table = bills(drawn, settings(), ["watermark"], blocks)
    costs = month(law("meeting"), 20, 20, MONTH_SEED, settings(), MONTHLY, blocks)
    return [
        strategies_figure(strategies(sample, blocks), IDLE),
        lifetimes_figure(sums(table, ["law", "provider"]), **DRAWN),
        fates_figure(fates(table), **DRAWN),
        placements_figure(search(drawn, blocks), **DRAWN),
        month_figure(costs, "meeting", "claude-sonnet-4-5"),
    ]


def strategies(
    sample: Sample, blocks: Blocks, providers: Sequence[Provider] = PROVIDERS, idle: float = IDLE
) -> pd.DataFrame:
    """Every named strategy over the calibrated channel's clock under every provider: `lifetimes.sums` of the bills."""
    gone = idle_evictions(sample.channel, sample.mentions, idle)
    found = []
    for name, strategy in STRATEGIES.items():
        steps = {
            order: steps_of(sample.channel, sample.mentions, strategy, order, blocks, sample.setting, gone)
            for order in {provider.order for provider in providers}
        }
        found += [bill(steps[provider.order], name, provider, blocks, sample.setting) for provider in providers]
    return sums(pd.concat(found, ignore_index=True).assign(session=0), ["strategy", "provider"])


def strategies_figure(table: pd.DataFrame, idle: float) -> Drawing:
    """`60-strategies`: what each strategy costs under each provider, as a multiple of no caching."""
    data = table[table["provider"].isin(PANELS)][["strategy", "provider", "cost", "read"]]
    cost, read = (data.set_index(["strategy", "provider"])[name] for name in ("cost", "read"))
    above = data[(data["cost"] > 1) & (data["provider"] != PANELS[0])]
    return Drawing(
        "60-strategies",
        _draw_strategies,
        data=data,
        alt=f"Bars of the cost of {data['strategy'].nunique()} strategies under {len(PANELS)} caches, as multiples of "
        f"no caching; {len(above)} bars exceed 1.",
        caption=f"The calibrated channel on clock time, its process ended after {idle / 60:g} idle minutes: cost with "
        "the cache as a multiple of the cost without. For the watermark the ideal prefix promises "
        f"{cost['watermark', PANELS[0]]:.2f}, since it reads {read['watermark', PANELS[0]]:.0%} of the input; with "
        f"five-minute entries it is {read['watermark', PANELS[1]]:.0%} and {cost['watermark', PANELS[1]]:.2f}, with "
        "one-hour entries "
        f"{read['watermark', PANELS[2]]:.0%} and {cost['watermark', PANELS[2]]:.2f}. {len(above)} bars lie above 1: "
        f"there the cache costs more than none. Prices: {stamp()}.",
        parameters={"idle": idle},
        seeds=[SEED],
        height=430,
    )


def _draw_strategies(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    order = list(dict.fromkeys(data["strategy"]))
    most = float(data["cost"].max())
    for i, (axes, provider) in enumerate(
        zip(canvas.subplots(2, 3, sharex=True, sharey=True).flat, PANELS, strict=True)
    ):
        costs = data[data["provider"] == provider].set_index("strategy")["cost"].reindex(order)
        for place, value in enumerate(costs):
            fill = look.fill("uncached" if value > 1 else "cached") | {"label": None}
            axes.barh(place, value, height=0.7, hatch="////" if value > 1 else None, **fill)
            _write(axes, value + 0.04, place, f"{value:.2f}", look, ha="left")
        axes.axvline(1.0, color=look.ink, linestyle="--", linewidth=1)
        axes.set_title(provider, fontsize=9, color=look.ink)
        axes.set_xlim(0, most * 1.22)
        axes.set_yticks(range(len(order)), order)
        _sideways(axes)
        if i == 0:
            axes.invert_yaxis()
    canvas.supxlabel("cost (multiple of no caching)", fontsize=9, color=look.ink)


def lifetimes_figure(table: pd.DataFrame, *, sessions: int, mentions: int, idle: float, seed: int) -> Drawing:
    """`60-lifetimes`: what a lifetime costs where channels pause as public ones do."""
    data = table[["law", "provider", "cost", "low", "high", "read", "pings"]]
    best = data.loc[data.groupby("law", sort=False)["cost"].idxmin()].set_index("law")
    said = "; ".join(
        f"{name}: {row.provider} at {row.cost:.2f}"
        if row.cost < 1
        else f"{name}: no caching, since even {row.provider} costs {row.cost:.2f}"
        for name, row in best.iterrows()
    )
    return Drawing(
        "60-lifetimes",
        _draw_lifetimes,
        data=data,
        alt=f"For {len(best)} burst laws, the cost of {data['provider'].nunique()} ways to cache, no caching being 1.",
        caption="The watermark on Anthropic's rules where mentions pause as in public logs; dots are all sessions "
        f"together, bars the 5-95 % range of single ones. Cheapest by law: {said}. Prices: {stamp()}.",
        parameters={"sessions": sessions, "mentions": mentions, "idle": idle},
        seeds=[seed],
        height=330,
    )


def _draw_lifetimes(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    laws, order = list(dict.fromkeys(data["law"])), list(dict.fromkeys(data["provider"]))
    for i, (axes, name) in enumerate(
        zip(canvas.subplots(1, len(laws), sharex=True, sharey=True, squeeze=False).flat, laws, strict=True)
    ):
        rows = data[data["law"] == name].set_index("provider").reindex(order)
        for place, row in enumerate(rows.itertuples()):
            hue = look.colour("uncached" if row.cost > 1 else "cached")
            axes.plot([row.low, row.high], [place, place], color=hue, linewidth=4, alpha=0.35, solid_capstyle="butt")
            axes.plot([row.cost], [place], "s" if row.cost > 1 else "o", color=hue, markersize=6)
            _write(axes, row.cost, place - 0.32, f"{row.cost:.2f}", look)
        axes.axvline(1.0, color=look.ink, linestyle="--", linewidth=1)
        axes.set_title(name, fontsize=9, color=look.ink)
        axes.set_yticks(range(len(order)), order)
        axes.set_xlim(0, float(data["high"].max()) * 1.05)
        _sideways(axes)
        if i == 0:
            axes.set_ylim(len(order) - 0.5, -0.7)
    canvas.supxlabel("cost (multiple of no caching)", fontsize=9, color=look.ink)


def fates_figure(table: pd.DataFrame, *, sessions: int, mentions: int, idle: float, seed: int) -> Drawing:
    """`60-process-and-cache`: how often a warm process finds its cache cold, and the other way round."""
    data = table[table["provider"].isin(["5m", "1h"])].melt(["law", "provider"], list(FATES), "fate", "share")
    share = data.set_index(["law", "provider", "fate"])["share"]
    warm = share.xs(FATES[0], level="fate") + share.xs(FATES[1], level="fate")
    lost = (share.xs(FATES[1], level="fate") / warm).unstack("provider").reindex(_laws(data))
    hour = float(lost["1h"].max())
    shared = float(share.xs("1h", level="provider").xs(FATES[2], level="fate").max())
    return Drawing(
        "60-process-and-cache",
        _draw_fates,
        data=data,
        alt="Stacked bars of what became of the process and of the cache, by burst law and lifetime of the entries.",
        caption="A resident process keeps no entry alive. Of the turns that find their process warm, this share finds "
        "a five-minute cache dead: "
        + ", ".join(f"{name} {part:.0%}" for name, part in lost["5m"].items())
        + f". With one-hour entries and a process ended after {idle / 60:g} idle minutes "
        + (f"it is up to {hour:.0%}" if hour else "that does not happen")
        + (", and a cold process may still read the shared prefix." if shared else "."),
        parameters={"sessions": sessions, "mentions": mentions, "idle": idle},
        seeds=[seed],
        height=320,
    )


def _draw_fates(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    looks = dict(zip(FATES, (("read", None), ("write", "////"), ("restored", "...."), ("other", "xxxx")), strict=True))
    bars = list(dict.fromkeys(zip(data["law"], data["provider"], strict=True)))
    share = data.set_index(["law", "provider", "fate"])["share"]
    bars.sort(key=lambda bar: (list(names()).index(bar[0]), bar[1] == "1h"))
    for place, bar in enumerate(bars):
        left = 0.0
        for fate, (hue, hatch) in looks.items():
            value = float(share[(*bar, fate)])
            axes.barh(place, value, left=left, height=0.7, hatch=hatch, **(look.fill(hue) | {"label": None}))
            if value >= 0.04:
                _write(axes, left + value / 2, place, f"{value:.0%}", look)
            left += value
    axes.set_yticks(range(len(bars)), [f"{name}, {lifetime}" for name, lifetime in bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlabel("turns (share)")
    _sideways(axes)
    keys = [Patch(hatch=hatch, **(look.fill(hue) | {"label": fate})) for fate, (hue, hatch) in looks.items()]
    canvas.legend(handles=keys, loc="outside lower center", ncols=2)


def placements_figure(table: pd.DataFrame, *, sessions: int, mentions: int, idle: float, seed: int) -> Drawing:
    """`60-placements`: every placement of markers, found by search, and where the usual ones stand among them."""
    data = table[["law", "provider", "markers", "cost", "read"]].rename(columns={"provider": "placement"})
    best = data.groupby("law", sort=False).first().reindex(_laws(data))
    said = "; ".join(f"{name}: {row.placement} at {row.cost:.2f}" for name, row in best.iterrows())
    free = best["placement"].str.contains("previous 1h, turn 5m").any()
    return Drawing(
        "60-placements",
        _draw_placements,
        data=data,
        alt=f"For each burst law a strip of {data['placement'].nunique()} marker placements by their cost.",
        caption=f"All {data['placement'].nunique()} ways to put markers of five minutes or an hour on four spots. "
        f"Cheapest: {said}."
        + " The odd pair writes at the five-minute price, and the next request's one-hour marker prolongs what was "
        "written, free of charge by the provider's billing rule." * bool(free),
        parameters={"sessions": sessions, "mentions": mentions, "idle": idle},
        seeds=[seed],
        height=350,
    )


def _draw_placements(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    laws = _laws(data)
    shown = {
        named(everywhere(FIVE_MINUTES)): ("four of 5m", "watermark", "o"),
        named(everywhere(ONE_HOUR)): ("four of 1h", "window", "s"),
        "system 5m": ("system alone, 5m", "status tool", "D"),
        "no marker": ("no marker", "other", "X"),
    }
    for place, name in enumerate(laws):
        rows = data[data["law"] == name]
        axes.plot(rows["cost"], [place] * len(rows), "|", color=look.ink, markersize=16, alpha=0.45)
        for placement, (_, hue, marker) in shown.items():
            cost = float(rows.loc[rows["placement"] == placement, "cost"].iloc[0])
            axes.plot([cost], [place], marker, color=look.colour(hue), markersize=7)
        best = rows.iloc[0]
        axes.text(best["cost"], place - 0.2, f"{best['cost']:.2f}: {best['placement']}", va="bottom", color=look.ink)
    handles = [
        axes.plot([], [], marker, color=look.colour(hue), markersize=7, label=label)[0]
        for label, hue, marker in shown.values()
    ]
    axes.set_yticks(range(len(laws)), laws)
    axes.set_ylim(len(laws) - 0.5, -0.8)
    axes.set_xlim(0, float(data["cost"].max()) * 1.05)
    axes.set_xlabel("cost (multiple of no caching)")
    _sideways(axes)
    canvas.legend(handles=handles, loc="outside lower center", ncols=4)


def month_figure(
    table: pd.DataFrame, law_name: str, model: str, idle: float = IDLE, seeds: Sequence[int] = (MONTH_SEED,)
) -> Drawing:
    """`60-month`: a month of a channel in money, by strategy and way to cache; a log of one's own has no seeds."""
    data = table[["strategy", "provider", "turns", "usd", "usd_off", "first_token"]]
    least, most = (data.loc[pick(data["usd"])] for pick in (pd.Series.idxmin, pd.Series.idxmax))
    return Drawing(
        "60-month",
        _draw_month,
        data=data,
        alt=f"Bars of the monthly cost of {data['strategy'].nunique()} strategies by way to cache, in US dollars.",
        caption=f"A month of a channel ({law_name}, {int(data['turns'].iloc[0]):,} mentions) on {model}: from "
        f"${least['usd']:,.2f} ({least['strategy']}, {least['provider']}) to ${most['usd']:,.2f} ({most['strategy']}, "
        f"{most['provider']}); bars without fill are the same without caching. Prices: {stamp()}.",
        parameters={"law": law_name, "model": model, "idle": idle},
        seeds=list(seeds),
        height=360,
    )


def _draw_month(canvas: Canvas, data: pd.DataFrame, look: Style) -> None:
    axes = canvas.subplots()
    strategies, ways = list(dict.fromkeys(data["strategy"])), list(dict.fromkeys(data["provider"]))
    hues = ("watermark", "window", "status tool", "snapshot", "prefix")[: len(ways)]
    height = 0.8 / len(ways)
    off = data.groupby("strategy", sort=False)["usd_off"].first().reindex(strategies)
    reach = 1.1 * float(max(data["usd"].max(), data["usd_off"].max()))
    for j, (way, hue) in enumerate(zip(ways, hues, strict=True)):
        rows = data[data["provider"] == way].set_index("strategy").reindex(strategies)
        places = [i + (j - (len(ways) - 1) / 2) * height for i in range(len(strategies))]
        hatch = (None, "////", "....", "xxxx", "\\\\\\\\")[j]
        axes.barh(places, rows["usd"], height=height, hatch=hatch, **(look.fill(hue) | {"label": way}))
        for place, value, uncached in zip(places, rows["usd"], off, strict=True):
            behind = (
                uncached if 0 <= uncached - value < 0.06 * reach else value
            )  # or the outline would cross the number
            axes.text(behind, place, f" {value:,.2f}", va="center", color=look.ink, fontsize=7)
    axes.barh(
        range(len(strategies)), off, height=0.9, fill=False, edgecolor=look.ink, linewidth=0.9, label="no caching"
    )
    axes.set_yticks(range(len(strategies)), strategies)
    axes.invert_yaxis()
    axes.set_xlim(0, reach)
    axes.set_xlabel("cost of a month (USD)")
    _sideways(axes)
    canvas.legend(loc="outside lower center", ncols=3)


def _laws(data: pd.DataFrame) -> list[str]:
    """The laws of a table in their own order."""
    return [name for name in names() if name in set(data["law"])]


def _write(axes: Axes, x: float, y: float, text: str, look: Style, ha: Literal["left", "center"] = "center") -> None:
    """A number on its ground, whatever it stands on."""
    box = {"facecolor": look.ground, "edgecolor": "none", "pad": 1.0}
    axes.text(x, y, text, ha=ha, va="center", color=look.ink, bbox=box, fontsize=8)


def _sideways(axes: Axes) -> None:
    """The grid of bars that lie."""
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
