"""How a program will be run on a graph: what is lowered, inferred and chosen once."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphsys.core.errors import CompileError, ConfigError
from graphsys.engine.codegen.lower import lower
from graphsys.engine.codegen.lowered import (
    EDGE_COLUMNS,
    FORWARD,
    NODE_COLUMNS,
    Input,
    Lowered,
)
from graphsys.engine.codegen.message_types import message_dtypes
from graphsys.engine.codegen.narrowing import check_results
from graphsys.engine.codegen.spec import PhaseSpec, ProgramSpec
from graphsys.engine.codegen.vectors import check_indices, check_message, check_vectors
from graphsys.engine.program import EdgeState, NodeId

_ROLES: dict[str, tuple[str, ...]] = {
    "message": ("src", "edge", "dst"),
    "combine": ("value", "value"),
    "update": ("node", "value"),
    "active": ("node",),
    "accepts": ("node",),
    "aggregate": ("before", "node"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePlan:
    """A phase with its functions lowered.

    Attributes:
        spec: What the program says.
        number: Its place among the phases.
        functions: Lowered functions by what they are; None where there is none.
        kind: ``local`` (no messages), ``node`` (one message per sender), ``edge`` (the
            message depends on the edge or the receiver) or ``mode``.
        message_dtypes: Dtypes of a message's values.
        identity: The message that changes nothing.
        combiner: Name of the combiner, or "".
        can_push: Whether messages may be combined one by one at the receiver.
        monotone: The state that ``update`` only lowers (or raises) to the message, so that
            a message not below it may be dropped; or "".
        is_masked: Whether senders are a subset of the nodes.
        buffered: States that are read while they are written, and so exist twice.
        read_at: States that are read of any node, by ``node.at``.
        is_mean: Whether sums are divided by the number of messages (combiner ``sum``).
        num_components: Length of the messages, if they are vectors; else 0.
        reasons: What was chosen and why, for ``--explain``.
    """

    spec: PhaseSpec
    number: int
    functions: Mapping[str, Lowered | None]
    kind: str
    message_dtypes: tuple[np.dtype[Any], ...] = ()
    identity: tuple[Any, ...] = ()
    combiner: str = ""
    can_push: bool = False
    monotone: str = ""
    is_masked: bool = False
    buffered: frozenset[str] = frozenset()
    read_at: frozenset[str] = frozenset()
    uses_edge_states: bool = False
    is_mean: bool = False
    num_components: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def in_coming(self) -> str:
        """The column of nodes that says how many messages each can get."""
        columns = {"out": "in_degree", "in": "out_degree", "both": "degree"}
        return columns[self.spec.direction]

    @property
    def spreads_alike(self) -> bool:
        """Whether senders of the same states leave receivers of the same states.

        The message reads nothing of its sender but what receivers then hold, and they take
        over one message whatever they held before: as in a search, level by level.
        """
        message, update = self.functions["message"], self.functions["update"]
        if message is None or update is None or self.combiner != "any":
            return False
        reads_more = set(message.reads("src")) - set(self.spec.updates)
        asks_nodes = [*update.reads("node"), *update.reads("at"), *message.reads("at")]
        is_plain = self.kind == "node" and self.spec.schedule == "changed"
        return is_plain and not reads_more and not asks_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPlan:
    """A program on a kind of graph: everything that its kernels depend on.

    Attributes:
        spec: The program.
        dtypes: Dtype of every state (numbers of nodes for :class:`NodeId`).
        edge_columns: Dtypes of the columns that the graph's edges have.
        phases: The phases.
        init: The lowered ``init``, or None.
        id_dtype: Dtype of ``node.id`` and degrees.
    """

    spec: ProgramSpec
    dtypes: Mapping[str, np.dtype[Any]]
    edge_columns: Mapping[str, np.dtype[Any]]
    phases: tuple[PhasePlan, ...]
    init: Lowered | None
    id_dtype: np.dtype[Any] = field(default=np.dtype(np.int32))

    @property
    def num_components(self) -> int:
        """Length of the program's vectors; 0 where it has none."""
        return self.spec.num_components

    def visited_by(self, phase: PhasePlan) -> str:
        """Return who alone can visit rows on a device; empty where several can."""
        if not self.num_components:
            return ""
        return "block" if phase.kind == "mode" else "warp"

    def components_of(self, name: str) -> int:
        """Return the length of a state that is a vector; 0 for a number, or a column."""
        state = self.spec.states.get(name)
        return 0 if state is None else state.num_components


