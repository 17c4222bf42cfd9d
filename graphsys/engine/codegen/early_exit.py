"""The kernel that counts how far rows are walked, for whoever profiles a run.

Not every entry of a row is looked at: nodes that accept no message are skipped, and where
any one message will do, the row ends at the first. The kernel walks the rows just as
``pull`` would and writes the entries it looked at; it changes nothing.
"""

from typing import Any

from graphsys.engine.codegen.plan import PhasePlan
from graphsys.engine.codegen.text import KernelText


def has_trips(phase: PhasePlan) -> bool:
    """Return whether a phase may look at fewer entries than its rows have."""
    if phase.kind in ("local", "mode"):
        return False
    return phase.combiner == "any" or phase.functions["accepts"] is not None


def trips_kernel(writer: Any) -> KernelText:
    """Return the text of the kernel.

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
