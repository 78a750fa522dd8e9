"""Ways to feed a channel to a session, as points in one space of knobs."""

from dataclasses import dataclass, replace
from types import MappingProxyType

from warmprefix.delivery import Limits
from warmprefix.errors import InputError
from warmprefix.parameters import suggestion
from warmprefix.prompt import SYSTEM, TOOLS
from warmprefix.watermark import FAITHFUL, STRICT

# What a warm turn may leave out.
SYSTEM_PROMPT, TRANSCRIPT, SEEN_ROWS = OMISSIONS = "system prompt", "transcript", "seen rows"
# Where a volatile status line may stand; `None` is nowhere.
PLACES = (None, "before tools", "before system", "after system", "turn start", "turn end", "tool")


@dataclass(frozen=True, slots=True)
class Strategy:
    """One point in the space of knobs.

    `omits` is what a warm turn leaves out; `resident` whether the process lives from one mention to the next; `status`
    where the status line stands, and `ask_every` at which turns the agent asks for it when it stands behind a tool;
    with `threads`, a mention in a thread sees that thread's rows, and one in the channel no thread's; `order` is the
    order of the tiers that come before the messages.

    Raises `ValueError` for a knob at a place that it does not have.
    """

    name: str
    omits: frozenset[str] = frozenset(OMISSIONS)
    resident: bool = True
    status: str | None = None
    ask_every: int = 5
    threads: bool = False
    cursor: str = FAITHFUL
    limits: Limits = Limits()
    order: tuple[str, str] = (SYSTEM, TOOLS)

    def __post_init__(self) -> None:
        for name, known in (
            ("status", PLACES),
            ("cursor", (FAITHFUL, STRICT)),
            ("order", ((SYSTEM, TOOLS), (TOOLS, SYSTEM))),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}; it is {getattr(self, name)!r}")
        if unknown := self.omits.difference(OMISSIONS):
            raise ValueError(f"omits must be among {OMISSIONS}; {min(unknown)!r} is not")
        if self.ask_every < 1:
            raise ValueError(f"ask_every must be at least 1; it is {self.ask_every}")

    @property
    def remembers(self) -> bool:
        """Whether seen rows are left out, which takes a process that remembers them."""
        return self.resident and SEEN_ROWS in self.omits


_WATERMARK = Strategy("watermark")
_WINDOW = replace(_WATERMARK, name="window", omits=_WATERMARK.omits - {SEEN_ROWS})
STRATEGIES = MappingProxyType(
    {
        strategy.name: strategy
        for strategy in (
            _WINDOW,
            _WATERMARK,
            replace(_WATERMARK, name="unstable", status="before system"),
            replace(_WATERMARK, name="status-tail", status="turn end"),
            replace(_WATERMARK, name="status-tool", status="tool"),
            replace(_WATERMARK, name="repeat-system", omits=_WATERMARK.omits - {SYSTEM_PROMPT}),
            replace(_WATERMARK, name="replay-transcript", omits=_WATERMARK.omits - {TRANSCRIPT}),
            replace(_WATERMARK, name="memoryless", resident=False),
        )
    }
)
PUBLISHED = ("window", "watermark", "unstable")


def named(name: str) -> Strategy:
    """The named point; raises `InputError` for a name that none has."""
    if name not in STRATEGIES:
        raise InputError("", f"strategy {name}", "unknown", suggestion(name, STRATEGIES))
    return STRATEGIES[name]
