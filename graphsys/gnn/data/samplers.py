"""The samplers of neighbors by name, as a config sets them up."""

from collections.abc import Sequence

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.part_specs import SAMPLERS, SamplerSpec
from graphsys.sampling import LaborSampler, NeighborSampler, TemporalSampler
from graphsys.sampling.adjacency import PartitionedCsr


def _neighbor(rows: Sequence[PartitionedCsr], config: GnnConfig) -> NeighborSampler:
    return NeighborSampler(
        rows,
        config.hop_fanouts,
        frontier=config.frontier,
        seed=config.seed,
        is_replacing=config.replace,
        is_weighted=config.weighted,
    )


def _labor(rows: Sequence[PartitionedCsr], config: GnnConfig) -> LaborSampler:
    return LaborSampler(
        rows,
        config.hop_fanouts,
        frontier=config.frontier,
        iterations=config.labor_iterations,
        is_weighted=config.weighted,
        seed=config.seed,
    )


def _temporal(rows: Sequence[PartitionedCsr], config: GnnConfig) -> TemporalSampler:
    return TemporalSampler(
        rows,
        config.hop_fanouts,
        frontier=config.frontier,
        seed=config.seed,
        is_weighted=config.weighted,
        choice="latest" if config.recent else "uniform",
    )


for _spec in (
    SamplerSpec(
        name="neighbor", make=_neighbor, is_usual=True, can_replace=True, can_weigh=True
    ),
    SamplerSpec(
        name="labor",
        make=_labor,
        can_weigh=True,
        can_iterate=True,
        has_shares=lambda config: config.weighted or config.labor_iterations != 0,
    ),
    SamplerSpec(
        name="temporal",
        make=_temporal,
        can_weigh=True,
        can_be_recent=True,
        has_times=True,
        has_all_edges=False,
    ),
):
    SAMPLERS.add(_spec)
