"""Arrays in files without a name, for what a budget has no room for."""

import os
import tempfile
import weakref
from pathlib import Path
from typing import Any

from graphsys.core import ownership
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import disk_errors


class ScratchArrays:
    """Arrays in files without a name, whose space is free again when nobody uses them."""

    def __init__(self) -> None:
        self._folder = ownership.temporary("graphsys-", Path(scratch_folder()))
        weakref.finalize(
            self, ownership.remove_empty, self._folder
        )  # its files have no names
        self._scratch = Scratch(self._folder, 0)

    def zeros(self, length: int, dtype: Any) -> Any:
        """Return zeros ``[length]``; space is reserved, so that writing cannot fail.

        Raises:
            StorageFullError: the file system has no room.
        """
        with disk_errors(self._folder):
            return self._scratch.array(length, dtype)  # a new file reads as zeros


def scratch_folder() -> str:
    """Return ``$TMPDIR``, or ``/var/tmp``: ``/tmp`` is often memory itself."""
    if os.environ.get("TMPDIR") or not os.access("/var/tmp", os.W_OK):
        return tempfile.gettempdir()
    return "/var/tmp"


def scratch_is_memory() -> bool:
    """Whether files of :func:`scratch_folder` are memory themselves, and count as it."""
    kinds = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind = line.split()[:3]
        kinds[place] = kind
    folder = os.path.realpath(scratch_folder())
    while folder not in kinds and folder != "/":
        folder = os.path.dirname(folder)
    return kinds.get(folder) in ("tmpfs", "ramfs")