def plan_of(
    spec: ProgramSpec, edge_columns: Mapping[str, np.dtype[Any]], *, wide_ids: bool = False
) -> ProgramPlan:
    """Lower a program for graphs with given edge columns.

    Args:
        spec: The program.
        edge_columns: Dtypes of ``weight``, ``time`` and ``relation`` where edges have them.
        wide_ids: Whether numbers of nodes or edges need 64 bits.

    Raises:
        CompileError: something cannot be compiled.
    """
    id_dtype = np.dtype(np.int64 if wide_ids else np.int32)
    dtypes = {
        name: id_dtype if state.dtype is NodeId else np.dtype(state.dtype)
        for name, state in spec.states.items()
    }
    init = None
    if spec.init is not None:
        init = lower(spec, spec.init, ("node",), "init__", len(spec.states))
    types = _TypesOf(spec, dtypes, edge_columns, id_dtype)
    if init is not None:
        check_results(init, "init", tuple(spec.states), types)
        check_vectors(spec, init, "init", tuple(spec.states))
    phases = tuple(_plan_phase(spec, p, i, types) for i, p in enumerate(spec.phases))
    return ProgramPlan(
        spec=spec,
        dtypes=dtypes,
        edge_columns=edge_columns,
        phases=phases,
        init=init,
        id_dtype=id_dtype,
    )


def types_of(plan: ProgramPlan) -> "_TypesOf":
    """Return what gives the dtypes of all that a program's functions read."""
    return _TypesOf(plan.spec, plan.dtypes, plan.edge_columns, plan.id_dtype)


@dataclass(frozen=True)
class _TypesOf:
    spec: ProgramSpec
    dtypes: Mapping[str, np.dtype[Any]]
    edge_columns: Mapping[str, np.dtype[Any]]
    id_dtype: np.dtype[Any]

    def __call__(self, given: Input) -> np.dtype[Any]:
        name = given.name
        if given.kind == "vector":
            return np.dtype(np.int64)
        if given.kind == "reduced":
            return np.dtype(np.float64)
        if given.kind in ("src", "dst", "node", "before", "at"):
            if name in NODE_COLUMNS or name not in self.spec.node_columns:
                return self.dtypes.get(name, self.id_dtype)
            return self.dtypes.get(name, self.spec.node_columns[name])
        if given.kind in ("edge", "reverse"):
            if name in EDGE_COLUMNS:
                default = np.float64 if name == "weight" else np.int64
                return np.dtype(self.edge_columns.get(name, default))
            if name == FORWARD:
                return np.dtype(np.bool_)
            return np.dtype(self.spec.edge_states[name].dtype)
        if given.kind == "run":
            return np.dtype(np.int64)
        if given.kind == "total":
            return np.dtype(np.float64)
        kind = self.spec.parameters[name]
        known = {int: np.int64, float: np.float64, bool: np.bool_, NodeId: np.int64}
        if kind not in known:
            raise ConfigError(
                f"parameter {name!r} of {self.spec.name} is used in compiled code and must "
                f"be int, float, bool or gs.NodeId, got {getattr(kind, '__name__', kind)}"
            )
        return np.dtype(known[kind])


