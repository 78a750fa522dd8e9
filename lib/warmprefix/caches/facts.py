"""Dated facts about providers' caches, one row a fact in `data/providers.toml`."""

import re
import tomllib
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple

from warmprefix.datafiles import DATA, read_data
from warmprefix.errors import InputError

FILE = "providers.toml"


class Fact(NamedTuple):
    """One fact: what it is about, how sure it is (R read, S second-hand, C sources conflict), where and when read."""

    provider: str
    name: str
    value: Any
    unit: str
    sure: str
    source: str
    date: date
    model: str = "*"


@cache
def facts() -> tuple[Fact, ...]:
    """All facts in the order of the file."""
    return tuple(Fact(**row) for row in tomllib.loads(read_data(FILE))["fact"])


@cache
def fact(provider: str, name: str, model: str = "") -> Any:
    """The value of a fact, for a model where it depends on one.

    >>> fact("anthropic", "minimum prefix", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")
    1024

    Raises `InputError` for a model that no row fits.
    """
    short = plain(model)
    for row in facts():
        if (row.provider, row.name) == (provider, name) and fnmatchcase(short, row.model):
            return row.value
    raise InputError(
        "", f"model {model!r}", f"is unknown: no {name} of {provider} for it", f"add a row to {DATA.name}/{FILE}"
    )


@cache
def plain(model: str) -> str:
    """A model's name without vendor, region, fine-tuning, date and version marks.

    >>> plain("ft:gpt-4o-mini-2024-07-18:acme::x1"), plain("vertex/claude-opus-4-5@20251101"), plain("claude-opus-4.5")
    ('gpt-4o-mini', 'claude-opus-4-5', 'claude-opus-4-5')
    """
    name = model.lower().removeprefix("ft:").rpartition("/")[2]
    name = re.sub(r"^([a-z-]+\.)?(anthropic|openai)\.", "", name)
    name = re.split(r"[:@]", name)[0]
    name = re.sub(r"-(v\d+|latest|\d{8}|\d{4}-\d{2}-\d{2})(?=-|$)", "", name)
    return name.replace(".", "-") if name.startswith("claude") else name
