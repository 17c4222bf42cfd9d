"""The arrays of a run on the device, beside the host's ones of the same names."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from graphsys.core.cuda.device import DeviceArray, DeviceMemory
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.execute.arrays import RunArrays, edge_rows

SIZE, EDGES, CHANGED, TOUCHED, SENDERS = 0, 1, 2, 3, 4
"""Places in a superstep's row of the counters: length of the frontier, edges of its rows,
nodes that changed, nodes touched; and two for the senders that ``active`` leaves."""
COMPACTED = 6
"""Where the length of a list made from stamps is counted."""
STEPS = 7
"""Where a fused kernel says how many supersteps it ran; in its first row only."""
WIDTH = 8


class DeviceArrays:
    """Every array of a run on the device, made when it is first asked for.

    Args:
        host: The run's arrays on the host.
        memory: The device's memory.

    Attributes:
        states: The states of the nodes by name.
    """

    def __init__(self, host: RunArrays, memory: DeviceMemory) -> None:
        self.host = host
        self.memory = memory
        self.num_nodes = host.num_nodes
        self.states: dict[str, DeviceArray] = {}
        self._next: dict[str, DeviceArray] = {}
        self._made: dict[Any, DeviceArray] = {}

    def upload_states(self) -> None:
        """Copy the host's states to the device."""
        for name, values in self.host.states.items():
            self.states[name] = self.memory.upload(values)

    def download_states(self) -> None:
        """Copy the states to the host's arrays."""
        for name, values in self.states.items():
            self.memory.read(values, self.host.states[name])

    def next_of(self, name: str) -> DeviceArray:
        """Return the array that receives a state's next values."""
        if name not in self._next:
            dtype, size = self.host.plan.dtypes[name], self.host.plan.components_of(name)
            self._next[name] = self.memory.empty(self.num_nodes, dtype, size)
        return self._next[name]

    def swap(self, names: Iterable[str]) -> None:
        """Make the next values of states the present ones."""
        for name in names:
            self.states[name], self._next[name] = self.next_of(name), self.states[name]

    def message(self, phase: PhasePlan, kind: str, i: int) -> DeviceArray:
        """Return the i-th array of messages (in, out), accumulators or sent messages."""
        dtype = phase.message_dtypes[i]
        kind = "message" if kind in ("in", "out") else kind
        size = phase.num_components
        key = (kind, dtype.name, i, size, None if kind == "message" else phase.number)
        if key not in self._made:
            value = phase.identity[i] if kind == "acc" else 0
            self._made[key] = self.memory.full(self.num_nodes, value, dtype, size)
        return self._made[key]

    def bits(self, phase: PhasePlan) -> DeviceArray:
        """Return the accumulator's memory as integers of its width."""
        dtype = phase.message_dtypes[0]
        return self.message(phase, "acc", 0).view(np.dtype(f"int{8 * dtype.itemsize}"))

    def column(self, name: str) -> DeviceArray:
        """Return a read-only column of all nodes."""
        if name not in self._made:
            self._made[name] = self.memory.upload(self.host.column(name))
        return self._made[name]

    def edge_values(self, name: str) -> DeviceArray:
        """Return an edge state."""
        key = f"edge__{name}"
        if key not in self._made:
            self._made[key] = self.memory.upload(self.host.edge_values(name))
        return self._made[key]

    def start_storing(self, phase: PhasePlan) -> None:
        """Let edges that get no message keep their values."""
        name = phase.spec.stores
        if name is not None and (phase.is_masked or phase.functions["accepts"]):
            self.memory.copy(self.edge_values(name), self.stored(name))

    def stored(self, name: str) -> DeviceArray:
        """Return where messages go that become an edge state."""
        key = f"stored__{name}"
        if key not in self._made:
            values = self.host.edge_values(name)
            self._made[key] = self.memory.empty(len(values), values.dtype)
        return self._made[key]

    def keep_stored(self, phase: PhasePlan) -> None:
        """Make the stored messages the values of the edge state."""
        name = phase.spec.stores
        if name is not None:
            new, old = self.stored(name), self.edge_values(name)
            self._made[f"edge__{name}"], self._made[f"stored__{name}"] = new, old

    @property
    def reverse_of(self) -> DeviceArray:
        """Place of the edge back for every entry of the pulled rows."""
        if "reverse_of" not in self._made:
            self._made["reverse_of"] = self.memory.upload(self.host.reverse_of)
        return self._made["reverse_of"]

    def node_list(self, name: str) -> DeviceArray:
        """Return room for a list of all nodes."""
        key = ("list", name)
        if key not in self._made:
            dtype = self.host.plan.id_dtype
            self._made[key] = self.memory.empty(self.num_nodes, dtype)
        return self._made[key]

    def stamps(self, name: str) -> DeviceArray:
        """Return stamps of all nodes, int32, of an epoch before the first."""
        key = ("stamps", name)
        if key not in self._made:
            self._made[key] = self.memory.full(self.num_nodes, -1, np.int32)
        return self._made[key]

    def scratch(self, name: str, length: int, dtype: Any) -> DeviceArray:
        """Return room for as many values under a name."""
        key = ("scratch", name, np.dtype(dtype).name)
        if key not in self._made or len(self._made[key]) < length:
            self._made[key] = self.memory.empty(length, dtype)
        return self._made[key]

    def swap_named(self, kind: str, one: str, other: str) -> None:
        """Exchange two lists or two stamps."""
        make = self.node_list if kind == "list" else self.stamps
        first, second = make(one), make(other)
        self._made[kind, one], self._made[kind, other] = second, first


def node_bytes(host: RunArrays) -> int:
    """Return about how many bytes the arrays that always lie on the device need."""
    plan = host.plan
    per_node = 0
    for name, dtype in plan.dtypes.items():
        per_node += 2 * dtype.itemsize * max(plan.components_of(name), 1)
    for phase in plan.phases:
        message = sum(dtype.itemsize for dtype in phase.message_dtypes)
        per_node += 3 * message * max(phase.num_components, 1)
    per_node += 10 * plan.id_dtype.itemsize + 3 * 4
    edge_bytes = 0
    if plan.spec.edge_states:
        entries = host.topology.num_edges * len(edge_rows(plan, host.topology))
        states = plan.spec.edge_states.values()
        per_edge = sum(2 * np.dtype(state.dtype).itemsize for state in states)
        edge_bytes = entries * (per_edge + plan.id_dtype.itemsize)
    return per_node * host.num_nodes + edge_bytes
