"""Rows of all nodes, layer by layer: each node's row of each layer is computed once."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.memory import available_bytes, resident_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import map_in_order
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.context import TrainingContext
from graphsys.gnn.data.features import AllRows
from graphsys.gnn.data.message_graph import Layer, MessageGraph
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.models.model import Model
from graphsys.gnn.ops.sparse_features import SparseFeatures
from graphsys.gnn.part_specs import SAMPLERS
from graphsys.sampling import Sample
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_NODES_AT_A_TIME = 8192
_ENTRIES_AT_A_TIME = 1 << 20
_LEAST_ENTRIES = 1 << 12


def infer(
    context: TrainingContext,
    node_type: str,
    *,
    nodes: Ints | None = None,
    scratch: Path | None = None,
    entries: int = _ENTRIES_AT_A_TIME,
    progress: Progress = SILENT,
) -> Floats:
    """Return the network's output for nodes, from all of their neighbors.

    A layer is computed for all nodes before the next begins, in batches of about a million
    entries, so work grows with nodes and edges and not with neighborhoods. With sampler
    temporal a node's row depends on who asks and when: then each node has a sample of its
    own, as in training.

    Args:
        context: The network, in evaluation mode afterwards, and what it reads.
        node_type: Of the nodes.
        nodes: Numbers of nodes ``[n]``; all of the type by default.
        scratch: Folder for files that hold the rows of layers, which are mapped; without
            it they are in memory.
        entries: How many a batch has, if a node has no more; see :func:`entries_within`.
        progress: Receives a stage per layer.

    Returns:
        float32 ``[n, num_out]``.
    """
    context.network.eval()
    with torch.no_grad():
        if SAMPLERS.get(context.config.sampler).has_times:
            return _infer_sampled(context, node_type, nodes, progress)
        found = LayerByLayer(context, scratch, entries, progress).run(node_type, nodes)
    progress.close()
    return found


def _infer_sampled(
    context: TrainingContext, node_type: str, nodes: Ints | None, progress: Progress
) -> Floats:
    """Compute nodes from samples, a batch at a time."""
    network, message_graph = context.network, context.message_graph
    if nodes is None:
        nodes = np.arange(message_graph.sampler.sizes[node_type], dtype=np.int64)
    result = np.empty((len(nodes), network.num_out), dtype=np.float32)
    size = context.config.batch_size
    progress.stage("samples of all nodes", len(nodes), "nodes")
    for number, begin in enumerate(range(0, len(nodes), size)):
        seeds = {node_type: nodes[begin : begin + size]}
        with message_graph.sample(seeds, epoch=0, batch=number) as sample:
            hops = message_graph.wrap(sample.layers)
            x = context.features.gather(sample.nodes)
            if context.transfer is not None:
                hops = [context.transfer.layer(hop) for hop in hops]
                x = context.transfer.input(x, network.stored)
            rows = network(hops, x)[node_type]
            places = torch.from_numpy(sample.seed_places[node_type])
            result[begin : begin + size] = rows.cpu()[places].numpy()
        progress.advance(len(seeds[node_type]))
    progress.close()
    return result


class LayerByLayer:
    """Computes each layer for all nodes before the next.

    Args:
        context: The network and what it reads.
        scratch: Folder for files that hold the rows of layers; None: memory.
        entries: How many a batch has.
        progress: Receives a stage per layer.
    """

    def __init__(
        self, context: TrainingContext, scratch: Path | None, entries: int,
        progress: Progress,
    ) -> None:  # fmt: skip
        self._context, self._scratch = context, scratch
        self._entries, self._progress = entries, progress

    def run(self, node_type: str, nodes: Ints | None) -> Floats:
        """Return the output for nodes of a type; for all of them by default."""
        sizes, num_layers = self._context.message_graph.sampler.sizes, self._num_layers
        before: dict[str, Floats] | None = None
        for k in range(num_layers):
            is_last = k == num_layers - 1
            wanted = {
                name: np.arange(size, dtype=np.int64)
                for name, size in sizes.items()
                if not is_last or name == node_type
            }
            if is_last and nodes is not None:
                wanted[node_type] = np.ascontiguousarray(nodes, dtype=np.int64)
            total = sum(len(numbers) for numbers in wanted.values())
            self._progress.stage(f"layer {k + 1} of all nodes", total, "nodes")
            after = {
                name: self._compute(k, name, numbers, before)
                for name, numbers in wanted.items()
            }
            before = {name: rows for name, rows in after.items() if rows is not None}
        assert before is not None  # there is at least one layer
        return before[node_type]

    @property
    def _num_layers(self) -> int:
        return self._context.config.layers

    def _compute(
        self, k: int, node_type: str, nodes: Ints, before: dict[str, Floats] | None
    ) -> Floats | None:
        """Compute layer ``k`` of nodes of a type; None if no messages reach it."""
        message_graph, network = self._context.message_graph, self._context.network
        result: Floats | None = None
        sampler = message_graph.one_hop(k)

        def make(span: tuple[int, int]) -> tuple[tuple[int, int], Sample, Layer]:
            sample = sampler.sample({node_type: nodes[slice(*span)]})
            return span, sample, message_graph.wrap(sample.layers)[0]

        spans = _spans(message_graph, node_type, nodes, self._entries)
        for span, sample, rows in map_in_order(make, spans, num_threads=1):
            h, layer = self._inputs(sample, rows, before)
            num_seeds = sample.num_seeds.get(node_type, 0)
            own = {t: v[:num_seeds] for t, v in h.items() if t == node_type}
            found = network.convolve(k, layer, h, own)
            if node_type in found:
                values = found[node_type]
                if k == self._num_layers - 1:
                    values = network.finish({node_type: values})[node_type]
                values = values.cpu()[torch.from_numpy(sample.seed_places[node_type])]
                if result is None:
                    result = _room((len(nodes), values.shape[1]), self._scratch)
                result[slice(*span)] = values.numpy()
            sample.release()
            self._progress.advance(span[1] - span[0])
        return result

    def _inputs(
        self, sample: Sample, layer: Layer, before: dict[str, Floats] | None
    ) -> tuple[Mapping[str, torch.Tensor], Layer]:
        """Return the rows that a layer reads, of the layer before, and its entries."""
        network, transfer = self._context.network, self._context.transfer
        x: Mapping[str, Any]
        if before is None:
            x = self._context.features.gather(sample.nodes)
        else:
            known = {t: n for t, n in sample.nodes.items() if t in before}
            x = {t: torch.from_numpy(before[t][n]) for t, n in known.items()}
        if transfer is not None:
            layer = transfer.layer(layer)
            x = transfer.input(x, network.stored if before is None else ())
        return (network.embed(x) if before is None else x), layer


def _spans(
    message_graph: MessageGraph, node_type: str, nodes: Ints, entries: int
) -> list[tuple[int, int]]:
    """Cut nodes into batches of so many nodes and entries, at least one node each."""
    work = np.zeros(len(nodes), dtype=np.int64)
    for rows in message_graph.rows:
        if rows.node_type == node_type:
            work += rows.degrees()[nodes]
    work = np.cumsum(work)
    spans, begin = [], 0
    while begin < len(nodes):
        spent = int(work[begin - 1]) if begin else 0
        end = int(np.searchsorted(work, spent + entries, side="right"))
        end = min(max(end, begin + 1), begin + _NODES_AT_A_TIME, len(nodes))
        spans.append((begin, end))
        begin = end
    return spans


def scratch_of(context: TrainingContext, path: Path | None) -> Path | None:
    """Return where rows of layers lie: in a folder if they are too many for memory.

    They are with learned rows on disk, and if two layers take half of what is free, or
    more than a budget of the process, in bytes, leaves.
    """
    config = context.config
    num_nodes = sum(context.message_graph.sampler.sizes.values())
    room = available_bytes() // 2
    if context.budget is not None:
        room = min(room, context.budget - resident_bytes())
    is_large = 2 * 4 * num_nodes * config.dim > room
    return path if is_large or config.learned_rows == "disk" else None


def entries_within(context: TrainingContext) -> int:
    """Return how many entries a batch may have within the budget of the process.

    An entry has a row of its own at most, as long as a layer reads, which is there three
    times: gathered, as a message, and in the batch that is made ahead.
    """
    if context.budget is None:
        return _ENTRIES_AT_A_TIME
    dims = (shape.dim for shape in context.features.shapes.values())
    room = (context.budget - resident_bytes()) // (3 * 4 * max(context.config.dim, *dims))
    return min(max(room, _LEAST_ENTRIES), _ENTRIES_AT_A_TIME)


def _room(shape: tuple[int, int], folder: Path | None) -> Floats:
    if folder is None:
        return np.empty(shape, dtype=np.float32)
    with disk_errors(folder), tempfile.TemporaryFile(dir=folder) as file:
        # reserved: a page without room on the disk would end the process
        os.posix_fallocate(file.fileno(), 0, max(4 * shape[0] * shape[1], 1))
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)


def whole_input(config: GnnConfig, x: dict[str, Any]) -> dict[str, Any]:
    """Return the input of all nodes, sparse where it is and the first layer allows it.

    Learned rows of all nodes are the table itself, not a copy of it.
    """
    is_number = {n: isinstance(v, torch.Tensor) and v.dim() == 1 for n, v in x.items()}
    x = {n: AllRows(len(v)) if is_number[n] else v for n, v in x.items()}
    is_linear = spec_of(config.model).is_linear(config)
    if config.norm != "none" or not (is_linear or config.residual):
        return x
    return {
        name: SparseFeatures.of(values) if _is_dense(values) else values
        for name, values in x.items()
    }


def _is_dense(values: Any) -> bool:
    return isinstance(values, torch.Tensor) and values.is_floating_point()


def whole_output(
    network: Model, layer: Layer, x: Mapping[str, Any], node_type: str
) -> torch.Tensor:
    """Return the output for all nodes of a type, from a graph that is in memory whole."""
    network.eval()
    with torch.no_grad():
        return network([layer] * network.config.layers, x)[node_type]  # type: ignore[no-any-return]
