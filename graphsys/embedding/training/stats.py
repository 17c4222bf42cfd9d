"""What a training tells about its input and output: swaps, bytes, waiting, overlap."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from graphsys.embedding.data.schedule import Layout
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.training.buffer import PartitionBuffer
from graphsys.metrics.overlap import OVERLAP_BY_EPOCH, overlap_alpha


class EmbeddingStats:
    """Sums the figures of a run over its resumptions.

    Args:
        metrics: Those of the checkpoint that the training goes on from.
        buffer: Counts swaps, and the seconds of reading, writing and waiting.
        files: Counts bytes.
        layout: Order and size of the buffer.

    Attributes:
        checkpoint_s: Time that the training waited for checkpoints, in seconds.
    """

    def __init__(
        self,
        metrics: Mapping[str, Any],
        buffer: PartitionBuffer,
        files: TableFiles,
        layout: Layout,
    ) -> None:
        self.checkpoint_s = 0.0
        self._before = dict(metrics)
        self._buffer, self._files, self._layout = buffer, files, layout

    def end_epoch(self, epoch: int, metrics: MutableMapping[str, Any]) -> None:
        """Add a row to ``overlap_by_epoch``; see the trainer of networks.

        Args:
            epoch: From 1.
            metrics: Those of the run; of an epoch that was interrupted, what came after
                the checkpoint is told.
        """
        row = {"epoch": epoch, **self._buffer.overlap.lap()}
        metrics[OVERLAP_BY_EPOCH] = [*metrics.get(OVERLAP_BY_EPOCH, []), row]

    def update(self, metrics: MutableMapping[str, Any]) -> None:
        """Write the figures of the run so far.

        ``io_seconds`` is the time in which embeddings were read or written,
        ``compute_seconds`` that in which buckets were prepared and trained,
        ``overlap_seconds`` that in which both happened, ``waiting_seconds`` what the
        training waited for, checkpoints included. ``overlap_alpha`` is
        (N + C - T) / min(N, C) with N reading and writing, C computing and T either:
        0 one after the other, 1 fully side by side; absent without either.
        """
        buffer, files = self._buffer, self._files
        sums = {
            "swaps": buffer.num_swaps,
            "bytes_read": files.bytes_read,
            "bytes_written": files.bytes_written,
            "io_seconds": buffer.overlap.prepare_s,
            "waiting_seconds": buffer.waiting_s + self.checkpoint_s,
            "compute_seconds": buffer.overlap.work_s,
            "overlap_seconds": buffer.overlap.both_s,
        }
        for name, value in sums.items():
            metrics[name] = value + self._before.get(name, 0)
        alpha = overlap_alpha(
            metrics["io_seconds"], metrics["compute_seconds"], metrics["overlap_seconds"]
        )
        if alpha is not None:
            metrics["overlap_alpha"] = alpha
        metrics["bucket_order"] = self._layout.order
        metrics["buffer_partitions"] = self._layout.capacity
