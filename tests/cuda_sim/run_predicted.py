"""Run the analysis part of ``scripts/gpu_check`` in numba's simulator."""

import importlib
import json
import sys
import warnings
from pathlib import Path

from graphsys.core.cuda.device import LaunchShape
from tests.cuda_sim import warp_shim
from tests.cuda_sim.programs import PROGRAMS
from tests.cuda_sim.run_simulator import make_graph

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[2] / "scripts"))
    checks = importlib.import_module("gpu_checking.predicted")
    warp_shim.install()
    warnings.simplefilter("ignore")
    topology, source = make_graph("hub")
    left_out: list[str] = []
    chosen = {"pagerank": PROGRAMS["Ranks"](), "sssp": PROGRAMS["Distances"](source=source)}
    shape = LaunchShape(block=64, max_blocks=2)
    rows = checks.bench("hub", topology, chosen, 1e18, left_out, ("warp",), shape=shape)
    rows += checks.bench("hub", topology, chosen, 0.0, left_out, ("twc",), shape=shape)
    sys.stdout.write(
        json.dumps({"rows": rows, "left_out": left_out, "table": checks.table(rows)})
    )
