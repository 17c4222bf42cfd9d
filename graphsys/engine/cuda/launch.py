"""Calling CUDA kernels: binding arguments by name, the size of the grid, events."""

import time
from dataclasses import dataclass, field
from typing import Any

from numba.core.errors import NumbaError

from graphsys.core.clocks import CLOCKS
from graphsys.core.cuda.device import (
    DeviceArray,
    DeviceMemory,
    LaunchShape,
    is_simulated,
)
from graphsys.core.cuda.launch_times import LaunchTimes
from graphsys.core.errors import ConfigError
from graphsys.core.events import count as emit_count
from graphsys.core.events import is_asked, observe
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.codegen.untyped import compile_error
from graphsys.engine.cuda.arrays import DeviceArrays
from graphsys.engine.cuda.clocks import ARGUMENTS, ClockRecords
from graphsys.engine.cuda.rows import DeviceBlock
from graphsys.engine.execute.arrays import RunArrays, edge_rows
from graphsys.engine.execute.directions import push_directions
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.launcher import Kernels, Launcher
from graphsys.engine.program import VertexProgram

_THREADS_PER_ROW = {"thread": 1, "warp": 32, "block": 0}


@dataclass(kw_only=True)
class DeviceLaunch:
    """One launch of a kernel.

    Attributes:
        kernel: Its name, without the phase's number.
        phase: The phase, or None for kernels that all programs share.
        mapping: ``thread``, ``warp`` or ``block`` per item.
        items: How many items there are at most.
        block: The rows it visits, or None.
        in_place: States to be written in place although the phase buffers them.
        arguments: Values of arguments by name.
        cooperative: Whether the kernel waits for the whole grid, so that all blocks must be
            resident.
    """

    kernel: str
    phase: PhasePlan | None = None
    mapping: str = "thread"
    items: int
    block: DeviceBlock | None = None
    in_place: frozenset[str] = frozenset()
    arguments: dict[str, Any] = field(default_factory=dict)
    cooperative: bool = False


