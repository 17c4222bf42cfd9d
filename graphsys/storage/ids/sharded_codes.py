"""The codes of a stream of ids, shard after shard."""

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import run_parallel
from graphsys.kernels.cpu.text import dictionary
from graphsys.storage.scratch import Scratch


class ShardedCodes:
    """Room for the codes of every shard, and their translation to numbers.

    Args:
        scratch: Where the codes go.
        lengths: Appearances of every shard's ids in the stream.

    Attributes:
        begins: First entry of every shard, int64 ``[S]``.
        bases: First code of every shard among the codes of all, and their number
            ``[S + 1]``; set when all shards are encoded.
    """

    def __init__(self, scratch: Scratch, lengths: list[int]) -> None:
        ends = np.cumsum([0, *lengths]).astype(np.int64)
        self.begins = ends[:-1]
        self.bases = np.zeros(len(lengths) + 1, dtype=np.int64)
        self._ends = ends
        self._scratch = scratch
        self._codes = scratch.array(int(ends[-1]), np.uint32)

    def of(self, shard: int) -> npt.NDArray[np.uint32]:
        """Return the codes of a shard, uint32, to be written."""
        return self._codes[self._ends[shard] : self._ends[shard + 1]]

    def translate(self, numbers: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Return the numbers of all entries, shard after shard; the codes are gone.

        A shard's numbers fit the cache, where those of all would not.

        Args:
            numbers: Number by code, uint32 or int64.
        """
        out = self._codes
        # Of the same size a number takes its code's place, and no second array is needed.
        if numbers.dtype != out.dtype:
            out = self._scratch.array(len(out), numbers.dtype)

        def translate(shard: int) -> None:
            entries = slice(self._ends[shard], self._ends[shard + 1])
            own = numbers[self.bases[shard] : self.bases[shard + 1]]
            dictionary.translate_codes(self._codes[entries], own, out[entries])

        run_parallel(translate, range(len(self.begins)))
        del self._codes
        return out
