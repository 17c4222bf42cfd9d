"""A network's run on a cluster: workers compute the rows of nodes, layer by layer.

All that is asked of an opened run, one machine answers from the rows of its nodes. Here
those are computed by workers: each layer's nodes are dealt out in the batches of one
machine, and rows of the layer before are read from files that all workers see.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Place, is_remote
from graphsys.datasets.temporary import GraphLike, stored_graph
from graphsys.distributed.cluster import Cluster, refuse_views
from graphsys.distributed.group import WorkerGroup, started
from graphsys.distributed.inference.run_work import (
    RunWork,
    parts_beside,
    require_checkpoint,
    work_of,
)
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.gnn.inference.trained_model import OpenedRun
from graphsys.gnn.layerwise_inference import (
    draws_for_each,
    entries_within,
    infer_sampled,
    scratch_of,
)
from graphsys.gnn.layerwise_passes import LayerByLayer, room_for
from graphsys.gnn.models.stream import StreamNetwork
from graphsys.gnn.ops.adjacency import kernel_threads
from graphsys.storage.reader import GraphReader
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSlices:
    """Nodes of a type in a layer, dealt out to workers.

    Attributes:
        stem: How the names of its files begin.
        bounds: Where each worker's nodes begin, and the end, in the list of the nodes.
        is_all: Whether that list is all nodes of the type; else it is in a file.
    """

    stem: str
    bounds: Sequence[int]
    is_all: bool

    @property
    def list_file(self) -> str:
        """The file with the numbers of the nodes, int64 ``[n]``."""
        return f"{self.stem}.nodes"

    def piece_file(self, rank: int) -> str:
        """Return the file with a worker's rows, float32 ``[m, F]``."""
        return f"{self.stem}.{rank}"

    @property
    def names(self) -> list[str]:
        """Its files."""
        pieces = map(self.piece_file, range(len(self.bounds) - 1))
        return [*([] if self.is_all else [self.list_file]), *pieces]

    def numbers(self, files: SharedFiles, rank: int) -> Ints:
        """Return the numbers of a worker's nodes, int64 ``[m]``."""
        low, high = self.bounds[rank], self.bounds[rank + 1]
        if self.is_all:
            return np.arange(low, high, dtype=np.int64)
        return np.array(*files.parts([(self.list_file, low, high)]))


