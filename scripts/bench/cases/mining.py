"""Case ``mining``: counts of small patterns as multiples of NetworKit's triangle count.

Every work has NetworKit's ``TriangleEdgeScore`` beside it in the same rounds: the ratio in
the column ``ratio_to_best_peer`` is its time by ours, and 1 by it the multiple that targets
speak of. igraph and NetworkX do the works that they have, where they end within a minute,
and are shown for comparison. All counts of the same thing must be equal, or nothing is
timed. Times are of counting alone: every system has its own graph made before, ours with
rows by descending degree, and kernels are compiled in the warm-up round.

Frequent patterns are searched in ``mico-like``: as many nodes, edges and labels as MiCo has
(100,000, 1,080,000 and 29), drawn by ``generators.communities``, not MiCo itself; reading
the labeled rows is in their times. ``compiled`` and ``cached`` are a kernel of a
pattern: made anew in every round, and loaded from the cache as a second process would.
"""

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.cases.mining_works import (
    MICO,
    Count,
    Counts,
    compiled_works,
    frequent_works,
    write_mico_like,
)
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"NetworKit": "networkit", "igraph": "igraph", "NetworkX": "networkx"}
INPUTS = ("wiki-Vote", "MIT8", "ca-AstroPh", "rmat16", "rmat18", "mico-like")
QUICK_INPUTS = ("wiki-Vote",)
SHARED = Path(
    os.environ.get("GRAPHSYS_SHARED", Path(__file__).resolve().parents[4] / "shared")
)
FILES = {
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt",
    "MIT8": "networkit-input/MIT8.edgelist",
    "ca-AstroPh": "kcore-repo-graphs/ca-AstroPh.txt",
}
TRIANGLES = "NetworKit, triangles"
PATTERNS = ("triangle", "4-clique", "5-clique", "4-cycle", "diamond", "house")
MANY_MATCHES = ("4-cycle", "house")  # loops over them take minutes on large graphs
CENSUSES = (3, 4, 5)
KNOWN = {"wiki-Vote": 608_389}  # triangles, as published
TOO_LONG = {  # minutes a round
    ("5 motifs", "rmat18"),
    ("places of nodes", "rmat18"),
    ("5-clique, loops", "rmat18"),  # one by one: there are 55,586,729,348
}
MANY_TRIANGLES = 1_000_000  # edges from which igraph's list of them does not fit a round


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: tuple[str, ...] = (),
) -> Iterator[Work]:
    """Yield, for every graph, the patterns one by one, the censuses, places of nodes."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS):
        if name in FILES and not (SHARED / "data" / FILES[name]).exists():
            continue
        graph = load(name, folder)
        peers = make_peers(graph, missing)
        if name == MICO:
            for what, count in frequent_works(folder / name).items():
                yield make_work(what, name, graph.num_edges, count, peers)
            continue
        ours = our_works(graph)
        if name == "wiki-Vote":
            ours |= compiled_works(graph)
        for what, count in ours.items():
            if (what, name) not in TOO_LONG:
                yield make_work(what, name, graph.num_edges, count, peers)


def load(name: str, folder: Path) -> Any:
    """Return a graph by name, as ours."""
    import numpy as np

    from graphsys import storage
    from graphsys.datasets import generators
    from graphsys.mining import SimpleGraph

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # twins
        if name in FILES:
            path = SHARED / "data" / FILES[name]
            edges = np.loadtxt(path, dtype=np.int64, comments="#", usecols=(0, 1))
            return SimpleGraph.of((edges[:, 0], edges[:, 1]))
        if name == MICO:
            write_mico_like(folder / name)
        else:
            storage.ingest(generators.rmat(int(name[4:])), folder / name).graph.close()
    return SimpleGraph.of(folder / name)


def our_works(graph: Any) -> dict[str, Count]:
    """Return what we count, by name."""
    from graphsys.mining import counting
    from graphsys.mining.census.motifs import motif_counts
    from graphsys.mining.census.orbits import node_orbits
    from graphsys.mining.closed_forms import count_closed

    found: dict[str, Count] = {}
    for pattern in PATTERNS:
        found[pattern] = lambda pattern=pattern: {pattern: count_closed(graph, pattern)}  # type: ignore[misc]
        if pattern not in MANY_MATCHES or graph.num_edges < 150_000:
            found[f"{pattern}, loops"] = lambda pattern=pattern: {  # type: ignore[misc]
                pattern: counting.count(graph, pattern, way="matches")
            }
    for size in CENSUSES:
        found[f"{size} motifs"] = lambda size=size: motif_counts(graph, size)  # type: ignore[misc]

    def places() -> Counts:
        return {"triangle": int(node_orbits(graph)["orbit_3"].sum()) // 3}

    found["places of nodes"] = places
    return found


def make_peers(graph: Any, missing: list[str]) -> dict[str, dict[str, Count]]:
    """Return what the installed peers count, by work and system; graphs are made here."""
    import numpy as np

    owners = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    once = graph.indices > owners
    src, dst = owners[once], graph.indices[once].astype(np.int64)
    found: dict[str, dict[str, Count]] = {"triangle": {}, "3 motifs": {}, "4-clique": {}}
    if "NetworKit" not in missing:
        found["all"] = {TRIANGLES: _networkit(src, dst, graph.num_nodes)}
    if "igraph" not in missing:
        import igraph

        it = igraph.Graph(
            graph.num_nodes, list(zip(src.tolist(), dst.tolist(), strict=True))
        )
        if graph.num_edges < MANY_TRIANGLES:
            found["triangle"]["igraph"] = lambda: {"triangle": len(it.list_triangles())}
        if graph.num_edges < 150_000:
            found["3 motifs"]["igraph"] = lambda: _igraph_motifs(it)
            found["4-clique"]["igraph"] = lambda: {"4-clique": len(it.cliques(4, 4))}
    if "NetworkX" not in missing and graph.num_edges < MANY_TRIANGLES:
        import networkx as nx

        other = nx.Graph(zip(src.tolist(), dst.tolist(), strict=True))
        found["triangle"]["NetworkX"] = lambda: {
            "triangle": sum(nx.triangles(other).values()) // 3
        }
    return found


def _networkit(src: Any, dst: Any, num_nodes: int) -> Count:
    """Return NetworKit's count of the triangles of edges, with as many threads as ours."""
    import networkit

    from graphsys.core.threads import num_cores

    networkit.setNumberOfThreads(num_cores())
    graph = networkit.GraphFromCoo((src, dst), n=num_nodes)
    graph.indexEdges()

    def count() -> Counts:
        score = networkit.sparsification.TriangleEdgeScore(graph)
        score.run()
        return {"scores": score}

    return count


