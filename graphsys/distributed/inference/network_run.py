"""A network's run on a cluster: workers compute the rows of nodes, layer by layer.

All that is asked of an opened run, one machine answers from the rows of its nodes. Here
those are computed by workers: each layer's nodes are dealt out in the batches of one
machine, and rows of the layer before are read from files that all workers see.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Place, is_remote
from graphsys.datasets.temporary import GraphLike, stored_graph
from graphsys.distributed.cluster import Cluster, refuse_views
from graphsys.distributed.group import WorkerGroup, started
from graphsys.distributed.inference.network_shard import (
    LayerSlices,
    MappedLayer,
    NetworkShard,
    save_rows,
)
from graphsys.distributed.inference.parts_folder import parts_beside
from graphsys.distributed.inference.run_work import work_of
from graphsys.distributed.shared_files import SharedFiles
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.gnn.layerwise_inference import draws_for_each, entries_within, scratch_of
from graphsys.gnn.layerwise_passes import LayerByLayer, room_for
from graphsys.gnn.models.stream import StreamNetwork
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_NODES = 1 << 13
"""A running cluster has a worker for so many nodes, at most."""


class NetworkRun(OpenedRun):
    """A run of a network whose rows workers compute; they are those of one machine.

    Args:
        path: The run's folder, which all machines see.
        graph: As of :class:`~graphsys.gnn.inference.trained_model.OpenedRun`.

    Attributes:
        shards: The workers.
        beside: Beside what they leave rows of layers: the folder, or its location where
            they are on several machines.
    """

    shards: WorkerGroup
    beside: Place

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return self.shards.size

    def output(
        self,
        nodes: Ints | None = None,
        *,
        node_type: str | None = None,
        progress: Progress = SILENT,
    ) -> Floats:
        """Have the network's output for nodes computed; see :meth:`OpenedRun.output`."""
        if nodes is not None and not len(nodes):
            return np.empty((0, self.context.network.num_out), dtype=np.float32)
        chosen = node_type or self.node_type
        with disk_errors(self.path), parts_beside(self.beside) as files:
            make = self._sampled if draws_for_each(self.context) else self._by_layers
            rows = MappedLayer(files, make(files, chosen, nodes, progress))
            found = room_for(rows.shape, scratch_of(self.context, files.path))
            rows.write_to(found)
        progress.close()
        self.require_still()
        return found

    def _by_layers(
        self, files: SharedFiles, node_type: str, nodes: Ints | None, progress: Progress
    ) -> LayerSlices:
        """Have each layer computed of all nodes that the next one reads."""
        layers = LayerByLayer(self.context, None, entries_within(self.context))
        known: dict[str, LayerSlices] = {}
        for k, wanted in enumerate(layers.wanted(node_type, nodes)):
            total = sum(map(len, wanted.values()))
            progress.stage(f"layer {k + 1} of {total} nodes", total, "nodes")
            known = self._layer(layers, files, k, wanted, known)
            progress.advance(total)
        return known[node_type]

    def _sampled(
        self, files: SharedFiles, node_type: str, nodes: Ints | None, progress: Progress
    ) -> LayerSlices:
        """Have each node's row computed from a sample of its own, in batches."""
        total = self.graph.num_nodes_of(node_type) if nodes is None else len(nodes)
        size, workers = self.config.batch_size, self.shards.size
        num_batches = -(-total // size)
        cuts = [rank * num_batches // workers for rank in range(workers + 1)]
        shares = LayerSlices(
            stem="0",
            bounds=[min(cut * size, total) for cut in cuts],
            is_all=nodes is None,
        )
        if nodes is not None:
            given = np.ascontiguousarray(nodes, dtype=np.int64)
            save_rows(files, shares.list_file, given)
        progress.stage("samples of all nodes", total, "nodes")
        self.shards.ask_all("compute_sampled", files.place, node_type, shares)
        progress.advance(total)
        return shares

    def _layer(
        self,
        layers: LayerByLayer,
        files: SharedFiles,
        k: int,
        wanted: Mapping[str, Ints],
        before: Mapping[str, LayerSlices],
    ) -> dict[str, LayerSlices]:
        """Have a layer computed, and drop the one before; return where its rows are."""
        asked = {
            name: self._dealt(layers, files, f"{k}-{place}", name, nodes)
            for place, (name, nodes) in enumerate(wanted.items())
            if len(nodes)
        }
        written = self.shards.ask_all("compute", files.place, k, asked, before)
        for shares in before.values():
            files.remove(shares.names)
        return {
            name: asked[name] for name in asked if any(name in each for each in written)
        }

    def _dealt(
        self,
        layers: LayerByLayer,
        files: SharedFiles,
        stem: str,
        node_type: str,
        nodes: Ints,
    ) -> LayerSlices:
        """Deal nodes out, whole batches of about as much work to each worker."""
        bounds = layers.shares(node_type, nodes, self.shards.size)
        is_all = len(nodes) == self.graph.num_nodes_of(node_type) and bool(
            (nodes == np.arange(len(nodes))).all()
        )
        shares = LayerSlices(stem=stem, bounds=bounds, is_all=is_all)
        if not is_all:
            save_rows(files, shares.list_file, nodes)
        return shares


@contextmanager
def opened_network(
    run: str | Path, *, cluster: Cluster, graph: GraphLike | None = None
) -> Iterator[NetworkRun]:
    """Open a network's run on a cluster, for all of :mod:`graphsys.gnn` that takes one.

    ``gnn.evaluate``, ``predict``, ``recommend``, ``nearest`` and ``export`` give what they
    give on one machine.

    Args:
        run: The run's folder, which all machines see, or its location.
        cluster: Where.
        graph: The graph trained on, if it is not where it was, or another.

    Yields:
        The run, until the context ends.

    Raises:
        ConfigError: As on one machine; a run whose rows are not computed layer by layer.
        ClusterError: Nothing answers, or a worker is lost again and again.
    """
    given = None if graph is None else stored_graph(graph)
    opened = NetworkRun(run, graph=given)
    refuse_views(opened.graph)
    _refuse(opened)
    work = work_of(opened.path, opened.graph.path, opened.state, cluster)
    most = sum(map(opened.graph.num_nodes_of, opened.graph.node_types)) // _NODES + 1
    with started(cluster, NetworkShard, [work], lambda: most) as shards:
        opened.shards = shards
        is_far = is_remote(run) and not cluster.local_workers
        opened.beside = run if is_far else opened.path.absolute()
        yield opened


def _refuse(run: NetworkRun) -> None:
    """Refuse a run whose rows are not computed layer by layer.

    Raises:
        ConfigError: With why.
    """
    reason = ""
    if run.config.is_whole_graph:
        given = "batch_size 0" if run.config.is_full_batch else f"model {run.config.model}"
        reason = f"{given} computes all rows at once"
    elif isinstance(run.context.network, StreamNetwork):
        reason = f"model {run.config.model} follows events in their order"
    if reason:
        raise ConfigError(
            f"{run.path}: {reason}, and workers share the nodes of layers; leave out "
            "--cluster"
        )
