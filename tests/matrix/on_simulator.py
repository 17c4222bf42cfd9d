"""Run listed algorithms in numba's CUDA simulator, for ``test_simulator.py``.

Usage: ``python -m tests.matrix.on_simulator FOLDER`` from the root, with
``NUMBA_ENABLE_CUDASIM=1``: the simulator is chosen before numba is imported. Of each
algorithm with a program and of each program of one's own, directed and undirected,
``FOLDER`` gets the table.
"""

import sys
import warnings
from functools import partial
from pathlib import Path
from unittest.mock import patch

import pyarrow.parquet as pq

from graphsys.core.cuda.device import LaunchShape
from graphsys.engine.algorithms import ALGORITHMS
from graphsys.engine.cuda import run
from graphsys.engine.program_run import prepare_program
from tests.cuda_sim import warp_shim
from tests.matrix.cells import given_to, taken_by
from tests.matrix.graphs import mixed
from tests.matrix.oracles import GRAPHS
from tests.matrix.programs import PROGRAMS
from tests.matrix.stores import LAYOUTS


def main(folder: Path) -> None:
    """Run every algorithm and program both ways, on a device of one small block."""
    small = partial(run.run_on_device, shape=LaunchShape(block=64, max_blocks=1))
    with patch("graphsys.engine.cuda.run.run_on_device", small):
        for name, entry in ALGORITHMS.items():
            for is_directed in (True, False) if entry.program else ():
                graph = GRAPHS[name](is_directed, "integers", "quarters")
                given = taken_by(name, "program", given_to(name, graph))
                options = {"implementation": "program", "device": "cuda", **given}
                done = entry.prepare(graph.topology(), **options).run()
                pq.write_table(done.table, folder / f"{name}-{is_directed}.parquet")
        for what, (program, _) in PROGRAMS.items():
            for is_directed in (True, False):
                store = folder / f"{what}-{is_directed}"
                LAYOUTS["four partitions"](store, mixed(is_directed, "texts", "quarters"))
                done = prepare_program(program(), str(store), device="cuda").run()
                pq.write_table(done.table, folder / f"{what}-{is_directed}.parquet")


if __name__ == "__main__":
    warp_shim.install()
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))
