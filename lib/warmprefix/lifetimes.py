"""Channels that pause as public ones do, and what lifetimes, keep-alive requests and markers are worth on them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from warmprefix.burstlaw import Law
from warmprefix.bursts import draw
from warmprefix.caches.anthropic import FIVE_MINUTES, ONE_HOUR
from warmprefix.caches.facts import fact
from warmprefix.cases import Case
from warmprefix.channel import Channel, mentions
from warmprefix.errors import InputError
from warmprefix.generate import HANDLE, replies
from warmprefix.placement import PREVIOUS, SYSTEM, TOOLS, TURN, Placement, everywhere, named, placements
from warmprefix.providers import CLAUDE, PROVIDERS, Provider, anthropic, bill, idle_evictions, steps_of
from warmprefix.request import Blocks
from warmprefix.simulate import Setting, Step
from warmprefix.strategies import STRATEGIES

MIXED: Placement = ((TOOLS, ONE_HOUR), (SYSTEM, ONE_HOUR), (PREVIOUS, FIVE_MINUTES), (TURN, FIVE_MINUTES))
REPLY = 169  # characters, as the calibrated channel's replies have
DAY = 86_400.0  # seconds


@dataclass(frozen=True)
class Session:
    """A channel with an agent in it: the rows, where the mentions stand, and the surroundings of the agent."""

    law: str
    channel: Channel
    mentions: tuple[int, ...]
    setting: Setting

    def steps(self, strategy: str, order: tuple[str, str], blocks: Blocks, idle: float = 1800.0) -> list[Step]:
        """The turns of a named strategy; the process is ended after so many idle seconds."""
        gone = idle_evictions(self.channel, self.mentions, idle)
        return steps_of(self.channel, self.mentions, STRATEGIES[strategy], order, blocks, self.setting, gone)


def session(law: Law, count: int, rng: np.random.Generator) -> Session:
    """A session of exactly `count` mentions that come as the law has them, agents' own rows left out."""
    rows = 12 * count
    while True:
        channel = draw(law, rows, rng, agent_rows=False)
        where = mentions(channel, [HANDLE])
        if len(where) >= count:
            break
        rows *= 2
    where = where[:count]
    channel = Channel(channel.id, channel.messages[: where[-1] + 1])
    said = replies(count, REPLY, rng)
    return Session(law.name, channel, where, Setting(reply=lambda turn: said[turn - 1]))


def own(case: Case) -> Session:
    """The session of a log, its name in the place of a law's; raises `InputError` where nobody addresses the agent."""
    channel, where = case.read()
    if not where:
        raise InputError(case.source, "", "nobody addresses the agent here", "check mention, mention_id and agent")
    return Session(case.name, channel, where, Setting())


