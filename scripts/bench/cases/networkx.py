"""Case ``networkx``: NetworkX's functions by our backend beside NetworkX's own.

``graphsys`` calls with the graph converted before, as in every call but the first on a
graph (NetworkX keeps conversions); ``graphsys, converting`` converts each time.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"NetworkX": "networkx"}
LINEAR: dict[str, dict[str, Any]] = {
    "pagerank": {},
    "connected_components": {},
    "single_source_shortest_path_length": {"source": 0},
    "single_source_dijkstra_path_length": {"source": 0},
    "core_number": {},
    "triangles": {},
    "clustering": {},
}
ALL_PAIRS: dict[str, dict[str, Any]] = {
    "betweenness_centrality": {},
    "closeness_centrality": {},
    "eccentricity": {},
    "jaccard_coefficient": {},
    "adamic_adar_index": {},
}


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield a work per function: linear ones on a large graph, all pairs on a small one."""
    if missing:
        return
    import networkx as nx

    large = nx.barabasi_albert_graph(5_000 if quick else 50_000, 8, seed=1)
    small = nx.barabasi_albert_graph(300 if quick else 1_500, 5, seed=1)
    for graph in (large, small):
        for u, v, data in graph.edges(data=True):
            data["weight"] = 1 + (u * 31 + v * 17) % 9
    for graph, functions in ((large, LINEAR), (small, ALL_PAIRS)):
        for name, arguments in functions.items():
            yield make_work(name, graph, arguments)


def make_work(name: str, graph: Any, arguments: dict[str, Any]) -> Work:
    """Return one function's work."""
    import networkx as nx

    function = getattr(nx, name)

    def run(backend: str, *, is_converted: bool) -> Callable[[], Outcome]:
        def timed() -> Outcome:
            if not is_converted:
                graph.__networkx_cache__.clear()
            elif backend == OURS:
                call(backend)  # fills NetworkX's cache
            began = time.perf_counter()
            value = call(backend)
            return Outcome(seconds=time.perf_counter() - began, result=value)

        return timed

    def call(backend: str) -> Any:
        with nx.config(warnings_to_ignore={"cache"}):
            value = function(graph, **arguments, backend=backend)
        return value if isinstance(value, dict) else list(value)

    return Work(
        name=f"{name}, {len(graph)} nodes, {graph.size()} edges",
        amount=graph.size(),
        unit="edges/s",
        contenders=[
            Contender(system=OURS, run=run(OURS, is_converted=True)),
            Contender(system=f"{OURS}, converting", run=run(OURS, is_converted=False)),
            Contender(system="NetworkX", run=run("networkx", is_converted=True)),
        ],
        verify=verify,
    )


def verify(results: Mapping[str, Any]) -> None:
    """Compare with NetworkX's result: integers and sets exactly, floats to 1e-4."""
    expected = results["NetworkX"]
    for system, found in results.items():
        if not _is_same(found, expected):
            raise WrongResultError(f"{system} differs from NetworkX")


def _is_same(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            _is_same(found[key], value) for key, value in expected.items()
        )
    if isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-9)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(_is_same, found, expected))
    return bool(found == expected)
