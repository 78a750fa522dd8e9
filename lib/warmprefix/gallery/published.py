"""The figures that are committed, drawn from the committed channel."""

from warmprefix import calibrate, claims, studies
from warmprefix.figures import Drawing
from warmprefix.gallery import knobs, providers, simulation, sweeps
from warmprefix.request import Blocks
from warmprefix.simulate import simulate
from warmprefix.strategies import STRATEGIES
from warmprefix.tokens import Tokenizer


def drawings(channels: int = 100) -> list[Drawing]:
    """Every published figure, from the committed channel and the bands over `channels` others."""
    blocks, sample = Blocks(Tokenizer()), calibrate.published()
    spread = claims.spread(range(channels), blocks)
    steps = list(simulate(sample.channel, sample.mentions, STRATEGIES["watermark"], blocks, sample.setting))
    tables = simulation.runs(sample, blocks)
    return [
        simulation.claims_figure(claims.measure(sample, blocks), spread),
        simulation.channel_figure(sample),
        simulation.mention_figure(steps),
        simulation.cumulative_figure(tables),
        simulation.eviction_figure(sample, blocks, 15),
        simulation.ablation_figure(simulation.ablation(sample, blocks)),
        sweeps.points_figure(studies.evictions(sample)),
        knobs.limits_figure(studies.limits([sample], studies.ROWS, studies.BODIES, studies.FETCHED)),
        knobs.break_even_figure(
            studies.one_change(sample),
            studies.status_changes(sample, studies.DRAWS, studies.DRAWN_FROM),
            int(tables["watermark"]["row_tokens"].sum()),
        ),
        *providers.drawings(sample, blocks),
    ]
