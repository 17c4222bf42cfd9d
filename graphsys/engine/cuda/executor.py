"""A run of a program on the device: the loop is the CPU's, the supersteps are not."""

from typing import Any

from graphsys.core.cuda.device import (
    DeviceMemory,
    LaunchShape,
    default_shape,
    free_memory,
)
from graphsys.core.errors import BudgetError
from graphsys.core.events import span
from graphsys.core.memory import format_bytes
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.cuda.arrays import node_bytes
from graphsys.engine.cuda.launch import DeviceLauncher
from graphsys.engine.cuda.rows import DeviceBlocks, kept_of
from graphsys.engine.cuda.strategy import check_strategy
from graphsys.engine.cuda.supersteps import DeviceSupersteps
from graphsys.engine.execute.directions import pull_directions, push_directions
from graphsys.engine.execute.executor import Executor
from graphsys.engine.execute.rows import MemoryBlocks
from graphsys.engine.program import VertexProgram
from graphsys.engine.topology import Topology

_SHARE = 0.9
"""Part of the device's free memory that a run takes by default."""
_UNLIMITED = 2**31
_EDGE = "edge__"
"""Before the name of a column of edges, in that of an argument of a kernel."""


class DeviceExecutor(Executor):
    """One run of a program on a CUDA device.

    Args:
        program: Parameters.
        plan: The lowered program.
        module: The generated module: its kernels, and those that all programs share.
        topology: The graph.
        strategy: ``auto``, ``thread``, ``warp``, ``block``, ``twc``, ``edge`` or ``fused``.
        device_memory: Bytes on the device for nodes and rows; rows that do not fit are
            streamed. By default nine tenths of what is free.
        max_supersteps: End after so many.
        max_fused: At most so many supersteps are enqueued before the host looks.
        shape: How large launches are; by default they fill the device.

    Raises:
        BudgetError: the budget does not hold the nodes' arrays.
        ConfigError: no such strategy.
    """

    def __init__(
        self,
        program: VertexProgram,
        plan: ProgramPlan,
        module: Any,
        topology: Topology,
        *,
        strategy: str = "auto",
        device_memory: int | None = None,
        max_supersteps: int | None = None,
        max_fused: int = 16,
        shape: LaunchShape | None = None,
    ) -> None:
        check_strategy(strategy)
        super().__init__(
            program,
            plan,
            {},
            topology,
            MemoryBlocks(topology),
            num_threads=1,
            max_supersteps=max_supersteps,
        )
        # Arrays that an earlier run left on the device are used again: they count as free.
        kept = sum(it.nbytes for it in kept_of(topology).values())
        if device_memory is None:
            free = free_memory()
            device_memory = None if free is None else int(_SHARE * free) + kept
        memory = DeviceMemory()
        budget = None
        if device_memory is not None:
            needed = node_bytes(self.arrays)
            budget = device_memory - needed
            if budget <= 0:
                raise BudgetError(
                    f"the nodes of {plan.spec.name} need {format_bytes(needed)} on the "
                    f"device, the budget is {format_bytes(device_memory)}: raise "
                    "device_memory, or use device='cpu' and memory in its place"
                )
        arguments = {name for _, names in module.KERNELS.values() for name in names}
        columns = frozenset(it.rpartition(_EDGE)[2] for it in arguments if _EDGE in it)
        rows = self.rows = DeviceBlocks(topology, memory, budget, columns)
        launcher = DeviceLauncher(
            program,
            module.KERNELS,
            module.COMMON,
            self.arrays,
            memory,
            shape or default_shape(),
        )
        self.launcher = launcher
        # The base made a launcher for the host, whose totals nobody writes.
        self.at.totals = launcher.totals
        self.device_steps = DeviceSupersteps(
            launcher, rows, strategy, max_fused, self._steps_left
        )
        self.supersteps = self.device_steps  # type: ignore[assignment]

    def prepare(self) -> None:
        """Copy the rows that stay on the device there, before the first superstep."""
        with span("upload"):
            for phase in self.plan.phases:
                if phase.kind == "local":
                    continue
                directions = pull_directions(self.topology, phase)
                if phase.spec.schedule == "changed":
                    directions += push_directions(self.topology, phase)
                for direction in directions:
                    if not self.rows.is_streamed(direction):
                        self.rows.block(direction)

    def finish(self) -> None:
        """Copy the states back to the host."""
        launcher = self.launcher
        assert isinstance(launcher, DeviceLauncher)  # __init__ made it
        self.device_steps.settle()
        launcher.times.tell()
        launcher.device.download_states()

    def _steps_left(self, phase: PhasePlan) -> int:
        left = _UNLIMITED
        if self.max_supersteps is not None:
            left = self.max_supersteps - self.at.superstep
        limit = self.phase_limit(phase)
        if limit is not None:
            left = min(left, limit - self.at.step)
        return left
