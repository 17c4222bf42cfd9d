"""Each layer of all nodes before the next, in batches of nodes and entries."""

import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.memory import release_free_memory
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import map_in_order
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.message_graph import Layer
from graphsys.graph.slices import even_cuts
from graphsys.sampling import Sample
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_NODES_AT_A_TIME = 8192
_PROBED = 8


class LayerTable(Protocol):
    """The rows of a layer, by number of the node."""

    def of(self, nodes: Ints) -> Floats:
        """Return the rows of nodes that have one, float32 ``[n, F]``."""
        ...


class LockstepGroup(Protocol):
    """Processes that do the same at the same time."""

    @property
    def rank(self) -> int:
        """Number of this one."""
        ...

    @property
    def world_size(self) -> int:
        """How many there are."""
        ...

    def gather(self, value: Any) -> list[Any]:
        """Return what every process gave, in their order."""
        ...

    def share_rows(self, rows: Floats, bounds: Sequence[int]) -> None:
        """Have every process fill in the rows between its bounds for all others."""
        ...


class LayerByLayer:
    """Computes each layer for all nodes before the next.

    Args:
        context: The network and what it reads.
        scratch: Folder for files that hold the rows of layers; None: memory.
        entries: How many a batch has.
        progress: Receives a stage per layer.
        group: Processes that compute the same together, a share of each layer each.
    """

    def __init__(
        self,
        context: GnnContext,
        scratch: Path | None,
        entries: int,
        progress: Progress = SILENT,
        group: LockstepGroup | None = None,
    ) -> None:
        self._context, self._scratch = context, scratch
        self._entries, self._progress, self._group = entries, progress, group

    def run(self, node_type: str, nodes: Ints | None) -> Floats:
        """Return the output for nodes of a type; for all of them by default."""
        before: dict[str, _Known] | None = None
        for k, wanted in enumerate(self.wanted(node_type, nodes)):
            total = sum(len(numbers) for numbers in wanted.values())
            what = "all" if nodes is None else f"{total}"
            self._progress.stage(f"layer {k + 1} of {what} nodes", total, "nodes")
            compute = self.compute if self._group is None else self._compute_together
            after = {
                name: compute(k, name, numbers, before) for name, numbers in wanted.items()
            }
            before = {
                name: _Known(wanted[name], rows)
                for name, rows in after.items()
                if rows is not None
            }
        assert before is not None  # there is at least one layer
        return before[node_type].rows

    def wanted(self, node_type: str, nodes: Ints | None) -> list[dict[str, Ints]]:
        """Return the nodes of each layer, the first first: those that the next one reads.

        By type, ascending but for the last layer's, which are as asked for; all nodes of
        a layer whose next one reads more than half of them.
        """
        sizes, num_layers = self._context.message_graph.sampler.sizes, self._num_layers
        every = {name: np.arange(size, dtype=np.int64) for name, size in sizes.items()}
        if nodes is None:
            return [every] * (num_layers - 1) + [{node_type: every[node_type]}]
        found = [{node_type: np.ascontiguousarray(nodes, dtype=np.int64)}]
        for k in range(num_layers - 1, 0, -1):
            read = self._read(k, found[0])
            if read is None:
                return [every] * k + found
            found.insert(0, read)
        return found

    def _read(self, k: int, wanted: Mapping[str, Ints]) -> dict[str, Ints] | None:
        """Return what layer ``k`` reads for some nodes; None: more than half of all."""
        message_graph = self._context.message_graph
        sizes, sampler = message_graph.sampler.sizes, message_graph.one_hop(k)
        seen = {name: np.zeros(size, dtype=bool) for name, size in sizes.items()}
        for node_type, nodes in wanted.items():
            seen[node_type][nodes] = True  # a layer reads the rows of its own nodes, too
        if 2 * sum(int(s.sum()) for s in seen.values()) > sum(sizes.values()):
            return None
        for node_type, nodes in wanted.items():
            for span in self.spans(node_type, nodes):
                with sampler.sample({node_type: nodes[slice(*span)]}) as sample:
                    for name, numbers in sample.nodes.items():
                        seen[name][numbers] = True
                if 2 * sum(int(s.sum()) for s in seen.values()) > sum(sizes.values()):
                    return None
        return {name: np.flatnonzero(each) for name, each in seen.items() if each.any()}

    def probe(self, node_type: str, nodes: Ints | None = None) -> int:
        """Compute a few batches of each layer, the largest too, from rows of zeros.

        Returns:
            Bytes of the rows of a layer and of the layer before it, at most.
        """
        before: dict[str, _Known] | None = None
        sums = [0]
        for k, wanted in enumerate(self.wanted(node_type, nodes)):
            after: dict[str, Floats] = {}
            for name, numbers in wanted.items():
                rows = self.compute(k, name, self._probed(name, numbers), before)
                if rows is not None:
                    zeros = np.zeros((1, rows.shape[1]), dtype=np.float32)
                    after[name] = np.broadcast_to(zeros, (len(numbers), rows.shape[1]))
            before = {name: _Known(wanted[name], rows) for name, rows in after.items()}
            sums.append(sum(rows.nbytes for rows in after.values()))
        return max(a + b for a, b in itertools.pairwise(sums))

    def _probed(self, node_type: str, nodes: Ints) -> Ints:
        """Return the nodes of some batches: evenly spaced ones, then the largest."""
        work = np.append(0, np.cumsum(self.num_entries(node_type, nodes)))
        spans = self.spans(node_type, nodes)
        by_size = sorted(spans, key=lambda span: int(work[span[1]] - work[span[0]]))
        step = max(len(spans) // _PROBED, 1)
        chosen = [*spans[::step][: _PROBED - 2], *by_size[-2:]]
        return np.concatenate([nodes[slice(*span)] for span in chosen] or [nodes])

    def spans(self, node_type: str, nodes: Ints) -> list[tuple[int, int]]:
        """Cut nodes into batches of so many nodes and entries, at least one node each."""
        work = np.cumsum(self.num_entries(node_type, nodes))
        spans, begin = [], 0
        while begin < len(nodes):
            spent = int(work[begin - 1]) if begin else 0
            end = int(np.searchsorted(work, spent + self._entries, side="right"))
            end = min(max(end, begin + 1), begin + _NODES_AT_A_TIME, len(nodes))
            spans.append((begin, end))
            begin = end
        return spans

    def shares(self, node_type: str, nodes: Ints, num_shares: int) -> list[int]:
        """Deal nodes out, whole batches of about as much work to each.

        Args:
            node_type: Their type.
            nodes: Their numbers ``[n]``.
            num_shares: To how many.

        Returns:
            Where each share begins among the nodes, and their number: ``num_shares + 1``.
        """
        firsts = [low for low, _ in self.spans(node_type, nodes)]
        begins = np.array([*firsts, len(nodes)], dtype=np.int64)
        visits = np.append(0, np.cumsum(self.num_entries(node_type, nodes) + 1))
        cuts = even_cuts(np.diff(visits[begins]), num_shares)
        found: list[int] = begins[list(cuts)].tolist()
        return found

    def num_entries(self, node_type: str, nodes: Ints) -> Ints:
        """Return how many entries each node has, of all types of edges, int64 ``[n]``."""
        found = np.zeros(len(nodes), dtype=np.int64)
        for rows in self._context.message_graph.rows:
            if rows.node_type == node_type:
                found += rows.degrees()[nodes]
        return found

    @property
    def _num_layers(self) -> int:
        return self._context.config.layers

    def compute(
        self, k: int, node_type: str, nodes: Ints, before: Mapping[str, LayerTable] | None
    ) -> Floats | None:
        """Compute layer ``k`` of nodes of a type.

        Args:
            k: Number of the layer.
            node_type: The type.
            nodes: Numbers of nodes ``[n]``.
            before: Rows of the layer before by type, of all that it reads; None: features.

        Returns:
            float32 ``[n, F]``; None if there are no nodes, or no messages reach the type.
        """
        message_graph, network = self._context.message_graph, self._context.network
        result: Floats | None = None
        sampler = message_graph.one_hop(k)

        def make(span: tuple[int, int]) -> tuple[tuple[int, int], Sample, Layer]:
            sample = sampler.sample({node_type: nodes[slice(*span)]})
            return span, sample, message_graph.wrap(sample.layers)[0]

        spans = self.spans(node_type, nodes)
        for span, sample, rows in map_in_order(make, spans, num_threads=1):
            h, layer = self._inputs(k, sample, rows, before)
            num_seeds = sample.num_seeds.get(node_type, 0)
            own = {t: v[:num_seeds] for t, v in h.items() if t == node_type}
            found = network.convolve(k, layer, h, own)
            if node_type in found:
                values = found[node_type]
                if k == self._num_layers - 1:
                    values = network.finish({node_type: values})[node_type]
                values = values.cpu()[torch.from_numpy(sample.seed_places[node_type])]
                if result is None:
                    result = room_for((len(nodes), values.shape[1]), self._scratch)
                result[slice(*span)] = values.numpy()
            sample.release()
            if self._context.budget is not None:
                del h, layer, own, found
                release_free_memory()
            self._progress.advance(span[1] - span[0])
        return result

    def _compute_together(
        self, k: int, node_type: str, nodes: Ints, before: Mapping[str, LayerTable] | None
    ) -> Floats | None:
        """Compute the own share of what :meth:`compute` returns, and get the others'."""
        group = self._group
        assert group is not None  # run() looked
        bounds = self.shares(node_type, nodes, group.world_size)
        own = slice(bounds[group.rank], bounds[group.rank + 1])
        found = self.compute(k, node_type, nodes[own], before)
        width = max(group.gather(0 if found is None else found.shape[1]))
        if not width:
            return None
        rows = room_for((len(nodes), width), self._scratch)
        if found is not None:
            rows[own] = found
        group.share_rows(rows, bounds)
        return rows

    def _types_before(self, k: int) -> set[str]:
        """Return the types that have rows before layer ``k``: those that messages reach."""
        found = set(self._context.features.shapes)
        for _ in range(k):
            relations = self._context.message_graph.rows
            found = {r.node_type for r in relations if r.neighbor_type in found}
        return found

    def _inputs(
        self,
        k: int,
        sample: Sample,
        layer: Layer,
        before: Mapping[str, LayerTable] | None,
    ) -> tuple[Mapping[str, torch.Tensor], Layer]:
        """Return the rows that a layer reads, of the layer before, and its entries."""
        network, transfer = self._context.network, self._context.transfer
        x: Mapping[str, Any]
        if before is None:
            x = self._context.features.gather(sample.nodes)
        else:
            none = np.empty(0, dtype=np.int64)  # a type that nobody here hears from
            read = {name: sample.nodes.get(name, none) for name in before}
            x = {name: torch.from_numpy(before[name].of(n)) for name, n in read.items()}
            width = next((rows.shape[1] for rows in x.values()), 0)
            for name in self._types_before(k) - x.keys():  # none of it was asked for
                x[name] = torch.empty((0, width))
        if transfer is not None:
            layer = transfer.layer(layer)
            x = transfer.input(x, network.stored if before is None else ())
        return (network.embed(x) if before is None else x), layer


@dataclass(frozen=True)
class _Known:
    """The rows of a layer.

    Attributes:
        numbers: Of the nodes that have one, ascending ``[n]``.
        rows: Their rows ``[n, F]``.
    """

    numbers: Ints
    rows: Floats

    def of(self, nodes: Ints) -> Floats:
        """Return the rows of nodes that have one."""
        is_all = len(self.numbers) and self.numbers[-1] == len(self.numbers) - 1
        places = nodes if is_all else np.searchsorted(self.numbers, nodes)
        return self.rows[places]


def room_for(shape: tuple[int, int], folder: Path | None) -> Floats:
    """Return an array of rows, in memory or in a file without a name in a folder."""
    if folder is None:
        return np.empty(shape, dtype=np.float32)
    with disk_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        # reserved: a page without room on the disk would end the process
        os.posix_fallocate(file.fileno(), 0, max(4 * shape[0] * shape[1], 1))
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
