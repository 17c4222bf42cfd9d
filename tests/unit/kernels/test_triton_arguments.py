"""Counts that Triton kernels are given stay numbers of the device: 1 is no special case.

Triton makes an integer argument of 1 a constant of Python, which has no ``to``, unless the
argument is named in ``do_not_specialize``. No Triton is needed to look.
"""

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

CUDA = ROOT / "graphsys" / "kernels" / "cuda"


def constants(path: Path) -> dict[str, Any]:
    """Return the tuples of texts that a module names, its own and imported ones."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and "kernels.cuda" in (node.module or ""):
            source = ROOT.joinpath(*str(node.module).split(".")).with_suffix(".py")
            others = constants(source)
            found |= {it.name: others[it.name] for it in node.names if it.name in others}
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
    return found


def kernels() -> list[Any]:
    """Return each launched kernel with the arguments that are not specialized."""
    found = []
    for path in sorted(CUDA.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for call in node.decorator_list:
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "triton.jit":
                    (given,) = call.keywords
                    is_name = isinstance(given.value, ast.Name)
                    names = (
                        constants(path)[ast.unparse(given.value)]
                        if is_name
                        else ast.literal_eval(given.value)
                    )
                    found.append(pytest.param(node, set(names), id=node.name))
    return found


@pytest.mark.parametrize(("kernel", "varying"), kernels())
def test_counts_are_not_specialized(kernel: ast.FunctionDef, varying: set[str]) -> None:
    arguments = {it.arg for it in kernel.args.args if it.annotation is None}
    counts = {name for name in arguments if name.startswith("num_")}
    converted = {
        node.func.value.id
        for node in ast.walk(kernel)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "to"
        and isinstance(node.func.value, ast.Name)
    }
    assert (counts | converted & arguments) - varying == set()
