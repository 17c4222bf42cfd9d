"""Works of the case ``mining``: frequent patterns, and kernels made for a pattern."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Counts = dict[str, int]
Count = Callable[[], Counts]

MICO = "mico-like"
NUM_LABELS = 29
SUPPORTS = {2: 3000, 3: 3000, 4: 4000}
"""Least support of frequent patterns, by their edges."""
COMPILED = ("bull", "7-cycle")


def write_mico_like(out: Path) -> None:
    """Write a labeled graph of MiCo's size."""
    import dataclasses

    from graphsys import storage
    from graphsys.datasets import generators

    class Labeled(storage.Source):
        """Communities, of which every 29th has the same label."""

        name, is_directed, total_bytes = MICO, False, None

        def chunks(self) -> Iterator[Any]:
            drawn = generators.communities(
                100_000,
                mean_degree=25,
                max_degree=1000,
                min_community=50,
                max_community=2000,
            )
            for chunk in drawn.chunks():
                if isinstance(chunk, storage.NodeChunk):
                    label = {"label": chunk.columns["label"] % NUM_LABELS}
                    yield dataclasses.replace(chunk, columns=label)
                else:
                    yield chunk

    storage.ingest(Labeled(), out).graph.close()


def frequent_works(store: Path) -> dict[str, Count]:
    """Return the searches for frequent patterns, by name."""
    from graphsys.mining import frequent_patterns

    def searched(edges: int, support: int) -> Counts:
        found = frequent_patterns(store, support, max_edges=edges)
        return {f"frequent of {edges} edges": len(found)}

    return {
        f"frequent, {edges} edges, support {support}": partial(searched, edges, support)
        for edges, support in SUPPORTS.items()
    }


def compiled_works(graph: Any) -> dict[str, Count]:
    """Return the making of kernels, anew and from the cache, by name."""
    import sys

    import numpy as np

    from graphsys.generated.modules import load_module
    from graphsys.mining import Pattern, SimpleGraph
    from graphsys.mining.census.sums import kernels_of
    from graphsys.mining.compiler.choose import choose_schedule, tasks_of
    from graphsys.mining.compiler.emit import kernel_text

    edge = SimpleGraph.of((np.array([0]), np.array([1])))
    none = np.empty(0, dtype=np.int64)

    def make(pattern: str, text: str, num_sets: int, mark: str = "") -> Counts:
        module = load_module(f"{text}\n# {mark or time.time_ns()}\n")
        sets = np.empty((1, max(num_sets, 1), 2), dtype=edge.indices.dtype)
        with kernels_of(edge, 1) as kernels:
            [found] = kernels.sums(module.count, 1, none, none, after=(sets,))
        del sys.modules[module.__name__]  # the next time it is loaded from its file
        return {f"{pattern} in an edge": found}

    found: dict[str, Count] = {}
    for pattern in COMPILED:
        choice = choose_schedule(graph, Pattern.of(pattern), is_induced=True)
        text = kernel_text(tasks_of([choice]))
        found[f"{pattern}, compiled"] = partial(make, pattern, *text)
        found[f"{pattern}, cached"] = partial(make, pattern, *text, "kept")
    return found
