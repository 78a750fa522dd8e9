"""Streams of requests for the referees: our own simulated ones, and made-up ones that try the rules' edges.

A stream is a list of (prompt, answer) in token ids from `LOW` on, which the tiny model of the llama.cpp server knows.
"""

import hashlib
from dataclasses import replace
from itertools import chain

import numpy as np

from warmprefix.channel import Channel, Message
from warmprefix.prompt import Segment
from warmprefix.request import Block, Blocks, Request
from warmprefix.simulate import Setting, simulate
from warmprefix.strategies import STRATEGIES
from warmprefix.tokens import Tokenizer

LOW, HIGH = 3, 259


def tokens(rng, count):
    return rng.integers(LOW, HIGH, count).tolist()


def append_only(rng, turns=20, base=600, step=(60, 180)):
    history, stream = tokens(rng, base), []
    for _ in range(turns):
        stream.append((list(history), tokens(rng, rng.integers(2, 30))))
        history += stream[-1][1] + tokens(rng, rng.integers(*step))
    return stream


def volatile_front(rng, at=40, width=12, **size):
    return [
        ([*prompt[:at], LOW + turn % 256, *tokens(rng, width - 1), *prompt[at + width :]], answer)
        for turn, (prompt, answer) in enumerate(append_only(rng, **size))
    ]


def volatile_tail(rng, width=90, **size):
    return [(prompt + tokens(rng, width), answer) for prompt, answer in append_only(rng, **size)]


def compacted(rng, turns=20, base=600, step=(60, 180), limit=1800):
    history, stream = tokens(rng, base), []
    for _ in range(turns):
        stream.append((list(history), tokens(rng, 5)))
        history += tokens(rng, rng.integers(*step))
        if len(history) > limit:
            history = history[:base] + tokens(rng, 120)
    return stream


def two_sessions(rng, turns=20):
    shared, stream = tokens(rng, 500), []
    sessions = [shared + tokens(rng, 200), shared + tokens(rng, 150)]
    for turn in range(turns):
        history = sessions[turn % 2]
        stream.append((list(history), tokens(rng, 3)))
        history += tokens(rng, rng.integers(60, 180))
    return stream


def retried(rng):
    """The same prompt again, cut at and beside the borders of blocks, and lengthened."""
    whole = tokens(rng, 1024)
    cuts = [1024, 1024, 512, 513, 511, 496, 128, 127, 129, 17, 16, 15, 1, 2, 1023]
    return [(whole[:cut], tokens(rng, 2)) for cut in cuts] + [(whole + tokens(rng, 16), [LOW]), (whole, [LOW])]


def forked(rng, turns=120, longest=900):
    """Each prompt continues, cuts or forks an earlier one at a random place: the rules' whole surface."""
    stream = [(tokens(rng, 100), tokens(rng, 4))]
    while len(stream) < turns:
        prompt, answer = stream[rng.integers(len(stream))]
        known = prompt + answer * int(rng.integers(2))
        kept = known[: int(rng.integers(1, len(known) + 1))] if rng.random() < 0.6 else known
        new = kept + tokens(rng, rng.integers(0, 120))
        stream.append((new[:longest], tokens(rng, rng.integers(1, 20))))
    return stream


def made_up(seed):
    """Every made-up stream by its name."""
    makers = (append_only, volatile_front, volatile_tail, compacted, two_sessions, retried, forked)
    rngs = np.random.default_rng(seed).spawn(len(makers))
    return {make.__name__: make(rng) for make, rng in zip(makers, rngs, strict=True)}


def simulated(strategy, mentions=25, small=False):
    """The requests that our simulation sends over a channel of bursts, each with its answer.

    `small` scales the prefix and the channel's messages down, for an engine that really computes what it caches.
    """
    rng = np.random.default_rng(11)
    words = ["build", "main", "slow", "test", "merge", "branch", "queue", "index", "cache", "retry", "deploy"]
    rows, at = [], 0.0
    for i in range(mentions * 5):
        at += float(rng.exponential(40.0))
        said = " ".join(rng.choice(words, int(rng.integers(2, 12 if small else 120))))
        rows.append(Message(f"m{i}", f"user{rng.integers(5)}", said, at, f"user{rng.integers(5)}"))
    addressed = sorted(int(i) for i in rng.choice(len(rows), mentions, replace=False))
    setting = Setting(framing="Be brief.\n", tools=('{"name":"look"}\n',)) if small else Setting()
    blocks = Blocks(Tokenizer())
    reply = blocks.of("messages", Segment("reply", setting.reply(1)))
    channel = Channel.of("c", rows)
    steps = simulate(channel, addressed, STRATEGIES[strategy], blocks, setting, evict_at={mentions // 2})
    return [replace(step.request, scope="", answer=(reply,)) for step in steps], blocks.ids


class Ids:
    """Requests of plain token ids: cut into blocks at random places, since no rule may depend on them."""

    def __init__(self, rng):
        self._rng, self._known = rng, {}

    def of(self, block):
        return self._known[block.key]

    def request(self, prompt, answer=(), **fields):
        cuts = np.sort(self._rng.integers(0, len(prompt) + 1, 3)).tolist()
        pieces = [prompt[a:b] for a, b in zip([0, *cuts], [*cuts, len(prompt)], strict=True)]
        return Request(
            tuple(self._block(piece) for piece in pieces if piece),
            answer=(self._block(answer),) if answer else (),
            output=len(answer),
            **fields,
        )

    def _block(self, ids):
        key = hashlib.sha256(repr(ids).encode()).hexdigest()
        self._known[key] = list(ids)
        return Block("messages", "ids", key, len(ids))


def spelled(requests, ids, low=LOW, high=HIGH):
    """The token ids of requests of blocks, brought into the tiny model's vocabulary."""

    def small(blocks):
        return [low + token % (high - low) for token in chain.from_iterable(ids(block) for block in blocks)]

    return [(small(request.blocks), small(request.answer)) for request in requests]
