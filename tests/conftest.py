"""What all tests share: real graphs, seeds, the order of the suite, a clean sys.path."""

import gc
import importlib.util
import math
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests import durations, warm_command

ROOT = Path(__file__).resolve().parent.parent

# `python -m pytest` puts the root on sys.path, and then `import datasets` in any library
# finds our source folder. graphsys itself comes from the installation.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]

# else DGL's first import writes its choice below the home folder, which the first import
# of another process may read half-written
os.environ.setdefault("DGLBACKEND", "pytorch")

# torch's threads wait for each other by spinning; where processes share cores, the one that
# is waited for is not running, and a tiny step takes a hundred times as long
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

settings.register_profile(
    "default",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("long", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SLOW_LAST = ("e2e", "kill")
LEARNING = {"embedding", "gnn", "sampling", "ops"}
"""Folders whose tests compile other kernels than all other tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options to pytest's."""
    durations.add_options(parser)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among modules and items, neither now nor while tests run.

    They are a million objects that stay. Looking at them was a third of a collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let modules go with the process: Triton's say that they leak else."""
    gc.unfreeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the fast tests first, then end to end and the kills; of these the longest first.

    So no worker is left with a long file when others have ended.

    Files of learning and others take turns, so that two workers that begin without compiled
    kernels do not compile the same ones at the same time.
    """

    def is_slow(item: pytest.Item) -> bool:
        return any(item.get_closest_marker(mark) for mark in SLOW_LAST)

    turns: dict[Path, int] = {}
    begun = {True: 0, False: 0}
    for item in items:
        if item.path not in turns:
            is_learning = not LEARNING.isdisjoint(item.path.parts)
            turns[item.path] = begun[is_learning]
            begun[is_learning] += 1
    known = durations.known()

    def turn(item: pytest.Item) -> tuple[float, int]:
        seconds = known.get(durations.file_of(item.nodeid), math.inf)
        return -seconds if is_slow(item) else 0.0, turns[item.path]

    items.sort(key=lambda item: (is_slow(item), *turn(item)))
    durations.choose(config, items)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Keep how long each file took, where that was asked for."""
    durations.save(terminalreporter)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real graphs; skip where the machine has none."""
    chosen = os.environ.get("GRAPHSYS_SHARED")
    folder = Path(chosen) / "data" if chosen else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real graphs at {folder}; set GRAPHSYS_SHARED to their parent")
    return folder


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a generator whose seed is the test's name, so that a failure repeats."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


Run = Callable[..., "subprocess.CompletedProcess[str]"]
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def graphsys_command() -> str:
    """Return the path of the installed command."""
    command = Path(sys.executable).parent / "graphsys"
    if not command.exists():
        pytest.skip("graphsys is not installed beside this Python; pip install -e .")
    return str(command)


@pytest.fixture(scope="session")
def run_cli(run_installed: Run) -> Iterator[Run]:
    """Return a function that runs the command, in a fork of a process with its imports.

    It checks nothing: the caller looks at ``returncode``, ``stdout`` and ``stderr``.
    """
    warm = warm_command.shared()

    def run(
        *arguments: object, cwd: Path | None = None, timeout: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        if not warm.fits():
            return run_installed(*arguments, cwd=cwd, timeout=timeout)
        return warm(list(map(str, arguments)), cwd, timeout)

    yield run
    warm_command.shared.cache_clear()
    warm.close()


@pytest.fixture(scope="session")
def run_installed(graphsys_command: str) -> Run:
    """Return a function that starts the installed command, as a user would.

    For what is measured, memory or time, and for what is imported when.
    """

    def run(
        *arguments: object, cwd: Path | None = None, timeout: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [graphsys_command, *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def run_python() -> Run:
    """Return a function that runs Python code in a fresh process, outside the tree."""

    def run(
        code: str, *, cwd: Path = Path("/"), timeout: float = 120
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )

    return run


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that runs the command here, and gives code, stdout and stderr."""
    from graphsys.cli import main as cli

    def run(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def pytest_report_header() -> str:
    """Say where graphsys was imported from."""
    found = importlib.util.find_spec("graphsys")
    return f"graphsys: {found.origin if found else 'not installed'}"
