"""Advice for one's own channel: what each setting sends against what it leaves out, and whether a change surely pays.

Two things are weighed. `tokens` is the input of all requests. `behind` counts the rows that an agent would have to page
back for: those that no turn shows, and those that a turn shows cut.

A row behind the block costs what fetching it costs, the `price`. `channel_history` hands out 30 rows a call, and a call
is one more request, which carries the whole conversation again; then the row stands in the conversation as a shown one
does, and every later request carries it. So a row costs the thirtieth part of a request, if pages are always full, and
what a row of the channel costs when it is shown (`fetch_price`). The `cost` of a setting is `tokens + price * behind`,
in input tokens, and its gain is the part of the published setting's cost that it saves. The default takes it that every
row is wanted in the end; whoever thinks that a tenth of them is takes a tenth of the price.

The setting of the least cost is recommended if its gain is surely not zero: over channels resampled from this one, both
settings on the same channel each time, the 5th and the 95th percentile of the gain have to be of one sign. A resampled
channel is made of windows of the channel (a moving-block bootstrap; Künsch 1989, doi:10.1214/aos/1176347265), since
mentions come in bursts. The choice itself is not repeated in each of them, so its own error is not in the interval.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from tqdm import tqdm

from warmprefix.channel import Channel, Message
from warmprefix.delivery import Limits
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.simulate import Setting
from warmprefix.strategies import STRATEGIES, Strategy
from warmprefix.watermark import FAITHFUL, STRICT

PAGE = 30  # rows that one call of channel_history hands out
ROWS = (12, 20, 30, 50, 8, 4, None)  # the published value first: of equal settings the first is kept
BODIES = (600, 1500, 200, None)
FETCHES = (30, 60, 100, None)
CONTEXT = 200_000  # tokens of one request
FEWEST = 8  # mentions that are enough to resample
LONGEST = 120  # mentions of a resampled channel


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one setting does on a channel.

    `tokens` is the input of all requests and `new` what a warm turn's request has of it that no cache holds (a mean,
    `None` without a warm turn); `missed` counts the rows since the first mention that no turn shows or addresses, `cut`
    the rows shown cut and `cut_chars` the characters cut away; `largest` is the largest request in tokens; `carried` is
    the input that shown rows take, in the turn that shows them and in every later one of the same process.
    """

    strategy: Strategy
    turns: int
    tokens: int
    new: float | None
    missed: int
    cut: int
    cut_chars: int
    largest: int
    shown: int
    carried: int

    @property
    def behind(self) -> int:
        """The rows that only `channel_history` has, or has in full."""
        return self.missed + self.cut

    def cost(self, price: float) -> float:
        """Input tokens, with `price` tokens for every row that has to be paged back."""
        return self.tokens + price * self.behind


@dataclass(frozen=True, slots=True)
class Gain:
    """The share of the published setting's cost that another saves: the median and the 5th and 95th percentile."""

    median: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the 90 % interval leaves out zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Advice:
    """What `advise` found.

    `front` holds the settings that no other beats in both tokens and rows behind, the cheapest first; `best` is the one
    of the least cost and `recommended` the same if it surely gains, else `None`; `prices` are the lowest and highest
    price (tokens a row) at which `best` has the least cost; `gain` is `None` with too few mentions; `tried` counts the
    settings that were simulated.
    """

    published: Outcome
    window: Outcome
    front: tuple[Outcome, ...]
    best: Outcome
    recommended: Outcome | None
    gain: Gain | None
    price: float
    prices: tuple[float, float]
    rows: int
    tried: int
    why: str


def advise(
    channel: Channel,
    mentions: Sequence[int],
    blocks: Blocks,
    rng: np.random.Generator,
    setting: Setting | None = None,
    *,
    price: float | None = None,
    session: int = 30,
    resamples: int = 200,
    threads: bool = False,
) -> Advice:
    """The front of settings for a channel, and the one to take if it surely beats the published one.

    `price` is in input tokens a row (`fetch_price` when `None`); a process answers `session` mentions, as many as in
    the published run, before a new one takes its place; `threads` is `Strategy.threads`. The first of `mentions` is
    where the channel begins to count. Raises `ValueError` when there is no mention.
    """
    if not mentions:
        raise ValueError("nobody is addressed, so there is nothing to advise on")

    def measured(strategy: Strategy) -> Outcome:
        return measure(channel, mentions, strategy, blocks, setting, session=session)

    base = replace(STRATEGIES["watermark"], threads=threads)
    tried = [measured(each) for each in tqdm(settings(base, channel), "settings", leave=False, delay=1, disable=None)]
    published = tried[0]
    price = fetch_price(published) if price is None else price
    fitting = [outcome for outcome in tried if outcome.largest <= CONTEXT] or [published]
    best = min(fitting, key=lambda outcome: outcome.cost(price))
    gain = None
    if len(mentions) >= FEWEST:
        gain = resampled_gain(
            channel, mentions, best, published, blocks, rng, setting, price=price, session=session, resamples=resamples
        )
    advice = Advice(
        published,
        measured(replace(base, name="window", omits=STRATEGIES["window"].omits)),
        front(fitting),
        best,
        best if gain and gain.sure else None,
        gain,
        price,
        _prices(best, fitting),
        mentions[-1] - mentions[0] - len(mentions) + 1,
        len(tried),
        "",
    )
    return replace(advice, why=why(advice))


