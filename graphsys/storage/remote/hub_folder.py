"""A run as model hubs hold one: safetensors, ``config.json``, a card; and back to a run.

The numbers of all files of a checkpoint are tensors of ``model.safetensors``.
``config.json`` has what else the run's folder holds, so that the run made of both is the
one that was exported, byte by byte, and is checked as any other when it is opened.
"""

import base64
import functools
import json
import struct
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from graphsys.core import ownership
from graphsys.core.errors import CorruptStoreError
from graphsys.core.plain_files import read_json
from graphsys.storage.folder_kinds import CONFIG_NAME, RUN_NAME, is_run_part

WEIGHTS_NAME: Final = "model.safetensors"
SETTINGS_NAME: Final = "config.json"
CARD_NAME: Final = "README.md"
VERSION: Final = 1
_PIECE = 1 << 20


def is_hub_folder(path: Path) -> bool:
    """Tell whether a folder holds a run as hubs do, and not as trainings do."""
    names = (WEIGHTS_NAME, SETTINGS_NAME)
    return all((path / it).is_file() for it in names) and not (path / RUN_NAME).exists()


def unpacked(path: Path) -> Path:
    """Return the folder of the run that a hub's folder holds; it goes with this process.

    Raises:
        CorruptStoreError: It is none of ours, or was cut short.
    """
    found = [(path / name).stat() for name in (WEIGHTS_NAME, SETTINGS_NAME)]
    key = tuple((it.st_size, it.st_mtime_ns, it.st_ino) for it in found)
    return _unpacked(path.absolute(), key).folder


@contextmanager
def unpacked_anew(path: Path, *, head_only: bool = False) -> Iterator[Path]:
    """Give the folder of the run that a hub's folder holds, whatever was unpacked before.

    Args:
        path: The hub's folder.
        head_only: Leave out what was trained: ``run.json`` and the settings are there.

    Raises:
        CorruptStoreError: It is none of ours, or was cut short.
    """
    made = _Folder()
    _unpack(path, made.folder, head_only=head_only)
    yield made.folder


class _Folder:
    """A folder that goes with this object, or when the process ends."""

    def __init__(self) -> None:
        self.folder = ownership.temporary()
        weakref.finalize(self, ownership.remove_folder, self.folder)


@functools.lru_cache(maxsize=16)
def _unpacked(path: Path, key: Any) -> _Folder:
    made = _Folder()
    _unpack(path, made.folder)
    return made


def _unpack(path: Path, folder: Path, *, head_only: bool = False) -> None:
    try:
        content = read_json(path / SETTINGS_NAME)
        if not isinstance(content, dict) or "graphsys" not in content:
            raise CorruptStoreError(
                f"{path} is no run: its {SETTINGS_NAME} is of another library's model; "
                "name a run's folder"
            )
        stated = content["graphsys"]
        if int(stated["format_version"]) > VERSION:
            raise ValueError(f"format {stated['format_version']} is newer than {VERSION}")
        if not head_only:
            tensors = tensors_of(path / WEIGHTS_NAME)
            for name, file in stated["files"].items():
                _write_file(folder, str(name), path / WEIGHTS_NAME, file, tensors)
        for name, text in ((CONFIG_NAME, stated["config"]), (RUN_NAME, stated["run"])):
            (folder / name).write_text(text, encoding="utf-8")
    except (KeyError, TypeError, ValueError, AttributeError, struct.error) as err:
        raise CorruptStoreError(
            f"{path} is no run for a hub that graphsys wrote: {err}; export the run again"
        ) from err


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where the bytes of a tensor lie in a file.

    Attributes:
        begin: The first byte.
        end: The byte after the last.
    """

    begin: int
    end: int


def tensors_of(file: Path) -> dict[str, TensorPlace]:
    """Return where each tensor of a safetensors file lies.

    Raises:
        ValueError: It is none.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > size - 8:
            raise ValueError(f"{WEIGHTS_NAME} was cut short")
        header = json.loads(stream.read(length))
    found = {}
    for name, it in header.items():
        if name != "__metadata__":
            begin, end = (int(place) + 8 + length for place in it["data_offsets"])
            if not 8 + length <= begin <= end <= size:
                raise ValueError(f"{WEIGHTS_NAME} was cut short")
            found[name] = TensorPlace(begin, end)
    return found


def _write_file(
    folder: Path, name: str, weights: Path, file: Any, tensors: Mapping[str, TensorPlace]
) -> None:
    """Write a file of a run: its head and the numbers of a tensor; or all weights."""
    if not is_run_part(name) or ".." in PurePosixPath(name).parts or name == RUN_NAME:
        raise ValueError(f"{name!r} is no file of a run")
    place, head = TensorPlace(0, weights.stat().st_size), b""
    if file is not None:
        place, head = tensors[file["tensor"]], base64.b64decode(file["head"])
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("wb") as to:
        to.write(head)
        for piece in _pieces(weights, place):
            to.write(piece)


def _pieces(file: Path, place: TensorPlace) -> Iterator[bytes]:
    with file.open("rb") as stream:
        stream.seek(place.begin)
        left = place.end - place.begin
        while left and (piece := stream.read(min(left, _PIECE))):
            left -= len(piece)
            yield piece
