"""Workers of a cluster as threads of the test, without Ray."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from graphsys.distributed.run import combined
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import run_in_threads
from graphsys.engine.execute.prepared import compile_program, table_of
from graphsys.engine.topology import Topology


def run_by_workers(
    name: str, graph: Path | str, options: dict[str, Any], workers: int
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return an algorithm's table, and what every worker told of the run."""
    work = ProgramWork(graph=str(graph), algorithm=name, parameters=options, threads=1)
    parts = run_in_threads([work] * workers)
    topology = Topology.of(str(graph))
    plan, _, _ = compile_program(work.program(), topology)
    return table_of(plan, topology, combined(parts)), parts
