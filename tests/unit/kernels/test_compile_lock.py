"""Processes that meet a kernel at the same time compile it once between them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from graphsys.kernels import compile_lock
from graphsys.kernels.compile_lock import CompileLock

KERNEL = """
from graphsys.kernels.jit import jit

@jit
def run(x):
    total = x - x
    for i in range(int(x)):
        total += i * i % 7
    return total
"""
RUN = """
import pathlib, sys, time
import kernel

folder, own, other, number = map(eval, sys.argv[1:])
kernel.run.dispatcher  # numba is loaded
pathlib.Path(folder, own).touch()
while not pathlib.Path(folder, other).exists():
    time.sleep(0.001)
print(kernel.run(number), "loaded" if kernel.run.stats.cache_hits else "compiled")
"""


def both(folder: Path, *numbers: str) -> list[list[str]]:
    """Return what two processes say that call the kernel at the same moment."""
    (folder / "kernel.py").write_text(KERNEL)
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": ""}
    words = [("'a'", "'b'", numbers[0]), ("'b'", "'a'", numbers[-1])]
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, repr(str(folder)), *it],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for it in words
    ]
    return [process.communicate(timeout=120)[0].split() for process in begun]


def test_one_of_two_processes_compiles_and_the_other_loads_it(tmp_path: Path) -> None:
    said = both(tmp_path, "10")
    assert sorted(said) == [["19", "compiled"], ["19", "loaded"]]


def test_signatures_that_two_processes_add_at_once_are_both_kept(tmp_path: Path) -> None:
    assert both(tmp_path, "10", "10.0") == [["19", "compiled"], ["19.0", "compiled"]]
    for name in "ab":
        (tmp_path / name).unlink()
    assert both(tmp_path, "10", "10.0") == [["19", "loaded"], ["19.0", "loaded"]]


def test_a_process_that_does_not_go_on_is_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_lock, "PATIENCE_S", 0.1)
    code = (
        "import sys; from graphsys.kernels.compile_lock import CompileLock\n"
        "CompileLock(sys.argv[1], 'run').acquire(); print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        own, another = (CompileLock(str(tmp_path), name) for name in ("run", "other"))
        for lock in (own, another):
            lock.acquire()
        assert (own._is_held, another._is_held) == (False, True)
        another.release()
        holder.kill()
    own.acquire()  # the lock ends with its process
    assert own._is_held
    own.release()


def test_without_a_folder_nothing_is_locked(tmp_path: Path) -> None:
    lock = CompileLock(str(tmp_path / "none"), "run")
    lock.acquire()
    lock.release()
