"""The kernels of a phase whose program has vector states: a warp visits a row.

Its lanes take the components of a vector, ``j = lane, lane + 32 ...``, so that a warp reads
the row of an array ``[N, K]`` side by side. The messages along a row are combined one after
the other, each component by its own lane: no atomics, and the same floats in every run.
Reductions over components are shuffles, whose result all lanes get. A number of the node
is computed by all lanes and written by the first.

Messages that are numbers are combined as in programs without vectors, the lanes over the
entries of a row; only where each of them reads whole vectors do the lanes walk together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, cast_text
from graphsys.engine.codegen.vector_parts import ComponentLoop, VectorParts, init_lines
from graphsys.engine.cuda.mode_source import ModeWriter
from graphsys.engine.cuda.phase_parts import (
    LOOPS,
    CudaKernel,
    indented,
    lane_dtype,
    places_of,
)
from graphsys.engine.cuda.pull_source import PullWriter

_WARP = 32
_JOINED = {
    "sum": "warp_sum({name})",
    "mean": "warp_sum({name})",
    "max": "warp_maximum({name})",
    "min": "warp_minimum({name})",
    "argmax": "warp_argmax(best_{name}, {name})",
    "argmin": "warp_argmin(best_{name}, {name})",
}


def slots_of(num_components: int) -> int:
    """Return how many components a lane has, at most."""
    return max(-(-num_components // _WARP), 1)


@dataclass(frozen=True, slots=True)
class LaneLoop(ComponentLoop):
    """Who computes the components of a vector: the lanes of a warp."""

    def over(self, lines: Sequence[str]) -> list[str]:
        """Return lines for every component ``j``, at place ``slot`` of its lane."""
        return [
            f"for slot in range({slots_of(self.size)}):",
            f"    j = lane + {_WARP} * slot",
            f"    if j < {self.size}:",
            *indented(list(lines), 2),
        ]

    def joined(self, name: str, operation: str) -> list[str]:
        """Return what makes the whole of a lane's part of a reduction."""
        return [f"{name} = {_JOINED[operation].format(name=name)}"]

    def any_of(self, name: str) -> list[str]:
        """Return what makes a test true where it is for any component."""
        return [f"{name} = cuda.ballot_sync(EVERY_LANE, {name}) != 0"]

    def all_of(self, name: str) -> list[str]:
        """Return what makes a test true where it is for all components."""
        return [f"{name} = cuda.ballot_sync(EVERY_LANE, not {name}) == 0"]

    def once(self, lines: Sequence[str]) -> list[str]:
        """Return lines that the first lane does."""
        return ["if lane == 0:", *indented(list(lines))]


def vector_init(plan: ProgramPlan, init: Lowered) -> CudaKernel:
    """Return the kernel that gives all nodes their first states."""
    kernel = CudaKernel("init", totals=places_of(plan), place="slot")
    kernel.use("num_rows")
    kernel.add(1, "lane = cuda.laneid", "total = num_rows", LOOPS["warp"])
    kernel.add(2, "v = np.int64(k)")
    kernel.add(2, *init_lines(kernel, init, plan, LaneLoop(plan.num_components)))
    return kernel


