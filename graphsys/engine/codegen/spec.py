"""Reading a program's declarations: which states, phases and totals it has."""

import math
import numbers
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphsys.core.errors import ConfigError, cut_list, unknown_name
from graphsys.engine.program import (
    Aggregator,
    Combiner,
    EdgeState,
    NodeId,
    Phase,
    State,
    VertexProgram,
    parameter_types,
)

Function = Callable[..., Any]

_RESERVED = ("id", "degree", "out_degree", "in_degree", "out_going", "at", "by_rank")
_DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
_BUILT_IN = {
    "min": "minimum",
    "minimum": "minimum",
    "max": "maximum",
    "maximum": "maximum",
    "sum": "sum",
    "add": "sum",
    "mean": "mean",
    "any": "any",
}
"""What programs call what Python and NumPy call otherwise."""
_INHERITED = ("direction", "schedule", "max_supersteps", "message_type", "stores")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpec:
    """One (message, combine, update) of a program; see :class:`Phase` for the fields."""

    name: str
    message: Function | None
    combine: Combiner | None
    update: Function
    updates: tuple[str, ...]
    active: Function | None = None
    accepts: Function | None = None
    aggregate: Function | None = None
    until: Function | None = None
    direction: str = "out"
    schedule: str = "all"
    repeat: bool = False
    max_supersteps: int | None = None
    message_type: Any = None
    stores: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSpec:
    """Everything that a program's class declares."""

    program: type[VertexProgram]
    states: Mapping[str, State]
    edge_states: Mapping[str, EdgeState]
    aggregators: Mapping[str, Aggregator]
    parameters: Mapping[str, Any]
    phases: tuple[PhaseSpec, ...]
    loop: bool = False
    delta: bool = False
    init: Function | None = None
    until: Function | None = field(default=None)
    max_supersteps: int | None = None
    num_components: int = 0
    """Length of the vectors among the states; 0 where there are none."""
    node_columns: Mapping[str, np.dtype[Any]] = field(default_factory=dict)
    """Dtypes of the columns of the graph's nodes, where it has any."""

    @property
    def name(self) -> str:
        """The class's name."""
        return self.program.__name__


def spec_of(
    program: VertexProgram | type[VertexProgram], *, max_supersteps: int | None = None
) -> ProgramSpec:
    """Read the declarations of a program; an instance may set its own limit.

    Args:
        program: The program, or its class.
        max_supersteps: What the run is limited to, if it is: then it ends.

    Raises:
        ConfigError: they contradict each other or leave something out; the message names
            the program and what is missing.
        UnknownNameError: there is no such dtype.
    """
    _require_limit("max_supersteps", max_supersteps)
    if isinstance(program, type):
        spec = _declared_spec(program)
    else:
        spec, limit = _declared_spec(type(program)), program.max_supersteps
        _require_limit(f"{spec.name}.max_supersteps", limit)
        if program.phases is not None:
            spec = replace(spec, max_supersteps=limit)
        else:
            spec = replace(spec, phases=(replace(spec.phases[0], max_supersteps=limit),))
    _check_program(spec, is_limited=max_supersteps is not None)
    return spec


def _require_limit(what: str, limit: Any) -> None:
    """Refuse a limit of supersteps that is no whole number >= 1; None is none."""
    is_whole = isinstance(limit, numbers.Integral) and not isinstance(limit, bool)
    if limit is not None and not (is_whole and limit >= 1):
        raise ConfigError(f"{what} is {limit!r}, expected a whole number >= 1")


def _declared_spec(program: type[VertexProgram]) -> ProgramSpec:
    states = _declared(program, State)
    if not states:
        raise ConfigError(f"{program.__name__} declares no state: write x = gs.state(...)")
    aggregators = _declared(program, Aggregator)
    kinds = program.phases
    is_single = kinds is None
    phases = tuple(
        _phase_of(program, kind, tuple(states), aggregators, is_single)
        for kind in ((program,) if kinds is None else kinds)
    )
    edge_states: dict[str, EdgeState] = _declared(program, EdgeState)
    for name, state in (*states.items(), *edge_states.items()):
        _check_state(f"{program.__name__}.{name}", state.dtype, state.default)
    return ProgramSpec(
        program=program,
        states=states,
        edge_states=edge_states,
        aggregators=aggregators,
        parameters=parameter_types(program),
        phases=phases,
        loop=program.loop,
        delta=program.delta,
        init=program.init,
        until=None if is_single else program.until,
        max_supersteps=None if is_single else program.max_supersteps,
        num_components=_components_of(program.__name__, states),
    )


def _components_of(program: str, states: Mapping[str, State]) -> int:
    """Return the one length of a program's vectors."""
    lengths = {n: s.num_components for n, s in states.items() if s.num_components}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} ({length},)" for name, length in lengths.items())
        raise ConfigError(
            f"{program}: vector states must have one shape, got {found}; give all of them "
            "the longest"
        )
    return next(iter(lengths.values()), 0)


def _check_state(where: str, dtype: Any, default: Any) -> None:
    """Refuse a dtype that states cannot have, and a default that it cannot hold."""
    if dtype is NodeId:
        return
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(getattr(dtype, "__name__", dtype))
    if name not in _DTYPES:
        raise unknown_name(f"dtype of {where}:", name, _DTYPES)
    is_number = isinstance(default, (int, float, np.number))
    if not is_number or np.dtype(dtype).kind == "f":
        return
    if not math.isfinite(default) or int(default) != default:
        raise ConfigError(
            f"{where} is of {name} and cannot hold its default {default!r}; declare it as "
            '"float64"'
        )


