"""The figures of the notebooks: for each its numbers, its drawing, its alt text and its caption."""

from warmprefix.gallery import harness, knobs, providers, published, real, simulation, spread, sweeps, tools

__all__ = ["harness", "knobs", "providers", "published", "real", "simulation", "spread", "sweeps", "tools"]
