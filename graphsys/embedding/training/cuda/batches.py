"""Batches on their way to the device: laid out by the host, copied while another trains."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.core.triton.device import is_interpreted
from graphsys.kernels.cpu.embedding import batches as layout
from graphsys.kernels.cpu.embedding.chunk import Chunk, Edges, allocate_chunk
from graphsys.kernels.cpu.embedding.step import Settings

DEPTH = 3
"""Batches under way: one trained, one copied, one laid out."""

_FLOATS = ("weights", "bias")


class Shape(NamedTuple):
    """What a bucket's batches have in common.

    Attributes:
        num_src, num_dst: Rows of the two partitions.
        num_relations: Relations of the edge type.
        is_shared: Whether both sides are the same partition.
        is_reciprocal: Whether relations have two operators.
        is_operated: Whether operators act at all.
        run: Most positions of a run.
    """

    num_src: int
    num_dst: int
    num_relations: int
    is_shared: bool
    is_reciprocal: bool
    is_operated: bool
    run: int


def capacities(edges: Edges, num_drawn: int, shape: Shape) -> dict[str, int]:
    """Return how long the arrays of a bucket's batches must be at least."""
    sizes = edges.chunks[:, 1] - edges.chunks[:, 0]
    pools = sizes + num_drawn
    runs = np.minimum(sizes, shape.num_relations) + pools // shape.run + 2
    chunks = int(np.diff(edges.batches).max(initial=1))
    positions = _largest(pools, edges.batches)
    rows = min(2 * positions, shape.num_src + shape.num_dst)
    num_runs = _largest(runs, edges.batches)
    relations = min(shape.num_relations, num_runs)
    return {
        "chunk_begin": chunks,
        "chunk_size": chunks,
        "chunk_pool": chunks,
        "nodes": 2 * positions,
        "used": rows,
        "used_begin": rows + 1,
        "members": 2 * positions,
        "run_begin": num_runs,
        "run_length": num_runs,
        "run_relation": num_runs,
        "touched": relations,
        "touched_begin": relations + 1,
        "touched_runs": num_runs,
        "weights": positions,
        "bias": 2 * positions,
    }


def _largest(sizes: npt.NDArray[np.int64], batches: npt.NDArray[np.int64]) -> int:
    totals = np.append(0, np.cumsum(sizes))[batches]
    return int(np.diff(totals).max(initial=1))


class Place:
    """Room for one batch on the host, and the same room on the device.

    Both are one block of 4-byte words, so that a batch is one copy.
    """

    def __init__(self, lengths: dict[str, int], device: Any) -> None:
        import torch

        total = sum(lengths.values())
        is_real = not is_interpreted()
        cuda: Any = torch.cuda
        self._host = torch.empty(total, dtype=torch.int32, pin_memory=is_real)
        self._device = torch.empty(total, dtype=torch.int32, device=device)
        self.counts = np.zeros(layout.NUM_COUNTS, dtype=np.int64)
        self.on_device: dict[str, Any] = {}
        self.copied = cuda.Event() if is_real else None
        self.trained = cuda.Event() if is_real else None
        views: dict[str, Any] = {}
        begin = 0
        for name, length in lengths.items():
            here = self._host[begin : begin + length].numpy()
            there = self._device[begin : begin + length]
            is_float = name in _FLOATS
            views[name] = here.view(np.float32) if is_float else here
            self.on_device[name] = there.view(torch.float32) if is_float else there
            begin += length
        self.on_host = layout.BatchArrays(**views)

    def send(self, stream: Any) -> None:
        """Copy the batch to the device; the current stream waits for it."""
        import torch

        if self.copied is None:
            self._device.copy_(self._host)
            return
        with torch.cuda.stream(stream):
            self._device.copy_(self._host, non_blocking=True)
            self.copied.record(stream)
        torch.cuda.current_stream().wait_event(self.copied)

    def release(self) -> None:
        """Note that the batch is trained once the current stream has come here."""
        if self.trained is not None:
            self.trained.record()

    def wait(self) -> None:
        """Wait until the batch that was last here is trained."""
        if self.trained is not None:
            self.trained.synchronize()


class BatchSource:
    """Lays out the batches of a bucket in :data:`DEPTH` places in turn."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._lengths: dict[str, int] = {}
        self._places: list[Place] = []
        self._slot = np.full(0, -1, dtype=np.int32)
        self._relation_slot = np.full(0, -1, dtype=np.int32)
        self._scratch = np.empty((2, 0), dtype=np.int32)
        self._chunk: Chunk | None = None

    def begin(self, edges: Edges, settings: Settings, shape: Shape) -> None:
        """Make room for the batches of a bucket."""
        self._edges, self._settings, self._shape = edges, settings, shape
        candidates = settings.candidates
        num_drawn = int(candidates.pools.begins[-1])
        needed = capacities(edges, num_drawn, shape)
        if any(needed[name] > self._lengths.get(name, 0) for name in needed):
            for place in self._places:
                place.wait()
            self._lengths = {n: max(k, self._lengths.get(n, 0)) for n, k in needed.items()}
            self._places = [Place(self._lengths, self._device) for _ in range(DEPTH)]
            self._scratch = np.empty((2, self._lengths["nodes"]), dtype=np.int32)
        if self._slot.size < shape.num_src + shape.num_dst:
            self._slot = np.full(shape.num_src + shape.num_dst, -1, dtype=np.int32)
        if self._relation_slot.size < shape.num_relations:
            self._relation_slot = np.full(shape.num_relations, -1, dtype=np.int32)
        sizes = edges.chunks[:, 1] - edges.chunks[:, 0]
        longest = int(sizes.max(initial=1))
        pool = longest + num_drawn
        if self._chunk is None or self._chunk.src.size < pool:
            self._chunk = allocate_chunk(longest, pool, candidates, 1, False)
        elif self._chunk.weights.size < longest:
            pool = max(pool, self._chunk.src.size)
            self._chunk = allocate_chunk(longest, pool, candidates, 1, False)

    @property
    def max_positions(self) -> int:
        """Positions of the largest batch there is room for."""
        return self._lengths["weights"]

    @property
    def max_runs(self) -> int:
        """Runs of the largest batch there is room for."""
        return self._lengths["run_begin"]

    def lay_out(self, b: int) -> Place:
        """Lay out one batch in the next place, once the batch there is trained."""
        place, shape = self._places[b % DEPTH], self._shape
        place.wait()
        assert self._chunk is not None
        layout.lay_out_batch(
            self._edges,
            b,
            self._settings,
            shape.num_src,
            shape.is_shared,
            shape.is_reciprocal,
            shape.is_operated,
            shape.run,
            self._chunk,
            self._slot,
            self._relation_slot,
            self._scratch[0],
            self._scratch[1],
            place.on_host,
            place.counts,
        )
        return place
