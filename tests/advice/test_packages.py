"""What is advised where a package is missing brings that package, and then it works."""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphsys.core import machine
from graphsys.core.errors import MissingDependencyError
from graphsys.engine.cuda import offline as engine_offline
from tests.advice.case import advised
from tests.advice.conftest import Command
from tests.advice.test_tune import FILES, MADE, TUNE
from tests.conftest import ROOT

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())[
    "project"
]["optional-dependencies"]
USERS = EXTRAS.keys() - {"dev", "bench"}
FEW = "--set epochs=1 --set dim=4 --set batch_size=4"
Without = Callable[[str, str], str]


def brought_by(install: str) -> set[str]:
    """Return the names of the packages that are installed as a message says."""
    found = re.fullmatch(r"pip install 'graphsys\[(\w+)\]'", install)
    assert found is not None, install
    return {re.split(r"[^\w-]", it, maxsplit=1)[0] for it in EXTRAS[found[1]]}


@pytest.fixture
def without(tmp_path: Path) -> Without:
    """Return a function that does a command where a package is absent.

    Those that numba looks into are hidden from a process of its own: one that has imported
    them has parts of them everywhere.
    """

    def do(package: str, words: str) -> str:
        (tmp_path / "site").mkdir(exist_ok=True)
        hidden = f"import sys\nsys.modules[{package!r}] = None\n"
        (tmp_path / "site" / "sitecustomize.py").write_text(hidden)
        done = started(words, PYTHONPATH=str(tmp_path / "site"))
        assert done.returncode == 2, done.stderr
        return done.stderr

    return do


def started(words: str, **told: str) -> "subprocess.CompletedProcess[str]":
    """Do a command in a process of its own."""
    module = (
        ["tests.cuda_sim.run_command"] if "NUMBA_ENABLE_CUDASIM" in told else ["graphsys"]
    )
    command = [sys.executable, "-m", *module, *words.split()]
    return subprocess.run(
        command, env={**os.environ, **told}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def graph(folder: Path, command: Command) -> Path:
    """Make the graph ``g`` of three nodes in the current folder."""
    (folder / "a.txt").write_text("1 2\n2 3\n3 1\n")
    assert command("ingest a.txt -o g").code == 0
    return folder / "g"


def test_a_package_of_an_extra(folder: Path, command: Command) -> None:
    for name, content in FILES.items():
        (folder / name).write_text(str(content))
    assert command(MADE).code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "optuna", None)
        said = command(TUNE).said
    install = advised(
        said, "graphsys/core/deps.py", r"optuna is needed .*; (pip install '\S+')"
    )
    assert "optuna" in brought_by(install[1])
    assert command(TUNE).code == 0


def test_curves_for_tensorboard(graph: Path, command: Command) -> None:
    words = f"train gnn g -o run {FEW} --set task=link_prediction --set tensorboard=true"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch.utils.tensorboard", None)
        said = command(words).said
    install = advised(
        said,
        "graphsys/training/tensorboard.py",
        r"the package (?:tensorboard), .* not installed; (pip install '\S+')",
    )
    assert "tensorboard" in brought_by(install[1])
    assert command(words).code == 0
    assert list(Path("run").rglob("events.out.*"))


def test_numbas_compiler_for_cuda(graph: Path, without: Without) -> None:
    words = "run bfs g -o hops.csv --param source=1 --device cuda"
    said = without("numba.cuda", words)
    install = advised(
        said, "graphsys/core/cuda/device.py", r"needs numba-cuda: (pip install '\S+')"
    )
    assert {"numba-cuda", "numpy"} <= brought_by(install[1])
    done = started(words, NUMBA_ENABLE_CUDASIM="1", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr
    assert len(Path("hops.csv").read_text().split()) == 1 + 3


def test_triton_for_trainings(graph: Path, command: Command) -> None:
    words = f"train gnn g -o run {FEW} --set task=link_prediction --device cuda"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRITON_INTERPRET", raising=False)
        patch.setitem(sys.modules, "triton", None)
        said = command(words).said
    install = advised(
        said, "graphsys/core/triton/device.py", r"needs Triton: (pip install '\S+')"
    )
    assert "triton" in brought_by(install[1])
    pytest.importorskip("triton")
    done = started(f"{words} --json", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr


def test_compilers_without_a_gpu(without: Without) -> None:
    words = "profile --compile sm_90 pagerank --json"
    install = advised(
        without("numba_cuda", words),
        "graphsys/core/cuda/offline.py",
        r"needs numba-cuda: (pip install '\S+')",
    )
    assert {"numba-cuda", "cuda-toolkit", "triton"} <= brought_by(install[1])
    done = started(words)
    if done.returncode:  # what else this machine lacks is of the same extra
        more = advised(
            done.stderr,
            "graphsys/core/cuda/offline.py",
            r"CUDA's compiler is missing; (pip install '\S+')",
        )
        assert more[1] == install[1]
        (toolkit,) = (it for it in EXTRAS["gpu"] if it.startswith("cuda-toolkit"))
        assert {"nvrtc", "nvvm"} <= set(re.findall(r"\w+", toolkit))


def test_triton_for_compiling_without_a_gpu() -> None:
    from graphsys.core.triton.offline import compiling_offline

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "triton", None)
        patch.setitem(sys.modules, "triton.runtime", None)
        with pytest.raises(MissingDependencyError) as missing, compiling_offline():
            pass
    install = advised(
        str(missing.value),
        "graphsys/core/triton/offline.py",
        r"compiling for CUDA needs Triton: (pip install '\S+')",
    )
    assert "triton" in brought_by(install[1])
    pytest.importorskip("triton")
    with compiling_offline():
        pass


def test_the_disassembler_comes_with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    from graphsys.engine.cuda.disassembly import find_nvdisasm

    monkeypatch.setattr(
        engine_offline,
        "_compile_all",
        lambda *_, **__: [SimpleNamespace(instructions=None)],
    )
    with pytest.raises(MissingDependencyError) as missing:
        engine_offline.count_instructions("pull", len, ())
    install = advised(
        str(missing.value),
        "graphsys/engine/cuda/offline.py",
        r"triton, which brings one, is not installed: (pip install '\S+')",
    )
    assert "triton" in brought_by(install[1])
    pytest.importorskip("triton")
    monkeypatch.setenv("PATH", "")
    found = find_nvdisasm()
    assert found is not None
    assert subprocess.run([found, "--version"], check=False).returncode == 0


def test_doctor_names_the_smallest_extra(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_installed_version", lambda name: None)
    page = command("doctor").out
    known = dict(re.findall(r"(\S+) +not installed; (pip install \S+)", page))
    line = advised(
        page,
        "graphsys/cli/machine/doctor.py",
        r"optuna not installed; (pip install '\S+')",
    )
    assert brought_by(line[1]) == {"optuna"}
    assert known.pop("numpy") == "pip install numpy"
    for name, install in known.items():
        if "[" in install:
            assert name in brought_by(install)
            bring = [brought_by(f"pip install 'graphsys[{it}]'") for it in USERS]
            sizes = [len(it) for it in bring if name in it]
            assert not sizes or len(brought_by(install)) == min(sizes)
