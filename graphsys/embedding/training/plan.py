"""What a run will take, before it starts, and the buffer that a memory budget allows."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from graphsys.core.errors import BudgetError
from graphsys.core.memory import format_bytes
from graphsys.core.threads import num_cores
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.bucket_order import lower_bound
from graphsys.embedding.data.schedule import BucketSchedule, BucketTask, Layout, Part
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.node_rows import EmbeddingTables
from graphsys.embedding.rows.table_files import row_bytes, table_bytes
from graphsys.embedding.spec.comparators import comparator_of
from graphsys.embedding.training.eviction import Swap, SwapPlan
from graphsys.embedding.training.negatives import sampler_bytes
from graphsys.training.memory_split import split_of

# the first of those with the fewest bytes is taken; the others draw, or never win
CANDIDATES: Final = ("inside_out", "beta", "hilbert", "comet")
_SLACK_BYTES: Final = 16 << 20  # threads' stacks, pages not given back at once
_UNJOINED: Final = ", or train partition by partition: --set join_partitions=false"
_MOST_PARTITIONS: Final = 1 << 14
_UNEVEN: Final = 1.1  # the largest partition over the mean, in a guess of more partitions


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """Estimates for one run; an epoch is one after the first, if there are several.

    Attributes:
        layout: Order of the units and size of the buffer.
        memory_bytes: Peak of anonymous memory of the process; mapped edges are the page
            cache's and not counted.
        memory_split: Its parts, see :mod:`graphsys.training.memory_split`.
        disk_bytes: Size of the run while two checkpoints exist side by side.
        read_bytes, write_bytes: Embedding files read and written per epoch.
        edge_bytes: Edge files read per epoch.
        loads: Partitions loaded per epoch.
        swaps: Those of an epoch by itself that replace another.
        min_swaps: A number that no order gets below.
        num_units: Units per epoch.
        num_checkpoints: Checkpoints per epoch; None: one in so many seconds.
        num_edges: Edges trained per epoch.
        gemm_flops: Floating-point operations in matrix products per epoch.
    """

    layout: Layout
    memory_bytes: int
    memory_split: Mapping[str, int]
    disk_bytes: int
    read_bytes: int
    write_bytes: int
    edge_bytes: int
    loads: int
    swaps: int
    min_swaps: int
    num_units: int
    num_checkpoints: int | None
    num_edges: int
    gemm_flops: int

    def as_metrics(self) -> dict[str, Any]:
        """Return the estimates under the names that the report shows."""
        values = {k: v for k, v in vars(self).items() if k != "layout"}
        values |= {
            "bucket_order": self.layout.order,
            "buffer_partitions": self.layout.capacity,
            "prefetch": self.layout.prefetch,
        }
        return {f"planned_{name}": value for name, value in values.items()}


class Planner:
    """Walks through epochs without training.

    Args:
        context: The training.
        base_bytes: Memory that the process has before it loads anything.
    """

    def __init__(self, context: EmbeddingContext, base_bytes: int = 0) -> None:
        self._graph, self._config = graph, config = context.graph, context.config
        self._model, self._steps = model, steps = context.model, context.steps
        node_rows = EmbeddingTables(graph, config)
        self._sizes = {name: node_rows.sizes(name) for name in graph.node_types}
        self._partitions = {name: graph.num_partitions(name) for name in graph.node_types}
        self._base_bytes = base_bytes
        schedule = BucketSchedule(steps, self._partitions, Layout(), config.seed)
        self._units, self._needs = schedule.epoch(0), schedule.needs(0)
        self._stretches = schedule.stretches()
        swapped = frozenset[Part]().union(*self._needs)
        used = {part for step in steps for part in (step.src, step.dst)}
        self._swapped = {part: self._bytes(part) for part in swapped}
        stretches = [self._parts_of(units) for units in self._stretches]
        self._most = max((len(parts) for parts in stretches), default=0)
        self._whole = max(sum(self._swapped[p] for p in parts) for parts in stretches)
        self._always_parts = used - swapped
        self._always = sum(map(self._bytes, self._always_parts))
        self._operators = sum(8 * m.num_sides * int(m.offsets[-1]) for m in model)
        self.smallest = max((len(need) for need in self._needs), default=0) or 1

    def choose(self, budget: int, *, is_stated: bool, order: str | None = None) -> Layout:
        """Return the buffer and the order for a budget.

        A stated budget gives the largest buffer that fits beside its spare place and the
        order with the fewest bytes; an unstated one the smallest buffer. What the config
        says is taken as it is, but for a spare place that does not fit.

        Args:
            budget: Memory for the whole process, in bytes.
            is_stated: Whether the user named it.
            order: The order that a resumed run has already.

        Raises:
            BudgetError: Not even the smallest buffer fits.
        """
        config, most = self._config, max(self._most, self.smallest)
        sizes = range(most, self.smallest - 1, -1) if is_stated else [self.smallest]
        if config.buffer_partitions:
            sizes = [min(max(config.buffer_partitions, self.smallest), most)]
        fitting = [
            Layout(capacity=size, order_capacity=size, prefetch=prefetch)
            for prefetch in dict.fromkeys([config.prefetch, False])
            for size in sizes
        ]
        for layout in fitting:
            if self.memory_bytes(layout) <= budget:
                return self._ordered(layout, order, is_stated=is_stated)
        raise BudgetError(self._refusal(fitting[-1], budget))

    def memory_bytes(self, layout: Layout) -> int:
        """Return the peak of anonymous memory: it holds for every order."""
        buffer = sum(self._swapped[part] for part in self._held(layout))
        return self._fixed_bytes() + buffer + self._largest_unit

    def memory_split(self, layout: Layout) -> dict[str, int]:
        """Return the parts of :meth:`memory_bytes`, those of the largest unit.

        ``caches`` are the partitions in memory that the unit does not train, ``topology``
        the orders of edges, ``activations`` and ``gradients`` the workers' scratch.
        """
        held = self._held(layout)
        trained = [*held[: self.smallest], *self._always_parts]
        rows = sum(self._row_bytes(part) for part in trained)
        unit = max(self._units, key=self._unit_bytes)
        known = {
            "parameters": rows + self._operators // 2,
            "optimizer": sum(map(self._bytes, trained)) - rows + self._operators // 2,
            "caches": sum(self._swapped[part] for part in held[self.smallest :]),
            "topology": self._order_bytes(unit),
            **self._scratch_of(unit),
        }
        return split_of(self.memory_bytes(layout), self._base_bytes, known)

    def _held(self, layout: Layout) -> list[Part]:
        """Return the partitions of a buffer that take the most, the largest first."""
        places = min(layout.capacity + layout.prefetch, self._most)
        return sorted(self._swapped, key=self._swapped.__getitem__, reverse=True)[:places]

    def plan(self, layout: Layout) -> TrainingPlan:
        """Return what a run with this layout takes."""
        config = self._config
        schedule = BucketSchedule(self._steps, self._partitions, layout, config.seed)
        epoch = min(config.epochs, 2) - 1
        needs = schedule.needs(epoch)
        loads = self._loads(schedule, layout.capacity)[epoch]
        read, evicted = self._traffic(loads, is_first=epoch == 0)
        stored = [self._stored_bytes(unit) for unit in schedule.epoch(epoch)]
        is_every = config.checkpoint_seconds == 0
        alone = SwapPlan[Part](layout.capacity)
        alone.extend(needs)
        swaps = [swap for _ in needs for swap in alone.advance()]
        everything = self._whole + self._always + self._operators
        num_edges = sum(step.num_edges for step in self._steps)
        per_edge = 10 if any(len(m.relations) > 1 for m in self._model) else 8
        return TrainingPlan(
            layout=layout,
            memory_bytes=self.memory_bytes(layout),
            memory_split=self.memory_split(layout),
            disk_bytes=2 * everything,
            read_bytes=read,
            write_bytes=sum(stored) if is_every else evicted,
            edge_bytes=num_edges * per_edge,
            loads=len(loads),
            swaps=sum(swap.evict is not None for swap in swaps),
            min_swaps=lower_bound(needs, layout.capacity),
            num_units=len(needs),
            num_checkpoints=len(needs) if is_every else None,
            num_edges=num_edges,
            gemm_flops=sum(map(self._gemm_flops, self._steps)),
        )

    def _gemm_flops(self, step: BucketTask) -> int:
        """Return the operations of a bucket: three products a query, two queries each."""
        config = self._config
        pools = 2 * (config.chunk_size + config.num_drawn)
        if self._model[step.edge_type].all_negatives.all():
            pools = sum(self._num_nodes(part) for part in (step.src, step.dst))
        return step.num_edges * 3 * 2 * pools * config.dim

    def _num_nodes(self, part: Part) -> int:
        return int(np.diff(self._graph.offsets(part[0]))[part[1]])

    def _ordered(self, layout: Layout, order: str | None, *, is_stated: bool) -> Layout:
        chosen = order or self._config.bucket_order
        names = [chosen]
        if chosen == "auto":
            is_whole = layout.capacity >= self._most
            names = list(CANDIDATES) if is_stated and not is_whole else ["inside_out"]
        layouts = [dataclasses.replace(layout, order=name) for name in names]
        if len(layouts) == 1:
            return layouts[0]

        def traffic(choice: Layout) -> int:
            schedule = BucketSchedule(
                self._steps, self._partitions, choice, self._config.seed
            )
            loads = self._loads(schedule, choice.capacity)[1]
            return sum(self._traffic(loads, is_first=False))

        return min(layouts, key=traffic)

    def _loads(self, schedule: BucketSchedule, capacity: int) -> list[list[Swap[Part]]]:
        """Return the loads of the first two epochs, the second as in a longer run."""
        buffer = SwapPlan[Part](capacity)
        for epoch in range(3):
            buffer.extend(schedule.needs(epoch))
        return [
            [swap for _ in range(len(schedule)) for swap in buffer.advance()]
            for _ in range(2)
        ]

    def _traffic(self, loads: list[Swap[Part]], *, is_first: bool) -> tuple[int, int]:
        """Return the bytes read, and those written when partitions leave."""
        known: set[Part] = set()
        fresh = self._parts_of(self._stretches[0])  # the others' nodes have been in memory
        read = written = 0
        for swap in loads:
            if not is_first or swap.load in known or swap.load not in fresh:
                read += self._swapped[swap.load]
            known.add(swap.load)
            if swap.evict is not None:
                written += self._swapped[swap.evict]
        return read, written

    def _parts_of(self, units: slice) -> frozenset[Part]:
        """Return the partitions that some units need, but for those always there."""
        return frozenset[Part]().union(*self._needs[units])

    def _stored_bytes(self, unit: list[BucketTask]) -> int:
        parts = {part for step in unit for part in (step.src, step.dst)}
        return sum(self._bytes(part) for part in parts) + self._operators

    def _bytes(self, part: Part) -> int:
        return table_bytes(self._config, part[0], int(self._sizes[part[0]][part[1]]))

    def _row_bytes(self, part: Part) -> int:
        return int(self._sizes[part[0]][part[1]]) * row_bytes(self._config, part[0])

    def _fixed_bytes(self) -> int:
        return self._base_bytes + self._operators + self._always + _SLACK_BYTES

    @cached_property
    def _largest_unit(self) -> int:
        return max(map(self._unit_bytes, self._units))

    def _unit_bytes(self, unit: list[BucketTask]) -> int:
        """Return what a unit takes besides tables: orders of edges, workers' scratch."""
        return self._order_bytes(unit) + sum(self._scratch_of(unit).values())

    def _order_bytes(self, unit: list[BucketTask]) -> int:
        """Return what the orders of a unit's edges take, and what draws negatives."""
        config = self._config
        per_edge, sorting = 4 + 4, 0  # the order; relations or weights in another type
        if config.is_cut_by_relation and any(len(m.relations) > 1 for m in self._model):
            sorting = 16  # codes in order, their order, the order by relation
        if config.mode == "kvsall":
            per_edge, sorting = per_edge + 4, 64  # an edge for either question; keys
            if config.weigh_by_answers:
                per_edge += 2 * (4 + 4 + 4 + 4)  # both ends, relation and weight are copied
        if config.join_partitions or config.partition_groups:
            per_edge += 4 + 4 + 4 + 4  # both ends, relation and weight are copied
        longest = max(step.num_edges for step in unit)
        orders = sum(step.num_edges for step in unit) * per_edge + longest * sorting
        return orders + sum(
            sampler_bytes(self._graph, config, self._model[step.edge_type], step)
            for step in unit
        )

    def _scratch_of(self, unit: list[BucketTask]) -> dict[str, int]:
        widest = max(
            sum(int(self._sizes[p[0]][p[1]]) for p in {step.src, step.dst}) for step in unit
        )
        ends = {part for step in unit for part in (step.src, step.dst)}
        nodes = max(map(self._num_nodes, ends))
        return scratch_split(self._config, self._model, widest, nodes)

    def _refusal(self, layout: Layout, budget: int) -> str:
        needed = self.memory_bytes(layout)
        parts, is_joined = self._most, self._config.join_partitions
        buffer = f" with a buffer of {layout.capacity} of {parts} partitions" * (parts > 0)
        return (
            f"memory: training needs {format_bytes(needed)}{buffer}, got "
            f"{format_bytes(budget)}; give --memory {-(-needed // 10**6)}MB"
            f"{_UNJOINED if is_joined else self._more_partitions(budget)}"
        )

    def _more_partitions(self, budget: int) -> str:
        """Say with how many partitions the graph would fit in a budget, if with any."""
        largest = max(self._sizes, key=lambda name: int(self._sizes[name].sum()))
        grown = [n for n, count in self._partitions.items() if count > 1] or [largest]
        totals = {
            name: table_bytes(self._config, name, int(self._sizes[name].sum()))
            for name in grown
        }
        held = sum(totals.values())
        fixed = self._fixed_bytes() - self._always * (len(self._swapped) == 0)
        fixed += max(0, self._always - held) * (len(self._swapped) == 0)
        unit = max(map(self._unit_bytes, self._units))
        scratch = sum(scratch_split(self._config, self._model, 0, 0).values())
        factor = 2
        while factor * max(self._partitions[name] for name in grown) <= _MOST_PARTITIONS:
            counts = {name: factor * self._partitions[name] for name in grown}
            largest_parts = sorted(_UNEVEN * totals[n] / counts[n] for n in grown)[-2:]
            pair = 2 * largest_parts[-1] if len(grown) == 1 else sum(largest_parts)
            orders = 2 * _UNEVEN * (unit - scratch) / factor
            if fixed + scratch + pair + orders <= budget:
                return (
                    ", or write the graph with more partitions: `graphsys partition "
                    f"{self._graph.path} --partitions {_spec(counts, self._partitions)} "
                    "-o GRAPH2`"
                )
            factor *= 2
        pools = "the negatives" if self._config.mode == "sampled" else "batch_size"
        return f"; no number of partitions is enough: lower dim, threads or {pools}"


