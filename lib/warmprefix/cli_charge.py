"""`warmprefix charge`: what a cache would read and write for each request of a raw log, and what that costs."""

import argparse
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tabulate import tabulate

from warmprefix.caches import Usage
from warmprefix.cli_print import path, print_json
from warmprefix.errors import InputError
from warmprefix.prices import PRICE_DATE, Price, cost, stamp
from warmprefix.rawlogs import PROVIDERS, Row, charge_rows, table

_PRICES = ("input", "cache_read", "cache_write_5m", "cache_write_1h")


def add(verb: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the verb to the command line."""
    sub = verb("charge", charge, "what a provider's cache would read and write for raw requests")
    sub.add_argument("log", metavar="LOG", type=path, help="JSON lines: request bodies, bare or with their times")
    sub.add_argument("--provider", metavar="NAME", help=f"{', '.join(PROVIDERS)}; what the log says when absent")
    sub.add_argument(
        "--price",
        metavar="input=3,cache_read=0.3,…",
        type=_price,
        help=f"USD per million tokens, for every model: {', '.join(_PRICES)}; what is not given costs as input",
    )


def charge(options: argparse.Namespace) -> int:
    """Print the usage and the cost of the input of every request; 1 when a request failed, the others are charged."""
    charged = charge_rows(options.log, options.provider)
    result = table(usage for _, usage in charged)
    money = [_cost(row, usage, options.price) for row, usage in charged]
    for request, sum_ in zip(result["requests"], money, strict=True):
        request["usd"] = None if sum_ is None else float(sum_)
    known = [sum_ for sum_ in money if sum_ is not None]
    unpriced = {
        row.request.model
        for (row, usage), sum_ in zip(charged, money, strict=True)
        if row.request and isinstance(usage, Usage) and sum_ is None
    }
    result["totals"]["usd"] = float(sum(known, Decimal(0))) if known and not unpriced else None
    result["prices"] = "as given" if options.price else stamp()
    if options.json:
        print_json(result)
    else:
        _print(result, [row.line for row, _ in charged])
    if unpriced:
        remedy = "give it with --price input=…,cache_read=…,cache_write_5m=…"
        print(f"warmprefix: no price is known for {', '.join(sorted(unpriced))}; {remedy}", file=sys.stderr)
    return int(any(request["error"] for request in result["requests"]))


def _cost(row: Row, usage: Usage | str, price: Price | None) -> Decimal | None:
    """The cost of a request's input; None where it failed or its model has no price."""
    if row.request is None or isinstance(usage, str):
        return None
    try:
        return cost(usage, row.request.model, row.rules[0], PRICE_DATE, price)
    except InputError:
        return None


def _print(result: dict[str, Any], lines: list[int]) -> None:
    names = ("total", "read", "write_5m", "write_1h", "uncached")
    rows = [
        [f"line {line}", *("-" if row["error"] else f"{row[name]:,}" for name in names), _usd(row["usd"])]
        for line, row in zip(lines, result["requests"], strict=True)
    ]
    totals = result["totals"]
    rows.append(["all", *(f"{totals[name]:,}" for name in names), _usd(totals["usd"])])
    heads = ["request", "total", "read", "write 5m", "write 1h", "uncached", "input (USD)"]
    print(tabulate(rows, heads, disable_numparse=True, colalign=["left", *["right"] * 6]))
    for row in result["requests"]:
        if row["error"]:
            print(row["error"])
    ratio = totals["hit_ratio"]
    print(f"\nread from the cache: {'-' if ratio is None else f'{ratio:.1%}'} of the input; prices: {result['prices']}")


def _usd(sum_: float | None) -> str:
    return "-" if sum_ is None else f"{sum_:.6f}"


def _price(text: str) -> Price:
    """`input=3,cache_read=0.3` as a price."""
    given: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            given[name.strip()] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{part!r} is no price: write input=3,cache_read=0.3") from None
    if unknown := given.keys() - set(_PRICES):
        raise argparse.ArgumentTypeError(f"{min(unknown)!r} is none of {', '.join(_PRICES)}")
    if "input" not in given:
        raise argparse.ArgumentTypeError("the price of input is missing: write input=3,cache_read=0.3")
    if not all(0 <= value < math.inf for value in given.values()):
        raise argparse.ArgumentTypeError("a price is 0 or more")
    return Price(**given)
