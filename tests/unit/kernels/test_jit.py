"""A kernel's cache covers what the kernel calls, in whichever file that is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphsys.kernels.jit as jit_module

CALLEE = (
    "from kernels.jit import inline_jit\n\n@inline_jit\ndef step(x):\n    return x + {}\n"
)
CALLER = """
from kernels.callee import step
from kernels.jit import jit

@jit
def run(x):
    return step(x)
"""


def call(folder: Path) -> tuple[str, str]:
    """Return what the kernel answers, and whether it came from the cache."""
    code = (
        "from kernels.caller import run\n"
        "print(run(1), 'hit' if run.stats.cache_hits else 'miss')"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer, source = done.stdout.split()
    return answer, source


def test_changed_callee_compiles_its_callers_anew(tmp_path: Path) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    shutil.copy(str(jit_module.__file__), package / "jit.py")
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    assert call(tmp_path) == ("2", "miss")
    assert call(tmp_path) == ("2", "hit")
    (package / "callee.py").write_text(CALLEE.format(10))
    assert call(tmp_path) == ("11", "miss")
