"""A training's report for people: sizes and times with units, the plan in words."""

from collections.abc import Mapping
from typing import Any

from graphsys.core.memory import format_bytes
from graphsys.metrics.overlap import OVERLAP_BY_EPOCH

_PLAN = {
    "planned_memory_bytes": "peak memory",
    "planned_memory_split": "of it",
    "recomputed_layers": "layers that are recomputed, from 0",
    "planned_buffer_partitions": "partitions in memory",
    "planned_prefetch": "one more for reading ahead",
    "planned_bucket_order": "order of the buckets",
    "planned_num_units": "units per epoch",
    "planned_num_checkpoints": "checkpoints per epoch",
    "planned_loads": "partitions read per epoch",
    "planned_swaps": "swaps per epoch",
    "planned_min_swaps": "swaps of any order, at least",
    "planned_read_bytes": "embeddings read per epoch",
    "planned_write_bytes": "embeddings written per epoch",
    "planned_edge_bytes": "edges read per epoch",
    "planned_disk_bytes": "disk, two checkpoints",
    "planned_parameter_bytes": "parameters",
    "planned_device_memory_bytes": "memory of the device",
    "planned_rows_bytes": "learned rows on disk, at most",
    "planned_batches": "batches per epoch",
    "probed_edges_per_batch": "edges of a batch, at most",
    "estimated_seconds_per_epoch": "time per epoch, estimate",
    "estimated_seconds": "time in all, estimate",
    "probed_edges_per_second": "measured edges per second",
    "probed_read_bytes_per_second": "measured disk, reading",
    "probed_write_bytes_per_second": "measured disk, writing",
}


def plan_facts(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines of a dry run."""
    return {
        label: "as time goes" if metrics[key] is None else with_unit(key, metrics[key])
        for key, label in _PLAN.items()
        if key in metrics
    }


def metric_facts(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines of a training's metrics."""
    return {
        name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " "): with_unit(
            name, value
        )
        for name, value in metrics.items()
        if name not in ("per_worker", "numbers", OVERLAP_BY_EPOCH)  # --json has them
    }


def with_unit(name: str, value: Any) -> Any:
    """Write a value with the unit that its name ends in.

    Examples:
        >>> with_unit("planned_memory_bytes", 3 << 29), with_unit("swaps", 7)
        ('1.5 GiB', 7)
        >>> with_unit("estimated_seconds", 3960.0), with_unit("io_seconds", 0.25)
        ('1 h 6 min', '0.25 s')
        >>> with_unit("peak_memory_split", {"process": 3 << 20, "caches": 0})
        'process 3.0 MiB'
        >>> with_unit("probed_read_bytes_per_second", 2.0**30)
        '1.0 GiB/s'
    """
    if value is None:
        return "not reached"
    if name.endswith("bytes_per_second"):
        return f"{format_bytes(value)}/s"
    if name.endswith("memory_split"):
        return ", ".join(f"{part} {format_bytes(it)}" for part, it in value.items() if it)
    if name.endswith("per_second"):
        return round(value)
    if name == "recomputed_layers":
        return ", ".join(map(str, value))
    if "bytes" in name:
        return format_bytes(value)
    if "seconds" in name:
        return _duration(value)
    return value


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
