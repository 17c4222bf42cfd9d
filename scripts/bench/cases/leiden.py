"""Case ``leiden``: communities of high modularity, beside igraph, NetworKit and leidenalg.

Peers make as many iterations as they do by default: igraph and leidenalg two, NetworKit's
ParallelLeiden three. Ours makes three passes, and is wrong where its modularity is below
that of a peer by more than .001: so times are of equal quality. Each system runs in a
process of its own with all processors; to load the graph and to compile are not timed. All
modularities are computed by one function here. Ours must find the same communities with
one thread as with all.

Graphs: an R-MAT with few communities, and groups of a hundred nodes with two edges in five
between groups.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"igraph": "igraph", "networkit": "networkit", "leidenalg": "leidenalg"}
INPUTS = ("rmat20", "rmat17", "planted200000", "planted2000000")
QUICK_INPUTS = ("rmat14", "planted20000")
PASSES = 3
ONE_THREAD = f"{OURS}, one thread"
_SEED = 1
_GROUP, _DEGREE, _INNER = 100, 20, 0.6
_SLACK = 1e-3


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: Sequence[str] = (),
) -> Iterator[Work]:
    """Yield a work for each graph."""
    for name in inputs or (QUICK_INPUTS if quick else INPUTS[:3]):
        file = folder / f"{name}.npz"
        ends, num_nodes = drawn_edges(name)
        np.savez(file, ends=ends, num_nodes=num_nodes)
        systems = [OURS, ONE_THREAD, *(it for it in PEERS if it not in missing)]
        yield Work(
            name=f"leiden, {name}, {len(ends[0]) / 1e6:.3g}M edges",
            amount=len(ends[0]),
            unit="edges/s",
            contenders=[
                Contender(
                    system=it,
                    run=in_child("bench.cases.leiden:run", system=it, file=str(file)),
                )
                for it in systems
            ],
            verify=verify,
        )
        file.unlink()


def drawn_edges(name: str) -> tuple[Any, int]:
    """Return simple edges int64 ``[2, E]`` among nodes that have any, and their number."""
    kind, size = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if kind == "rmat":
        from graphsys.datasets import generators
        from graphsys.storage.source import EdgeChunk

        chunks = generators.rmat(size, 16, seed=_SEED).chunks()
        parts = [(it.src, it.dst) for it in chunks if isinstance(it, EdgeChunk)]
        ends = np.concatenate([np.asarray(pair, dtype=np.int64) for pair in parts], axis=1)
    else:
        draws = np.random.default_rng(_SEED)
        src = draws.integers(0, size, size * _DEGREE // 2)
        inner = src // _GROUP * _GROUP + draws.integers(0, _GROUP, len(src))
        outer = draws.integers(0, size, len(src))
        ends = np.stack([src, np.where(draws.random(len(src)) < _INNER, inner, outer)])
    ends = np.sort(ends[:, ends[0] != ends[1]], axis=0)
    used, numbers = np.unique(ends, return_inverse=True)
    codes = np.unique(
        numbers.reshape(ends.shape)[0] * len(used) + numbers.reshape(ends.shape)[1]
    )
    return np.stack(np.divmod(codes, len(used))), len(used)


def run(system: str, file: str) -> Outcome:
    """Load a graph and find its communities; what comes of them is not timed."""
    read = np.load(file)
    ends, num_nodes = read["ends"], int(read["num_nodes"])
    began = time.perf_counter()
    find = SYSTEMS[system](ends, num_nodes)
    load_s = time.perf_counter() - began
    began = time.perf_counter()
    found, compile_s = find()
    seconds = time.perf_counter() - began - compile_s
    label = np.unique(np.asarray(found(), dtype=np.int64), return_inverse=True)[1]
    figures = {
        "modularity": modularity_of(ends, label),
        "communities": int(label.max()) + 1,
    }
    digest = hashlib.sha256(label.astype(np.int64).tobytes()).hexdigest()
    return Outcome(
        seconds=seconds,
        result={"figures": figures, "digest": digest},
        load_s=load_s,
        compile_s=compile_s,
    )


def modularity_of(ends: Any, label: Any) -> float:
    """Return the modularity of communities numbered from 0 of a simple graph."""
    degrees = np.bincount(ends.ravel(), minlength=len(label))
    totals = np.bincount(label, weights=degrees) / degrees.sum()
    return float((label[ends[0]] == label[ends[1]]).mean() - (totals**2).sum())


def ours(ends: Any, num_nodes: int, num_threads: int | None = None) -> Callable[[], Any]:
    """Prepare ours: nodes are their numbers."""
    import graphsys as gs

    topology = gs.Topology.from_edges(*ends, num_nodes=num_nodes, directed=False)
    options: dict[str, Any] = {"seed": _SEED, "tolerance": 0.0, "max_supersteps": PASSES}
    listed = gs.algorithms.get("leiden")
    listed(gs.Topology.from_edges([0], [1], num_nodes=2, directed=False), **options)

    def find() -> tuple[Callable[[], Any], float]:
        done = listed(topology, num_threads=num_threads, **options)
        table = done.table  # making it is ours to pay
        return (lambda: table["value"].to_numpy()), done.compile_seconds

    return find


def by_igraph(ends: Any, num_nodes: int) -> Callable[[], Any]:
    """Prepare igraph."""
    import random

    import igraph

    graph = igraph.Graph(n=num_nodes, edges=ends.T)
    random.seed(_SEED)

    def find() -> tuple[Callable[[], Any], float]:
        found = graph.community_leiden(objective_function="modularity")
        return (lambda: found.membership), 0.0

    return find


def by_leidenalg(ends: Any, num_nodes: int) -> Callable[[], Any]:
    """Prepare leidenalg."""
    import igraph
    import leidenalg

    graph = igraph.Graph(n=num_nodes, edges=ends.T)
    kind = leidenalg.ModularityVertexPartition

    def find() -> tuple[Callable[[], Any], float]:
        found = leidenalg.find_partition(graph, kind, seed=_SEED)
        return (lambda: found.membership), 0.0

    return find


def by_networkit(ends: Any, num_nodes: int) -> Callable[[], Any]:
    """Prepare NetworKit, with as many threads as there are processors."""
    import networkit as nk

    nk.setNumberOfThreads(len(os.sched_getaffinity(0)))
    nk.setSeed(_SEED, False)
    graph = nk.GraphFromCoo(
        tuple(ends.astype(np.uint64)), n=num_nodes, weighted=False, directed=False
    )

    def find() -> tuple[Callable[[], Any], float]:
        found = nk.community.ParallelLeiden(graph)
        found.run()
        return (lambda: found.getPartition().getVector()), 0.0

    return find


SYSTEMS: dict[str, Callable[[Any, int], Callable[[], Any]]] = {
    OURS: ours,
    ONE_THREAD: lambda ends, num_nodes: ours(ends, num_nodes, 1),
    "igraph": by_igraph,
    "networkit": by_networkit,
    "leidenalg": by_leidenalg,
}


def verify(results: Mapping[str, Any]) -> None:
    """Look whether ours are the same communities, as good as any peer's."""
    found = results[OURS]
    if results[ONE_THREAD]["digest"] != found["digest"]:
        raise WrongResultError("one thread finds other communities than several")
    for system, result in results.items():
        quality = result["figures"]["modularity"]
        if found["figures"]["modularity"] < quality - _SLACK:
            raise WrongResultError(
                f"{system} reaches a modularity of {quality}, "
                f"{OURS} {found['figures']['modularity']}"
            )
