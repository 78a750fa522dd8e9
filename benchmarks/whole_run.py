"""The article's whole run against the obvious way, in one process, and how the cost of a mention grows.

The obvious way encodes every request whole and compares token lists. Nothing is counted before either starts, and both
have to give the same numbers.
"""

import gc
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter

import numpy as np
from tabulate import tabulate

from warmprefix.calibrate import Sample, published
from warmprefix.channel import mentions
from warmprefix.generate import HANDLE, Plan, generate, replies
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.simulate import simulate
from warmprefix.strategies import PUBLISHED, STRATEGIES
from warmprefix.tokens import Tokenizer, encoding

Totals = list[tuple[int, int]]
RUNS = [(name, evicted) for evicted in ((), (15,)) for name in PUBLISHED]


def ours(sample: Sample, runs: list[tuple[str, tuple[int, ...]]]) -> Totals:
    """Total and cached of every turn of every run, by the library."""
    blocks, found = Blocks(Tokenizer()), []
    for name, evicted in runs:
        table = ledger(sample.channel, sample.mentions, STRATEGIES[name], blocks, sample.setting, evict_at=evicted)
        found += list(zip(table["total"].tolist(), table["cached"].tolist(), strict=True))
    return found


def whole_texts(sample: Sample, runs: list[tuple[str, tuple[int, ...]]]) -> list[list[tuple[str, str]]]:
    """Every request of every run as one text with its session: what the obvious way starts from."""
    blocks, texts = Blocks(Tokenizer()), []
    for name, evicted in runs:
        steps = simulate(sample.channel, sample.mentions, STRATEGIES[name], blocks, sample.setting, evict_at=evicted)
        texts.append([(step.session, "".join(map(blocks.text, step.request.blocks))) for step in steps])
    return texts


def obvious(texts: list[list[tuple[str, str]]]) -> Totals:
    """The same by encoding every request whole."""
    encode, found = encoding().encode_ordinary, []
    for run in texts:
        last_session, last = "", []
        for session, text in run:
            ids = encode(text)
            before = last if session == last_session else []
            cached = next(
                (i for i, (a, b) in enumerate(zip(before, ids, strict=False)) if a != b), min(len(before), len(ids))
            )
            found.append((len(ids), cached))
            last_session, last = session, ids
    return found


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The median time of a call."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times)


def longer(count: int) -> Sample:
    """A channel with `count` mentions of the published density."""
    rng = np.random.default_rng(count)
    plan = Plan(
        messages=count * 20 // 3, mentions=count, long=count * 8 // 30, beyond=None, gap_max=None, gap_median=None
    )
    channel = generate(plan, rng)
    return Sample(channel, mentions(channel, [HANDLE]), replies(count, 160, rng))


def main() -> int:
    """Print the ratios and the growth; 1 when results differ or a stated bound is missed."""
    encoding()
    misses, rows = [], []
    for label, sample, runs, least, repeats in (
        ("whole run, 30 mentions", published(), RUNS, 12, 5),
        ("300 mentions", longer(300), RUNS[:3], 100, 1),
    ):
        texts = whole_texts(sample, runs)
        assert ours(sample, runs) == obvious(texts), "the two ways disagree"
        slow, fast = seconds(lambda: obvious(texts), repeats), seconds(lambda: ours(sample, runs), 5)  # noqa: B023
        tokens = sum(total for total, _ in ours(sample, runs))
        rows.append(
            [label, f"{tokens:,}", f"{slow:.3f}", f"{fast:.3f}", f"{slow / fast:.0f} times", f"at least {least}"]
        )
        misses += [label] if slow / fast < least else []
    print(
        tabulate(
            rows, ["run", "input tokens", "obvious way (s)", "ours (s)", "ratio", "asked for"], disable_numparse=True
        )
    )

    counts, costs = [30, 300, 3000], []
    for count in counts:
        sample = longer(count)
        costs.append(seconds(lambda: ours(sample, RUNS[:3]), 7 if count < 3000 else 3) / (3 * count))  # noqa: B023
    exponent = 1 + np.log(costs[2] / costs[1]) / np.log(counts[2] / counts[1])
    print()
    print(
        tabulate(
            [[f"{n:,}", f"{c * 1e6:,.0f}"] for n, c in zip(counts, costs, strict=True)], ["mentions", "a mention (µs)"]
        )
    )
    print(f"growth exponent from 300 to 3,000 mentions: {exponent:.2f} (asked for: at most 1.15)")
    misses += ["growth"] if exponent > 1.15 else []
    if misses:
        print(f"missed: {', '.join(misses)}", file=sys.stderr)
    return int(bool(misses))


if __name__ == "__main__":
    raise SystemExit(main())