def _declared(program: type, kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(program.__mro__):
        found.update({n: v for n, v in vars(base).items() if isinstance(v, kind)})
    return found


def _phase_of(
    program: type[VertexProgram],
    kind: Any,
    states: tuple[str, ...],
    aggregators: Mapping[str, Aggregator],
    is_single: bool,
) -> PhaseSpec:
    where = program.__name__ if is_single else f"{program.__name__}.{kind.__name__}"
    if not is_single and not (isinstance(kind, type) and issubclass(kind, Phase)):
        raise ConfigError(f"phases of {program.__name__} must be gs.Phase, got {kind!r}")
    if kind.update is None:
        raise ConfigError(f"{where} has no update(self, node, message)")
    combine = _combiner_of(kind, where)
    updates = states if is_single or kind.updates is None else tuple(kind.updates)
    for name in updates:
        if name not in states:
            raise ConfigError(
                f"{where}.updates names {name!r}, the states are {cut_list(states)}"
            )
    settings = {name: getattr(kind, name) for name in _INHERITED}
    if settings["direction"] not in ("out", "in", "both"):
        raise ConfigError(
            f"{where}.direction must be 'out', 'in' or 'both', "
            f"got {settings['direction']!r}"
        )
    _require_limit(f"{where}.max_supersteps", settings["max_supersteps"])
    settings["schedule"] = _schedule_of(program, kind, combine, where)
    repeat = is_single or kind.repeat
    functions = {n: getattr(kind, n) for n in ("active", "accepts", "aggregate", "until")}
    if functions["aggregate"] is not None and not aggregators:
        raise ConfigError(f"{where}.aggregate needs a total: write x = gs.aggregator(...)")
    return PhaseSpec(
        name=program.__name__ if is_single else kind.__name__,
        message=kind.message,
        combine=combine,
        update=kind.update,
        updates=updates,
        repeat=repeat,
        **functions,
        **settings,
    )


def _combiner_of(kind: Any, where: str) -> Combiner | None:
    combine = kind.combine
    if (kind.message is None) != (combine is None):
        lacks, has = ("message", "combine") if combine else ("combine", "message")
        form = "message(self, src, edge)" if combine else "combine = gs.sum, gs.minimum ..."
        raise ConfigError(f"{where} has {has} but no {lacks}; write {form}")
    if combine is None or isinstance(combine, Combiner):
        return combine
    if not callable(combine):
        raise ConfigError(
            f"{where}.combine must be gs.sum, gs.minimum ..., got {combine!r}"
        )
    own = _BUILT_IN.get(getattr(combine, "__name__", ""))
    if own and not isinstance(combine, types.FunctionType):
        raise ConfigError(f"{where}.combine is {combine!r}; write combine = gs.{own}")
    if not hasattr(kind, "identity"):
        raise ConfigError(f"{where}.combine needs identity = the message changing nothing")
    return Combiner("own", combine, kind.identity, getattr(kind, "idempotent", False))


def _schedule_of(
    program: type[VertexProgram], kind: Any, combine: Combiner | None, where: str
) -> str:
    schedule = kind.schedule
    if schedule not in (None, "changed", "all"):
        raise ConfigError(f"{where}.schedule must be 'changed' or 'all', got {schedule!r}")
    if program.delta:
        if combine is None or combine.name != "sum":
            raise ConfigError(f"{where}: delta = True needs combine = gs.sum")
        if schedule == "all":
            raise ConfigError(f"{where}: delta = True sends from changed nodes only")
        return "changed"
    if schedule is not None:
        return str(schedule)
    return "changed" if combine is not None and combine.idempotent else "all"


def _check_program(spec: ProgramSpec, *, is_limited: bool) -> None:
    for name in spec.states:
        if name in _RESERVED:
            raise ConfigError(f"{spec.name}: a state cannot be called {name!r}")
    for phase in spec.phases:
        where = spec.name if phase.name == spec.name else f"{spec.name}.{phase.name}"
        is_sum = phase.combine is not None and phase.combine.name in ("sum", "mean")
        endless = phase.max_supersteps is None and phase.until is None and is_sum
        if phase.repeat and phase.schedule == "all" and endless and not is_limited:
            raise ConfigError(
                f"{where} sends from all nodes and would never end: give until(self, "
                "totals) or max_supersteps, or run it with --max-supersteps"
            )
        is_mode = phase.combine is not None and phase.combine.name == "mode"
        if is_mode and phase.schedule == "changed":
            raise ConfigError(f"{where}: gs.mode needs the messages of all neighbors")
        if phase.stores is not None and phase.stores not in spec.edge_states:
            raise ConfigError(
                f"{where}.stores names {phase.stores!r}, the edge states are "
                f"{cut_list(spec.edge_states) or 'none'}"
            )
        if phase.stores is not None and phase.schedule == "changed":
            raise ConfigError(f"{where}: stores needs schedule = 'all'")
        is_mean = phase.combine is not None and phase.combine.name == "mean"
        if is_mean and (phase.schedule == "changed" or phase.active is not None):
            raise ConfigError(
                f"{where}: gs.mean needs the messages of all neighbors; leave out active "
                "and schedule = 'changed', or send (value, 1) and divide the sums"
            )
        is_any = phase.combine is not None and phase.combine.name == "any"
        if phase.stores is not None and is_any:
            raise ConfigError(f"{where}: stores needs all messages, gs.any stops at one")
