"""Case ``dynamic``, its readers: algorithms over deltas, and views of times."""

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.dynamic_peer import biggest
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import Contender, Outcome, Work, same_results

MODULE = "bench.cases.dynamic_reading"
SHARE = 10  # a tenth of the edges is in deltas
TIMES = (20, 40, 60, 80, 99)  # views are asked for, of 100
Draw = Callable[[np.random.Generator, int, int], Any]


def reading_works(folder: Path, scale: int, num_edges: int, draw: Draw) -> Iterator[Work]:
    """Yield algorithms over stores with 10 and 100 deltas beside the compacted store."""
    for k in range(SHARE):
        ends = draw(np.random.default_rng(100 + k), scale, num_edges // SHARE)
        np.save(folder / f"read-{k}.npy", ends)
    whole = folder / "whole"
    for num_deltas in (10, 100):
        deltas = folder / f"d{num_deltas}"
        in_child(
            f"{MODULE}:make_deltas", folder=str(folder), out=str(deltas), count=num_deltas
        )()
        if not whole.exists():
            in_child(f"{MODULE}:make_compacted", graph=str(deltas), out=str(whole))()
        stores = {"graphsys": deltas, "compacted store": whole}
        of = f"{num_deltas} deltas of {num_edges / 1e6:g}M edges"
        for what in ("bfs", "pagerank", "sampling"):
            yield _reading(stores, what, of, num_edges)
        for what in ("bfs", "sampling"):
            for how in ("opened anew", "first reader"):
                yield _reading(stores, what, of, num_edges, how=how)
    one = folder / "one"
    in_child(f"{MODULE}:make_one", graph=str(whole), out=str(one))()
    of = f"1 edge beside {num_edges / 1e6:g}M"
    stores = {"graphsys": one, "compacted store": whole}
    for what in ("bfs", "sampling"):
        yield _reading(stores, what, of, num_edges, how="first reader")


def view_works(
    folder: Path, scale: int, num_edges: int, draw: Draw, missing: list[str]
) -> Iterator[Work]:
    """Yield the weak components of a graph as it was at several times, beside Raphtory."""
    rng = np.random.default_rng(1)
    ends = draw(rng, scale, num_edges)
    when = np.sort(rng.integers(0, 100, num_edges))
    np.save(folder / "timed.npy", np.concatenate([ends, when[None]]))
    in_child(f"{MODULE}:make_timed", folder=str(folder), out=str(folder / "timed"))()
    arguments: dict[str, Any] = {"folder": str(folder), "times": list(TIMES)}
    contenders = [Contender(system="graphsys", run=in_child(f"{MODULE}:view", **arguments))]
    python = None if "Raphtory" in missing else peer_python("raphtory")
    if python is not None:
        run = in_child("bench.cases.dynamic_peer:view", python=python, **arguments)
        contenders.append(Contender(system="Raphtory", run=run))
    yield Work(
        name=f"wcc of views at {len(TIMES)} times, {num_edges / 1e6:g}M edges",
        amount=num_edges * sum(TIMES) / 100,
        unit="edges/s",
        contenders=contenders,
        verify=same_results,
    )


def make_timed(folder: str, out: str) -> Outcome:
    """Write a store of edges with times, nine tenths at once and the rest by appends."""
    import graphsys as gs
    from graphsys.datasets.append import append

    begin = time.perf_counter()
    src, dst, when = np.load(Path(folder) / "timed.npy")
    cut = len(src) * 9 // 10
    first = {"src": src[:cut], "dst": dst[:cut], "time": when[:cut]}
    gs.ingest(first, out).graph.close()
    for piece in np.array_split(np.arange(cut, len(src)), 5):
        table = {"src": src[piece], "dst": dst[piece], "time": when[piece]}
        append(out, table).graph.close()
    return Outcome(seconds=time.perf_counter() - begin)


def view(folder: str, times: list[int]) -> Outcome:
    """Find the weak components of the graph as it was at times."""
    import graphsys as gs

    began = time.perf_counter()
    with gs.open(str(Path(folder) / "timed")) as graph:
        _components(graph, times[0])  # compiles, and merges the deltas
        load_s = time.perf_counter() - began
        found = [_components(graph, moment) for moment in times]
    seconds = sum(took for took, _ in found)
    return Outcome(seconds=seconds, load_s=load_s, result=[what for _, what in found])


def _components(graph: Any, moment: int) -> tuple[float, list[int]]:
    """Return the seconds it took, and what is to be the same in all systems."""
    import graphsys as gs

    begin = time.perf_counter()
    then = graph.at(moment)
    table = gs.algorithms.wcc(then).table
    num_edges = int(then.num_edges)
    seconds = time.perf_counter() - begin
    sizes = np.unique(table.column("value").to_numpy(), return_counts=True)[1]
    return seconds, [num_edges, *biggest(sizes)]


def _reading(
    stores: Mapping[str, Path], what: str, of: str, num_edges: int, how: str = ""
) -> Work:
    kind = {"what": what, "how": how}
    contenders = [
        Contender(system=system, run=in_child(f"{MODULE}:read", graph=str(store), **kind))
        for system, store in stores.items()
    ]

    def verify(results: Mapping[str, Any]) -> None:
        same_results({name: result["sum"] for name, result in results.items()})

    return Work(
        name=", ".join(it for it in (what, of, how) if it),
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def read(graph: str, what: str, how: str) -> Outcome:
    """Run an algorithm on a store the second time in a process, opened before or anew.

    The ``first reader`` finds nothing that others merged; it merges what it needs, and
    keeps that. The page cache holds all files, of either store, since the first time.
    """
    from graphsys.storage import Graph
    from graphsys.storage.deltas.merge_cache import kept_bytes, remove_kept

    with Graph(graph) as opened:  # compiles
        seeds = _seeds(opened) if what == "sampling" else None
        result = _answer(opened, what, seeds)
        size = sum(it.bytes for it in opened.manifest.files)
    kept = kept_bytes(Path(graph))
    if how == "first reader":
        remove_kept(Path(graph))
    begin = time.perf_counter()
    with Graph(graph) as opened:
        if not how:
            for part in range(opened.num_partitions("node")):
                opened.out_index("edge", part)
                opened.in_index("edge", part)
            begin = time.perf_counter()
        result = _answer(opened, what, seeds)
        seconds = time.perf_counter() - begin
    figures = {"store_bytes": size, "kept_bytes": kept}
    return Outcome(seconds=seconds, result={"sum": result, "figures": figures})


def _seeds(graph: Any) -> Any:
    """Return the numbers of some nodes, the same ones in every store."""
    ids = np.arange(0, 100_000, 7)
    known = graph.node_ids("node").to_numpy()
    return graph.lookup("node", ids[np.isin(ids, known)])


def _answer(graph: Any, what: str, seeds: Any) -> Any:
    """Return what is to be the same of all stores; of samples, the first hop's entries.

    Which they are hangs on the nodes' numbers, which a compaction gives anew.
    """
    import graphsys as gs

    if what == "bfs":
        table = gs.algorithms.bfs(graph, source=0).table
        return int(np.nansum(table.column("value").to_pandas()))
    if what == "pagerank":
        table = gs.algorithms.pagerank(graph, iterations=20).table.sort_by("id")
        return [f"{value:.6e}" for value in table.column("value").to_numpy()[:100]]
    from graphsys.sampling import NeighborSampler

    sampler, drawn = NeighborSampler(graph, [15, 10], seed=0), 0
    for begin in range(0, len(seeds), 1024):
        with sampler.sample(seeds[begin : begin + 1024]) as sample:
            drawn += len(sample.blocks[-1].indices)
    return drawn


def make_deltas(folder: str, out: str, count: int) -> Outcome:
    """Write nine tenths of the edges, and one tenth in so many deltas."""
    from graphsys.datasets.append import append

    begin = time.perf_counter()
    ingest_arrays([Path(folder) / f"read-{k}.npy" for k in range(SHARE - 1)], out)
    rest = np.load(Path(folder) / f"read-{SHARE - 1}.npy")
    for piece in np.array_split(rest, count, axis=1):
        append(out, {"src": piece[0].copy(), "dst": piece[1].copy()}).graph.close()
    return Outcome(seconds=time.perf_counter() - begin)


def make_one(graph: str, out: str) -> Outcome:
    """Append one edge between known nodes to a copy."""
    from graphsys.datasets.append import append

    shutil.copytree(graph, out)
    begin = time.perf_counter()
    append(out, {"src": [0], "dst": [5]}).graph.close()
    return Outcome(seconds=time.perf_counter() - begin)


def make_compacted(graph: str, out: str) -> Outcome:
    """Compact a copy."""
    from graphsys.storage.dynamic.compact import compact

    shutil.copytree(graph, out)
    report = compact(out)
    report.graph.close()
    return Outcome(seconds=report.seconds)


def ingest_arrays(files: list[Path], out: str) -> None:
    """Write a store of the edges in files, int64 ``[2, E]`` each."""
    from graphsys.storage import EdgeChunk, Source, ingest

    class Edges(Source):
        name = "R-MAT"

        def chunks(self) -> Iterator[EdgeChunk]:
            for file in files:
                src, dst = np.load(file)
                for begin in range(0, len(src), 1 << 20):
                    piece = slice(begin, begin + (1 << 20))
                    yield EdgeChunk(src=src[piece], dst=dst[piece])

    ingest(Edges(), out).graph.close()
