"""What the CUDA kernels of a phase are put together from: loops, reductions, counters."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphsys.engine.codegen.phase import PhaseText
from graphsys.engine.codegen.plan import ProgramPlan
from graphsys.engine.codegen.text import KernelText, call_text, cast_text
from graphsys.engine.cuda.clocks import ARGUMENTS as CLOCK_ARGUMENTS

LOOPS = {
    "thread": "for k in range(cuda.grid(1), total, cuda.gridsize(1)):",
    "warp": "for k in range(cuda.grid(1) // 32, total, cuda.gridsize(1) // 32):",
    "block": "for k in range(cuda.blockIdx.x, total, cuda.gridDim.x):",
}
PLACES = {
    "thread": ("0", "1"),
    "warp": ("lane", "32"),
    "block": ("cuda.threadIdx.x", "cuda.blockDim.x"),
}
LEADERS = {"thread": "True", "warp": "lane == 0", "block": "cuda.threadIdx.x == 0"}
"""Which of those who walk a row has what all of them combined."""
_BEGIN_CLOCK = (
    "    lanes_seen = cuda.shared.array(33, np.int32)",
    "    clock_begin = begin_clock(lanes_seen)",
)
_END_CLOCK = "    end_clock(clock_begin, clock_records, lanes_seen, lane_steps)"


@dataclass
class CudaKernel(KernelText):
    """The lines of one CUDA kernel and the arguments that they need.

    Attributes:
        totals: Place of every aggregator in the array of totals, which stays on the device.
        clocked: Whether it writes down clocks and lanes: see ``kernels/cuda/clocks.py``.
    """

    totals: dict[str, int] = field(default_factory=dict)
    clocked: bool = False

    def text(self) -> str:
        """Return the kernel and its entry in the module's table."""
        read = [name for name in self.uses if name.startswith("total__")]
        if read:
            self.use("totals")
        uses = tuple(name for name in self.uses if name not in read)
        places = [f"    {name} = totals[{self.totals[name[7:]]}]" for name in read]
        body = [*places, *self.lines]
        if self.clocked:
            uses = (*uses, *CLOCK_ARGUMENTS)
            body = [*_BEGIN_CLOCK, *body, _END_CLOCK]
        lines = ["@kernel", f"def {self.name}({', '.join(uses)}):", *body]
        return "\n".join(
            [*lines, "", f'KERNELS["{self.name}"] = ({self.name}, {uses!r})', ""]
        )


def places_of(plan: ProgramPlan) -> dict[str, int]:
    """Return the place of every aggregator among the totals."""
    return {name: i for i, name in enumerate(plan.spec.aggregators)}


def indented(lines: list[str], by: int = 1) -> list[str]:
    """Return lines further to the right."""
    return [f"{'    ' * by}{line}" for line in lines]


def lane_dtype(dtype: np.dtype[Any]) -> str:
    """Return the type in which a value goes from lane to lane."""
    if dtype.name in ("float32", "float64", "int32", "int64"):
        return f"np.{dtype.name}"
    return "np.int64" if dtype.itemsize >= 4 else "np.int32"


