"""Run programs in numba's CUDA simulator and on the CPU; print one JSON line each.

Usage: run_simulator.py CASE ... where a case is ``program:strategy[:option=value]``, the
options those of the run below and the program's parameters. The simulator is chosen by
``NUMBA_ENABLE_CUDASIM=1`` before numba is imported, so this runs in a process of its own:
``python -m tests.cuda_sim.run_simulator`` from the root.
"""

import importlib
import json
import sys
import warnings
from typing import Any

import numpy as np

from graphsys.core.clocks import CLOCKS, DEVICE_ROWS, KernelClocks
from graphsys.core.cuda.device import LaunchShape
from graphsys.core.events import Observer, recording
from graphsys.core.progress import SILENT
from graphsys.engine.cuda.run import run_on_device
from graphsys.engine.program import parameter_types
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.cuda_sim import warp_shim
from tests.cuda_sim.garbage import leave_garbage
from tests.cuda_sim.programs import PROGRAMS
from tests.cuda_sim.vector_programs import VECTOR_PROGRAMS


def make_graph(kind: str) -> tuple[Topology, int]:
    """Return a small graph with a hub (or a path, or many rows), and the id of a source."""
    rng = np.random.default_rng(11)
    n = 300 if kind == "wide" else 45
    ids = rng.permutation(n) * 3 + 1
    if kind == "path":
        src, dst = np.arange(n - 1), np.arange(1, n)
    elif kind == "wide":
        src, dst = rng.integers(0, n, 3 * n), rng.integers(0, n, 3 * n)
    else:
        src, dst = rng.integers(0, n - 3, 130), rng.integers(0, n - 3, 130)
        src[:70], dst[60:70] = 5, 5  # a row longer than a block, a loop, repetitions
    weight = rng.random(len(src)).round(3)
    topology = Topology.from_edges(src, dst, n, weight=weight, ids=ids)
    return topology, int(ids[src[0]])


def program_class(name: str) -> Any:
    """Return a program of these tests, or a shipped one given as ``module.Class``."""
    module, _, own = name.partition(".")
    if not own:
        return (PROGRAMS | VECTOR_PROGRAMS)[name]
    return getattr(importlib.import_module(f"graphsys.engine.programs.{module}"), own)


def run_case(case: str) -> dict[str, object]:
    """Run one case on the simulator and on the CPU; return how they compare."""
    name, strategy, *options = case.split(":")
    settings = dict(option.split("=") for option in options)
    topology, source = make_graph(settings.get("graph", "hub"))
    kind = program_class(name)
    known = parameter_types(kind)
    ends = {"source": source, "target": int(topology.ids()[7].as_py())}
    ends["sink"] = ends["target"]
    given = {name: json.loads(value) for name, value in settings.items() if name in known}
    program = kind(**{n: v for n, v in (ends | given).items() if n in known})
    limit = int(settings.get("max_supersteps", 0)) or None
    warp_shim.shuffle(int(settings["shuffle"]) if "shuffle" in settings else None)
    expected = run(program, topology, num_threads=1, max_supersteps=limit)
    memory = settings.get("device_memory")
    block = 64 if strategy in ("block", "twc", "auto") else 32
    shape = LaunchShape(block=block, max_blocks=int(settings.get("blocks", 1)))
    clocks: list[KernelClocks] = []
    visits: list[Any] = []
    observers: dict[str, Observer] = {
        CLOCKS: clocks.append,
        DEVICE_ROWS: clocks.append,
        "rows": visits.extend,
    }
    with recording(observers if "clocks" in settings else None) as recorder:
        result = run_on_device(
            program,
            topology.simplified() if program.simple else topology,
            strategy=strategy,
            device_memory=None if memory is None else int(memory),
            max_supersteps=limit,
            require_convergence=False,
            progress=SILENT,
            shape=shape,
            max_fused=int(settings.get("max_fused", 16)),
        )
    differences = [
        column
        for column in expected.table.column_names
        if not _equal(expected.table.column(column), result.table.column(column))
    ]
    counted = {"kernel_launches": 0.0, "bytes_copied": 0.0}
    fused_grids, grids = set(), set()
    for event in recorder.events:
        if event.name in counted:
            counted[event.name] += event.value
        if event.name == "kernel_launches":
            grids.add(int(str(event.attributes["grid"])))
        if "_fused_" in str(event.attributes.get("kernel")):
            fused_grids.add(str(event.attributes["grid"]))
    return {
        "case": case,
        "differences": differences,
        "supersteps": [expected.supersteps, result.supersteps],
        "converged": [expected.converged, result.converged],
        "distinct": len(set(map(str, result.table.column(1).to_pylist()))),
        "fused_grids": sorted(fused_grids),
        "grids": sorted(grids),
        "clocks": [_told(launch) for launch in clocks],
        "visits": [(v.kind, v.mapping, int(v.lengths.sum()), v.is_exact) for v in visits],
        **counted,
    }


def _told(launch: KernelClocks) -> dict[str, Any]:
    return {
        "kernel": launch.kernel,
        "warps": len(launch.begins),
        "shortest": int((launch.ends - launch.begins).min()),
        "sms": sorted(set(launch.sms.tolist())),
        "lane_steps": int((launch.lane_steps * np.arange(33)).sum()),
    }


def _equal(one: Any, other: Any) -> bool:
    first, second = one.to_pylist(), other.to_pylist()
    if [value is None for value in first] != [value is None for value in second]:
        return False
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None]
    if pairs and isinstance(pairs[0][0], float):
        expected, got = zip(*pairs, strict=True)
        return bool(np.allclose(got, expected, rtol=1e-6, atol=0))
    if pairs and isinstance(pairs[0][0], list):
        wanted, found = (np.array(values) for values in zip(*pairs, strict=True))
        if wanted.dtype.kind == "f":
            return bool(np.allclose(found, wanted, rtol=1e-5, atol=1e-6))
        return bool(np.array_equal(found, wanted))
    return all(a == b for a, b in pairs)


if __name__ == "__main__":
    warp_shim.install()
    leave_garbage()
    warnings.simplefilter("ignore")
    for argument in sys.argv[1:]:
        sys.stdout.write(json.dumps(run_case(argument)) + "\n")