def _igraph_motifs(graph: Any) -> Counts:
    """Return igraph's 3-motifs; two nodes of the path and none come as NaN."""
    _, _, path, triangle = graph.motifs_randesu(3)
    return {"3-path": int(path), "triangle": int(triangle)}


def make_work(
    what: str, name: str, num_edges: int, ours: Count, peers: dict[str, dict[str, Count]]
) -> Work:
    """Return one count's work on one graph."""
    contenders = [Contender(system=OURS, run=_timed(ours))]
    for system, count in peers.get("all", {}).items():
        contenders.append(Contender(system=system, run=_timed(count)))
    for system, count in peers.get(what, {}).items():
        contenders.append(Contender(system=system, run=_timed(count), is_reference=True))

    def verify(results: Mapping[str, Any]) -> None:
        check(what, name, {system: it["counts"] for system, it in results.items()})

    return Work(
        name=f"{what}, {name}, {num_edges} edges",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def _timed(count: Count) -> Callable[[], Outcome]:
    def run() -> Outcome:
        began = time.perf_counter()
        counts = count()
        seconds = time.perf_counter() - began
        if "scores" in counts:  # adding them up is not NetworKit's work
            counts = {"triangle": round(sum(counts["scores"].scores())) // 3}  # type: ignore[attr-defined]
        figures = {pattern: float(num) for pattern, num in counts.items()}
        return Outcome(seconds=seconds, result={"counts": counts, "figures": figures})

    return run


def check(what: str, name: str, counts: Mapping[str, Counts]) -> None:
    """Compare what the systems counted, pattern by pattern.

    Raises:
        WrongResultError: two systems differ, or a published count is missed.
    """
    seen: Counts = {}
    for system, found in counts.items():
        for pattern, num in found.items():
            if seen.setdefault(pattern, num) != num:
                raise WrongResultError(
                    f"{what}, {name}: {system} counts {num} of {pattern}, "
                    f"not {seen[pattern]}"
                )
    if "triangle" in seen and KNOWN.get(name, seen["triangle"]) != seen["triangle"]:
        raise WrongResultError(
            f"{name}: {seen['triangle']} triangles, published are {KNOWN[name]}"
        )