def _plan_phase(
    spec: ProgramSpec, phase: PhaseSpec, number: int, types: _TypesOf
) -> PhasePlan:
    functions = _lowered_functions(spec, phase, number)
    message, update = functions["message"], functions["update"]
    assert update is not None  # spec_of checked
    found = {name for f in functions.values() if f for name in f.reads("at")}
    at_states = frozenset(found & set(spec.states))
    is_vector = _check_vectors(spec, phase, functions)
    if message is None:
        check_results(update, "update", phase.updates, types)
        return PhasePlan(
            spec=phase,
            number=number,
            functions=functions,
            kind="local",
            buffered=at_states & set(phase.updates),
            read_at=at_states,
            reasons=("no messages: one pass",),
            is_masked=phase.active is not None,
        )
    assert phase.combine is not None  # spec_of checked
    is_mean = phase.combine.name == "mean"
    combiner = "sum" if is_mean else phase.combine.name
    message_types = message_dtypes(phase, message, types)
    if is_mean:
        message_types = _check_mean(message, message_types)
    check_indices(update, len(message_types), is_vector=is_vector)
    check_results(update, "update", phase.updates, types, message_types)
    kind = "edge" if message.reads("edge", "reverse", "dst") or phase.stores else "node"
    if combiner == "mode":
        if kind == "edge":
            raise CompileError(f"{message.where}: gs.mode takes messages of src alone")
        kind = "mode"
    _check_delta(spec, kind, message, message_types)
    can_push = len(message_types) == 1 and combiner not in ("argmin", "argmax", "mode")
    reads_edges = _check_edge_states(spec, phase, message)
    can_push = can_push and phase.stores is None and not (reads_edges or is_vector)
    if combiner == "sum" and message_types[0].kind == "f" and phase.schedule == "all":
        can_push = False
    monotone = "" if is_vector else _monotone(update, phase, types, message_types)
    read = set(message.reads("src", "dst")) if kind == "edge" else set()
    buffered = frozenset((read | at_states) & set(phase.updates))
    num_components = spec.num_components if is_vector else 0
    return PhasePlan(
        spec=phase,
        number=number,
        functions=functions,
        kind=kind,
        combiner=combiner,
        message_dtypes=message_types,
        identity=_identity(phase, message_types),
        can_push=can_push,
        monotone=monotone,
        is_masked=phase.schedule == "changed" or phase.active is not None,
        buffered=buffered,
        read_at=at_states,
        uses_edge_states=reads_edges or phase.stores is not None,
        is_mean=is_mean,
        num_components=num_components,
        reasons=_reasons(phase, kind, can_push, message_types, num_components),
    )


def _check_vectors(
    spec: ProgramSpec, phase: PhaseSpec, functions: Mapping[str, Lowered | None]
) -> bool:
    """Return whether a phase's messages are vectors; see :mod:`.vectors` for errors."""
    message = functions["message"]
    is_vector = message is not None and check_message(spec, phase, message)
    update = functions["update"]
    if is_vector and update is not None:
        check_indices(update, 1, is_vector=True)
    for what, function in functions.items():
        if function is not None and what != "message":
            names = phase.updates if what == "update" else ()
            check_vectors(spec, function, what, names, takes_vector=is_vector)
    return is_vector


def _check_mean(
    message: Lowered, dtypes: tuple[np.dtype[Any], ...]
) -> tuple[np.dtype[Any], ...]:
    """Return the dtype of messages whose mean is wanted: floats."""
    if message.drops:
        raise CompileError(
            f"{message.where}: gs.mean needs a message along every edge: return a number, "
            "not None"
        )
    if len(dtypes) != 1:
        raise CompileError(
            f"{message.where}: gs.mean takes one value a message, got {len(dtypes)}; send "
            "one vector"
        )
    return tuple(d if d.kind == "f" else np.dtype(np.float64) for d in dtypes)


def _check_edge_states(spec: ProgramSpec, phase: PhaseSpec, message: Lowered) -> bool:
    """Return whether a message reads states of edges, which lie in pulled rows."""
    if phase.stores is not None and message.drops:
        raise CompileError(
            f"{message.where}: {phase.name} stores {phase.stores!r} and so needs a message "
            "for every edge: return a number, not None"
        )
    names = {*message.reads("edge"), *message.reads("reverse")} & set(spec.edge_states)
    # both ways, whether there is a way back is no question
    asks_back = phase.direction != "both" and FORWARD in message.reads("reverse")
    return bool(names) or asks_back


def with_edge_columns(spec: ProgramSpec, known: Mapping[str, np.dtype[Any]]) -> ProgramSpec:
    """Return a spec with those further columns of edges that its functions read.

    They are held as states of edges are, which nobody stores.

    Args:
        spec: Of the program.
        known: Dtypes of the columns that the graph has.

    Raises:
        CompileError: a function reads what is neither; the message lists what there is.
    """
    columns = {
        name: EdgeState(
            dtype.name, float("nan") if dtype.kind == "f" else 0, is_column=True
        )
        for name, dtype in known.items()
        if name not in spec.edge_states
    }
    if not columns:
        return spec
    every = replace(spec, edge_states={**spec.edge_states, **columns})
    read = {
        name
        for number, phase in enumerate(spec.phases)
        for function in _lowered_functions(every, phase, number).values()
        if function is not None
        for name in function.reads("edge", "reverse")
    }
    asked = {name: state for name, state in columns.items() if name in read}
    return replace(spec, edge_states={**spec.edge_states, **asked})


