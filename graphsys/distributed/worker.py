"""One worker of a run: the loop of one machine over its own partitions."""

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphsys.core.errors import WorkerLostError
from graphsys.core.progress import Progress
from graphsys.distributed import ray
from graphsys.distributed.checkpoints import ClusterCheckpoints
from graphsys.distributed.group import RestartBudget, WorkerGroup, ask_aside
from graphsys.distributed.mining_work import MiningWork, run_mining
from graphsys.distributed.profile_events import recorded
from graphsys.distributed.shared_work import SharedWork, run_share
from graphsys.distributed.supersteps import WorkerExecutor
from graphsys.distributed.transport.connections import Address, Connections
from graphsys.distributed.transport.exchange import (
    TIMEOUT_S,
    Exchange,
    Mailbox,
    Payload,
    Peer,
)
from graphsys.distributed.work import ProgramWork
from graphsys.engine.execute.prepared import compile_program
from graphsys.engine.topology import Topology

Work = ProgramWork | SharedWork | MiningWork
"""What a worker may be told to do."""


class Worker:
    """A worker's process: it takes mail while it runs."""

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._executor: WorkerExecutor | None = None

    def deliver(self, number: int, sender: int, payload: Payload) -> None:
        """Take what another worker sends."""
        self._mailbox.put(number, sender, payload)

    def supersteps_done(self) -> int:
        """Return how far this worker is."""
        return 0 if self._executor is None else self._executor.at.superstep

    def run(self, rank: int, peers: Sequence[Peer], work: Work) -> dict[str, Any]:
        """Run the own part to its end.

        Args:
            rank: Number of this worker.
            peers: The mailboxes of all.
            work: What to run.

        Returns:
            ``states`` (the own spans' values by name, and ``spans``), the ``position`` of
            the run, ``seconds``, ``compile_seconds``, ``setup_bytes``, ``bytes`` sent in
            every superstep run here, ``steps`` (see :meth:`StepClock.stop`),
            ``bound`` (bytes of all values that others read), ``waited_s``, ``nodes``.
        """
        exchange = Exchange(rank, peers, self._mailbox, TIMEOUT_S)
        if work.is_profiled:
            return recorded(lambda: self._do(exchange, work))
        return self._do(exchange, work)

    def _do(self, exchange: Exchange, work: Work) -> dict[str, Any]:
        if isinstance(work, SharedWork):
            return run_share(exchange, work)
        if isinstance(work, MiningWork):
            return run_mining(exchange, work)
        topology, program = Topology.of(work.graph), work.program()
        plan, kernels, compiling = compile_program(program, topology, work.max_supersteps)
        executor = WorkerExecutor(
            program,
            plan,
            kernels,
            topology,
            exchange,
            num_threads=work.threads,
            max_supersteps=work.max_supersteps,
        )
        self._executor = executor
        try:
            return self._run(executor, work, compiling)
        finally:
            executor.close()

    def _run(
        self, executor: WorkerExecutor, work: ProgramWork, compiling: float
    ) -> dict[str, Any]:
        exchange, begin = executor.exchange, time.perf_counter()
        saved = ClusterCheckpoints.of(work, executor)
        setup_bytes, clock = exchange.sent_bytes, StepClock(executor)
        steps: list[dict[str, float]] = []
        for _ in executor.run():
            steps.append(clock.stop())
            if saved is not None:
                saved.after(executor)
            clock.start()
        if saved is not None:
            saved.close()
        states = executor.arrays.states
        shown = executor.plan.spec.program.results or tuple(states)
        spans = executor.spans
        took = time.perf_counter() - begin - executor.supersteps.compile_seconds
        return {
            "spans": spans,
            "states": {
                name: [states[name][low:high] for low, high in spans] for name in shown
            },
            "position": executor.at,
            "seconds": took,
            "compile_seconds": compiling + executor.compile_seconds,
            "setup_bytes": setup_bytes,
            "bytes": [int(step["sent_bytes"]) for step in steps],
            "steps": steps,
            "bound": executor.supersteps.bound_bytes,
            "waited_s": sum(step["waiting_seconds"] for step in steps),
            "nodes": executor.ownership.num_nodes(exchange.rank),
        }


class StepClock:
    """What a worker's supersteps take."""

    def __init__(self, executor: WorkerExecutor) -> None:
        self._executor = executor
        self.start()

    def start(self) -> None:
        """Begin with a superstep."""
        self._began = self._now()

    def stop(self) -> dict[str, float]:
        """Return what the superstep took.

        Returns:
            ``sent_bytes``; ``seconds`` without compiling, here or in another worker that
            this one waited for; of those ``waiting_seconds`` and ``sending_seconds``.
        """
        passed = (now - then for now, then in zip(self._now(), self._began, strict=True))
        took, sent_bytes, waited, sending, compiled, stood_still = passed
        return {
            "sent_bytes": sent_bytes,
            "seconds": took - stood_still,
            "waiting_seconds": max(waited - (stood_still - compiled), 0.0),
            "sending_seconds": sending,
        }

    def _now(self) -> tuple[float, ...]:
        executor, exchange = self._executor, self._executor.exchange
        return (
            time.perf_counter(),
            exchange.sent_bytes,
            exchange.waited_s,
            exchange.sending_s,
            executor.compile_seconds,
            executor.supersteps.compile_seconds,
        )


class RemoteWorker(Worker):
    """A worker whose peers are other processes."""

    def __init__(self) -> None:
        super().__init__()
        self._connections = Connections(ray.node_address())

    def address(self) -> Address:
        """Return where this worker listens for the others."""
        return self._connections.address

    def run_among(
        self, rank: int, addresses: Sequence[Address], key: bytes, work: Work
    ) -> dict[str, Any]:
        """Run the own part; see :meth:`Worker.run`.

        Args:
            rank: Number of this worker.
            addresses: Where all of them listen.
            key: By which they know each other.
            work: What to run.
        """
        # kept open when the work fails: others are to hear why, not that this one is lost
        self._peers = self._connections.open(rank, addresses, key, self._mailbox)
        return self.run(rank, self._peers, work)


def run_until_done(
    work: Work, num_workers: int, progress: Progress
) -> tuple[list[dict[str, Any]], int]:
    """Run, again after workers were lost; return what each gave back, and how often.

    Raises:
        ClusterError: workers were lost again and again.
    """
    budget = RestartBudget("run the command again")
    while True:
        try:
            return _run_once(work, num_workers, progress), budget.used
        except WorkerLostError:
            budget.take()
        if isinstance(work, ProgramWork):
            work = replace(work, resume=work.checkpoint is not None)


def _run_once(work: Work, num_workers: int, progress: Progress) -> list[dict[str, Any]]:
    done = 0

    def watch(first: Any) -> None:
        nonlocal done
        found = ask_aside(first, "supersteps_done")
        if found is not None and found > done:
            progress.advance(found - done)
            done = found

    with WorkerGroup(RemoteWorker, num_workers) as group:
        addresses = group.begin("address")
        key = secrets.token_bytes(32)
        return group.run("run_among", lambda rank: (rank, addresses, key, work), watch)
