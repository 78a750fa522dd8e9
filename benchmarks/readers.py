"""Messages a second and peak memory of reading and replaying an export of 10,000, 100,000 and 1,000,000 messages.

Every measurement is a process of its own. Its peak is set against its own size before the first byte was read and
against the rows themselves: the messages with their ids, texts and times, as `sys.getsizeof` has them. Give other sizes
as arguments.
"""

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from math import log
from pathlib import Path
from time import process_time
from typing import Any

SIZES = [10_000, 100_000, 1_000_000]
START, EVERY = 1_700_000_000, 7  # seconds of the first message; one in so many addresses the agent
WORDS = ("the", "build", "is", "red", "again", "could", "you", "look", "at", "this", "one", "first", "I", "think", "it")
REPLAYS = {
    "window, 12 of 30": ("window", "faithful", 12, 30),
    "watermark, 12 of 30": ("watermark", "faithful", 12, 30),
    "watermark strict, 12 of 30": ("watermark", "strict", 12, 30),
    "watermark strict, no limit": ("watermark", "strict", None, None),
}
Row = tuple[int, int, int, str]  # number, time, author, text


def rows(count: int) -> Iterator[Row]:
    """The same bursty channel at every size: 200 people, short texts, two messages a stamp."""
    rng = random.Random(count)
    for i in range(count):
        text = " ".join(rng.choices(WORDS, k=rng.randint(2, 24)))
        yield i, START + 40 * (i // 2), rng.randrange(200), f"{text} {i}" if i % EVERY else f"@agent {text} {i}"


def iso(at: int) -> str:
    """A time as exports write it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00")


def write_jsonl(folder: Path, count: int) -> Path:
    """Our own lines."""
    with (folder / "room.jsonl").open("w") as file:
        for i, at, who, text in rows(count):
            file.write(json.dumps({"id": f"m{i}", "author": f"u{who}", "text": text, "created_at": at}) + "\n")
    return folder / "room.jsonl"


def write_irc(folder: Path, count: int) -> Path:
    """A log with dates and seconds."""
    with (folder / "room.log").open("w") as file:
        for _, at, who, text in rows(count):
            file.write(f"[{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}] <u{who}> {text}\n")
    return folder / "room.log"


def write_slack(folder: Path, count: int) -> Path:
    """Day files of one channel, and the users."""
    users = [{"id": f"U{who:03}", "name": f"u{who}"} for who in range(200)]
    (folder / "users.json").write_text(json.dumps(users))
    (folder / "room").mkdir()
    for day, group in groupby(rows(count), key=lambda row: row[1] // 86_400):
        records = [
            {"type": "message", "user": f"U{who:03}", "text": text, "ts": f"{at}.{i % 1_000_000:06}"}
            for i, at, who, text in group
        ]
        name = f"{datetime.fromtimestamp(day * 86_400, UTC):%Y-%m-%d}.json"
        (folder / "room" / name).write_text(json.dumps(records, indent=1))
    return folder


def write_discord(folder: Path, count: int) -> Path:
    """One file as the exporter writes it."""
    with (folder / "room.json").open("w") as file:
        file.write('{"guild": {"id": "1", "name": "g"}, "channel": {"id": "2", "name": "room"}, "messages": [\n')
        for i, at, who, text in rows(count):
            record = {
                "id": str(10**17 + i),
                "type": "Default",
                "timestamp": iso(at),
                "content": text,
                "author": {"id": str(10**16 + who), "name": f"u{who}", "isBot": False},
                "attachments": [],
                "mentions": [],
            }
            file.write((",\n" if i else "") + json.dumps(record))
        file.write("]}\n")
    return folder / "room.json"


WRITERS: dict[str, Callable[[Path, int], Path]] = {
    "jsonl": write_jsonl,
    "irc": write_irc,
    "slack": write_slack,
    "discord": write_discord,
}


def child(format: str, path: str, run: str) -> dict[str, Any]:
    """Read an export and, where `run` names one of `REPLAYS`, replay it: seconds, and sizes in bytes."""
    from warmprefix import chatlogs
    from warmprefix.channel import mentions
    from warmprefix.cli_channel import KEEP
    from warmprefix.delivery import Limits
    from warmprefix.ledger import ledger, summary
    from warmprefix.request import Blocks
    from warmprefix.strategies import STRATEGIES
    from warmprefix.tokens import Tokenizer

    blocks = Blocks(Tokenizer(), keep=KEEP)
    before, start = peak(), process_time()
    channel = chatlogs.read(path, format)
    taken = process_time() - start
    if run:
        name, cursor, limit, fetch = REPLAYS[run]
        strategy = replace(STRATEGIES[name], cursor=cursor, limits=Limits(limit, 600, fetch))
        start = process_time()
        found = summary(ledger(channel, mentions(channel, ["@agent"]), strategy, blocks))
        taken = process_time() - start
        assert found["turns"] == -(-len(channel.messages) // EVERY)
    highest = peak()
    size = sum(
        sys.getsizeof(row) + sum(map(sys.getsizeof, (row.id, row.text, row.created_at, row.position))) + 8
        for row in channel.messages
    )
    return {"messages": len(channel.messages), "seconds": taken, "before": before, "peak": highest, "rows": size}


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured(format: str, path: Path, run: str = "") -> dict[str, Any]:
    """`child` in a process of its own."""
    command = [sys.executable, __file__, "--child", format, str(path), run]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main(sizes: list[int]) -> int:
    """Print both tables; 1 when time grows faster than the messages or memory by more than twice the rows."""
    from tabulate import tabulate

    results: dict[str, list[dict[str, Any]]] = {}
    for size in sizes:
        for format, write in WRITERS.items():
            with tempfile.TemporaryDirectory() as folder:
                path = write(Path(folder), size)
                results.setdefault(f"read {format}", []).append(measured(format, path))
                for run in REPLAYS if format == "jsonl" else ():
                    results.setdefault(f"replay {run}", []).append(measured(format, path, run))
    table, misses = [], []
    for name, runs in results.items():
        for found in runs:
            taken, row = found["peak"] - found["before"], found["rows"]
            assert found["messages"] == sizes[runs.index(found)]
            table.append(
                [name, f"{found['messages']:,}", f"{found['messages'] / found['seconds']:,.0f}"]
                + [f"{each / 1e6:,.0f}" for each in (found["peak"], taken, row)]
            )
        if len(runs) > 1:
            small, large = runs[-2:]
            longer = log(large["messages"] / small["messages"])
            exponent = log(large["seconds"] / small["seconds"]) / longer
            growth = (large["peak"] - small["peak"]) / (large["rows"] - small["rows"])
            table[-1] += [f"{exponent:.2f}", f"{growth:.2f}"]
            # A replay may keep what the process was sent as well: at most as much again as the rows.
            # Below a million messages the caches of fixed size are still filling, so growth says little.
            growth = growth if large["messages"] >= SIZES[-1] else 0
            misses += [name] if exponent > 1.15 or growth > (1.25 if name.startswith("read") else 2) else []
    columns = ["what", "messages", "a second", "peak (MB)", "above start", "rows (MB)", "exponent", "growth"]
    print(tabulate(table, columns, disable_numparse=True))
    print("\na second: of the processor's time; exponent: of that time over messages, asked for at most 1.15")
    print("growth: of the peak over that of the rows themselves, asked for at most 1.25 where an export is read, and 2")
    print("where it is replayed as well, as one session that remembers all that it was sent")
    if misses:
        print(f"missed: {', '.join(misses)}", file=sys.stderr)
    return int(bool(misses))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(*sys.argv[2:])))
        raise SystemExit(0)
    raise SystemExit(main([int(size) for size in sys.argv[1:]] or SIZES))
