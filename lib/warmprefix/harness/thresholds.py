"""What trimming saves and costs, by the tokens that must come back before it cuts."""

from collections.abc import Mapping, Sequence

import pandas as pd

from warmprefix.harness.billing import ANTHROPIC, Provider, charged
from warmprefix.harness.trimming import Policy
from warmprefix.harness.workloads import Delta, conversation, tool_turns
from warmprefix.tools.surface import Surface

STEADY = 0


def by_threshold(
    surface: Surface,
    instructions: str,
    deltas: Sequence[Delta],
    thresholds: Sequence[int | None],
    keep: int = 2,
    provider: Provider = ANTHROPIC,
    pace: float = 30.0,
) -> tuple[pd.DataFrame, Mapping[int | None, pd.DataFrame]]:
    """One row a threshold, and the requests of each run behind it; `None` never trims, 0 trims whatever it can.

    `cuts` counts the trims and `removed` the tokens they took out; `input` are all input tokens, `fresh` those that no
    cache held, `usd` the bill, `longest` the tokens of the longest request.
    """
    rows, runs = [], {}
    for threshold in thresholds:
        policy = None if threshold is None else Policy(threshold, keep)
        sent, transcript = conversation(surface, instructions, deltas, trim=policy, pace=pace)
        table = charged(sent, provider)
        trims = {trim.request: trim.reclaimed for trim in transcript.trims}
        runs[threshold] = table.assign(removed=[trims.get(i, 0) for i in range(len(table))])
        rows.append(
            {
                "threshold": threshold,
                "cuts": len(trims),
                "removed": sum(trims.values()),
                "input": int(table["total"].sum()),
                "fresh": int(table["fresh"].sum()),
                "usd": float(table["usd"].sum(skipna=False)),
                "longest": int(table["total"].max()),
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(threshold=pd.Series(list(thresholds), dtype=object)), runs


def grid(
    surface: Surface,
    instructions: str,
    lengths: Sequence[int],
    outputs: Sequence[int],
    rare: int,
    keep: int = 2,
    provider: Provider = ANTHROPIC,
) -> pd.DataFrame:
    """The bills of runs of so many turns and tokens of output a turn, with a rare and with the steady cut.

    `rare` and `steady` are multiples of the bill without any cut; `cuts` counts the rare ones.
    """
    rows = []
    for turns in lengths:
        for output in outputs:
            table, _ = by_threshold(
                surface, instructions, tool_turns([output] * turns), (STEADY, rare, None), keep, provider
            )
            steady, deep, never = table["usd"]
            rows.append(
                {
                    "turns": turns,
                    "output": output,
                    "cuts": int(table["cuts"].iloc[1]),
                    "rare": deep / never,
                    "steady": steady / never,
                    "rare / steady": deep / steady,
                }
            )
    return pd.DataFrame(rows)


def requests_to_pay(reclaimed: int, behind: int, read: float = 0.1, write: float = 1.25) -> float:
    """How many more requests a cut needs until it has paid for the rewriting of what stands behind it.

    >>> round(requests_to_pay(20_000, 10_000), 2)
    5.75

    The cut saves its tokens' read price a request; what stands behind it is written once instead of read. Prices are in
    multiples of a fresh token.
    """
    return behind * (write - read) / (reclaimed * read)


def first_ahead(run: pd.DataFrame, other: pd.DataFrame) -> int | None:
    """From which request on (from 1) a run has cost less than another for good; None when it never does.

    >>> first_ahead(pd.DataFrame({"usd": [1, 3, 1]}), pd.DataFrame({"usd": [1, 2, 3]}))
    3
    """
    behind = (run["usd"].cumsum() >= other["usd"].cumsum()).to_numpy()
    return None if behind[-1] else int(behind.nonzero()[0].max(initial=-1)) + 2
