"""Vectors in numba's CUDA simulator beside SciPy and NumPy; prints one JSON line.

Usage: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.cuda_sim.run_vectors`` from the root.
"""

import json
import sys
import warnings
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from graphsys.core.cuda.device import LaunchShape
from graphsys.core.errors import BudgetError
from graphsys.core.progress import SILENT
from graphsys.engine import program as gs
from graphsys.engine.cuda.run import run_on_device
from graphsys.engine.topology import Topology
from tests.cuda_sim import warp_shim
from tests.cuda_sim.garbage import leave_garbage
from tests.cuda_sim.vector_programs import Reduced, reductions

NUM_NODES, NUM_EDGES = 60, 300
SIZES = (1, 3, 31, 32, 33, 64, 130)
_RNG = np.random.default_rng(3)
SRC, DST = _RNG.integers(0, NUM_NODES, (2, NUM_EDGES))
WEIGHT = _RNG.random(NUM_EDGES).round(3)


def summed(dtype: str, size: int, *, weighted: bool, both: bool) -> Any:
    """Return a program that sums vectors of neighbors once."""
    way: Literal["out", "both"] = "both" if both else "out"

    class Sums(gs.VertexProgram):
        x = gs.state(dtype, shape=(size,))
        combine, max_supersteps, direction = gs.sum_, 1, way

        def init(self, node: Any) -> Any:
            return (node.id * 7 + gs.component) % 11

        def message(self, src: Any) -> Any:
            return src.x

        def update(self, node: Any, message: Any) -> Any:
            return message

    class Weighted(Sums):
        def message(self, src: Any, edge: Any) -> Any:  # type: ignore[override]
            return src.x * edge.weight

    return (Weighted if weighted else Sums)()


class Eighths(Reduced):
    """Every reduction, of vectors with equal components; all their sums are exact."""

    x = gs.state("float64", shape=(70,))

    def init(self, node: Any) -> Any:
        value = int(8 * gs.random(3, node.id, gs.component)) - 4.0
        return value, 0.0, 0.0, 0.0, 0, 0, 0.0


def on_device(program: Any, topology: Topology, **options: Any) -> Any:
    """Return the table of a run on a device of two small blocks."""
    return run_on_device(
        program,
        topology,
        strategy="auto",
        device_memory=options.get("device_memory"),
        max_supersteps=1,
        require_convergence=False,
        progress=SILENT,
        shape=LaunchShape(block=64, max_blocks=2),
    ).table


def wrong_sums(topology: Topology, *, is_directed: bool) -> dict[str, float]:
    """Return how far sums are from products with a matrix, by what was summed."""
    found = {}
    for dtype in ("float32", "float64", "int32"):
        for size in SIZES:
            weighted = dtype == "float64"
            both = is_directed and size == 33
            values = WEIGHT if weighted else np.ones(NUM_EDGES)
            matrix = sp.coo_matrix((values, (DST, SRC)), shape=(NUM_NODES, NUM_NODES))
            if both or not is_directed:
                back = matrix.T
                if not is_directed:  # a loop has one way
                    loops = SRC == DST
                    at = (values[loops], (SRC[loops], DST[loops]))
                    back = back - sp.coo_matrix(at, shape=matrix.shape)
                matrix = matrix + back
            x = (np.arange(NUM_NODES)[:, None] * 7 + np.arange(size)) % 11
            program = summed(dtype, size, weighted=weighted, both=both)
            got = np.array(on_device(program, topology)["value"].to_pylist())
            assert got.shape == (NUM_NODES, size)
            found[f"{dtype} {size}"] = float(np.abs(matrix @ x - got).max())
    return found


def wrong_reductions(topology: Topology) -> dict[str, float]:
    """Return how far reductions are from NumPy's."""
    table = on_device(Eighths(), topology)
    return {
        name: float(np.abs(values - table[name].to_numpy()).max())
        for name, values in reductions(np.array(table["x"].to_pylist())).items()
    }


def refusal(topology: Topology) -> str:
    """Return what a device too small for the vectors is told."""
    try:
        program = summed("float64", 130, weighted=False, both=False)
        on_device(program, topology, device_memory=60 * 130 * 8 * 4)
    except BudgetError as err:
        return str(err)
    return ""


def main() -> None:
    """Compare and print."""
    made = {
        kind: Topology.from_edges(
            SRC, DST, NUM_NODES, weight=WEIGHT, directed=kind == "directed"
        )
        for kind in ("directed", "undirected")
    }
    sums = {
        kind: wrong_sums(topology, is_directed=kind == "directed")
        for kind, topology in made.items()
    }
    told = {
        "sums": sums,
        "reductions": wrong_reductions(made["directed"]),
        "refusal": refusal(made["directed"]),
    }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    warp_shim.install()
    leave_garbage()
    warnings.simplefilter("ignore")
    main()
