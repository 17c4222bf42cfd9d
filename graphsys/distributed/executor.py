"""The loop of one worker: that of one machine, over its own partitions."""

import numpy as np

from graphsys.core.memory import available_bytes
from graphsys.core.threads import num_cores
from graphsys.distributed.exchanging.exchange import Exchange
from graphsys.distributed.own_edges import OwnEdges
from graphsys.distributed.own_simple import OwnSimple
from graphsys.distributed.ownership import Ownership, OwnRows
from graphsys.distributed.supersteps import OwnLauncher, WorkerSupersteps
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.execute.arrays import RunArrays, edge_rows
from graphsys.engine.execute.executor import Executor, Position
from graphsys.engine.execute.launcher import Kernels
from graphsys.engine.execute.memory_estimate import Estimate
from graphsys.engine.program import VertexProgram
from graphsys.engine.topology import Topology


class WorkerExecutor(Executor):
    """The loop of one worker, which takes every step together with the others.

    Args:
        program: Parameters.
        plan: The lowered program.
        kernels: Its kernels.
        topology: The graph.
        exchange: With the other workers.
        num_threads: Threads; all cores by default.
        max_supersteps: End after so many.
    """

    # not the base's: launcher and supersteps are a worker's own
    def __init__(
        self,
        program: VertexProgram,
        plan: ProgramPlan,
        kernels: Kernels,
        topology: Topology,
        exchange: Exchange,
        *,
        num_threads: int | None = None,
        max_supersteps: int | None = None,
    ) -> None:
        self.program = program
        self.plan = plan
        self.max_supersteps = max_supersteps
        self.exchange = exchange
        self.ownership = Ownership.of(topology, exchange.size)
        self.spans = self.ownership.spans[exchange.rank]
        if program.simple:
            topology = OwnSimple(topology, self.spans, exchange, num_threads)
        elif plan.spec.edge_states:
            owners = self.ownership.owner_of(np.arange(topology.num_nodes))
            directions = edge_rows(plan, topology)
            topology = OwnEdges(topology, exchange, owners, self.spans, directions)
        self.topology = topology
        columns = Estimate(plan, topology).columns  # others would be read for nothing
        room = _room_for_rows(exchange.size)
        self.rows = OwnRows(topology, self.spans, columns, room)
        self.arrays = RunArrays(plan, topology, np.zeros)
        self.launcher = OwnLauncher(program, kernels, self.arrays, num_threads)
        self.launcher.spans = self.spans
        self.supersteps: WorkerSupersteps = WorkerSupersteps(
            self.launcher, self.rows, exchange, self.ownership
        )
        self.at = Position(totals=self.launcher.totals)
        self.frontier = None

    def close(self) -> None:
        """End the threads."""
        super().close()
        self.rows.close()


def _room_for_rows(num_workers: int) -> int:
    """Return how much of the rows stays mapped: half of a worker's share of free memory.

    The other half is for states and messages. A machine has a worker a processor at most.
    """
    return available_bytes() // min(num_workers, num_cores()) // 2
