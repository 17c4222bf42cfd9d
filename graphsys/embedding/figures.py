"""What a training tells about its input and output: swaps, bytes, waiting, overlap."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from graphsys.embedding.buffer import PartitionBuffer
from graphsys.embedding.schedule import Layout
from graphsys.embedding.tables import TableFiles


class Figures:
    """Sums the figures of a run over its resumptions.

    Args:
        metrics: Those of the checkpoint that the training goes on from.
        buffer: Counts swaps, and the seconds of reading, writing and waiting.
        files: Counts bytes.
        layout: Order and size of the buffer.

    Attributes:
        compute_s: Time spent preparing and training buckets, in seconds.
        checkpoint_s: Time that the training waited for checkpoints, in seconds.
    """

    def __init__(
        self,
        metrics: Mapping[str, Any],
        buffer: PartitionBuffer,
        files: TableFiles,
        layout: Layout,
    ) -> None:
        self.compute_s = self.checkpoint_s = 0.0
        self._before = dict(metrics)
        self._buffer, self._files, self._layout = buffer, files, layout

    def update(self, metrics: MutableMapping[str, Any]) -> None:
        """Write the figures of the run so far.

        ``io_seconds`` is the time of reading and writing embeddings, ``waiting_seconds``
        what of it the training waited for, checkpoints included. ``overlap_alpha`` is
        (N + C - T) / min(N, C) with N reading and writing, C computing and T both
        together: 0 one after the other, 1 fully side by side; absent without either.
        """
        buffer, files = self._buffer, self._files
        waiting = buffer.waiting_s + self.checkpoint_s
        sums = {
            "swaps": buffer.num_swaps,
            "bytes_read": files.bytes_read,
            "bytes_written": files.bytes_written,
            "io_seconds": buffer.io_s + files.sync_s,
            "waiting_seconds": waiting,
            "compute_seconds": self.compute_s,
        }
        for name, value in sums.items():
            metrics[name] = value + self._before.get(name, 0)
        alpha = overlap(
            metrics["io_seconds"],
            metrics["compute_seconds"],
            metrics["compute_seconds"] + metrics["waiting_seconds"],
        )
        if alpha is not None:
            metrics["overlap_alpha"] = alpha
        metrics["bucket_order"] = self._layout.order
        metrics["buffer_partitions"] = self._layout.capacity


def overlap(io_s: float, compute_s: float, wall_s: float) -> float | None:
    """Return the overlap coefficient, or None if there is nothing to overlap.

    Examples:
        >>> overlap(3.0, 4.0, 7.0), overlap(3.0, 4.0, 4.0), overlap(0.0, 4.0, 4.0)
        (0.0, 1.0, None)
    """
    shorter = min(io_s, compute_s)
    return (io_s + compute_s - wall_s) / shorter if shorter > 0 else None
