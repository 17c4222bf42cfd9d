"""What samplers return: bipartite hops in compressed rows, and the nodes they are about."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One hop of one relation: messages from sources to destinations.

    Row ``i`` belongs to ``dst_nodes[i]`` and spans ``indptr[i]:indptr[i + 1]``; its
    entries are places in ``src_nodes``. Where both are of one type, the first
    ``num_dst`` sources are the destinations.

    Attributes:
        indptr: Row offsets, int64 ``[D + 1]``.
        indices: Places of sources, int32 ``[E]``.
        src_nodes: Numbers of the sources, int64 ``[S]``.
        dst_nodes: Numbers of the destinations, int64 ``[D]``.
        edge: Position of each entry in the sequence of index files (see
            :meth:`Rows.column`), int64 ``[E]``; None where entries are no edges.
        weight: Weights of the entries, float32 ``[E]``, or None.
    """

    indptr: Ints
    indices: npt.NDArray[np.int32]
    src_nodes: Ints
    dst_nodes: Ints
    edge: Ints | None = None
    weight: npt.NDArray[np.float32] | None = None

    @property
    def num_src(self) -> int:
        """Number of sources."""
        return len(self.src_nodes)

    @property
    def num_dst(self) -> int:
        """Number of destinations."""
        return len(self.dst_nodes)

    @property
    def num_edges(self) -> int:
        """Number of entries."""
        return len(self.indices)


@dataclass(slots=True, kw_only=True)
class Sample:
    """The surroundings of some seeds: nodes of every type, and a block per hop.

    All arrays are views of buffers that the next sample will overwrite after
    :meth:`release`; a sample that is never released keeps its own.

    Attributes:
        nodes: Numbers of the input nodes by type, int64; distinct, seeds first.
        seed_places: Place of every seed, as given, in ``nodes``, by type.
        num_seeds: Distinct seeds by type.
        layers: Blocks by relation, the hop farthest from the seeds first: the order in
            which layers of a network use them.
        hop_nodes: Nodes known after each hop by type, seeds alone first.
        groups: Group of each node by type, int32, where samples have groups (see
            :class:`~graphsys.sampling.TemporalSampler`); a node then occurs once in each.
    """

    nodes: Mapping[str, Ints]
    seed_places: Mapping[str, Ints]
    num_seeds: Mapping[str, int]
    layers: Sequence[Mapping[str, Block]]
    hop_nodes: Mapping[str, Sequence[int]]
    groups: Mapping[str, npt.NDArray[np.int32]] | None = None
    give_back: Callable[[], None] | None = field(default=None, repr=False)

    @property
    def blocks(self) -> list[Block]:
        """The blocks of a graph with one relation, the farthest hop first."""
        return [next(iter(layer.values())) for layer in self.layers]

    @property
    def input_nodes(self) -> Ints:
        """The nodes of a graph with one node type."""
        return next(iter(self.nodes.values()))

    @property
    def num_edges(self) -> int:
        """Entries of all blocks."""
        return sum(b.num_edges for layer in self.layers for b in layer.values())

    def release(self) -> None:
        """Let the next sample have the buffers; arrays of this one lose their content."""
        if self.give_back is not None:
            self.give_back()
            self.give_back = None

    def __enter__(self) -> "Sample":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Buffers:
    """Arrays that grow and are used again."""

    def __init__(self) -> None:
        self._arrays: dict[Any, npt.NDArray[Any]] = {}

    def wait(self) -> None:
        """Wait until the arrays may be written again; these always may."""

    def room(self, name: Any, size: int, dtype: Any) -> npt.NDArray[Any]:
        """Return at least ``size`` elements; those that were there keep their content."""
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            least = max(size, 1024, 0 if array is None else 2 * len(array))
            grown = self._fresh(least, dtype)
            if array is not None:
                grown[: len(array)] = array
            self._arrays[name] = array = grown
        return array

    def _fresh(self, size: int, dtype: Any) -> npt.NDArray[Any]:
        """Return an array to be filled."""
        return np.empty(size, dtype)

    def get(self, name: Any) -> npt.NDArray[Any] | None:
        """Return an array as it is, or None."""
        return self._arrays.get(name)

    def drop(self, name: Any) -> None:
        """Let go of an array, if it is there."""
        self._arrays.pop(name, None)

    def filled(self, name: Any, size: int, dtype: Any, value: int) -> npt.NDArray[Any]:
        """Return exactly ``size`` elements, which hold ``value`` the first time."""
        array = self._arrays.get(name)
        if array is None or len(array) != size:
            # zeros cost nothing until they are touched
            array = np.full(size, value, dtype) if value else np.zeros(size, dtype)
            self._arrays[name] = array
        return array
