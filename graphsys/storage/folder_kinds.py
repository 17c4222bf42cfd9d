"""What a folder is: a graph, a training run, or somebody else's."""

import contextlib
import re
from pathlib import Path
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import is_remote
from graphsys.storage.manifest import MANIFEST_NAME
from graphsys.storage.objects.copies import copy_at

RUN_NAME: Final = "run.json"
CONFIG_NAME: Final = "config.toml"
_GENERATION: Final = re.compile(r"gen-(\d+)")


def generations(path: Path) -> list[tuple[int, Path]]:
    """Return the generations' numbers and folders, committed or not, by number."""
    found = []
    for entry in path.iterdir():
        match = _GENERATION.fullmatch(entry.name)
        if match and entry.is_dir() and not entry.is_symlink():
            found.append((int(match.group(1)), entry))
    return sorted(found)


def kind_of(folder: Path) -> str | None:
    """Return ``graph``, ``training run``, or None; a damaged one is still one."""
    with contextlib.suppress(OSError):
        if (folder / MANIFEST_NAME).exists() and generations(folder):
            return "graph"
        if (folder / RUN_NAME).exists() and (folder / CONFIG_NAME).exists():
            return "training run"
    return None


def require_outside(out: Path) -> None:
    """Refuse an output inside the folder of a graph or a run, whose files are its own.

    Raises:
        ConfigError: it lies in one, or is on an object store or a copy from there, which
            are not written in place.
    """
    if is_remote(out) or copy_at(out) is not None:
        raise ConfigError(
            f"{out} is on an object store, which takes whole graphs (of ingest, dataset "
            "build, split, partition), whole runs (of train) and files only; write this to "
            "a local folder"
        )
    for folder in (out.absolute().parent.resolve() / out.name).parents:
        kind = kind_of(folder)
        if kind is not None:
            raise ConfigError(
                f"{out} lies inside {folder}, which is a {kind} and holds no other files; "
                "choose an output outside of it"
            )
