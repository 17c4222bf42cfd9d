"""Kernels that visit nodes: pull along rows, send, apply, totals, who may send."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from graphsys.engine.codegen.text import KernelText, call_text, cast_text
from graphsys.engine.cuda.phase_parts import (
    LEADERS,
    PLACES,
    CudaKernel,
    PhaseParts,
    indented,
    lane_dtype,
)


@dataclass
class PullWriter(PhaseParts):
    """Writes the kernels that visit nodes.

    Attributes:
        by: Who visits a node where no row is walked.
    """

    by: ClassVar[str] = "thread"

    # ---- hooks

    def row_kernels(self) -> list[CudaKernel]:
        """Return the kernels that walk rows."""
        raise NotImplementedError

    def visit_all(self, kernel: CudaKernel) -> None:
        """Open the loop over all nodes v; its body stands at depth 2."""
        kernel.add(1, "for v in range(cuda.grid(1), num_rows, cuda.gridsize(1)):")

    def reduced(
        self,
        kernel: KernelText,
        what: str,
        sides: dict[str, tuple[str, str]],
        values: Sequence[str] = (),
    ) -> list[str]:
        """Reduce what a function reads of whole vectors."""
        return []

    def leader_test(self, test: str) -> str:
        """Return a test that holds for one of the threads of a node."""
        return test

    def take_lines(self, kernel: CudaKernel) -> list[str]:
        """Take the combined message of node v over, and reset it."""
        phase, lines = self.phase, [f"a_{i} = acc_{i}[v]" for i in self.width]
        if phase.spec.schedule == "changed" and not self.plan.spec.delta:
            test = self.is_nothing("a")
            if phase.combiner == "any":
                kernel.use("touched", "touch_epoch")
                test = "not listed and touched[v] != touch_epoch"
            lines += [f"if {test}:", *indented(self.skip_lines(kernel))]
        if self.plan.spec.delta:
            return lines
        return [*lines, *self.reset_lines()]

    def reset_lines(self) -> list[str]:
        """Make the combined message of node v none."""
        return [f"acc_{i}[v] = {self.identity(i)}" for i in self.width]

    def walk_lines(self, kernel: CudaKernel, mapping: str) -> list[str]:
        """Combine the messages along row r into ``a_i`` of the first thread."""
        if self.phase.combiner == "any" and mapping != "thread":
            return self.any_lines(kernel, mapping)
        lines = self.row_lines(kernel, mapping)
        if mapping == "warp":
            lines += self.reduce_lines()
        if mapping == "block":
            lines += self.block_reduce_lines()
        return lines

    def end_row(self, kernel: CudaKernel, mapping: str, *, fused: bool) -> list[str]:
        """Have one thread update node v from its ``a_i``, or keep those for ``apply``."""
        lines = indented(self.after_row(kernel, fused=fused))
        return [f"if {LEADERS[mapping]}:", *lines]

    # ---- parts

    def row_lines(self, kernel: CudaKernel, mapping: str) -> list[str]:
        """Combine the messages along row r, each thread its share, into ``a_i``."""
        kernel.use("indptr", "indices")
        first, step = PLACES[mapping]
        begin, end = "np.int64(indptr[r])", "np.int64(indptr[r + 1])"
        lines = [f"for e in range({begin} + {first}, {end}, {step}):"]
        lines += indented([*self.seen(), "u = indices[e]"])
        fetched, inner = self.fetch_lines(kernel), self.combine_lines("a")
        if self.phase.combiner == "any":
            inner += ["got = True", "break"]
            if self.drops:
                inner = [f"if not ({self.is_nothing('m')}):", *indented(inner)]
        inner = [*fetched, *inner]
        test = self.sends_test(kernel)
        inner = [f"if {test}:", *indented(inner)] if test else inner
        return [*lines, *indented(inner)]

    def any_lines(self, kernel: CudaKernel, mapping: str) -> list[str]:
        """Walk row r together until the first message in its order is found."""
        kernel.use("indptr", "indices")
        first, step = PLACES[mapping]
        lines = [
            "base = np.int64(indptr[r])",
            "end = np.int64(indptr[r + 1])",
            "while base < end:",
            f"    e = base + {first}",
            "    hit = False",
            "    if e < end:",
            *indented([*self.seen(), "u = indices[e]"], 2),
        ]
        # The first in the order of the row, not of time: the lowest lane that hits wins.
        hit = f"not ({self.is_nothing('m')})" if self.drops else "True"
        inner = [*self.fetch_lines(kernel), "a_0 = m_0", f"hit = {hit}"]
        lines += indented([f"if {self.sends_test(kernel)}:", *indented(inner)], 2)
        dtype = self.phase.message_dtypes[0]
        moved_as, cast = lane_dtype(dtype), cast_text(dtype)
        if mapping == "warp":
            shuffle = f"cuda.shfl_sync(EVERY_LANE, {moved_as}(a_0), winner)"
            found = [
                "votes = cuda.ballot_sync(EVERY_LANE, hit)",
                "if votes != 0:",
                "    winner = cuda.ffs(votes) - 1",
                f"    a_0 = {cast}({shuffle})",
                "    got = True",
                "    break",
            ]
        else:
            found = [
                "if cuda.threadIdx.x == 0:",
                "    winner_of[0] = cuda.blockDim.x",
                "cuda.syncthreads()",
                "if hit:",
                "    cuda.atomic.min(winner_of, 0, np.int32(cuda.threadIdx.x))",
                "cuda.syncthreads()",
                "winner = winner_of[0]",
                "if cuda.threadIdx.x == winner:",
                f"    s_0[0] = {moved_as}(a_0)",
                "cuda.syncthreads()",
                "if winner < cuda.blockDim.x:",
                f"    a_0 = {cast}(s_0[0])",
                "    got = True",
                "    break",
            ]
        return [*lines, *indented(found), f"    base += {step}"]

    def after_row(self, kernel: KernelText, *, fused: bool) -> list[str]:
        """Update node v from ``a_i``, or keep those for ``apply``."""
        phase = self.phase
        is_any = phase.combiner == "any"
        kept = [f"acc_{i}[v] = a_{i}" for i in self.width]
        if not fused:
            if not is_any:
                return kept
            kernel.use("touched", "touch_epoch")
            return ["if got:", *indented([*kept, "touched[v] = touch_epoch"])]
        lines = kept if self.plan.spec.delta else []
        if phase.spec.schedule == "changed" and not self.plan.spec.delta:
            test = "not got" if is_any else self.is_nothing("a")
            lines += [f"if {test}:", *indented(self.skip_lines(kernel))]
        return [*lines, *self.update_lines(kernel, "a")]

    def combined_lines(self, kernel: CudaKernel, mapping: str, *, fused: bool) -> list[str]:
        """Combine the messages along row r; update node v, or keep them."""
        lines = []
        for i in self.width:
            lines.append(f"a_{i} = {self.identity(i)}")
            if not fused or self.plan.spec.delta:
                kernel.use(f"acc_{i}")
                lines += [f"if {LEADERS[mapping]}:", f"    a_{i} = acc_{i}[v]"]
        if self.phase.combiner == "any":
            lines.append("got = False")
            if not fused:
                kernel.use("touched", "touch_epoch")
                lines += ["if touched[v] == touch_epoch:", "    continue"]
        lines += self.walk_lines(kernel, mapping)
        return [*lines, *self.end_row(kernel, mapping, fused=fused)]

    # ---- kernels

    def kernels(self) -> list[str]:
        """Return the texts of the phase's kernels."""
        phase = self.phase
        made = [] if phase.kind == "mode" else [self.apply()]
        if phase.functions["aggregate"] is not None:
            made.append(self.totals())
        if phase.functions["active"] is not None:
            made.append(self.active())
        if phase.kind in ("node", "mode"):
            made.append(self.send())
        return [kernel.text() for kernel in (*made, *self.row_kernels())]

    def send(self) -> CudaKernel:
        """Every node's message, once per node."""
        kernel = self.new_kernel("send")
        kernel.use("num_rows", "everyone", "active", "epoch")
        self.visit_all(kernel)
        kernel.add(2, "if everyone or active[v] == epoch:")
        self.add_message(kernel, 3)
        return kernel

    def pull_by(self, mapping: str, *, fused: bool) -> CudaKernel:
        """Combine the messages along each row; fused: and update the node at once."""
        kernel = self.new_kernel(f"{'pull' if fused else 'gather'}_{mapping}")
        if mapping == "block":
            kernel.add(1, *self.shared_lines())
        self.visit(kernel, mapping)
        kernel.add(2, "r = v - row_base", *self.accepts_lines(kernel, updates=fused))
        kernel.add(2, *self.combined_lines(kernel, mapping, fused=fused))
        if fused:
            kernel.add(1, *self.end_parts(kernel))
        return kernel

    def apply(self) -> CudaKernel:
        """Update nodes from the combined messages, and reset those."""
        phase = self.phase
        kernel = self.new_kernel("apply")
        self.visit(kernel, self.by)
        if phase.kind == "local":
            if phase.functions["active"] is not None:
                kernel.use("everyone", "active", "epoch")
                kernel.add(2, "if not (everyone or active[v] == epoch):")
                kernel.add(3, *self.skip_lines(kernel))
            kernel.add(2, *self.update_lines(kernel, None))
        else:
            kernel.use(*(f"acc_{i}" for i in self.width))
            kernel.add(2, *self.accepts_lines(kernel), *self.take_lines(kernel))
            kernel.add(2, *self.update_lines(kernel, "a"))
        kernel.add(1, *self.end_parts(kernel))
        return kernel

    def totals(self) -> CudaKernel:
        """The aggregators over all nodes as they are."""
        kernel = self.new_kernel("totals")
        self.visit(kernel, self.by)
        kernel.add(2, *self.aggregate_lines(kernel, ""))
        kernel.add(1, *self.end_parts(kernel))
        return kernel

    def active(self) -> CudaKernel:
        """List and stamp the nodes of the frontier that may send."""
        active = self.phase.functions["active"]
        assert active is not None  # kernels() checked
        kernel, sides = self.new_kernel("active"), {"node": ("row", "v")}
        kernel.use("num_rows", "everyone", "active", "epoch", "senders", "senders_epoch")
        kernel.use("senders_list", "counts", "senders_at", "row__out_going")
        kernel.add(1, "num_edges = np.int64(0)")
        self.visit_all(kernel)
        kernel.add(2, "if not (everyone or active[v] == epoch):", "    continue")
        kernel.add(2, *self.reduced(kernel, "active", sides))
        call = call_text(kernel, active, (), sides, self.plan)
        kernel.add(2, f"if {self.leader_test(call)}:", "    senders[v] = senders_epoch")
        kernel.add(3, "append_one(senders_list, counts, senders_at, v)")
        kernel.add(3, "num_edges += row__out_going[v]")
        kernel.add(1, "num_edges = warp_sum(num_edges)", "if cuda.laneid == 0:")
        kernel.add(2, "cuda.atomic.add(counts, senders_at + 1, num_edges)")
        return kernel
