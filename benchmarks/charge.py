"""The time of a charged request, parsing included, for logs of 30 to 3,000 requests of about 15,000 tokens each.

Beside it runs tokenbill 0.2.0's block replay, the fastest exact peer, where `make bench` could install it apart. It
scales lengths by characters, so it is asked for the same hits, not for the same counts.
"""

import gc
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from tabulate import tabulate

from warmprefix.rawlogs import charge_log
from warmprefix.tokens import encoding

PEER = Path(os.environ.get("TOKENBILL", Path(__file__).parents[1] / "build" / "tokenbill"))
COUNTS, SESSION = (30, 300, 3000), 30
EXPONENT, SHARE = 1.15, 0.5  # the most that the growth from 300 to 3,000 requests may be, and our part of the peer's
MARK = {"cache_control": {"type": "ephemeral"}}
WORDS = ["the", "build", "is", "red", "on", "main", "again", "so", "look", "at", "that", "test", "before", "you"]


def bodies(count: int) -> Iterator[tuple[float, dict[str, Any]]]:
    """Requests with their times: sessions of 30 turns that grow from 12,000 to 18,000 tokens on one shared front."""
    rng = np.random.default_rng(7)

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS, words))

    tools = [
        {"name": f"tool_{i}", "description": text(80), "input_schema": {"type": "object", "properties": {}}}
        for i in range(20)
    ]
    tools[-1] |= MARK
    system = [{"type": "text", "text": text(10_000)}]
    messages: list[dict[str, Any]] = []
    for turn in range(count):
        if turn % SESSION == 0:
            messages = []
        asked = {"type": "text", "text": text(120)}
        marked = {"role": "user", "content": [{**asked, **MARK}]}
        yield (
            20.0 * turn,
            {"model": "claude-opus-5", "max_tokens": 9, "tools": tools, "system": system}
            | {"messages": [*messages, marked]},
        )
        messages += [{"role": "user", "content": [asked]}, {"role": "assistant", "content": text(80)}]


def write_ours(path: Path, count: int) -> None:
    with path.open("w") as log:
        for at, body in bodies(count):
            log.write(json.dumps({"ts": at, "provider": "anthropic", "body": body}, separators=(",", ":")) + "\n")


def write_peers(path: Path, count: int) -> None:
    """The same requests as tokenbill reads them, with the usage that it scales its blocks to."""
    charged = charge_log(path.with_suffix(".jsonl"))["requests"]
    with path.open("w") as log:
        for i, (at, body) in enumerate(bodies(count)):
            usage = {
                "input_tokens": charged[i]["uncached"],
                "cache_read_input_tokens": charged[i]["read"],
                "cache_creation_input_tokens": charged[i]["write"],
                "output_tokens": 9,
            }
            call = {"schema": "tokenbill/trace@1", "run_id": "run", "index": i, "ts": at, "model": body["model"]}
            call |= {"system": body["system"][0]["text"], "tools": body["tools"], "messages": body["messages"]}
            call |= {"cache_breakpoints": 2, "usage": usage, "stop_reason": "end_turn"}
            log.write(json.dumps(call, separators=(",", ":")) + "\n")


def peer(path: Path) -> list[int]:
    """The reads that tokenbill predicts for each request of a log."""
    from dataclasses import replace

    from tokenbill.adapters.trace_v1 import TraceV1Adapter
    from tokenbill.core.records import ContentTier
    from tokenbill.core.testing import FakePricer
    from tokenbill.core.types import IngestOptions
    from tokenbill.sim.block_replay import BlockReplayer

    options = IngestOptions(content_tier=ContentTier.FINGERPRINT, name_key=b"key", name_key_id="k")
    found = TraceV1Adapter().read(path, options)
    lanes = [replace(found.sessions[0].lanes[0], requests=tuple(found.requests))]
    return [outcome.usage.cache_read for outcome in BlockReplayer().predict(lanes, pricer=FakePricer())]


def seconds(call: Callable[[], object]) -> float:
    """The processor's time for a call, which whoever else uses the machine disturbs least."""
    gc.collect()
    start = process_time()
    call()
    return process_time() - start


def main() -> int:
    """Print the times and the ratio; 1 when a stated bound is missed."""
    encoding()
    rows, misses = [], []
    with tempfile.TemporaryDirectory() as folder:
        logs = {count: Path(folder) / f"{count}.jsonl" for count in COUNTS}
        for count, log in logs.items():
            write_ours(log, count)
        rounds = [{count: seconds(lambda: charge_log(log)) / count for count, log in logs.items()} for _ in range(3)]  # noqa: B023
        costs = {count: min(times[count] for times in rounds) for count in COUNTS}
        for count, log in logs.items():
            totals = charge_log(log)["totals"]
            size = f"{totals['total'] / count:,.0f}"
            rows.append([f"{count:,}", size, f"{totals['hit_ratio']:.1%}", f"{costs[count] * 1e3:.2f}"])
        print(tabulate(rows, ["requests", "tokens each", "read", "a request (ms)"], disable_numparse=True))
        few, many = COUNTS[1:]
        exponent = 1 + np.log(costs[many] / costs[few]) / np.log(many / few)
        print(f"growth exponent from {few} to {many:,} requests: {exponent:.2f} (asked for: at most {EXPONENT})")
        misses += ["growth"] if exponent > EXPONENT else []
        if not PEER.is_dir():
            print(f"tokenbill is not in {PEER}: the comparison is left out")
        else:
            sys.path.append(str(PEER))
            log, trace = logs[few], logs[few].with_suffix(".trace")
            write_peers(trace, few)
            theirs = peer(trace)
            ours = [row["read"] for row in charge_log(log)["requests"]]
            assert [read > 0 for read in ours] == [read > 0 for read in theirs], "the two disagree on the hits"
            # In turns, so that both meet the same machine.
            pairs = [(seconds(lambda: charge_log(log)), seconds(lambda: peer(trace))) for _ in range(5)]
            share = median(mine / other for mine, other in pairs)
            print(f"at {few} requests: {share:.2f} of tokenbill's time (asked for: at most {SHARE})")
            misses += ["tokenbill"] if share > SHARE else []
    if misses:
        print(f"missed: {', '.join(misses)}", file=sys.stderr)
    return int(bool(misses))


if __name__ == "__main__":
    raise SystemExit(main())
