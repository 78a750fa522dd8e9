"""One run of an agent: what it sends, which tools it loads and why, and what became of every call."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from warmprefix.channel import clean
from warmprefix.harness import markers as marking
from warmprefix.harness import trimming
from warmprefix.harness.approval import Approve, Guard, approve_all, refusal, stays_inside
from warmprefix.harness.transcript import (
    ASSISTANT,
    USER,
    Piece,
    Transcript,
    reference_piece,
    result_piece,
    text_piece,
    use_piece,
)
from warmprefix.harness.wire import APPEND, INLINE, INSERT, assemble, body, request
from warmprefix.prompt import MESSAGES
from warmprefix.request import Request
from warmprefix.tools.arguments import settled
from warmprefix.tools.catalogue import Tool, compact
from warmprefix.tools.handlers import Sandbox, ToolError, run
from warmprefix.tools.search import Index, no_hit
from warmprefix.tools.surface import Surface, headings

RAN, FAILED, REFUSED, OUTSIDE = "ran", "failed", "refused", "outside"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model calls."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers to one request: a text, and the tools it calls at once."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Activation:
    """A deferred tool that was loaded: behind which request (from 0), by a `call` or a `search`, and its words."""

    tool: str
    request: int
    trigger: str
    query: str = ""


@dataclass(frozen=True, slots=True)
class Miss:
    """A search that found nothing."""

    query: str
    request: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a call: `ran`, `failed` in its handler, `refused`, or `outside` the run's surface or profile."""

    name: str
    status: str
    text: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that has gone out: its pieces, its markers by position, and when (seconds)."""

    pieces: tuple[Piece, ...]
    markers: Mapping[int, str]
    at: float
    first_token_at: float

    def body(self, model: str = "") -> str:
        """Its JSON."""
        return body(self.pieces, self.markers, model)

    def request(self, model: str = "", scope: str = "") -> Request:
        """The same for the cache models."""
        return request(
            self.pieces, self.markers, at=self.at, first_token_at=self.first_token_at, model=model, scope=scope
        )


@dataclass
class Session:
    """A run with its surface and its rules; `run` plays what a model answers.

    `may_call` is the profile of a subagent: the names it may call, though it is sent what every run is sent.
    `first_token` and `pace` are the seconds from a request to its first token and to the next request.
    """

    surface: Surface
    sandbox: Sandbox
    instructions: str
    approve: Approve = approve_all
    guards: Sequence[Guard] = (stays_inside,)
    may_call: frozenset[str] | None = None
    placement: str = APPEND
    markers: str = marking.PAIR
    trim: trimming.Policy | None = None
    now: float = 0.0
    first_token: float = 2.0
    pace: float = 10.0
    transcript: Transcript = field(default_factory=Transcript)
    loaded: list[Tool] = field(default_factory=list)
    activations: list[Activation] = field(default_factory=list)
    misses: list[Miss] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    _index: Index | None = None
    _calls: int = 0

    def run(self, text: str, replies: Sequence[Reply]) -> None:
        """One turn: the user's text, then every reply of the model with the results of its calls."""
        self.transcript.append(text_piece(USER, text))
        if self.trim:
            changes, reclaimed = trimming.plan(self.transcript.pieces, self.trim)
            if changes:
                self.transcript.rewrite(changes, reclaimed, len(self.sent))
        for reply in replies:
            self.send()
            self._hear(reply)

    def pieces(self) -> tuple[Piece, ...]:
        """What the next request holds, in wire order; views and requests both come from here."""
        return assemble(self.surface, self.loaded, self.instructions, self.transcript.pieces, self.placement)

    def send(self) -> Sent:
        """Send everything said so far; a request of its own for every step of the model."""
        pieces = self.pieces()
        previous = sum(piece.tier == MESSAGES for piece in self.sent[-1].pieces) if self.sent else None
        # Sorted in among the others, an activated schema leaves no constant part of the tool block to mark.
        in_block = len(self.surface.resident) + (len(self.loaded) if self.placement == INSERT else 0)
        placed = marking.place(pieces, in_block, previous, self.markers)
        self.sent.append(Sent(pieces, placed, self.now, self.now + self.first_token))
        self.now += self.pace
        return self.sent[-1]

    def child(self, may_call: frozenset[str] | None = None) -> "Session":
        """A subagent: a fresh conversation behind the same tools and instructions, whatever its profile may call.

        It may never call what the session that starts it may not.
        """
        if self.may_call is not None:
            may_call = self.may_call if may_call is None else self.may_call & may_call
        return Session(
            self.surface,
            self.sandbox,
            self.instructions,
            self.approve,
            self.guards,
            may_call,
            self.placement,
            self.markers,
            self.trim,
            self.now,
            self.first_token,
            self.pace,
        )

    def _hear(self, reply: Reply) -> None:
        if reply.text:
            self.transcript.append(text_piece(ASSISTANT, reply.text))
        calls = [Call(clean(call.name), settled(call.arguments)) for call in reply.calls]
        ids = [f"call_{self._calls + i}" for i in range(1, len(calls) + 1)]
        self._calls += len(ids)
        self.transcript.append(
            *(use_piece(ident, call.name, call.arguments) for ident, call in zip(ids, calls, strict=True))
        )
        known = len(self.loaded)
        outcomes = [self._call(call) for call in calls]
        self.outcomes += outcomes
        self.transcript.append(
            *(result_piece(ident, outcome.text) for ident, outcome in zip(ids, outcomes, strict=True))
        )
        if self.placement == INLINE:
            self.transcript.append(*(reference_piece(tool) for tool in self.loaded[known:]))

    def _call(self, call: Call) -> Outcome:
        tool = self.surface.find(call.name)
        if tool is None:
            return Outcome(call.name, OUTSIDE, f"This run has no tool {call.name!r}; search_tools finds what it has.")
        if self.may_call is not None and tool.name not in self.may_call:
            return Outcome(tool.name, OUTSIDE, f"This subagent may not call {tool.name}.")
        self._load(tool, "call")
        reason = refusal(tool, call.arguments, self.approve, self.guards)
        if reason:
            return Outcome(tool.name, REFUSED, reason)
        try:
            if tool.does.get("action") == "search_tools":
                return Outcome(tool.name, RAN, self._search(call.arguments["query"], call.arguments.get("top", 5)))
            return Outcome(tool.name, RAN, run(self.sandbox, tool, call.arguments))
        except ToolError as error:
            return Outcome(tool.name, FAILED, str(error))

    def _load(self, tool: Tool, trigger: str, query: str = "") -> None:
        if tool in self.surface.deferred and tool not in self.loaded:
            self.loaded.append(tool)
            self.activations.append(Activation(tool.name, len(self.sent) - 1, trigger, query))

    def _search(self, query: str, top: int) -> str:
        """Rank the whole surface; the hits' schemas come with the next request."""
        self._index = self._index or Index(self.surface.tools)
        hits = self._index.rank(query, top)
        if not hits:
            self.misses.append(Miss(query, len(self.sent) - 1))
            return no_hit(query, headings(self.surface.tools))
        for hit in hits:
            self._load(hit.tool, "search", query)
        return "\n".join(compact({"name": hit.tool.name, "description": hit.tool.description}) for hit in hits)