def settings(base: Strategy, channel: Channel) -> list[Strategy]:
    """The settings to try, the published one first; none twice that must do the same on this channel."""
    rows = channel.messages
    longest = max((len(row.text) for row in rows), default=0)
    # Where no clock runs backwards, nothing is deleted and no id comes twice, what is new are the newest rows; then
    # fetching more than are shown changes nothing.
    plain = all(a.created_at <= b.created_at for a, b in pairwise(rows)) and len({row.id for row in rows}) == len(rows)
    plain = plain and all(row.deleted_at is None for row in rows)
    found: dict[tuple[Any, ...], Strategy] = {}
    for cursor, body, fetch, limit in product((FAITHFUL, STRICT), BODIES, FETCHES, ROWS):
        # Of 30 fetched rows one is the addressed one, so a limit of 30 or more is no limit.
        limited = limit if fetch is None else fetch - 1 if limit is None else min(limit, fetch - 1)
        cuts = body if body is not None and body < longest else None
        limits = Limits(limited, body if cuts is not None or body == Limits().body else None, fetch)
        same = (cursor, cuts, limited, None if plain else fetch)
        found.setdefault(same, replace(base, cursor=cursor, limits=limits))
    return list(found.values())


def measure(
    channel: Channel,
    mentions: Sequence[int],
    strategy: Strategy,
    blocks: Blocks,
    setting: Setting | None = None,
    *,
    session: int = 30,
) -> Outcome:
    """What a setting does on a channel, by the ledger of its simulation."""
    evicted = range(session + 1, len(mentions) + 1, session)
    table = ledger(channel, mentions, strategy, blocks, setting, evict_at=evicted)
    warm, requests = table["new"][~table["cold"]], table.groupby("session").cumcount(ascending=False) + 1
    return Outcome(
        strategy,
        turns=len(table),
        tokens=int(table["total"].sum()),
        new=float(warm.mean()) if len(warm) else None,
        missed=int(table["unshown"].iloc[1:].sum()),  # before the first mention nobody had asked
        cut=int(table["cut"].sum()),
        cut_chars=int(table["cut_chars"].sum()),
        largest=int(table["total"].max()),
        shown=int(table["shown"].sum()),
        carried=int((table["row_tokens"] * requests).sum()),
    )


def fetch_price(published: Outcome) -> float:
    """What it costs to page back one row: its part of a request that brings a full page, and to carry it from then."""
    return published.tokens / published.turns / PAGE + published.carried / max(published.shown, 1)


