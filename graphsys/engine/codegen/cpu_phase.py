"""Writing the CPU kernels of one phase of a program; see ``cpu.py`` for their arguments."""

from typing import Any

from graphsys.engine.codegen.lowered import EDGE_COLUMNS
from graphsys.engine.codegen.phase import PhaseText
from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text

CHUNKS = ("for c in claimed_range(0, len(bounds) - 1, 1, counter):",)
"""The head of a loop over chunks, which threads take one after the other."""

_MEMBERS = (
    "for w in range(bounds[c] >> 6, (bounds[c + 1] + 63) >> 6):",
    "    word = ~np.uint64(0) if everyone else active[w]",
    "    while word != 0:",
    "        v = 64 * w + lowest_bit(word)",
    "        word &= word - np.uint64(1)",
    "        if v >= bounds[c + 1]:",
    "            break",
)
"""The nodes of a chunk that are active, by words of their bits; bounds are multiples of 64
but the last."""

_LISTED_CHUNKS = (
    "fresh = np.empty(512, dtype=np.int64)",
    "for c in claimed_range(0, num_chunks, 1, counter):",
    "    low, high = np.int64(c) * 512, min(np.int64(c) * 512 + 512, num_listed)",
    "    if not listed:",
    "        low, high = bounds[c], bounds[c + 1]",
)

_LISTED = "for k in claimed_range(0, num_listed, 64, counter):"


