"""The arrays of a run: states, messages and columns of all nodes, states of edges."""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.engine.plan import PhasePlan, ProgramPlan
from graphsys.engine.topology import Topology

Array = npt.NDArray[Any]
Allocate = Callable[[int, Any], Array]
"""Makes an array of zeros of a length and a dtype; may be backed by a file."""


class RunArrays:
    """Every array of a run, made when it is first asked for.

    Args:
        plan: The program.
        topology: The graph.
        allocate: Where arrays of all nodes come from.

    Attributes:
        states: The states of the nodes ``[N]`` by name.
    """

    def __init__(self, plan: ProgramPlan, topology: Topology, allocate: Allocate) -> None:
        self.plan = plan
        self.topology = topology
        self.num_nodes = topology.num_nodes
        self._allocate = allocate
        self._next: dict[str, Array] = {}
        self._arrays: dict[str, Array] = {}
        self.states: dict[str, Array] = {
            name: allocate(self.num_nodes, dtype) for name, dtype in plan.dtypes.items()
        }

    def message(self, phase: PhasePlan, kind: str, i: int) -> Array:
        """Return the i-th array of messages (in, out), accumulators or sent messages."""
        dtype = phase.message_dtypes[i]
        kind = "message" if kind in ("in", "out") else kind
        name = f"{kind}_{dtype.name}_{i}_{phase.number if kind != 'message' else ''}"
        if name not in self._arrays:
            self._arrays[name] = self._allocate(self.num_nodes, dtype)
            if kind == "acc":
                self._arrays[name].fill(phase.identity[i])
        return self._arrays[name]

    def column(self, name: str) -> Array:
        """Return a read-only column of all nodes: ids as ranks, degrees."""
        if name not in self._arrays:
            dtype, topology = self.plan.id_dtype, self.topology
            if name in ("id", "by_rank"):
                ranks = topology.rank if name == "id" else topology.by_rank
                values = np.arange(self.num_nodes) if ranks is None else ranks
            elif name == "degree" and topology.is_directed:
                values = topology.out_degree + topology.in_degree
            else:
                values = topology.in_degree if name == "in_degree" else topology.out_degree
            self._arrays[name] = values.astype(dtype)
        return self._arrays[name]

    @cached_property
    def touched_list(self) -> Array:
        """Room for a list of all nodes, int64 ``[N]``."""
        return self._allocate(self.num_nodes, np.int64)

    def next_of(self, name: str) -> Array:
        """Return the array that receives a state's next values."""
        if name not in self._next:
            self._next[name] = self._allocate(self.num_nodes, self.plan.dtypes[name])
        return self._next[name]

    def swap(self, names: Iterable[str]) -> None:
        """Make the next values of states the present ones."""
        for name in names:
            self.states[name], self._next[name] = self._next[name], self.states[name]

    # ---- states of edges

    def edge_values(self, name: str) -> Array:
        """Return an edge state, in the order of the rows that are pulled."""
        key = f"edge__{name}"
        if key not in self._arrays:
            state = self.plan.spec.edge_states[name]
            values = self._allocate(self.topology.num_edges, np.dtype(state.dtype))
            values.fill(state.default)
            self._arrays[key] = values
        return self._arrays[key]

    def stored(self, phase: PhasePlan) -> dict[str, Array]:
        """Return where the messages of a phase go that stores them, by argument."""
        name = phase.spec.stores
        if name is None:
            return {}
        key = f"stored__{name}"
        if key not in self._arrays:
            self._arrays[key] = np.empty_like(self.edge_values(name))
        return {key: self._arrays[key]}

    def keep_stored(self, phase: PhasePlan) -> None:
        """Make the stored messages the values of the edge state."""
        for key in self.stored(phase):
            name = f"edge__{phase.spec.stores}"
            self._arrays[name], self._arrays[key] = self._arrays[key], self._arrays[name]

    @cached_property
    def reverse_of(self) -> Array:
        """Place of the edge back for every entry of the pulled rows; -1 without one."""
        raise NotImplementedError
