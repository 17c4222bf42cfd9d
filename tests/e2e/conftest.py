"""A graph and a run that several end-to-end tests look at, made once by the command."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.warm_command import WarmPrograms
from tests.wheel_environment import build_wheel, make_environment

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")
TRIANGLES = "".join(
    f"{3 * n + a}\t{3 * n + b}\n" for n in range(20) for a, b in ((0, 1), (1, 2), (2, 0))
)


def answer(done: Any) -> dict[str, Any]:
    """Return the one JSON object that a command printed."""
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1, done.stdout
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for what the session's tests share."""
    return tmp_path_factory.mktemp("e2e")


@pytest.fixture(scope="session")
def edges_file(work: Path) -> Path:
    """Return a file of 20 directed triangles, 60 nodes."""
    path = work / "triangles.tsv"
    path.write_text(TRIANGLES)
    return path


@pytest.fixture(scope="session")
def small_graph(work: Path, edges_file: Path, run_cli: Run) -> Path:
    """Return the triangles as a graph of two partitions."""
    out = work / "triangles"
    answer(run_cli("ingest", edges_file, "-o", out, "--partitions", "2", "--json"))
    return out


@pytest.fixture(scope="session")
def demo_graph(work: Path, run_cli: Run) -> Path:
    """Return the demo data set in two partitions."""
    out = work / "demo"
    answer(run_cli("dataset", "build", "demo", "-o", out, "--partitions", "2", "--json"))
    return out


@pytest.fixture(scope="session")
def demo_run(work: Path, demo_graph: Path, run_cli: Run) -> Path:
    """Return a short training run on the demo data set."""
    out = work / "run"
    options = ["--preset", "demo-complex", "--set", "epochs=2", "--set", "dim=32"]
    answer(run_cli("train", "embedding", demo_graph, "-o", out, *options, "--json"))
    return out


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built of the tree."""
    pytest.importorskip("setuptools", reason="the wheel is built without the network")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def base_programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment with the wheel and no extra."""
    return make_environment(tmp_path_factory.mktemp("base") / "environment", wheel)


@pytest.fixture(scope="session")
def warm_base_programs(base_programs: Path) -> Iterator[str]:
    """Return the same programs, ``graphsys`` in forks of a process with its imports.

    For pages of many commands; README.md's are called as users call them.
    """
    warm = WarmPrograms(base_programs, Path(tempfile.mkdtemp(prefix="gs-warm-")))
    yield warm.path
    warm.close()


@pytest.fixture(scope="session")
def warm_programs() -> Iterator[str]:
    """Return the programs of this environment in the same way."""
    programs = Path(sys.executable).parent
    warm = WarmPrograms(programs, Path(tempfile.mkdtemp(prefix="gs-warm-")))
    yield warm.path
    warm.close()


@pytest.fixture(scope="session")
def browser() -> str:
    """Return a browser that draws pages without a screen."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium; apt-get install chromium-headless-shell")
    return found
