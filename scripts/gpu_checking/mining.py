"""Mining: cliques and motifs beside the CPU's."""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_checking.steps import Context

PATTERNS = ("triangle", "4-clique", "5-clique", "4-cycle", "motifs of 4")


def measure(context: Context) -> None:
    """Count in an R-MAT graph, a tiny one in the simulator."""
    left_out: list[str] = []
    bench(context.deadline, 4 if context.is_simulated else 18, left_out)
    context.leave_out(left_out)


def bench(deadline: float, scale: int, left_out: list[str]) -> list[dict[str, Any]]:
    """Time counts on both devices, the second of two; they must be equal.

    Args:
        deadline: Nothing is begun after this time (monotonic).
        scale: Logarithm of the number of nodes of an R-MAT graph with 16 edges a node.
        left_out: Receives the cases that did not fit.
    """
    from graphsys.datasets import generators
    from graphsys.mining import SimpleGraph
    from graphsys.storage.ingest.ingest import ingest

    with (
        tempfile.TemporaryDirectory() as folder,
        ingest(generators.rmat(scale), Path(folder) / "graph").graph as stored,
    ):
        graph = SimpleGraph.of(stored)
    found: list[dict[str, Any]] = []
    for pattern in PATTERNS:
        counts = []
        for device in ("cpu", "cuda"):
            if time.monotonic() > deadline:
                left_out.append(f"mining/{pattern}/{device}")
                continue
            row = {"graph": f"rmat{scale}", "program": pattern, "device": device}
            try:
                ask(graph, pattern, device)
                began = time.perf_counter()
                counts.append(ask(graph, pattern, device))
                row |= {"seconds": time.perf_counter() - began}
            except Exception as err:  # one that fails must not hide the others
                row |= {"error": f"{type(err).__name__}: {err}"[:300]}
            if len(counts) == 2 and counts[0] != counts[1]:
                row |= {"error": f"{counts[1]} is not the CPU's {counts[0]}"}
            found.append(row)
            print(json.dumps(row), flush=True)
    return found


def ask(graph: Any, pattern: str, device: str) -> Any:
    """Count on a device."""
    from graphsys.mining import count, motif_census

    if pattern.startswith("motifs"):
        return motif_census(graph, 4, device=device)
    return count(graph, pattern, device=device)
