"""Small files read whole: plain ones only, and JSON of bounded depth."""

import errno
import json
import os
import stat
from io import FileIO
from pathlib import Path
from typing import Any, Final

OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE)
"""Errors that say nothing about a file, only that too many are open."""
_MAX_DEPTH: Final = 100


def open_plain(path: Path) -> FileIO:
    """Open a plain file for reading; never wait for what is a pipe or a device.

    Raises:
        OSError: it cannot be read, or is no plain file.
    """
    file = open(path, "rb", buffering=0, opener=_open_now)  # noqa: SIM115, the caller closes
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return file


def read_plain(path: Path) -> bytes:
    """Return the bytes of a plain file.

    Raises:
        OSError: it cannot be read, or is no plain file.
    """
    with open_plain(path) as file:
        return file.readall()


def _open_now(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON, of at most 100 levels, so that nothing that walks it runs too deep.

    Raises:
        ValueError: it is none, not UTF-8, or nested deeper.
    """
    deep = f"nested deeper than {_MAX_DEPTH} levels"
    try:
        found = json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError(deep) from None
    if _is_deeper(found, _MAX_DEPTH):
        raise ValueError(deep)
    return found


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        OSError: it cannot be read, or is no plain file.
        ValueError: it is no JSON, not UTF-8, or nested deeper than 100 levels.
    """
    return parse_json(read_plain(path))


def _is_deeper(value: Any, levels: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        lists = (it.values() if isinstance(it, dict) else it for it in level)
        level = [it for inner in lists for it in inner if isinstance(it, dict | list)]
        if not level:
            return False
    return True
