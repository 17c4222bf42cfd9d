"""NVIDIA's compiler is found where it lies outside of Python's packages, or named."""

import os
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from graphsys.core.cuda import device, toolkit
from graphsys.core.errors import MissingDependencyError
from tests.advice.case import advised
from tests.advice.test_packages import brought_by

pathfinder = pytest.importorskip("cuda.pathfinder", reason="numba-cuda is not installed")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine where libnvvm is in no package: it is found by ``$CUDA_HOME`` alone."""

    whole = pathfinder.load_nvidia_dynamic_lib

    def load(name: str) -> Any:
        if name != "nvvm":
            return whole(name)
        root = Path(os.environ.get("CUDA_HOME", "/nowhere"))
        for library in root.glob("nvvm/lib64/libnvvm.so*"):
            return type("Loaded", (), {"abs_path": str(library)})
        raise pathfinder.DynamicLibNotFoundError('Failure finding "libnvvm.so"')

    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", load)
    monkeypatch.setattr(toolkit, "_LOCAL", tmp_path / "local")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def make_toolkit(root: Path, *, libdevice: bool = True) -> Path:
    for name in ("bin/nvcc", "nvvm/lib64/libnvvm.so.4", "lib64/libnvrtc.so.13"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch(mode=0o755)
    if libdevice:
        (root / "nvvm" / "libdevice").mkdir()
        (root / "nvvm" / "libdevice" / "libdevice.10.bc").touch()
    return root / "nvvm" / "lib64" / "libnvvm.so.4"


def test_the_toolkit_of_nvcc_is_found(bare: Path) -> None:
    library = make_toolkit(bare / "opt" / "cuda")
    (bare / "bin").mkdir()
    (bare / "bin" / "nvcc").symlink_to(bare / "opt" / "cuda" / "bin" / "nvcc")
    assert toolkit.require_compiler() == library
    assert os.environ["CUDA_HOME"] == str(bare / "opt" / "cuda")


def test_of_several_toolkits_the_pinned_one_is_taken(bare: Path) -> None:
    make_toolkit(bare / "local" / "cuda-13.2")
    library = make_toolkit(bare / "local" / "cuda-13.0")
    assert toolkit.require_compiler() == library


def test_the_linkers_toolkit_is_found(bare: Path) -> None:
    library = make_toolkit(bare / "far")
    (bare / "bin").mkdir()
    linker = bare / "bin" / "ldconfig"
    known = bare / "far" / "lib64" / "libnvrtc.so.13"
    linker.write_text(f"#!/bin/sh\necho '	libnvrtc.so.13 (libc6,x86-64) => {known}'\n")
    linker.chmod(0o755)
    assert toolkit.require_compiler() == library


def test_a_toolkit_without_device_code_is_none(bare: Path) -> None:
    make_toolkit(bare / "local" / "cuda", libdevice=False)
    with pytest.raises(MissingDependencyError, match=r"looked into .*cuda") as found:
        toolkit.require_compiler()
    install = advised(
        str(found.value),
        "graphsys/core/cuda/toolkit.py",
        r": (pip install '\S+'), or set CUDA_HOME to the folder",
    )
    assert {"cuda-toolkit", "numba-cuda"} <= brought_by(install[1])
    assert "CUDA_HOME" not in os.environ
    assert toolkit.describe_compiler()["reason"] == "libnvvm and libdevice are not found"


def test_a_device_without_compiler_is_refused(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(device, "is_simulated", lambda: False)
    with pytest.raises(MissingDependencyError, match="needs libnvvm and libdevice"):
        device.require_device()


def test_a_numba_cuda_that_does_not_load_names_the_numpy_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        """What numba-cuda 0.30 does beside numpy 2.5."""

        def find_spec(self, name: str, *_: object) -> None:
            if name == "numba.cuda":
                raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "numba.cuda", raising=False)
    monkeypatch.delattr(numba, "cuda", raising=False)
    with pytest.raises(MissingDependencyError, match=r"row_stack.*numpy<2\.5"):
        device.require_device()
