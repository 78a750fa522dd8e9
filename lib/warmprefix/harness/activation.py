"""What loading a deferred tool costs, by where its schema goes, and from how many on deferral stops saving money."""

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from warmprefix.harness.billing import ANTHROPIC, PROVIDERS, Provider, charged
from warmprefix.harness.session import Sent
from warmprefix.harness.transcript import tool_piece
from warmprefix.harness.wire import APPEND, PLACEMENTS
from warmprefix.harness.workloads import Delta, conversation, texts
from warmprefix.tools.catalogue import Tool, token_count
from warmprefix.tools.surface import Surface

NEVER, OFF = "none", "off"


def one_activation(
    surface: Surface,
    instructions: str,
    deltas: Sequence[Delta],
    new: Sequence[Tool],
    providers: Sequence[Provider] = PROVIDERS,
    pace: float = 30.0,
) -> pd.DataFrame:
    """The last request of a run whose last but one loaded some tools, one row a provider and placement.

    `total`, `read` and `fresh` are that request's tokens; `extra` is what it processes anew beyond the same request
    without an activation, `schemas` what the new definitions have themselves. `block` is the tool block that never
    changes, `before` the whole request before: `block_kept` and `rest_kept` are the shares of the block, and of what
    followed it, that were read.
    """
    runs = {NEVER: conversation(surface, instructions, deltas, pace=pace)[0]}
    activate = [()] * (len(deltas) - 2) + [tuple(new)]
    for placement in PLACEMENTS:
        runs[placement] = conversation(
            surface, instructions, deltas, pace=pace, activate=activate, placement=placement
        )[0]
    schemas = sum(token_count(tool_piece(tool).text) for tool in new)
    block = sum(token_count(tool_piece(tool).text) for tool in surface.resident)
    rows = []
    for provider in providers:
        tables = {placement: charged(sent, provider) for placement, sent in runs.items()}
        without = int(tables[NEVER]["fresh"].iloc[-1])
        for placement in PLACEMENTS:
            before, last = (tables[placement].iloc[i] for i in (-2, -1))
            read, total_before = int(last["read"]), int(before["total"])
            rows.append(
                {
                    "provider": provider.name,
                    "placement": placement,
                    "total": int(last["total"]),
                    "read": read,
                    "fresh": int(last["fresh"]),
                    "extra": int(last["fresh"]) - without,
                    "schemas": schemas,
                    "block": block,
                    "before": total_before,
                    "block_kept": min(read, block) / block if block else 1.0,
                    "rest_kept": max(read - block, 0) / (total_before - block),
                }
            )
    return pd.DataFrame(rows)


def run_costs(
    surface: Surface,
    instructions: str,
    deltas: Sequence[Delta],
    counts: Sequence[int],
    provider: Provider = ANTHROPIC,
    *,
    warm: bool = False,
    each: int = 1,
    pace: float = 30.0,
) -> pd.DataFrame:
    """What a run costs by how many activations it makes: `activations`, `placement`, `fresh` tokens and `usd`.

    Activations are spread evenly over the run and load `each` tools, as a search loads its hits. The placement `off`
    is the same run with every tool resident. `warm` lets a run of the same shape begin a minute earlier, so that tools
    and system prompt are read from the start.
    """
    rows = []
    everything = Surface(tuple(sorted(surface.tools, key=lambda tool: tool.name)))
    off = _sums(everything, instructions, deltas, (), APPEND, provider, warm, pace)
    for count in counts:
        activate = spread(surface.deferred, len(deltas), count, each)
        rows.append({"activations": count, "placement": OFF, **off})
        for placement in PLACEMENTS:
            sums = _sums(surface, instructions, deltas, activate, placement, provider, warm, pace)
            rows.append({"activations": count, "placement": placement, **sums})
    return pd.DataFrame(rows)


def _sums(
    surface: Surface,
    instructions: str,
    deltas: Sequence[Delta],
    activate: Sequence[Sequence[Tool]],
    placement: str,
    provider: Provider,
    warm: bool,
    pace: float,
) -> dict[str, float]:
    sent, _ = conversation(surface, instructions, deltas, pace=pace, activate=activate, placement=placement)
    before = [_minute_before(surface, instructions)] if warm else []
    table = charged([*before, *sent], provider).iloc[len(before) :]
    return {"fresh": int(table["fresh"].sum()), "usd": float(table["usd"].sum(skipna=False))}


def _minute_before(surface: Surface, instructions: str) -> Sent:
    """The first request of another run of this shape."""
    (first,), _ = conversation(surface, instructions, [texts(-1, 1)])
    return replace(first, at=-60.0, first_token_at=-58.0)


def spread(tools: Sequence[Tool], requests: int, count: int, each: int = 1) -> list[tuple[Tool, ...]]:
    """Which tools are loaded behind each request when `count` activations are spread evenly over a run.

    >>> [len(tools) for tools in spread([Tool("a"), Tool("b")], 6, 2)]
    [0, 1, 0, 1, 0, 0]
    """
    activate: list[tuple[Tool, ...]] = [()] * requests
    for i in range(count):
        behind = (2 * i + 1) * (requests - 1) // (2 * count)
        activate[behind] += tuple(tools[i * each : (i + 1) * each])
    return activate


def break_even(costs: pd.DataFrame) -> dict[str, int | None]:
    """For each placement the first number of activations from which a run costs as much as with every tool resident.

    >>> table = pd.DataFrame({"activations": [0, 0, 1, 1], "placement": ["off", "append"] * 2, "usd": [2, 1, 2, 3]})
    >>> break_even(table)
    {'append': 1}
    """
    wide = costs.pivot(index="activations", columns="placement", values="usd")
    found: dict[str, int | None] = {}
    for placement in (name for name in (*PLACEMENTS, NEVER) if name in wide):
        lost = wide.index[wide[placement] >= wide[OFF]]
        found[placement] = int(lost[0]) if len(lost) else None
    return found
