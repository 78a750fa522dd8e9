"""The command line: one verb a job, a table for people or `--json` for machines, errors in one line."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
from tabulate import tabulate
from tqdm import tqdm

import warmprefix
from warmprefix import batch, calibrate, chatlogs, claims, gallery
from warmprefix.channel import Channel, gaps, mentions
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.figures import save
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import PUBLISHED, STRATEGIES
from warmprefix.tokens import Tokenizer
from warmprefix.watermark import FAITHFUL, STRICT

FINE, FINDINGS, BAD_INPUT, NOT_EVALUATED = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 fine, 1 findings or failed runs, 2 bad input, 3 not evaluated."""
    try:
        options = _parser().parse_args(arguments)
        return int(options.do(options))
    except InputError as error:
        print(f"warmprefix: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever reads us has closed the pipe
        return FINE
    except OSError as error:
        print(f"warmprefix: {error.filename or ''}: {error.strerror or error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("warmprefix: interrupted", file=sys.stderr)
        return NOT_EVALUATED


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InputError("", self.prog.removeprefix("warmprefix").strip(), message, f"see `{self.prog} --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="warmprefix", description=warmprefix.__doc__)
    parser.add_argument("--version", action="version", version=f"warmprefix {warmprefix.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=_Parser)

    def verb(name: str, do: Any, help: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=help)
        sub.add_argument("--json", action="store_true", help="print JSON instead of a table")
        sub.set_defaults(do=do)
        return sub

    sub = verb("replay", replay, "replay a chat log through the strategies")
    sub.add_argument("source", metavar="SOURCE", help="a file or folder")
    sub.add_argument("--format", choices=list(chatlogs.FORMATS), help="recognised when not named")
    sub.add_argument("--mention", metavar="REGEX", action="append", default=[], help="what addresses the agent")
    sub.add_argument("--mention-id", metavar="ID", action="append", default=[], help="the export's id of the addressed")
    sub.add_argument("--agent", metavar="NAME", action="append", default=[], help="who is an agent, not a person")
    sub.add_argument("--strategy", metavar="S", action="append", choices=list(STRATEGIES), help=", ".join(STRATEGIES))
    sub.add_argument("--cursor", choices=[FAITHFUL, STRICT], default=FAITHFUL, help="what counts as shown")
    sub.add_argument("--limit", metavar="N", type=_limit, default=Limits().rows, help="rows a block shows, or none")
    sub.add_argument("--fetch", metavar="N", type=_limit, default=Limits().fetch, help="rows looked at, or none")
    sub.add_argument("--body-limit", metavar="N", type=_limit, default=Limits().body, help="characters, or none")
    sub.add_argument(
        "--evict-at", metavar="K", type=int, action="append", default=[], help="mention K (from 1) is cold"
    )
    sub.add_argument("--threads", action="store_true", help="a mention in a thread sees that thread, not the channel")
    sub.add_argument("--own-rows", choices=["keep", "drop"], default="keep", help="the agents' rows")
    sub.add_argument("--encoding", metavar="E", help="utf-8 when not named")
    sub.add_argument("--channel", metavar="NAME", help="which of an export's channels")

    sub = verb("claims", show_claims, "the published figures beside the measured ones")
    sub.add_argument("--channels", metavar="N", type=int, default=100, help="how many channels the band is taken over")

    sub = verb("run", run, "execute notebooks")
    sub.add_argument("notebooks", metavar="NOTEBOOK", nargs="*", help="30, 30_strategies or a path; all when absent")
    sub.add_argument("--set", default="", metavar="NAME", help="a set of notebooks/params.yaml")
    sub.add_argument("-p", dest="texts", metavar="NAME=VALUE", action="append", default=[], help="one parameter")
    sub.add_argument("--grid", metavar="FILE", help="YAML: lists of values, every combination is run")
    sub.add_argument("--workers", metavar="N", type=int, default=1, help="how many at once")
    sub.add_argument("--out", metavar="DIR", default="build/notebooks", help="where the executed notebooks go")

    sub = verb("figures", figures, "draw the figures of the gallery")
    sub.add_argument("--out", metavar="DIR", default="figures", help="the folder to write to")
    sub.add_argument("--png", action="store_true", help="write PNGs at twice the size as well")

    sub = verb("generate", generate, "write a channel that meets the published inputs, and its replies")
    sub.add_argument("--seed", metavar="N", type=int, default=calibrate.SEED, help="the committed one when absent")
    sub.add_argument("--out", metavar="DIR", required=True, help="the folder to write to")
    return parser


def _limit(text: str) -> int | None:
    """A number of rows or characters, or `none`."""
    if text.casefold() == "none":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither a whole number nor none")
    return int(text)


def replay(options: argparse.Namespace) -> int:
    """`warmprefix replay`: the facts of a channel and one row of sums a strategy."""
    channel = chatlogs.read(options.source, options.format, encoding=options.encoding, channel=options.channel)
    channel = channel.with_agents(options.agent)
    if options.own_rows == "drop":
        channel = channel.without_agents()
    where = _addressed(channel, options)
    try:
        limits = Limits(options.limit, options.body_limit, options.fetch)
    except ValueError as error:
        raise InputError("", "limits", str(error)) from None
    if bad := [k for k in options.evict_at if not 1 <= k <= len(where)]:
        raise InputError(options.source, f"--evict-at {bad[0]}", f"there are {len(where)} mentions", "count from 1")
    blocks = Blocks(Tokenizer())
    authors = len({message.author for message in channel.messages})
    result: dict[str, dict[str, Any]] = {
        "channel": {
            "messages": len(channel.messages),
            "authors": authors,
            "mentions": len(where),
            "mention_index": list(where),
            "gaps": gaps(where),
        },
        "strategies": {
            name: summary(
                ledger(
                    channel,
                    where,
                    replace(STRATEGIES[name], cursor=options.cursor, limits=limits, threads=options.threads),
                    blocks,
                    evict_at=options.evict_at,
                )
            )
            for name in dict.fromkeys(options.strategy or PUBLISHED)
        },
    }
    if options.json:
        return _print_json(result)
    print(f"{len(channel.messages):,} messages by {authors:,} authors, {len(where):,} mentions")
    print(f"messages between two mentions: {_gaps_line(gaps(where))}\n")
    formats = {"cache_share": "{:.2f}", "new_per_warm_turn": "{:,.0f}"}
    rows = [
        {"strategy": name}
        | {key: "-" if value is None else formats.get(key, "{:,}").format(value) for key, value in sums.items()}
        for name, sums in result["strategies"].items()
    ]
    return _print_table(pd.DataFrame(rows).set_index("strategy").T.rename_axis("").reset_index())


def _addressed(channel: Channel, options: argparse.Namespace) -> tuple[int, ...]:
    if not options.mention and not options.mention_id:
        raise InputError("", "replay", "who is addressed is not said", "give --mention REGEX or --mention-id ID")
    where = mentions(channel, options.mention, options.mention_id)
    if not where:
        asked = " ".join(
            [*(f"--mention {r!r}" for r in options.mention), *(f"--mention-id {i}" for i in options.mention_id)]
        )
        raise InputError(options.source, asked, "no message matches", "try a part of how the agent is addressed")
    return where


def _gaps_line(between: dict[str, float | None]) -> str:
    if between["min"] is None:
        return "none, with fewer than two mentions"
    return ", ".join(f"{name} {value:.4g}" for name, value in between.items() if value is not None)


def show_claims(options: argparse.Namespace) -> int:
    """`warmprefix claims`: one row a published number; 1 when one does not hold."""
    if options.channels < 20:
        raise InputError("", f"--channels {options.channels}", "too few for a 5-95 % band", "take 20 or more")
    blocks = Blocks(Tokenizer())
    seeds = tqdm(range(options.channels), "channels", disable=not sys.stderr.isatty(), leave=False)
    table = claims.verdicts(claims.measure(calibrate.published(), blocks), claims.spread(seeds, blocks))
    if options.json:
        _print_json(table.to_dict("records"))
    else:
        _print_table(claims.readable(table))
        print(f"\nlow and high: an input's tolerance; a prediction's 5-95 % band over {options.channels} channels")
    return FINDINGS if (table["ok"] == False).any() else FINE  # noqa: E712  (`ok` is None where nothing is judged)


def run(options: argparse.Namespace) -> int:
    """`warmprefix run`: execute notebooks, one row a run; 1 when one failed."""
    runs = batch.run(
        options.notebooks,
        out=options.out,
        set_name=options.set,
        texts=options.texts,
        grid=batch.load_grid(options.grid) if options.grid else None,
        workers=options.workers,
    )
    if options.json:
        _print_json([asdict(each) for each in runs])
    else:
        columns = ["notebook", "set", "status", "path", "error"]
        table = pd.DataFrame([asdict(each) for each in runs], columns=columns)
        _print_table(table.assign(path=[_short(path) for path in table["path"]]))
    return batch.exit_code(runs)


def _short(path: str) -> str:
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def figures(options: argparse.Namespace) -> int:
    """`warmprefix figures`: draw the gallery into a folder."""
    drawn = [save(each, options.out, png=options.png) for each in gallery.drawings()]
    if options.json:
        return _print_json([{"slug": each.slug, "alt": each.alt, "caption": each.caption} for each in drawn])
    for each in drawn:
        print(each.path("light.svg"))
    return FINE


def generate(options: argparse.Namespace) -> int:
    """`warmprefix generate`: write a calibrated channel and its replies to a folder."""
    if options.seed < 0:
        raise InputError("", f"--seed {options.seed}", "is negative", "take 0 or more")
    sample = calibrate.sample(options.seed, Blocks(Tokenizer()))
    written = calibrate.write(sample, Path(options.out))
    if options.json:
        return _print_json({"seed": options.seed, "files": [str(path) for path in written]})
    print(*written, sep="\n")
    return FINE


def _print_json(value: Any) -> int:
    print(json.dumps(value, ensure_ascii=False, indent=1, default=lambda number: number.item()))
    return FINE


def _print_table(table: pd.DataFrame) -> int:
    print(tabulate(table, headers="keys", showindex=False, disable_numparse=True, colalign=["left"]))
    return FINE
