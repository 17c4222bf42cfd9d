"""No import hides from the import checker, and no string names what stands above."""

import ast
import functools
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


OF_OURS = re.compile(r"graphsys\.(\w+)(?:\.\w+)*\.?(?::\w+)?$")
"""A string that names a module of ours."""


class Named(typing.NamedTuple):
    """Where files of ours name what is imported.

    Attributes:
        ray: Files that import ray or ask for it.
        computed: Files that import by names which are computed.
        modules: File, line and text of each string that names a module of ours.
    """

    ray: set[str]
    computed: set[str]
    modules: list[tuple[str, int, str]]


@functools.cache
def named() -> Named:
    """Read every file once: its trees together would fill hundreds of megabytes."""
    found = Named(set(), set(), [])
    for source in sources():
        path = str(source.relative_to(ROOT))
        for node in ast.walk(ast.parse(source.read_text())):
            if imports_ray(node):
                found.ray.add(path)
            if imports_by_computed_name(node):
                found.computed.add(path)
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            if OF_OURS.match(node.value):
                found.modules.append((path, node.lineno, node.value))
    return found


def imports_ray(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(it.name == "ray" for it in node.names)
    if isinstance(node, ast.ImportFrom):
        return str(node.module).split(".")[0] == "ray"
    return isinstance(node, ast.Call) and ast.unparse(node).startswith("require('ray'")


def imports_by_computed_name(node: ast.AST) -> bool:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
    return name in ("import_module", "__import__", "resolve_name")


def test_ray_is_asked_in_one_module() -> None:
    assert named().ray == {"graphsys/distributed/ray.py"}


def test_only_registries_import_by_computed_names() -> None:
    assert named().computed == set(REGISTRIES)


def test_no_string_names_a_module_of_a_higher_layer() -> None:
    heights = layers()
    found = [
        f"{path}:{line}: {text}"
        for path, line, text in named().modules
        if text != PROGRAM
        and heights.get(text.split(".")[1].partition(":")[0], -1)
        > heights.get(path.removeprefix("graphsys/").partition("/")[0], 99)
    ]
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