class MappedLayer:
    """The rows of a layer as workers left them, mapped.

    Args:
        files: Where they did.
        shares: Whose rows are where; nodes that are listed ascend.
    """

    def __init__(self, files: SharedFiles, shares: LayerSlices) -> None:
        self._numbers = None if shares.is_all else files.load(shares.list_file)
        self._bounds = np.asarray(shares.bounds, dtype=np.int64)
        self._pieces: list[Floats | None] = [
            files.load(shares.piece_file(rank)) if low < high else None
            for rank, (low, high) in enumerate(
                zip(shares.bounds[:-1], shares.bounds[1:], strict=True)
            )
        ]

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows there are, and how long they are."""
        dims = [piece.shape[1] for piece in self._pieces if piece is not None]
        return int(self._bounds[-1]), dims[0]

    def of(self, nodes: Ints) -> Floats:
        """Return the rows of nodes that have one, float32 ``[n, F]``."""
        places = nodes
        if self._numbers is not None:
            places = np.searchsorted(self._numbers, nodes)
        found = np.empty((len(nodes), self.shape[1]), dtype=np.float32)
        ranks = np.searchsorted(self._bounds, places, side="right") - 1
        for rank in distinct(ranks):
            piece, is_its = self._pieces[rank], ranks == rank
            assert piece is not None  # a node lies in it
            found[is_its] = piece[places[is_its] - self._bounds[rank]]
        return found

    def write_to(self, out: Floats) -> None:
        """Write all rows, in the order of the list, float32 ``[n, F]``."""
        for low, piece in zip(self._bounds, self._pieces, strict=False):
            if piece is not None:
                out[low : low + len(piece)] = piece


class NetworkShard:
    """A worker that has a network's run open, and computes its share of a layer.

    Args:
        rank: Number of the worker.
        size: How many there are.
        work: The run.

    Raises:
        ConfigError: The run is not what the others have opened.
        CorruptStoreError: A file of it is damaged.
    """

    def __init__(self, rank: int, size: int, work: RunWork) -> None:
        self._rank, self._work = rank, work
        self._run: OpenedRun | None = None
        self._files: SharedFiles | None = None
        self._stack = ExitStack()  # of a killed worker, the next one drops the folder

    @property
    def run(self) -> OpenedRun:
        """The run."""
        if self._run is None:
            work = self._work
            run = OpenedRun(
                work.path,
                graph=GraphReader(work.graph),
                model=work.model,
                checkpoint=work.pinned,
            )
            require_checkpoint(self._work, run.path, run.state)
            self._run = run
        return self._run

    def ready(self) -> None:
        """Return when the network is there; what is wrong with the run ends here."""
        _ = self.run.context

    def compute(
        self,
        place: str,
        k: int,
        asked: Mapping[str, LayerSlices],
        known: Mapping[str, LayerSlices],
    ) -> list[str]:
        """Compute the own rows of a layer; twice leaves what once does.

        Args:
            place: Where rows of layers are.
            k: Number of the layer.
            asked: Its nodes by type.
            known: The rows of the layer before by type; none before the first.

        Returns:
            The types whose rows are in files now.

        Raises:
            StorageFullError: They cannot be written.
        """
        files = self._opened(place)
        before = {it: MappedLayer(files, known[it]) for it in known} if k else None
        context, written = self.run.context, []
        scratch = scratch_of(context, files.path)
        with kernel_threads(self._work.threads), torch.no_grad():
            for name, shares in asked.items():
                layers = LayerByLayer(context, scratch, entries_within(context))
                numbers = shares.numbers(files, self._rank)
                rows = layers.compute(k, name, numbers, before)
                if rows is not None:
                    save_rows(files, shares.piece_file(self._rank), rows)
                    written.append(name)
        for shares in known.values():
            files.let_go(shares.names)
        return written

    def compute_sampled(self, place: str, node_type: str, shares: LayerSlices) -> None:
        """Compute the own nodes' output, each from a sample; twice leaves what once does.

        Args:
            place: Where the rows go.
            node_type: Of the nodes.
            shares: The nodes, whole batches for each worker.

        Raises:
            StorageFullError: The rows cannot be written.
        """
        context, files = self.run.context, self._opened(place)
        numbers = shares.numbers(files, self._rank)
        first = shares.bounds[self._rank] // context.config.batch_size
        context.network.eval()
        if len(numbers):
            with kernel_threads(self._work.threads), torch.no_grad():
                rows = infer_sampled(context, node_type, numbers, first_batch=first)
            save_rows(files, shares.piece_file(self._rank), rows)

    def _opened(self, place: str) -> SharedFiles:
        if self._files is None or self._files.place != place:
            self._stack.close()
            self._files = self._stack.enter_context(shared_files(place))
        return self._files


def save_rows(files: SharedFiles, name: str, rows: npt.NDArray[Any]) -> None:
    """Write an array, whole or not at all.

    Raises:
        StorageFullError: It cannot be written.
    """
    with disk_errors(files.path):
        files.save(name, rows)


_NODES = 1 << 13
"""A running cluster has a worker for so many nodes, at most."""


class NetworkRun(OpenedRun):
    """A run of a network whose rows workers compute; they are those of one machine.

    Args:
        path: The run's folder, which all machines see.
        graph: As of :class:`~graphsys.gnn.inference.trained_model.OpenedRun`.
        model: As there.

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
    run: str | Path,
    *,
    cluster: Cluster,
    graph: GraphLike | None = None,
    model: str | None = None,
) -> Iterator[NetworkRun]:
    """Open a network's run on a cluster, for all of :mod:`graphsys.gnn` that takes one.

    ``gnn.evaluate``, ``predict``, ``recommend``, ``nearest`` and ``export`` give what they
    give on one machine.

    Args:
        run: The run's folder, which all machines see, or its location.
        cluster: Where.
        graph: The graph trained on, if it is not where it was, or another.
        model: As of :class:`~graphsys.gnn.inference.trained_model.OpenedRun`; all machines
            see the file.

    Yields:
        The run, until the context ends.

    Raises:
        ConfigError: As on one machine; a run whose rows are not computed layer by layer.
        ClusterError: Nothing answers, or a worker is lost again and again.
    """
    given = None if graph is None else stored_graph(graph)
    opened = NetworkRun(run, graph=given, model=model)
    refuse_views(opened.graph)
    _refuse(opened)
    work = work_of(opened, cluster)
    if opened.state.model_digest:
        work = replace(work, model=opened.config.model)
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
