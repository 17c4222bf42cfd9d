"""Case ``incremental``: algorithms from the last result against running them anew.

A store of R-MAT edges with weights (10M; ``--quick``: 1M, and .1 % alone), results of it,
and copies in which .01, .1 or 1 % of the edges changed by one append: half came, half went.
Both contenders run in one process (its peak is that of both), which has the rows of the
changed store merged, and the simple graph made, before time counts, so that algorithms are
compared and not the reading of deltas (that is case ``dynamic``); ``graphsys`` reads the
file of the last result within its time. A ratio below 1 says where running anew wins.
"""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.dynamic import rmat_ends
from bench.child import in_child
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
MODULE = "bench.cases.incremental"
SHARES = (1e-4, 1e-3, 1e-2)
SOURCE = 0
SYSTEMS = ("graphsys", "anew")
PARAMETERS: dict[str, dict[str, Any]] = {
    "wcc": {},
    "pagerank": {},
    "bfs": {"source": SOURCE},
    "sssp": {"source": SOURCE},
    "triangle_count": {},
    "k_core": {},
}


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works."""
    del limits, missing
    scale, num_edges = (16, 1_000_000) if quick else (20, 10_000_000)
    in_child(f"{MODULE}:make", folder=str(folder), scale=scale, num_edges=num_edges)()
    for share in SHARES[1:2] if quick else SHARES:
        for name in PARAMETERS:
            yield _work(folder, name, share, num_edges)


def _work(folder: Path, name: str, share: float, num_edges: int) -> Work:
    store = {"graph": str(folder / f"changed-{share}"), "name": name}
    both = in_child(f"{MODULE}:run", last=str(folder / f"{name}.parquet"), **store)
    contenders = _halves(both)

    def verify(results: Mapping[str, Any]) -> None:
        ours, anew = results["graphsys"]["sums"], results["anew"]["sums"]
        if name == "pagerank":  # both are within the tolerance of the exact scores
            is_same = np.allclose(ours, anew, rtol=1e-4)
        else:
            is_same = ours == anew
        if not is_same:
            raise WrongResultError(f"{name}, {share:.2%}: {ours} and {anew}")

    return Work(
        name=f"{name}, {share:.2%} of the edges changed",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def _halves(both: Callable[[], Outcome]) -> list[Contender]:
    """Return contenders of which the first in a round runs the process of both."""
    kept: dict[str, Outcome] = {}

    def half(system: str) -> Outcome:
        if system not in kept:
            found = both()
            for name, one in found.result.items():
                kept[name] = replace(found, seconds=one["seconds"], result=one)
        return kept.pop(system)

    return [Contender(system=it, run=partial(half, it)) for it in SYSTEMS]


def run(graph: str, name: str, last: str) -> Outcome:
    """Run an algorithm from the last result and anew, each a second time in a process."""
    from graphsys.engine.algorithms import get
    from graphsys.engine.topology import Topology
    from graphsys.storage import Graph

    result = {}
    with Graph(graph) as opened:
        topology = Topology.of(opened)
        _ = topology.csr("out"), topology.csr("in"), topology.rank
        if name in ("triangle_count", "k_core"):
            topology.simple()
        for system, given in zip(SYSTEMS, (last, None), strict=True):
            get(name)(topology, last=given, **PARAMETERS[name])  # compiles
            begin = time.perf_counter()
            done = get(name)(topology, last=given, **PARAMETERS[name])
            seconds = time.perf_counter() - begin
            values = done.table["value"].to_pandas().to_numpy(dtype="f8", na_value=-1)
            weights = np.random.default_rng(0).random(len(values))
            known = np.nan_to_num(values, nan=-1)
            result[system] = {
                "seconds": seconds,
                "sums": [float((known * weights).sum()), float(known.max()), len(known)],
                "figures": {"supersteps": done.supersteps},
            }
    return Outcome(seconds=0.0, result=result)


def make(folder: str, scale: int, num_edges: int) -> Outcome:
    """Write the store, the results of it, and its changed copies."""
    import graphsys as gs
    from graphsys.datasets.append import append
    from graphsys.engine.algorithms import get
    from graphsys.engine.output import write_table

    begin = time.perf_counter()
    rng = np.random.default_rng(0)
    ends, weight = rmat_ends(rng, scale, num_edges), rng.random(num_edges)
    base = Path(folder) / "base"
    edges = {"src": ends[0], "dst": ends[1], "weight": weight}
    with gs.ingest(edges, base).graph as graph:
        for name, parameters in PARAMETERS.items():
            table = get(name)(graph, **parameters).table
            write_table(table, Path(folder) / f"{name}.parquet")
    for share in SHARES:
        half = int(num_edges * share) // 2
        copy = Path(folder) / f"changed-{share}"
        shutil.copytree(base, copy)
        new = rmat_ends(rng, scale, half)
        gone = np.unique(ends[:, rng.choice(num_edges, half, replace=False)], axis=1)
        come = {"src": new[0], "dst": new[1], "weight": rng.random(half)}
        append(copy, come, delete={"src": gone[0], "dst": gone[1]}).graph.close()
    return Outcome(seconds=time.perf_counter() - begin)
