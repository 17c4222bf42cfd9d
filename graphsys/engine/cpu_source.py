"""Writing the CPU kernels of a program as the text of a Python module.

Each kernel is one loop over rows or over a frontier, with the program's lowered functions
called inside (LLVM inlines them: measured 1.00 of a hand-written loop). The names of a
kernel's arguments say what the executor binds to them:

===================  ============================================================
``row__x``           state or column x of the nodes whose rows are visited
``col__x``           state or column x of the neighbours
``new__x``           where x's next values go, where they must not replace x at once
``at__x``            state x of all nodes
``in_i``, ``out_i``  the i-th value of every node's message, read or written
``acc_i``            the i-th value of the combined messages
``edge__x``          column or state x of the edges, in row order
===================  ============================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphsys.engine.lowering import EDGE_COLUMNS, FORWARD, Input, Lowered
from graphsys.engine.plan import PhasePlan, ProgramPlan

_HEADER = '''"""Kernels of {name}, written by graphsys; do not edit."""

import math

import numpy as np

from graphsys.kernels.cpu.atomics import atomic_add, compare_exchange
from graphsys.kernels.cpu.bitmap import append_buffer, has_bit, set_bit, set_bit_atomic
from graphsys.kernels.cpu.row_mode import row_mode
from graphsys.kernels.jit import inline_jit, jit
{imports}

KERNELS = {{}}
'''


@dataclass
class _Kernel:
    """The lines of one kernel and the arguments that they need."""

    name: str
    phase: PhasePlan | None = None
    uses: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def use(self, *names: str) -> None:
        self.uses.update(dict.fromkeys(names))

    def add(self, depth: int, *lines: str) -> None:
        self.lines += [f"{'    ' * depth}{line}" for line in lines]

    def text(self) -> str:
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


def module_source(plan: ProgramPlan) -> str:
    """Return the text of the module with all kernels of a program."""
    functions = _functions(plan)
    imports = sorted({line for f in functions for line in f.imports} - {"import math"})
    parts = [_HEADER.format(name=plan.spec.name, imports="\n".join(imports))]
    helpers = {name: text for f in functions for name, text in f.helpers.items()}
    parts += [f"@inline_jit\n{text}\n" for text in helpers.values()]
    parts += [f"@inline_jit\n{lowered.source}\n" for lowered in functions]
    if plan.init is not None:
        parts.append(_init_kernel(plan))
    for phase in plan.phases:
        parts += _PhaseWriter(plan, phase).kernels()
    return "\n\n".join(parts)


def _functions(plan: ProgramPlan) -> list[Lowered]:
    found = [] if plan.init is None else [plan.init]
    for phase in plan.phases:
        found += [f for f in phase.functions.values() if f is not None]
    return found


def typed(value: Any, dtype: np.dtype[Any]) -> str:
    """Return a constant of a dtype as text that numba compiles to exactly that type."""
    scalar = dtype.type(value)
    if dtype.kind == "f" and not np.isfinite(scalar):
        inner = "np.nan" if np.isnan(scalar) else ("np.inf" if scalar > 0 else "-np.inf")
        return f"{_cast(dtype)}({inner})"
    return f"{_cast(dtype)}({scalar.item()!r})"


def _cast(dtype: np.dtype[Any]) -> str:
    return "np.bool_" if dtype.kind == "b" else f"np.{dtype.name}"


def _init_kernel(plan: ProgramPlan) -> str:
    init = plan.init
    assert init is not None
    kernel = _Kernel("init")
    kernel.use("counter", "bounds")
    kernel.add(1, *_CHUNKS)
    kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
    names = [f"x_{i}" for i in range(len(plan.spec.states))]
    call = _call(kernel, init, (), {"node": ("row", "v")}, plan)
    kernel.add(3, f"{', '.join(names)} = {call}")
    for name, state in zip(names, plan.spec.states, strict=True):
        kernel.use(f"row__{state}")
        kernel.add(3, f"row__{state}[v] = {_cast(plan.dtypes[state])}({name})")
    return kernel.text()


_CHUNKS = (
    "while True:",
    "    c = atomic_add(counter, 0, 1)",
    "    if c >= len(bounds) - 1:",
    "        break",
)

_LISTED_CHUNKS = (
    "fresh = np.empty(512, dtype=np.int64)",
    "while True:",
    "    c = atomic_add(counter, 0, 1)",
    "    if c >= num_chunks:",
    "        break",
    "    low, high = np.int64(c) * 512, min(np.int64(c) * 512 + 512, num_listed)",
    "    if not listed:",
    "        low, high = bounds[c], bounds[c + 1]",
)


def _call(
    kernel: _Kernel,
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
        sides: For each role, whose arrays it reads and at which index; an empty side means
            local variables ``x__name``.
        plan: The program.
        nothing: Text of the message that changes nothing.
    """
    texts = list(values[: len(lowered.values)])
    for given in lowered.inputs:
        texts.append(_input_text(kernel, given, sides, plan))
    if lowered.drops:
        texts.append(nothing)
    return f"{lowered.name}({', '.join(texts)})"


