"""The command line: one verb a job, a table for people or `--json` for machines, errors in one line."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

import warmprefix
from warmprefix import batch, calibrate, claims, cli_charge, cli_tools, gallery
from warmprefix.atomic import write_text
from warmprefix.channel import clean
from warmprefix.cli_channel import add_advise, add_replay, replay, show_advice
from warmprefix.cli_print import BAD_INPUT, FINDINGS, FINE, NOT_EVALUATED, Parser, denied, path, print_json, print_table
from warmprefix.errors import InputError
from warmprefix.figures import save
from warmprefix.request import Blocks
from warmprefix.results import WRITTEN, readable, reported
from warmprefix.tokens import Tokenizer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 fine, 1 findings or failed runs, 2 bad input, 3 not evaluated."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # or what a terminal has no letter for would be a traceback
    try:
        options = _parser().parse_args(arguments)
        code = int(options.do(options))
        print(end="", flush=True)  # what is still to be written fails here, where it is said in one line
        return code
    except InputError as error:
        print(f"warmprefix: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        _close_output()  # whoever reads us has closed the pipe
        return FINE
    except OSError as error:
        if error.filename is None:
            _close_output()
        print(f"warmprefix: {denied(error)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("warmprefix: interrupted", file=sys.stderr)
        return NOT_EVALUATED


def _close_output() -> None:
    """Send the rest of the output nowhere, so that Python does not try it again on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="warmprefix", description=warmprefix.__doc__)
    parser.add_argument("--version", action="version", version=f"warmprefix {warmprefix.__version__}")
    verbs = parser.add_subparsers(metavar="VERB", required=True, parser_class=Parser)

    def verb(name: str, do: Any, help: str) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=help)
        sub.add_argument("--json", action="store_true", help="print JSON instead of a table")
        sub.set_defaults(do=do, verb=name)
        return sub

    add_replay(verb("replay", replay, "replay a chat log through the strategies"))
    add_advise(verb("advise", show_advice, "which limits suit a channel: the front of settings, and what to take"))

    sub = verb("claims", show_claims, "the published figures beside the measured ones")
    sub.add_argument("--channels", metavar="N", type=int, default=100, help="how many channels the band is taken over")

    cli_charge.add(verb)

    sub = verb("run", run, "execute notebooks")
    sub.add_argument("notebooks", metavar="NOTEBOOK", nargs="*", help="30, 30_strategies or a path; all when absent")
    sub.add_argument("--set", default="", metavar="NAME", help="a set of notebooks/params.yaml")
    sub.add_argument("-p", dest="texts", metavar="NAME=VALUE", action="append", default=[], help="one parameter")
    sub.add_argument("--grid", metavar="FILE", type=path, help="YAML: lists of values, every combination is run")
    sub.add_argument("--workers", metavar="N", type=int, default=1, help="how many at once, here")
    sub.add_argument("--scheduler", metavar="ADDRESS", default="", help="run on the workers of this Dask scheduler")
    sub.add_argument(
        "--out", metavar="DIR", type=path, default="build/notebooks", help="where the executed notebooks go"
    )

    sub = verb("results", show_results, "what the runs in a folder found, one row a run")
    sub.add_argument("out", metavar="DIR", type=path, nargs="?", default="build/notebooks", help="where `run` wrote to")
    sub.add_argument("--csv", metavar="FILE", type=path, help="write every column to FILE")

    sub = verb("figures", figures, "draw the figures of the gallery")
    sub.add_argument("--out", metavar="DIR", type=path, default="figures", help="the folder to write to")
    sub.add_argument("--png", action="store_true", help="write PNGs at twice the size as well")

    sub = verb("generate", generate, "write a channel that meets the published inputs, and its replies")
    sub.add_argument("--seed", metavar="N", type=int, default=calibrate.SEED, help="the committed one when absent")
    sub.add_argument("--out", metavar="DIR", type=path, required=True, help="the folder to write to")

    cli_tools.add_verbs(verb)
    return parser


def show_claims(options: argparse.Namespace) -> int:
    """`warmprefix claims`: one row a published number; 1 when one does not hold."""
    if options.channels < 20:
        raise InputError("", f"--channels {options.channels}", "too few for a 5-95 % band", "take 20 or more")
    blocks = Blocks(Tokenizer())
    seeds = tqdm(range(options.channels), "channels", disable=not sys.stderr.isatty(), leave=False)
    table = claims.verdicts(claims.measure(calibrate.published(), blocks), claims.spread(seeds, blocks))
    if options.json:
        print_json(table.to_dict("records"))
    else:
        print_table(claims.readable(table))
        print(f"\nlow and high: an input's tolerance; a prediction's 5-95 % band over {options.channels} channels,")
        print("or its tolerance where no channel bears on it (tools, markers, trimming, fan-out)")
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
        scheduler=options.scheduler,
    )
    if options.json:
        print_json([asdict(each) | {"results": reported(each.path)} for each in runs])
    else:
        columns = ["notebook", "set", "status", "path", "error"]
        table = pd.DataFrame([asdict(each) for each in runs], columns=columns)
        print_table(table.assign(path=[_short(path) for path in table["path"]]))
    return batch.exit_code(runs)


def show_results(options: argparse.Namespace) -> int:
    """`warmprefix results`: the table of a batch; people see each notebook's runs apart, and of them what differs."""
    table = batch.results(options.out)
    if options.csv:
        write_text(options.csv, clean(table.to_csv(index=False, lineterminator="\n")))
    table = table.astype(object).where(table.notna(), None)
    if options.json:
        return print_json(table.to_dict("records"))
    if table.empty:
        print(f"{options.out} holds no run")
    for number, (_, runs) in enumerate(table.groupby("notebook", sort=False)):
        print(end="\n" * bool(number))
        _print_runs(runs.map(lambda value: "" if value is None else readable(value)))
    return FINE


def _print_runs(runs: pd.DataFrame) -> None:
    """The runs of one notebook, one row each; a single run has its values below each other."""
    if len(runs) == 1:
        said = runs.loc[:, runs.ne("").any()].T.reset_index()
        print_table(said.set_axis(["", "value"], axis=1))
        return
    apart = ("notebook", "path", WRITTEN)  # the first is shown anyway, the others differ always
    print_table(runs[["notebook", *(name for name in runs if name not in apart and runs[name].nunique() > 1)]])


def _short(path: str) -> str:
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def figures(options: argparse.Namespace) -> int:
    """`warmprefix figures`: draw the gallery into a folder."""
    drawn = [save(each, options.out, png=options.png) for each in gallery.published.drawings()]
    if options.json:
        return print_json([{"slug": each.slug, "alt": each.alt, "caption": each.caption} for each in drawn])
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
        return print_json({"seed": options.seed, "files": [str(path) for path in written]})
    print(*written, sep="\n")
    return FINE
