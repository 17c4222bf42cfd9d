"""One worker of a network's training: one machine's trainer, told where the others are.

Rows and features of nodes may be of its own partitions alone, others' owners asked for
theirs.
"""

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import ClusterError, ConfigError
from graphsys.core.progress import Progress
from graphsys.core.threads import ThreadTeam
from graphsys.distributed.embedding.gloo import listening_store
from graphsys.distributed.ownership import partition_cuts
from graphsys.distributed.profile_events import recorded
from graphsys.distributed.run_files import RunFiles
from graphsys.distributed.transport.connections import Address, Connections
from graphsys.distributed.transport.exchange import TIMEOUT_S, Payload, Peer
from graphsys.distributed.transport.requests import RequestChannel
from graphsys.gnn.config import GnnConfig
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.sampling.features import DenseFeatures, FeatureTable
from graphsys.sampling.multi_hop import Draw, HopSampler
from graphsys.sampling.sample_builder import Growth
from graphsys.storage.reader import GraphReader
from graphsys.training.callbacks import Callback

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_ROWS, _FEATURES = "rows", "features"
_NARROW = 1 << 32


class LocalGraph:
    """What one worker owns of a graph, and its ways to the others.

    Args:
        graph: An open graph.
        rank: Number of this worker.
        num_workers: How many there are; each owns whole partitions of every type.

    Attributes:
        rank: Number of this worker.
        requests: Takes what arrives from the others.
    """

    def __init__(self, graph: GraphReader, rank: int, num_workers: int) -> None:
        self.rank, self.requests = rank, RequestChannel(rank, self._answer)
        self._cuts = {k: partition_cuts(graph, k, num_workers) for k in graph.node_types}
        self._bounds = {k: graph.offsets(k)[list(c)] for k, c in self._cuts.items()}
        self._sampler: HopSampler | None = None
        self._features: dict[str, FeatureTable] = {}
        self._condition = threading.Condition()
        self._counts = dict.fromkeys(("rows", "far_rows", "row_bytes", "feature_bytes"), 0)

    def open(self, peers: Sequence[Peer]) -> None:
        """Ask and answer from now on."""
        self.requests.open(peers)

    def owner_of(self, node_type: str, nodes: Ints) -> Ints:
        """Return the worker of every node, int64 ``[n]``."""
        found: Ints = np.searchsorted(self._bounds[node_type], nodes, side="right") - 1
        return found

    def parts(self, node_type: str) -> Sequence[int]:
        """Return the partitions of this worker."""
        cuts = self._cuts[node_type]
        return range(cuts[self.rank], cuts[self.rank + 1])

    def sampler(self, sampler: HopSampler) -> HopSampler:
        """Return a sampler that draws the same, rows of others at their owners.

        Raises:
            ConfigError: A row depends on more than its node.
        """
        if not sampler.picks_by_node:
            raise ConfigError(
                f"sample_at: got owners with {type(sampler).__name__}, which does not draw "
                "a row by its node alone; expected store, or another sampler"
            )
        with self._condition:
            self._sampler = sampler
            self._condition.notify_all()
        return _LocalSampler(sampler, self)

    def features(self, rows: FeatureTable) -> DenseFeatures:
        """Return features of a type as their owners give them."""
        with self._condition:
            self._features[rows.node_type] = rows
            self._condition.notify_all()
        return _RemoteFeatures(rows, self)

    def figures(self) -> Mapping[str, int]:
        """Return rows sampled, those that others drew, and bytes both ways."""
        return dict(self._counts)

    def count(self, **more: int) -> None:
        """Add to the figures."""
        with self._condition:
            for name, value in more.items():
                self._counts[name] += value

    def _answer(self, question: Payload) -> Payload:
        kind, *asked = question
        if kind == _FEATURES:
            name, nodes = asked
            features = self._wait_for(lambda: self._features.get(name))
            return (features.gather(nodes),)
        relation, hop, epoch, batch, nodes = asked
        sampler: HopSampler = self._wait_for(lambda: self._sampler)
        indptr, neighbors = sampler.pick(relation, nodes, hop, epoch=epoch, batch=batch)
        size = max(sampler.sizes.values())
        return _narrow(np.diff(indptr), _NARROW), _narrow(neighbors, size)

    def _wait_for(self, find: Callable[[], Any]) -> Any:
        """Wait until this worker has come to what others ask for already."""
        with self._condition:
            found = self._condition.wait_for(find, TIMEOUT_S)
        if found is None:
            raise ClusterError(f"worker {self.rank} did not begin in {TIMEOUT_S:.0f} s")
        return found


