"""Writing the CPU kernels of a phase whose program has vector states.

A row's messages are combined in a buffer of the thread. Rows of vectors lie far apart, so
they are asked for some entries ahead (1M nodes of 16 float32, 8M entries: 2.1 to 2.5 times
as fast as without). What is not the CPU's alone is in ``vector_parts.py``.
"""

from graphsys.engine.codegen.cpu_phase import CpuPhaseText
from graphsys.engine.codegen.text import KernelText, cast_text
from graphsys.engine.codegen.vector_parts import VectorParts

_AHEAD = 16
"""Entries by which a neighbor's vector is asked for before it is read."""
_LINE = 64
_MOST_BYTES = 512
"""Of a vector that are asked for; the processor fetches on by itself."""


class VectorPhaseText(VectorParts, CpuPhaseText):
    """Writes the kernels of a phase of a program with vector states."""

    def visit_rows(self, kernel: KernelText) -> None:
        """Open the loop over nodes v, with buffers for vectors; see the base."""
        self.add_buffers(kernel)
        super().visit_rows(kernel)

    def add_buffers(self, kernel: KernelText) -> None:
        """Make the buffers of a thread: messages combined, and states that are new."""
        size = self.plan.num_components
        if self.is_vector:
            dtype = cast_text(self.phase.message_dtypes[0])
            kernel.add(1, f"a_0 = np.empty({size}, dtype={dtype})")
        for name in self.phase.spec.updates:
            if self.plan.components_of(name):
                dtype = cast_text(self.plan.dtypes[name])
                kernel.add(1, f"x__{name} = np.empty({size}, dtype={dtype})")

    def edge_lines(self, kernel: KernelText) -> list[str]:
        """Fetch the message along entry e and combine it into ``a_i``."""
        if not self.is_vector:
            return super().edge_lines(kernel)
        phase = self.phase
        lines = self.heard_lines(kernel, {"src": ("col", "u"), "dst": ("row", "v")})
        if phase.kind == "node" or not phase.is_masked:
            return [*self.ask_lines(), *lines]
        kernel.use("everyone", "active")
        test = "if everyone or has_bit(active, np.int64(u) + column_base):"
        return [*self.ask_lines(), test, *(f"    {line}" for line in lines)]

    # ---- fetching ahead

    def far_arrays(self) -> dict[str, int]:
        """Return the arrays whose rows are read of neighbors, with the bytes of a row."""
        size, phase = self.plan.num_components, self.phase
        message = phase.functions["message"]
        if phase.kind == "node":
            return {"in_0": size * phase.message_dtypes[0].itemsize}
        read = () if message is None else message.reads("src")
        return {
            f"col__{name}": size * self.plan.dtypes[name].itemsize
            for name in read
            if self.plan.components_of(name)
        }

    def ask_lines(self) -> list[str]:
        """Ask for the vectors of the neighbor that is read some entries from here."""
        arrays = self.far_arrays()
        if not arrays:
            return []
        lines = [f"far = np.uint64(indices[min(e + {_AHEAD}, last_entry)])"]
        for name, size in arrays.items():
            lines.append(f"far_place = base__{name} + far * np.uint64({size})")
            lines += [
                f"prefetch(far_place + np.uint64({k}))"
                for k in range(0, min(size, _MOST_BYTES), _LINE)
            ]
        return lines

    # ---- kernels

    def pull(self, *, fused: bool) -> KernelText:
        """Combine the messages along each row; fused: and update the node at once."""
        if not self.is_vector:
            return super().pull(fused=fused)
        kernel = self.kernel("pull" if fused else "gather")
        kernel.use("begins", "ends", "indices", "column_base")
        kernel.add(1, "last_entry = np.int64(len(indices)) - 1")
        for name in self.far_arrays():
            kernel.use(name)
            kernel.add(1, f"base__{name} = np.uint64({name}.ctypes.data)")
        self.visit_rows(kernel)
        kernel.add(3, *self.accepts_lines(kernel, updates=fused))
        start = self.identity(0)
        if not fused:
            kernel.use("acc_0")
            start = "acc_0[v, j]"
        over = self.components.over
        kernel.add(3, *over([f"a_0[j] = {start}"]), *self.shift_lines(kernel, "v"))
        kernel.add(3, "for e in range(np.int64(begins[v]), np.int64(ends[v])):")
        kernel.add(4, "u = indices[e]", *self.edge_lines(kernel))
        if fused:
            kernel.add(3, *self.hear_lines(kernel), *self.update_lines(kernel, "a"))
        else:
            kernel.add(3, *over(["acc_0[v, j] = a_0[j]"]))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def apply(self) -> KernelText:
        """Update nodes from the combined messages, and reset those."""
        if not self.is_vector:
            return super().apply()
        kernel = self.kernel("apply")
        self.visit_rows(kernel)
        kernel.use("acc_0")
        kernel.add(3, *self.accepts_lines(kernel))
        over = self.components.over
        kernel.add(3, *over(["a_0[j] = acc_0[v, j]"]), *self.hear_lines(kernel))
        kernel.add(3, *over([f"acc_0[v, j] = {self.identity(0)}"]))
        kernel.add(3, *self.update_lines(kernel, "a"))
        kernel.add(2, *self.end_parts(kernel))
        return kernel

    def active(self) -> KernelText:
        """Set the bit of every node that may send."""
        kernel = super().active()
        sides = {"node": ("row", "v")}
        place = next(i for i, x in enumerate(kernel.lines) if x.lstrip().startswith("if "))
        lines = self.reduced(kernel, "active", sides)
        kernel.lines[place:place] = [f"{'    ' * 3}{line}" for line in lines]
        return kernel
