"""Channels drawn from the burst laws of public logs: bursts, lulls, clocks, lengths and authors as they were measured.

What 2,000 channels of 200 rows say, each set beside its public log and the range of channel-delivery.md §8:

| | meeting | forum | community | §8 |
|---|---|---|---|---|
| gaps over 12 | 13.4 % (11.8) | 3.1 % (2.9) | 14.6 % (15.1) | 12-15 % |
| gaps over 21 | 6.6 % (5.7) | 1.5 % (1.5) | 7.4 % (7.4) | 6-7 % |
| longest in as many windows | 92 (92) | 26 (26) | 61 (61) | 61-92 |
| never shown with a limit of 12 | 26.7 % (24.6) | 5.0 % (4.8) | 22.6 % (22.7) | 23-29 % |
| pauses over 5 min | 9.1 % (7.8) | 60 % (60) | 95 % (95) | 8 / 60 / 95 % |
| pauses over 1 h | 0.3 % (0.3) | 39 % (39) | 55 % (55) | 0.3 / 39 / 55 % |
| bodies over 600 characters | 0 (0) | 6.8 % (6.8) | 5.7 % (5.7) | 0 / 4-17 / 2-6 % |
| gaps of 1, agents' rows counted | 2.9 % (2.9) | 3.2 % (2.9) | 18.9 % (19.4) | 3 % |
| gaps of 1 without them | 57 % (59) | 37 % (29) | none to leave out | 50 % |
| gap after gap, correlation of logs | 0.19 (0.21) | 0.12 (0.12) | 0.08 (0.07) | |
| gap after next, likewise | 0.04 (0.12) | 0.01 (0.00) | 0.01 (0.10) | |
| authors, median | 22 (22) | 21 (23) | 60 (58) | 22 |

What does not fit, and why. The tail of §8 is that of meeting and community; a bot's forum topics are dense and have no
such tail in the public log either. There are no agents' rows in the community, whose addressee is a person, so neither
of §8's shares of gaps of 1 is its own; the 50 % lies between the meeting's whole logs and the forum's. The meeting's
tail is a little too long: the law takes a window for a stretch from anywhere, and many public ones start with the
meeting. A gap hangs on the one before alone, so what outlasts two gaps is lost: a meeting's dense opening, the lull
after it. The community's windows have 22 mentions in the median, the drawn ones 27. The forum rests on three windows.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from warmprefix.burstlaw import GRID, Law, Window, statistics
from warmprefix.channel import Channel, Message, mentions
from warmprefix.errors import InputError
from warmprefix.generate import HANDLE, Plan, body, phrases, prose

_DRAWS, _ROUNDS = 200_000, 5  # gaps drawn at once, and how often, until a number of mentions fits
_LONG = 600  # characters; longer bodies are pasted logs


def draw(
    law: Law,
    messages: int,
    rng: np.random.Generator,
    *,
    mentioned: int | None = None,
    agent_rows: bool | None = None,
    clock: float | None = None,
    start: float = 1793696400.0,  # 2026-11-03 09:00 UTC
) -> Channel:
    """A channel of exactly so many messages, cut out of the law's endless sequence of bursts.

    >>> from warmprefix.burstlaw import law
    >>> channel = draw(law("meeting"), 200, np.random.default_rng(7), mentioned=25)
    >>> len(channel.messages), len(mentions(channel, [HANDLE])), channel.messages[-1].created_at % 60
    (200, 25, 0.0)

    `messages` counts all rows, agents' rows among them. `mentioned` is the exact number of mentions; None leaves it to
    the law, and rows that the gaps of a small number do not fill stand before the first and after the last mention.
    `agent_rows` None is as in the source: kept where it has them; False leaves them out, so that only people's rows
    count. `clock` is the resolution of the stamps in seconds, None that of the source (minutes in a meeting); a finer
    one spreads the rows of a tick over it. `start` is the time of the first row. Linear in `messages`.

    Raises `InputError` when the numbers exclude each other, when no draw has its mentions so close, or when agents'
    rows are asked of a law whose source has none.
    """
    keep = (law.agent is not None) if agent_rows is None else agent_rows
    _refuse_impossible(law, messages, mentioned, keep, clock)
    if mentioned is None:
        gaps, agent, skip = _stretch(law, messages, rng, keep)
    else:
        gaps, agent, skip = _counted(law, messages, mentioned, rng, keep)
    mention = np.zeros(len(agent), bool)
    mention[np.cumsum(gaps) - gaps] = True
    rows = np.flatnonzero(~agent | keep)[skip : skip + messages]
    at = _times(law, gaps, agent, rng)[rows]
    at = _stamps(start + at - at[0], law.clock, law.clock if clock is None else clock, rng)
    return Channel.of("ch-backend", _messages(law, mention[rows], agent[rows], at, rng))


def _refuse_impossible(law: Law, messages: int, mentioned: int | None, keep: bool, clock: float | None) -> None:
    if messages < 1:
        raise InputError("", f"messages={messages}", "a channel has at least one", "ask for more")
    if mentioned is not None and not 0 <= mentioned <= messages:
        raise InputError("", f"mentioned={mentioned}", f"there are {messages} messages", "ask for 0 up to their number")
    if keep and law.agent is None:
        raise InputError(
            "", f"agent_rows of law {law.name!r}", "its source has no agents' rows", "leave agent_rows out"
        )
    if clock is not None and not 0 < clock < np.inf:
        raise InputError("", f"clock={clock}", "stamps need a resolution in seconds above 0", "take 1 or 60")


_Rows = tuple[np.ndarray, np.ndarray, int]  # gaps; is it an agent's, row by row; rows to leave out at the start


def _stretch(law: Law, messages: int, rng: np.random.Generator, keep: bool) -> _Rows:
    """The law's sequence from a random row on: it lies in a gap with a chance in proportion to the gap's length."""
    first = next(_gaps(law, 1, 256, rng))
    sizes = _kept(first, _agents(law, first, rng), keep)
    size = int(first[rng.choice(len(first), p=sizes / sizes.sum())])
    count = int(1.5 * messages / sizes.mean()) + 40
    while True:  # the first time is nearly always enough
        gaps = np.concatenate([[size], next(_gaps(law, 1, count, rng, after=size))])
        agent = _agents(law, gaps, rng)
        sizes = _kept(gaps, agent, keep)
        skip = int(rng.integers(sizes[0]))
        if sizes.sum() >= skip + messages:
            return gaps, agent, skip
        count *= 2


def _counted(law: Law, messages: int, mentioned: int, rng: np.random.Generator, keep: bool) -> _Rows:
    """The first of many draws that has so many mentions in so many rows, what is left of them around it."""

    def around(size: int) -> np.ndarray:
        return _agents(law, np.array([size]), rng) if keep else np.zeros(size, bool)

    if mentioned == 0:  # the row that is left out stands for a mention before the channel
        return np.array([messages + 1]), np.zeros(messages + 1, bool), 1
    best = -messages
    for _ in range(_ROUNDS):
        if best < -messages:  # the densest of many draws has twice the rows: no use to go on
            break
        best = -2 * messages
        for gaps in _gaps(law, int(np.clip(_DRAWS // mentioned, 8, 2000)), mentioned - 1, rng):
            agent = _agents(law, gaps, rng)
            left = messages - 1 - int(_kept(gaps, agent, keep).sum())
            best = max(best, left)
            if left >= 0:
                lead = int(rng.integers(left + 1)) + 1
                trail = left + 2 - lead
                return np.array([lead, *gaps, trail]), np.concatenate([around(lead), agent, around(trail)]), 1
    raise InputError(
        "",
        f"{mentioned} mentions in {messages} messages",
        f"no draw of the law {law.name!r} has them so close",
        "ask for fewer mentions or more messages",
    )


def _kept(gaps: np.ndarray, agent: np.ndarray, keep: bool) -> np.ndarray:
    """The gaps in rows that are kept; a gap's first row is the mention, so none is empty."""
    if keep or not len(gaps):
        return gaps
    return gaps - np.add.reduceat(agent.astype(int), np.cumsum(gaps) - gaps)


