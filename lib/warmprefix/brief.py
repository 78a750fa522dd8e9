"""The user turn of a mention: opening line, payload, the brief that never changes, context block."""

import json
from dataclasses import dataclass
from functools import cache, lru_cache

from warmprefix.channel import Message
from warmprefix.datafiles import read_data
from warmprefix.delivery import UNSAFE, Block
from warmprefix.prompt import Segment, Turn

OPENING = "You were mentioned in a team chat channel.\n"
SEPARATOR = "---\n"
_OPENING, _SEPARATOR = Segment("opening", OPENING), Segment("separator", SEPARATOR)


@dataclass(frozen=True, slots=True)
class Binding:
    """Who is addressed where: the agent's binding to a channel, as the payload tells it.

    `stored` says that its session is stored exactly, so that it outlives its process; the payload does not tell it.
    """

    channel_id: str = "ch-backend"
    binding_id: str = "b-claude"
    runtime: str = "cli:claude:agent"
    handle: str = "@claude"
    supervised: bool = True
    resident: bool = True
    max_recipients: int = 3
    stored: bool = False

    @property
    def keeps_session(self) -> bool:
        """Whether what the agent has been shown stays with it; without that it has no watermark, only snapshots.

        >>> Binding().keeps_session, Binding(resident=False).keeps_session
        (True, False)
        """
        return (self.supervised and self.resident) or self.stored


@cache
def brief() -> str:
    """The rules of the channel, the same bytes in every turn (`data/brief.md`)."""
    return read_data("brief.md")


@lru_cache(maxsize=4096)
def payload(message: Message, run_id: str, binding: Binding = Binding()) -> str:
    """The addressed message and its circumstances as one line of JSON, which nothing in the message can end.

    >>> json.loads(payload(Message("m026", "ann", "@claude\\u2028look", 0.0), "run-02"))["text"] == "@claude\\u2028look"
    True
    """
    fields = {
        "channel_id": binding.channel_id,
        "message_id": message.id,
        "run_id": run_id,
        "binding_id": binding.binding_id,
        "runtime": binding.runtime,
        "supervised": binding.supervised,
        "resident": binding.resident,
        "thread_root_id": message.thread_root_id,
        "channel_agents": [{"handle": binding.handle, "reachable": True}],
        "max_recipients": binding.max_recipients,
        "text": message.text,
    }
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    # JSON allows most of these raw inside a string.
    return UNSAFE.sub(lambda m: json.dumps(m[0])[1:-1], line) + "\n"


def mention_turn(
    message: Message, run_id: str, block: Block, binding: Binding = Binding(), rules: str | None = None
) -> Turn:
    """The user turn that one mention sends, in pieces whose token counts add up; `rules` stands in for the brief."""
    parts = [
        _OPENING,
        Segment("payload", payload(message, run_id, binding)),
        _SEPARATOR,
        Segment("brief", brief() if rules is None else rules),
    ]
    if block.header:
        parts.append(Segment("header", block.header))
        parts += [Segment("row", text) for text in block.rows]
        parts += [Segment("notice", text) for text in block.notices]
    return Turn("user", tuple(parts))
