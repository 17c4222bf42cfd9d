"""No import hides from the import checker, and no string names what stands above."""

import ast
import inspect
import re
import tomllib
import typing

import graphsys
from tests.conftest import ROOT
from tests.meta.test_tree import sources

REGISTRIES = {
    "datasets/opening.py": "readers of formats",
    "graphsys/core/deps.py": "packages of others",
    "graphsys/core/lazy_exports.py": "names of a package, by its own imports for checkers",
    "graphsys/core/registry.py": "plug-ins by name",
    "graphsys/embedding/blas.py": "a package of others",
    "graphsys/embedding/spec/functions.py": "kernels that specs name",
    "graphsys/engine/algorithms/algorithm.py": "listed algorithms",
    "graphsys/engine/native_plan.py": "kernels of a listed algorithm",
}
"""Who may import by a name that is computed, and what for."""


def layers() -> dict[str, int]:
    """Return how high each package stands, by its name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = (
        it for it in project["tool"]["importlinter"]["contracts"] if it["name"] == "layers"
    )
    rows = [re.findall(r"graphsys\.(\w+)", row) for row in reversed(contract["layers"])]
    return {name: height for height, row in enumerate(rows) for name in row}


PROGRAM = "graphsys.cli.main"
"""A command line names it: ``python -m graphsys.cli.main``."""


def parsed() -> dict[str, ast.Module]:
    return {str(it.relative_to(ROOT)): ast.parse(it.read_text()) for it in sources()}


def test_ray_is_asked_in_one_module() -> None:
    importers = {
        path
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(it.name == "ray" for it in node.names))
        or (isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "ray")
        or (isinstance(node, ast.Call) and ast.unparse(node).startswith("require('ray'"))
    }
    assert importers == {"graphsys/distributed/ray.py"}


def test_only_registries_import_by_computed_names() -> None:
    importers = {
        path
        for path, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
        and ast.unparse(node).rpartition(".")[2]
        in ("import_module", "__import__", "resolve_name")
    }
    assert importers == set(REGISTRIES)


def test_no_string_names_a_module_of_a_higher_layer() -> None:
    heights, found = layers(), []
    for path, tree in parsed().items():
        package = path.removeprefix("graphsys/").partition("/")[0]
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            named = re.match(r"graphsys\.(\w+)(?:\.\w+)*\.?(?::\w+)?$", node.value)
            if (
                named
                and node.value != PROGRAM
                and heights.get(named[1], -1) > heights.get(package, 99)
            ):
                found.append(f"{path}:{node.lineno}: {node.value}")
    assert found == []


def test_the_answers_of_a_graph_have_types() -> None:
    """An editor completes what a method returns."""
    methods = inspect.getmembers(graphsys.Graph, callable)
    public = {
        name: method.__annotations__
        for name, method in methods
        if not name.startswith("_") and hasattr(method, "__annotations__")
    }
    assert len(public) > 40
    loose = [
        f"{name}: {where}"
        for name, stated in public.items()
        for where, kind in stated.items()
        if kind in (typing.Any, "Any")
    ]
    assert loose == []
    assert [name for name, stated in public.items() if "return" not in stated] == []
