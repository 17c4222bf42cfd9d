"""The arrays of a run: states, messages and columns of all nodes, states of edges."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import aligned_empty
from graphsys.core.errors import ConfigError
from graphsys.engine.codegen.lowered import NODE_COLUMNS
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.columns import read_node_column
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.rows.reverse_edges import match_entries

Array = npt.NDArray[Any]
_AT_A_TIME = 1 << 20
_MADE = (*NODE_COLUMNS, "by_rank")
"""Columns that are of the graph's shape and ids, whatever a store's columns are called."""
Allocate = Callable[[int, Any], Array]
"""Makes an array of zeros of a length and a dtype; may be backed by a file."""


class RunArrays:
    """Every array of a run, made when it is first asked for.

    Args:
        plan: The program.
        topology: The graph.
        allocate: Where arrays of all nodes come from.

    Attributes:
        states: The states of the nodes ``[N]`` by name; of vectors ``[N, K]``.
    """

    def __init__(self, plan: ProgramPlan, topology: Topology, allocate: Allocate) -> None:
        self.plan = plan
        self.topology = topology
        self.num_nodes = topology.num_nodes
        self._allocate = allocate
        self._next: dict[str, Array] = {}
        self._arrays: dict[str, Array] = {}
        self.states: dict[str, Array] = {
            name: self._room(self.num_nodes, dtype, plan.components_of(name))
            for name, dtype in plan.dtypes.items()
        }

    def _room(self, length: int, dtype: Any, num_components: int = 0) -> Array:
        """Make an array that is written before it is read: zeros would cost a pass.

        Vectors begin where a cache line does: those of 64 bytes lie in one each, not two.
        """
        make = aligned_empty if self._allocate is np.zeros else self._allocate
        if not num_components:
            return make(length, dtype)
        return make(length * num_components, dtype).reshape(length, num_components)

    def message(self, phase: PhasePlan, kind: str, i: int) -> Array:
        """Return the i-th array of messages (in, out), accumulators or sent messages."""
        dtype = phase.message_dtypes[i]
        kind = "message" if kind in ("in", "out") else kind
        size = phase.num_components
        name = f"{kind}_{dtype.name}_{i}_{phase.number if kind != 'message' else ''}"
        name += f"_{size}" if size else ""
        if name not in self._arrays:
            if kind == "sent":
                self._arrays[name] = self._allocate(self.num_nodes, dtype)
            else:
                self._arrays[name] = self._room(self.num_nodes, dtype, size)
            if kind == "acc" and phase.combiner != "any":
                self._arrays[name].fill(phase.identity[i])
        return self._arrays[name]

    def column(self, name: str) -> Array:
        """Return a read-only column of all nodes: ids as ranks, degrees, the store's."""
        dtype, topology = self.plan.id_dtype, self.topology
        is_stored = name in self.plan.spec.node_columns and name not in _MADE
        if is_stored:
            dtype = self.plan.spec.node_columns[name]
        shared = topology.node_columns if self._allocate is np.zeros else self._arrays
        key = f"{name} {dtype}"
        if key not in shared:
            values = self._allocate(self.num_nodes, dtype)
            if is_stored:
                read_node_column(topology.numbers, name, dtype, values)
            elif name in ("id", "by_rank"):
                ranks = topology.rank if name == "id" else topology.by_rank
                values[:] = (
                    np.arange(self.num_nodes, dtype=dtype) if ranks is None else ranks
                )
            else:
                both = name == "degree" and topology.is_directed
                directions = ("out", "in") if both else (name.partition("_")[0],)
                for direction in directions:
                    topology.add_degrees("in" if direction == "in" else "out", values)
            shared[key] = values
        return shared[key]

    @cached_property
    def touched_list(self) -> Array:
        """Room for a list of all nodes, int64 ``[N]``."""
        return self._room(self.num_nodes, np.int64)

    def next_of(self, name: str) -> Array:
        """Return the array that receives a state's next values."""
        if name not in self._next:
            size = self.plan.components_of(name)
            self._next[name] = self._room(self.num_nodes, self.plan.dtypes[name], size)
        return self._next[name]

    def swap(self, names: Iterable[str]) -> None:
        """Make the next values of states the present ones."""
        for name in names:
            self.states[name], self._next[name] = self._next[name], self.states[name]

    def kept(self) -> dict[str, Array]:
        """Return the arrays that a superstep hands to the next, by a name of their own."""
        found = {f"state__{name}": array for name, array in self.states.items()}
        for name, array in self._arrays.items():
            is_sum = name.startswith("acc_") and self.plan.spec.delta
            if is_sum or name.startswith(("sent_", "edge__")):
                found[name] = array
        return found

    def put_back(self, name: str, dtype: np.dtype[Any], length: int) -> Array:
        """Return the array that :meth:`kept` gave under a name, to be filled."""
        kind, _, state = name.partition("__")
        if kind == "state":
            return self.states[state]
        self._arrays[name] = self._allocate(length, dtype)
        return self._arrays[name]

    # ---- states of edges

    def edge_values(self, name: str) -> Array:
        """Return an edge state or a column of edges, in the order of :func:`edge_rows`."""
        key = f"edge__{name}"
        if key not in self._arrays:
            state = self.plan.spec.edge_states[name]
            dtype = np.dtype(state.dtype)
            length = sum(rows.num_edges for rows in self._edge_rows.values())
            values = self._allocate(length, dtype)
            if not state.is_column:
                values.fill(state.default)
            for side, rows in self._edge_rows.items() if state.is_column else ():
                own = self.topology.edge_column(name, dtype, side, self._allocate)
                begin = self.edge_base(side)
                values[begin : begin + rows.num_edges] = own
            self._arrays[key] = values
        return self._arrays[key]

    @cached_property
    def _edge_rows(self) -> dict[Direction, Csr]:
        """The rows whose entries hold states, in their order."""
        return {d: self.topology.csr(d) for d in edge_rows(self.plan, self.topology)}

    def edge_base(self, direction: Direction) -> int:
        """Return where the states of the entries of a direction begin."""
        base = 0
        for name, rows in self._edge_rows.items():
            if name == direction:
                break
            base += rows.num_edges
        return base

    def stored(self, phase: PhasePlan) -> dict[str, Array]:
        """Return where the messages of a phase go that stores them, by argument."""
        name = phase.spec.stores
        if name is None:
            return {}
        key = f"stored__{name}"
        if key not in self._arrays:
            self._arrays[key] = np.empty_like(self.edge_values(name))
        if phase.is_masked or phase.functions["accepts"] is not None:
            # edges without a message keep their values
            np.copyto(self._arrays[key], self.edge_values(name))
        return {key: self._arrays[key]}

    def keep_stored(self, phase: PhasePlan) -> None:
        """Make the stored messages the values of the edge state."""
        if phase.spec.stores is not None:
            now, then = f"edge__{phase.spec.stores}", f"stored__{phase.spec.stores}"
            self._arrays[now], self._arrays[then] = self._arrays[then], self._arrays[now]

    @cached_property
    def reverse_of(self) -> Array:
        """Place of the way back for every entry of :func:`edge_rows`; -1 without one.

        Undirected edges have one, and so have those that a phase of direction ``both``
        travels both ways: the same edge, from the other end. Along edges with a direction
        the k-th edge from u to v is matched with the k-th from v to u, in the order of
        their weights.
        """
        num_entries = sum(rows.num_edges for rows in self._edge_rows.values())
        places = np.full(num_entries, -1, np.int64 if num_entries >= 2**31 else np.int32)
        for own, back in zip(self._edge_rows, reversed(self._edge_rows), strict=True):
            rows, other = self._edge_rows[own], self._edge_rows[back]
            begin = self.edge_base(own)
            match_entries(
                rows.indptr,
                rows.indices,
                _weights(rows),
                other.indptr,
                other.indices,
                _weights(other),
                other.indptr[:-1].astype(np.int64),
                self.edge_base(back),
                places[begin : begin + rows.num_edges],
            )
        return places


def edge_rows(plan: ProgramPlan, topology: Topology) -> list[Direction]:
    """Return the rows whose entries hold states of edges, one after the other.

    Raises:
        ConfigError: phases of different directions use them.
    """
    used = {phase.spec.direction for phase in plan.phases if phase.uses_edge_states}
    if len(used) > 1 and topology.is_directed:
        raise ConfigError(
            f"{plan.spec.name}: phases that read or store states of edges must have one "
            f"direction, got {', '.join(sorted(used))}; give all of them direction = 'both'"
        )
    if not topology.is_directed:
        return ["out"]
    if used == {"both"}:
        return ["in", "out"]
    return ["out" if used == {"in"} else "in"]


def _weights(rows: Csr) -> Array:
    return np.empty(0) if rows.weight is None else rows.weight
