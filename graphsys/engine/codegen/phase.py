"""Texts that all kernels of a phase share, on the CPU and on CUDA."""

from dataclasses import dataclass

from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text, typed_text


@dataclass
class PhaseText:
    """Writes the parts of a phase's kernels: messages, combining, updates, totals."""

    plan: ProgramPlan
    phase: PhasePlan

    # ---- short texts

    @property
    def width(self) -> range:
        """Numbers of a message's values."""
        return range(len(self.phase.message_dtypes))

    def name(self, what: str) -> str:
        """Return the name of one of the phase's kernels."""
        return f"{what}_{self.phase.number}"

    @property
    def can_claim(self) -> bool:
        """Whether a sender may update its receivers itself, if no sender accepts.

        Any one message is enough, it depends on its sender alone, and nothing that it
        reads is written then; so the first sender to come has the last word.
        """
        phase, functions = self.phase, self.phase.functions
        is_plain = functions["aggregate"] is None and not phase.buffered
        return (
            phase.combiner == "any"
            and phase.kind == "node"
            and phase.can_push
            and phase.spec.schedule == "changed"
            and functions["accepts"] is not None
            and not self.plan.spec.delta
            and is_plain
        )

    @property
    def can_be_same(self) -> bool:
        """Whether it pays to look if all send the same, as the levels of a search do."""
        phase = self.phase
        is_plain = not (self.plan.spec.delta or phase.buffered or self.drops)
        return (
            phase.combiner == "any"
            and phase.kind == "node"
            and phase.spec.schedule == "changed"
            and len(phase.message_dtypes) == 1
            and is_plain
        )

    @property
    def only_lowers(self) -> bool:
        """Whether updating is no more than to lower (or raise) a state to the messages.

        Then a row's messages can be combined with the state itself: one test per node tells
        whether it changed, and none whether there was a message.
        """
        phase = self.phase
        is_changed = phase.spec.schedule == "changed"
        return bool(phase.monotone) and is_changed and phase.functions["aggregate"] is None

    @property
    def drops(self) -> bool:
        """Whether a message may be None."""
        message = self.phase.functions["message"]
        return message is not None and message.drops

    def kernel(self, what: str) -> KernelText:
        """Begin a kernel."""
        return KernelText(self.name(what), self.phase)

    def identity(self, i: int) -> str:
        """Return the i-th value of the message that changes nothing."""
        return typed_text(self.phase.identity[i], self.phase.message_dtypes[i])

    @property
    def nothing(self) -> str:
        """The message that changes nothing."""
        texts = [self.identity(i) for i in self.width]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def add_message(self, kernel: KernelText, depth: int) -> None:
        """Add to a kernel what node ``v`` sends, and nothing where it does not send.

        Args:
            kernel: The kernel, which has the test whether it sends one level further out.
            depth: How far the lines are indented.
        """
        kernel.add(depth, *self.message_lines(kernel, {"src": ("row", "v")}))
        for i in self.width:
            kernel.use(f"out_{i}")
            if self.plan.spec.delta:
                kernel.use(f"sent_{i}")
                new = (f"out_{i}[v] = m_{i} - sent_{i}[v]", f"sent_{i}[v] = m_{i}")
                kernel.add(depth, *new)
            else:
                kernel.add(depth, f"out_{i}[v] = m_{i}")
        if self.phase.combiner != "any":
            kernel.add(depth - 1, "else:")
            nothing = (f"out_{i}[v] = {self.identity(i)}" for i in self.width)
            kernel.add(depth, *nothing)

    def message_lines(
        self, kernel: KernelText, sides: dict[str, tuple[str, str]]
    ) -> list[str]:
        """Compute ``m_0, m_1 ...`` of the phase's dtypes."""
        message = self.phase.functions["message"]
        assert message is not None
        call = call_text(kernel, message, (), sides, self.plan, self.nothing)
        casts = [cast_text(dtype) for dtype in self.phase.message_dtypes]
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
        call = call_text(KernelText(""), combine, (accs_in, ms), {}, self.plan)
        raw = ", ".join(f"r_{i}" for i in self.width)
        dtypes = phase.message_dtypes
        return [
            f"{raw} = {call}",
            *(f"{a} = {cast_text(dtypes[i])}(r_{i})" for i, (a, _) in enumerate(pairs)),
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
        """Return a test for the message that changes nothing."""
        return " and ".join(f"{prefix}_{i} == {self.identity(i)}" for i in self.width)

    # ---- parts of kernels

    def update_lines(
        self, kernel: KernelText, acc: str | None, *, is_claimed: bool = False
    ) -> list[str]:
        """Update node v from ``acc_i``, note the change and the totals; see ``_LISTED``."""
        phase, plan = self.phase, self.plan
        update = phase.functions["update"]
        assert update is not None
        values: list[str] = []
        if acc is not None:
            texts = [f"{acc}_{i}" for i in self.width]
            if phase.is_mean:
                texts = [self.mean_text(kernel, texts[0])]
            values = [texts[0] if len(texts) == 1 else f"({', '.join(texts)})"]
        call = call_text(kernel, update, values, {"node": ("row", "v")}, plan)
        names = phase.spec.updates
        raw = ", ".join(f"y__{name}" for name in names)
        lines = [f"{raw} = {call}"]
        tests = []
        for name in names:
            dtype = plan.dtypes[name]
            target = f"new__{name}" if name in phase.buffered else f"row__{name}"
            kernel.use(f"row__{name}", target)
            lines += [
                f"x__{name} = {cast_text(dtype)}(y__{name})",
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
        if is_claimed:
            lines += self.claim_lines(kernel, " or ".join(tests))
        elif phase.spec.schedule == "changed":
            lines += self.change_lines(kernel, " or ".join(tests))
        else:
            lines += [f"if {' or '.join(tests)}:", "    num_changed += 1"]
        return lines

    def mean_text(self, kernel: KernelText, total: str) -> str:
        """Return the mean of node v's messages: all its neighbors send one; 0 of none."""
        column = f"row__{self.phase.in_coming}"
        kernel.use(column)
        cast = cast_text(self.phase.message_dtypes[0])
        return f"{cast}({total} / max({column}[v], 1))"

    def change_lines(self, kernel: KernelText, test: str) -> list[str]:
        """Note a node that changed, for the next frontier."""
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

    def lowered_lines(self, kernel: KernelText) -> list[str]:
        """Take over ``a_0``, the least of a state and its messages; note the change."""
        phase = self.phase
        name, less = phase.monotone, "<" if phase.combiner == "minimum" else ">"
        kernel.use(f"row__{name}")
        lines = self.change_lines(kernel, f"a_0 {less} row__{name}[v]")
        if name not in phase.buffered:
            return [lines[0], f"    row__{name}[v] = a_0", *lines[1:]]
        kernel.use(f"new__{name}")
        return [f"new__{name}[v] = a_0", *lines]

    def claim_lines(self, kernel: KernelText, test: str) -> list[str]:
        """List a node that a sender updated at once: as ``~v`` where nothing changed."""
        kernel.use("row__out_going", "touched_list", "cursor")
        return [
            "claimed = ~v",
            f"if {test}:",
            "    claimed = v",
            "    num_changed += 1",
            "    num_edges += row__out_going[v]",
            "buffer[filled] = claimed",
            "filled += 1",
            "if filled == 1024:",
            "    append_buffer(buffer, filled, touched_list, cursor)",
            "    filled = 0",
        ]

    def delta_test(self, kernel: KernelText) -> str:
        """Whether the message of the new state is far enough from the one sent."""
        message = self.phase.functions["message"]
        assert message is not None
        kernel.use("sent_0", "delta_tolerance")
        sides = {"src": ("new", " ".join(self.phase.spec.updates))}
        call = call_text(kernel, message, (), sides, self.plan, self.nothing)
        return f"abs({call} - sent_0[v]) > delta_tolerance"

    def aggregate_lines(self, kernel: KernelText, updated: str) -> list[str]:
        """Add node v to the chunk's totals."""
        aggregate = self.phase.functions["aggregate"]
        if aggregate is None:
            return []
        totals = list(self.plan.spec.aggregators.values())
        sides = {"before": ("old", updated), "node": ("new", updated)}
        call = call_text(kernel, aggregate, (), sides, self.plan)
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
        """Start a chunk's counts and totals."""
        starts = {"sum": "0.0", "minimum": "np.inf", "maximum": "-np.inf"}
        totals = self.plan.spec.aggregators.values()
        return [
            "num_changed = 0",
            "num_edges = 0",
            "num_fresh = 0",
            *(f"part_{i} = {starts[t.operation]}" for i, t in enumerate(totals)),
        ]

    def end_parts(self, kernel: KernelText) -> list[str]:
        """Write a chunk's counts, totals and changed nodes."""
        kernel.use("partial", "next_list", "next_cursor")
        num_totals = len(self.plan.spec.aggregators)
        return [
            "partial[c, 0] = num_changed",
            "partial[c, 1] = num_edges",
            *(f"partial[c, {i + 2}] = part_{i}" for i in range(num_totals)),
            "if num_fresh > 0:",
            "    append_buffer(fresh, num_fresh, next_list, next_cursor)",
        ]

    def skip_lines(self, kernel: KernelText, *, updates: bool = True) -> list[str]:
        """Leave node v as it is, in a kernel that updates nodes or does not."""
        if not updates:
            return ["continue"]
        kept = sorted(self.phase.buffered & set(self.phase.spec.updates))
        kernel.use(*(f"new__{name}" for name in kept), *(f"row__{name}" for name in kept))
        return [*(f"new__{name}[v] = row__{name}[v]" for name in kept), "continue"]

    def accepts_lines(self, kernel: KernelText, *, updates: bool = True) -> list[str]:
        """Skip node v unless it accepts messages."""
        accepts = self.phase.functions["accepts"]
        if accepts is None:
            return []
        call = call_text(kernel, accepts, (), {"node": ("row", "v")}, self.plan)
        skip = self.skip_lines(kernel, updates=updates)
        return [f"if not {call}:", *(f"    {line}" for line in skip)]
