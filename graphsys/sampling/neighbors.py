"""Neighbor sampling: so many neighbors of every node, hop by hop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.rng import draw_key
from graphsys.datasets.temporary import GraphLike, graph_of
from graphsys.kernels.cpu.sampling.sampled_rows import pick_entries
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.blocks import Buffers
from graphsys.sampling.multi_hop import Draw, Frontier, HopSampler
from graphsys.sampling.sample_builder import Growth

ALL = -1


class NeighborSampler(HopSampler):
    """Samples neighbors of every node, uniformly or by weight.

    **The first fanout belongs to the hop next to the seeds**, as in PyG and the GraphSAGE
    paper; DGL gives the last one to the seeds, so ``[15, 10, 5]`` here is ``[5, 10, 15]``
    there.

    Args:
        graph: A graph of one relation (open, its path, or an object that holds one), or
            the relations themselves.
        fanouts: Neighbors per hop, the hop next to the seeds first; -1 for all. Or a
            mapping with a list for each relation's name.
        frontier: ``all`` or ``new``; see :class:`HopSampler`.
        is_replacing: Whether a neighbor may be drawn several times; rows that are not
            empty then have exactly as many entries as the fanout.
        is_weighted: Whether neighbors are drawn in proportion to the edges' weights;
            edges of weight 0 or less are never taken.
        seed: Of all draws.

    Raises:
        ConfigError: Fanouts out of range, of different lengths, or weights that are not
            there.
        UnknownNameError: Fanouts for a relation that there is not.

    Examples:
        >>> import graphsys as gs, numpy as np, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> table = {"src": [1, 2, 3, 3], "dst": [0, 0, 0, 2]}
        >>> _ = gs.ingest(table, folder + "/g")
        >>> sampler = NeighborSampler(gs.open(folder + "/g"), [2, -1])
        >>> sample = sampler.sample(np.array([0]))
        >>> [block.num_dst for block in sample.blocks]
        [3, 1]
    """

    picks_by_node = True

    def __init__(
        self,
        graph: GraphLike | Sequence[PartitionedCsr],
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        *,
        frontier: Frontier = "all",
        is_replacing: bool = False,
        is_weighted: bool = False,
        seed: int = 0,
    ) -> None:
        rows = as_rows(graph)
        self.fanouts = _by_relation(rows, fanouts)
        lengths = {len(each) for each in self.fanouts.values()}
        if len(lengths) != 1:
            shown = ", ".join(f"{name} {list(f)}" for name, f in self.fanouts.items())
            raise ConfigError(
                f"fanouts: {shown}, expected as many for every relation as there are hops"
            )
        for name, each in self.fanouts.items():
            _check_fanouts(name, each, is_replacing)
        if is_weighted:
            for relation in rows:
                if not relation.has_weight:
                    raise ConfigError(
                        f"edges {relation.name!r} have no weights, by which neighbors "
                        "were to be drawn; draw them uniformly, or ingest a column weight"
                    )
        super().__init__(rows, lengths.pop(), frontier=frontier, seed=seed)
        self.is_replacing, self.is_weighted = is_replacing, is_weighted
        self._draws_places = not is_weighted

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        hop, key, (low, high), name, row = at
        buffers = growth.buffers
        fanout = self.fanouts[rows.name][hop]
        nodes, indptr = self._count(
            growth, rows, fanout, at, is_replacing=self.is_replacing
        )
        end = int(indptr[row + high - low])
        room = max(fanout, 1)
        picked: int = pick_entries(
            rows.offsets,
            rows.table,
            rows.wide,
            rows.first_entry,
            nodes,
            low,
            high,
            draw_key(self.seed, "neighbors", *key, hop, rows.name),
            fanout,
            self.is_replacing,
            self.is_weighted,
            buffers.room("places", room, np.int64),
            buffers.room("keys", room, np.float64),
            buffers.filled(("slots", room), 4 * room, np.int64, -1),
            indptr,
            row,
            buffers.room(("edge", name), end, np.int64),
            buffers.room(("neighbors", name), end, np.int64),
        )
        return picked

    def _extras(self, buffers: Buffers, name: Any, end: int) -> dict[str, Any]:
        return {"edge": buffers.room(("edge", name), 0, np.int64)[:end]}


def as_rows(graph: GraphLike | Sequence[PartitionedCsr]) -> Sequence[PartitionedCsr]:
    """Return the relations of a graph that has one, or those given.

    Raises:
        ConfigError: The graph has several relations.
    """
    if isinstance(graph, list | tuple) and all(
        isinstance(rows, PartitionedCsr) for rows in graph
    ):
        return graph
    graph = graph_of(graph)
    from graphsys.sampling.adjacency import message_rows

    rows = message_rows(graph, reverse=False)
    if len(rows) > 1:
        raise ConfigError(
            f"the graph {graph.path} has relations {', '.join(r.name for r in rows)}; "
            "choose with graphsys.sampling.message_rows(graph, [...])"
        )
    return rows


def _by_relation(
    rows: Sequence[PartitionedCsr], fanouts: Sequence[int] | Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    names = [each.name for each in rows]
    if not isinstance(fanouts, Mapping):
        return {name: tuple(fanouts) for name in names}
    for name in fanouts:
        if name not in names:
            raise UnknownNameError(
                f"fanouts: no relation {name!r}; known: {', '.join(names)}"
            )
    if missing := [name for name in names if name not in fanouts]:
        raise ConfigError(
            f"fanouts: none for relation {missing[0]!r}; give a list for each"
        )
    return {name: tuple(fanouts[name]) for name in names}


def _check_fanouts(name: str, fanouts: Sequence[int], is_replacing: bool) -> None:
    least = 0 if is_replacing else ALL
    for fanout in fanouts:
        if not isinstance(fanout, int | np.integer) or fanout < least or fanout >= 2**31:
            more = ", or -1 for all neighbors"
            if is_replacing:
                more = " with replace, which draws them; leave one of them out"
            raise ConfigError(
                f"fanouts of relation {name!r}: got {fanout!r}, expected an int >= 0{more}"
            )
