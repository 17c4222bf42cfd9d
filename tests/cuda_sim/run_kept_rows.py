"""Runs one after another on two graphs; prints the bytes that each copied to the device.

Usage: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.cuda_sim.run_kept_rows`` from the root.
"""

import gc
import json
import sys
from typing import Any

import numpy as np

from graphsys.core.events import recording
from graphsys.engine.cuda import rows
from graphsys.engine.programs.bfs import BreadthFirst
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.cuda_sim import warp_shim


def main() -> None:
    """Run and print."""
    rng = np.random.default_rng(4)

    def make() -> Topology:
        src, dst = rng.integers(0, 50, (2, 400))
        return Topology.from_edges(src, dst, 50, weight=rng.random(400), directed=False)

    graph, other = make(), make()
    found: dict[str, Any] = {}
    for name, program, on, memory in (
        ("bfs", BreadthFirst(source=0), graph, None),
        ("bfs again", BreadthFirst(source=0), graph, None),
        ("sssp", ShortestPaths(source=0), graph, None),
        ("sssp again", ShortestPaths(source=0), graph, None),
        ("bfs of another", BreadthFirst(source=0), other, None),
        ("bfs of the first", BreadthFirst(source=0), graph, None),
        ("bfs, streamed", BreadthFirst(source=0), graph, 6000),
        ("bfs after that", BreadthFirst(source=0), graph, None),
    ):
        expected = run(program, on).table
        with recording() as recorder:
            got = run(
                program, on, device="cuda", strategy="warp", device_memory=memory
            ).table
        assert got.equals(expected), name
        found[name] = sum(
            event.value
            for event in recorder.events
            if event.name == "bytes_copied" and event.attributes["direction"] == "to_device"
        )
    kept = [it is graph for it in rows._KEPT]
    csr = graph.csr("out")
    found |= {"rows": csr.indptr.nbytes + csr.indices.nbytes}
    found |= {"weights": csr.columns["weight"].nbytes, "kept": kept}
    del graph, other, on
    gc.collect()  # runs hold their graphs in circles
    found["kept after all"] = len(rows._KEPT)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    warp_shim.install()
    main()
