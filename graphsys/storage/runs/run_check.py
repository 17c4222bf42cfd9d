"""Are the files of a run's checkpoint there in full, and what was written?"""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from graphsys.core.arrays import load_array
from graphsys.core.caller_warnings import note
from graphsys.core.checksums import PREFIX, file_digest
from graphsys.core.errors import CorruptStoreError
from graphsys.core.threads import map_in_order
from graphsys.storage.checked_files import CheckedFiles
from graphsys.storage.folder_kinds import RUN_NAME
from graphsys.storage.remote.fetching import bring_run_anew

_ADVICE: Final = "train the run again, or go on from a copy of a preserved checkpoint"


def check_files(
    path: Path,
    files: Mapping[str, int],
    checksums: Mapping[str, Any],
    *,
    content: bool = True,
) -> None:
    """Check that the files of a checkpoint are there in full, and are what was written.

    Their content is compared once: it is remembered which files were (``checked_files``).

    Args:
        path: The run's folder.
        files: Their bytes, by name.
        checksums: ``xxh3:`` and the checksum of all bytes, by name; in runs from before
            version 2 the CRC-32 of the array in the file, an int.
        content: Whether to compare checksums too.

    Raises:
        CorruptStoreError: One is missing, or has another size or content; of a copy from
            an object store, also after damaged files were fetched anew.
    """
    try:
        _check(path, files, checksums, content=content)
    except CorruptStoreError:
        if not bring_run_anew(path):
            raise
        _check(path, files, checksums, content=content)


def _check(
    path: Path, files: Mapping[str, int], checksums: Mapping[str, Any], *, content: bool
) -> None:
    for name, size in files.items():
        try:
            found = (path / name).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            raise CorruptStoreError(
                f"{path / name} is missing from the checkpoint; {_ADVICE}"
            ) from None
        if found != size:
            raise CorruptStoreError(
                f"{path / name} has {found} bytes, {RUN_NAME} says {size}; {_ADVICE}"
            )
    if content and files and not checksums:
        note(
            f"{path} is a run from before files had checksums: only their sizes were "
            "compared"
        )
    if content:
        _check_content(path, checksums)


def _check_content(path: Path, checksums: Mapping[str, Any]) -> None:
    known = CheckedFiles(path)
    unknown = [name for name in checksums if not known.is_known(name, str(checksums[name]))]

    def look(name: str) -> tuple[str, str | int]:
        return name, _found_checksum(path / name, checksums[name])

    for name, found in map_in_order(look, unknown):
        if found != checksums[name]:
            raise CorruptStoreError(
                f"{path / name} has the checksum {_shown(found)}, {RUN_NAME} says "
                f"{_shown(checksums[name])}; {_ADVICE}"
            )
        known.remember(name, str(checksums[name]))


def _found_checksum(file: Path, stated: str | int) -> str | int:
    try:
        if isinstance(stated, str):
            return file_digest(file)
        array = load_array(file)
        return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    except (OSError, ValueError, EOFError) as err:
        raise CorruptStoreError(f"{file} cannot be read: {err}; {_ADVICE}") from err


def _shown(checksum: str | int) -> str:
    text = checksum if isinstance(checksum, str) else f"{checksum:08x}"
    return text.removeprefix(PREFIX)
