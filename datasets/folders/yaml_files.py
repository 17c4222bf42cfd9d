"""Folders that a YAML file describes: read with nothing in it run."""

from pathlib import Path
from typing import Any

from graphsys.core.deps import require
from graphsys.core.errors import InputError


def load_yaml(path: Path, expected: str) -> dict[str, Any]:
    """Parse a description, with nothing in it run.

    Args:
        path: The file.
        expected: What the mapping should be, for messages.

    Raises:
        InputError: it cannot be read, is no YAML, or no mapping.
        MissingDependencyError: PyYAML is not installed.
    """
    yaml: Any = require("yaml", extra="all")
    try:
        said = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as err:
        text = " ".join(str(err).split())
        raise InputError(f"{path}: no YAML: {text}") from err
    except OSError as err:
        raise InputError(f"{path}: cannot be read: {err.strerror}") from err
    if not isinstance(said, dict):
        raise InputError(f"{path}: expected a mapping {expected}")
    return said
