"""What a mention sends to a cold, a restored and a warm process, decided in one place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SYSTEM, TOOLS, MESSAGES = "system", "tools", "messages"


class Segment(NamedTuple):
    """A piece of a prompt and what it is; see `tokens.is_segment` for the texts whose token counts add up."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation: `user`, `assistant`, `system` or `tool`, and its pieces in order."""

    role: str
    parts: tuple[Segment, ...]

    @classmethod
    def of(cls, role: str, text: str) -> "Turn":
        """A turn of one piece."""
        return cls(role, (Segment(role, text),))

    @property
    def text(self) -> str:
        """The turn as it is sent."""
        return "".join(part.text for part in self.parts)


def warm_prompt(conversation: Sequence[Turn]) -> tuple[Segment, ...]:
    """The newest turn that is not the assistant's, the system's or a tool's; empty when blank or absent."""
    for turn in reversed(conversation):
        if turn.role not in ("assistant", "system", "tool"):
            return turn.parts if any(part.text.strip() for part in turn.parts) else ()
    return ()


def full_prompt(conversation: Sequence[Turn]) -> tuple[Segment, ...]:
    """The whole conversation flattened to `User:` and `Assistant:` lines.

    >>> print("".join(s.text for s in full_prompt([Turn.of("user", "hi\\n"), Turn.of("assistant", "yes?\\n")])), end="")
    User: hi
    Assistant: yes?
    """
    labels = {"user": "User: ", "assistant": "Assistant: "}
    flat: list[Segment] = []
    for turn in conversation:
        if turn.role in labels and turn.parts:
            first, *rest = turn.parts
            flat += [Segment(first.kind, labels[turn.role] + first.text), *rest]
    return tuple(flat)


def compose(conversation: Sequence[Turn], framing: str, *, cold: bool, restored: bool = False) -> tuple[Segment, ...]:
    """What the process gets for this turn; a warm one gets neither the framing nor a word that it has had.

    >>> talk = [Turn.of("user", "first\\n"), Turn.of("assistant", "done\\n"), Turn.of("user", "second\\n")]
    >>> "".join(s.text for s in compose(talk, "Be brief.", cold=False))
    'second\\n'
    >>> "".join(s.text for s in compose(talk, "Be brief.", cold=True, restored=True))
    'Be brief.\\n\\nsecond\\n'
    """
    warm = warm_prompt(conversation)
    if warm and not (cold or restored):
        return warm
    opening = Segment(SYSTEM, framing.rstrip() + "\n\n")
    return (opening, *(warm if restored and warm else full_prompt(conversation)))
