"""Calling generated kernels: binding arguments by name, and running in threads."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphsys.core.threads import ThreadTeam
from graphsys.engine.codegen.lowered import Input
from graphsys.engine.codegen.untyped import compile_error
from graphsys.engine.execute.arrays import Array, RunArrays
from graphsys.engine.execute.directions import out_going
from graphsys.engine.execute.launch import Launch
from graphsys.engine.execute.profile_events import tell
from graphsys.engine.program import NodeId, VertexProgram

if TYPE_CHECKING:
    from graphsys.engine.execute.rows import RowBlock

Kernels = Mapping[str, tuple[Any, tuple[str, ...]]]
"""Compiled functions by name, each with the names of its arguments."""

LIST_CHUNK = 512
"""Nodes of a list that a thread takes at a time; the kernels' loops say the same."""

PUSH_CHUNK = 64
"""Nodes of a frontier that a thread takes at a time to push from."""

_FIXED = (
    "counter",
    "bounds",
    "row_base",
    "column_base",
    "begins",
    "ends",
    "indices",
    "next_cursor",
    "delta_tolerance",
    "reverse_of",
)
"""Arguments that are the same in every call of a kernel on a block."""

_SMALL_BLOCK = 10_000
"""Rows and entries for which waking a second thread costs more than it saves."""

_NOTHING = np.empty(0, dtype=np.int64)
_NO_WORDS = np.zeros(1, dtype=np.uint64)