class _LocalSampler(HopSampler):
    """Draws rows of own nodes, and has the owners of others draw theirs."""

    def __init__(self, sampler: HopSampler, graph: LocalGraph) -> None:
        super().__init__(
            sampler.rows, sampler.num_hops, frontier=sampler.frontier, seed=sampler.seed
        )
        self._sampler, self._graph = sampler, graph

    def _pick(self, growth: Growth, rows: PartitionedCsr, at: Draw) -> int:
        hop, (epoch, batch), (low, high), name, row = at
        graph = self._graph
        nodes = growth.nodes(rows.node_type)[low:high]
        owners = graph.owner_of(rows.node_type, nodes)
        of = {int(owner): nodes[owners == owner] for owner in distinct(owners)}
        own = of.pop(graph.rank, np.empty(0, np.int64))
        found: dict[int, tuple[Ints, Ints]] = {}

        def draw_own() -> None:
            indptr, neighbors = self._sampler.pick(
                rows.name, own, hop, epoch=epoch, batch=batch
            )
            found[graph.rank] = np.diff(indptr), neighbors

        questions: dict[int, Payload] = {
            owner: (_ROWS, rows.name, hop, epoch, batch, _narrow(far, rows.num_nodes))
            for owner, far in of.items()
        }
        answers, num_bytes = graph.requests.ask(questions, draw_own)
        found |= {owner: (each[0], each[1]) for owner, each in answers.items()}
        graph.count(rows=len(nodes), far_rows=len(nodes) - len(own), row_bytes=num_bytes)
        return _put(growth, name, row, owners, found)

    def _extras(self, buffers: Any, name: Any, end: int) -> dict[str, Any]:
        return {}  # places of entries are the owner's


def _put(
    growth: Growth, name: Any, row: int, owners: Ints, found: Mapping[int, Any]
) -> int:
    """Write rows that came by owner in the order of their nodes; return their end."""
    lengths = np.empty(len(owners), dtype=np.int64)
    for owner, (own_lengths, _) in found.items():
        lengths[owners == owner] = own_lengths
    indptr = growth.buffers.room(("indptr", name), row + len(owners) + 1, np.int64)
    np.cumsum(lengths, out=indptr[row + 1 : row + len(owners) + 1])
    indptr[row + 1 : row + len(owners) + 1] += indptr[row]
    begin, end = int(indptr[row]), int(indptr[row + len(owners)])
    neighbors = growth.buffers.room(("neighbors", name), end, np.int64)
    owner_of_entry = np.repeat(owners, lengths)
    for owner, (_, own_neighbors) in found.items():
        neighbors[begin:end][owner_of_entry == owner] = own_neighbors
    return end


class _RemoteFeatures:
    """Features of nodes, each from its owner."""

    def __init__(self, rows: FeatureTable, graph: LocalGraph) -> None:
        self._rows, self._graph = rows, graph
        self.node_type, self.num_nodes, self.dim = rows.node_type, rows.num_nodes, rows.dim

    def gather(
        self, nodes: Ints, out: Floats | None = None, team: ThreadTeam | None = None
    ) -> Floats:
        """Return the rows of nodes of others; see :meth:`FeatureTable.gather`."""
        if out is None:
            out = np.empty((len(nodes), self.dim), np.float32)
        owners = self._graph.owner_of(self.node_type, nodes)
        questions: dict[int, Payload] = {
            int(owner): (
                _FEATURES,
                self.node_type,
                _narrow(nodes[owners == owner], self.num_nodes),
            )
            for owner in distinct(owners)
        }
        answers, num_bytes = self._graph.requests.ask(questions, lambda: None)
        for owner, (found,) in answers.items():
            out[: len(nodes)][owners == owner] = found
        self._graph.count(feature_bytes=num_bytes)
        return out[: len(nodes)]

    def check(self, nodes: Ints, out: Floats | None) -> None:
        """Check nodes and a buffer for :meth:`gather`."""
        self._rows.check(nodes, out)


