"""Mining: cliques and motifs beside the CPU's counts."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu_checking import references
from gpu_checking.steps import Context

PATTERNS = ("triangle", "4-clique", "5-clique", "4-cycle", "motifs of 4")
TINY_SCALE, SCALE = 4, 18
"""Logarithms of the number of nodes of an R-MAT graph with 16 edges a node."""


def measure(context: Context) -> None:
    """Time counts on the device, then on the CPU of this machine; they must be equal.

    The device comes first: its counts are compared with those that are known beforehand.
    """
    scale = TINY_SCALE if context.is_simulated else SCALE
    graph, known, counts = make(scale), references.known(), {}
    left_out: list[str] = []
    for device in ("cuda", "cpu"):
        for pattern in PATTERNS:
            case = case_of(pattern, scale)
            if time.monotonic() > context.deadline:
                left_out.append(f"{case}, {device}")
                continue
            row = {"case": case, "device": device}
            try:
                ask(graph, pattern, device)
                began = time.perf_counter()
                found = ask(graph, pattern, device)
                row["seconds"] = time.perf_counter() - began
                wanted = counts.setdefault(case, known.get(case, found))
                if found != wanted:
                    row["error"] = f"{found} is not {wanted}"
            except Exception as err:  # one that fails must not hide the others
                row["error"] = f"{type(err).__name__}: {err}"[:300]
            context.tell(row)
    context.leave_out(left_out)


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    cases = [case_of(pattern, SCALE) for pattern in PATTERNS]
    return [f"{case}, {device}" for device in ("cuda", "cpu") for case in cases]


def compute() -> Iterator[tuple[str, Any]]:
    """Yield the CPU's counts, by case."""
    for scale in (TINY_SCALE, SCALE):
        graph = make(scale)
        for pattern in PATTERNS:
            yield case_of(pattern, scale), ask(graph, pattern, "cpu")


def case_of(pattern: str, scale: int) -> str:
    """Return the name of a count."""
    return f"{pattern}, rmat{scale}"


def make(scale: int) -> Any:
    """Return an R-MAT graph as mining reads it."""
    from graphsys.datasets import generators
    from graphsys.mining import SimpleGraph
    from graphsys.storage.ingest.ingest import ingest

    with (
        tempfile.TemporaryDirectory() as folder,
        ingest(generators.rmat(scale), Path(folder) / "graph").graph as stored,
    ):
        return SimpleGraph.of(stored)


def ask(graph: Any, pattern: str, device: str) -> Any:
    """Count on a device."""
    from graphsys.mining import count, motif_census

    if pattern.startswith("motifs"):
        return motif_census(graph, 4, device=device)
    return count(graph, pattern, device=device)
