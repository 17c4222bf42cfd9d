"""Case ``engine_partitions``: every listed algorithm, a store of 4 partitions against one.

The same weighted R-MAT graph is ingested twice; each run is one call in a process of its
own, so that mapping the files and making rows count, and so does the peak of the process.
Time is the algorithm's own (``seconds`` of its result), without compiling. Algorithms whose
work grows with the square of the nodes run on a smaller graph.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
PARTITIONS = 4
EDGE_FACTOR = 16
ONE = "one partition"
SEVERAL = f"{OURS}, {PARTITIONS} partitions"
QUICK = {"betweenness", "mst", "sssp"}
MODULE = "bench.cases.engine_partitions"
Options = dict[str, Any]


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work for each algorithm and implementation; all on two pairs of stores."""
    from graphsys.engine import algorithms
    from graphsys.engine.topology import Topology

    examples = {name: row.example for name, row in sorted(algorithms.ALGORITHMS.items())}
    missing += [name for name, example in examples.items() if example.needs]
    stores: dict[int, dict[str, Path]] = {}
    for name, example in examples.items():
        if example.needs or (quick and name not in QUICK):
            continue
        scale = min(example.largest, 12) if quick else example.largest
        if scale not in stores:
            stores[scale] = _stores(folder / f"rmat{scale}", scale)
        pair = stores[scale]
        topology = Topology.of(str(pair[ONE]))
        for kind, options in _ways(name, _ends(topology)):
            yield Work(
                name=f"{' '.join([name, *kind])}, weighted R-MAT {scale}",
                amount=topology.num_edges,
                unit="edges/s",
                contenders=[
                    Contender(
                        system=system,
                        run=in_child(
                            f"{MODULE}:once", store=pair[system], name=name, options=options
                        ),
                    )
                    for system in (SEVERAL, ONE)
                ],
                verify=verify,
            )


def verify(results: Mapping[str, Any]) -> None:
    """Require that both stores give the same."""
    first, second = (result["checksum"] for result in results.values())
    if abs(first - second) > 1e-6 * max(abs(first), abs(second), 1.0):
        raise WrongResultError(f"the weighted sums of the results differ: {results}")


def once(store: str, name: str, options: Options) -> Outcome:
    """Run an algorithm once."""
    from graphsys.engine import algorithms

    work = algorithms.get(name).prepare(store, **options)
    done = work.run()
    figures = {"unites": float(work.choice.unites), "planned_bytes": work.choice.needed}
    return Outcome(
        seconds=done.seconds,
        result={"checksum": checksum(done), "figures": figures},
        compile_s=done.compile_seconds,
    )


def checksum(result: Any) -> float:
    """Return a sum over a result in which ids and lists count by their numbers."""
    import numpy as np

    total = float(result.result or 0)
    columns = {name: result.table[name] for name in result.table.column_names}
    keys = columns.pop("id").to_numpy() if "id" in columns else None
    for column in columns.values():
        if not str(column.type).startswith(("int", "uint", "float", "double", "bool")):
            continue
        filled = column.cast("double").fill_null(-1.0)
        values = np.nan_to_num(filled.to_numpy(), posinf=-2.0)
        total += float(values @ (1 + keys % 7) if keys is not None else values.sum())
    return total


def _stores(folder: Path, scale: int) -> dict[str, Path]:
    """Ingest the graph in one partition and in several."""
    import graphsys
    from graphsys.datasets import generators

    found = {ONE: folder / "one", SEVERAL: folder / "several"}
    for path, partitions in zip(found.values(), (1, PARTITIONS), strict=True):
        source = generators.rmat(scale, EDGE_FACTOR, seed=1, weights=True)
        graphsys.ingest(source, path, partitions=partitions)
    return found


def _ends(topology: Any) -> tuple[Any, Any]:
    """Return the two nodes of most neighbors."""
    by_degree = topology.out_degree.argsort(kind="stable")[::-1][:2]
    first, second = sorted(topology.ids(by_degree).to_pylist())
    return first, second


def _ways(name: str, ends: tuple[Any, Any]) -> Iterator[tuple[list[str], Options]]:
    """Yield what tells a way to run an algorithm apart, and its options."""
    from graphsys.engine import algorithms

    first, second = ends
    given: dict[str, Options] = {
        "bfs": {"source": first},
        "sssp": {"source": first},
        "personalized_pagerank": {"source": first, "iterations": 10},
        "min_cut": {"source": first, "target": second},
        "max_flow": {"source": first, "target": second},
        "shortest_path": {"source": first, "target": second},
        "k_shortest_paths": {"source": first, "target": second},
        "random_walks": {"length": 20},
        "betweenness": {"sources": [first, second]},
        "cdlp": {"iterations": 3},
        "katz": {"alpha": 1e-5},
        "pagerank": {"iterations": 10},
        "jaccard": {"top_k": 1},
        "adamic_adar": {"top_k": 1},
        "resource_allocation": {"top_k": 1},
        "steiner_tree": {"terminals": [first, second]},
    }
    options = given.get(name, {})
    known = algorithms.get(name)
    kinds = [kind for kind in ("native", "program") if getattr(known, kind)]
    for kind in kinds:
        yield [kind] * (len(kinds) > 1), {**options, "implementation": kind}
    if name == "pagerank":
        yield ["weighted"], {**options, "weighted": True, "implementation": "native"}
