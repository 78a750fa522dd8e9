"""Channels that meet the published inputs: counts by the plan, row and reply sizes by choosing the wording."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

import numpy as np

from warmprefix.atomic import write_text
from warmprefix.channel import Channel, mentions
from warmprefix.chatlogs import jsonl
from warmprefix.datafiles import DATA, read_data
from warmprefix.delivery import row
from warmprefix.errors import InputError
from warmprefix.generate import HANDLE, Plan, body, generate, replies
from warmprefix.ledger import ledger
from warmprefix.request import Blocks
from warmprefix.simulate import Setting
from warmprefix.strategies import STRATEGIES

# The published channel (channel-delivery.md §7): a dense burst right after the start, long rows in view of it, and a
# gap of ten before mention 15, so that the twelve rows of that turn reach back to one row from before mention 14.
PUBLISHED = Plan(gap_before={2: 1, 3: 1, 4: 1, 15: 10}, first_id=12)
BURST = (2, 3, 4)
READ, NEW, RESENT = (420, 440), (21, 44), 23
NEW_PER_TURN = 766
TOLERANCE = 0.03
SEED = 82


@dataclass(frozen=True)
class Sample:
    """A channel, where its mentions stand, and the agent's replies."""

    channel: Channel
    mentions: tuple[int, ...]
    replies: tuple[str, ...]

    @property
    def setting(self) -> Setting:
        """The surroundings of a run over this sample."""
        return Setting(reply=lambda turn: self.replies[turn - 1])


def sample(seed: int, blocks: Blocks, plan: Plan = PUBLISHED) -> Sample:
    """The channel of a seed, its wording chosen until the published inputs hold.

    Only inputs are looked at: the row tokens of turns 2 to 4, the tokens sent again after an eviction at mention 15,
    and the new tokens of a warm watermark turn, which the length of the replies sets. Where in its tolerance of 3 % the
    last one ends is left to the seed.
    """
    rng = np.random.default_rng(seed)
    # One pasted log among the last rows before the first mention is what fills the view of the whole burst.
    anchor = plan.lead - 1 - int(rng.integers(6))
    plan = replace(plan, long_at=(anchor,), long_from=plan.lead + 8)
    channel = _fit_rows(generate(plan, rng), plan, blocks, rng)
    where = mentions(channel, [HANDLE])
    return Sample(channel, where, _fit_replies(channel, where, blocks, rng))


def _fit_rows(channel: Channel, plan: Plan, blocks: Blocks, rng: np.random.Generator) -> Channel:
    """The channel with the bodies around its first mentions and before mention 14 drawn again until their sizes fit."""
    where = mentions(channel, [HANDLE])
    texts = [message.text for message in channel.messages]
    longs = {position for position, text in enumerate(texts) if len(text) > plan.long_over}

    def tokens(position: int) -> int:
        return blocks.tokenizer.count(row(replace(channel.messages[position], text=texts[position])))

    sizes = [tokens(position) for position in range(where[BURST[-1] - 1])]
    miss = _miss(sizes, where)
    while miss:
        position = int(rng.integers(len(sizes)))
        old = texts[position], sizes[position]
        texts[position] = body(plan, rng, mention=position in where, long=position in plan.long_at)
        sizes[position] = tokens(position)
        if (now := _miss(sizes, where)) <= miss:
            miss = now
        else:
            texts[position], sizes[position] = old
    seen_before_15 = where[13] - 1
    if seen_before_15 in longs:  # it has to be short, so its log goes to somebody else
        other = int(rng.choice([i for i in range(len(texts)) if i > where[14] and i not in {*where, *longs}]))
        texts[seen_before_15], texts[other] = texts[other], texts[seen_before_15]
    while tokens(seen_before_15) != RESENT:
        texts[seen_before_15] = body(plan, rng)
    return Channel(channel.id, tuple(replace(m, text=text) for m, text in zip(channel.messages, texts, strict=True)))


def _miss(sizes: Sequence[int], where: Sequence[int]) -> int:
    """By how many tokens the blocks of turns 2 to 4 miss their published ranges."""
    miss = 0
    for turn in BURST:
        now, before = where[turn - 1], where[turn - 2]
        read, new = sum(sizes[now - 12 : before]), sum(sizes[before:now])
        miss += max(READ[0] - read, read - READ[1], 0) + max(NEW[0] - new, new - NEW[1], 0)
    return miss


def _fit_replies(channel: Channel, where: Sequence[int], blocks: Blocks, rng: np.random.Generator) -> tuple[str, ...]:
    """Replies of such a length that a warm watermark turn has the published number of new tokens, give or take 3 %."""
    aim = NEW_PER_TURN * (1 + TOLERANCE * float(rng.uniform(-0.9, 0.9)))
    table = ledger(channel, where, STRATEGIES["watermark"], blocks)
    # A warm turn's new tokens are the reply before it and the turn itself.
    turns_alone = float((table["new"] - table["output"].shift())[~table["cold"]].mean())
    chars = 4.0 * (aim - turns_alone)  # about four characters a token
    for _ in range(1000):
        drawn = replies(len(where), max(chars, 5.0), rng)
        new = turns_alone + fmean(blocks.tokenizer.count(reply) for reply in drawn[:-1])
        if abs(new - aim) <= 2.0:
            return drawn
        chars += aim - new
    raise InputError(
        "", f"the replies of {channel.id}", f"none bring a warm turn to {aim:.0f} new tokens", "take another seed"
    )


def published() -> Sample:
    """The one calibrated channel, as committed (`data/channel.jsonl`, `data/replies.txt`).

    It is the channel of `SEED`, which among the first 100 seeds comes nearest to the published inputs.
    """
    channel = jsonl.read(DATA / "channel.jsonl", channel="ch-backend")
    answers = read_data("replies.txt").splitlines(keepends=True)
    return Sample(channel, mentions(channel, [HANDLE]), tuple(answers))


def write(sample: Sample, folder: Path) -> tuple[Path, Path]:
    """Write a sample's channel and replies to a folder, in the form that `published` reads; returns their paths."""
    return (
        jsonl.write(sample.channel, folder / "channel.jsonl"),
        write_text(folder / "replies.txt", "".join(sample.replies)),
    )
