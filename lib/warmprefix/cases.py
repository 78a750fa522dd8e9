"""Logs whose addressee is known, read from a list or from public cases, and replayed side by side."""

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from warmprefix import chatlogs
from warmprefix.channel import Channel, gaps, mentions
from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.ledger import ledger, summary
from warmprefix.request import Blocks
from warmprefix.strategies import STRATEGIES
from warmprefix.watermark import FAITHFUL, STRICT

_SEVERAL = ("mention", "mention_id", "agent")


@dataclass(frozen=True, slots=True)
class Case:
    """A log and how its agent is addressed: the options of `warmprefix replay` as a value."""

    name: str
    source: Path
    format: str | None = None
    channel: str | None = None
    mention: tuple[str, ...] = ()
    mention_id: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()

    def read(self) -> tuple[Channel, tuple[int, ...]]:
        """The channel, and where its mentions stand; raises `InputError` for a log that cannot be read."""
        channel = chatlogs.read(self.source, self.format, channel=self.channel).with_agents(self.agent)
        return channel, mentions(channel, self.mention, self.mention_id)


def listed(path: str | Path) -> list[Case]:
    """The cases of a TOML list: tables `[[case]]` with `source` beside the list and the options of `replay`.

    What `replay` takes several times is a list of texts or one text. Raises `InputError` where the list cannot be read
    or holds no case.
    """
    try:
        rows = tomllib.loads(Path(path).read_text(encoding="utf-8"))["case"]
        found = [_case(Path(path).parent, row) for row in rows]
    except OSError as error:
        raise InputError(path, "", f"unreadable: {error.strerror}", "name a list of cases") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(path, "", f"no list of cases: {error}", "write [[case]] tables with a source each") from None
    if not found:
        raise InputError(path, "", "holds no case", "write [[case]] tables with a source each")
    return found


def _case(folder: Path, row: dict[str, Any]) -> Case:
    options: dict[str, Any] = {}
    for name, value in row.items():
        texts = value if name in _SEVERAL and isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"{name} is {value!r}, no text")
        options[name] = tuple(texts) if name in _SEVERAL else value
    source = folder / options.pop("source")
    return Case(source.name, source, **options)


def public(folder: str | Path) -> list[Case]:
    """The public cases of a folder, each a folder with a log and a `meta.json` that says who is addressed.

    An absent folder holds none. The formats are recognised; of several files the largest is the log.
    """
    return [_public(meta) for meta in sorted(Path(folder).glob("*/meta.json"))]


def _public(path: Path) -> Case:
    meta = json.loads(path.read_text(encoding="utf-8"))
    files = [file for file in path.parent.iterdir() if file.name not in ("meta.json", "expected.json")]
    alone = len(files) == 1 and files[0].is_file() and not files[0].name.startswith("topic-")
    target = next((str(meta[key]) for key in ("target_id", "mention_target", "bot_user_id") if key in meta), None)
    nicks = "|".join(meta.get("bot_nicks_addressed", []))
    return Case(
        path.parent.name,
        files[0] if alone else path.parent,
        mention=(rf"^\s*(?i:{nicks})\s*[,:]",) if nicks else (),
        mention_id=(target,) if target else (),
        agent=tuple(meta.get("bots", [meta["bot"]] if "bot" in meta else [])),
    )


def side_by_side(cases: Iterable[Case], blocks: Blocks, limits: Limits = Limits()) -> pd.DataFrame:
    """One row a case: its size, and what becomes of the rows before the last mention under each cursor.

    `shown` counts rows that the strict watermark shows at least once; `limit` those that it never shows, which is the
    limit's own share; `cursor` those that the faithful cursor hides on top, by equal or earlier stamps; `repeated` the
    rows that the window shows again.
    """
    return pd.DataFrame([_row(case, blocks, limits) for case in cases])


def _row(case: Case, blocks: Blocks, limits: Limits) -> dict[str, Any]:
    channel, where = case.read()
    if not where:
        raise InputError(case.source, "", "nobody addresses the agent here", "check how it is addressed")
    runs = {
        name: summary(ledger(channel, where, replace(strategy, limits=limits), blocks))
        for name, strategy in {
            "window": STRATEGIES["window"],
            STRICT: replace(STRATEGIES["watermark"], cursor=STRICT),
            FAITHFUL: replace(STRATEGIES["watermark"], cursor=FAITHFUL),
        }.items()
    }
    between = gaps(where)
    return {
        "case": case.name,
        "messages": len(channel.messages),
        "authors": len({message.author for message in channel.messages}),
        "mentions": len(where),
        "median gap": between["median"],
        "longest gap": between["max"],
        "over 600": _share([len(message.text) > 600 for message in channel.messages]),
        "rows": where[-1],
        "shown": runs[STRICT]["distinct"],
        "limit": runs[STRICT]["unshown"],
        "cursor": (runs[FAITHFUL]["unshown"] or 0) - (runs[STRICT]["unshown"] or 0),
        "repeated": runs["window"]["duplicated"],
        "input": runs[STRICT]["total_input"],
        "window input": runs["window"]["total_input"],
    }


def _share(of: Sequence[bool]) -> float:
    return sum(of) / len(of)
