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

from graphsys.engine.codegen.lowered import Lowered
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text
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

    @property
    def components(self) -> ComponentLoop:
        """Who computes the components of a vector."""
        return LaneLoop(self.plan.num_components)

    @property
    def walks_together(self) -> bool:
        """Whether each message of an edge is a number made of whole vectors."""
        message = self.phase.functions["message"]
        return self.phase.kind == "edge" and bool(message and message.reductions)

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
        if phase.kind == "mode":
            made.append(self.mode_pull("block"))
        elif phase.kind != "local":
            made += [self.pull(fused=True), self.pull(fused=False)]
        return [kernel.text() for kernel in made]

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

    # ---- kernels

    def send(self) -> CudaKernel:
        """Every node's message, once per node."""
        kernel = self.new_kernel("send")
        kernel.use("num_rows", "everyone", "active", "epoch")
        kernel.add(1, "lane = cuda.laneid", "total = num_rows", LOOPS["warp"])
        kernel.add(2, "v = np.int64(k)", "if everyone or active[v] == epoch:")
        self.add_message(kernel, 3)
        return kernel

    def pull(self, *, fused: bool) -> CudaKernel:
        """Combine the messages along each row; fused: and update the node at once."""
        kernel = self.new_kernel(f"{'pull' if fused else 'gather'}_warp")
        self.visit(kernel, "warp")
        kernel.use("indptr", "indices")
        kernel.add(2, "r = v - row_base", *self.accepts_lines(kernel, updates=fused))
        lines = self.vector_lines if self.is_vector else self.number_lines
        kernel.add(2, *lines(kernel, fused=fused))
        if fused:
            kernel.add(1, *self.end_parts(kernel))
        return kernel

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

    def number_lines(self, kernel: CudaKernel, *, fused: bool) -> list[str]:
        """Combine the numbers along row r; update node v, or keep them."""
        is_any = self.phase.combiner == "any"
        lines = [f"a_{i} = {self.identity(i)}" for i in self.width]
        if not fused:
            kernel.use(*(f"acc_{i}" for i in self.width))
            lines += self.components.once([f"a_{i} = acc_{i}[v]" for i in self.width])
        if is_any:
            lines.append("got = False")
            if not fused:
                kernel.use("touched", "touch_epoch")
                lines += ["if touched[v] == touch_epoch:", "    continue"]
        if self.walks_together:
            lines += self.entries(kernel, self.together_lines(kernel))
        elif is_any:
            lines += self.any_lines(kernel, "warp")
        else:
            lines += [*self.row_lines(kernel, "warp"), *self.reduce_lines()]
        after = self.after_row(kernel, fused=fused)
        if not fused:
            return [*lines, *self.components.once(after)]
        return [*lines, *self.shared_by_lanes(), *after]

    def together_lines(self, kernel: CudaKernel) -> list[str]:
        """Combine the message along entry e into ``a_i``, which all lanes have."""
        combined = self.combine_lines("a")
        if self.phase.combiner == "any":
            combined += ["got = True", "break"]
            if self.drops:
                combined = [f"if not ({self.is_nothing('m')}):", *indented(combined)]
        return [*self.seen(), *self.fetch_lines(kernel), *combined]

    def apply(self) -> CudaKernel:
        """Update nodes from the combined messages, and reset those."""
        phase = self.phase
        kernel = self.new_kernel("apply")
        self.visit(kernel, "warp")
        if phase.kind == "local":
            if phase.functions["active"] is not None:
                kernel.use("everyone", "active", "epoch")
                kernel.add(2, "if not (everyone or active[v] == epoch):")
                kernel.add(3, *self.skip_lines(kernel))
            kernel.add(2, *self.update_lines(kernel, None))
            kernel.add(1, *self.end_parts(kernel))
            return kernel
        kernel.use(*(f"acc_{i}" for i in self.width))
        kernel.add(2, *self.accepts_lines(kernel))
        if self.is_vector:
            over = self.components.over
            kernel.add(2, *over(["a_0[slot] = acc_0[v, j]"]), *self.hear_lines(kernel))
            kernel.add(2, *over([f"acc_0[v, j] = {self.identity(0)}"]))
        else:
            kernel.add(2, *self.kept_lines(kernel))
        kernel.add(2, *self.update_lines(kernel, "a"))
        kernel.add(1, *self.end_parts(kernel))
        return kernel

    def kept_lines(self, kernel: CudaKernel) -> list[str]:
        """Take the combined numbers of node v over, and reset them."""
        phase = self.phase
        lines = [f"a_{i} = acc_{i}[v]" for i in self.width]
        if phase.spec.schedule == "changed":
            test = self.is_nothing("a")
            if phase.combiner == "any":
                kernel.use("touched", "touch_epoch")
                test = "not listed and touched[v] != touch_epoch"
            lines += [f"if {test}:", *indented(self.skip_lines(kernel))]
        reset = [f"acc_{i}[v] = {self.identity(i)}" for i in self.width]
        return [*lines, "cuda.syncwarp()", *self.components.once(reset)]

    def totals(self) -> CudaKernel:
        """The aggregators over all nodes as they are."""
        kernel = self.new_kernel("totals")
        self.visit(kernel, "warp")
        kernel.add(2, *self.aggregate_lines(kernel, ""))
        kernel.add(1, *self.end_parts(kernel))
        return kernel

    def active(self) -> CudaKernel:
        """List and stamp the nodes of the frontier that may send."""
        active = self.phase.functions["active"]
        assert active is not None  # kernels() checked
        kernel = self.new_kernel("active")
        kernel.use("num_rows", "everyone", "active", "epoch", "senders", "senders_epoch")
        kernel.use("senders_list", "counts", "senders_at", "row__out_going")
        kernel.add(1, "lane = cuda.laneid", "num_edges = np.int64(0)")
        kernel.add(1, "total = num_rows", LOOPS["warp"])
        kernel.add(2, "v = np.int64(k)", "if not (everyone or active[v] == epoch):")
        kernel.add(3, "continue")
        sides = {"node": ("row", "v")}
        kernel.add(2, *self.reduced(kernel, "active", sides))
        call = call_text(kernel, active, (), sides, self.plan)
        kernel.add(2, f"if lane == 0 and {call}:", "    senders[v] = senders_epoch")
        kernel.add(3, "append_one(senders_list, counts, senders_at, v)")
        kernel.add(3, "num_edges += row__out_going[v]")
        kernel.add(1, "num_edges = warp_sum(num_edges)", "if lane == 0:")
        kernel.add(2, "cuda.atomic.add(counts, senders_at + 1, num_edges)")
        return kernel
