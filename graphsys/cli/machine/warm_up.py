"""Compile ahead what common commands need, by running them on small generated graphs.

What a process compiles lies in numba's cache and in ours afterwards, where every later one
finds it. A lock of numba's lets one thread of a process compile at a time, so that work is
shared among processes.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

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

Command = list[str]


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that could not be run ahead.

    Attributes:
        command: What was called.
        reason: The last line that it printed on stderr.
    """

    command: str
    reason: str


def warm_up(progress: Progress = SILENT) -> dict[str, Any]:
    """Run common commands of each kind, so that their kernels lie in the caches.

    A command that fails does not stop the others: what it needs is then compiled when it
    is first called.

    Args:
        progress: Receives every command that ended.

    Returns:
        ``commands``, how many were run, the ``seconds`` that took, and ``failed``: of each
        command that failed ``command`` and ``reason``.
    """
    began = time.perf_counter()
    with TemporaryDirectory(prefix="graphsys-warm-up-") as name:
        folder = Path(name)
        write_inputs(folder)
        chains = command_chains()
        total = sum(map(len, chains))
        progress.stage("compile", total, "commands")
        with ThreadPoolExecutor(len(chains)) as pool:
            running = [pool.submit(_run, chain, folder, progress) for chain in chains]
            failed = [asdict(failure) for chain in running for failure in chain.result()]
        progress.close()
    seconds = time.perf_counter() - began
    return {"commands": total, "seconds": seconds, "failed": failed}


def write_inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    (folder / "edges.txt").write_text(_EDGES)
    (folder / "edges.csv").write_text("src,dst,weight\n" + _ROWS)


def command_chains() -> list[list[Command]]:
    """Return commands to be run side by side, one after the other within a list."""
    others = [*graph_commands(), *algorithm_commands(), *network_commands()]
    return [list(embedding_commands()), others]


def embedding_commands() -> Iterator[Command]:
    """Yield trainings of the usual models, and what is asked of a trained one."""
    yield ["dataset", "build", "demo", "-o", "demo"]
    for name, settings in _TRAININGS.items():
        words = [word for setting in settings.split(",") for word in ("--set", setting)]
        yield ["train", "embedding", "demo", "-o", name, "--set", "epochs=1", *words]
        yield ["evaluate", name]
    yield ["nearest", "default", "user-00042"]
    yield ["export", "default", "-o", "default.parquet"]


def graph_commands() -> Iterator[Command]:
    """Yield what builds a graph of plain text and one of named columns."""
    yield ["ingest", "edges.txt", "-o", "plain"]
    yield ["ingest", "edges.csv", "-o", "named"]


def algorithm_commands(names: Iterable[str] | None = None) -> Iterator[Command]:
    """Yield what builds the examples of listed algorithms, and what runs them there.

    Args:
        names: Which algorithms; all by default.
    """
    from graphsys.engine.algorithms import ALGORITHMS

    built = set()
    for name in sorted(ALGORITHMS if names is None else names):
        example = ALGORITHMS[name].example
        graph = "-".join([example.dataset, *map(str, example.settings.values())])
        if graph not in built:
            built.add(graph)
            settings = _as_words(example.settings)
            yield ["dataset", "build", example.dataset, "-o", graph, *settings]
        words = _as_words(example.parameters)
        yield ["run", name, graph, "-o", f"{name}.parquet", *words]


def network_commands() -> Iterator[Command]:
    """Yield trainings of the usual graph neural networks, and an evaluation."""
    yield ["dataset", "build", "planted", "-o", "classes", "--param", "num_nodes=400"]
    for model in _MODELS:
        words = ["--set", f"model={model}", "--set", "epochs=1"]
        yield ["train", "gnn", "classes", "-o", f"gnn-{model}", *words]
    yield ["evaluate", "gnn-sage"]


def _as_words(parameters: Mapping[str, Any]) -> Command:
    words = []
    for name, value in parameters.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else value
        words += ["--param", f"{name}={text}"]
    return words


def _run(commands: list[Command], folder: Path, progress: Progress) -> list[Failure]:
    """Run commands one after the other; return those that failed."""
    places = {
        name: os.path.abspath(os.environ[name])
        for name in ("NUMBA_CACHE_DIR", "GRAPHSYS_CACHE")
        if os.environ.get(name)
    }
    failed = []
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "graphsys", *command, "--json"],
            cwd=folder,
            env=os.environ | places,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["it printed no reason"])[-1]
            failed.append(Failure(f"graphsys {' '.join(command)}", reason))
        progress.advance(1)
    return failed
