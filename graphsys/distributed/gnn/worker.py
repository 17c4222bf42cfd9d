"""One worker of a network's training: one machine's trainer, told where the others are."""

import os
import socket
from dataclasses import dataclass
from typing import Any

from graphsys.core.progress import Progress
from graphsys.distributed.seen import recorded
from graphsys.gnn.config import GnnConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GnnWork:
    """A training, by paths and settings.

    Attributes:
        graph: Folder of the store, which every machine sees.
        config: The settings.
        out: Folder of the run, which every machine sees.
        resume: Whether to go on from its checkpoint.
        overwrite: Whether to replace a run that is there.
        workers: How many train together.
        local_workers: How many on this machine; 0: each has one processor.
        is_profiled: Whether workers record themselves.
    """

    graph: str
    config: GnnConfig
    out: str
    resume: bool
    overwrite: bool
    workers: int
    local_workers: int
    is_profiled: bool = False


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

    def events(self) -> TrainingEvents:
        """Return how far this worker is."""
        return self._events

    def free_port(self) -> int:
        """Return a port of this machine that nobody listens at."""
        with socket.create_server(("", 0)) as free:
            port: int = free.getsockname()[1]
        return port

    def train(self, rank: int, master: tuple[str, int], work: GnnWork) -> dict[str, Any]:
        """Train the own share of every batch.

        Args:
            rank: Number of this worker; the first writes the run.
            master: Where the first one listens.
            work: What to train.

        Returns:
            ``report``, a :class:`~graphsys.training.report.TrainReport`, and what
            :func:`~graphsys.distributed.seen.recorded` adds where workers are profiled.

        Raises:
            ClusterError: Another worker is lost.
        """
        from graphsys import gnn
        from graphsys.core.threads import num_cores
        from graphsys.storage.reader import Graph

        here = work.local_workers or num_cores()  # of a running cluster: one processor
        os.environ |= {
            "RANK": str(rank), "WORLD_SIZE": str(work.workers),
            "LOCAL_WORLD_SIZE": str(here),
            "MASTER_ADDR": master[0], "MASTER_PORT": str(master[1]),
        }  # fmt: skip
        if work.local_workers:  # a machine's own name may lead nowhere
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        with Graph(work.graph) as graph:

            def train() -> dict[str, Any]:
                report = gnn.train(
                    graph, work.config, work.out, resume=work.resume,
                    overwrite=work.overwrite, progress=self._events,
                )  # fmt: skip
                return {"report": report}

            return recorded(train) if work.is_profiled else train()
