"""What was said: messages and channels in store order, and who was addressed when."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import attrgetter
from statistics import fmean, median

from warmprefix.errors import InputError

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Text that can be encoded: every lone surrogate has become U+FFFD.

    >>> clean("a\\ud800b")
    'a\ufffdb'
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


@dataclass(frozen=True, slots=True)
class Message:
    """One stored row of a channel.

    `author` is the stable id of the writer and `name` what people see; `created_at` is in seconds; `agent` marks a
    writer that is a bot; `local` marks the user of the machine that the agent runs on; `kind` is `message`, `action`
    or `notice` (only a message can address anybody); `mentions` holds the user ids that the export itself marks as
    addressed; `thread_root_id` is the id of the message whose thread this row belongs to, and `broadcast` says that a
    thread's row stands in the channel as well; `edited_at` and `deleted_at` are when the row, already stored, was
    changed (its text is the text after it).
    """

    id: str
    author: str
    text: str
    created_at: float
    name: str = ""
    agent: bool = False
    local: bool = False
    kind: str = "message"
    mentions: tuple[str, ...] = ()
    thread_root_id: str | None = None
    position: int = 0
    broadcast: bool = False
    edited_at: float | None = None
    deleted_at: float | None = None

    @property
    def role(self) -> str:
        """`assistant` for an agent's row, `user` for anybody else's."""
        return "assistant" if self.agent else "user"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel's rows in store order: `messages[i].position == i`, whatever the clocks say.

    >>> Channel.of("ch", [Message("b", "ann", "hi", 7.0), Message("a", "bob", "ho", 5.0)]).messages[1].position
    1
    """

    id: str
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, id: str, messages: Iterable[Message]) -> "Channel":
        """Number the rows in the order given and clean their text."""
        return cls(id, tuple(_placed(message, i) for i, message in enumerate(messages)))

    def with_agents(self, names: Iterable[str]) -> "Channel":
        """The channel with every row by one of `names` (a name or an id, in any case) marked as an agent's.

        A bot may be addressed and never answer, so one of the names may have written nothing. Raises `InputError` when
        none of them wrote.
        """
        asked = list(names)
        wanted = {name.casefold() for name in asked}
        known = {word.casefold() for m in self.messages for word in (m.author, m.name)}
        if wanted and not wanted & known:
            remedy = "give --agent once for each" if "," in asked[0] else "check the spelling"
            raise InputError("", f"--agent {asked[0]}", "nobody of that name wrote here", remedy)
        marked = (
            replace(m, agent=True) if {m.author.casefold(), m.name.casefold()} & wanted else m for m in self.messages
        )
        return Channel(self.id, tuple(marked))

    def without_agents(self) -> "Channel":
        """The channel as if no agent had written a row, renumbered."""
        return Channel.of(self.id, (m for m in self.messages if not m.agent))


def _placed(message: Message, position: int) -> Message:
    text, name = clean(message.text), clean(message.name or message.author)
    if message.position == position and message.text is text and message.name is name:
        return message
    return replace(message, position=position, text=text, name=name)


@dataclass(frozen=True, slots=True)
class View:
    """The rows among which a mention stands, in store order, and for each the newest time up to it."""

    rows: Sequence[Message]
    newest: Sequence[float]

    @classmethod
    def of(cls, rows: Sequence[Message]) -> "View":
        """The view of these rows."""
        return cls(rows, list(accumulate((row.created_at for row in rows), max)))

    def index(self, message: Message) -> int:
        """Where a row stands in the view."""
        return bisect_left(self.rows, message.position, key=attrgetter("position"))


def threads(channel: Channel) -> dict[str | None, View]:
    """The channel's own rows, under `None`, and the rows of every thread, under the id of the message that it hangs on.

    A thread begins with that message, where the channel has it; a broadcast reply stands in both, and so does a reply
    on which a thread of its own hangs.

    >>> rows = [Message("1", "ann", "plan?", 0.0), Message("2", "bob", "mine", 1.0, thread_root_id="1")]
    >>> {root: [row.id for row in view.rows] for root, view in threads(Channel.of("ch", rows)).items()}
    {None: ['1'], '1': ['1', '2']}
    """
    roots = {message.thread_root_id for message in channel.messages} - {None}
    rows: dict[str | None, list[Message]] = {None: []}
    for message in channel.messages:
        if message.thread_root_id is None or message.broadcast:
            rows[None].append(message)
        for root in {message.thread_root_id, message.id} & roots:
            rows.setdefault(root, []).append(message)
    return {root: View.of(each) for root, each in rows.items()}


def mentions(channel: Channel, patterns: Iterable[str] = (), targets: Iterable[str] = ()) -> tuple[int, ...]:
    """The positions of the rows that address the agent, in store order.

    A row counts when it is a message that no agent wrote and one of the regular expressions `patterns` is found in its
    text, or its export marks one of the user ids `targets` (in any case) as addressed and that one did not write it.

    >>> rows = [Message("1", "ann", "@claude look", 0.0), Message("2", "bob", "ok", 1.0)]
    >>> mentions(Channel.of("ch", rows), ["@claude"])
    (0,)

    Raises `InputError` for a pattern that is not a regular expression.
    """
    searches, wanted = [_compiled(pattern) for pattern in patterns], frozenset(map(str.casefold, targets))
    return tuple(
        m.position
        for m in channel.messages
        if not m.agent
        and m.kind == "message"
        and (
            any(search(m.text) for search in searches)
            or (wanted and any(id in wanted and id != m.author.casefold() for id in map(str.casefold, m.mentions)))
        )
    )


def _compiled(pattern: str) -> Callable[[str], object]:
    if not pattern:
        raise InputError("", "--mention ''", "is found in every message", "name how the agent is addressed")
    try:
        return re.compile(pattern).search
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            "", f"--mention {pattern}", f"not a regular expression: {error}", "quote it for the shell"
        ) from None


def gaps(mention_index: Sequence[int]) -> dict[str, float | None]:
    """How many messages lie strictly between two mentions: `min`, `median`, `mean`, `max` (null below two mentions).

    >>> gaps((3, 5, 10))
    {'min': 1, 'median': 2.5, 'mean': 2.5, 'max': 4}
    """
    between = [b - a - 1 for a, b in pairwise(mention_index)]
    if not between:
        return dict.fromkeys(("min", "median", "mean", "max"))
    return {"min": min(between), "median": median(between), "mean": fmean(between), "max": max(between)}
