"""Writing the CPU kernels of a phase whose program has vector states.

A lowered function computes one component, so kernels call it in a loop over ``j``; what it
reads of whole vectors is reduced before the loop. A row's messages are combined in a buffer
of the thread, and new states are in one until all of them are known: functions read old
values. Rows of vectors lie far apart, so they are asked for some entries ahead (1M nodes
of 16 float32, 8M entries: 2.1 to 2.5 times as fast as without).
"""

import re
from collections.abc import Sequence

from graphsys.engine.codegen.cpu_phase import CpuPhaseText
from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text, input_text
from graphsys.engine.codegen.vectors import is_vector

_AHEAD = 16
"""Entries by which a neighbor's vector is asked for before it is read."""
_LINE = 64
_MOST_BYTES = 512
"""Of a vector that are asked for; the processor fetches on by itself."""

Sides = dict[str, tuple[str, str]]


def component_loop(num_components: int) -> str:
    """Return the head of the loop over components; once where there are none."""
    return f"for j in range({num_components or 1}):"


def reduced_lines(
    kernel: KernelText,
    function: Lowered | None,
    values: Sequence[str],
    sides: Sides,
    plan: ProgramPlan,
) -> list[str]:
    """Return the lines that make what a function reads of whole vectors."""
    lines: list[str] = []
    for made in () if function is None else function.reductions:
        name, operation = made.result.argument, made.operation
        call = call_text(kernel, made.of, values, sides, plan)
        least = operation.endswith("min")
        lines.append(f"{name} = {'np.inf' if least else '-np.inf'}")
        if operation in ("sum", "mean"):
            lines[-1] = f"{name} = 0.0"
        loop = component_loop(plan.num_components)
        if operation in ("sum", "mean"):
            lines += [loop, f"    {name} += np.float64({call})"]
        elif operation in ("max", "min"):
            lines += [loop, f"    {name} = {operation}({name}, np.float64({call}))"]
        else:
            less = "<" if least else ">"
            lines += [f"best_{name} = {name}", f"{name} = 0.0", loop]
            lines += [f"    part = np.float64({call})", f"    if part {less} best_{name}:"]
            lines += [f"        best_{name} = part", f"        {name} = np.float64(j)"]
        if operation == "mean":
            lines.append(f"{name} /= {plan.num_components}")
    return lines


