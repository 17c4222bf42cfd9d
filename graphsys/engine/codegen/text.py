"""Texts of generated kernels: arguments, constants, calls of lowered functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphsys.engine.codegen.lowered import (
    COMPONENT,
    EDGE_COLUMNS,
    FORWARD,
    Input,
    Lowered,
)
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan


@dataclass
class KernelText:
    """The lines of one kernel and the arguments that they need."""

    name: str
    phase: PhasePlan | None = None
    uses: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    shifted: set[str] = field(default_factory=set)
    """Columns of edges that stand ``shift__x`` places behind entry e."""
    place: str = "j"
    """Where component j of a vector stands in the thread's buffers."""

    def use(self, *names: str) -> None:
        """Note arguments that the kernel needs."""
        self.uses.update(dict.fromkeys(names))

    def add(self, depth: int, *lines: str) -> None:
        """Append lines, indented."""
        self.lines += [f"{'    ' * depth}{line}" for line in lines]

    def text(self) -> str:
        """Return the kernel as source, with its entry in ``KERNELS``."""
        arguments = ", ".join(("thread", *self.uses))
        return "\n".join(
            [
                "@jit",
                f"def {self.name}({arguments}):",
                *self.lines,
                "",
                f'KERNELS["{self.name}"] = ({self.name}, {tuple(self.uses)!r})',
                "",
            ]
        )


def functions_of(plan: ProgramPlan) -> list[Lowered]:
    """Return all lowered functions of a program."""
    found = [] if plan.init is None else [plan.init]
    for phase in plan.phases:
        found += [f for f in phase.functions.values() if f is not None]
    return [*found, *(made.of for f in found for made in f.reductions)]


def typed_text(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a constant of a dtype as text that numba compiles to exactly that type."""
    scalar = dtype.type(value)
    if dtype.kind == "f" and not np.isfinite(scalar):
        inner = "np.nan" if np.isnan(scalar) else ("np.inf" if scalar > 0 else "-np.inf")
        return f"{cast_text(dtype)}({inner})"
    return f"{cast_text(dtype)}({scalar.item()!r})"


def cast_text(dtype: np.dtype[Any]) -> str:
    """Return the name of the conversion to a dtype."""
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def call_text(
    kernel: KernelText,
    lowered: Lowered,
    values: Sequence[str],
    sides: dict[str, tuple[str, str]],
    plan: ProgramPlan,
    nothing: str = "",
) -> str:
    """Return a call of a lowered function, and note the arguments that it needs.

    Args:
        kernel: Where the call will stand.
        lowered: The function.
        values: Texts of its value arguments.
        sides: For each role, whose arrays it reads and at which index; ``old`` and ``new``
            mean local variables ``old__name`` and ``x__name`` of the names in the index.
        plan: The program.
        nothing: Text of the message that changes nothing.
    """
    texts = list(values[: len(lowered.values)])
    for given in lowered.inputs:
        texts.append(input_text(kernel, given, sides, plan))
    if lowered.drops:
        texts.append(nothing)
    return f"{lowered.name}({', '.join(texts)})"


def input_text(
    kernel: KernelText, given: Input, sides: dict[str, tuple[str, str]], plan: ProgramPlan
) -> str:
    """Return what a function reads, and note the argument; see :func:`call_text`."""
    if given.kind in ("param", "total", "run", "at"):
        kernel.use(given.argument)
        return given.argument
    if given.kind == "reduced":
        return given.argument
    if given == COMPONENT:
        return "j"
    if given.kind in ("edge", "reverse"):
        return _edge_text(kernel, given, plan)
    side, index = sides[given.kind]
    is_vector = plan.components_of(given.name) > 0
    local = {"old": "old", "new": "x"}.get(side)
    if local is None:
        kernel.use(f"{side}__{given.name}")
        return f"{side}__{given.name}[{index}{', j' if is_vector else ''}]"
    if given.name in index.split():
        return f"{local}__{given.name}{f'[{kernel.place}]' if is_vector else ''}"
    kernel.use(f"row__{given.name}")
    return f"row__{given.name}[v{', j' if is_vector else ''}]"


def _edge_text(kernel: KernelText, given: Input, plan: ProgramPlan) -> str:
    name = given.name
    if given.kind == "edge" and name == FORWARD:
        kernel.use("edge_forward")
        return "edge_forward"
    if name in EDGE_COLUMNS:
        if name not in plan.edge_columns:
            return "1.0" if name == "weight" else "0"
        kernel.use(f"edge__{name}")
        if name in kernel.shifted:  # unsigned: numba asks of others whether they are < 0
            return f"edge__{name}[np.uint64(e + shift__{name})]"
        return f"edge__{name}[e]"
    if given.kind == "edge":
        kernel.use(f"edge__{name}", "edge_base")
        return f"edge__{name}[e + edge_base]"
    if name == FORWARD:
        kernel.use("reverse_forward")
        if kernel.phase is not None and kernel.phase.spec.direction == "both":
            return "reverse_forward"
    kernel.use("reverse_of", "edge_base")
    back = "reverse_of[e + edge_base]"
    if name == FORWARD:
        return f"(reverse_forward and {back} >= 0)"
    kernel.use(f"edge__{name}")
    state = plan.spec.edge_states[name]
    missing = typed_text(state.default, np.dtype(state.dtype))
    return f"(edge__{name}[{back}] if {back} >= 0 else {missing})"
