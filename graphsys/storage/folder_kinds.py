"""What a folder is: a graph, a training run, or somebody else's."""

import contextlib
import re
from pathlib import Path
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.core.ownership import CLAIM, is_draft
from graphsys.core.remote.locations import is_remote
from graphsys.storage.manifest import MANIFEST_NAME
from graphsys.storage.objects.copies import copy_at

RUN_NAME: Final = "run.json"
CONFIG_NAME: Final = "config.toml"
SEARCH_NAME: Final = "trials.journal"
_GENERATION: Final = re.compile(r"gen-(\d{1,20})")
_OF_GENERATION: Final = re.compile(
    r"(nodes|features|edges|index|deltas)/.+\.arrow|(deltas/\d+/)?scratch/.+|graph\.json"
)
_OF_DELTA: Final = re.compile(
    r"(nodes|features|edges|deletions|ids)/.+\.arrow|scratch/.+|graph\.json"
)
_HEAD: Final = r"(run\.json|config\.toml)(\.new)?|\.(lock|replaces)|training\.jsonl"
_OF_TRAINING: Final = (
    rf"{_HEAD}|\w+\.\d+\.safetensors(\.new)?|rows/[^/]+/\w+-\d+\.bin(\.new)?"
    r"|(rows|state|relations|globals|origin|fresh)/([^/]+/){0,2}[^/]+\.\d+\.npy"
)
_OF_RUN: Final = re.compile(
    rf"(checkpoints/\d+(\.new)?/)?({_OF_TRAINING})"
    r"|indexes/[^/]+\.faiss(\.json(\.new)?)?|tensorboard/(.+/)?events\.out\.tfevents\..+"
)
"""Names of files in a generation, a delta and a run's folder."""


def is_generation_part(name: str) -> bool:
    """Return whether a file of a generation may have a name, relative to its folder."""
    return _OF_GENERATION.fullmatch(name) is not None


def is_delta_part(name: str) -> bool:
    """Return whether a file of a delta may have a name, relative to its folder."""
    return _OF_DELTA.fullmatch(name) is not None


def is_run_part(name: str) -> bool:
    """Return whether a file of a run may have a name, relative to its folder.

    Claims of the run and of what is in it, and drafts, count as such.
    """
    folder, _, last = name.rpartition("/")
    if CLAIM.fullmatch(last):
        return not folder or re.fullmatch(r"checkpoints/\d+(\.new)?", folder) is not None
    if is_draft(last):
        last = re.sub(r"^\.(.+)\.graphsys-\w{16}\.new$", r"\1", last)
        name = f"{folder}/{last}" if folder else last
    return _OF_RUN.fullmatch(name) is not None


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


def is_search(place: str | Path) -> bool:
    """Return whether a folder holds a search of settings, and no graph or run."""
    if is_remote(place) or kind_of(Path(place)) is not None:
        return False
    return (Path(place) / SEARCH_NAME).exists()


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
