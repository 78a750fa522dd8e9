"""Where a channel session's requests carry cache markers: spots with a lifetime each, and all ways to choose them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import combinations

from warmprefix.caches.anthropic import FIVE_MINUTES, ONE_HOUR
from warmprefix.caches.openai_breakpoints import ENDING
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.request import Block, Log, Wire
from warmprefix.simulate import Step

# Behind the tools, the system prompt, the turn of the request before, and this turn.
PREVIOUS, TURN = "previous", "turn"
SPOTS = TOOLS, SYSTEM, PREVIOUS, TURN
Placement = tuple[tuple[str, str], ...]
Markers = tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A turn's request as a harness sends it: one content block a turn, however many rows it shows.

    `turns` are the positions of the user's turns in it, the last one's at its end.
    """

    wire: Wire
    turns: tuple[int, ...]

    def spot(self, name: str) -> int | None:
        """The position of the block that a spot's marker stands on; None where the request has no such block."""
        if name in (PREVIOUS, TURN):
            back = 1 if name == TURN else 2
            return self.turns[-back] if len(self.turns) >= back else None
        return max((i for i, block in enumerate(self.wire.head) if block.tier == name), default=None)


@dataclass
class Layouts:
    """Lays the steps of a simulation out, step by step; `rows` leaves every row a content block of its own."""

    rows: bool = False
    _runs: dict[str, tuple[Log, int, list[int]]] = field(default_factory=dict)

    def of(self, step: Step) -> Layout:
        """The layout of the next step of its session, which no run before may have failed."""
        raw = step.request.blocks
        assert isinstance(raw, Wire)
        log, done, turns = self._runs.get(step.session, (Log(), 0, []))
        new = raw.log.blocks[done : raw.stop]
        log.extend(new[: len(new) - len(step.parts)])
        log.extend(step.parts if self.rows else [one(step.parts)])
        turns.append(len(log.blocks) - 1)
        self._runs[step.session] = (log, raw.stop, turns)
        return Layout(Wire(raw.head, log, len(log.blocks)), tuple(len(raw.head) + i for i in turns))


def one(parts: Sequence[Block]) -> Block:
    """The parts of a turn as one block."""
    key = sha256("\0".join(part.key for part in parts).encode()).hexdigest()[:32]
    return Block(MESSAGES, "turn", key, sum(part.tokens for part in parts))


def placements(most: int = 4) -> Iterator[Placement]:
    """Every choice of spots and lifetimes that the provider accepts: longer lifetimes come first.

    >>> len(list(placements()))
    48
    """
    for count in range(min(most, len(SPOTS)) + 1):
        for spots in combinations(SPOTS, count):
            for hours in range(count + 1) if count else (0,):
                yield tuple(zip(spots, [ONE_HOUR] * hours + [FIVE_MINUTES] * (count - hours), strict=True))


def everywhere(lifetime: str) -> Placement:
    """A marker of one lifetime on every spot.

    >>> named(everywhere("5m"))
    'tools 5m, system 5m, previous 5m, turn 5m'
    """
    return tuple((spot, lifetime) for spot in SPOTS)


def named(placement: Placement) -> str:
    """A placement in words."""
    return ", ".join(f"{spot} {lifetime}" for spot, lifetime in placement) or "no marker"


def markers(layout: Layout, placement: Placement) -> Markers:
    """The markers of a request, in rising order; a spot that it does not have yet gets none."""
    found = ((layout.spot(spot), lifetime) for spot, lifetime in placement)
    return tuple((i, lifetime) for i, lifetime in found if i is not None)


def endings(layout: Layout) -> Markers:
    """Where eligible messages end for OpenAI's breakpoints: the system prompt and every user's turn."""
    system = layout.spot(SYSTEM)
    return tuple((i, ENDING) for i in (*(() if system is None else (system,)), *layout.turns))
