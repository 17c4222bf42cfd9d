"""Case ``dynamic``: appends, readers beside a writer, and reading a store with deltas.

Edges are R-MAT's with a time, 100M of them (``--quick``: 4M). Works:

* ``append N edges``: durable appends in one process, their rate; medians and 99th
  percentiles of an append's seconds are figures. Peers do the same edges: a rebuild of the
  whole store by ourselves, and Raphtory's load into memory (which is not durable).
* ``snapshots``: opens of the store beside a process that appends without pause; each is
  read whole, and one that is torn ends the work as wrong.
* ``bfs``, ``pagerank``, ``sampling``: on stores with 10 and 100 deltas, a tenth of all
  edges, against the compacted store. ``merge_s`` is the time in which the first reader
  merges the rows, which no later run of the process pays again; it is a figure, and part
  of the works named ``opened anew``.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.child import in_child
from bench.environments import peer_python
from bench.harness import Contender, Outcome, Work, WrongResultError, same_results
from bench.limits import Limits

PEERS = {"Raphtory": "raphtory"}
MODULE = "bench.cases.dynamic"
SHARE = 10  # a tenth of the edges is in deltas


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works."""
    del limits
    scale, num_edges = (18, 4_000_000) if quick else (22, 100_000_000)
    for k in range(SHARE + 1):
        _edges(folder, scale, k, num_edges // SHARE)
    base = folder / "base"
    run_now("make_base", folder=str(folder), out=str(base), last=SHARE)
    for size, times in ((1, 100), (1000, 50), (num_edges // 100, 10)):
        yield _appends(folder, base, size, times, missing)
    yield _snapshots(folder, base, 500 if quick else 10_000)
    for num_deltas in (10, 100):
        stores = {"deltas": folder / f"d{num_deltas}", "compacted": folder / "whole"}
        run_now(
            "make_deltas", folder=str(folder), out=str(stores["deltas"]), count=num_deltas
        )
        if not stores["compacted"].exists():
            run_now(
                "make_compacted", graph=str(stores["deltas"]), out=str(folder / "whole")
            )
        for what in ("bfs", "pagerank", "sampling"):
            for anew in (False, True):
                yield _reading(stores, what, num_deltas, num_edges, anew)


def run_now(name: str, **arguments: Any) -> None:
    """Call a function of this module in a process of its own."""
    in_child(f"{MODULE}:{name}", **arguments)()


def _edges(folder: Path, scale: int, number: int, size: int) -> None:
    """Write a tenth of the edges."""
    rng = np.random.default_rng(number)
    np.save(folder / f"edges-{number}.npy", rmat_ends(rng, scale, size))


def rmat_ends(rng: np.random.Generator, scale: int, size: int) -> Any:
    """Draw R-MAT's edges corner by corner (a .57, b .19, c .19): ends, int64 ``[2, E]``."""
    ends = np.zeros((2, size), dtype=np.int64)
    for _ in range(scale):
        corner = rng.random(size, dtype=np.float32)
        ends *= 2
        ends[0] += corner > 0.76
        ends[1] += ((corner > 0.57) & (corner <= 0.76)) | (corner > 0.95)
    return ends


# ---- appends


def _appends(folder: Path, base: Path, size: int, times: int, missing: list[str]) -> Work:
    arguments: dict[str, Any] = {"folder": str(folder), "size": size, "times": times}
    contenders = [
        Contender(
            system="graphsys",
            run=in_child(f"{MODULE}:append_edges", graph=str(base), **arguments),
        )
    ]
    python = None if "Raphtory" in missing else peer_python("raphtory")
    if size > 1000:
        again = in_child(f"{MODULE}:rebuild", out=str(folder / "rebuilt"), **arguments)
        contenders.append(
            Contender(system="graphsys, rebuild of all, once", run=again, is_reference=True)
        )
    if python is not None and size > 1:
        load = in_child(f"{MODULE}:load_raphtory", python=python, **arguments)
        contenders.append(Contender(system="Raphtory", run=load))

    def verify(results: Mapping[str, Any]) -> None:
        for system, result in results.items():
            if result["edges"] != size * times and "rebuild" not in system:
                raise WrongResultError(f"{system}: {result['edges']} of {size * times}")

    return Work(
        name=f"append {size} edges, {times} times",
        amount=size * times,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def _batches(folder: str, size: int, times: int) -> Iterator[tuple[Any, Any]]:
    """Yield batches of edges that the store has not."""
    ends = np.load(Path(folder) / f"edges-{SHARE}.npy", mmap_mode="r")
    for k in range(times):
        begin = k * size % max(ends.shape[1] - size, 1)
        yield tuple(np.array(row[begin : begin + size]) for row in ends)  # type: ignore[misc] # two


def append_edges(graph: str, folder: str, size: int, times: int) -> Outcome:
    """Append batches to a copy that shares the first generation's files."""
    import shutil

    from graphsys.datasets.append import append

    copy = Path(graph).with_name("appended")
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["cp", "-al", graph, str(copy)], check=True)
    (copy / "graph.json").unlink()
    shutil.copy(Path(graph) / "graph.json", copy)
    batches = list(_batches(folder, size, times + 1))
    append(copy, {"src": batches[-1][0], "dst": batches[-1][1]}).graph.close()
    seconds, edges = [], 0
    for src, dst in batches[:-1]:
        begin = time.perf_counter()
        report = append(copy, {"src": src, "dst": dst})
        seconds.append(time.perf_counter() - begin)
        edges += report.num_added
        report.graph.close()
    shutil.rmtree(copy)
    figures = {"p50_s": np.percentile(seconds, 50), "p99_s": np.percentile(seconds, 99)}
    return Outcome(seconds=sum(seconds), result={"edges": edges, "figures": figures})


def rebuild(out: str, folder: str, size: int, times: int) -> Outcome:
    """Write a store of everything, as had to be done without deltas; counted once."""
    import shutil

    del size, times
    begin = time.perf_counter()
    _ingest(folder, range(SHARE + 1), out)
    seconds = time.perf_counter() - begin
    shutil.rmtree(out)
    return Outcome(seconds=seconds, result={"edges": 0})


def load_raphtory(folder: str, size: int, times: int) -> Outcome:
    """Load the batches into a graph in memory, which is not written anywhere."""
    import pandas as pd
    import raphtory

    graph = raphtory.Graph()
    seconds = 0.0
    for k, (src, dst) in enumerate(_batches(folder, size, times)):
        frame = pd.DataFrame({"src": src, "dst": dst, "time": np.full(len(src), k)})
        begin = time.perf_counter()
        load = getattr(graph, "load_edges", None) or graph.load_edges_from_pandas
        load(frame, time="time", src="src", dst="dst")
        seconds += time.perf_counter() - begin
    return Outcome(seconds=seconds, result={"edges": size * times})


# ---- readers beside a writer


def _snapshots(folder: Path, base: Path, count: int) -> Work:
    run = in_child(
        f"{MODULE}:take_snapshots", graph=str(base), folder=str(folder), count=count
    )

    def verify(results: Mapping[str, Any]) -> None:
        found = results["graphsys"]
        if found["torn"] or found["figures"]["states_seen"] < 2:
            raise WrongResultError(f"snapshots: {found}")

    return Work(
        name=f"snapshots beside a writer, {count} of them",
        amount=count,
        unit="snapshots/s",
        contenders=[Contender(system="graphsys", run=run)],
        verify=verify,
    )


def take_snapshots(graph: str, folder: str, count: int) -> Outcome:
    """Open a small store while another process appends rings of 3 and compacts it."""
    import shutil

    from graphsys.datasets import ingest
    from graphsys.storage import Graph

    del graph
    store = Path(folder) / "small"
    shutil.rmtree(store, ignore_errors=True)
    ingest({"src": [0, 1, 2], "dst": [1, 2, 0]}, store).graph.close()
    command = [sys.executable, "-P", "-c", _WRITER, str(store)]
    writer = subprocess.Popen(command)
    seen, torn = set(), 0
    begin = time.perf_counter()
    try:
        for _ in range(count):
            with Graph(store) as opened:
                rows = sum(
                    len(opened.out_index("edge", part).indices)
                    for part in range(opened.num_partitions("node"))
                )
                buckets = int(opened.bucket_counts("edge").sum())
                torn += rows != opened.num_edges or buckets != rows or rows % 3 != 0
                seen.add(opened.num_edges)
        seconds = time.perf_counter() - begin
        is_alive = writer.poll() is None
    finally:
        writer.kill()
        writer.wait()
    if not is_alive:
        raise RuntimeError("the writer ended before the readers")
    figures = {"states_seen": len(seen)}
    return Outcome(seconds=seconds, result={"torn": torn, "figures": figures})


_WRITER = """
import sys
from graphsys.datasets.append import append
from graphsys.storage.dynamic.compact import compact
first = 3
while True:
    ring = [first, first + 1, first + 2]
    append(sys.argv[1], {"src": ring, "dst": ring[1:] + ring[:1]}).graph.close()
    first += 3
    if first % 60 == 0:
        compact(sys.argv[1]).graph.close()
"""


# ---- reading


def _reading(
    stores: Mapping[str, Path], what: str, num_deltas: int, num_edges: int, anew: bool
) -> Work:
    kind = {"what": what, "anew": anew}
    contenders = [
        Contender(system=system, run=in_child(f"{MODULE}:read", graph=str(store), **kind))
        for system, store in (
            ("graphsys", stores["deltas"]), ("compacted store", stores["compacted"])
        )
    ]  # fmt: skip
    how = ", opened anew" if anew else ""

    def verify(results: Mapping[str, Any]) -> None:
        same_results({name: result["sum"] for name, result in results.items()})

    return Work(
        name=f"{what}, {num_deltas} deltas{how}",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def read(graph: str, what: str, anew: bool) -> Outcome:
    """Run an algorithm; ``anew`` with the merging, else the second time in a process."""
    from graphsys.storage import Graph

    size = sum(path.stat().st_size for path in Path(graph).rglob("*") if path.is_file())
    with Graph(graph) as opened:  # compiles
        result = _answer(opened, what)
    begin = time.perf_counter()
    with Graph(graph) as opened:
        for part in range(opened.num_partitions("node")):
            opened.out_index("edge", part)
            opened.in_index("edge", part)
        merged = time.perf_counter() - begin
        again = time.perf_counter()
        result = _answer(opened, what)
        seconds = time.perf_counter() - (begin if anew else again)
    figures = {"merge_s": merged, "store_bytes": size}
    return Outcome(seconds=seconds, result={"sum": result, "figures": figures})


def _answer(graph: Any, what: str) -> Any:
    import graphsys as gs

    if what == "bfs":
        table = gs.algorithms.bfs(graph, source=0).table
        return int(np.nansum(table.column("value").to_pandas()))
    if what == "pagerank":
        table = gs.algorithms.pagerank(graph, iterations=20).table.sort_by("id")
        return [f"{value:.6e}" for value in table.column("value").to_numpy()[:100]]
    from graphsys.sampling import NeighborSampler

    sampler = NeighborSampler(graph, [15, 10], seed=0)
    ids = np.arange(0, 100_000, 7)
    known = graph.node_ids("node").to_numpy()
    seeds = graph.lookup("node", ids[np.isin(ids, known)])
    for begin in range(0, len(seeds), 1024):
        sampler.sample(seeds[begin : begin + 1024])
    return len(seeds)


# ---- stores


def make_base(folder: str, out: str, last: int) -> Outcome:
    """Write the store that is appended to."""
    begin = time.perf_counter()
    _ingest(folder, range(last), out)
    return Outcome(seconds=time.perf_counter() - begin)


def make_deltas(folder: str, out: str, count: int) -> Outcome:
    """Write nine tenths of the edges, and one tenth in so many deltas."""
    from graphsys.datasets.append import append

    begin = time.perf_counter()
    _ingest(folder, range(SHARE - 1), out)
    rest = np.load(Path(folder) / f"edges-{SHARE - 1}.npy")
    for piece in np.array_split(rest, count, axis=1):
        append(out, {"src": piece[0].copy(), "dst": piece[1].copy()}).graph.close()
    return Outcome(seconds=time.perf_counter() - begin)


def make_compacted(graph: str, out: str) -> Outcome:
    """Compact a copy."""
    import shutil

    from graphsys.storage.dynamic.compact import compact

    shutil.copytree(graph, out)
    report = compact(out)
    report.graph.close()
    return Outcome(seconds=report.seconds)


def _ingest(folder: str, numbers: range, out: str) -> None:
    from graphsys.storage import EdgeChunk, Source, ingest

    class Edges(Source):
        name = "R-MAT"

        def chunks(self) -> Iterator[EdgeChunk]:
            for number in numbers:
                src, dst = np.load(Path(folder) / f"edges-{number}.npy")
                for begin in range(0, len(src), 1 << 20):
                    piece = slice(begin, begin + (1 << 20))
                    yield EdgeChunk(src=src[piece], dst=dst[piece])

    ingest(Edges(), out).graph.close()