def _gaps(law: Law, runs: int, count: int, rng: np.random.Generator, after: int | None = None) -> Iterator[np.ndarray]:
    """Runs of gaps, each of them following the one before; the first follows a gap of `after` rows, or any."""
    chances = np.cumsum(law.follows, axis=1)
    chances[:, -1] = 1.0  # whatever the rounding of the committed numbers leaves
    if after is None:
        usual = np.linalg.matrix_power(law.follows, 64)[0]
        kind = rng.choice(len(usual), runs, p=usual / usual.sum())
    else:
        kind = np.full(runs, _kinds(law, np.array(after)))
    kinds = np.empty((count, runs), int)
    for step, chance in enumerate(rng.random((count, runs))):
        kind = (chance[:, None] > chances[kind]).sum(axis=1)
        kinds[step] = kind
    return (np.rint(_quantile(law.gaps, each, rng)).astype(int) for each in kinds.T)


def _kinds(law: Law, gaps: np.ndarray) -> np.ndarray:
    return np.searchsorted(law.classes, gaps, "right") - 1


def _quantile(knots: np.ndarray, kinds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A value of each row's distribution, between the two nearest of its quantiles."""
    share = rng.random(len(kinds))
    below = np.searchsorted(GRID, share, "right") - 1
    low, high = knots[kinds, below], knots[kinds, below + 1]
    return low + (high - low) * (share - GRID[below]) / (GRID[below + 1] - GRID[below])


def _agents(law: Law, gaps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Which rows are an agent's: all of a gap's, or often the one behind the mention and some others; no mention is."""
    total, kinds = int(gaps.sum()), _kinds(law, gaps)
    if law.agent is None:
        return np.zeros(total, bool)
    chance = np.repeat(law.agent.further[kinds], gaps)
    mention = np.cumsum(gaps) - gaps
    chance[(mention + 1)[gaps > 1]] = law.agent.behind
    chance[np.repeat(rng.random(len(gaps)) < law.agent.only[kinds], gaps)] = 1.0
    chance[mention] = 0.0
    return rng.random(total) < chance


def _times(law: Law, gaps: np.ndarray, agent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Seconds of each row: a pause for each gap, most of it in few of its rows; the reply comes within a second."""
    pauses = np.expm1(_quantile(np.log1p(law.pauses), _kinds(law, gaps), rng))
    pauses = np.rint(pauses / law.clock) * law.clock
    mention = np.cumsum(gaps) - gaps
    share = rng.gamma(law.split, size=len(agent))
    # A twentieth of the pause is spread evenly: even in a burst nobody writes in no time.
    share += np.repeat(np.add.reduceat(share, mention) / gaps / 19 + 1e-200, gaps)
    replied = mention[gaps > 1]
    replied = replied[agent[replied + 1]]
    share[replied] = 0.0
    steps = share * np.repeat(pauses / np.add.reduceat(share, mention), gaps)
    passed = np.cumsum(steps) - steps
    within = passed - np.repeat(passed[mention], gaps)
    ends = np.repeat(pauses, gaps)
    within[replied + 1] = np.minimum(1.0, ends[replied])
    # The reply's second may overtake a row that came at once; rows never run backwards.
    base = np.repeat(np.cumsum(pauses) - pauses, gaps)
    return np.maximum.accumulate(base + np.minimum(within, ends))


def _stamps(at: np.ndarray, tick: float, clock: float, rng: np.random.Generator) -> np.ndarray:
    """Times as a clock shows them; one finer than the source's tick spreads the rows of a tick over it, in order."""
    if clock < tick:
        ticks = np.floor(at / tick)
        within = rng.random(len(at))
        at = (ticks + within[np.lexsort((within, ticks))]) * tick
    return np.round(np.floor(at / clock) * clock, 6)


def _messages(
    law: Law, mention: np.ndarray, agent: np.ndarray, at: np.ndarray, rng: np.random.Generator
) -> Iterator[Message]:
    authors = iter(_authors(law, int((~agent).sum()), rng))
    shares, knots = law.lengths.T
    chars = np.ceil(np.expm1(np.interp(rng.random(len(at)), shares, np.log1p(knots))) - 1e-9).astype(int)
    if law.agent is not None:
        replies = np.rint(_quantile(law.agent.chars[None], np.zeros(len(at), int), rng)).astype(int)
        chars = np.where(agent, replies, chars)
    people = phrases()["people"]
    for i, (time, size) in enumerate(zip(at.tolist(), chars.tolist(), strict=True)):
        if agent[i]:
            yield Message(f"m{i + 1:03d}", HANDLE[1:], _text(size, "reply", "", rng), time, agent=True, position=i)
            continue
        author = next(authors)
        name = people[author % len(people)] + (str(author // len(people) + 1) if author >= len(people) else "")
        text = _text(size, "request", f"{HANDLE} ", rng) if mention[i] else _text(size, "chat", "", rng)
        yield Message(f"m{i + 1:03d}", name, text, time, name, local=author == 0, position=i)


def _authors(law: Law, rows: int, rng: np.random.Generator) -> list[int]:
    """Who writes each row: the writer of the row before, or any writer in proportion to their rows, or a new one."""
    chance, earlier = rng.random(rows), rng.random(rows)
    writers: list[int] = []
    known = 0
    fresh = rng.random(rows) >= law.again
    fresh[:1] = True
    for turn in range(int(fresh.sum())):
        new = chance[turn] * (law.variety + turn) < law.variety
        writers.append(known if new else writers[int(earlier[turn] * turn)])
        known += new
    return [writers[turn] for turn in (np.cumsum(fresh) - 1).tolist()]


def _text(chars: int, kind: str, head: str, rng: np.random.Generator) -> str:
    """A text of about so many characters, to the next word; one over 600 is a pasted log and has exactly as many."""
    rest = max(chars - len(head), 2)
    if chars > _LONG:
        return head + body(Plan(long_over=rest - 1, long_most=rest), rng, long=True)
    # Texts of a line or more are cut out of longer ones, to the nearest word; short ones stay whole sentences.
    text = prose(rng, kind, rest + (12 if rest > 30 else 0))
    if len(text) > rest:
        before, after = text.rfind(" ", 0, rest + 1), text.find(" ", rest)
        after = len(text) if after < 0 else after
        near = after - rest < rest - before and len(head) + after <= _LONG
        text = text[: after if near or before < 1 else before]
    return head + text


def window(channel: Channel, patterns: Sequence[str] = (HANDLE,)) -> Window:
    """What `burstlaw.statistics` counts, of any channel.

    >>> rows = [Message(str(i), "ann", "@claude look" if i in (0, 3) else "ok", 60.0 * i) for i in range(5)]
    >>> window(Channel.of("ch", rows)).gaps.tolist(), window(Channel.of("ch", rows)).seconds.tolist()
    ([3], [180.0])
    """
    where, people = list(mentions(channel, patterns)), channel.without_agents()
    at = np.array([m.created_at for m in channel.messages])
    return Window(
        gaps=np.diff(where),
        without=np.diff(mentions(people, patterns)),
        seconds=np.diff(at[where]),
        chars=np.array([len(m.text) for m in people.messages]),
        authors=len({m.author for m in channel.messages}),
    )


def compare(law: Law, windows: Sequence[Window], rng: np.random.Generator, batches: int = 400) -> pd.DataFrame:
    """The public log against drawn channels of 200 rows, statistic by statistic.

    Columns: `law`, `statistic` (see `burstlaw.statistics`), `real` in the public log, `generated` the median and `low`
    and `high` the 5 and 95 % points over batches of as many windows as the log's numbers rest on, each drawn with
    replacement from `windows`; `inside` says whether `real` lies between them.
    """
    picks = rng.integers(len(windows), size=(batches, law.windows))
    drawn = pd.DataFrame([statistics([windows[i] for i in pick]) for pick in picks])
    points = drawn.quantile([0.5, 0.05, 0.95])
    table = pd.DataFrame({"real": pd.Series(dict(law.real)), "generated": points.loc[0.5], "low": points.loc[0.05]})
    table["high"] = points.loc[0.95]
    table = table.loc[list(law.real)].rename_axis("statistic").reset_index()
    table.insert(0, "law", law.name)
    return table.assign(inside=table["real"].between(table["low"], table["high"]))