class CpuPhaseText(PhaseText):
    """Writes the kernels of a phase."""

    def kernels(self) -> list[str]:
        """Return the texts of all kernels that the phase may need."""
        phase = self.phase
        made = [self.apply(), self.totals()]
        if phase.functions["active"] is not None:
            made.append(self.active())
        if phase.kind == "node":
            made.append(self.send())
        if self.can_be_same:
            made += [self.same(), self.look()]
        if phase.kind == "mode":
            made += [self.send(), self.mode()]
        elif phase.kind != "local":
            made += [self.pull(fused=True), self.pull(fused=False)]
            if phase.can_push:
                made.append(self.push())
            if self.can_claim:
                made += [self.accepting(), self.claim()]
        if has_trips(phase):
            made.append(trips_kernel(self))
        return [kernel.text() for kernel in made]

    def visit_rows(self, kernel: KernelText) -> None:
        """Open the loop over nodes v, listed or in chunks; its body stands at depth 3."""
        kernel.use("counter", "bounds", "num_chunks", "listed", "nodes", "num_listed")
        kernel.use("row_base")
        kernel.add(1, *_LISTED_CHUNKS)
        kernel.add(2, *self.begin_parts())
        kernel.add(2, "for k in range(low, high):")
        kernel.add(3, "v = np.int64(nodes[k]) - row_base if listed else k")

    # ---- kernels

    def send(self) -> KernelText:
        """Every node's message, once per node."""
        kernel = self.kernel("send")
        kernel.use("counter", "bounds", "everyone", "active")
        kernel.add(1, *CHUNKS)
        if self.phase.combiner == "any":  # nobody reads what the others do not send
            kernel.add(2, *_MEMBERS)
        else:
            kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
            kernel.add(3, "if everyone or has_bit(active, v):")
        self.add_message(kernel, 4)
        return kernel

    def same(self) -> KernelText:
        """How many nodes of a chunk send, how many the same as its first, and what."""
        kernel = self.kernel("same")
        kernel.use("counter", "bounds", "everyone", "active", "partial", "first_0")
        kernel.add(1, *CHUNKS)
        kernel.add(2, "num_sent = 0", "num_same = 0", *_MEMBERS)
        kernel.add(4, *self.message_lines(kernel, {"src": ("row", "v")}))
        kernel.add(4, "if num_sent == 0:", "    first_0[c] = m_0", "num_sent += 1")
        kernel.add(4, "num_same += m_0 == first_0[c]")
        kernel.add(2, "partial[c, 0] = num_sent", "partial[c, 1] = num_same")
        return kernel

    def look(self) -> KernelText:
        """Look along each row of one block for a sender; all of them send the same."""
        kernel = self.kernel("look")
        kernel.use("counter", "bounds", "begins", "ends", "indices", "active", "same_0")
        kernel.add(1, "listed = False", "fresh = np.empty(1, dtype=np.int64)", *CHUNKS)
        kernel.add(2, *self.begin_parts(), "for v in range(bounds[c], bounds[c + 1]):")
        kernel.add(3, *self.accepts_lines(kernel, updates=False))
        kernel.add(3, "for e in range(np.int64(begins[v]), np.int64(ends[v])):")
        kernel.add(4, "if has_bit(active, np.int64(indices[e])):")
        kernel.add(5, *self.update_lines(kernel, "same"), "break")
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def pull(self, *, fused: bool) -> KernelText:
        """Combine the messages along each row; fused: and update the node at once."""
        phase = self.phase
        kernel = self.kernel("pull" if fused else "gather")
        self.visit_rows(kernel)
        kernel.use("begins", "ends", "indices", "column_base")
        kernel.add(3, *self.accepts_lines(kernel, updates=fused))
        kept = not fused or self.plan.spec.delta
        for i in self.width:
            if kept:
                kernel.use(f"acc_{i}")
            start = f"acc_{i}[v]" if kept else self.identity(i)
            if fused and self.only_lowers:
                start = f"row__{phase.monotone}[v]"
            kernel.add(3, f"a_{i} = {start}")
        kernel.add(3, *self.shift_lines(kernel, "v"))
        if phase.combiner == "any":
            kernel.add(3, "got = False")
            if not fused:
                kernel.use("touched")
                kernel.add(3, "if has_bit(touched, v + row_base):", "    continue")
        kernel.add(3, "for e in range(np.int64(begins[v]), np.int64(ends[v])):")
        kernel.add(4, "u = indices[e]", *self.edge_lines(kernel))
        kernel.add(3, *self.after_row(kernel, fused=fused))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def shift_lines(self, kernel: KernelText, row: str) -> list[str]:
        """Say how far behind a row's entries the columns stand that messages read."""
        message = self.phase.functions["message"]
        read = () if message is None else message.reads("edge", "reverse")
        lines = []
        for name in EDGE_COLUMNS:
            if name in read and name in self.plan.edge_columns:
                kernel.use("begins", f"begins__{name}", f"edge__{name}")
                kernel.shifted.add(name)
                begin = f"np.int64(begins__{name}[{row}])"
                lines.append(f"shift__{name} = {begin} - np.int64(begins[{row}])")
        return lines

    def edge_lines(self, kernel: KernelText) -> list[str]:
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

    def after_row(self, kernel: KernelText, *, fused: bool) -> list[str]:
        """Return what follows once a row's messages are combined."""
        phase = self.phase
        is_any = phase.combiner == "any"
        if not fused:
            lines = [f"acc_{i}[v] = a_{i}" for i in self.width]
            if is_any:
                kernel.use("touched")
                lines = ["if got:", *(f"    {x}" for x in lines)]
                lines.append("    set_bit(touched, v + row_base)")
            return lines
        if self.only_lowers:
            return self.lowered_lines(kernel)
        lines = []
        if self.plan.spec.delta:
            lines += [f"acc_{i}[v] = a_{i}" for i in self.width]
        elif phase.spec.schedule == "changed":
            test = "not got" if is_any else self.is_nothing("a")
            lines += [f"if {test}:", *(f"    {x}" for x in self.skip_lines(kernel))]
        return [*lines, *self.update_lines(kernel, "a")]

    def apply(self) -> KernelText:
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
        if not self.plan.spec.delta and phase.combiner != "any":
            kernel.add(3, *(f"acc_{i}[v] = {self.identity(i)}" for i in self.width))
        kernel.add(3, *self.update_lines(kernel, "a"))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def totals(self) -> KernelText:
        """The aggregators over all nodes as they are."""
        kernel = self.kernel("totals")
        self.visit_rows(kernel)
        kernel.add(3, *self.aggregate_lines(kernel, ""))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def active(self) -> KernelText:
        """Set the bit of every node that may send."""
        active = self.phase.functions["active"]
        assert active is not None
        kernel = self.kernel("active")
        kernel.use("counter", "bounds", "senders", "senders_out_going", "partial")
        kernel.add(1, *CHUNKS)
        kernel.add(2, "num_changed = 0", "num_edges = 0")
        kernel.add(2, "for v in range(bounds[c], bounds[c + 1]):")
        call = call_text(kernel, active, (), {"node": ("row", "v")}, self.plan)
        kernel.add(3, f"if {call}:")
        kernel.add(4, "set_bit(senders, v)", "num_changed += 1")
        kernel.add(4, "num_edges += senders_out_going[v]")
        kernel.add(2, "partial[c, 0] = num_changed", "partial[c, 1] = num_edges")
        return kernel

    def push(self) -> KernelText:
        """Send along the out rows of a frontier; combine at the neighbors, atomically."""
        phase = self.phase
        kernel = self.kernel("push")
        kernel.use(
            "counter", "nodes", "num_listed", "begins", "ends", "indices", "row_base"
        )
        kernel.use("column_base", "acc_0", "touched", "touched_list", "cursor")
        kernel.add(1, "buffer = np.empty(1024, dtype=np.int64)", "filled = 0", _LISTED)
        kernel.add(2, "u = np.int64(nodes[k]) - row_base")
        if phase.kind == "node":
            kernel.add(2, *self.sent_lines(kernel))
        kernel.add(2, *self.shift_lines(kernel, "u"))
        kernel.add(2, "for e in range(np.int64(begins[u]), np.int64(ends[u])):")
        kernel.add(3, "v = indices[e]")
        accepts = phase.functions["accepts"]
        if accepts is not None:
            call = call_text(kernel, accepts, (), {"node": ("col", "v")}, self.plan)
            kernel.add(3, f"if not {call}:", "    continue")
        if phase.kind != "node":
            sides = {"src": ("row", "u"), "dst": ("col", "v")}
            kernel.add(3, *self.message_lines(kernel, sides))
        kernel.add(3, *self.deliver_lines(kernel))
        kernel.add(3, "if set_bit_atomic(touched, np.int64(v) + column_base):")
        if phase.combiner == "any":
            kernel.add(4, "acc_0[v] = m_0")
        kernel.add(4, "buffer[filled] = np.int64(v) + column_base", "filled += 1")
        kernel.add(4, "if filled == 1024:")
        kernel.add(5, "append_buffer(buffer, filled, touched_list, cursor)", "filled = 0")
        kernel.add(1, "append_buffer(buffer, filled, touched_list, cursor)")
        return kernel

    def accepting(self) -> KernelText:
        """How many of the listed nodes accept messages."""
        kernel = self.kernel("accepting")
        self.visit_rows(kernel)
        kernel.add(3, *self.accepts_lines(kernel, updates=False), "num_changed += 1")
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def claim(self) -> KernelText:
        """Push from a frontier; whoever comes first updates the receiver at once."""
        accepts = self.phase.functions["accepts"]
        assert accepts is not None
        kernel = self.kernel("claim")
        kernel.use("counter", "nodes", "num_listed", "begins", "ends", "indices", "touched")
        kernel.use("partial")
        kernel.add(1, "buffer = np.empty(1024, dtype=np.int64)", "filled = 0")
        kernel.add(1, "num_changed = 0", "num_edges = 0", _LISTED)
        kernel.add(2, "u = np.int64(nodes[k])", *self.sent_lines(kernel))
        kernel.add(2, "for e in range(np.int64(begins[u]), np.int64(ends[u])):")
        kernel.add(3, "v = np.int64(indices[e])")
        call = call_text(kernel, accepts, (), {"node": ("row", "v")}, self.plan)
        kernel.add(3, f"if not {call} or not set_bit_atomic(touched, v):", "    continue")
        kernel.add(3, *self.update_lines(kernel, "m", is_claimed=True))
        kernel.add(1, "append_buffer(buffer, filled, touched_list, cursor)")
        kernel.add(1, "partial[thread, 0] = num_changed")
        kernel.add(1, "partial[thread, 1] = num_edges")
        return kernel

    def sent_lines(self, kernel: KernelText) -> list[str]:
        """The message of node u, computed once for all its edges."""
        lines = self.message_lines(kernel, {"src": ("row", "u")})
        if self.plan.spec.delta:
            kernel.use("sent_0")
            lines += ["whole = m_0", "m_0 = m_0 - sent_0[u]", "sent_0[u] = whole"]
        if self.phase.combiner != "any" or self.drops:
            lines += [f"if {self.is_nothing('m')}:", "    continue"]
        return lines

    def deliver_lines(self, kernel: KernelText) -> list[str]:
        """Combine ``m_0`` into the neighbor's ``acc_0``, or go on to the next edge."""
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

    def mode(self) -> KernelText:
        """The most frequent message of each node, over up to two sets of rows."""
        kernel = self.kernel("pull")
        kernel.use("max_degree", "scratch_size")
        dtype = cast_text(self.phase.message_dtypes[0])
        kernel.add(1, f"values = np.empty(max_degree, dtype={dtype})")
        kernel.add(1, f"keys = np.empty(scratch_size, dtype={dtype})")
        kernel.add(1, "tallies = np.zeros(scratch_size, dtype=np.int64)")
        self.visit_rows(kernel)
        kernel.use(
            "begins",
            "ends",
            "indices",
            "other_begins",
            "other_ends",
            "other_indices",
            "in_0",
        )
        kernel.add(3, *self.accepts_lines(kernel))
        kernel.add(3, "count = 0")
        for prefix in ("", "other_"):
            depth = 3
            if prefix:
                kernel.add(3, "if len(other_begins) > 0:")
                depth = 4
            span = f"np.int64({prefix}begins[v]), np.int64({prefix}ends[v])"
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


