"""Kernels that deliver messages one by one, by atomics: push, and a thread per edge."""

from dataclasses import dataclass

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.codegen.text import KernelText, cast_text
from graphsys.engine.cuda.phase_parts import LOOPS, PLACES, CudaKernel, PhaseParts, indented

_ATOMIC = ("int32", "int64", "uint32", "uint64", "float32", "float64")


def can_combine_atomically(phase: PhasePlan) -> bool:
    """Whether a message can be combined into the receiver's accumulator by one atomic."""
    if phase.kind not in ("node", "edge") or len(phase.message_dtypes) != 1:
        return False
    if phase.spec.stores is not None or phase.combiner in ("argmin", "argmax"):
        return False
    return phase.combiner == "any" or phase.message_dtypes[0].name in _ATOMIC


@dataclass
class PushWriter(PhaseParts):
    """Writes the kernels that deliver messages."""

    def deliver_lines(self, kernel: KernelText) -> list[str]:
        """Combine ``m_0`` into the accumulator of v, or go on to the next edge."""
        phase = self.phase
        kernel.use("acc_0", "touched", "touch_epoch", "touching", "touched_list", "counts")
        kernel.use("at")
        lines: list[str] = []
        fresh = "touched[v] != touch_epoch and "
        fresh += "cuda.atomic.exch(touched, v, touch_epoch) != touch_epoch"
        touch = ["if touching:", "    append_one(touched_list, counts, at + 3, v)"]
        if phase.combiner != "any" or self.drops:
            lines += [f"if {self.is_nothing('m')}:", "    continue"]
        if phase.combiner == "any":
            return [*lines, f"if {fresh}:", *indented(["acc_0[v] = m_0", *touch])]
        if phase.monotone:
            less = "<" if phase.combiner == "minimum" else ">"
            kernel.use(f"col__{phase.monotone}")
            lines += [f"if not m_0 {less} col__{phase.monotone}[v]:", "    continue"]
        atomic = {"sum": "add", "minimum": "min", "maximum": "max"}
        if phase.combiner in atomic:
            lines.append(f"cuda.atomic.{atomic[phase.combiner]}(acc_0, v, m_0)")
        else:
            lines += self.swap_lines(kernel)
        return [*lines, f"if {fresh}:", *indented(touch)]

    def swap_lines(self, kernel: KernelText) -> list[str]:
        """Combine by compare-and-swap on the bits of the accumulator."""
        dtype = self.phase.message_dtypes[0]
        bits = f"np.int{8 * dtype.itemsize}"
        kernel.use("bits_0")
        lines = self.combine_lines("acc")
        combined = [line.replace("acc_0", "wanted") for line in lines]
        return [
            "found = acc_0[v]",
            "while True:",
            "    wanted = found",
            *indented(combined),
            "    if wanted == found:",
            "        break",
            f"    expected = found.view({bits})",
            f"    seen = cuda.atomic.cas(bits_0, v, expected, wanted.view({bits}))",
            "    if seen == expected:",
            "        break",
            f"    found = seen.view({cast_text(dtype)})",
        ]

    def push_by(self, mapping: str) -> CudaKernel:
        """Send along the rows of a list; combine at the neighbors, atomically."""
        phase = self.phase
        kernel = self.new_kernel(f"push_{mapping}")
        kernel.use("nodes", "sizes", "size_at", "row_base", "indptr", "indices")
        kernel.add(1, "lane = cuda.laneid", "total = sizes[size_at]", LOOPS[mapping])
        kernel.add(2, "u = np.int64(nodes[k])", "r = u - row_base")
        if phase.kind == "node":
            kernel.add(2, *self.message_lines(kernel, {"src": ("row", "u")}))
            if self.plan.spec.delta:
                kernel.add(2, *self.delta_lines(kernel, mapping))
            if phase.combiner != "any" or self.drops:
                kernel.add(2, f"if {self.is_nothing('m')}:", "    continue")
        first, step = PLACES[mapping]
        begin, end = "np.int64(indptr[r])", "np.int64(indptr[r + 1])"
        kernel.add(2, f"for e in range({begin} + {first}, {end}, {step}):")
        kernel.add(3, *self.seen(), "v = indices[e]", *self.filter_lines(kernel))
        if phase.kind == "edge":
            sides = {"src": ("row", "u"), "dst": ("col", "v")}
            kernel.add(3, *self.message_lines(kernel, sides))
        kernel.add(3, *self.deliver_lines(kernel))
        return kernel

    def delta_lines(self, kernel: CudaKernel, mapping: str) -> list[str]:
        """Send what the message changed by; all threads of a row read before one writes."""
        kernel.use("sent_0")
        lines = ["whole = m_0", "m_0 = m_0 - sent_0[u]"]
        if mapping == "thread":
            return [*lines, "sent_0[u] = whole"]
        barrier, leader = {
            "warp": ("cuda.syncwarp()", "lane == 0"),
            "block": ("cuda.syncthreads()", "cuda.threadIdx.x == 0"),
        }[mapping]
        return [*lines, barrier, f"if {leader}:", "    sent_0[u] = whole"]

    def gather_edge(self) -> CudaKernel:
        """A thread per entry of the rows; combine at the row's node, atomically."""
        kernel = self.new_kernel("gather_edge")
        kernel.use("num_rows", "row_base", "indptr", "indices")
        kernel.add(1, "total = np.int64(indptr[num_rows])", LOOPS["thread"])
        kernel.add(2, *self.seen(), "e = np.int64(k)")
        kernel.add(2, "v = row_of(indptr, num_rows, e) + row_base")
        kernel.add(2, "u = indices[e]")
        test = self.sends_test(kernel)
        if test:
            kernel.add(2, f"if not ({test}):", "    continue")
        kernel.add(2, *self.filter_lines(kernel), *self.fetch_lines(kernel))
        kernel.add(2, *self.deliver_lines(kernel))
        return kernel

    def push_edge(self) -> CudaKernel:
        """A thread per entry of the listed rows, found by their offsets."""
        kernel = self.new_kernel("push_edge")
        kernel.use("nodes", "sizes", "size_at", "row_base", "indptr", "indices", "offsets")
        kernel.add(1, "rows = sizes[size_at]", "total = np.int64(0)")
        kernel.add(1, "if rows > 0:", "    total = offsets[rows]", LOOPS["thread"])
        kernel.add(2, *self.seen(), "i = row_of(offsets, rows, np.int64(k))")
        kernel.add(2, "u = np.int64(nodes[i])")
        kernel.add(2, "e = np.int64(indptr[u - row_base]) + k - offsets[i]")
        kernel.add(2, "v = indices[e]", *self.filter_lines(kernel))
        sides = {"src": ("row", "u"), "dst": ("col", "v")}
        kernel.add(2, *self.message_lines(kernel, sides), *self.deliver_lines(kernel))
        return kernel
