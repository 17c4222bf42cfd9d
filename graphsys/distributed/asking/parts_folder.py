"""A folder that all workers see, for what they make until it is whole."""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def parts_beside(out: Path) -> Iterator[Path]:
    """Have a folder beside a file or folder for as long as the context lasts.

    Those of killed commands for the same file go.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    left = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]+\.parts")
    for path in filter(lambda path: left.fullmatch(path.name), out.parent.iterdir()):
        with suppress(OSError), _locked(path):
            shutil.rmtree(path, ignore_errors=True)
    # not by the process: machines that share the folder number theirs alike
    folder = out.with_name(f".{out.name}.{secrets.token_hex(8)}.parts")
    folder.mkdir()
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a folder.

    Raises:
        OSError: Another process does.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)
