"""Case ``engine``: algorithms in memory on kron20 and others, peers on the same graph.

Every system gets the same simple undirected graph with the labels that the generator
drew, or by degree (kron20-degree), as our stores number them; none reorders. Each runs in
a process of its own, builds its graph (load), warms up (compile), and does the work from
three sources; the time of a run is their mean. Time of PageRank is per iteration of ten.
What all compute is compared first; where a peer cannot be made to compute exactly the same
the note in ``LOOSE`` says what differs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.cases.engine_graphs import BY_DEGREE, Saved, save
from bench.cases.engine_systems import ITERATED, SYSTEMS
from bench.child import in_child
from bench.harness import OURS, Contender, Work, WrongResultError
from bench.limits import Limits

PEERS = {
    "scipy": "scipy",
    "networkit": "networkit",
    "igraph": "igraph",
    "scikit-network": "sknetwork",
    "python-graphblas": "graphblas",
    "GAPBS": "$GAPBS",
}
WORKS = ("bfs", "wcc", "sssp", "betweenness", "triangle_count", *ITERATED)
BY_LABEL = ("kron20", "kron22", "urand20", "grid2000", "kron15")  # the first by default
INPUTS = BY_LABEL + tuple(f"{name}{BY_DEGREE}" for name in BY_LABEL)
QUICK_INPUTS = ("kron15",)
LOOSE = {
    ("betweenness", "networkit"): "draws its own sources",
    ("pagerank", "networkit"): "keeps the mass of nodes without edges to itself",
    ("pagerank", "scikit-network"): "leaves out nodes without edges",
    ("betweenness", "GAPBS"): "tells scores as shares of the largest, in 32 bits",
    ("pagerank", "GAPBS"): "32-bit scores; leaves out nodes without edges",
    ("pagerank_float32", "GAPBS"): "leaves out nodes without edges",
}
PARTLY = {
    ("bfs", "GAPBS"): "tells how many nodes are reached, not their distances",
    ("sssp", "GAPBS"): "tells how many nodes are reached, not their distances",
}
ON_GRID = ("bfs", "wcc", "sssp", *ITERATED)


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: Sequence[str] = (),
) -> Iterator[Work]:
    """Yield the works; each graph is deleted after its own."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS[:1]):
        graph = save(name, folder)
        for work in ON_GRID if name.startswith("grid") else WORKS:
            yield make_work(work, graph, missing)
        for file in graph.folder.iterdir():
            file.unlink()


def make_work(work: str, graph: Saved, missing: list[str]) -> Work:
    """Return one work by all systems that are there and have it."""
    contenders = [
        Contender(
            system=system,
            run=in_child(
                "bench.cases.engine_systems:run",
                system=system,
                work=work,
                folder=graph.folder,
            ),
        )
        for system, maker in SYSTEMS.items()
        if system not in missing and hasattr(maker, work)
    ]
    if "GAPBS" not in missing:
        target = "bench.cases.engine_gapbs:run"
        run = in_child(target, work=work, folder=graph.folder)
        contenders.append(Contender(system="GAPBS", run=run))

    def verify(results: Mapping[str, Any]) -> None:
        for system, result in results.items():
            if (work, system) in LOOSE:
                continue
            if not _agree(result, results[OURS], partly=(work, system) in PARTLY):
                raise WrongResultError(
                    f"{work} on {graph.name}: {system} found {result}, {OURS} found "
                    f"{results[OURS]}"
                )

    unit = "iteration, edges/s" if work in ITERATED else "edges/s"
    return Work(
        name=f"{work}, {graph.name}, {graph.num_edges / 1e6:.3g}M entries",
        amount=graph.num_edges,
        unit=unit,
        contenders=contenders,
        verify=verify,
    )


def _agree(
    found: list[dict[str, float]], expected: list[dict[str, float]], *, partly: bool
) -> bool:
    """Tell whether two systems gave the same answers, floats within 1e-6.

    With ``partly``, of what both tell.
    """
    return len(found) == len(expected) and all(
        (one.keys() == other.keys() or (partly and one.keys() < other.keys() and one))
        and all(math.isclose(one[k], other[k], rel_tol=1e-6) for k in one)
        for one, other in zip(found, expected, strict=True)
    )
