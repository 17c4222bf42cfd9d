"""Kernels that run many supersteps in one launch, with barriers across the grid.

The loop over supersteps is on the device; inside it stand the lines of the kernels that
would be launched one by one, with ``grid.sync()`` between them. The launch is cooperative:
every block must be resident. Further arguments:

======================  =========================================================
``max_steps``           return after so many supersteps
``edge_limit``          return when the next frontier has more edges
``stop_when_same``      return when no node changed
``num_sides``           1 or 2 sets of rows to push along
``first__``, ``second__``  the rows' arrays of both
``totals_log``          the totals of every superstep
======================  =========================================================

Every superstep counts in a row of its own; the number of supersteps that were run stands
at place ``STEPS`` of the first row.
"""

from dataclasses import dataclass

from graphsys.engine.codegen.lowered import FORWARD
from graphsys.engine.codegen.plan import PhasePlan, ProgramPlan
from graphsys.engine.cuda.arrays import CHANGED, EDGES, SIZE, STEPS, TOUCHED, WIDTH
from graphsys.engine.cuda.phase_parts import CudaKernel, indented
from graphsys.engine.cuda.pull_source import PullWriter
from graphsys.engine.cuda.push_source import PushWriter, can_combine_atomically

FUSED_MAPPINGS = ("thread", "warp")
"""Who visits a row inside a fused kernel; a block's shared memory would be another's."""

_OWN = frozenset(
    (
        "at",
        "next_at",
        "size_at",
        "sizes",
        "row_base",
        "listed",
        "listing",
        "touching",
        "part_base",
    )
)
"""Arguments of the parts that the loop sets itself."""

_HEAD = (
    "grid = cuda.cg.this_grid()",
    "sizes = counts",
    "row_base = np.int64(0)",
    "part_base = np.int64(0)",
    "at = np.int64(0)",
    "done = np.int64(0)",
)
_TAIL = ("if cuda.grid(1) == 0:", f"    counts[{STEPS}] = done")


def _is_plain(plan: ProgramPlan, phase: PhasePlan) -> bool:
    """Whether a phase repeats, asks for nothing of the host, and keeps nothing on edges."""
    if not phase.spec.repeat or phase.functions["active"] is not None:
        return False
    message = phase.functions["message"]
    if message is None or phase.uses_edge_states or plan.spec.delta:
        return False
    return FORWARD not in (*message.reads("edge"), *message.reads("reverse"))


def can_fuse_push(plan: ProgramPlan, phase: PhasePlan) -> bool:
    """Whether supersteps that push can follow one another on the device."""
    return (
        _is_plain(plan, phase)
        and phase.spec.schedule == "changed"
        and phase.can_push
        and can_combine_atomically(phase)
        and not phase.buffered & phase.read_at
    )


def can_fuse_pull(plan: ProgramPlan, phase: PhasePlan) -> bool:
    """Whether supersteps in which all send can follow one another on the device."""
    is_row_wise = phase.kind in ("node", "edge")
    return _is_plain(plan, phase) and phase.spec.schedule == "all" and is_row_wise