def has_trips(phase: PhasePlan) -> bool:
    """Return whether a phase may look at fewer entries than its rows have."""
    if phase.kind in ("local", "mode"):
        return False
    return phase.combiner == "any" or phase.functions["accepts"] is not None


def trips_kernel(writer: Any) -> KernelText:
    """Return the text of the kernel that counts how far rows are walked, for profiles.

    Not every entry is looked at: nodes that accept no message are skipped, and where any
    one message will do, the row ends at the first. It walks as ``pull`` would.

    Args:
        writer: Writes the phase's other kernels; see ``cpu_source``.
    """
    phase = writer.phase
    kernel: KernelText = writer.kernel("trips")
    writer.visit_rows(kernel)
    kernel.use("begins", "ends", "trips")
    kernel.add(3, *writer.accepts_lines(kernel, updates=False))
    begin, end = "np.int64(begins[v])", "np.int64(ends[v])"
    if phase.combiner != "any":
        kernel.add(3, f"trips[k] = {end} - {begin}")
        return kernel
    kernel.use("indices", "column_base", "is_gather", "touched")
    kernel.add(3, "if is_gather and has_bit(touched, v + row_base):", "    continue")
    kernel.add(3, *(f"a_{i} = {writer.identity(i)}" for i in writer.width))
    kernel.add(3, "got = False", "walked = np.int64(0)")
    kernel.add(3, *writer.shift_lines(kernel, "v"))
    kernel.add(3, f"for e in range({begin}, {end}):", "    walked += 1")
    kernel.add(4, "u = indices[e]", *writer.edge_lines(kernel))
    kernel.add(3, "trips[k] = walked")
    return kernel
