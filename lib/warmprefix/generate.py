"""Bursty channels from one random generator; every constraint is met exactly or refused with a reason."""

import re
import tomllib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from statistics import median

import numpy as np

from warmprefix.channel import Channel, Message
from warmprefix.datafiles import read_data
from warmprefix.errors import InputError

HANDLE = "@claude"
_WORK = 600_000  # gaps that are drawn until a plan counts as one that no channel meets
_FIELD = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class Plan:
    """What a channel author chooses; the defaults are the published channel's counts.

    `messages` are people's rows, `mentions` of them address the agent, `long` have bodies over `long_over` characters;
    those stand at the rows `long_at` and, drawn, from `long_from` on. `lead` is the number of rows before the first
    mention. Gaps count the rows strictly between two mentions: their minimum, median and maximum, how many of their
    rows lie beyond `row_limit` in all (`beyond`), and the gap before certain mentions, counted from 1 (`gap_before`);
    `None` leaves a constraint open. Bodies have a log-normal length with `body_median` characters and `body_spread`
    (sigma); long ones up to `long_most`. Times are seconds: `within` is the mean pause in a conversation, `pause` the
    mean of the breaks, which follow one message in `pause_every`. `agent_rows` adds the agent's replies as rows of
    their own. `first_id` numbers the ids.
    """

    messages: int = 200
    people: int = 5
    mentions: int = 30
    long: int = 8
    lead: int = 12
    gap_min: int | None = 1
    gap_median: float | None = 4
    gap_max: int | None = 21
    row_limit: int = 12
    beyond: int | None = 25
    long_at: tuple[int, ...] = ()
    long_from: int = 0
    gap_before: Mapping[int, int] = field(default_factory=dict)
    body_median: float = 30.0
    body_spread: float = 0.7
    long_over: int = 600
    long_most: int = 2400
    start: float = 1793696400.0  # 2026-11-03 09:00 UTC
    within: float = 40.0
    pause: float = 900.0
    pause_every: float = 12.0
    agent_rows: bool = False
    first_id: int = 1


def generate(plan: Plan, rng: np.random.Generator) -> Channel:
    """A channel that meets the plan.

    >>> rows = generate(Plan(), np.random.default_rng(7)).messages
    >>> len(rows), sum(HANDLE in row.text for row in rows), sum(len(row.text) > 600 for row in rows)
    (200, 30, 8)

    Raises `InputError` for a plan that no channel meets, and says which constraint stands against which.
    """
    positions = mention_positions(plan, rng)
    long = _long_positions(plan, positions, rng)
    names = phrases()["people"][: plan.people]
    author = int(rng.integers(plan.people))
    at, authors, said = plan.start, [], []
    for position in range(plan.messages):
        author = int((author + rng.integers(1, plan.people)) % plan.people) if plan.people > 1 else 0
        authors.append(author)
        said.append((body(plan, rng, mention=position in positions, long=position in long), at))
        at += 1 + int(rng.exponential(plan.pause if rng.random() * plan.pause_every < 1 else plan.within))
    rows = [
        _message(plan, position, names[author], text, at, local=author == 0)
        for position, (author, (text, at)) in enumerate(zip(_everybody(authors, plan.people), said, strict=True))
    ]
    return Channel.of("ch-backend", _with_replies(rows, rng) if plan.agent_rows else rows)


def _everybody(authors: list[int], people: int) -> list[int]:
    """The authors, each person who was never drawn given a row of somebody who has others."""
    told, rows_of = list(authors), Counter(authors)
    for person in (person for person in range(people) if not rows_of[person]):
        at = next(i for i, author in enumerate(told) if rows_of[author] > 1)
        rows_of[told[at]] -= 1
        told[at], rows_of[person] = person, 1
    return told


def _long_positions(plan: Plan, mentions: list[int], rng: np.random.Generator) -> set[int]:
    taken = {*mentions, *plan.long_at}
    free = [position for position in range(plan.long_from, plan.messages) if position not in taken]
    drawn = plan.long - len(plan.long_at)
    if drawn < 0 or drawn > len(free) or not taken.isdisjoint({*plan.long_at} & {*mentions}):
        raise InputError(
            "", f"long={plan.long}", f"{len(free)} free rows and {len(plan.long_at)} fixed ones", "ask for fewer"
        )
    return {*plan.long_at, *rng.choice(free, drawn, replace=False).tolist()}


