"""What the kernels of programs with vector states share, on the CPU and on CUDA.

A lowered function computes one component, so kernels call it for each component ``j``; what
it reads of whole vectors is reduced before. New states stand in a buffer of the thread
until all of them are known: functions read old values.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.phase import PhaseText
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text, input_text
from graphsys.engine.codegen.vectors import is_vector

Sides = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ComponentLoop:
    """Who computes the components of a vector: one thread, the first to the last.

    Attributes:
        size: How many there are; 0 where a program has no vectors.
    """

    size: int

    def over(self, lines: Sequence[str]) -> list[str]:
        """Return lines for every component ``j``; once where there are none."""
        return [f"for j in range({self.size or 1}):", *(f"    {x}" for x in lines)]

    def joined(self, name: str, operation: str) -> list[str]:
        """Return what makes the whole of a thread's part of a reduction."""
        return []

    def any_of(self, name: str) -> list[str]:
        """Return what makes a test true where it is for any component."""
        return []

    def all_of(self, name: str) -> list[str]:
        """Return what makes a test true where it is for all components."""
        return []

    def once(self, lines: Sequence[str]) -> list[str]:
        """Return lines that one of the threads of a node has to do."""
        return list(lines)


def reduced_lines(
    kernel: KernelText,
    function: Lowered | None,
    values: Sequence[str],
    sides: Sides,
    plan: ProgramPlan,
    components: ComponentLoop,
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
            inner = [f"{name} += np.float64({call})"]
        elif operation in ("max", "min"):
            inner = [f"{name} = {operation}({name}, np.float64({call}))"]
        else:
            less = "<" if least else ">"
            lines += [f"best_{name} = {name}", f"{name} = 0.0"]
            inner = [f"part = np.float64({call})", f"if part {less} best_{name}:"]
            inner += [f"    best_{name} = part", f"    {name} = np.float64(j)"]
        lines += [*components.over(inner), *components.joined(name, operation)]
        if operation == "mean":
            lines.append(f"{name} /= {plan.num_components}")
    return lines


def init_lines(
    kernel: KernelText, init: Lowered, plan: ProgramPlan, components: ComponentLoop
) -> list[str]:
    """Return the lines that give node v its first states."""
    sides = {"node": ("row", "v")}
    names = [f"x_{i}" for i in range(len(plan.spec.states))]
    call = call_text(kernel, init, (), sides, plan)
    inner, numbers = [f"{', '.join(names)} = {call}"], []
    for name, state in zip(names, plan.spec.states, strict=True):
        kernel.use(f"row__{state}")
        value = f"{cast_text(plan.dtypes[state])}({name})"
        if plan.components_of(state):
            inner.append(f"row__{state}[v, j] = {value}")
        else:
            numbers.append(f"row__{state}[v] = {value}")
    reduced = reduced_lines(kernel, init, (), sides, plan, components)
    last = components.once(numbers) if numbers else []
    return [*reduced, *components.over(inner), *last]


class VectorParts(PhaseText):
    """Writes the parts of a phase's kernels that know of vectors."""

    can_claim = False
    can_be_same = False

    # ---- short texts

    @property
    def components(self) -> ComponentLoop:
        """Who computes the components of a vector."""
        return ComponentLoop(self.plan.num_components)

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
        lines = reduced_lines(kernel, function, values, sides, self.plan, self.components)
        first = [f"{name} = 0" for name in dict.fromkeys(("j", kernel.place))]
        return [*lines, *first]

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
        over = self.components.over
        kernel.add(depth, *before, *over([*inner, "out_0[v, j] = m_0"]))
        kernel.add(depth - 1, "else:")
        kernel.add(depth, *over([f"out_0[v, j] = {self.identity(0)}"]))

    def component_lines(
        self, kernel: KernelText, sides: Sides
    ) -> tuple[list[str], list[str]]:
        """Return what computes ``m_0``, component j, and what stands before the loop."""
        message = self.phase.functions["message"]
        assert message is not None  # its result is a vector
        lines = self.message_lines(kernel, sides)
        before, lines = self.hoisted(kernel, message, sides, lines)
        return [*self.reduced(kernel, "message", sides), *before], lines

    def heard_lines(
        self, kernel: KernelText, sides: Sides, first: Sequence[str] = ()
    ) -> list[str]:
        """Fetch the vector along entry e and combine it into the buffer ``a_0``.

        Args:
            kernel: Where the lines will stand.
            sides: Whose arrays the message reads.
            first: Lines that come before, for each component.
        """
        before: list[str] = []
        if self.phase.kind == "node":
            kernel.use("in_0")
            inner = ["m_0 = in_0[u, j]"]
        else:
            before, inner = self.component_lines(kernel, sides)
        own = f"a_0[{kernel.place}]"
        combined = [re.sub(r"\ba_0\b", own, line) for line in self.combine_lines("a")]
        return [*before, *self.components.over([*first, *inner, *combined])]

    def hear_lines(self, kernel: KernelText) -> list[str]:
        """Leave node v as it is where it heard nothing and only changed nodes send."""
        if self.phase.spec.schedule != "changed":
            return []
        is_nothing = f"is_silent &= a_0[{kernel.place}] == {self.identity(0)}"
        lines = ["is_silent = True", *self.components.over([is_nothing])]
        skip = (f"    {line}" for line in self.skip_lines(kernel))
        return [*lines, *self.components.all_of("is_silent"), "if is_silent:", *skip]

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
                lines += self.components.over([line.replace("[v]", "[v, j]")])
            else:
                lines.append(line)
        return lines

    # ---- updates

    def update_lines(
        self, kernel: KernelText, acc: str | None, *, is_claimed: bool = False
    ) -> list[str]:
        """Update node v from the combined messages, note the change and the totals."""
        phase, plan, components = self.phase, self.plan, self.components
        update = phase.functions["update"]
        assert update is not None  # spec_of checked
        assert not is_claimed  # can_claim
        lines, values = self.combined(kernel, acc)
        sides = {"node": ("row", "v")}
        lines += self.reduced(kernel, "update", sides, values)
        names = phase.spec.updates
        raw = ", ".join(f"y__{name}" for name in names)
        call = f"{raw} = {call_text(kernel, update, values, sides, plan)}"
        before, inner = self.hoisted(kernel, update, sides, [call])
        kernel.use(*(f"row__{name}" for name in names))
        writes = []
        for name in names:
            is_vector, cast = plan.components_of(name) > 0, cast_text(plan.dtypes[name])
            new = f"x__{name}[{kernel.place}]" if is_vector else f"x__{name}"
            old = f"row__{name}{self.at(name)}"
            inner.append(f"{new} = {cast}(y__{name})")
            test = f"{new} != {old}"
            if plan.dtypes[name].kind == "f":
                test = f"({test}) & (({new} == {new}) | ({old} == {old}))"
            inner.append(f"is_moved |= {test}")
            target = f"new__{name}" if name in phase.buffered else f"row__{name}"
            kernel.use(target)
            write = [f"{target}{self.at(name)} = {new}"]
            writes += components.over(write) if is_vector else components.once(write)
        lines += [*before, "is_moved = False", *components.over(inner)]
        # all have read the old states before one writes
        lines += self.aggregate_lines(kernel, " ".join(names))
        lines += [*components.any_of("is_moved"), *writes]
        moved = ["if is_moved:", "    num_changed += 1"]
        if phase.spec.schedule == "changed":
            moved = self.change_lines(kernel, "is_moved")
        return [*lines, *components.once(moved)]

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
        own = f"a_0[{kernel.place}]"
        if not self.phase.is_mean:
            return [], (own,)
        mean = f"{own} = {self.mean_text(kernel, own)}"
        return self.components.over([mean]), (own,)

    def aggregate_lines(self, kernel: KernelText, updated: str) -> list[str]:
        """Add node v to the totals, before its new states are written."""
        lines = super().aggregate_lines(kernel, updated)
        if not lines:
            return []
        sides = {"before": ("old", ""), "node": ("new", updated)}
        for name in updated.split():  # what was before stands there still
            old = f"row__{name}[v]"
            lines = [re.sub(rf"\bold__{name}\b(?!\[)", old, line) for line in lines]
            own, old = f"old__{name}[{kernel.place}]", f"row__{name}[v, j]"
            lines = [line.replace(own, old) for line in lines]
        once = self.components.once(lines)
        return [*self.reduced(kernel, "aggregate", sides), *once]