def _narrow(numbers: Ints, limit: int) -> npt.NDArray[Any]:
    """Return numbers below a limit in 32 bits where it allows."""
    return numbers.astype(np.uint32) if limit <= _NARROW else numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class GnnWork:
    """A training, by paths and settings.

    Attributes:
        graph: Folder of the store, which every machine sees.
        config: The settings.
        out: Folder of the run, which every machine sees unless ``through`` is given.
        resume: Whether to go on from its checkpoint.
        overwrite: Whether to replace a run that is there.
        workers: How many train together.
        local_workers: How many on this machine; 0: each has one processor.
        through: Location on an object store by which files of the run travel, or "".
        is_profiled: Whether workers record themselves.
        callbacks: Called by the first worker.
    """

    graph: str
    config: GnnConfig
    out: str
    resume: bool
    overwrite: bool
    workers: int
    local_workers: int
    through: str = ""
    is_profiled: bool = False
    callbacks: tuple[Callback, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """Where workers find each other.

    Attributes:
        master: Where gloo's first process listens.
        listening: Where each listens for questions.
        key: By which they know each other.
    """

    master: Address
    listening: Sequence[Address]
    key: bytes


class TrainingEvents(Progress):
    """Keeps what a training tells about how far it is, for who asks from elsewhere."""

    def __init__(self) -> None:
        self.number = self.steps = 0
        self.told: tuple[str, int | None, str] = ("", None, "")
        self.figures: dict[str, float] = {}

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage."""
        self.number, self.steps, self.told = self.number + 1, 0, (name, total, unit)

    def advance(self, steps: int, **figures: float) -> None:
        """Count steps."""
        self.steps, self.figures = self.steps + steps, figures


class GnnWorker:
    """A worker's process: it answers how far it is while it trains."""

    def __init__(self) -> None:
        self._events = TrainingEvents()
        self._meeting: socket.socket | None = None

    def events(self) -> TrainingEvents:
        """Return how far this worker is."""
        return self._events

    def meet_at(self, host: str) -> Address:
        """Return where the others find this worker, the first one, from now on."""
        self._meeting = socket.create_server((host, 0))
        return host, self._meeting.getsockname()[1]

    def listen(self, host: str) -> Address:
        """Return where this worker listens for questions of others from now on."""
        self._connections = Connections(host)
        return self._connections.address

    def train(self, rank: int, meeting: Rendezvous, work: GnnWork) -> dict[str, Any]:
        """Train the own share of every batch.

        Args:
            rank: Number of this worker; the first writes the run.
            meeting: Where the others are.
            work: What to train.

        Returns:
            ``report``, a :class:`~graphsys.training.report.TrainReport`, and, where
            workers are profiled, what
            :func:`~graphsys.distributed.profile_events.recorded` adds.

        Raises:
            ClusterError: Another worker is lost.
        """
        from graphsys import gnn
        from graphsys.core.threads import num_cores
        from graphsys.gnn import process_group

        here = work.local_workers or num_cores()  # of a running cluster: one processor
        os.environ |= {
            "RANK": str(rank),
            "WORLD_SIZE": str(work.workers),
            "LOCAL_WORLD_SIZE": str(here),
        }
        process_group.meet(self._store_of(meeting, work.workers))
        if work.local_workers:  # a machine's own name may lead nowhere
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        with GraphReader(work.graph) as graph:
            owned = self._owned(graph, rank, meeting, work)
            files = RunFiles.of_worker(work.out, work.through)
            if rank and work.through:
                files.path.mkdir(exist_ok=True)  # for rows of layers, where memory is short

            def train() -> dict[str, Any]:
                report = gnn.train(
                    graph,
                    work.config,
                    files.path,
                    resume=work.resume,
                    overwrite=work.overwrite,
                    callbacks=work.callbacks,
                    progress=self._events,
                    owners=owned,
                    on_commit=files.publish,
                )
                return {"report": report}

            return recorded(train) if work.is_profiled else train()

    def _store_of(self, meeting: Rendezvous, size: int) -> Any:
        """Return where workers find each other: at one address, and by their key."""
        import torch.distributed

        c10d: Any = torch.distributed
        if self._meeting is not None:
            store = listening_store(self._meeting, size)
            self._meeting = None
        else:
            store = c10d.TCPStore(*meeting.master, size, False, wait_for_workers=False)
        return c10d.PrefixStore(meeting.key.hex(), store)

    def _owned(
        self, graph: GraphReader, rank: int, meeting: Rendezvous, work: GnnWork
    ) -> LocalGraph | None:
        """Return what this worker owns, if rows are read by their owners."""
        if work.config.sample_at != "owners":
            return None
        owned = LocalGraph(graph, rank, work.workers)
        # kept open when the work fails: others are to hear why, not that this one is lost
        owned.open(
            self._connections.open(rank, meeting.listening, meeting.key, owned.requests)
        )
        return owned