def _input_text(
    kernel: _Kernel, given: Input, sides: dict[str, tuple[str, str]], plan: ProgramPlan
) -> str:
    if given.kind in ("param", "total", "run", "at"):
        kernel.use(given.argument)
        return given.argument
    if given.kind in ("edge", "reverse"):
        return _edge_text(kernel, given, plan)
    side, index = sides[given.kind]
    if side == "old":
        return f"old__{given.name}" if given.name in index.split() else _row(kernel, given)
    if side == "new":
        return f"x__{given.name}" if given.name in index.split() else _row(kernel, given)
    kernel.use(f"{side}__{given.name}")
    return f"{side}__{given.name}[{index}]"


def _edge_text(kernel: _Kernel, given: Input, plan: ProgramPlan) -> str:
    name = given.name
    if given.kind == "edge" and name == FORWARD:
        kernel.use("edge_forward")
        return "edge_forward"
    if name in EDGE_COLUMNS:
        if name not in plan.edge_columns:
            return "1.0" if name == "weight" else "0"
        kernel.use(f"edge__{name}")
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
    missing = typed(state.default, np.dtype(state.dtype))
    return f"(edge__{name}[{back}] if {back} >= 0 else {missing})"


def _row(kernel: _Kernel, given: Input) -> str:
    kernel.use(f"row__{given.name}")
    return f"row__{given.name}[v]"


