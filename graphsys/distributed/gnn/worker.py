"""One worker of a network's training: one machine's trainer, told where the others are."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphsys.core.progress import Progress
from graphsys.distributed.embedding.gloo import listening_store
from graphsys.distributed.gnn.local_graph import LocalGraph
from graphsys.distributed.profile_events import recorded
from graphsys.distributed.run_files import RunFiles
from graphsys.distributed.transport.connections import Address, Connections
from graphsys.gnn.config import GnnConfig
from graphsys.storage.reader import GraphReader as Graph


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
        with Graph(work.graph) as graph:
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
        self, graph: Graph, rank: int, meeting: Rendezvous, work: GnnWork
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
