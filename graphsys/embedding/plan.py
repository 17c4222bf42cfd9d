"""What a run will take, before it starts: memory, disk, bytes read and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphsys.core.threads import num_cores
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet
from graphsys.embedding.schedule import Part, Step, units
from graphsys.storage.reader import Graph

_EDGE_BYTES = 4 + 8  # the order of training, and a generous share for weights


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Estimates for one run.

    Attributes:
        memory_bytes: Peak of the tables, scratch and orders of a unit; mapped edges are
            the page cache's and not counted.
        disk_bytes: Size of the run while two checkpoints exist side by side.
        read_bytes, write_bytes: Embedding files read and written per epoch, with a
            checkpoint after every unit.
        edge_bytes: Edge files read per epoch.
        swaps: Partitions loaded per epoch.
        num_units: Units (and checkpoints) per epoch.
        num_edges: Edges trained per epoch.
        gemm_flops: Floating-point operations in matrix products per epoch.
    """

    memory_bytes: int
    disk_bytes: int
    read_bytes: int
    write_bytes: int
    edge_bytes: int
    swaps: int
    num_units: int
    num_edges: int
    gemm_flops: int

    def as_metrics(self) -> dict[str, Any]:
        """Return the estimates under the names that the report shows."""
        return {f"planned_{name}": value for name, value in vars(self).items()}


def make_plan(
    graph: Graph, config: EmbeddingConfig, model: Sequence[RelationSet], steps: list[Step]
) -> Plan:
    """Walk through one epoch without training."""
    sizes = {name: np.diff(graph.offsets(name)) for name in graph.node_types}
    partitions = {name: graph.num_partitions(name) for name in graph.node_types}
    row_bytes = 4 * config.dim + 4
    operator_bytes = sum(8 * m.num_sides * int(m.offsets[-1]) for m in model)

    def part_bytes(part: Part) -> int:
        return int(sizes[part[0]][part[1]]) * row_bytes

    resident: set[Part] = set()
    seen: set[Part] = set()
    peak = read = written = swaps = edges = 0
    groups = units(steps, partitions)
    for unit in groups:
        needed = {part for step in unit for part in (step.src, step.dst)}
        swaps += len(needed - resident)
        read += sum(part_bytes(part) for part in needed - resident)
        written += sum(part_bytes(part) for part in needed) + operator_bytes
        tables = sum(part_bytes(part) for part in needed)
        orders = sum(step.num_edges for step in unit) * _EDGE_BYTES
        widest = max(sum(sizes[p[0]][p[1]] for p in {s.src, s.dst}) for s in unit)
        peak = max(peak, tables + orders + _scratch_bytes(config, model, int(widest)))
        edges += sum(step.num_edges for step in unit)
        resident, seen = needed, seen | needed
    table_bytes = sum(part_bytes(part) for part in seen) + operator_bytes
    per_edge = 10 if any(len(m.relations) > 1 for m in model) else 8
    pool = config.chunk_size + config.num_uniform_negatives
    return Plan(
        memory_bytes=peak + operator_bytes,
        disk_bytes=2 * table_bytes,
        read_bytes=read,
        write_bytes=written,
        edge_bytes=edges * per_edge,
        swaps=swaps,
        num_units=len(groups),
        num_edges=edges,
        gemm_flops=edges * 2 * 3 * 2 * pool * config.dim,
    )


def _scratch_bytes(
    config: EmbeddingConfig, model: Sequence[RelationSet], num_rows: int
) -> int:
    """Return what the workers' scratch takes: scores, pools, gradients, slots."""
    workers = 1 if config.deterministic else config.threads or num_cores()
    chunk, pool = config.chunk_size, config.chunk_size + config.num_uniform_negatives
    matrices = 2 if config.comparator in ("l2", "squared_l2") else 1
    rows = 6 * pool + chunk + (3 * pool if config.comparator == "cos" else 0)
    batch = max(1, config.batch_size // chunk) * 2 * pool
    operators = max(m.num_sides * int(m.offsets[-1]) for m in model)
    floats = (
        matrices * chunk * pool
        + (rows + min(batch, num_rows)) * config.dim
        + operators
        + num_rows
    )
    return workers * 4 * floats