@dataclass
class FusedWriter(PullWriter, PushWriter):
    """Writes the kernels that run several supersteps."""

    def fused(self) -> list[CudaKernel]:
        """Return the phase's fused kernels, or none."""
        if can_fuse_push(self.plan, self.phase):
            return [self.push_fused(mapping) for mapping in FUSED_MAPPINGS]
        if can_fuse_pull(self.plan, self.phase):
            return [self.pull_fused(mapping) for mapping in FUSED_MAPPINGS]
        return []

    def push_fused(self, mapping: str) -> CudaKernel:
        """Push along the frontier's rows and update who was touched, until none changes."""
        kernel = self.new_kernel(f"push_fused_{mapping}")
        push, apply = self.push_by(mapping), self.apply()
        kernel.use(*push.uses, *apply.uses, "counts", "max_steps", "edge_limit")
        kernel.use("nodes", "next_list", "touched_list")
        in_place = [name for name in kernel.uses if name.startswith("new__")]
        kernel.add(1, *_HEAD, "listed = True", "listing = True", "touching = True")
        kernel.add(1, "this_list = nodes")
        kernel.add(1, *(f"{name} = row__{name[5:]}" for name in in_place))
        kernel.add(1, "while done < max_steps:")
        kernel.add(2, *self.begin_lines(kernel), "nodes = this_list", "size_at = at")
        own = {*in_place, *self.push_lines(kernel, push)}
        kernel.add(2, "grid.sync()", "nodes = touched_list", f"size_at = at + {TOUCHED}")
        kernel.add(1, *apply.lines)
        kernel.add(2, "grid.sync()", *self.total_lines(kernel))
        kernel.add(2, *swap_lines("this_list", "next_list"), "touch_epoch += 1")
        kernel.add(2, *self.advance_lines(kernel))
        kernel.add(2, f"if counts[at + {SIZE}] == 0 or counts[at + {EDGES}] > edge_limit:")
        kernel.add(3, "break")
        return self.finished(kernel, own)

    def push_lines(self, kernel: CudaKernel, push: CudaKernel) -> set[str]:
        """Push along one set of rows, or along two; return the names set here."""
        if self.phase.spec.direction != "both":
            kernel.add(1, *push.lines)
            return set()
        rows = [n for n in push.uses if n in ("indptr", "indices") or n[:6] == "edge__"]
        kernel.use("num_sides")
        kernel.add(2, "for side in range(num_sides):")
        for name in rows:
            kernel.use(f"first__{name}", f"second__{name}")
            kernel.add(3, f"{name} = first__{name} if side == 0 else second__{name}")
        kernel.add(2, *push.lines)
        return set(rows)

    def pull_fused(self, mapping: str) -> CudaKernel:
        """Send from all nodes, pull and update all, as often as is asked for."""
        kernel = self.new_kernel(f"pull_fused_{mapping}")
        pull = self.pull_by(mapping, fused=True)
        send = self.send() if self.phase.kind == "node" else None
        kernel.use(*pull.uses, *(send.uses if send else ()))
        kernel.use("counts", "max_steps", "stop_when_same")
        buffered = sorted(self.phase.buffered & set(self.phase.spec.updates))
        kernel.use(*(f"{side}__{name}" for name in buffered for side in ("row", "new")))
        aliases = [f"{side}__{name}" for name in buffered for side in ("col", "at")]
        aliases = [name for name in aliases if name in kernel.uses]
        kernel.add(1, *_HEAD, "listed = False", "listing = False")
        kernel.add(1, "while done < max_steps:")
        kernel.add(2, *self.begin_lines(kernel), "size_at = at")
        kernel.add(2, *(f"{a} = row__{a.partition('__')[2]}" for a in aliases))
        if send is not None:
            kernel.add(1, *send.lines)
            kernel.add(2, "grid.sync()")
        kernel.add(1, *pull.lines)
        kernel.add(2, "grid.sync()", *self.total_lines(kernel))
        for name in buffered:
            kernel.add(2, *swap_lines(f"row__{name}", f"new__{name}"))
        kernel.add(2, *self.advance_lines(kernel))
        kernel.add(2, f"if stop_when_same and counts[at - {WIDTH - CHANGED}] == 0:")
        kernel.add(3, "break")
        return self.finished(kernel, set(aliases))

    def begin_lines(self, kernel: CudaKernel) -> list[str]:
        """Clear the row of counters after the next, which nobody counts in yet."""
        lines = [
            f"next_at = at + {WIDTH}",
            f"if cuda.grid(1) < {WIDTH}:",
            f"    counts[next_at + {WIDTH} + cuda.grid(1)] = 0",
        ]
        for name in kernel.uses:
            if name.startswith("total__"):
                lines.append(f"{name} = totals[{kernel.totals[name[7:]]}]")
        return lines

    def total_lines(self, kernel: CudaKernel) -> list[str]:
        """Reduce the warps' parts of the totals; keep them for the host too."""
        if self.phase.functions["aggregate"] is None:
            return []
        width = len(self.plan.spec.aggregators)
        kernel.use("partial", "operations", "totals", "totals_log")
        lines = [
            "warps = cuda.gridsize(1) // 32",
            f"reduce_parts(partial, warps, {width}, operations, totals)",
            "if lane == 0:",
            f"    for t in range({width}):",
            f"        totals_log[done * {width} + t] = totals[t]",
        ]
        return ["if cuda.grid(1) < 32:", *indented(lines), "grid.sync()"]

    def advance_lines(self, kernel: CudaKernel) -> list[str]:
        """Go on to the next superstep."""
        lines = ["at = next_at", "done += 1"]
        if "run__superstep" in kernel.uses:
            lines.append("run__superstep += 1")
        return lines

    def finished(self, kernel: CudaKernel, own: set[str]) -> CudaKernel:
        """Leave out of the arguments what the kernel sets itself."""
        kernel.add(1, *_TAIL)
        read = {name for name in kernel.uses if name.startswith("total__")}
        if read:
            kernel.use("totals")
        kernel.uses = dict.fromkeys(n for n in kernel.uses if n not in _OWN | own | read)
        return kernel


def swap_lines(one: str, other: str) -> list[str]:
    """Exchange two arrays."""
    return [f"spare = {one}", f"{one} = {other}", f"{other} = spare"]