def _spec(counts: Mapping[str, int], partitions: Mapping[str, int]) -> str:
    if len(partitions) == 1:
        return str(next(iter(counts.values())))
    return ",".join(f"{n}={counts.get(n, count)}" for n, count in partitions.items())


def scratch_split(
    config: EmbeddingConfig, model: Sequence[RelationSet], num_rows: int, num_nodes: int
) -> dict[str, int]:
    """Return what the workers' scratch takes, by part of the memory.

    Args:
        config: The settings.
        model: The relations.
        num_rows: Rows of a bucket's partitions, each of which has a slot.
        num_nodes: Of the largest partition.

    Returns:
        Bytes of ``activations`` (scores), of ``gradients`` (rows that are compared, and
        theirs) and of ``temporary`` (slots).
    """
    workers = 1 if config.deterministic else config.threads or num_cores()
    negatives = config.num_drawn
    if any(m.all_negatives.any() for m in model):
        negatives = max(negatives, num_nodes)
    chunk, pool = config.chunk_size, config.chunk_size + negatives
    dim = max(config.dim_of(m.edge_type.src_type) for m in model)
    comparator = comparator_of(config.comparator)
    matrices = 3 if comparator.is_distance else 2
    matrices += 2 if config.reads_known_edges else 0  # as positions, of either side
    rows = 8 * pool + 2 * chunk + (3 * pool if comparator.is_unit else 0)
    rows += 2 * (pool + chunk) if config.bias else 0
    batch = math.ceil(config.batch_size / chunk) * 2 * pool
    operators = max(2 * m.num_sides * int(m.offsets[-1]) for m in model)
    if config.relation_prediction:
        relations = max(len(m.offsets) - 1 for m in model)
        operators += chunk * (2 * relations + 2) + operators // 2
    floats = {
        "activations": matrices * chunk * pool + chunk * chunk,
        "gradients": (rows + batch) * dim + operators,
        "temporary": num_rows,
    }
    return {name: workers * 4 * count for name, count in floats.items()}
