"""How often a status line changes: at times, at every full period, or when somebody joins or leaves."""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from warmprefix.channel import Channel
from warmprefix.errors import InputError
from warmprefix.simulate import status_line

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
EACH_TURN, MEMBERS = "each turn", "on join or leave"
RATES = {"each minute": MINUTE, "each hour": HOUR, "each day": DAY}


def line(changes: tuple[float, ...] | float | None, copies: int = 1) -> Callable[[float], str]:
    """The published status line as of its last change, `copies` times over.

    >>> line(60.0)(119.0) == line(60.0)(60.0) != line(60.0)(120.0)
    True
    >>> line((5.0,))(4.0) == line((5.0,))(5.0)
    False

    `changes` are its times (seconds, ascending), the period of a line that changes at every full one, or `None` for one
    that changes at every time. Raises `InputError` for a period or a number of copies below 1.
    """
    if copies < 1 or (isinstance(changes, float | int) and not changes >= 1):
        raise InputError("", f"status line, {changes} s, {copies} copies", "is none", "ask for at least 1 of each")

    def at_last_change(at: float) -> str:
        if changes is None:
            return status_line(at) * copies
        if isinstance(changes, tuple):
            # Its n-th version, whenever that began: only that it differs from the others matters.
            return status_line(float(bisect_right(changes, at))) * copies
        return status_line(at // changes * changes) * copies

    return at_last_change


def rates(channel: Channel, away: float = 900.0) -> dict[str, tuple[float, ...] | float | None]:
    """For each way of changing, what `line` takes; `away` is the seconds of silence after which a person has left."""
    return {EACH_TURN: None, **RATES, MEMBERS: members(channel, away)}


def members(channel: Channel, away: float) -> tuple[float, ...]:
    """When the number of people online changes: one is online from a row of theirs until `away` seconds of silence.

    >>> from warmprefix.channel import Message
    >>> members(Channel.of("ch", [Message("1", "ann", "hi", 0.0), Message("2", "ann", "?", 50.0)]), away=60.0)
    (0.0, 110.0)
    """
    if not away >= 0:
        raise InputError("", f"away={away}", "is no time of silence", "take seconds, 0 or more")
    spans: dict[str, list[list[float]]] = {}
    for row in channel.messages:
        if not row.agent:
            own = spans.setdefault(row.author, [])
            if own and row.created_at <= own[-1][1]:
                own[-1][1] = row.created_at + away
            else:
                own.append([row.created_at, row.created_at + away])
    return tuple(sorted({time for own in spans.values() for span in own for time in span}))


def evenly(times: Sequence[float], count: int) -> tuple[float, ...]:
    """So many of the times, evenly spread, none of them the first (a line that is new changes nothing).

    >>> evenly((0.0, 1.0, 2.0, 3.0, 4.0), 2)
    (2.0, 4.0)

    Raises `InputError` for more than there are.
    """
    if not 0 <= count < len(times):
        raise InputError("", f"{count} changes", f"in {len(times)} turns", f"ask for 0 to {len(times) - 1}")
    step = (len(times) - 1) / count if count else 1.0
    return tuple(times[round((i + 1) * step)] for i in range(count))
