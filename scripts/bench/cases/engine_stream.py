"""Case ``engine_stream``: PageRank out of core, against our own engine in memory.

One store of 8 partitions; the same program runs with all its rows mapped at once and with
rows streamed from the index files. ``cold`` drops those files from the page cache before
every superstep; the limit of its time is the slower of reading them at this disk's rate and
of gathering one message an edge at the rate of a table of the messages' size. ``warm``
leaves the page cache alone. Time is the median superstep after the first.
"""

import os
import statistics
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits, gather_rate

PEERS: dict[str, str] = {}
PARTITIONS = 8
EDGE_FACTOR = 16
SUPERSTEPS = 8
IN_MEMORY = "in memory"
MODULE = "bench.cases.engine_stream"


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the two works; both read one store."""
    import graphsys
    from graphsys.datasets import generators
    from graphsys.engine.topology import Topology

    scale = 18 if quick else 22
    store = folder / "graph"
    source = generators.rmat(scale, EDGE_FACTOR, seed=1)
    with graphsys.ingest(source, store, partitions=PARTITIONS).graph as graph:
        topology = Topology.of(graph)
        num_nodes, num_edges = topology.num_nodes, topology.num_edges
    # numba's first call compiles; float64 messages, read as 4-byte places of as many bytes
    gathers = gather_rate(8 * num_nodes, 3 if quick else 5)

    def cold_limit(results: Mapping[str, Any]) -> float:
        read = results[f"{OURS} streamed"]["figures"]["index_bytes"]
        return float(max(read / limits.disk_read_bandwidth, num_edges / gathers))

    name = f"R-MAT {scale}, {num_edges / 1e6:.3g}M entries, {PARTITIONS} partitions"
    for kind in ("warm", "cold"):
        yield Work(
            name=f"pagerank superstep {kind}, {name}",
            amount=num_edges,
            unit="edges/s",
            contenders=[
                Contender(
                    system=system,
                    run=in_child(
                        f"{MODULE}:superstep", store=store, mode=mode, is_cold=is_cold
                    ),
                )
                for system, mode, is_cold in (
                    (f"{OURS} streamed", "streamed", kind == "cold"),
                    (IN_MEMORY, "memory", False),
                )
            ],
            verify=verify,
            limit_s=cold_limit if kind == "cold" else num_edges / gathers,
        )


def verify(results: Mapping[str, Any]) -> None:
    """Require that all ways give the same scores."""
    sums = [result["checksum"] for result in results.values()]
    if max(sums) - min(sums) > 1e-9 * max(sums):
        raise WrongResultError(f"the weighted sums of scores differ: {sums}")


def superstep(store: str, mode: str, is_cold: bool) -> Outcome:
    """Run some supersteps of PageRank; the time is the median of all but the first."""
    import numpy as np

    from graphsys.engine.execute import prepared, program_memory
    from graphsys.engine.programs.pagerank import PageRank
    from graphsys.engine.run import run
    from graphsys.engine.topology import Topology

    prepared.choose = partial(_forced, program_memory.choose, mode)  # type: ignore[assignment]
    topology = Topology.of(store)
    side = "in" if topology.is_directed else "out"
    files = sorted(Path(store).glob(f"gen-*/index/*/{side}-*.arrow"))
    timed = _Timed(files if is_cold else [])
    done = run(PageRank(iterations=SUPERSTEPS), topology, progress=timed)
    scores = done.table["value"].to_numpy()
    ids = done.table["id"].to_numpy()
    figures = {"index_bytes": sum(file.stat().st_size for file in files)}
    return Outcome(
        seconds=statistics.median(timed.seconds[1:]),
        result={"checksum": float(scores @ (1 + np.asarray(ids) % 7)), "figures": figures},
        compile_s=done.compile_seconds,
    )


def _forced(choose: Any, mode: str, plan: Any, topology: Any, _: int | None) -> Any:
    from dataclasses import replace

    return replace(choose(plan, topology, None), mode=mode, budget=0)


class _Timed:
    """A progress that times supersteps and drops files from the page cache between them."""

    def __init__(self, files: list[Path]) -> None:
        self.seconds: list[float] = []
        self._files = files

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        self.drop()

    def advance(self, steps: int, **figures: float) -> None:
        self.seconds.append(figures["messages"] / figures["edges/s"])
        self.drop()

    def close(self) -> None:
        """Do nothing."""

    def drop(self) -> None:
        """Drop what has been given back; what is still mapped stays."""
        for path in self._files:
            file = os.open(path, os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
