"""The loop of one worker: that of one machine, over its own partitions."""

import numpy as np

from graphsys.core.memory import available_bytes
from graphsys.core.threads import num_cores
from graphsys.distributed.local_edges import LocalEdges
from graphsys.distributed.local_simple import LocalSimple
from graphsys.distributed.ownership import LocalBlocks, Ownership
from graphsys.distributed.supersteps import LocalLauncher, WorkerSupersteps
from graphsys.distributed.transport.exchange import Exchange
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.execute.arrays import RunArrays, edge_rows
from graphsys.engine.execute.executor import Executor, Position
from graphsys.engine.execute.launcher import Kernels
from graphsys.engine.execute.memory_estimate import MemoryEstimate
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
            topology = LocalSimple(topology, self.spans, exchange, num_threads)
        elif plan.spec.edge_states:
            owners = self.ownership.owner_of(np.arange(topology.num_nodes))
            directions = edge_rows(plan, topology)
            topology = LocalEdges(topology, exchange, owners, self.spans, directions)
        self.topology = topology
        columns = MemoryEstimate(plan, topology).columns  # others would be read for nothing
        room = _room_for_rows(exchange.size)
        self.rows = LocalBlocks(topology, self.spans, columns, room)
        self.arrays = RunArrays(plan, topology, np.zeros)
        self.launcher = LocalLauncher(program, kernels, self.arrays, num_threads)
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
