"""One turn taken apart: which segments it sends, how many tokens each costs, and what it leaves out."""

from collections.abc import Sequence
from html import escape
from itertools import groupby

import pandas as pd

from warmprefix.channel import Message
from warmprefix.errors import InputError
from warmprefix.figures import Style, style
from warmprefix.prompt import MESSAGES, TOOLS
from warmprefix.request import Block, Blocks
from warmprefix.simulate import Step

EARLIER = "earlier turns"
# The name of each kind of block, and the series whose look it has in figures and pages.
SEGMENTS = {
    "system": "system prompt",
    "tools": "20 tools",
    "opening": "opening and payload",
    "payload": "opening and payload",
    "separator": "opening and payload",
    "brief": "brief",
    "header": "block header",
    "row": "rows",
    "notice": "rows",
    "status": "status line",
    "reply": EARLIER,  # only a replayed transcript sends one again
}
LOOKS = {
    "system prompt": "prefix",
    "20 tools": "band",
    EARLIER: "snapshot",
    "opening and payload": "status tool",
    "brief": "watermark",
    "block header": "unstable",
    "rows": "window",
    "status line": "unstable",
}


def anatomy(steps: Sequence[Step], turns: Sequence[int]) -> pd.DataFrame:
    """The tokens of the numbered turns (from 1) by segment, in wire order.

    `sent` says whether the harness sends the segment in this turn, or the process holds it from before.
    """
    if bad := [turn for turn in turns if not 1 <= turn <= len(steps)]:
        raise InputError("", f"turn {bad[0]}", f"there are {len(steps)} turns", "count from 1")
    rows = [
        (f"turn {turn}, {'cold' if step.cold else 'warm'}", name, sent, block.tokens)
        for turn in turns
        for step in (steps[turn - 1],)
        for name, sent, block in _segments(step)
    ]
    data = pd.DataFrame(rows, columns=["turn", "segment", "sent", "tokens"])
    return data.groupby(["turn", "segment", "sent"], sort=False, as_index=False).sum()


def left_out(steps: Sequence[Step], turn: int, limit: int | None = 12) -> pd.DataFrame:
    """What a warm turn does not send although the process has to know it: the thesis, in tokens.

    `limit` is how many rows a window would show, `None` for all of them.
    """
    step = steps[turn - 1]
    held = [(name, block.tokens) for name, sent, block in _segments(step) if not sent]
    had = {message.position: row.tokens for earlier in steps[: turn - 1] for message, row in _shown(earlier, step)}
    first = 0 if limit is None else max(step.mention.position - limit, 0)
    among = "" if limit is None else f" among the newest {limit}"
    window = [had[p] for p in range(first, step.mention.position) if p in had]
    return pd.DataFrame(
        [
            ("system prompt and tools", sum(n for name, n in held if name != EARLIER), "once per process"),
            ("transcript of the earlier turns", sum(n for name, n in held if name == EARLIER), "the process has it"),
            (f"rows{among} that it has had", sum(window), "the watermark drops them"),
        ],
        columns=["left out", "tokens", "why"],
    )


def page(step: Step, blocks: Blocks, theme: str = "light") -> str:
    """One turn as HTML: what it sends, piece by piece, coloured by segment, each with its token count."""
    look = style(theme)
    sent = [(name, block) for name, sent, block in _segments(step) if sent]
    total = sum(block.tokens for _, block in sent)
    pieces = []
    # Rows stand one by one; the tool definitions are one piece.
    for (name, _), run in groupby(sent, key=lambda piece: (piece[0], piece[1].kind == TOOLS or id(piece))):
        part = [block for _, block in run]
        pieces.append(_piece(name, "".join(map(blocks.text, part)), sum(block.tokens for block in part), look))
    title = (
        f"Turn {step.turn}, {'cold' if step.cold else 'warm'}: {total:,} tokens sent, {step.request.tokens:,} in all"
    )
    return (
        f'<div style="background:{look.ground};color:{look.ink};padding:8px;max-width:720px">'
        f"<b>{title}</b>{''.join(pieces)}</div>"
    )


def _segments(step: Step) -> list[tuple[str, bool, Block]]:
    """Every block of the request with its segment's name and whether this turn sends it."""
    first = len(step.request.blocks) - len(step.parts)
    segments = []
    for i, block in enumerate(step.request.blocks):
        earlier = i < first and block.tier == MESSAGES
        # A status line in front of the conversation is written anew each turn, whatever else the process holds.
        sent = i >= first or (not earlier and (step.cold or block.kind == "status"))
        segments.append((EARLIER if earlier else SEGMENTS[block.kind], sent, block))
    return segments


def _shown(earlier: Step, step: Step) -> list[tuple[Message, Block]]:
    same = earlier.session == step.session and not earlier.failed
    return list(zip(earlier.shown, earlier.rows, strict=True)) if same else []


def _piece(name: str, text: str, tokens: int, look: Style) -> str:
    lines = text.strip().splitlines()
    shown = "\n".join(line if len(line) <= 100 else f"{line[:99]}…" for line in lines[:6])
    more = f"\n… {len(lines) - 6} more lines" if len(lines) > 6 else ""
    colour = look.colour(LOOKS[name])
    return (
        f'<div style="border-left:6px solid {colour};margin:3px 0;padding:1px 8px">'
        f'<span style="color:{colour};font-size:80%">{name}, {tokens:,} tokens</span>'
        f'<pre style="margin:0;white-space:pre-wrap;font-size:80%;color:inherit;background:none">'
        f"{escape(shown + more)}</pre></div>"
    )