class VectorPhaseText(CpuPhaseText):
    """Writes the kernels of a phase of a program with vector states."""

    can_claim = False
    can_be_same = False

    # ---- short texts

    @property
    def loop(self) -> str:
        """The head of the loop over components."""
        return component_loop(self.plan.num_components)

    @property
    def is_vector(self) -> bool:
        """Whether messages are vectors."""
        return self.phase.num_components > 0

    def at(self, name: str) -> str:
        """Return ``[v]`` or ``[v, j]`` as a state needs it."""
        return "[v, j]" if self.plan.components_of(name) else "[v]"

    def reduced(
        self,
        kernel: KernelText,
        what: str,
        sides: Sides,
        values: Sequence[str] = (),
    ) -> list[str]:
        """Reduce what a function reads of whole vectors; set ``j`` for a call of it."""
        function = self.phase.functions[what]
        lines = reduced_lines(kernel, function, values, sides, self.plan)
        return [*lines, "j = 0"]

    def visit_rows(self, kernel: KernelText) -> None:
        """Open the loop over nodes v, with buffers for vectors; see the base."""
        self.add_buffers(kernel)
        super().visit_rows(kernel)

    def add_buffers(self, kernel: KernelText) -> None:
        """Make the buffers of a thread: messages combined, and states that are new."""
        size = self.plan.num_components
        if self.is_vector:
            dtype = cast_text(self.phase.message_dtypes[0])
            kernel.add(1, f"a_0 = np.empty({size}, dtype={dtype})")
        for name in self.phase.spec.updates:
            if self.plan.components_of(name):
                dtype = cast_text(self.plan.dtypes[name])
                kernel.add(1, f"x__{name} = np.empty({size}, dtype={dtype})")

    def hoisted(
        self, kernel: KernelText, function: Lowered, sides: Sides, lines: list[str]
    ) -> tuple[list[str], list[str]]:
        """Take numbers that a loop over components reads out of it.

        The compiler cannot: what the loop writes might be what they are read from.

        Returns:
            What stands before the loop, and the lines in it.
        """
        before = []
        for given in function.inputs:
            text = input_text(kernel, given, sides, self.plan)
            if "[" in text and not is_vector(self.plan.spec, given):
                before.append(f"one__{given.argument} = {text}")
                lines = [line.replace(text, f"one__{given.argument}") for line in lines]
        return before, lines

    # ---- messages

    def message_lines(self, kernel: KernelText, sides: Sides) -> list[str]:
        """Compute ``m_0, m_1 ...``; of a vector, component ``j``."""
        lines = super().message_lines(kernel, sides)
        if self.is_vector:
            return lines
        return [*self.reduced(kernel, "message", sides), *lines]

    def add_message(self, kernel: KernelText, depth: int) -> None:
        """Add what node ``v`` sends; see the base."""
        if not self.is_vector:
            super().add_message(kernel, depth)
            return
        sides = {"src": ("row", "v")}
        kernel.use("out_0")
        before, inner = self.component_lines(kernel, sides)
        kernel.add(depth, *before, self.loop)
        kernel.add(depth + 1, *inner, "out_0[v, j] = m_0")
        kernel.add(depth - 1, "else:")
        kernel.add(depth, self.loop, f"    out_0[v, j] = {self.identity(0)}")

    def component_lines(
        self, kernel: KernelText, sides: Sides
    ) -> tuple[list[str], list[str]]:
        """Return what computes ``m_0``, component j, and what stands before the loop."""
        message = self.phase.functions["message"]
        assert message is not None  # its result is a vector
        lines = self.message_lines(kernel, sides)
        before, lines = self.hoisted(kernel, message, sides, lines)
        return [*self.reduced(kernel, "message", sides), *before], lines

    def edge_lines(self, kernel: KernelText) -> list[str]:
        """Fetch the message along entry e and combine it into ``a_i``."""
        if not self.is_vector:
            return super().edge_lines(kernel)
        phase = self.phase
        sides = {"src": ("col", "u"), "dst": ("row", "v")}
        lines: list[str] = []
        if phase.kind == "node":
            kernel.use("in_0")
            inner = ["m_0 = in_0[u, j]"]
        else:
            lines, inner = self.component_lines(kernel, sides)
        combined = [re.sub(r"\ba_0\b", "a_0[j]", x) for x in self.combine_lines("a")]
        lines += [self.loop, *(f"    {x}" for x in (*inner, *combined))]
        if phase.kind == "node" or not phase.is_masked:
            return [*self.ask_lines(), *lines]
        kernel.use("everyone", "active")
        test = "if everyone or has_bit(active, np.int64(u) + column_base):"
        return [*self.ask_lines(), test, *(f"    {line}" for line in lines)]

    # ---- fetching ahead

    def far_arrays(self) -> dict[str, int]:
        """Return the arrays whose rows are read of neighbors, with the bytes of a row."""
        size, phase = self.plan.num_components, self.phase
        message = phase.functions["message"]
        if phase.kind == "node":
            return {"in_0": size * phase.message_dtypes[0].itemsize}
        read = () if message is None else message.reads("src")
        return {
            f"col__{name}": size * self.plan.dtypes[name].itemsize
            for name in read
            if self.plan.components_of(name)
        }

    def ask_lines(self) -> list[str]:
        """Ask for the vectors of the neighbor that is read some entries from here."""
        arrays = self.far_arrays()
        if not arrays:
            return []
        lines = [f"far = np.uint64(indices[min(e + {_AHEAD}, last_entry)])"]
        for name, size in arrays.items():
            lines.append(f"far_place = base__{name} + far * np.uint64({size})")
            lines += [
                f"prefetch(far_place + np.uint64({k}))"
                for k in range(0, min(size, _MOST_BYTES), _LINE)
            ]
        return lines

    # ---- kernels

    def pull(self, *, fused: bool) -> KernelText:
        """Combine the messages along each row; fused: and update the node at once."""
        if not self.is_vector:
            return super().pull(fused=fused)
        kernel = self.kernel("pull" if fused else "gather")
        kernel.use("begins", "ends", "indices", "column_base")
        kernel.add(1, "last_entry = np.int64(len(indices)) - 1")
        for name in self.far_arrays():
            kernel.use(name)
            kernel.add(1, f"base__{name} = np.uint64({name}.ctypes.data)")
        self.visit_rows(kernel)
        kernel.add(3, *self.accepts_lines(kernel, updates=fused))
        start = self.identity(0)
        if not fused:
            kernel.use("acc_0")
            start = "acc_0[v, j]"
        kernel.add(3, self.loop, f"    a_0[j] = {start}", *self.shift_lines(kernel, "v"))
        kernel.add(3, "for e in range(np.int64(begins[v]), np.int64(ends[v])):")
        kernel.add(4, "u = indices[e]", *self.edge_lines(kernel))
        if fused:
            kernel.add(3, *self.hear_lines(kernel), *self.update_lines(kernel, "a"))
        else:
            kernel.add(3, self.loop, "    acc_0[v, j] = a_0[j]")
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def hear_lines(self, kernel: KernelText) -> list[str]:
        """Leave node v as it is where it heard nothing and only changed nodes send."""
        if self.phase.spec.schedule != "changed":
            return []
        is_nothing = f"    is_silent &= a_0[j] == {self.identity(0)}"
        skip = (f"    {line}" for line in self.skip_lines(kernel))
        return ["is_silent = True", self.loop, is_nothing, "if is_silent:", *skip]

    def apply(self) -> KernelText:
        """Update nodes from the combined messages, and reset those."""
        if not self.is_vector:
            return super().apply()
        kernel = self.kernel("apply")
        self.visit_rows(kernel)
        kernel.use("acc_0")
        kernel.add(3, *self.accepts_lines(kernel))
        kernel.add(3, self.loop, "    a_0[j] = acc_0[v, j]", *self.hear_lines(kernel))
        kernel.add(3, self.loop, f"    acc_0[v, j] = {self.identity(0)}")
        kernel.add(3, *self.update_lines(kernel, "a"))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def active(self) -> KernelText:
        """Set the bit of every node that may send."""
        kernel = super().active()
        sides = {"node": ("row", "v")}
        place = next(i for i, x in enumerate(kernel.lines) if x.lstrip().startswith("if "))
        lines = self.reduced(kernel, "active", sides)
        kernel.lines[place:place] = [f"{'    ' * 3}{line}" for line in lines]
        return kernel

    def accepts_lines(self, kernel: KernelText, *, updates: bool = True) -> list[str]:
        """Skip node v unless it accepts messages."""
        lines = super().accepts_lines(kernel, updates=updates)
        if not lines:
            return []
        return [*self.reduced(kernel, "accepts", {"node": ("row", "v")}), *lines]

    def skip_lines(self, kernel: KernelText, *, updates: bool = True) -> list[str]:
        """Leave node v as it is, in a kernel that updates nodes or does not."""
        lines = []
        for line in super().skip_lines(kernel, updates=updates):
            name = line.partition("__")[2].partition("[")[0]
            if self.plan.components_of(name):
                line = line.replace("[v]", "[v, j]")
                lines += [self.loop, f"    {line}"]
            else:
                lines.append(line)
        return lines

    # ---- updates

    def update_lines(
        self, kernel: KernelText, acc: str | None, *, is_claimed: bool = False
    ) -> list[str]:
        """Update node v from the combined messages, note the change and the totals."""
        phase, plan = self.phase, self.plan
        update = phase.functions["update"]
        assert update is not None  # spec_of checked
        assert not is_claimed  # can_claim
        lines, values = self.combined(kernel, acc)
        sides = {"node": ("row", "v")}
        lines += self.reduced(kernel, "update", sides, values)
        names = phase.spec.updates
        raw = ", ".join(f"y__{name}" for name in names)
        call = f"{raw} = {call_text(kernel, update, values, sides, plan)}"
        before, (call,) = self.hoisted(kernel, update, sides, [call])
        lines += [*before, "is_moved = False", self.loop, f"    {call}"]
        kernel.use(*(f"row__{name}" for name in names))
        writes = []
        for name in names:
            is_vector, cast = plan.components_of(name) > 0, cast_text(plan.dtypes[name])
            new = f"x__{name}[j]" if is_vector else f"x__{name}"
            old = f"row__{name}{self.at(name)}"
            lines.append(f"    {new} = {cast}(y__{name})")
            test = f"{new} != {old}"
            if plan.dtypes[name].kind == "f":
                test = f"({test}) & (({new} == {new}) | ({old} == {old}))"
            lines.append(f"    is_moved |= {test}")
            target = f"new__{name}" if name in phase.buffered else f"row__{name}"
            kernel.use(target)
            write = f"{target}{self.at(name)} = {new}"
            writes += [self.loop, f"    {write}"] if is_vector else [write]
        lines += [*self.aggregate_lines(kernel, " ".join(names)), *writes]
        if phase.spec.schedule == "changed":
            return [*lines, *self.change_lines(kernel, "is_moved")]
        return [*lines, "if is_moved:", "    num_changed += 1"]

    def combined(
        self, kernel: KernelText, acc: str | None
    ) -> tuple[list[str], tuple[str, ...]]:
        """Return how ``update`` gets the combined message, after which lines."""
        if acc is None:
            return [], ()
        if not self.is_vector:
            texts = [f"{acc}_{i}" for i in self.width]
            if self.phase.is_mean:
                texts = [self.mean_text(kernel, texts[0])]
            return [], (texts[0] if len(texts) == 1 else f"({', '.join(texts)})",)
        if not self.phase.is_mean:
            return [], ("a_0[j]",)
        mean = f"    a_0[j] = {self.mean_text(kernel, 'a_0[j]')}"
        return [self.loop, mean], ("a_0[j]",)

    def aggregate_lines(self, kernel: KernelText, updated: str) -> list[str]:
        """Add node v to the chunk's totals, before its new states are written."""
        lines = super().aggregate_lines(kernel, updated)
        if not lines:
            return []
        sides = {"before": ("old", ""), "node": ("new", updated)}
        for name in updated.split():  # what was before stands there still
            old = f"row__{name}[v]"
            lines = [re.sub(rf"\bold__{name}\b(?!\[)", old, line) for line in lines]
            lines = [
                line.replace(f"old__{name}[j]", f"row__{name}[v, j]") for line in lines
            ]
        return [*self.reduced(kernel, "aggregate", sides), *lines]
