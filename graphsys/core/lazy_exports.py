"""Names of a package that load the module they stand in when they are first used."""

import ast
import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any


def lazy_exports(package: str) -> Callable[[str], Any]:
    """Return a package's ``__getattr__`` (PEP 562), from its own text.

    Args:
        package: Its name. What its ``__init__.py`` imports under ``if TYPE_CHECKING:``, as
            ``from module import name as name``, is what it offers.
    """
    module = sys.modules[package]
    found = {
        name.asname or name.name: (statement.module, name.name)
        for block in ast.parse(inspect.getsource(module)).body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for name in statement.names
    }
    module.__all__ = sorted(found)  # type: ignore[attr-defined]

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, original = found[name]
        value = getattr(importlib.import_module(place), original)
        setattr(module, name, value)
        return value

    module.__dir__ = lambda: sorted({*vars(module), *found})  # type: ignore[method-assign]
    return get
