"""Compile ahead what common commands need, by running them on small generated graphs.

What a process compiles lies in numba's cache and in ours afterwards, where every later one
finds it. A lock of numba's lets one thread of a process compile at a time, so that work is
shared among processes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphsys.core.errors import GraphsysError
from graphsys.core.progress import SILENT, Progress

_EDGES = "".join(f"{node} {(3 * node + 1) % 40}\n" for node in range(40))
_ROWS = "".join(f"n{k},n{(7 * k + 2) % 40},{k}.5\n" for k in range(40))
_TRAININGS = {
    "default": "dim=32",
    "complex": "operator=complex_diagonal,reciprocal=true,loss=softmax",
    "distmult": "operator=diagonal,reciprocal=true,loss=softmax",
    "transe": "operator=translation,comparator=l2,loss=logistic",
    "undirected": "operator=identity,comparator=cos,loss=ranking",
}
_MODELS = ("sage", "gcn", "gat")
_NEEDS = {
    "bfs": ("source=0",),
    "katz": ("alpha=0.001",),
    "sssp": ("source=0",),
    "personalized_pagerank": ("source=0",),
    "min_cut": ("source=0", "target=1"),
}
"""Parameters without which an algorithm does not run."""

Command = list[str]


def warm_up(progress: Progress = SILENT) -> dict[str, Any]:
    """Run common commands of each kind, so that their kernels lie in the caches.

    Args:
        progress: Told of every command that is done.

    Returns:
        ``commands``, how many were run, and the ``seconds`` that took.

    Raises:
        GraphsysError: A command failed.
    """
    began = time.perf_counter()
    with TemporaryDirectory(prefix="graphsys-warm-up-") as name:
        folder = Path(name)
        (folder / "edges.txt").write_text(_EDGES)
        (folder / "edges.csv").write_text("src,dst,weight\n" + _ROWS)
        chains = [list(_embedding_commands()), list(_graph_commands())]
        total = sum(map(len, chains))
        progress.stage("compile", total, "commands")
        with ThreadPoolExecutor(len(chains)) as pool:
            waiting = [pool.submit(_run, chain, folder, progress) for chain in chains]
            for done in waiting:
                done.result()
        progress.close()
    return {"commands": total, "seconds": time.perf_counter() - began}


def _embedding_commands() -> Iterator[Command]:
    yield ["dataset", "build", "demo", "-o", "demo"]
    for name, settings in _TRAININGS.items():
        words = [word for setting in settings.split(",") for word in ("--set", setting)]
        yield ["train", "embedding", "demo", "-o", name, "--set", "epochs=1", *words]
        yield ["evaluate", name]
    yield ["nearest", "default", "user-00042"]
    yield ["export", "default", "-o", "default.parquet"]


def _graph_commands() -> Iterator[Command]:
    from graphsys.engine.algorithms import ALGORITHMS

    yield ["ingest", "edges.txt", "-o", "plain"]
    yield ["ingest", "edges.csv", "-o", "named"]
    yield ["dataset", "build", "rmat", "-o", "rmat", "--param", "scale=8"]
    yield ["dataset", "build", "planted", "-o", "planted", "--param", "num_nodes=400"]
    for name in sorted(ALGORITHMS):
        graph = "planted" if name == "label_propagation" else "rmat"
        words = [word for value in _NEEDS.get(name, ()) for word in ("--param", value)]
        yield ["run", name, graph, "-o", f"{name}.parquet", *words]
    for model in _MODELS:
        words = ["--set", f"model={model}", "--set", "epochs=1"]
        yield ["train", "gnn", "planted", "-o", f"gnn-{model}", *words]
    yield ["evaluate", "gnn-sage"]


def _run(commands: list[Command], folder: Path, progress: Progress) -> None:
    places = {
        name: os.path.abspath(os.environ[name])
        for name in ("NUMBA_CACHE_DIR", "GRAPHSYS_CACHE")
        if os.environ.get(name)
    }
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "graphsys", *command, "--json"],
            cwd=folder, env=os.environ | places,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["nothing was said"])[-1]
            raise GraphsysError(f"graphsys {' '.join(command)} failed: {said}")
        progress.advance(1)