class Launcher:
    """Calls kernels on the arrays of a run.

    Args:
        program: Its parameters.
        kernels: The compiled kernels.
        arrays: The arrays of the run.
        num_threads: Threads; all cores by default.

    Attributes:
        compile_seconds: Time spent compiling or loading compiled code.
        superstep: Number of the superstep, for ``self.superstep``.
        totals: Totals of the last superstep by name.
    """

    def __init__(
        self,
        program: VertexProgram,
        kernels: Kernels,
        arrays: RunArrays,
        num_threads: int | None,
    ) -> None:
        self.program = program
        self.arrays = arrays
        self.compile_seconds = 0.0
        self.superstep = 0
        self.totals: dict[str, float] = {}
        self.next_cursor = np.zeros(1, dtype=np.int64)
        self._kernels = kernels
        self._counter = np.zeros(1, dtype=np.int64)
        self._team = ThreadTeam(num_threads)
        self._alone = ThreadTeam(1)
        self._ready: set[tuple[Any, ...]] = set()
        self._parameters = self._parameter_values()
        self._arguments: dict[Any, tuple[RowBlock, list[Any], list[tuple[int, str]]]] = {}
        phases = arrays.plan.phases
        self._swapped = frozenset(name for phase in phases for name in phase.buffered)
        self._width = 2 + len(arrays.plan.spec.aggregators)

    def close(self) -> None:
        """End the threads."""
        self._team.close()

    @property
    def num_threads(self) -> int:
        """Threads that kernels run in."""
        return self._team.num_threads

    def has(self, kernel: str) -> bool:
        """Return whether the program has a kernel of that name."""
        return kernel in self._kernels

    def call(self, launch: Launch) -> Array:
        """Run a kernel.

        Returns:
            The chunks' parts, float64 ``[C, 2 + A]``: changed nodes, their edges, and each
            aggregator.
        """
        tell(self, launch)
        function, arguments, parts = self._prepared(launch)
        size = launch.block.num_rows + len(launch.block.indices)
        is_large = launch.parallel and (launch.nodes is not None or size > _SMALL_BLOCK)
        is_shared = is_large and self._has_shares(launch, len(parts))
        # Waking threads takes longer than a small block's work.
        team = self._team if is_shared else self._alone
        team.run(function, *arguments)
        return parts

    def trips(self, launch: Launch) -> Array:
        """Return how many entries a launch over rows will look at in each of them.

        Returns:
            int64 ``[n]``, for the listed nodes or all rows of the block.
        """
        rows = launch.block.num_rows if launch.nodes is None else len(launch.nodes)
        found = np.zeros(rows, dtype=np.int64)
        extra = {**launch.extra, "trips": found, "is_gather": launch.kernel == "gather"}
        probe = replace(launch, kernel="trips", extra=extra)
        compiling = self.compile_seconds
        function, arguments, _ = self._prepared(probe)
        self.compile_seconds = compiling  # nothing that the run itself needed
        function(0, *arguments)
        return found

    def _prepared(self, launch: Launch) -> tuple[Any, list[Any], Array]:
        """Return a launch's kernel, compiled, its arguments, and room for its parts."""
        name = launch.kernel
        if launch.phase is not None:
            name = f"{name}_{launch.phase.number}"
        function, names = self._kernels[name]
        chunks = len(launch.block.bounds) - 1
        if launch.nodes is not None:
            chunks = -(-len(launch.nodes) // LIST_CHUNK)
        # By chunk, not by thread: added in their order, sums do not depend on who took
        # which.
        parts = np.zeros((chunks, self._width))
        fixed, varying = self._bound(name, names, launch, parts)
        arguments = fixed.copy()
        for place, argument in varying:
            arguments[place] = self._value(argument, launch, parts)
        self._counter[0] = 0
        key = (name, launch.block.key)
        if key not in self._ready:
            self._compile(function, arguments)
            self._ready.add(key)
        return function, arguments, parts

    def _has_shares(self, launch: Launch, chunks: int) -> bool:
        """Whether there is more than one share of work for a thread to take."""
        if launch.kernel in ("push", "claim") and launch.nodes is not None:
            return len(launch.nodes) > PUSH_CHUNK
        return chunks > 1

    def argument(self, name: str, launch: Launch) -> Any:
        """Return what an argument of a kernel stands for."""
        return self._value(name, launch, _NOTHING)

    def run_alone(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel that is not generated in the caller's thread."""
        self._counter[0] = 0
        self._alone.run(kernel, self._counter, *arguments)

    def _bound(
        self, kernel: str, names: tuple[str, ...], launch: Launch, parts: Array
    ) -> tuple[list[Any], list[tuple[int, str]]]:
        """Return a kernel's arguments on a block, and which of them vary between calls."""
        key = (kernel, launch.block.key)
        found = self._arguments.get(key)
        # The key may come back with another block, whose arrays lie elsewhere.
        if found is None or found[0] is not launch.block:
            varying = [(i, name) for i, name in enumerate(names) if self._varies(name)]
            skipped = {place for place, _ in varying}
            fixed = [
                None if i in skipped else self._value(name, launch, parts)
                for i, name in enumerate(names)
            ]
            found = self._arguments[key] = (launch.block, fixed, varying)
        return found[1], found[2]

    def _varies(self, argument: str) -> bool:
        """Whether what an argument stands for may change from call to call."""
        side, _, name = argument.partition("__")
        if side in ("param", "row", "col", "at"):
            return name in self._swapped
        if side == "run":
            return name == "superstep"
        if side == "begins":
            return False
        if name:
            return True
        kind, _, digit = argument.rpartition("_")
        if digit.isdigit() and kind in ("in", "out", "acc", "sent"):
            return False
        return argument not in _FIXED

    def _compile(self, function: Any, arguments: list[Any]) -> None:
        import numba
        from numba.core.errors import NumbaError

        begin = time.perf_counter()
        try:
            function.compile((numba.int64, *(numba.typeof(value) for value in arguments)))
        except NumbaError as err:
            raise compile_error(self.arrays.plan, err) from err
        self.compile_seconds += time.perf_counter() - begin

    def _parameter_values(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        topology = self.arrays.topology
        for name, kind in self.arrays.plan.spec.parameters.items():
            value = getattr(self.program, name)
            if kind is NodeId:
                number = topology.number(value)
                value = number if topology.rank is None else int(topology.rank[number])
            values[Input("param", name).argument] = value
        return values

    # ---- what an argument's name stands for; see cpu_source

    def _value(self, name: str, launch: Launch, parts: Array) -> Any:
        if name in launch.extra:
            return launch.extra[name]
        side, _, rest = name.partition("__")
        if rest:
            return self._named(side, rest, name, launch)
        kind, _, digit = name.rpartition("_")
        if digit.isdigit() and launch.phase is not None:
            is_far = kind == "in" or (kind == "acc" and launch.kernel == "push")
            array = self.arrays.message(launch.phase, kind, int(digit))
            block = launch.block
            return _from(array, block.column_base if is_far else block.row_base)
        return self._plain(name, launch, parts)

    def _named(self, side: str, name: str, argument: str, launch: Launch) -> Any:
        arrays, block = self.arrays, launch.block
        if side == "at":
            return self._of_nodes(name, launch)
        if side in ("row", "col"):
            base = block.column_base if side == "col" else block.row_base
            return _from(self._of_nodes(name, launch), base)
        if side == "new":
            in_place = name in launch.in_place
            array = arrays.states[name] if in_place else arrays.next_of(name)
            return _from(array, block.row_base)
        if side == "edge":
            is_column = name in block.columns
            return block.columns[name] if is_column else arrays.edge_values(name)
        if side == "begins":
            return block.begins_of(name)
        if side == "total":
            return self.totals.get(name, 0.0)
        if side == "run":
            return self._of_run(name)
        return self._parameters[argument]

    def _of_run(self, name: str) -> int:
        if name == "superstep":
            return self.superstep
        topology = self.arrays.topology
        return topology.num_nodes if name == "num_nodes" else topology.num_edges

    def _of_edges(self, name: str, launch: Launch) -> int | bool:
        """Return where a block's edge states begin, or which way its messages travel."""
        topology = self.arrays.topology
        side = launch.block.direction
        assert side is not None  # only kernels over rows of one direction ask
        if name == "edge_base":
            side = side if topology.is_directed else "out"
            return self.arrays.edge_base(side)
        if not topology.is_directed:
            return True
        is_forward = (side == "in") != (launch.kernel == "push")
        is_both = launch.phase is not None and launch.phase.spec.direction == "both"
        return is_forward != (name == "reverse_forward" and is_both)

    def _of_nodes(self, name: str, launch: Launch) -> Array:
        arrays = self.arrays
        if name in arrays.states:
            return arrays.states[name]
        if name == "out_going" and launch.phase is not None:
            return out_going(arrays, launch.phase)
        return arrays.column(name)

    def _plain(self, name: str, launch: Launch, parts: Array) -> Any:
        block, nodes, senders = launch.block, launch.nodes, launch.senders
        match name:
            case "counter":
                return self._counter
            case "bounds" | "row_base" | "column_base" | "begins" | "ends" | "indices":
                return getattr(block, name)
            case "num_chunks":
                return len(parts)
            case "partial":
                return parts
            case "listed":
                return nodes is not None
            case "nodes":
                return _NOTHING if nodes is None else nodes
            case "num_listed":
                return 0 if nodes is None else len(nodes)
            case "next_list":
                return _NOTHING
            case "next_cursor":
                return self.next_cursor
            case "everyone":
                return senders is None or senders.everyone
            case "active":
                everyone = senders is None or senders.everyone
                return _NO_WORDS if everyone or senders is None else senders.words()
            case "changed" | "touched":
                return _NO_WORDS
            case "delta_tolerance":
                return float(self.program.delta_tolerance)
            case "edge_base" | "edge_forward" | "reverse_forward":
                return self._of_edges(name, launch)
            case "reverse_of":
                return self.arrays.reverse_of
        raise KeyError(name)


def _from(array: Array, base: int) -> Array:
    return array[base:] if base else array