def front(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Those that no other beats in both tokens and rows behind, the cheapest first, one of those that are equal."""
    kept: list[Outcome] = []
    for outcome in sorted(outcomes, key=lambda each: (each.tokens, each.behind)):
        if not kept or outcome.behind < kept[-1].behind:
            kept.append(outcome)
    return tuple(kept)


def _prices(best: Outcome, others: Collection[Outcome]) -> tuple[float, float]:
    """The prices between which `best` has the least cost."""
    more = [each for each in others if each.behind > best.behind]
    less = [each for each in others if each.behind < best.behind]
    low = max(((best.tokens - each.tokens) / (each.behind - best.behind) for each in more), default=0.0)
    high = min(((each.tokens - best.tokens) / (best.behind - each.behind) for each in less), default=float("inf"))
    return max(low, 0.0), high


def resampled(channel: Channel, mentions: Sequence[int], rng: np.random.Generator) -> tuple[Channel, tuple[int, ...]]:
    """A channel made of windows of this one, with its mentions: the opening, then stretches between mentions.

    A window is a run of about the cube root of the mentions, each with the rows since the one before, drawn with
    replacement. It keeps its order, its distances in time (the one before its first row included) and its threads; a
    row that comes again gets another id. At most 120 mentions, so for a longer channel the spread is overstated.
    """
    count = min(len(mentions), LONGEST) - 1
    width = min(max(round(len(mentions) ** (1 / 3)), 1), count)
    starts = rng.integers(1, len(mentions) - width + 1, size=-(-count // width))
    # Of what came before the first mention no setting that is bounded shows more than a page.
    windows = [(max(mentions[0] - 100, 0), mentions[0] + 1)]
    windows += [(mentions[start - 1] + 1, mentions[start + width - 1] + 1) for start in starts.tolist()]
    addressed, used = frozenset(mentions), dict[int, int]()
    rows: list[Message] = []
    where: list[int] = []
    for first, stop in windows:
        shift = rows[-1].created_at - channel.messages[first - 1].created_at if rows else 0.0
        for message in channel.messages[first:stop]:
            copy = used[message.position] = used.get(message.position, -1) + 1
            if message.position in addressed:
                where.append(len(rows))
            rows.append(_again(message, copy, shift))
    return Channel.of(channel.id, rows), tuple(where[: count + 1])


def _again(message: Message, copy: int, shift: float) -> Message:
    root = message.thread_root_id
    return replace(
        message,
        id=f"{message.id}~{copy}" if copy else message.id,
        thread_root_id=f"{root}~{copy}" if root is not None and copy else root,
        created_at=message.created_at + shift,
        edited_at=None if message.edited_at is None else message.edited_at + shift,
        deleted_at=None if message.deleted_at is None else message.deleted_at + shift,
    )


def resampled_gain(
    channel: Channel,
    mentions: Sequence[int],
    best: Outcome,
    published: Outcome,
    blocks: Blocks,
    rng: np.random.Generator,
    setting: Setting | None = None,
    *,
    price: float,
    session: int = 30,
    resamples: int = 200,
) -> Gain:
    """The gain of `best` over `published` on resampled channels, both on the same channel each time."""
    if best.strategy == published.strategy:
        return Gain(0.0, 0.0, 0.0)
    gains = []
    for _ in tqdm(range(resamples), "resampled channels", leave=False, delay=1, disable=None):
        drawn, where = resampled(channel, mentions, rng)
        cost, base = (
            measure(drawn, where, outcome.strategy, blocks, setting, session=session).cost(price)
            for outcome in (best, published)
        )
        gains.append(1 - cost / base)
    low, middle, high = np.percentile(gains, [5, 50, 95]).tolist()
    return Gain(middle, low, high)


def named(strategy: Strategy) -> str:
    """A setting in a few words.

    >>> named(STRATEGIES["watermark"])
    '12 rows, 600 characters, 30 fetched, faithful'
    """
    limits = strategy.limits
    rows, body, fetch = ("no limit" if each is None else each for each in (limits.rows, limits.body, limits.fetch))
    cursor = f", {strategy.cursor}" if strategy.remembers else ", no memory of rows"
    return (
        f"{rows} rows, {body} characters, {fetch} fetched{cursor}".replace("no limit rows", "all rows")
        .replace("no limit characters", "whole bodies")
        .replace("no limit fetched", "all fetched")
    )


def why(advice: Advice) -> str:
    """The recommendation, or why there is none, in words."""
    best, published, gain = advice.best, advice.published, advice.gain
    if gain is None:
        return (
            f"No recommendation: too few mentions ({published.turns}) to tell a gain from chance "
            f"({FEWEST} are the least). The front shows what this channel alone would say."
        )
    price = f"With {advice.price:,.0f} tokens for a row that has to be paged back"
    if best.strategy == published.strategy:
        return f"No recommendation: nothing to gain. {price}, no setting costs less than the published one here."
    interval = f"{_percent(gain.median)} (90 % of resampled channels: {_percent(gain.low)} to {_percent(gain.high)})"
    told = (
        f"{named(best.strategy)}: it leaves {best.missed} of {advice.rows} rows unshown and {best.cut} cut, where the "
        f"published setting leaves {published.missed} and {published.cut}, for "
        f"{_percent(best.tokens / published.tokens - 1, '+')} of input tokens"
    )
    low, high = advice.prices
    span = f"above {low:,.0f}" if high == float("inf") else f"from {low:,.0f} to {high:,.0f}"
    if not advice.recommended:
        return (
            f"No recommendation: no setting is surely better than the published one. {price}, the best is {told}; its "
            f"gain is {interval}, which chance alone may give."
        )
    return f"Take {told}. {price}, that saves {interval} of the cost; it stays the best at any price {span}."


def _percent(share: float, sign: str = "") -> str:
    return f"{share * 100:{sign}.1f} %"
