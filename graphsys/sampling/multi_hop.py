"""From seeds outwards, hop by hop: what every sampler of blocks shares."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.kernels.cpu.sampling.layer_entries import weigh_sources
from graphsys.kernels.cpu.sampling.sampled_rows import OUT_OF_RANGE, count_sampled
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Block, Buffers, Sample
from graphsys.sampling.profile_events import tell_sampled
from graphsys.sampling.sample_builder import Growth, require_inside

Ints = npt.NDArray[np.int64]
Frontier = Literal["all", "new"]
Seeds = Ints | Mapping[str, Ints]
Pair = tuple[int, int]


class Draw(NamedTuple):
    """Whose neighbors are drawn, and where they go.

    Attributes:
        hop: The hop, from 0.
        key: Epoch and batch.
        span: The nodes of the type, from and up to which.
        name: Of the buffers of these rows.
        row: Which of those rows is the first.
    """

    hop: int
    key: Pair
    span: Pair
    name: Any
    row: int


_WHOLE = -1  # a fanout: all entries of a row


class WholeRows(NamedTuple):
    """All entries of the rows of a hop, and the sources that they name.

    Attributes:
        indptr: Offsets of the rows, from the hop's first one on, int64.
        slots: By node: 1 + its position among the sources, or 0, int32.
        entries, neighbors: By entry, int64.
        sources: The distinct neighbors, int64, room for every entry.
        weights: Of each source the sum over rows that name it of 1 / d**2, float64.
        num_sources: How many there are.
    """

    indptr: Ints
    slots: npt.NDArray[np.int32]
    entries: Ints
    neighbors: Ints
    sources: Ints
    weights: npt.NDArray[np.float64]
    num_sources: int


class HopSampler:
    """The base of samplers that return a block per hop and relation.

    A sampler may be used by several threads at once: each sample has buffers of its own,
    which it hands back when it is released. They hold 4 bytes per node of the graph
    besides the sample itself.

    Args:
        rows: The relations that messages travel along.
        num_hops: Hops.
        frontier: Whose neighbors the next hop samples: ``all`` nodes known so far, each
            time anew (DGL's rule, and GraphSAGE's), or only the ``new`` ones of the hop
            before (PyG's); then a node has the same neighbors in every block.
        seed: Of all draws.

    Attributes:
        picks_by_node: Whether a row's draws depend on its node, hop, epoch and batch alone.
    """

    picks_by_node = False

    def __init__(
        self,
        rows: Sequence[PartitionedCsr],
        num_hops: int,
        *,
        frontier: Frontier,
        seed: int,
    ) -> None:
        if frontier not in get_args(Frontier):
            known = " or ".join(get_args(Frontier))
            raise ConfigError(f"frontier: got {frontier!r}, expected {known}")
        if not rows:
            raise ConfigError("rows: got none, expected at least one relation")
        if num_hops < 1:
            raise ConfigError(f"hops: got {num_hops}, expected at least 1")
        self._draws_places = True  # or it looks at more than it takes
        self.rows, self.num_hops, self.frontier, self.seed = (
            tuple(rows),
            num_hops,
            frontier,
            seed,
        )
        self.sizes: dict[str, int] = {}
        for each in rows:
            self.sizes[each.node_type] = each.num_nodes
            self.sizes[each.neighbor_type] = each.num_neighbors
        self._free: list[Buffers] = []
        self._lock = threading.Lock()

    def sample(
        self,
        seeds: Seeds,
        *,
        epoch: int = 0,
        batch: int = 0,
        times: Seeds | None = None,
    ) -> Sample:
        """Sample the surroundings of seeds.

        Args:
            seeds: Numbers of nodes, or such by type where there are several types. A seed
                may come several times; it has one place.
            epoch: Part of the key of the draws.
            batch: Part of the key of the draws: another batch, other neighbors.
            times: Times of the seeds, given as they are; for
                :class:`~graphsys.sampling.TemporalSampler`, and for no other.

        Returns:
            Blocks, the farthest hop first: the same for any number of threads.

        Raises:
            UnknownNameError: A seed is not in the graph.
            ConfigError: Seeds by no type, though there are several; times that are
                missing, or that this sampler does not look at.
        """
        wanted = self._by_type(seeds)
        at = None if times is None else self._by_type(times)
        with self._lock:
            buffers = self._free.pop() if self._free else Buffers()
        growth = self._begin(buffers, wanted, at)
        try:
            places = self._number_seeds(growth, wanted)
            num_seeds = {name: count for name, count in growth.counts.items() if count}
            spans = self._sample_hops(growth, epoch, batch)
        finally:
            growth.forget()
        return Sample(
            nodes={name: growth.nodes(name)[:n] for name, n in growth.counts.items() if n},
            seed_places=places,
            num_seeds=num_seeds,
            layers=[
                self._layer(growth, spans, hop) for hop in reversed(range(self.num_hops))
            ],
            hop_nodes=growth.history,
            groups=growth.groups_by_type(),
            give_back=lambda: self._take_back(buffers),
        )

    def pick(
        self, relation: str, nodes: Ints, hop: int, *, epoch: int, batch: int
    ) -> tuple[Ints, Ints]:
        """Return the rows that :meth:`sample` draws for nodes of a hop, for whoever asks.

        Only of samplers that draw a row by its node and the key (:attr:`picks_by_node`).

        Args:
            relation: Name of the relation.
            nodes: Numbers of nodes, all of them in the graph ``[n]``.
            hop: The hop, 0 next to the seeds.
            epoch: Part of the key of the draws.
            batch: Part of the key of the draws.

        Returns:
            Where rows begin, int64 ``[n + 1]``, and numbers of neighbors, int64 ``[E]``.
        """
        rows = next(each for each in self.rows if each.name == relation)
        growth = Growth(Buffers(), {})
        growth.nodes(rows.node_type, len(nodes))[: len(nodes)] = nodes
        indptr = growth.buffers.room(("indptr", relation), len(nodes) + 1, np.int64)
        indptr[0] = end = 0
        if len(nodes):
            at = Draw(hop, (epoch, batch), (0, len(nodes)), relation, 0)
            end = self._pick(growth, rows, at)
        neighbors = growth.buffers.room(("neighbors", relation), end, np.int64)
        indptr = growth.buffers.room(("indptr", relation), 0, np.int64)
        return indptr[: len(nodes) + 1], neighbors[:end]

    def _begin(
        self, buffers: Buffers, seeds: dict[str, Ints], times: dict[str, Ints] | None
    ) -> Growth:
        """Return an empty sample that seeds will be put into."""
        del seeds  # all of them are alike
        if times is not None:
            raise ConfigError(
                f"got times of seeds; {type(self).__name__} samples without regard to "
                "time, leave them out or take TemporalSampler"
            )
        return Growth(buffers, self.sizes)

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        """Choose the neighbors of ``nodes[at.span]``; return the end of the last row.

        An implementation fills the buffers ``("indptr", at.name)`` from ``at.row`` on and
        ``("neighbors", at.name)``, and whatever :meth:`_extras` reads.
        """
        raise NotImplementedError

    def _count(
        self,
        growth: Growth,
        rows: PartitionedCsr,
        fanout: int,
        at: Draw,
        *,
        is_replacing: bool = False,
    ) -> tuple[Ints, Ints]:
        """Return the nodes of a type and the offsets of rows of ``fanout`` entries.

        Rows that are shorter have all of their entries, without replacement.
        """
        (low, high), name, row = at.span, at.name, at.row
        nodes = growth.nodes(rows.node_type)
        indptr = growth.buffers.room(("indptr", name), row + high - low + 1, np.int64)
        end = count_sampled(
            rows.offsets,
            rows.table,
            rows.wide,
            nodes,
            low,
            high,
            fanout,
            is_replacing,
            indptr,
            row,
        )
        assert end != OUT_OF_RANGE  # seeds and neighbors were numbered
        return nodes, indptr

    def _read_whole(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> WholeRows:
        """Read all entries of ``nodes[at.span]`` and weigh the sources that they name."""
        (low, high), name, row = at.span, at.name, at.row
        buffers = growth.buffers
        nodes, indptr = self._count(growth, rows, _WHOLE, at)
        end = int(indptr[row + high - low])
        num_entries = end - int(indptr[row])
        slots = buffers.filled(
            ("sources", rows.neighbor_type), rows.num_neighbors, np.int32, 0
        )
        entries = buffers.room(("edge", name), end, np.int64)
        neighbors = buffers.room(("neighbors", name), end, np.int64)
        sources = buffers.room("sources", num_entries, np.int64)
        weights = buffers.room("source_weights", num_entries, np.float64)
        found = weigh_sources(
            rows.offsets,
            rows.table,
            rows.wide,
            rows.first_entry,
            nodes,
            low,
            high,
            indptr,
            row,
            slots,
            entries,
            neighbors,
            sources,
            weights,
        )
        require_inside(rows, found)
        return WholeRows(indptr, slots, entries, neighbors, sources, weights, found)

    def _extras(self, buffers: Buffers, name: Any, end: int) -> dict[str, Any]:
        """Return the columns of a block besides its rows."""
        raise NotImplementedError

    def _take_back(self, buffers: Buffers) -> None:
        with self._lock:
            self._free.append(buffers)

    def _by_type(self, seeds: Seeds) -> dict[str, Ints]:
        if not isinstance(seeds, Mapping):
            if len(self.sizes) > 1:
                raise ConfigError(
                    f"seeds: the graph has node types {', '.join(self.sizes)}; give seeds "
                    "by type"
                )
            seeds = {next(iter(self.sizes)): seeds}
        for name in seeds:
            if name not in self.sizes:
                raise UnknownNameError(
                    f"seeds: no relation has nodes of type {name!r}; known: "
                    f"{', '.join(self.sizes)}"
                )
        return {name: np.ascontiguousarray(s, dtype=np.int64) for name, s in seeds.items()}

    def _number_seeds(self, growth: Growth, seeds: dict[str, Ints]) -> dict[str, Ints]:
        places = {}
        for name, numbers in seeds.items():
            places[name] = np.empty(len(numbers), dtype=np.int64)
            found = growth.number_seeds(name, numbers, places[name])
            if found < 0:
                raise UnknownNameError(
                    f"seed {numbers[-2 - found]} is not in the graph, which has "
                    f"{self.sizes[name]} nodes of type {name!r} (0 to "
                    f"{self.sizes[name] - 1})"
                )
        return places

    def _sample_hops(
        self, growth: Growth, epoch: int, batch: int
    ) -> dict[tuple[int, str], tuple[Any, int]]:
        """Sample all hops; return where each relation's rows of each hop end."""
        spans: dict[tuple[int, str], tuple[Any, int]] = {}
        ends = {rows.name: (0, 0) for rows in self.rows}  # of rows, of entries
        for hop in range(self.num_hops):
            growth.begin()
            for rows in self.rows:
                is_new = self.frontier == "new"
                name = rows.name if is_new else (rows.name, hop)
                row, begin = ends[rows.name] if is_new else (0, 0)
                high = growth.history[rows.node_type][hop]
                if row == 0:
                    growth.buffers.room(("indptr", name), high + 1, np.int64)[0] = 0
                end = begin
                if high > row:
                    at = Draw(hop, (epoch, batch), (row, high), name, row)
                    end = self._pick(growth, rows, at)
                    tell_sampled(
                        rows,
                        growth.buffers.room(("indptr", name), 0, np.int64),
                        row,
                        high,
                        self._extras(growth.buffers, name, end).get("edge"),
                        is_exact=self._draws_places,
                    )
                growth.number(rows, name, (row, high), (begin, end))
                ends[rows.name] = (high, end)
                spans[hop, rows.name] = (name, end)
        growth.begin()
        return spans

    def _layer(
        self, growth: Growth, spans: dict[tuple[int, str], tuple[Any, int]], hop: int
    ) -> dict[str, Block]:
        layer = {}
        for rows in self.rows:
            name, end = spans[hop, rows.name]
            num_dst = growth.history[rows.node_type][hop]
            num_src = growth.history[rows.neighbor_type][hop + 1]
            buffers = growth.buffers
            layer[rows.name] = Block(
                indptr=buffers.room(("indptr", name), 0, np.int64)[: num_dst + 1],
                indices=buffers.room(("indices", name), 0, np.int32)[:end],
                src_nodes=growth.nodes(rows.neighbor_type)[:num_src],
                dst_nodes=growth.nodes(rows.node_type)[:num_dst],
                **self._extras(buffers, name, end),
            )
        return layer
