"""What a training tells about its time: sampling, gathering, computing, the overlap."""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from graphsys.gnn.data.loader import Batch
from graphsys.gnn.process_group import ProcessGroup
from graphsys.metrics.overlap import OVERLAP_BY_EPOCH, Overlap, overlap_alpha

_STAGES = ("forward", "backward", "step")


class GnnStats:
    """Sums the times of a run over its resumptions.

    Args:
        metrics: Those of the checkpoint that the training goes on from.

    Attributes:
        overlap: How far sampling and gathering run beside the training.
        wall_s: Time of training, in seconds.
        evaluate_s: Time of evaluating, in seconds.
        num_batches: Batches trained since the checkpoint.
    """

    def __init__(self, metrics: Mapping[str, Any]) -> None:
        self.overlap = Overlap()
        self.wall_s = self.evaluate_s = 0.0
        self._sums = dict.fromkeys(("sample", "gather", *_STAGES), 0.0)
        self.num_batches = self._num_edges = 0
        self._before = dict(metrics)

    def add(self, batch: Batch, times: Sequence[float]) -> None:
        """Count a batch that was trained.

        Args:
            batch: The batch.
            times: When its forward pass, its backward pass and its step began, and the end.
        """
        self.num_batches += 1
        self._num_edges += batch.num_edges
        self._sums["sample"] += batch.sample_s
        self._sums["gather"] += batch.gather_s
        for name, begin, end in zip(_STAGES, times[:-1], times[1:], strict=True):
            self._sums[name] += end - begin

    def end_epoch(self, epoch: int, metrics: MutableMapping[str, Any]) -> dict[str, float]:
        """Note how far an epoch prepared and computed side by side.

        Args:
            epoch: From 1.
            metrics: Get a row of ``overlap_by_epoch``; of an epoch that was interrupted,
                what came after the checkpoint.

        Returns:
            What there is of ``overlap_alpha``, ``overlap_rho``, ``overlap_utilization``.
        """
        found = self.overlap.lap()
        rows = metrics.get(OVERLAP_BY_EPOCH, [])
        metrics[OVERLAP_BY_EPOCH] = [*rows, {"epoch": epoch, **found}]
        shown = {f"overlap_{name}": found[name] for name in ("alpha", "rho", "utilization")}
        return {name: value for name, value in shown.items() if value is not None}

    def update(self, metrics: MutableMapping[str, Any]) -> None:
        """Write the figures of the run so far.

        Seconds of sampling and gathering are those of all threads. ``prepare_seconds`` is
        the time in which some thread did either, ``compute_seconds`` that in which batches
        were trained, ``overlap_seconds`` that in which both happened. ``overlap_alpha`` is
        (N + C - T) / min(N, C) with N preparing, C computing and T either: 0 one after the
        other, 1 fully side by side; absent without either.
        """
        values = {f"{name}_seconds": seconds for name, seconds in self._sums.items()}
        values["prepare_seconds"] = self.overlap.prepare_s
        values["compute_seconds"] = self.overlap.work_s
        values["overlap_seconds"] = self.overlap.both_s
        values["evaluate_seconds"] = self.evaluate_s
        values["train_seconds"] = self.wall_s
        for name, value in values.items():
            metrics[name] = value + self._before.get(name, 0.0)
        metrics["batches"] = self.num_batches + self._before.get("batches", 0)
        alpha = overlap_alpha(
            metrics["prepare_seconds"],
            metrics["compute_seconds"],
            metrics["overlap_seconds"],
        )
        if alpha is not None:
            metrics["overlap_alpha"] = alpha

    def of_group(self, group: ProcessGroup, read: Mapping[str, float]) -> dict[str, Any]:
        """Return what all processes tell of this part of the run; nothing where one trains.

        ``per_worker`` has of each its batches, edges, seconds of training, of sampling and
        gathering, and in exchanges, and the bytes of gradients that left it and of rows
        that it computed for evaluations, for each other process that got them, and those
        of the weights, gradients and moments that it has (``parameter_bytes``,
        ``gradient_bytes``, ``optimizer_bytes``), with the most of shared ones that were
        whole at once (``gathered_bytes``) and the process's peak (``peak_memory_bytes``).
        With owners also the ``rows`` it sampled, ``far_rows`` that another drew, and
        ``row_bytes`` of those with the questions; the ``inputs`` it read, ``far_inputs`` of
        nodes of others, ``cache_hits`` among them, and ``feature_bytes`` (a cache's first
        filling is among those); and sums and shares of all.
        ``load_imbalance`` is the longest time outside exchanges over the mean.

        Args:
            group: The processes.
            read: What the features, the weights and the optimizer of this one tell.
        """
        if group.world_size == 1:
            return {}
        traffic = group.traffic
        found = group.gather(
            {
                "rank": group.rank,
                "batches": self.num_batches,
                "edges": self._num_edges,
                "train_seconds": self.wall_s,
                "sample_seconds": self._sums["sample"],
                "gather_seconds": self._sums["gather"],
                "communication_seconds": traffic.communication_s,
                "allreduce_bytes": traffic.allreduce_bytes,
                "evaluation_bytes": traffic.evaluation_bytes,
                **read,
                **(group.owners.figures() if group.owners else {}),
            }
        )
        busy = [
            max(each["train_seconds"] - each["communication_seconds"], 0.0)
            for each in found
        ]
        return {
            "world_size": group.world_size,
            "allreduce_bytes": sum(each["allreduce_bytes"] for each in found),
            "evaluation_bytes": sum(each["evaluation_bytes"] for each in found),
            "communication_seconds": max(each["communication_seconds"] for each in found),
            "load_imbalance": max(busy) * len(busy) / (sum(busy) or 1.0),
            "per_worker": found,
            **(_fetched(found) if group.owners else {}),
        }


def _fetched(workers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what all workers fetched from owners: bytes, and shares of rows."""
    names = ("row_bytes", "feature_bytes", "rows", "far_rows", "inputs", "far_inputs")
    total = {name: sum(each[name] for each in workers) for name in names}
    hits = sum(each.get("cache_hits", 0) for each in workers)
    return {
        "row_bytes": total["row_bytes"],
        "feature_bytes": total["feature_bytes"],
        "far_row_share": total["far_rows"] / max(total["rows"], 1),
        "far_input_share": total["far_inputs"] / max(total["inputs"], 1),
        "far_cache_hit_rate": hits / max(total["far_inputs"], 1),
    }