def _lowered_functions(
    spec: ProgramSpec, phase: PhaseSpec, number: int
) -> dict[str, Lowered | None]:
    returned = {"update": len(phase.updates), "aggregate": len(spec.aggregators)}
    found: dict[str, Lowered | None] = {}
    for what, roles in _ROLES.items():
        function = getattr(phase, what)
        if what == "combine":
            function = None if function is None else function.function
        name = f"{what}_{number}__"
        found[what] = (
            None
            if function is None
            else lower(spec, function, roles, name, returned.get(what))
        )
    update = found["update"]
    assert update is not None
    if phase.message is not None and not update.values:
        raise CompileError(f"{update.where}: update takes (self, node, message)")
    return found


def _check_delta(
    spec: ProgramSpec, kind: str, message: Lowered, dtypes: tuple[np.dtype[Any], ...]
) -> None:
    if not spec.delta:
        return
    if kind != "node" or len(dtypes) != 1 or message.drops:
        raise CompileError(
            f"{message.where}: with delta = True a message is one number made of src alone"
        )


def _identity(phase: PhaseSpec, dtypes: tuple[np.dtype[Any], ...]) -> tuple[Any, ...]:
    combine = phase.combine
    assert combine is not None
    if combine.name == "own":
        given = (
            combine.identity if isinstance(combine.identity, tuple) else (combine.identity,)
        )
        if len(given) != len(dtypes):
            raise ConfigError(
                f"{phase.name}: the identity has {len(given)} values, a message "
                f"{len(dtypes)}"
            )
        return given
    if combine.name == "any":  # what None becomes: a value that no program sends
        return tuple(_extreme(d, largest=d.kind != "b") for d in dtypes)
    if combine.name == "mode":
        return (_extreme(dtypes[0], largest=False),)
    if combine.name in ("argmin", "argmax"):
        first = _extreme(dtypes[0], largest=combine.name == "argmin")
        return (first, *(_extreme(dtype, largest=True) for dtype in dtypes[1:]))
    if combine.name in ("minimum", "maximum"):
        return tuple(_extreme(d, largest=combine.name == "minimum") for d in dtypes)
    return (0,) * len(dtypes)


def _extreme(dtype: np.dtype[Any], *, largest: bool) -> Any:
    if dtype.kind == "f":
        return np.inf if largest else -np.inf
    if dtype.kind == "b":
        return largest
    info = np.iinfo(dtype)
    return info.max if largest else info.min


def _monotone(
    update: Lowered | None, phase: PhaseSpec, types: _TypesOf, dtypes: tuple[Any, ...]
) -> str:
    """Recognize ``return min(node.x, message)``."""
    assert phase.combine is not None
    assert update is not None
    wanted = {"minimum": "min", "maximum": "max"}.get(phase.combine.name)
    body = update.tree.body
    if wanted is None or len(body) != 1 or len(phase.updates) != 1 or len(dtypes) != 1:
        return ""
    state = phase.updates[0]
    value = body[0].value if isinstance(body[0], ast.Return) else None
    if not isinstance(value, ast.Call) or getattr(value.func, "id", "") != wanted:
        return ""
    names = sorted(getattr(argument, "id", "") for argument in value.args)
    if types.spec.states[state].num_components:
        return ""
    same = names == sorted([f"node__{state}", update.values[0]])
    return state if same and types(Input("node", state)) == dtypes[0] else ""


def _reasons(
    phase: PhaseSpec,
    kind: str,
    can_push: bool,
    dtypes: tuple[np.dtype[Any], ...],
    num_components: int,
) -> tuple[str, ...]:
    types = ", ".join(dtype.name for dtype in dtypes)
    if num_components:
        types += f" ({num_components},)"
    lines = [
        f"messages: {types}, combined by {phase.combine.name if phase.combine else ''}"
    ]
    if kind == "node":
        lines.append("computed once per sender, then gathered along rows")
    if kind == "edge":
        lines.append("computed per edge: they read the edge or the receiver")
    if phase.schedule == "all":
        lines.append("all nodes send: dense pull")
    elif can_push:
        lines.append("changed nodes send: push while few, pull when many")
    else:
        several = "vectors" if num_components else "messages of several values"
        lines.append(
            f"changed nodes send, rows of their neighbors are pulled: {several} cannot be "
            "combined in one atomic step"
        )
    return tuple(lines)
