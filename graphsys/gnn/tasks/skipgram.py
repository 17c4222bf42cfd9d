"""Skip-gram over several relations: who comes near whom on walks along each of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.sampling import relation_name, walk
from graphsys.sampling.adjacency import PartitionedCsr

Ints = npt.NDArray[np.int64]
TypePair = tuple[str, str]
"""Node types of the first and of the second of a pair."""


@dataclass(kw_only=True)
class WalkWindows:
    """Pairs of nodes at most ``window`` steps apart on walks along one relation each.

    Args:
        rows: The rows of all relations, both ways.
        names: The relations that every node type has a part in.
        walk_length: Steps of a walk.
        window: Steps between the two of a pair, at most; both are the first of one.
        seed: Of all draws.
        p: Return parameter of node2vec.
        q: In-out parameter of node2vec.

    An epoch starts one walk from every node along each relation that leads away from it. A
    relation within a node type is followed, and where it is directed also against its
    edges; one between two types leads there and back (a metapath of two steps).
    """

    rows: Sequence[PartitionedCsr]
    names: Mapping[str, list[str]]
    walk_length: int
    window: int
    seed: int
    p: float = 1.0
    q: float = 1.0

    def __post_init__(self) -> None:
        backward = {(r.edge_type, relation_name(r.name), r.node_type): r for r in self.rows}
        self._paths: list[list[PartitionedCsr]] = []
        for rows in self.rows:
            back = (rows.edge_type, relation_name(rows.name), rows.neighbor_type)
            is_within = rows.node_type == rows.neighbor_type
            self._paths.append([rows] if is_within else [rows, backward[back]])
        has_edges: dict[str, npt.NDArray[np.bool_]] = {}
        for rows in self.rows:
            own = rows.degrees() > 0
            before = has_edges.get(rows.node_type)
            has_edges[rows.node_type] = own if before is None else before | own
        self._starts = {name: np.flatnonzero(has) for name, has in has_edges.items()}

    def starts(self, epoch: int) -> Ints:
        """Return all nodes with edges by their type's place and number, ``[n, 2]``."""
        every = [
            np.stack([np.full(len(nodes), place), nodes], axis=1)
            for place, nodes in enumerate(self._starts.values())
        ]
        return generator(self.seed, "starts", epoch).permutation(np.concatenate(every))

    def pairs(self, starts: Ints, *, epoch: int, batch: int) -> dict[TypePair, Ints]:
        """Walk from starts; return the pairs by the types of their ends.

        Args:
            starts: As :meth:`starts` returns them ``[n, 2]``.
            epoch: Part of the key of the draws.
            batch: Part of the key of the draws.

        Returns:
            First, second and the relation's place among those of the first's type, int64
            ``[n, 3]``; a node may be met again by itself.
        """
        found: dict[TypePair, list[Ints]] = {}
        for number, path in enumerate(self._paths):
            place = list(self._starts).index(path[0].node_type)
            walks = walk(
                path,
                starts[starts[:, 0] == place, 1],
                self.walk_length,
                p=self.p,
                q=self.q,
                seed=self.seed,
                epoch=epoch,
                batch=batch * len(self._paths) + number,
            )
            name = relation_name(path[0].name)
            period = len(path)
            for first in range(period):
                for second in range(period):
                    ends = path[first].node_type, path[second].node_type
                    code = self.names[ends[0]].index(name)
                    near = _near(walks, self.window, period, first, second)
                    codes = np.full((len(near), 1), code)
                    found.setdefault(ends, []).append(np.append(near, codes, axis=1))
        return {ends: np.concatenate(parts) for ends, parts in found.items()}


def _near(walks: Ints, window: int, period: int, first: int, second: int) -> Ints:
    """Return nodes at places ``first + i * period`` with those near them, ``[n, 2]``."""
    places = np.arange(walks.shape[1])
    one, other = np.meshgrid(places, places, indexing="ij")
    is_near = (one != other) & (abs(one - other) <= window)
    is_near &= (one % period == first) & (other % period == second)
    src, dst = walks[:, one[is_near]].ravel(), walks[:, other[is_near]].ravel()
    has_both = (src >= 0) & (dst >= 0)
    return np.stack([src[has_both], dst[has_both]], axis=1)