def sessions(laws: Iterable[Law], channels: int, count: int, seed: int) -> list[Session]:
    """So many sessions of each law, with child seeds of one seed."""
    laws = list(laws)
    seeds = np.random.SeedSequence(seed).spawn(len(laws) * channels)
    return [session(laws[i // channels], count, np.random.default_rng(each)) for i, each in enumerate(seeds)]


def settings(model: str = CLAUDE, vendor: str = "anthropic", keep_alive: Sequence[float] = (1680.0,)) -> list[Provider]:
    """The ways to cache on a model, by its vendor; raises `InputError` for an unknown one.

    `keep_alive` are the seconds for which requests keep the cache of five minutes warm; the default ends just before
    the process does.
    """
    if vendor == "anthropic":
        fact("anthropic", "minimum prefix", model)
        warm = [
            anthropic(f"5m, kept warm {seconds / 60:.0f} min", everywhere(FIVE_MINUTES), model, seconds)
            for seconds in keep_alive
        ]
        return [
            anthropic("5m", everywhere(FIVE_MINUTES), model),
            anthropic("1h", everywhere(ONE_HOUR), model),
            anthropic("1h in front, 5m behind", MIXED, model),
            *warm,
        ]
    by_name = {provider.name: provider for provider in PROVIDERS}
    if vendor == "openai":
        breakpoints = fact("openai", "regime", model) == "breakpoints"
        found = [by_name["OpenAI from 5.6" if breakpoints else "OpenAI to 5.5"]]
    else:
        found = [provider for provider in PROVIDERS if provider.vendor == vendor]
    return [replace(provider, model=model) for provider in found]


def bills(
    drawn: Sequence[Session],
    providers: Sequence[Provider],
    strategies: Sequence[str],
    blocks: Blocks,
    idle: float = 1800.0,
) -> pd.DataFrame:
    """One row a turn of every session, strategy and provider: `providers.COLUMNS`, with `law` and `session` before."""
    found = []
    for number, each in enumerate(drawn):
        for strategy in strategies:
            steps = {order: each.steps(strategy, order, blocks, idle) for order in {p.order for p in providers}}
            for provider in providers:
                table = bill(steps[provider.order], strategy, provider, blocks, each.setting)
                table.insert(0, "law", each.law)
                table.insert(1, "session", number)
                found.append(table)
    return pd.concat(found, ignore_index=True)


def sums(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Sums of bills by some of their columns.

    Columns: `turns`, `usd`, `usd_off`, `cost` (a multiple of no caching) with `low` and `high`, the 5 and 95 % points
    over sessions, `read` and `written` (shares of the input), `pings` a turn, and the mean seconds to the first token.
    """
    groups = table.groupby(list(by), sort=False)
    each = table.groupby([*by, "session"], sort=False)[["usd", "usd_off"]].sum(min_count=1)
    cost = (each["usd"] / each["usd_off"]).groupby(list(by), sort=False)
    added = groups[["usd", "usd_off"]].sum(min_count=1)
    return pd.DataFrame(
        {
            "turns": groups.size(),
            **{name: added[name] for name in added},
            "cost": added["usd"] / added["usd_off"],
            "low": cost.quantile(0.05),
            "high": cost.quantile(0.95),
            "read": groups["read"].sum() / groups["total"].sum(),
            "written": (groups["write_5m"].sum() + groups["write_1h"].sum()) / groups["total"].sum(),
            "pings": groups["pings"].mean(),
            "first_token": groups["first_token"].mean(),
        }
    ).reset_index()


def search(
    drawn: Sequence[Session],
    blocks: Blocks,
    strategy: str = "watermark",
    model: str = CLAUDE,
    idle: float = 1800.0,
) -> pd.DataFrame:
    """Every placement of markers on every session: `sums` by law and placement, the cheapest of each law first."""
    providers = [anthropic(named(placement), placement, model) for placement in placements()]
    table = sums(bills(drawn, providers, [strategy], blocks, idle), ["law", "provider"])
    table["markers"] = table["provider"].map({named(p): len(p) for p in placements()})
    return table.sort_values(["law", "cost", "markers"], kind="stable", ignore_index=True)


FATES = (
    "warm process, history read",
    "warm process, nothing read",
    "cold process, shared prefix read",
    "cold process, nothing read",
)


def fates(table: pd.DataFrame) -> pd.DataFrame:
    """What became of each warm or cold process's turn in the cache, as shares of the turns by law and provider."""
    read = table["read"] > 0
    names = np.select([~table["cold"] & read, ~table["cold"], read], FATES[:3], FATES[3])
    shares = pd.crosstab([table["law"], table["provider"]], names, normalize="index")
    return shares.reindex(columns=list(FATES), fill_value=0.0).rename_axis(columns=None).reset_index()


def break_even(read: float, write: float) -> float:
    """The share of requests that must find the entry alive for caching to cost less than none.

    >>> round(break_even(0.1, 1.25), 3), round(break_even(0.1, 2.0), 3)
    (0.217, 0.526)

    Prices are multiples of the input's. It holds where all of a request is read or written.
    """
    return (write - 1) / (write - read)


def alive(table: pd.DataFrame, seconds: float) -> pd.Series:
    """The share of requests that come within so many seconds of the one before, by law."""
    return (table["pause"] <= seconds).groupby(table["law"], sort=False).mean()


def month(
    law: Law,
    mentions_a_day: int,
    days: int,
    seed: int,
    providers: Sequence[Provider],
    strategies: Sequence[str],
    blocks: Blocks,
    idle: float = 1800.0,
) -> pd.DataFrame:
    """What a month of a channel costs: `sums` by strategy and provider, over days of so many mentions each.

    A day starts with a fresh process, and its mentions come as the law has them, however long they take.
    """
    table = bills(sessions([law], days, mentions_a_day, seed), providers, strategies, blocks, idle)
    return sums(table, ["strategy", "provider"])


def month_of(
    of: Session,
    days: float,
    providers: Sequence[Provider],
    strategies: Sequence[str],
    blocks: Blocks,
    idle: float = 1800.0,
) -> pd.DataFrame:
    """What a month of a given channel costs: `sums` by strategy and provider, brought to so many days.

    The days are those on which somebody addresses the agent, as the channel has them on average (UTC).
    """
    table = sums(bills([of], providers, strategies, blocks, idle), ["strategy", "provider"])
    active = len({of.channel.messages[position].created_at // DAY for position in of.mentions})
    return table.assign(**{name: table[name] * days / active for name in ("turns", "usd", "usd_off")})
