"""Case ``dynamic``: appends, readers beside a writer, deltas, and views of times.

Edges are R-MAT's. Works:

* ``append N edges``: durable appends in one process into a store of 100M edges
  (``--quick``: 2M), their rate; medians and 99th percentiles of an append's seconds are
  figures. Beside it one rebuild of the whole store by ourselves, once for all rounds, and
  Raphtory's load of the same batches into an empty graph in memory, which is not durable.
* ``snapshots``: opens of a store beside a process that appends without pause, 2,000 a
  round, so 12,000 in the usual six; each is read whole, and one that is torn ends the work.
* ``bfs``, ``pagerank``, ``sampling`` (``dynamic_reading``): on stores of 10M edges with 10
  and 100 deltas, a tenth of all edges, against the compacted store: on the open store; and
  bfs and sampling ``opened anew``, which maps the rows that an earlier process merged and
  kept (``kept_bytes`` beside ``store_bytes``), and as the ``first reader``, who merges them
  and keeps them. So after an append of one edge, where all that takes is of the store.
  Seeds of samples are looked up before.
* ``wcc of views``: components of a graph as it was at five times, beside Raphtory's.

``--inputs appends,snapshots,reading,views`` measures parts of it.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.cases.dynamic_peer import batches, percentiles
from bench.cases.dynamic_reading import ingest_arrays, reading_works, view_works
from bench.child import in_child
from bench.environments import peer_python
from bench.harness import Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"Raphtory": "raphtory"}
INPUTS = ("appends", "snapshots", "reading", "views")
MODULE = "bench.cases.dynamic"
PIECES = 10


def works(
    *,
    quick: bool,
    folder: Path,
    limits: Limits,
    missing: list[str],
    inputs: Sequence[str] = INPUTS,
) -> Iterator[Work]:
    """Yield the works."""
    del limits
    if "appends" in inputs:
        yield from _all_appends(folder, quick, missing)
    if "snapshots" in inputs:
        yield _snapshots(folder, 200 if quick else 2_000)
    if "reading" in inputs:
        few = (15, 500_000) if quick else (20, 10_000_000)
        yield from reading_works(folder, *few, rmat_ends)
    if "views" in inputs:
        timed = (15, 200_000) if quick else (18, 2_000_000)
        yield from view_works(folder, *timed, rmat_ends, missing)


def _all_appends(folder: Path, quick: bool, missing: list[str]) -> Iterator[Work]:
    scale, num_edges = (17, 2_000_000) if quick else (22, 100_000_000)
    for k in range(PIECES):
        ends = rmat_ends(np.random.default_rng(k), scale, num_edges // PIECES)
        np.save(folder / f"edges-{k}.npy", ends)
    batch = num_edges // 100
    np.save(folder / "new.npy", rmat_ends(np.random.default_rng(99), scale, 11 * batch))
    base = folder / "base"
    rebuilt = in_child(f"{MODULE}:rebuild", folder=str(folder), out=str(base))()
    for size, times in ((1, 100), (1000, 50), (batch, 10)):
        yield _appends(folder, base, size, times, missing, rebuilt)
    shutil.rmtree(base)
    for k in range(PIECES):
        (folder / f"edges-{k}.npy").unlink()


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


def _appends(
    folder: Path, base: Path, size: int, times: int, missing: list[str], rebuilt: Outcome
) -> Work:
    arguments: dict[str, Any] = {"folder": str(folder), "size": size, "times": times}
    append = in_child(f"{MODULE}:append_edges", graph=str(base), **arguments)
    contenders = [Contender(system="graphsys", run=append)]
    if size > 1000:
        contenders.append(
            Contender(
                system="graphsys, rebuild of all, once",
                run=_again(rebuilt),
                is_reference=True,
            )
        )
    python = None if "Raphtory" in missing else peer_python("raphtory")
    if python is not None and size > 1:
        load = in_child("bench.cases.dynamic_peer:load", python=python, **arguments)
        contenders.append(Contender(system="Raphtory", run=load))

    def verify(results: Mapping[str, Any]) -> None:
        for system, result in results.items():
            if "rebuild" not in system and result["edges"] != size * times:
                raise WrongResultError(f"{system}: {result['edges']} of {size * times}")

    return Work(
        name=f"append {size} edges, {times} times",
        amount=size * times,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def _again(outcome: Outcome) -> Callable[[], Outcome]:
    return lambda: outcome


def append_edges(graph: str, folder: str, size: int, times: int) -> Outcome:
    """Append batches to a copy that shares the first generation's files."""
    from graphsys.datasets.append import append
    from graphsys.storage import Graph

    copy = Path(graph).with_name("appended")
    shutil.rmtree(copy, ignore_errors=True)
    subprocess.run(["cp", "-al", graph, str(copy)], check=True)
    (copy / "graph.json").unlink()
    shutil.copy(Path(graph) / "graph.json", copy)
    found = list(batches(folder, size, times + 1))
    append(copy, {"src": found[-1][0], "dst": found[-1][1]}).graph.close()
    with Graph(copy) as opened:
        before = opened.num_edges
    seconds = []
    for src, dst in found[:-1]:
        begin = time.perf_counter()
        append(copy, {"src": src, "dst": dst}).graph.close()
        seconds.append(time.perf_counter() - begin)
    with Graph(copy) as opened:
        edges = opened.num_edges - before
    shutil.rmtree(copy)
    result = {"edges": edges, "figures": percentiles(seconds)}
    return Outcome(seconds=sum(seconds), result=result)


def rebuild(folder: str, out: str) -> Outcome:
    """Write a store of everything, as had to be done without deltas."""
    begin = time.perf_counter()
    ingest_arrays([Path(folder) / f"edges-{k}.npy" for k in range(PIECES)], out)
    return Outcome(seconds=time.perf_counter() - begin, result={"edges": 0})


# ---- readers beside a writer


def _snapshots(folder: Path, count: int) -> Work:
    run = in_child(f"{MODULE}:take_snapshots", folder=str(folder), count=count)

    def verify(results: Mapping[str, Any]) -> None:
        found = results["graphsys"]
        if found["torn"] or found["figures"]["states_seen"] < 2:
            raise WrongResultError(f"snapshots: {found}")

    return Work(
        name=f"snapshots beside a writer, {count} a round",
        amount=count,
        unit="snapshots/s",
        contenders=[Contender(system="graphsys", run=run)],
        verify=verify,
    )


def take_snapshots(folder: str, count: int) -> Outcome:
    """Open a small store while another process appends rings of 3 and compacts it."""
    from graphsys.datasets import ingest
    from graphsys.storage import Graph

    store = Path(folder) / "small"
    shutil.rmtree(store, ignore_errors=True)
    ingest({"src": [0, 1, 2], "dst": [1, 2, 0]}, store).graph.close()
    command = [sys.executable, "-P", "-c", _WRITER, str(store)]
    writer = subprocess.Popen(command)
    seen, torn = set(), 0
    try:
        _wait_for_more(store, writer)
        begin = time.perf_counter()
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


def _wait_for_more(store: Path, writer: "subprocess.Popen[bytes]") -> None:
    """Wait until the writer, which has to load and compile, appended something."""
    from graphsys.storage import Graph

    while writer.poll() is None:
        with Graph(store) as opened:
            if opened.num_edges > 3:
                return
        time.sleep(0.01)


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
