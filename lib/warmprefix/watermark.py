"""What a session has been shown: the mark, and the store that advances it only after a run has succeeded."""

import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from pathlib import Path

from filelock import FileLock

from warmprefix.atomic import write_text
from warmprefix.channel import Message
from warmprefix.errors import InputError

FAITHFUL, STRICT = "faithful", "strict"
KEEP_IDS = 200

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Mark:
    """What the process `native` has been shown: the newest time, the newest ids, and the newest store position.

    `told_at` is the time up to which it has been told of rows that were changed after it had seen them.
    """

    native: str
    last_at: float
    ids: tuple[str, ...]
    position: int
    told_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Key:
    """What a mark belongs to: an agent's session, a channel, and a thread of it (or none)."""

    session: str
    channel: str
    thread: str | None = None

    def __str__(self) -> str:
        return json.dumps([self.session, self.channel, self.thread], ensure_ascii=False)


def covers(mark: Mark, message: Message, cursor: str = FAITHFUL) -> bool:
    """Whether the cursor holds the message for shown.

    `faithful` is the published rule, by id and by time: it also covers a row that was never shown and carries the
    newest time shown, or an older one. `strict` goes by store position, where a late row stands behind.

    >>> mark = Mark("native-1", 60.0, ("a",), position=4)
    >>> late = Message("b", "ann", "same minute, stored later", 60.0, position=5)
    >>> covers(mark, late), covers(mark, late, STRICT)
    (True, False)
    """
    if cursor == STRICT:
        return message.position <= mark.position
    return message.created_at <= mark.last_at or message.id in mark.ids


def advance(mark: Mark | None, shown: Sequence[Message], native: str, at: float = 0.0) -> Mark:
    """The mark after `native` has been shown these rows at time `at`: the newest time and position, the newest 200 ids.

    A mark of another process is dropped, not continued.

    Raises `ValueError` when no row is given and there is no mark to continue: nothing shown is nothing to advance by.
    """
    base = mark if mark and mark.native == native else None
    if not shown:
        if base is None:
            raise ValueError("nothing was shown, so the mark does not advance")
        return replace(base, told_at=max(at, base.told_at))
    rows = sorted(shown, key=attrgetter("position"))
    last_at, position = max([message.created_at for message in rows]), rows[-1].position
    ids = tuple([message.id for message in rows])
    if base:
        # Overlapping runs can commit out of order: a mark never moves back over what was delivered.
        last_at, position, at = max(last_at, base.last_at), max(position, base.position), max(at, base.told_at)
        ids = tuple(dict.fromkeys(base.ids + ids))
    return Mark(native, last_at, ids[-KEEP_IDS:], position, at)


class WatermarkStore:
    """The marks of all sessions in one file, `channel-watermarks.json`, written whole under a lock.

    `stage` keeps a run's rows in memory only, so that whatever stops the process before the end of `commit` leaves the
    mark from before. A file that cannot be read as marks is renamed, logged, and its path kept in `damaged`: its
    sessions get a snapshot again, which repeats rows and hides none.

    Raises `InputError` where the file cannot be read at all: it may be sound, so it stays where it is.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.damaged: Path | None = None
        self._staged: dict[tuple[Key, str], tuple[str, tuple[Message, ...], float]] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(f"{self.path}.lock")

    def watermark_for(self, key: Key, native: str) -> Mark | None:
        """The stored mark of `key`, if it is the mark of the process `native` that answers now."""
        with self._lock:
            mark = self._read().get(str(key))
        return mark if mark and mark.native == native else None

    def stage(self, key: Key, run: str, native: str, shown: Sequence[Message], at: float = 0.0) -> None:
        """Park what a run shows until it ends; what other runs of the same channel have parked stays theirs.

        `at` is the time up to which the run tells of changed rows (see `delivery.render`).
        """
        self._staged[key, run] = native, tuple(shown), at

    def commit(self, key: Key, run: str) -> Mark | None:
        """Advance the mark by what the run has shown, and return it; a run that told nothing new changes nothing."""
        native, shown, at = self._staged.get((key, run), ("", (), 0.0))
        mark = None
        if shown or at:
            with self._lock:
                marks = self._read()
                old = marks.get(str(key))
                if shown or (old and old.native == native and old.told_at < at):
                    marks[str(key)] = mark = advance(old, shown, native, at)
                    write_text(self.path, json.dumps({k: asdict(m) for k, m in marks.items()}, indent=1))
        self.discard(key, run)
        return mark

    def discard(self, key: Key, run: str) -> None:
        """Forget what the run has shown: a failed run may have shown nothing."""
        self._staged.pop((key, run), None)

    def _read(self) -> dict[str, Mark]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError as error:
            return self._set_aside(str(error))
        except OSError as error:
            raise InputError(
                self.path, "", f"unreadable: {error.strerror}", "give a file, and leave to read it"
            ) from None
        try:
            return {key: _mark(fields) for key, fields in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            return self._set_aside(str(error))

    def _set_aside(self, why: str) -> dict[str, Mark]:
        aside = next(
            path for n in range(1, 10**6) if not (path := self.path.with_name(f"{self.path.name}.damaged-{n}")).exists()
        )
        self.path.replace(aside)
        self.damaged = aside
        log.warning(
            "%s: not a watermark file (%s); kept as %s, every session starts with a snapshot", self.path, why, aside
        )
        return {}


def _mark(fields: dict[str, object]) -> Mark:
    mark = Mark(**fields)  # type: ignore[arg-type]
    if not (
        isinstance(mark.native, str)
        and isinstance(mark.last_at, int | float)
        and abs(mark.last_at) < float("inf")  # a mark at the end of time would hide every row for good
        and isinstance(mark.ids, list)
        and all(isinstance(id, str) for id in mark.ids)
        and isinstance(mark.position, int)
        and isinstance(mark.told_at, int | float)
        and abs(mark.told_at) < float("inf")  # nor may it hide every notice
    ):
        raise TypeError(f"a field of the mark of {mark.native!r} has a wrong type")
    return replace(mark, ids=tuple(mark.ids))