@dataclass
class CudaVectorWriter(VectorParts, ModeWriter, PullWriter):
    """Writes the kernels of one phase."""

    by: ClassVar[str] = "warp"

    @property
    def components(self) -> ComponentLoop:
        """Who computes the components of a vector."""
        return LaneLoop(self.plan.num_components)

    @property
    def walks_together(self) -> bool:
        """Whether each message of an edge is a number made of whole vectors."""
        message = self.phase.functions["message"]
        return self.phase.kind == "edge" and bool(message and message.reductions)

    def row_kernels(self) -> list[CudaKernel]:
        """Return the kernels that walk rows: by warps, or blocks that find a mode."""
        if self.phase.kind == "mode":
            return [self.mode_pull("block")]
        if self.phase.kind == "local":
            return []
        return [self.pull_by("warp", fused=True), self.pull_by("warp", fused=False)]

    # ---- parts

    def new_kernel(self, what: str) -> CudaKernel:
        """Return an empty kernel of this phase, with the lanes' buffers."""
        kernel = super().new_kernel(what)
        kernel.place = "slot"
        buffers = {
            f"x__{name}": self.plan.dtypes[name]
            for name in self.phase.spec.updates
            if self.plan.components_of(name)
        }
        if self.is_vector:
            buffers["a_0"] = self.phase.message_dtypes[0]
        slots = slots_of(self.plan.num_components)
        for name, dtype in buffers.items():
            kernel.add(1, f"{name} = cuda.local.array({slots}, {cast_text(dtype)})")
        return kernel

    def update_lines(
        self, kernel: KernelText, acc: str | None, *, is_claimed: bool = False
    ) -> list[str]:
        """Update node v from the combined messages; lanes without a component know it."""
        names = [n for n in self.phase.spec.updates if not self.plan.components_of(n)]
        kernel.use(*(f"row__{name}" for name in names))
        known = [f"x__{name} = row__{name}[v]" for name in names]
        return [*known, *super().update_lines(kernel, acc, is_claimed=is_claimed)]

    def shared_by_lanes(self) -> list[str]:
        """Give all lanes what the first one combined."""
        lines = []
        for i in self.width:
            dtype = self.phase.message_dtypes[i]
            moved = f"cuda.shfl_sync(EVERY_LANE, {lane_dtype(dtype)}(a_{i}), 0)"
            lines.append(f"a_{i} = {cast_text(dtype)}({moved})")
        return lines

    def block_update_lines(self, kernel: CudaKernel) -> list[str]:
        """Find a node's most frequent message; the block's first warp updates it."""
        skip = ["if tally == 0:", *indented(self.skip_lines(kernel))]
        first = ["tally = cuda.shfl_sync(EVERY_LANE, tally, 0)", *self.shared_by_lanes()]
        inner = indented([*first, *skip, *self.update_lines(kernel, "a")])
        return [*self.mode_reduce_lines(), "if warp == 0:", *inner]

    # ---- hooks

    def visit_all(self, kernel: CudaKernel) -> None:
        """Open the loop over all nodes v; its body stands at depth 2."""
        kernel.add(1, "lane = cuda.laneid", "total = num_rows", LOOPS["warp"])
        kernel.add(2, "v = np.int64(k)")

    def leader_test(self, test: str) -> str:
        """Return a test that holds for the first lane."""
        return f"lane == 0 and {test}"

    def combined_lines(self, kernel: CudaKernel, mapping: str, *, fused: bool) -> list[str]:
        """Combine the messages along row r; update node v, or keep them."""
        kernel.use("indptr", "indices")
        if self.is_vector:
            return self.vector_lines(kernel, fused=fused)
        return super().combined_lines(kernel, mapping, fused=fused)

    def vector_lines(self, kernel: CudaKernel, *, fused: bool) -> list[str]:
        """Combine the vectors along row r, entry by entry; update node v, or keep them."""
        over, start = self.components.over, self.identity(0)
        if not fused:
            kernel.use("acc_0")
            start = "acc_0[v, j]"
        sides = {"src": ("col", "u"), "dst": ("row", "v")}
        heard = self.heard_lines(kernel, sides, self.seen())
        lines = [*over([f"a_0[slot] = {start}"]), *self.entries(kernel, heard)]
        if not fused:
            return [*lines, *over(["acc_0[v, j] = a_0[slot]"])]
        return [*lines, *self.hear_lines(kernel), *self.update_lines(kernel, "a")]

    def entries(self, kernel: CudaKernel, lines: list[str]) -> list[str]:
        """Walk row r, all lanes together: u sends along entry e."""
        test = self.sends_test(kernel)
        if test:
            lines = [f"if {test}:", *indented(lines)]
        head = "for e in range(np.int64(indptr[r]), np.int64(indptr[r + 1])):"
        return [head, *indented(["u = indices[e]", *lines])]

    def walk_lines(self, kernel: CudaKernel, mapping: str) -> list[str]:
        """Combine the numbers along row r."""
        if self.walks_together:
            return self.entries(kernel, self.together_lines(kernel))
        return super().walk_lines(kernel, mapping)

    def end_row(self, kernel: CudaKernel, mapping: str, *, fused: bool) -> list[str]:
        """Have all lanes update node v, or the first one keep what was combined."""
        if not fused:
            return super().end_row(kernel, mapping, fused=fused)
        return [*self.shared_by_lanes(), *self.after_row(kernel, fused=fused)]

    def together_lines(self, kernel: CudaKernel) -> list[str]:
        """Combine the message along entry e into ``a_i``, which all lanes have."""
        combined = self.combine_lines("a")
        if self.phase.combiner == "any":
            combined += ["got = True", "break"]
            if self.drops:
                combined = [f"if not ({self.is_nothing('m')}):", *indented(combined)]
        return [*self.seen(), *self.fetch_lines(kernel), *combined]

    def take_lines(self, kernel: CudaKernel) -> list[str]:
        """Take the combined message of node v over, and reset it."""
        if not self.is_vector:
            return super().take_lines(kernel)
        over = self.components.over
        taken = [*over(["a_0[slot] = acc_0[v, j]"]), *self.hear_lines(kernel)]
        return [*taken, *over([f"acc_0[v, j] = {self.identity(0)}"])]

    def reset_lines(self) -> list[str]:
        """Have the first lane make the combined number of node v none."""
        return ["cuda.syncwarp()", *self.components.once(super().reset_lines())]
