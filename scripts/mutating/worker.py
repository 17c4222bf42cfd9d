"""One process that has imported what is slow, and forks a child for every mutant.

The child finds graphsys in a copy of the tree, with one mutant in one module, and runs
that module's tests. Read from stdin, one JSON object a line: ``tests``, ``path``, ``index``
(null for no mutant), ``limit_s``, and ``test_limit_s``, the most CPU time of one test; the
answer is ``killed``, ``survived``, ``timeout`` or ``broken``, the seconds that took, and
the CPU time of the slowest test.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from mutating.stand_ins import install

_SLOW_IMPORTS: Final = (
    "numpy",
    "numba",
    "numba.np.ufunc.parallel",
    "scipy.sparse.csgraph",
    "scipy.stats",
    "pyarrow",
    "pyarrow.parquet",
    "pyarrow.csv",
    "pyarrow.ipc",
    "pyarrow.compute",
    "pyarrow.dataset",
    "torch",
    "torch.nn.functional",
    "safetensors.torch",
    "sklearn.metrics",
    "torchmetrics",
    "hypothesis.strategies",
    "hypothesis.extra.numpy",
    "_pytest.config",
    "_pytest.assertion.rewrite",
    "typer",
    "rich",
)
_DATA_BYTES: Final = 3 << 30
_OUTCOMES: Final = {0: "survived", 1: "killed", 2: "killed", 3: "killed"}
"""Exit codes of pytest: passed, failed, interrupted (an import failed), internal error."""


def main(root: Path) -> None:
    """Serve until stdin ends.

    Args:
        root: The copy of the tree.
    """
    for name in _SLOW_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if any(name.partition(".")[0] == "graphsys" for name in sys.modules):
        raise RuntimeError("graphsys was imported before its mutants")
    for line in sys.stdin:
        print(json.dumps(_fork(root, json.loads(line))), flush=True)


def _fork(root: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Run one job in a child; end it, and all that it started, at its limit."""
    began, folder = time.monotonic(), tempfile.mkdtemp(prefix="mutant-")
    child = os.fork()
    if child == 0:
        _work(root, job, folder)
    status = None
    while time.monotonic() - began < job["limit_s"]:
        ended, found = os.waitpid(child, os.WNOHANG)
        if ended:
            status = found
            break
        time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        outcome = "timeout"
    elif os.WIFSIGNALED(status):
        outcome = "timeout" if os.WTERMSIG(status) == signal.SIGPROF else "killed"
    else:
        outcome = _OUTCOMES.get(os.WEXITSTATUS(status), "broken")
    said = Path(folder, "said").read_text(errors="replace")[-2000:]
    slowest = Path(folder, "slowest")
    slowest_s = float(slowest.read_text()) if slowest.exists() else 0.0
    shutil.rmtree(folder, ignore_errors=True)
    took = time.monotonic() - began
    return {"outcome": outcome, "seconds": took, "slowest_s": slowest_s, "said": said}


def _work(root: Path, job: dict[str, Any], folder: str) -> None:
    """Run the tests in this child, and end it."""
    os.setpgid(0, 0)
    said = os.open(Path(folder, "said"), os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(said, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 4
    try:
        code = _test(root, job, folder)
    finally:
        os._exit(code)


def _test(root: Path, job: dict[str, Any], folder: str) -> int:
    import hypothesis
    import pytest

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile(
        "mutation",
        phases=phases,
        max_examples=40,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    os.environ["HYPOTHESIS_PROFILE"] = "mutation"
    os.chdir(root)
    if os.environ.get("NUMBA_DISABLE_JIT") == "1":
        install()
    sys.meta_path.insert(0, _Finder(root, job["path"], job["index"]))
    quiet = ["-x", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    # without numba, the sums of uint64 that wrap around warn
    quiet += ["-W", "ignore::RuntimeWarning"]
    where = [f"--rootdir={root}", f"--basetemp={folder}/base", f"-c={root}/pyproject.toml"]
    clock = _TestClock(job["test_limit_s"])
    code = int(pytest.main([*quiet, *where, *job["tests"]], plugins=[clock]))
    Path(folder, "slowest").write_text(str(clock.slowest_s))
    return code


class _TestClock:
    """Ends the process when a test takes too much CPU time: a loop that has no end."""

    def __init__(self, limit_s: float) -> None:
        self.slowest_s = 0.0
        self._limit_s, self._began_s = limit_s, 0.0

    def pytest_runtest_logstart(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, self._limit_s)
        self._began_s = time.process_time()

    def pytest_runtest_logfinish(self) -> None:
        self.slowest_s = max(self.slowest_s, time.process_time() - self._began_s)


class _Finder:
    """Finds ``graphsys`` in the copy; one module of it has a mutant."""

    def __init__(self, root: Path, path: str, index: int | None) -> None:
        self._root = root
        self._path, self._index = str(root / path), index

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "graphsys":
            folder = self._root / "graphsys"
            return importlib.util.spec_from_file_location(
                name, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
        if not name.startswith("graphsys.") or self._index is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.origin == self._path:
            spec.loader = _Loader(name, self._path, self._index)
            spec.cached = None
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    """Compiles a module with a mutant, and caches nothing."""

    def __init__(self, name: str, path: str, index: int) -> None:
        super().__init__(name, path)
        self._index = index

    def get_code(self, fullname: str) -> Any:
        from mutating.mutants import mutated

        tree = mutated(Path(self.path).read_text(encoding="utf-8"), self._index)
        return compile(tree, self.path, "exec", dont_inherit=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
