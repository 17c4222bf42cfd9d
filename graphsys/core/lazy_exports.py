"""Names of a package that load the module they stand in when they are first used."""

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any

from graphsys.core.compiling import parse


def lazy_exports(package: str) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` (PEP 562), from its own text.

    Args:
        package: Its name. What its ``__init__.py`` imports under ``if TYPE_CHECKING:``, as
            ``from module import name as name``, is what it offers.
    """
    module = sys.modules[package]
    text = module.__loader__.get_source(package)  # type: ignore[union-attr]
    found = {
        name.asname or name.name: (statement.module, name.name)
        for block in parse(text).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for name in statement.names
    }
    vars(module).setdefault("__all__", sorted(found))

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, original = found[name]
        value = _load(package, place, original)
        setattr(module, name, value)
        return value

    module.__dir__ = lambda: sorted({*vars(module), *found})  # type: ignore[method-assign]
    return get


def _load(package: str, place: str, name: str) -> Any:
    """Return what a module has under a name, or its own module of that name."""
    module = importlib.import_module(place)
    if place != package and hasattr(module, name):
        return getattr(module, name)
    return importlib.import_module(f"{place}.{name}")