class DeviceLauncher(Launcher):
    """Launches kernels on the arrays of a run.

    Args:
        program: Its parameters.
        kernels: The generated module's kernels, with the names of their arguments.
        common: Kernels that all programs share, by name.
        arrays: The run's arrays on the host.
        memory: The device's memory.
        shape: How large launches are.
    """

    def __init__(
        self,
        program: VertexProgram,
        kernels: Kernels,
        common: dict[str, Any],
        arrays: RunArrays,
        memory: DeviceMemory,
        shape: LaunchShape,
    ) -> None:
        super().__init__(program, kernels, arrays, num_threads=1)
        self.device = DeviceArrays(arrays, memory)
        self.memory = memory
        self.shape = shape
        self.times = LaunchTimes(memory.stream)
        self.num_launches = 0
        self._common = common
        self._started: set[str] = set()
        self._resident: dict[str, int] = {}
        self._clocks = ClockRecords(memory, shape) if is_asked(CLOCKS) else None

    def call(self, launch: Launch) -> Any:
        """Run ``init`` on the device for the executor, which sets the senders then."""
        self.device.upload_states()
        mapping = "warp" if self.arrays.plan.num_components else "thread"
        items = self.arrays.num_nodes
        self.launch(DeviceLaunch(kernel=launch.kernel, mapping=mapping, items=items))
        self.device.download_states()
        return None

    def takes(self, kernel: str, phase: PhasePlan, argument: str) -> bool:
        """Return whether a kernel of a phase has an argument."""
        return argument in self._kernels[f"{kernel}_{phase.number}"][1]

    def launch(self, launch: DeviceLaunch) -> int:
        """Launch a kernel; return the number of its warps."""
        name = launch.kernel
        if launch.phase is not None:
            name = f"{name}_{launch.phase.number}"
        function, names = self._kernels[name]
        values = [self._bind(argument, launch) for argument in names]
        grid = self._grid(launch)
        if launch.cooperative:
            grid = min(grid, self._resident_blocks(name, function, values))
        if self._clocks is not None and ARGUMENTS[0] in names:
            self._clocks.clear()
        warps = self._start(name, function, grid, values)
        if self._clocks is not None and ARGUMENTS[0] in names:
            clocks = self._clocks
            observe(CLOCKS, lambda: clocks.read(name, grid))
        return warps

    def launch_common(
        self,
        name: str,
        items: int,
        *values: Any,
        mapping: str = "thread",
        blocks: int | None = None,
    ) -> None:
        """Launch a kernel that all programs share, with its arguments in order."""
        grid = blocks or self._grid(DeviceLaunch(kernel=name, items=items, mapping=mapping))
        self._start(name, self._common[name], grid, list(values))

    def _start(self, name: str, function: Any, grid: int, values: list[Any]) -> int:
        begin = time.perf_counter()
        try:
            with self.times.around(name, function):
                function[grid, self.shape.block, self.memory.stream](*values)
        except NumbaError as err:  # the first launch compiles
            raise compile_error(self.arrays.plan, err) from err
        if name not in self._started:
            self._started.add(name)
            self.compile_seconds += time.perf_counter() - begin
        self.num_launches += 1
        emit_count("kernel_launches", 1, kernel=name, grid=grid, block=self.shape.block)
        return grid * self.shape.block // 32

    def _resident_blocks(self, name: str, function: Any, values: list[Any]) -> int:
        """Return how many blocks of a kernel the device holds at once.

        Raises:
            ConfigError: it holds none, so that a grid that waits would never start.
        """
        if name not in self._resident:
            begin = time.perf_counter()
            if is_simulated():
                compiled = function.overloads[()]
            else:
                types = tuple(function.typeof_pyval(value) for value in values)
                try:
                    compiled = function.compile(types)
                except NumbaError as err:
                    raise compile_error(self.arrays.plan, err) from err
            blocks = int(compiled.max_cooperative_grid_blocks(self.shape.block))
            self.compile_seconds += time.perf_counter() - begin
            if blocks < 1:
                raise ConfigError(
                    f"kernel {name}: the device does not hold one block of "
                    f"{self.shape.block} threads at once, which strategy='fused' needs; "
                    "use strategy='twc'"
                )
            self._resident[name] = blocks
        return self._resident[name]

    def _grid(self, launch: DeviceLaunch) -> int:
        per_item = _THREADS_PER_ROW[launch.mapping] or self.shape.block
        blocks = -(-launch.items * per_item // self.shape.block)
        return max(1, min(blocks, self.shape.max_blocks))

    # ---- what an argument's name stands for; see cuda_source

    def _bind(self, name: str, launch: DeviceLaunch) -> Any:
        if name in launch.arguments:
            return launch.arguments[name]
        if name in ARGUMENTS and self._clocks is not None:
            return self._clocks.arrays[name]
        if name == "num_rows":
            block = launch.block
            return self.arrays.num_nodes if block is None else block.num_rows
        if name == "row_base":
            return 0 if launch.block is None else launch.block.row_base
        if name in ("indptr", "indices"):
            return getattr(launch.block, name)
        if name == "delta_tolerance":
            return float(self.program.delta_tolerance)
        if name in ("edge_base", "edge_forward", "reverse_forward"):
            return self._of_block(name, launch)
        if name == "reverse_of":
            return self.device.reverse_of
        side, _, rest = name.partition("__")
        if rest:
            return self._bind_named(side, rest, name, launch)
        kind, _, digit = name.rpartition("_")
        if launch.phase is None or not digit.isdigit():
            raise KeyError(f"kernel {launch.kernel} was given no {name}")
        if kind == "bits":
            return self.device.bits(launch.phase)
        return self.device.message(launch.phase, kind, int(digit))

    def _bind_named(self, side: str, name: str, argument: str, launch: DeviceLaunch) -> Any:
        device, block = self.device, launch.block
        if side in ("row", "col", "at"):
            return self._nodes(name, launch.phase)
        if side == "new":
            in_place = name in launch.in_place
            return device.states[name] if in_place else device.next_of(name)
        if side == "edge":
            is_column = block is not None and name in block.columns
            assert block is not None  # only kernels over rows read edges
            return block.columns[name] if is_column else device.edge_values(name)
        if side == "stored":
            return device.stored(name)
        if side == "run":
            return self._of_run(name)
        return self._parameters[argument]

    def _of_block(self, name: str, launch: DeviceLaunch) -> int | bool:
        """Return where a block's edge states begin, or which way its messages travel."""
        topology, block, phase = self.arrays.topology, launch.block, launch.phase
        assert block is not None  # only kernels over rows read edges
        side = block.direction
        if name == "edge_base":
            place = edge_rows(self.arrays.plan, topology).index(side)
            return place * topology.num_edges + block.first_edge
        if not topology.is_directed:
            return True
        is_forward = (side == "in") != launch.kernel.startswith("push")
        is_both = phase is not None and phase.spec.direction == "both"
        return is_forward != (name == "reverse_forward" and is_both)

    def _nodes(self, name: str, phase: PhasePlan | None) -> DeviceArray:
        if name in self.device.states:
            return self.device.states[name]
        if name == "out_going" and phase is not None:
            directions = push_directions(self.arrays.topology, phase)
            degree = "degree" if len(directions) == 2 else f"{directions[0]}_degree"
            return self.device.column(degree)
        return self.device.column(name)
