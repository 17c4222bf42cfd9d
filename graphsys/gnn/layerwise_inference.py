"""Rows of all nodes, layer by layer: each node's row of each layer is computed once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.memory import available_bytes, resident_bytes
from graphsys.core.progress import SILENT, Progress
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.context import GnnContext
from graphsys.gnn.data.features import WholeEmbedding
from graphsys.gnn.data.message_graph import Layer
from graphsys.gnn.layerwise_passes import LayerByLayer
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.models.model import Model
from graphsys.gnn.models.stream import StreamNetwork
from graphsys.gnn.ops.sparse_features import SparseFeatures
from graphsys.gnn.part_specs import SAMPLERS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_ENTRIES_AT_A_TIME = 1 << 20
_LEAST_ENTRIES = 1 << 12
_WHOLE_ROWS = 3  # of a layer: as read, as sent, as received
_ENTRY_BYTES = 24


def infer(
    context: GnnContext,
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
    if nodes is not None and not len(nodes):
        return np.empty((0, context.network.num_out), dtype=np.float32)
    with torch.no_grad():
        if isinstance(context.network, StreamNetwork):
            if nodes is None:
                nodes = np.arange(context.graph.num_nodes_of(node_type), dtype=np.int64)
            return context.network.node_rows(node_type, nodes).numpy()
        if draws_for_each(context):
            if nodes is None:
                size = context.message_graph.sampler.sizes[node_type]
                nodes = np.arange(size, dtype=np.int64)
            return infer_sampled(context, node_type, nodes, progress=progress)
        found = LayerByLayer(context, scratch, entries, progress).run(node_type, nodes)
    progress.close()
    return found


def is_by_layers(context: GnnContext) -> bool:
    """Return whether :func:`infer` computes each layer of all nodes before the next."""
    return not (
        context.config.is_whole_graph
        or isinstance(context.network, StreamNetwork)
        or draws_for_each(context)
    )


def probe(context: GnnContext, node_type: str, nodes: Ints | None = None) -> int:
    """Compute what takes most memory of :func:`infer`, and keep nothing of it.

    Args:
        context: The network, in evaluation mode afterwards, and what it reads.
        node_type: As of :func:`infer`.
        nodes: As of :func:`infer`.

    Returns:
        Bytes of the rows of two layers, which are there at once beside what this took.
    """
    context.network.eval()
    if isinstance(context.network, StreamNetwork):
        return 0  # rows at a time, a batch's worth of them
    if draws_for_each(context):
        num_nodes = context.message_graph.sampler.sizes[node_type]
        num_rows = num_nodes if nodes is None else len(nodes)
        if context.config.is_of_graphs:
            some = np.arange(num_nodes) if nodes is None else nodes
            with torch.no_grad():
                infer_sampled(context, node_type, some[: context.config.batch_size])
        return 4 * num_rows * context.network.num_out
    with torch.no_grad():
        return LayerByLayer(context, None, entries_within(context)).probe(node_type, nodes)


def draws_for_each(context: GnnContext) -> bool:
    """Return whether :func:`infer` makes batches as training does.

    It does where a node's row depends on its own time, and of graphs, which no edge joins.
    """
    config = context.config
    return config.is_of_graphs or bool(SAMPLERS.get(config.sampler).has_times)


def infer_sampled(
    context: GnnContext,
    node_type: str,
    nodes: Ints,
    *,
    first_batch: int = 0,
    progress: Progress = SILENT,
) -> Floats:
    """Compute the output for nodes from samples, a batch of ``batch_size`` at a time.

    Args:
        context: The network, in evaluation mode, and what it reads.
        node_type: Of the nodes.
        nodes: Their numbers ``[n]``.
        first_batch: Number of the first batch, part of the key of its draws.
        progress: Receives a stage.

    Returns:
        float32 ``[n, num_out]``.
    """
    network, message_graph = context.network, context.message_graph
    result = np.empty((len(nodes), network.num_out), dtype=np.float32)
    size = context.config.batch_size
    progress.stage("samples of all nodes", len(nodes), "nodes")
    for number, begin in enumerate(range(0, len(nodes), size), first_batch):
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


def scratch_of(context: GnnContext, path: Path | None) -> Path | None:
    """Return where rows of layers lie: in a folder if they are too many for memory."""
    return path if are_rows_on_disk(context) else None


def are_rows_on_disk(context: GnnContext) -> bool:
    """Return whether rows of layers are too many for memory.

    They are with learned rows on disk, and if two layers take more than half of what is
    free, or of what the budget of the process leaves.
    """
    config = context.config
    num_nodes = sum(context.message_graph.sampler.sizes.values())
    room = available_bytes()
    if context.budget is not None:
        room = min(room, context.budget - resident_bytes())
    is_large = 2 * 4 * num_nodes * config.dim > room // 2
    return is_large or config.learned_rows == "disk"


def entries_within(context: GnnContext) -> int:
    """Return how many entries a batch may have within the budget of the process.

    An entry has a row of its own at most, as long as a layer reads, which is there three
    times: gathered, as a message, and in the batch that is made ahead. What is freed may
    be of no use to the next batch, which makes it twice that; and half of the room is left
    to the rows of layers.
    """
    if context.budget is None:
        return _ENTRIES_AT_A_TIME
    dims = (shape.dim for shape in context.features.shapes.values())
    row_bytes = 4 * max(context.config.dim, *dims)
    room = (context.budget - resident_bytes()) // 2
    return min(max(room // (2 * 3 * row_bytes), _LEAST_ENTRIES), _ENTRIES_AT_A_TIME)


def whole_input(config: GnnConfig, x: dict[str, Any]) -> dict[str, Any]:
    """Return the input of all nodes, sparse where it is and the first layer allows it.

    Learned rows of all nodes are the table itself, not a copy of it.
    """
    is_number = {n: isinstance(v, torch.Tensor) and v.dim() == 1 for n, v in x.items()}
    x = {n: WholeEmbedding(len(v)) if is_number[n] else v for n, v in x.items()}
    is_linear = spec_of(config.model).is_linear(config)
    if config.norm != "none" or not (is_linear or config.residual):
        return x
    return {
        name: SparseFeatures.of(values) if _is_dense(values) else values
        for name, values in x.items()
    }


def whole_bytes(context: GnnContext) -> int:
    """Return what :func:`whole_output` takes: the input, layers' rows, all entries."""
    config, sizes = context.config, context.message_graph.sampler.sizes
    dims = {name: shape.dim for name, shape in context.features.shapes.items()}
    widest = max(config.dim, context.network.num_out)
    rows = sum(
        4 * size * (dims.get(name, 0) + _WHOLE_ROWS * widest)
        for name, size in sizes.items()
    )
    entries = sum(int(each.degrees().sum()) for each in context.message_graph.rows)
    return rows + _ENTRY_BYTES * entries


def _is_dense(values: Any) -> bool:
    return isinstance(values, torch.Tensor) and values.is_floating_point()


def whole_output(
    network: Model, layer: Layer, x: Mapping[str, Any], node_type: str
) -> torch.Tensor:
    """Return the output for all nodes of a type, from a graph that is in memory whole."""
    network.eval()
    with torch.no_grad():
        return network([layer] * network.config.layers, x)[node_type]  # type: ignore[no-any-return]
