"""A kernel's cache covers what the kernel calls, in whichever file that is."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numba.core import types

import graphsys.kernels.jit as jit_module
from graphsys.kernels.cpu.embedding.vector_math import fast_exp, row_sum
from graphsys.kernels.jit import compile_kernel, compile_pointed_kernel

CALLEE = (
    "from kernels.jit import inline_jit\n\n@inline_jit\ndef step(x):\n    return x + {}\n"
)
CALLER = """
from kernels.callee import step
from kernels.jit import compile_kernel, jit

@{}
def run(x):
    return step(x)
"""
FUSED = "(lambda kernel: compile_kernel(kernel, fastmath={'contract'}))"


def call(folder: Path) -> tuple[str, str]:
    """Return what the kernel answers, and whether it came from the cache."""
    code = (
        "from kernels.caller import run\n"
        "print(run(1), 'hit' if run.stats.cache_hits else 'miss')"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer, source = done.stdout.split()
    return answer, source


@pytest.mark.parametrize("decorator", ["jit", FUSED])
def test_changed_callee_compiles_its_callers_anew(tmp_path: Path, decorator: str) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(str(jit_module.__file__), package / "jit.py")
    (package / "caller.py").write_text(CALLER.format(decorator))
    (package / "callee.py").write_text(CALLEE.format(1))
    assert call(tmp_path) == ("2", "miss")
    assert call(tmp_path) == ("2", "hit")
    (package / "callee.py").write_text(CALLEE.format(10))
    assert call(tmp_path) == ("11", "miss")
    (package / "other.py").write_text(CALLEE.format(100))
    os.utime(package / "caller.py")  # a copy, a checkout: the same text at another time
    assert call(tmp_path) == ("11", "hit")


def test_a_stamp_reaches_what_imports_import() -> None:
    stamp_of = jit_module.stamp_of
    direct = "from graphsys.kernels.cpu.bits import has_bit"
    assert stamp_of(direct) != stamp_of("import numpy")
    assert jit_module._imported("from graphsys.kernels.cpu import (\n    bits,\n)") == {
        Path(jit_module.__file__).parent / "cpu" / "bits.py"
    }
    reached = jit_module._imports_of(Path(jit_module.__file__).parent / "cpu" / "bits.py")
    assert {path.name for path in reached} == {"atomics.py", "jit.py"}


def test_loops_with_relaxed_floating_point_carry_the_stamp_too() -> None:
    kernels: list[Any] = [fast_exp, row_sum]
    for kernel in kernels:
        text = Path(kernel.py_func.__code__.co_filename).read_text()
        assert kernel._cache._cache_file._source_stamp == jit_module.stamp_of(text)


def test_pointed_kernels_are_for_kernels_only() -> None:
    def plus_one(x: int) -> int:
        return x + 1

    inner = compile_pointed_kernel(plus_one)

    def plus_two(x: int) -> int:
        return inner(x) + 1

    outer = compile_kernel(plus_two)
    for _ in range(2):  # not compiled yet, compiled
        with pytest.raises(TypeError, match="no entry from Python; a kernel may call it"):
            inner(1)
        assert outer(1) == 3


def test_without_a_folder_for_the_cache_kernels_compile_and_say_so_once(
    tmp_path: Path,
) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__pycache__").write_text("not a folder")
    shutil.copy(str(jit_module.__file__), package / "jit.py")
    (package / "callee.py").write_text(CALLEE.format(1))
    more = "\n@jit\ndef double(x):\n    return 2 * x\n"
    (package / "caller.py").write_text(CALLER.format("jit") + more)
    code = "from kernels.caller import double, run\nprint(run(1), double(4))"
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "NUMBA_CACHE_DIR": ""}
    environment = {**os.environ, **nowhere, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "2 8\n", done.stderr
    assert done.stderr.count("no folder for compiled kernels can be written") == 1


def test_a_damaged_cache_is_made_anew(tmp_path: Path) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(str(jit_module.__file__), package / "jit.py")
    (package / "caller.py").write_text(CALLER.format("jit"))
    (package / "callee.py").write_text(CALLEE.format(1))
    assert call(tmp_path) == ("2", "miss")
    index = next((package / "__pycache__").glob("caller.run*.nbi"))
    index.write_bytes(index.read_bytes()[:20])
    assert call(tmp_path) == ("2", "miss")
    assert call(tmp_path) == ("2", "hit")


def test_numba_is_loaded_by_the_first_kernel_that_is_called() -> None:
    code = (
        "import sys\n"
        "from graphsys.kernels.cpu.hashing import mix64\n"
        "print('numba' in sys.modules)\n"
        "mix64(1)\n"
        "print('numba' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_threads_that_call_a_kernel_first_get_the_same_one() -> None:
    def plus_one(x: int) -> int:
        return x + 1

    kernel: Any = compile_kernel(plus_one)
    with ThreadPoolExecutor(8) as pool:
        found = {id(made) for made in pool.map(lambda _: kernel.dispatcher, range(32))}
    assert len(found) == 1


def test_a_constant_in_a_call_compiles_no_variant() -> None:
    def plus(x: int, y: int) -> int:
        return x + y

    callee: Any = compile_kernel(plus)
    kernel: Any = compile_kernel(lambda x: callee(x, 1) + callee(x, 2) + callee(x, x))
    assert kernel(5) == 23
    assert len(callee.nopython_signatures) == 0  # Python never called it
    signatures = callee.get_call_template((types.int64, types.int64), {})[0].cases
    assert len(signatures) == 1
