"""OpenAI up to GPT-5.5: every request is written free of charge, and the longest common prefix is read."""

from dataclasses import dataclass, field

import numpy as np

from warmprefix.caches.facts import fact
from warmprefix.caches.longest import LongestPrefix, Overflow


@dataclass
class OpenAI(LongestPrefix):
    """The longest common prefix, at least 1,024 tokens, in steps of 128; the facts stand in `data/providers.toml`."""

    step: int = field(default_factory=lambda: fact("openai", "step"))
    minimum: int = field(default_factory=lambda: fact("openai", "minimum prefix"))
    lifetime: float = field(default_factory=lambda: fact("openai", "lifetime"))
    extended: float = field(default_factory=lambda: fact("openai", "lifetime 24h"))


def overflow(rng: np.random.Generator) -> Overflow:
    """The overflow of both regimes, by a limit that is second-hand."""
    return Overflow(rng, fact("openai", "overflow"))
