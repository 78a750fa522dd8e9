"""Raw request logs: what a provider's cache would read and write for each request of a log."""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from warmprefix.caches import Usage
from warmprefix.caches.anthropic import Anthropic
from warmprefix.caches.entries import Refused
from warmprefix.caches.facts import fact, plain
from warmprefix.caches.openai import OpenAI
from warmprefix.caches.openai_breakpoints import OpenAIBreakpoints
from warmprefix.chatlogs.records import LATEST, Record, kind_of, shown
from warmprefix.errors import InputError
from warmprefix.rawlogs import anthropic, openai
from warmprefix.rawlogs.blocks import BlockMaker
from warmprefix.request import Request

# What a log or the command line may call a provider, and whose bodies it takes.
PROVIDERS = {
    "anthropic": "anthropic",
    "bedrock": "anthropic",
    "vertex": "anthropic",
    "openai": "openai",
    "azure": "openai",
}
_ENCODINGS = {"anthropic": "cl100k_base", "openai": "o200k_base"}  # Anthropic's own is not public


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a log: its number, and its request with the rules it falls under, or what is wrong with it."""

    line: int
    rules: tuple[str, str] = ("", "")
    request: Request | None = None
    error: str | None = None


def charge_log(path: str | os.PathLike[str], provider: str | None = None) -> dict[str, Any]:
    """What each request of a log would read and write, and their sums.

    The requests stand in the order of the file and are charged in the order of their times. `provider` overrides what
    the log says. A request that is damaged, refused or of an unknown model has an `error` and zeros; the others are
    charged. Raises `InputError` for a file that cannot be read, that is empty, or for an unknown provider.
    """
    return table(result for _, result in charge_rows(path, provider))


def charge_rows(path: str | os.PathLike[str], provider: str | None = None) -> list[tuple[Row, Usage | str]]:
    """The rows of a log in the order of the file, each with its usage or with what is wrong with it (`charge_log`)."""
    if provider is not None and provider not in PROVIDERS:
        raise InputError("", f"--provider {provider}", "is unknown", f"use one of {', '.join(PROVIDERS)}")
    makers: dict[str, BlockMaker] = {}
    rows = list(read(path, makers, provider))
    if not rows:
        raise InputError(os.fspath(path), "", "holds no request", "is this the right file?")
    caches: dict[tuple[str, str], Anthropic | OpenAI | OpenAIBreakpoints] = {}
    charged: dict[int, Usage | str] = {}
    for row in sorted(rows, key=lambda row: row.request.at if row.request else 0.0):
        if row.request is None:
            charged[row.line] = row.error or ""
            continue
        if row.rules not in caches:
            caches[row.rules] = _cache(row.rules, makers)
        try:
            charged[row.line] = caches[row.rules].charge(row.request)
        except Refused as error:
            charged[row.line] = _refused(os.fspath(path), f"line {row.line}", error)
        except InputError as error:
            charged[row.line] = f"{os.fspath(path)}: line {row.line}: {error}"
    return [(row, charged[row.line]) for row in rows]


def table(results: Iterable[Usage | str]) -> dict[str, Any]:
    """The results of `charge_rows` as plain values, with their sums."""
    requests = [_shown(result) for result in results]
    totals: dict[str, Any] = {key: sum(row[key] for row in requests) for key in _FIELDS}
    totals["hit_ratio"] = round(totals["read"] / totals["total"], 6) if totals["total"] else None
    return {"requests": requests, "totals": totals}


_FIELDS = ("total", "read", "write", "write_5m", "write_1h", "uncached")


def _shown(result: Usage | str) -> dict[str, Any]:
    usage = result if isinstance(result, Usage) else Usage()
    return {
        "total": usage.total,
        "read": usage.cache_read,
        "write": usage.cache_write_5m + usage.cache_write_1h,
        "write_5m": usage.cache_write_5m,
        "write_1h": usage.cache_write_1h,
        "uncached": usage.uncached,
        "error": result if isinstance(result, str) else None,
    }


def _refused(file: str, place: str, error: Refused) -> str:
    return str(InputError(file, place, f"the provider refuses it: {error}"))


def _cache(rules: tuple[str, str], makers: dict[str, BlockMaker]) -> Anthropic | OpenAI | OpenAIBreakpoints:
    provider, regime = rules
    if PROVIDERS[provider] == "anthropic":
        return Anthropic(collapse_runs=fact("bedrock" if provider == "bedrock" else "anthropic", "collapse runs"))
    return OpenAI(makers["openai"].ids) if regime == "prefix" else OpenAIBreakpoints()


def read(path: str | os.PathLike[str], makers: dict[str, BlockMaker], provider: str | None = None) -> Iterator[Row]:
    """The rows of a log in the order of the file.

    A line is `{"ts", "provider", "body", "session"?, "agent"?, "ttft"?}`, or a body alone, which has the time of the
    line before it. The cache belongs to the account: `session` and `agent` are labels. Without `ttft` (seconds) what
    a request writes is readable from its `ts` on. `makers` holds the counted blocks by interface, filled as needed.
    """
    label, at = os.fspath(path), 0.0
    for number, line in _lines(path):
        place = f"line {number}"
        try:
            record = Record(label, place, _object(line, label, place))
            if "ts" in record.fields:
                at = record.seconds("ts")
            compact = not line.partition(b'":')[2].startswith(b" ")  # by the first key, which is no text of anybody's
            rules, request = _request(record, makers, provider, at, compact)
            yield Row(number, rules, request)
        except Refused as error:
            yield Row(number, error=_refused(label, place, error))
        except InputError as error:
            yield Row(number, error=str(error))
        except (RecursionError, ValueError):  # on the way in, or where a part of the body is written out again
            problem = "is nested too deeply or holds too long a number"
            yield Row(number, error=str(InputError(label, place, problem, "no request does")))


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    label, name = os.fspath(path), Path(path).name
    try:
        size = Path(path).stat().st_size
        bar = tqdm(total=size, unit="B", unit_scale=True, desc=name, leave=False, delay=1, disable=None)
        with open(path, "rb") as log, bar:
            for number, line in enumerate(log, start=1):
                bar.update(len(line))
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    yield number, line
    except OSError as error:
        raise InputError(label, "", f"unreadable: {error.strerror}", "name a log of requests") from None


def _object(line: bytes, file: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode())
    except json.JSONDecodeError as error:
        problem = f"is not JSON: {error.msg} at column {error.colno}"
        raise InputError(file, place, problem, "write one request a line") from None
    except UnicodeDecodeError:
        raise InputError(file, place, "is not UTF-8", "convert the file") from None
    if not isinstance(value, dict):
        raise InputError(file, place, f"must be a JSON object, not {kind_of(value)}", "one request a line")
    return value


def _request(
    record: Record, makers: dict[str, BlockMaker], provider: str | None, at: float, compact: bool
) -> tuple[tuple[str, str], Request]:
    """A line's request and the rules it falls under."""
    body = record.inner("body") if "body" in record.fields else record
    if body is None or (body is record and not body.fields.keys() & {"model", "messages", "input"}):
        raise record.fault("body", "is missing", "a line is a request body, or an object that holds one as body")
    if not body.fields.keys() & {"messages", "input"}:
        raise body.fault("messages", "is missing", "is this a request to a chat, Messages or Responses interface?")
    ttft = record.fields.get("ttft")
    if ttft is not None and (isinstance(ttft, bool) or not isinstance(ttft, int | float) or not 0 <= ttft < LATEST):
        raise record.fault("ttft", f"is no number of seconds: {shown(ttft)}")
    model = body.text("model")
    name = provider or (record.text("provider").lower() if record.fields.get("provider") else _provider(body, model))
    if name not in PROVIDERS:
        raise record.fault("provider", f"is unknown: {shown(name)}", f"use one of {', '.join(PROVIDERS)}")
    interface = PROVIDERS[name]
    maker = makers.get(interface)
    if maker is None:
        maker = makers[interface] = BlockMaker(_ENCODINGS[interface], keep_ids=interface == "openai")
    maker.compact = compact
    try:
        if interface == "anthropic":
            fact("anthropic", "minimum prefix", model)
            regime = ""
        else:
            regime = fact("openai", "regime", model)
    except InputError as error:
        raise InputError(record.file, record.place, str(error)) from None
    shape = anthropic if interface == "anthropic" else openai
    return (name, regime), shape.request(body, maker, at, None if ttft is None else at + ttft)


def _provider(body: Record, model: str) -> str:
    """The provider of a body that does not say it."""
    platform = str(body.fields.get("anthropic_version")).partition("-")[0]
    if platform in ("bedrock", "vertex"):
        return platform
    if re.match(r"([a-z-]+\.)?anthropic\.", model):
        return "bedrock"
    if plain(model).startswith("claude"):
        return "anthropic"
    if re.match(r"gpt-|o\d|chatgpt|codex", plain(model)) or "input" in body.fields:
        return "openai"
    raise body.fault("model", f"{shown(model)} does not tell the provider", "name it with --provider")
