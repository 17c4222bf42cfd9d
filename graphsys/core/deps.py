"""Optional packages, imported where they are needed."""

import importlib
import os
from importlib import metadata
from types import ModuleType

from graphsys.core.errors import MissingDependencyError


def require(package: str, *, extra: str) -> ModuleType:
    """Import a package or say which extra brings it.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as err:
        raise MissingDependencyError(
            f"{package} is needed and not installed; pip install 'graphsys[{extra}]'"
        ) from err


def require_dgl() -> ModuleType:
    """Import DGL with its PyTorch backend, so that it does not ask which to take."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    return require("dgl", extra="dgl")


def own_version() -> str:
    """Return the version of graphsys; "not installed" where it runs from its folder."""
    try:
        return metadata.version("graphsys")
    except metadata.PackageNotFoundError:
        return "not installed"