@dataclass
class _PhaseWriter:
    plan: ProgramPlan
    phase: PhasePlan

    def kernels(self) -> list[str]:
        phase = self.phase
        made = [self.apply(), self.totals()]
        if phase.functions["active"] is not None:
            made.append(self.active())
        if phase.kind == "node":
            made.append(self.send())
        if phase.kind == "mode":
            made += [self.send(), self.mode()]
        elif phase.kind != "local":
            made += [self.pull(fused=True), self.pull(fused=False)]
            if phase.can_push:
                made.append(self.push())
        return [kernel.text() for kernel in made]

    # ---- short texts

    @property
    def width(self) -> range:
        return range(len(self.phase.message_dtypes))

    def name(self, what: str) -> str:
        return f"{what}_{self.phase.number}"

    @property
    def drops(self) -> bool:
        """Whether a message may be None."""
        message = self.phase.functions["message"]
        return message is not None and message.drops

    def kernel(self, what: str) -> _Kernel:
        return _Kernel(self.name(what), self.phase)

    def identity(self, i: int) -> str:
        return typed(self.phase.identity[i], self.phase.message_dtypes[i])

    @property
    def nothing(self) -> str:
        texts = [self.identity(i) for i in self.width]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def message_lines(
        self, kernel: _Kernel, sides: dict[str, tuple[str, str]]
    ) -> list[str]:
        """Compute ``m_0, m_1 ...`` of the phase's dtypes."""
        message = self.phase.functions["message"]
        assert message is not None
        call = _call(kernel, message, (), sides, self.plan, self.nothing)
        casts = [_cast(dtype) for dtype in self.phase.message_dtypes]
        if len(casts) == 1:
            return [f"m_0 = {casts[0]}({call})"]
        raw = ", ".join(f"r_{i}" for i in self.width)
        return [f"{raw} = {call}", *(f"m_{i} = {casts[i]}(r_{i})" for i in self.width)]

    def combine_lines(self, acc: str = "acc") -> list[str]:
        """Combine ``m_i`` into ``acc_i``."""
        phase = self.phase
        name = phase.combiner
        pairs = [(f"{acc}_{i}", f"m_{i}") for i in self.width]
        if name in ("sum", "any"):
            sign = "+=" if name == "sum" else "="
            return [f"{a} {sign} {m}" for a, m in pairs]
        if name in ("minimum", "maximum"):
            less = "<" if name == "minimum" else ">"
            return [f"{a} = {m} if {m} {less} {a} else {a}" for a, m in pairs]
        if name in ("argmin", "argmax"):
            return [
                f"if {self.precedes(acc)}:",
                *(f"    {a} = {m}" for a, m in pairs),
            ]
        combine = phase.functions["combine"]
        assert combine is not None
        accs, ms = (", ".join(texts) for texts in zip(*pairs, strict=True))
        if len(pairs) > 1:
            accs_in, ms = f"({accs})", f"({ms})"
        else:
            accs_in = accs
        call = _call(_Kernel(""), combine, (accs_in, ms), {}, self.plan)
        raw = ", ".join(f"r_{i}" for i in self.width)
        dtypes = phase.message_dtypes
        return [
            f"{raw} = {call}",
            *(f"{a} = {_cast(dtypes[i])}(r_{i})" for i, (a, _) in enumerate(pairs)),
        ]

    def precedes(self, acc: str) -> str:
        """Lexicographic order: the first value decides, later ones break ties upwards."""
        first = "<" if self.phase.combiner == "argmin" else ">"
        text = ""
        for i in reversed(self.width):
            less = first if i == 0 else "<"
            here = f"m_{i} {less} {acc}_{i}"
            text = f"({here} or (m_{i} == {acc}_{i} and {text}))" if text else f"({here})"
        return text

    def is_nothing(self, prefix: str) -> str:
        return " and ".join(f"{prefix}_{i} == {self.identity(i)}" for i in self.width)

    # ---- parts of kernels

    def update_lines(self, kernel: _Kernel, acc: str | None) -> list[str]:
        """Update node v from ``acc_i``, note the change and the totals; see ``_LISTED``."""
        phase, plan = self.phase, self.plan
        update = phase.functions["update"]
        assert update is not None
        values: list[str] = []
        if acc is not None:
            texts = [f"{acc}_{i}" for i in self.width]
            values = [texts[0] if len(texts) == 1 else f"({', '.join(texts)})"]
        call = _call(kernel, update, values, {"node": ("row", "v")}, plan)
        names = phase.spec.updates
        raw = ", ".join(f"y__{name}" for name in names)
        lines = [f"{raw} = {call}"]
        tests = []
        for name in names:
            dtype = plan.dtypes[name]
            target = f"new__{name}" if name in phase.buffered else f"row__{name}"
            kernel.use(f"row__{name}", target)
            lines += [
                f"x__{name} = {_cast(dtype)}(y__{name})",
                f"old__{name} = row__{name}[v]",
                f"{target}[v] = x__{name}",
            ]
            test = f"x__{name} != old__{name}"
            if dtype.kind == "f":
                test = (
                    f"({test} and (x__{name} == x__{name} or old__{name} == old__{name}))"
                )
            tests.append(test)
        lines += self.aggregate_lines(kernel, " ".join(names))
        if phase.spec.schedule == "changed":
            lines += self.change_lines(kernel, " or ".join(tests))
        else:
            lines += [f"if {' or '.join(tests)}:", "    num_changed += 1"]
        return lines

    def change_lines(self, kernel: _Kernel, test: str) -> list[str]:
        kernel.use("changed", "row_base", "row__out_going")
        if self.plan.spec.delta:
            test = self.delta_test(kernel)
        return [
            f"if {test}:",
            "    num_changed += 1",
            "    num_edges += row__out_going[v]",
            "    if listed:",
            "        fresh[num_fresh] = v + row_base",
            "        num_fresh += 1",
            "    else:",
            "        set_bit(changed, v + row_base)",
        ]

    def delta_test(self, kernel: _Kernel) -> str:
        """Whether the message of the new state is far enough from the one sent."""
        message = self.phase.functions["message"]
        assert message is not None
        kernel.use("sent_0", "delta_tolerance")
        sides = {"src": ("new", " ".join(self.phase.spec.updates))}
        call = _call(kernel, message, (), sides, self.plan, self.nothing)
        return f"abs({call} - sent_0[v]) > delta_tolerance"

    def aggregate_lines(self, kernel: _Kernel, updated: str) -> list[str]:
        aggregate = self.phase.functions["aggregate"]
        if aggregate is None:
            return []
        totals = list(self.plan.spec.aggregators.values())
        sides = {"before": ("old", updated), "node": ("new", updated)}
        call = _call(kernel, aggregate, (), sides, self.plan)
        raw = ", ".join(f"t_{i}" for i in range(len(totals)))
        lines = [f"{raw} = {call}"]
        for i, total in enumerate(totals):
            if total.operation == "sum":
                lines.append(f"part_{i} += t_{i}")
            else:
                less = "<" if total.operation == "minimum" else ">"
                lines.append(f"part_{i} = t_{i} if t_{i} {less} part_{i} else part_{i}")
        return lines

    def begin_parts(self) -> list[str]:
        starts = {"sum": "0.0", "minimum": "np.inf", "maximum": "-np.inf"}
        totals = self.plan.spec.aggregators.values()
        return [
            "num_changed = 0",
            "num_edges = 0",
            "num_fresh = 0",
            *(f"part_{i} = {starts[t.operation]}" for i, t in enumerate(totals)),
        ]

    def end_parts(self, kernel: _Kernel) -> list[str]:
        kernel.use("partial", "next_list", "next_cursor")
        num_totals = len(self.plan.spec.aggregators)
        return [
            "partial[c, 0] = num_changed",
            "partial[c, 1] = num_edges",
            *(f"partial[c, {i + 2}] = part_{i}" for i in range(num_totals)),
            "if num_fresh > 0:",
            "    append_buffer(fresh, num_fresh, next_list, next_cursor)",
        ]  # fmt: skip

    def visit_rows(self, kernel: _Kernel) -> None:
        """Open the loop over nodes v, listed or in chunks; its body stands at depth 3."""
        kernel.use("counter", "bounds", "num_chunks", "listed", "nodes", "num_listed")
        kernel.use("row_base")
        kernel.add(1, *_LISTED_CHUNKS)
        kernel.add(2, *self.begin_parts())
        kernel.add(2, "for k in range(low, high):")
        kernel.add(3, "v = np.int64(nodes[k]) - row_base if listed else k")

    def skip_lines(self, kernel: _Kernel, *, updates: bool = True) -> list[str]:
        """Leave node v as it is, in a kernel that updates nodes or does not."""
        if not updates:
            return ["continue"]
        kept = sorted(self.phase.buffered & set(self.phase.spec.updates))
        kernel.use(*(f"new__{name}" for name in kept), *(f"row__{name}" for name in kept))
        return [*(f"new__{name}[v] = row__{name}[v]" for name in kept), "continue"]

    def accepts_lines(self, kernel: _Kernel, *, updates: bool = True) -> list[str]:
        accepts = self.phase.functions["accepts"]
        if accepts is None:
            return []
        call = _call(kernel, accepts, (), {"node": ("row", "v")}, self.plan)
        skip = self.skip_lines(kernel, updates=updates)
        return [f"if not {call}:", *(f"    {line}" for line in skip)]

    # ---- kernels

    def send(self) -> _Kernel:
        """Every node's message, once per node."""
        kernel = self.kernel("send")
        kernel.use("counter", "bounds", "everyone", "active")
        kernel.add(1, *_CHUNKS)
        kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
        kernel.add(3, "if everyone or has_bit(active, v):")
        kernel.add(4, *self.message_lines(kernel, {"src": ("row", "v")}))
        for i in self.width:
            kernel.use(f"out_{i}")
            if self.plan.spec.delta:
                kernel.use(f"sent_{i}")
                kernel.add(4, f"out_{i}[v] = m_{i} - sent_{i}[v]", f"sent_{i}[v] = m_{i}")
            else:
                kernel.add(4, f"out_{i}[v] = m_{i}")
        if self.phase.combiner != "any":
            kernel.add(3, "else:")
            kernel.add(4, *(f"out_{i}[v] = {self.identity(i)}" for i in self.width))
        return kernel

    def pull(self, *, fused: bool) -> _Kernel:
        """Combine the messages along each row; fused: and update the node at once."""
        phase = self.phase
        kernel = self.kernel("pull" if fused else "gather")
        self.visit_rows(kernel)
        kernel.use("indptr", "indices", "column_base")
        kernel.add(3, *self.accepts_lines(kernel, updates=fused))
        kept = not fused or self.plan.spec.delta
        for i in self.width:
            if kept:
                kernel.use(f"acc_{i}")
            start = f"acc_{i}[v]" if kept else self.identity(i)
            kernel.add(3, f"a_{i} = {start}")
        if phase.combiner == "any":
            kernel.add(3, "got = False")
            if not fused:
                kernel.use("touched")
                kernel.add(3, "if has_bit(touched, v + row_base):", "    continue")
        kernel.add(3, "for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):")
        kernel.add(4, "u = indices[e]", *self.edge_lines(kernel))
        kernel.add(3, *self.after_row(kernel, fused=fused))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def edge_lines(self, kernel: _Kernel) -> list[str]:
        """Fetch the message along entry e and combine it into ``a_i``."""
        phase = self.phase
        lines = []
        if phase.kind == "node":
            kernel.use(*(f"in_{i}" for i in self.width))
            lines += [f"m_{i} = in_{i}[u]" for i in self.width]
        else:
            sides = {"src": ("col", "u"), "dst": ("row", "v")}
            lines += self.message_lines(kernel, sides)
            if phase.spec.stores is not None:
                kernel.use(f"stored__{phase.spec.stores}", "edge_base")
                lines.append(f"stored__{phase.spec.stores}[e + edge_base] = m_0")
        if phase.combiner == "any":
            found = [*self.combine_lines("a"), "got = True", "break"]
            skips = [f"if not ({self.is_nothing('m')}):"] if self.drops else []
            lines += [*skips, *(f"    {line}" if skips else line for line in found)]
        else:
            lines += self.combine_lines("a")
        if phase.combiner != "any" and (phase.kind == "node" or not phase.is_masked):
            return lines
        kernel.use("everyone", "active")
        test = "if everyone or has_bit(active, np.int64(u) + column_base):"
        return [test, *(f"    {line}" for line in lines)]

    def after_row(self, kernel: _Kernel, *, fused: bool) -> list[str]:
        phase = self.phase
        is_any = phase.combiner == "any"
        if not fused:
            lines = [f"acc_{i}[v] = a_{i}" for i in self.width]
            if is_any:
                kernel.use("touched")
                lines = ["if got:", *(f"    {x}" for x in lines)]
                lines.append("    set_bit(touched, v + row_base)")
            return lines
        lines = []
        if self.plan.spec.delta:
            lines += [f"acc_{i}[v] = a_{i}" for i in self.width]
        elif phase.spec.schedule == "changed":
            test = "not got" if is_any else self.is_nothing("a")
            lines += [f"if {test}:", *(f"    {x}" for x in self.skip_lines(kernel))]
        return [*lines, *self.update_lines(kernel, "a")]

    def apply(self) -> _Kernel:
        """Update nodes from the combined messages, and reset those."""
        phase = self.phase
        kernel = self.kernel("apply")
        self.visit_rows(kernel)
        if phase.kind in ("local", "mode"):
            if phase.functions["active"] is not None:
                kernel.use("everyone", "active")
                kernel.add(3, "if not (everyone or has_bit(active, v)):")
                kernel.add(4, *self.skip_lines(kernel))
            kernel.add(3, *self.update_lines(kernel, None))
            kernel.add(2, *self.end_parts(kernel))
            return kernel
        kernel.use(*(f"acc_{i}" for i in self.width))
        kernel.add(3, *self.accepts_lines(kernel))
        kernel.add(3, *(f"a_{i} = acc_{i}[v]" for i in self.width))
        if phase.spec.schedule == "changed" and not self.plan.spec.delta:
            if phase.combiner == "any":
                kernel.use("touched")
                test = "not listed and not has_bit(touched, v)"
            else:
                test = self.is_nothing("a")
            kernel.add(3, f"if {test}:", *(f"    {x}" for x in self.skip_lines(kernel)))
        if not self.plan.spec.delta:
            kernel.add(3, *(f"acc_{i}[v] = {self.identity(i)}" for i in self.width))
        kernel.add(3, *self.update_lines(kernel, "a"))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def totals(self) -> _Kernel:
        """The aggregators over all nodes as they are."""
        kernel = self.kernel("totals")
        self.visit_rows(kernel)
        kernel.add(3, *self.aggregate_lines(kernel, ""))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def active(self) -> _Kernel:
        """Set the bit of every node that may send."""
        active = self.phase.functions["active"]
        assert active is not None
        kernel = self.kernel("active")
        kernel.use("counter", "bounds", "senders", "senders_out_going", "partial")
        kernel.add(1, *_CHUNKS)
        kernel.add(2, "num_changed = 0", "num_edges = 0")
        kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
        call = _call(kernel, active, (), {"node": ("row", "v")}, self.plan)
        kernel.add(3, f"if {call}:")
        kernel.add(4, "set_bit(senders, v)", "num_changed += 1")
        kernel.add(4, "num_edges += senders_out_going[v]")
        kernel.add(2, "partial[c, 0] = num_changed", "partial[c, 1] = num_edges")
        return kernel

    def push(self) -> _Kernel:
        """Send along the out rows of a frontier; combine at the neighbours, atomically."""
        phase = self.phase
        kernel = self.kernel("push")
        kernel.use("counter", "nodes", "num_listed", "indptr", "indices", "row_base")
        kernel.use("column_base", "acc_0", "touched", "touched_list", "cursor")
        kernel.add(
            1, "buffer = np.empty(1024, dtype=np.int64)", "filled = 0", "while True:"
        )
        kernel.add(2, "begin = atomic_add(counter, 0, 64)")
        kernel.add(2, "if begin >= num_listed:", "    break")
        kernel.add(2, "for k in range(begin, min(begin + 64, num_listed)):")
        kernel.add(3, "u = np.int64(nodes[k]) - row_base")
        if phase.kind == "node":
            kernel.add(3, *self.sent_lines(kernel))
        kernel.add(3, "for e in range(np.int64(indptr[u]), np.int64(indptr[u + 1])):")
        kernel.add(4, "v = indices[e]")
        accepts = phase.functions["accepts"]
        if accepts is not None:
            call = _call(kernel, accepts, (), {"node": ("col", "v")}, self.plan)
            kernel.add(4, f"if not {call}:", "    continue")
        if phase.kind != "node":
            sides = {"src": ("row", "u"), "dst": ("col", "v")}
            kernel.add(4, *self.message_lines(kernel, sides))
        kernel.add(4, *self.deliver_lines(kernel))
        kernel.add(4, "if set_bit_atomic(touched, np.int64(v) + column_base):")
        if phase.combiner == "any":
            kernel.add(5, "acc_0[v] = m_0")
        kernel.add(5, "buffer[filled] = np.int64(v) + column_base", "filled += 1")
        kernel.add(5, "if filled == 1024:")
        kernel.add(6, "append_buffer(buffer, filled, touched_list, cursor)", "filled = 0")
        kernel.add(1, "append_buffer(buffer, filled, touched_list, cursor)")
        return kernel

    def sent_lines(self, kernel: _Kernel) -> list[str]:
        """The message of node u, computed once for all its edges."""
        lines = self.message_lines(kernel, {"src": ("row", "u")})
        if self.plan.spec.delta:
            kernel.use("sent_0")
            lines += ["whole = m_0", "m_0 = m_0 - sent_0[u]", "sent_0[u] = whole"]
        if self.phase.combiner != "any" or self.drops:
            lines += [f"if {self.is_nothing('m')}:", "    continue"]
        return lines

    def deliver_lines(self, kernel: _Kernel) -> list[str]:
        """Combine ``m_0`` into the neighbour's ``acc_0``, or go on to the next edge."""
        phase = self.phase
        if phase.combiner == "any":
            return [f"if {self.is_nothing('m')}:", "    continue"] if self.drops else []
        lines = []
        if phase.kind != "node" and not phase.monotone:
            lines += [f"if {self.is_nothing('m')}:", "    continue"]
        if phase.monotone:
            less = "<" if phase.combiner == "minimum" else ">"
            kernel.use(f"col__{phase.monotone}")
            lines += [f"if not m_0 {less} col__{phase.monotone}[v]:", "    continue"]
        if phase.combiner == "sum":
            return [*lines, "atomic_add(acc_0, v, m_0)"]
        combined = [line.replace("acc_0", "wanted") for line in self.combine_lines("acc")]
        return [
            *lines,
            "found = acc_0[v]",
            "while True:",
            "    wanted = found",
            *(f"    {line}" for line in combined),
            "    if wanted == found or compare_exchange(acc_0, v, found, wanted):",
            "        break",
            "    found = acc_0[v]",
        ]

    def mode(self) -> _Kernel:
        """The most frequent message of each node, over up to two sets of rows."""
        kernel = self.kernel("pull")
        kernel.use("max_degree", "scratch_size")
        dtype = _cast(self.phase.message_dtypes[0])
        kernel.add(1, f"values = np.empty(max_degree, dtype={dtype})")
        kernel.add(1, f"keys = np.empty(scratch_size, dtype={dtype})")
        kernel.add(1, "tallies = np.zeros(scratch_size, dtype=np.int64)")
        self.visit_rows(kernel)
        kernel.use("indptr", "indices", "other_indptr", "other_indices", "in_0")
        kernel.add(3, *self.accepts_lines(kernel))
        kernel.add(3, "count = 0")
        for prefix in ("", "other_"):
            depth = 3
            if prefix:
                kernel.add(3, "if len(other_indptr) > 1:")
                depth = 4
            span = f"np.int64({prefix}indptr[v]), np.int64({prefix}indptr[v + 1])"
            kernel.add(depth, f"for e in range({span}):")
            kernel.add(depth + 1, f"m_0 = in_0[{prefix}indices[e]]")
            message = self.phase.functions["message"]
            if self.phase.is_masked or (message is not None and message.drops):
                kernel.add(depth + 1, f"if {self.is_nothing('m')}:", "    continue")
            kernel.add(depth + 1, "values[count] = m_0", "count += 1")
        kernel.add(3, "if count == 0:", *(f"    {x}" for x in self.skip_lines(kernel)))
        kernel.add(3, "a_0 = row_mode(values, count, keys, tallies)")
        kernel.add(3, *self.update_lines(kernel, "a"))
        kernel.add(2, *self.end_parts(kernel))
        return kernel
