"""What stands in the next request and what each withheld schema would cost, from the pieces that are sent."""

from collections import Counter
from dataclasses import dataclass

from warmprefix.harness.session import Session
from warmprefix.harness.transcript import tool_piece
from warmprefix.prompt import MESSAGES, SYSTEM, TOOLS
from warmprefix.tools.catalogue import token_count


@dataclass(frozen=True, slots=True)
class ContextView:
    """Tokens by what they are spent on.

    `tools` holds every definition in the tool block by name, in wire order; `withheld` what the definition of each
    deferred tool would cost that is not in the request; `index` is a part of `system`.
    """

    tools: dict[str, int]
    withheld: dict[str, int]
    system: int
    index: int
    messages: int
    total: int


def context_view(session: Session) -> ContextView:
    """The view of what `session.send()` would send now."""
    pieces = session.pieces()
    tiers: Counter[str] = Counter()
    for piece in pieces:
        tiers[piece.tier] += token_count(piece.text)
    by_body = {tool_piece(tool).body: tool.name for tool in session.surface.tools}
    sent = {by_body[piece.body]: token_count(piece.text) for piece in pieces if piece.tier == TOOLS}
    loaded = {tool.name for tool in session.loaded}
    withheld = {
        tool.name: token_count(tool_piece(tool).text) for tool in session.surface.deferred if tool.name not in loaded
    }
    index = token_count(session.surface.index())
    return ContextView(sent, withheld, tiers[SYSTEM], index, tiers[MESSAGES], sum(tiers.values()))
