"""How many blocks of a compiled kernel an H100 holds, beside what ptxas says of it."""

from typing import Any

from graphsys.analysis.model.devices import GPUS, occupancy
from graphsys.core.cuda.device import LaunchShape

ENGINE_THREADS = LaunchShape().block
"""Threads of a block in launches of the engine and of mining."""


def with_occupancy(row: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return what ptxas says of a kernel with its theoretical occupancy on sm_90.

    Args:
        row: With ``registers`` a thread and ``shared_bytes`` a block.
        threads: Of a block.
    """
    found = occupancy(
        GPUS["h100"],
        threads=threads,
        registers=max(row["registers"], 1),
        shared_bytes=row["shared_bytes"],
    )
    told = {"ctas_per_sm": found.ctas, "occupancy": found.fraction}
    return {**row, "threads": threads, **told, "occupancy_limit": found.limit}
