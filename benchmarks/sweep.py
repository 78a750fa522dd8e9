"""Simulated mentions a second on one core once every text is counted, and the ratio against the obvious way.

A sweep of the published channel: every eviction point under window and watermark. The obvious way encodes every request
whole and compares token lists; both have to give the same numbers. What a point costs with its sums is measured apart
from what the simulation and the cache alone cost.
"""

import gc
import sys
from collections.abc import Callable
from time import perf_counter

from tabulate import tabulate

from warmprefix.caches.ideal import IdealPrefix
from warmprefix.calibrate import Sample, published
from warmprefix.request import Blocks
from warmprefix.simulate import Step, simulate
from warmprefix.strategies import STRATEGIES
from warmprefix.studies import STABLE, evictions
from warmprefix.tokens import Tokenizer, encoding

AIM = 20_000  # mentions a second, simulated and charged
LEAST = 40  # times as fast as the obvious way


def steps(sample: Sample, blocks: Blocks, name: str, evicted: tuple[int, ...]) -> list[Step]:
    """One run."""
    strategy = STRATEGIES[name]
    return list(simulate(sample.channel, sample.mentions, strategy, blocks, sample.setting, evict_at=evicted))


def charged(sample: Sample, blocks: Blocks, points: list[tuple[str, tuple[int, ...]]]) -> list[tuple[int, int]]:
    """Total and cached input of every point, by the library."""
    sums = []
    for name, evicted in points:
        cache = IdealPrefix(blocks.ids)
        usages = [cache.charge(step.request) for step in steps(sample, blocks, name, evicted)]
        sums.append((sum(usage.total for usage in usages), sum(usage.cache_read for usage in usages)))
    return sums


def obvious(runs: list[list[tuple[str, str]]]) -> list[tuple[int, int]]:
    """The same by encoding every request whole; `runs` are texts with their sessions."""
    encode, sums = encoding().encode_ordinary, []
    for run in runs:
        last_session, last, total, cached = "", list[int](), 0, 0
        for session, text in run:
            ids = encode(text)
            before = last if session == last_session else []
            differs = (i for i, (a, b) in enumerate(zip(before, ids, strict=False)) if a != b)
            total, cached = total + len(ids), cached + next(differs, min(len(before), len(ids)))
            last_session, last = session, ids
        sums.append((total, cached))
    return sums


def seconds(call: Callable[[], object], repeats: int) -> float:
    """The least time of a call: what it takes when nothing else wants the core."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def main() -> int:
    """Print both rates and the ratio; 1 when the results differ or the ratio is missed."""
    sample, blocks = published(), Blocks(Tokenizer())
    points = [(name, (turn,)) for name in STABLE for turn in range(1, len(sample.mentions) + 1)]
    mentions = len(points) * len(sample.mentions)
    fast = charged(sample, blocks, points)  # counts every text
    few = points[:: len(points) // 6]
    texts = [
        [(step.session, "".join(map(blocks.text, step.request.blocks))) for step in steps(sample, blocks, *point)]
        for point in few
    ]
    assert obvious(texts) == [fast[points.index(point)] for point in few], "the two ways disagree"

    rate = mentions / seconds(lambda: charged(sample, blocks, points), 5)
    slow = len(few) * len(sample.mentions) / seconds(lambda: obvious(texts), 1)
    evictions(sample)
    summed = (mentions + len(STABLE) * len(sample.mentions)) / seconds(lambda: evictions(sample), 3)
    ratio = rate / slow
    rows = [
        ["simulated and charged", f"{rate:,.0f}", f"aim: {AIM:,}"],
        ["the same with every sum, as a table", f"{summed:,.0f}", ""],
        ["the obvious way", f"{slow:,.0f}", ""],
        ["simulated over obvious", f"{ratio:,.0f} times", f"at least {LEAST}"],
    ]
    print(tabulate(rows, ["one core, texts counted", "mentions a second", "asked for"], disable_numparse=True))
    if ratio < LEAST:
        print("missed: ratio", file=sys.stderr)
    return int(ratio < LEAST)


if __name__ == "__main__":
    raise SystemExit(main())
