"""Case ``first_look``: what comparing checksums and bounds on first mapping costs a run.

`graphsys run bfs` in a new process on kron20, as a user calls it, in three ways: with the
first look made in this run, with all files remembered from a look before, and with no look
at all, by a patch of this benchmark. Interleaved; a ratio is taken against
the run without any look: 0.97 is a cost of 3 %. The results must be equal.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Contender, Outcome, Work, same_results
from bench.limits import Limits
from graphsys.core.checksums import file_digest

PEERS: dict[str, str] = {}
_MAIN = "from graphsys.cli.main import main; raise SystemExit(main())"
_NO_LOOK = (
    "from graphsys.storage.integrity import FirstLook; "
    "FirstLook.require = lambda *arguments: None; "
)


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the one work; the graph is made by the command itself."""
    scale = 16 if quick else 20
    graph = folder / f"kron{scale}"
    _run("", folder, "dataset", "build", "rmat", "-o", graph, "--param", f"scale={scale}")
    size = sum(file.stat().st_size for file in graph.rglob("index/**/*.arrow"))
    yield Work(
        name=f"run bfs in a new process, kron{scale}, index of {size / 1e6:.0f} MB",
        amount=size,
        unit="bytes/s",
        contenders=(
            Contender(system="graphsys, first look", run=lambda: _bfs(graph, "first")),
            Contender(system="graphsys, remembered", run=lambda: _bfs(graph, "remembered")),
            Contender(system="no look", run=lambda: _bfs(graph, "none")),
        ),
        verify=same_results,
    )


def _bfs(graph: Path, look: str) -> Outcome:
    """Run the command once; return its wall time and what it wrote."""
    folder = graph.parent
    if look == "first":
        shutil.rmtree(folder / "cache" / "checked", ignore_errors=True)
    out = folder / "out.arrow"
    code = _NO_LOOK if look == "none" else ""
    began = time.perf_counter()
    _run(code, folder, "run", "bfs", graph, "--param", "source=3", "-o", out, "--overwrite")
    seconds = time.perf_counter() - began
    return Outcome(seconds=seconds, result=file_digest(out))


def _run(code: str, folder: Path, *arguments: object) -> None:
    """Run the command line in a new process, with a cache of the benchmark's own."""
    subprocess.run(
        [sys.executable, "-P", "-c", code + _MAIN, *map(str, arguments)],
        env={**os.environ, "GRAPHSYS_CACHE": str(folder / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
