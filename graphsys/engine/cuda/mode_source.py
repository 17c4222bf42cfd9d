"""The kernel that finds the most frequent message of every node, by sorting."""

from dataclasses import dataclass

from graphsys.engine.codegen.text import cast_text
from graphsys.engine.cuda.phase_parts import (
    PLACES,
    CudaKernel,
    PhaseParts,
    indented,
    lane_dtype,
)


@dataclass
class ModeWriter(PhaseParts):
    """Writes the kernels of phases that combine by ``gs.mode``."""

    def mode_pull(self, mapping: str) -> CudaKernel:
        """The most frequent message of each node over up to two sets of rows, by sorting.

        A node's messages are copied to its own part of ``scratch``, as long as its rows.
        """
        dtype = self.phase.message_dtypes[0]
        kernel = self.new_kernel(f"pull_{mapping}")
        first, step = PLACES[mapping]
        if mapping == "block":
            kernel.add(1, *self.shared_lines())
            kernel.add(1, "tallies = cuda.shared.array(32, np.int64)")
        self.visit(kernel, mapping)
        kernel.use("indptr", "indices", "other_indptr", "other_indices", "in_0", "scratch")
        kernel.use("both")
        kernel.add(2, "r = v - row_base", *self.accepts_lines(kernel))
        kernel.add(2, "begin = np.int64(indptr[r])", "split = np.int64(indptr[r + 1])")
        kernel.add(2, "start, count = begin, split - begin")
        kernel.add(2, "if both:", "    other = np.int64(other_indptr[r])")
        kernel.add(3, "more = np.int64(other_indptr[r + 1]) - other", "start += other")
        kernel.add(3, f"for i in range({first}, more, {step}):")
        kernel.add(4, *self.seen())
        kernel.add(4, "scratch[start + count + i] = in_0[other_indices[other + i]]")
        kernel.add(
            2, f"for i in range({first}, split - begin, {step}):", *indented(self.seen())
        )
        kernel.add(3, "scratch[start + i] = in_0[indices[begin + i]]")
        kernel.add(2, "if both:", "    count += more")
        kernel.add(2, "if count == 0:", *indented(self.skip_lines(kernel)))
        # Sorted messages make runs: the longest is found without a table, which no lane has
        # room for.
        sort = "sort_alone" if mapping == "thread" else "sort_together"
        kernel.add(2, f"{sort}(scratch, start, count)")
        kernel.add(2, "tally = np.int64(0)", f"a_0 = {cast_text(dtype)}(0)")
        kernel.add(2, f"for i in range(start + {first}, start + count, {step}):")
        # A run is counted where it begins, by one lane.
        test = "(i == start or scratch[i] != scratch[i - 1])"
        if self.drops or self.phase.is_masked:
            test += f" and scratch[i] != {self.identity(0)}"
        kernel.add(3, f"if {test}:")
        kernel.add(4, "length = run_length(scratch, i, start + count)")
        kernel.add(4, "if length > tally:", "    tally = length", "    a_0 = scratch[i]")
        if mapping == "thread":
            kernel.add(2, "if tally == 0:", *indented(self.skip_lines(kernel)))
            kernel.add(2, *self.update_lines(kernel, "a"))
        else:
            kernel.add(2, *self.block_update_lines(kernel))
        kernel.add(1, *self.end_parts(kernel))
        return kernel

    def block_update_lines(self, kernel: CudaKernel) -> list[str]:
        """Find the most frequent message of a block's node v, and update the node."""
        skip = ["if tally == 0:", *indented(self.skip_lines(kernel))]
        inner = indented([*skip, *self.update_lines(kernel, "a")])
        return [*self.mode_reduce_lines(), "if cuda.threadIdx.x == 0:", *inner]

    def mode_reduce_lines(self) -> list[str]:
        """Find the highest tally of a block, and the smallest value among equals."""
        dtype = self.phase.message_dtypes[0]
        moved_as, cast = lane_dtype(dtype), cast_text(dtype)
        reduce = [
            "step = 16",
            "while step > 0:",
            "    more = cuda.shfl_down_sync(EVERY_LANE, tally, step)",
            f"    m_0 = {cast}(cuda.shfl_down_sync(EVERY_LANE, {moved_as}(a_0), step))",
            "    if more > tally or (more == tally and m_0 < a_0):",
            "        tally = more",
            "        a_0 = m_0",
            "    step //= 2",
        ]
        return [
            *reduce,
            "if lane == 0:",
            "    tallies[warp] = tally",
            f"    s_0[warp] = {moved_as}(a_0)",
            "cuda.syncthreads()",
            "if warp == 0:",
            "    tally = np.int64(0)",
            "    if lane < cuda.blockDim.x // 32:",
            "        tally = tallies[lane]",
            f"        a_0 = {cast}(s_0[lane])",
            *indented(reduce),
            "cuda.syncthreads()",
        ]