@dataclass
class PhaseParts(PhaseText):
    """Parts of the kernels of one phase.

    Attributes:
        clocked: Whether the kernels write down clocks and lanes.
    """

    clocked: bool = False

    def new_kernel(self, what: str) -> CudaKernel:
        """Return an empty kernel of this phase."""
        return CudaKernel(
            self.name(what), self.phase, totals=places_of(self.plan), clocked=self.clocked
        )

    def seen(self) -> list[str]:
        """Count the lanes that take a step of a loop over rows, where that is asked for."""
        return ["see_lanes(lanes_seen)"] if self.clocked else []

    def visit(self, kernel: CudaKernel, mapping: str) -> None:
        """Open the loop over nodes v in rows r; its body stands at depth 2."""
        kernel.use("nodes", "sizes", "size_at", "listed", "num_rows", "row_base")
        kernel.add(1, "lane = cuda.laneid", *self.begin_parts())
        kernel.add(1, "total = sizes[size_at] if listed else num_rows", LOOPS[mapping])
        kernel.add(2, "v = np.int64(nodes[k]) if listed else np.int64(k) + row_base")

    def begin_parts(self) -> list[str]:
        """Start the counters of a thread."""
        starts = {"sum": "0.0", "minimum": "math.inf", "maximum": "-math.inf"}
        totals = self.plan.spec.aggregators.values()
        lines = ["num_changed = np.int64(0)", "num_edges = np.int64(0)"]
        return [
            *lines,
            *(f"part_{i} = {starts[t.operation]}" for i, t in enumerate(totals)),
        ]

    def end_parts(self, kernel: KernelText) -> list[str]:
        """Add the counters of all threads up: atomics of whole numbers, parts per warp."""
        kernel.use("counts", "at", "next_at", "listing")
        lines = [
            "num_changed = warp_sum(num_changed)",
            "num_edges = warp_sum(num_edges)",
            "if lane == 0 and num_changed > 0:",
            "    cuda.atomic.add(counts, at + 2, num_changed)",
            "    cuda.atomic.add(counts, next_at + 1, num_edges)",
            "    if not listing:",
            "        cuda.atomic.add(counts, next_at, num_changed)",
        ]
        totals = list(self.plan.spec.aggregators.values())
        if self.phase.functions["aggregate"] is None:
            return lines
        kernel.use("partial", "part_base")
        lines.append("row = part_base + cuda.grid(1) // 32")
        for i, total in enumerate(totals):
            lines += [
                f"part_{i} = warp_{total.operation}(part_{i})",
                "if lane == 0:",
                f"    partial[row * {len(totals)} + {i}] = part_{i}",
            ]
        return lines

    def change_lines(self, kernel: KernelText, test: str) -> list[str]:
        """Note that v changed: in the next list, or by a stamp."""
        kernel.use("changed", "next_epoch", "row__out_going", "listing", "next_list")
        kernel.use("counts", "next_at")
        if self.plan.spec.delta:
            test = self.delta_test(kernel)
        return [
            f"if {test}:",
            "    num_changed += 1",
            "    num_edges += row__out_going[v]",
            "    if listing:",
            "        append_one(next_list, counts, next_at, v)",
            "    else:",
            "        changed[v] = next_epoch",
        ]

    def reduce_lines(self, steps: str = "16") -> list[str]:
        """Combine ``a_i`` of all lanes into lane 0's."""
        lines = [f"step = {steps}", "while step > 0:"]
        for i in self.width:
            dtype = self.phase.message_dtypes[i]
            moved = f"cuda.shfl_down_sync(EVERY_LANE, {lane_dtype(dtype)}(a_{i}), step)"
            lines.append(f"    m_{i} = {cast_text(dtype)}({moved})")
        lines += indented(self.combine_lines("a"))
        return [*lines, "    step //= 2"]

    def shared_lines(self) -> list[str]:
        """Room for one combined message per warp of a block."""
        lines = [
            f"s_{i} = cuda.shared.array(32, {lane_dtype(self.phase.message_dtypes[i])})"
            for i in self.width
        ]
        if self.phase.combiner == "any":
            lines.append("winner_of = cuda.shared.array(1, np.int32)")
        return [*lines, "warp = cuda.threadIdx.x // 32"]

    def block_reduce_lines(self) -> list[str]:
        """Combine ``a_i`` of a block's threads into thread 0's."""
        lines = [*self.reduce_lines(), "if lane == 0:"]
        for i in self.width:
            moved_as = lane_dtype(self.phase.message_dtypes[i])
            lines.append(f"    s_{i}[warp] = {moved_as}(a_{i})")
        lines += ["cuda.syncthreads()", "if warp == 0:"]
        for i in self.width:
            cast = cast_text(self.phase.message_dtypes[i])
            lines += [
                f"    a_{i} = {self.identity(i)}",
                "    if lane < cuda.blockDim.x // 32:",
                f"        a_{i} = {cast}(s_{i}[lane])",
            ]
        return [*lines, *indented(self.reduce_lines()), "cuda.syncthreads()"]

    def fetch_lines(self, kernel: CudaKernel) -> list[str]:
        """The message along entry e from u to v as ``m_i``."""
        phase = self.phase
        if phase.kind == "node":
            kernel.use(*(f"in_{i}" for i in self.width))
            return [f"m_{i} = in_{i}[u]" for i in self.width]
        lines = self.message_lines(kernel, {"src": ("col", "u"), "dst": ("row", "v")})
        if phase.spec.stores is not None:
            kernel.use(f"stored__{phase.spec.stores}", "edge_base")
            lines.append(f"stored__{phase.spec.stores}[e + edge_base] = m_0")
        return lines

    def sends_test(self, kernel: CudaKernel) -> str:
        """Whether u sends; empty where its message says so itself."""
        phase = self.phase
        if phase.combiner != "any" and (phase.kind == "node" or not phase.is_masked):
            return ""
        kernel.use("everyone", "active", "epoch")
        return "everyone or active[u] == epoch"

    def filter_lines(self, kernel: CudaKernel) -> list[str]:
        """Leave out an edge whose receiver v takes no messages."""
        accepts = self.phase.functions["accepts"]
        if accepts is None:
            return []
        call = call_text(kernel, accepts, (), {"node": ("col", "v")}, self.plan)
        return [f"if not {call}:", "    continue"]
