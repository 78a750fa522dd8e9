"""The verbs that read somebody's own channel, and the options that say which and who is addressed in it."""

import argparse
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from warmprefix import chatlogs
from warmprefix.advice import Advice, Outcome, advise
from warmprefix.channel import Channel, clean, gaps, mentions
from warmprefix.cli_print import FINE, finite, path, print_json, print_table
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.figures import save
from warmprefix.frontier import front_figure
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import PUBLISHED, STRATEGIES
from warmprefix.tokens import Tokenizer
from warmprefix.watermark import FAITHFUL, STRICT

KEEP = 20_000  # texts that a replay remembers; the same row is shown again soon or never


def add_channel(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that reads a channel."""
    add = parser.add_argument
    add("source", metavar="SOURCE", help="a file or folder")
    add("--format", choices=list(chatlogs.FORMATS), help="recognised when not named")
    add("--mention", metavar="REGEX", action="append", default=[], help="what addresses the agent")
    add("--mention-id", metavar="ID", action="append", default=[], help="the export's id of the addressed")
    add("--agent", metavar="NAME", action="append", default=[], help="who is an agent, not a person")
    add("--threads", action="store_true", help="a mention in a thread sees that thread, not the channel")
    add("--own-rows", choices=["keep", "drop"], default="keep", help="the agents' rows")
    add("--encoding", metavar="E", help="utf-8 when not named")
    add("--channel", metavar="NAME", help="which of an export's channels")


def add_replay(parser: argparse.ArgumentParser) -> None:
    """The options of `warmprefix replay`."""
    add_channel(parser)
    add = parser.add_argument
    add("--strategy", metavar="S", action="append", choices=list(STRATEGIES), help=", ".join(STRATEGIES))
    add("--cursor", choices=[FAITHFUL, STRICT], default=FAITHFUL, help="what counts as shown")
    add("--limit", metavar="N", type=_limit, default=Limits().rows, help="rows a block shows, or none")
    add("--fetch", metavar="N", type=_limit, default=Limits().fetch, help="rows looked at, or none")
    add("--body-limit", metavar="N", type=_limit, default=Limits().body, help="characters, or none")
    add("--evict-at", metavar="K", type=int, action="append", default=[], help="mention K (from 1) is cold")


def add_advise(parser: argparse.ArgumentParser) -> None:
    """The options of `warmprefix advise`."""
    add_channel(parser)
    add = parser.add_argument
    add("--price", metavar="TOKENS", type=_price, help="of a row paged back; what fetching it costs when absent")
    add("--session", metavar="N", type=int, default=30, help="mentions that a process answers before it is replaced")
    add("--seed", metavar="N", type=int, default=0, help="of the resampled channels")
    add("--figure", metavar="DIR", type=path, default="build/advice", help="where the figure goes")


def _limit(text: str) -> int | None:
    """A number of rows or characters, or `none`."""
    if text.casefold() == "none":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor none")
    return int(text)


def _price(text: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tokens")
    return price


def replay(options: argparse.Namespace) -> int:
    """`warmprefix replay`: the facts of a channel and one row of sums a strategy."""
    channel, where = _channel(options)
    try:
        limits = Limits(options.limit, options.body_limit, options.fetch)
    except ValueError as error:
        raise InputError("", "limits", str(error)) from None
    if bad := [k for k in options.evict_at if not 1 <= k <= len(where)]:
        raise InputError(options.source, f"--evict-at {bad[0]}", f"there are {len(where)} mentions", "count from 1")
    blocks = Blocks(Tokenizer(), keep=KEEP)
    knobs = {"cursor": options.cursor, "limits": limits, "threads": options.threads}
    sums = {
        name: summary(ledger(channel, where, replace(STRATEGIES[name], **knobs), blocks, evict_at=options.evict_at))
        for name in dict.fromkeys(options.strategy or PUBLISHED)
    }
    facts = _facts(channel, where)
    if options.json:
        return print_json({"channel": facts, "strategies": sums})
    _print_facts(facts)
    formats = {"cache_share": "{:.2f}", "new_per_warm_turn": "{:,.0f}"}
    rows = [
        {"strategy": name}
        | {key: "-" if value is None else formats.get(key, "{:,}").format(value) for key, value in each.items()}
        for name, each in sums.items()
    ]
    return print_table(pd.DataFrame(rows).set_index("strategy").T.rename_axis("").reset_index())


def show_advice(options: argparse.Namespace) -> int:
    """`warmprefix advise`: the front of settings for a channel, a figure of it, and what to take."""
    for name, least in (("session", 1), ("seed", 0)):
        if (value := getattr(options, name)) < least:
            raise InputError("", f"--{name} {value}", "is too small", f"take {least} or more")
    channel, where = _channel(options)
    advice = advise(
        channel,
        where,
        Blocks(Tokenizer()),
        np.random.default_rng(options.seed),
        price=options.price,
        session=options.session,
        threads=options.threads,
    )
    facts = _facts(channel, where)
    name = clean(Path(options.source).resolve().name)
    saved = save(front_figure(advice, name, options.seed), options.figure)
    if options.json:
        return print_json({"channel": facts, **_told(advice), "figure": str(saved.path("light.svg"))})
    _print_facts(facts)
    print_table(_table(advice))
    print(f"\n{advice.tried} settings tried; a process answers {options.session} mentions.")
    print("missed: rows since the first mention that no turn shows; cut: rows shown cut, and the characters cut away\n")
    print(advice.why)
    print(f"\n{saved.path('light.svg')}")
    return FINE


def _told(advice: Advice) -> dict[str, Any]:
    gain = asdict(advice.gain) if advice.gain else dict.fromkeys(("median", "low", "high"))
    return {
        "front": [_fields(outcome) for outcome in advice.front],
        "published": _fields(advice.published),
        "window": _fields(advice.window),
        "best": _fields(advice.best),
        "recommended": _fields(advice.recommended) if advice.recommended else None,
        "gain": gain,
        "price": advice.price,
        "best_at_prices": [finite(each) for each in advice.prices],
        "why": advice.why,
    }


def _fields(outcome: Outcome) -> dict[str, Any]:
    limits = outcome.strategy.limits
    return {
        "strategy": outcome.strategy.name,
        "limit": limits.rows,
        "body_limit": limits.body,
        "fetch": limits.fetch,
        "cursor": outcome.strategy.cursor,
        "total_input": outcome.tokens,
        "new_per_warm_turn": outcome.new,
        "missed": outcome.missed,
        "cut": outcome.cut,
        "cut_chars": outcome.cut_chars,
    }


def _table(advice: Advice) -> pd.DataFrame:
    """The published setting and the window, then the front, the cheapest first."""
    outcomes = [advice.published, advice.window, *(each for each in advice.front if each != advice.published)]
    rows = []
    for outcome in outcomes:
        said = ["published"] if outcome == advice.published else ["window"] if outcome == advice.window else []
        said += ["front"] if outcome in advice.front else []
        said += ["recommended"] if outcome == advice.recommended else []
        fields = _fields(outcome) | {"setting": ", ".join(said)}
        fields["total_input"] = f"{outcome.tokens:,}"
        fields["new_per_warm_turn"] = "-" if outcome.new is None else f"{outcome.new:,.0f}"
        fields["cut_chars"] = f"{outcome.cut_chars:,}"
        fields["cursor"] = outcome.strategy.cursor if outcome.strategy.remembers else "-"
        rows.append({name: "none" if value is None else value for name, value in fields.items() if name != "strategy"})
    table = pd.DataFrame(rows, dtype=object)
    return table[["setting", *table.columns.drop("setting")]]


def _channel(options: argparse.Namespace) -> tuple[Channel, tuple[int, ...]]:
    """The channel as the options ask for it, and its mentions."""
    if not options.mention and not options.mention_id:
        raise InputError("", options.verb, "who is addressed is not said", "give --mention REGEX or --mention-id ID")
    channel = chatlogs.read(options.source, options.format, encoding=options.encoding, channel=options.channel)
    channel = channel.with_agents(options.agent)
    if options.own_rows == "drop":
        channel = channel.without_agents()
    where = mentions(channel, options.mention, options.mention_id)
    if not where:
        asked = " ".join(
            [*(f"--mention {r!r}" for r in options.mention), *(f"--mention-id {i}" for i in options.mention_id)]
        )
        raise InputError(options.source, asked, "no message matches", "try a part of how the agent is addressed")
    return channel, where


def _facts(channel: Channel, where: tuple[int, ...]) -> dict[str, Any]:
    return {
        "messages": len(channel.messages),
        "authors": len({message.author for message in channel.messages}),
        "mentions": len(where),
        "mention_index": list(where),
        "gaps": gaps(where),
    }


def _print_facts(facts: dict[str, Any]) -> None:
    print(f"{facts['messages']:,} messages by {facts['authors']:,} authors, {facts['mentions']:,} mentions")
    between = facts["gaps"]
    line = "none, with fewer than two mentions"
    if between["min"] is not None:
        line = ", ".join(f"{name} {value:.4g}" for name, value in between.items())
    print(f"messages between two mentions: {line}\n")