def body(plan: Plan, rng: np.random.Generator, *, mention: bool = False, long: bool = False) -> str:
    """One body of the plan's lengths: chat, a request to the agent, or a pasted log."""
    if long:
        return _log(rng, int(rng.integers(plan.long_over + 1, plan.long_most + 1)))
    if mention:
        return f"{HANDLE} {_fill(_pick(phrases()['request'], rng), rng)}"
    chars = int(rng.lognormal(np.log(plan.body_median), plan.body_spread))
    return prose(rng, "chat", min(max(chars, 2), plan.long_over))


def prose(rng: np.random.Generator, kind: str, chars: int) -> str:
    """One sentence of about `chars` characters, or several that add up to about as many."""
    ordered, lengths = _by_length(kind)
    text = ""
    while not text or chars - len(text) >= lengths[len(lengths) // 4]:
        room = chars - len(text)
        most = max(bisect_right(lengths, room), 1)
        least = min(bisect_left(lengths, min(0.7 * room, 0.7 * lengths[-1])), most - 1)
        sentence = _fill(ordered[int(rng.integers(least, most))], rng)
        text += sentence if not text else f"{'' if text[-1] in '.?!' else '.'} {sentence}"
    return text


def replies(count: int, chars: float, rng: np.random.Generator) -> tuple[str, ...]:
    """The agent's replies, about `chars` characters on average, each a segment of its own."""
    lengths = np.maximum(rng.gamma(4.0, chars / 4.0, count), 5)
    return tuple(prose(rng, "reply", int(length)) + "\n" for length in lengths)


def mention_positions(plan: Plan, rng: np.random.Generator) -> list[int]:
    """Where the mentions stand, in store order."""
    positions = [plan.lead]
    for gap in gap_sequence(plan, rng):
        positions.append(positions[-1] + gap + 1)
    return positions[: plan.mentions]


def gap_sequence(plan: Plan, rng: np.random.Generator) -> list[int]:
    """The gaps of a plan, in bursts: short ones follow short ones.

    Raises `InputError` when the constraints exclude each other.
    """
    count, room = plan.mentions - 1, plan.messages - plan.lead - plan.mentions
    low = 0 if plan.gap_min is None else plan.gap_min
    high = room if plan.gap_max is None else plan.gap_max
    _refuse_impossible(plan, count, room, low, high)
    if count < 1:
        return []
    fixed = Counter(plan.gap_before.values())
    tries = min(max(_WORK // count, 50), 20_000)
    for _ in range(tries):
        gaps = _draw(plan, rng, count, low, high)
        if gaps is not None and 0 <= room - sum(gaps) <= max(high, 1) and not fixed - Counter(gaps):
            return _in_bursts(plan, gaps, rng)
    raise InputError(
        "",
        f"gaps {low}/{plan.gap_median}/{high}",
        f"no {count} gaps with {plan.beyond} rows beyond {plan.row_limit} fill {room} messages in {tries:,} draws",
        "change the number of messages or relax one of them",
    )


def _refuse_impossible(plan: Plan, count: int, room: int, low: int, high: int) -> None:
    middle = plan.gap_median
    names = len(phrases()["people"])
    reasons = {
        "a count or a time is negative": min(plan.messages, plan.mentions, plan.long, plan.lead, low) < 0
        or min(plan.body_spread, plan.within, plan.pause) < 0,
        "bodies need a median above zero": plan.body_median <= 0,
        "a long body has to be longer than `long_over`": plan.long_most <= plan.long_over,
        "at least one person has to write": plan.people < 1,
        f"there are names for {names} people": plan.people > names,
        "more people than messages cannot all write": plan.people > plan.messages,
        "mentions and lead need more messages than there are": plan.mentions > 0 and room < 0,
        "gaps of that minimum need more messages than there are": count > 0 and count * low > room,
        "the minimum is above the maximum": count > 0 and low > high,
        "the median lies outside minimum and maximum": bool(
            middle is not None and count > 0 and not low <= middle <= high
        ),
        "one gap has one length": count == 1 and plan.gap_min is not None and low != high,
        "a fixed gap lies outside them": any(not low <= gap <= high for gap in plan.gap_before.values()),
        "a fixed gap stands before a mention that does not exist": any(
            not 2 <= mention <= plan.mentions for mention in plan.gap_before
        ),
        "more rows lie beyond the limit than the gaps can hold": bool(
            plan.beyond and plan.beyond > count * max(high - plan.row_limit, 0)
        ),
        "the longest gap alone has more rows beyond the limit": bool(
            plan.gap_max is not None and count > 0 and plan.beyond is not None and high - plan.row_limit > plan.beyond
        ),
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError("", f"a channel of {plan.messages} messages and {plan.mentions} mentions", reason)


def _draw(plan: Plan, rng: np.random.Generator, count: int, low: int, high: int) -> list[int] | None:
    """One multiset of gaps with the wanted extremes, median and rows beyond the limit, or `None`."""
    middle = plan.gap_median if plan.gap_median is not None else (low + min(high, 2 * low + 6)) / 2
    half = count // 2
    below, above = int(np.floor(middle)), int(np.ceil(middle))
    gaps = [*(int(g) for g in rng.integers(low, below + 1, half)), *_tail(rng, count - half, above, high)]
    if plan.gap_min is not None:
        gaps[0] = low
    if plan.gap_max is not None:
        gaps[-1] = high
    if plan.gap_median is not None:
        if count % 2:
            gaps[half] = below
        elif half:
            gaps[half - 1], gaps[half] = below, int(2 * middle - below)
    if plan.beyond is not None and not _set_beyond(gaps, plan, half, high, rng):
        return None
    wanted = ((plan.gap_min, min(gaps)), (plan.gap_median, median(gaps)), (plan.gap_max, max(gaps)))
    return gaps if all(want is None or want == got for want, got in wanted) else None


def _tail(rng: np.random.Generator, count: int, low: int, high: int) -> list[int]:
    """Gaps above the median: mostly a little, now and then a lot."""
    return [min(low + int(extra), high) for extra in rng.exponential(3.5, count)]


def _set_beyond(gaps: list[int], plan: Plan, half: int, high: int, rng: np.random.Generator) -> bool:
    """Spread the rows beyond the limit over a few of the upper gaps, the others cut to the limit."""
    limit, left = plan.row_limit, plan.beyond or 0
    free = list(range(half + 1, len(gaps) - (plan.gap_max is not None)))
    left -= max(gaps[-1] - limit, 0) if plan.gap_max is not None else 0
    for i in free:
        gaps[i] = min(gaps[i], limit)
    rng.shuffle(free)
    for i in free:
        if left <= 0:
            break
        share = int(rng.integers(1, min(left, high - limit) + 1))
        gaps[i], left = limit + share, left - share
    return left == 0


def _in_bursts(plan: Plan, gaps: list[int], rng: np.random.Generator) -> list[int]:
    """The gaps in order: the fixed ones in their places, the others as runs of short gaps ended by a long one."""
    rest = Counter(gaps) - Counter(plan.gap_before.values())
    middle = median(gaps)
    short = [gap for gap in rest.elements() if gap <= middle]
    long = [gap for gap in rest.elements() if gap > middle]
    rng.shuffle(short)
    rng.shuffle(long)
    bursts: list[list[int]] = []
    while short or long:
        burst, lull = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        bursts.append([gaps.pop() for gaps, n in ((short, burst), (long, lull)) for _ in range(min(n, len(gaps)))])
    order = [gap for i in rng.permutation(len(bursts)) for gap in bursts[i]]
    return [
        plan.gap_before[mention] if mention in plan.gap_before else order.pop(0) for mention in range(2, len(gaps) + 2)
    ]


def _message(plan: Plan, position: int, name: str, text: str, at: float, *, local: bool) -> Message:
    return Message(f"m{plan.first_id + position:03d}", name, text, at, name, local=local, position=position)


def _with_replies(rows: list[Message], rng: np.random.Generator) -> list[Message]:
    """The rows with the agent's answer behind each mention, in the second after it."""
    out: list[Message] = []
    for row in rows:
        out.append(row)
        if row.text.startswith(HANDLE):
            text = prose(rng, "reply", 90)
            out.append(Message(f"{row.id}-reply", HANDLE[1:], text, row.created_at + 1, HANDLE[1:], agent=True))
    return out


@cache
def phrases() -> dict[str, list[str]]:
    """The wording (`data/phrases.toml`)."""
    return tomllib.loads(read_data("phrases.toml"))


@cache
def _by_length(kind: str) -> tuple[list[str], list[int]]:
    ordered = sorted(phrases()[kind], key=len)
    return ordered, [len(sentence) for sentence in ordered]


def _pick(options: list[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


def _fill(template: str, rng: np.random.Generator, time: str = "") -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] == "t":
            return time
        return str(int(rng.integers(2, 1000))) if found[1] == "n" else _pick(phrases()[found[1]], rng)

    return _FIELD.sub(value, template)


def _log(rng: np.random.Generator, chars: int) -> str:
    """A pasted log of exactly `chars` characters, its last line cut as a terminal's scrollback would."""
    text, second = _fill(_pick(phrases()["intro"], rng), rng), int(rng.integers(1800))
    while len(text) < chars:
        second += int(rng.integers(20))
        text += "\n" + _fill(_pick(phrases()["log"], rng), rng, f"09:{second // 60:02d}:{second % 60:02d}")
    text = text[:chars]
    return text if not text[-1].isspace() else text[:-1] + "."
