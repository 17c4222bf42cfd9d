"""What programs and benchmarks import is there: no type checker reads these."""

import ast
import importlib
from pathlib import Path

import pytest

from tests.conftest import ROOT

CASES = [*ROOT.glob("scripts/bench/cases/*.py"), *ROOT.glob("scripts/torturing/*.py")]


def is_python(path: Path) -> bool:
    if path in CASES:
        return True
    if path.suffix or not path.is_file():
        return False
    return b"python" in path.read_bytes().partition(b"\n")[0]


PROGRAMS = sorted(it.relative_to(ROOT) for it in ROOT.glob("scripts/**/*") if is_python(it))


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_names_that_a_program_imports_are_there(program: Path) -> None:
    for node in ast.walk(ast.parse((ROOT / program).read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level or not node.module:
            continue
        if node.module.partition(".")[0] != "graphsys":
            continue
        module = importlib.import_module(node.module)
        for name in node.names:
            if not hasattr(module, name.name):
                importlib.import_module(f"{node.module}.{name.name}")


def test_there_are_programs() -> None:
    assert len(PROGRAMS) > 5
