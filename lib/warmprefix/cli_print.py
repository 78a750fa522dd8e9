"""What every verb prints: JSON for machines, a table for people, and the exit codes."""

import argparse
import json
import math
import sys
from typing import Any, NoReturn

import pandas as pd
from tabulate import tabulate

from warmprefix.errors import InputError

FINE, FINDINGS, BAD_INPUT, NOT_EVALUATED = 0, 1, 2, 3


class Parser(argparse.ArgumentParser):
    """A command line whose errors are one line, as all errors here."""

    def error(self, message: str) -> NoReturn:
        """Raise `InputError` instead of printing the usage."""
        raise InputError("", self.prog.removeprefix("warmprefix").strip(), message, f"see `{self.prog} --help`")


def path(text: str) -> str:
    """A path on the command line; an empty one, as an unset variable of the shell is, would be the folder we are in."""
    if not text.strip():
        raise argparse.ArgumentTypeError("names nothing")
    return text


def denied(error: OSError) -> InputError:
    """What the operating system refuses, said as bad input is."""
    remedy = "check the path, its permissions and the space left there"
    return InputError(error.filename or "standard output", "", error.strerror or str(error), remedy)


def print_json(value: Any) -> int:
    """Print a value as JSON; returns the exit code for fine."""
    narrow = "utf" not in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()  # a "\xe9" is no JSON
    print(json.dumps(value, ensure_ascii=narrow, indent=1, default=lambda number: number.item()))
    return FINE


def print_table(table: pd.DataFrame) -> int:
    """Print a table; returns the exit code for fine."""
    print(tabulate(table, headers="keys", showindex=False, disable_numparse=True, colalign=["left"]))
    return FINE


def finite(number: float) -> float | None:
    """The number, or `None` for infinity, which JSON does not know."""
    return number if math.isfinite(number) else None
