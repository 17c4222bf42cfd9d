"""What comes through a pipe, which can be read once: put aside in a temporary file."""

import shutil
import stat
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile, describe, input_file

STDIN: Final = Path("-")


def is_pipe(path: Path) -> bool:
    """Tell whether a path is ``-`` (standard input) or a named pipe."""
    try:
        return path == STDIN or stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def put_aside(path: Path) -> tuple[InputFile, IO[bytes]]:
    """Copy what a pipe gives to a temporary file, as readers look at its beginning first.

    Returns:
        The file, and what deletes it when it is closed.

    Raises:
        InputError: the pipe gives nothing, or cannot be read.
    """
    title = "<stdin>" if path == STDIN else str(path)
    kept: Any = tempfile.NamedTemporaryFile(prefix="graphsys-pipe-")  # noqa: SIM115, the source closes it
    try:
        if path == STDIN:
            shutil.copyfileobj(sys.stdin.buffer, kept, 1 << 20)
        else:
            with path.open("rb") as stream:
                shutil.copyfileobj(stream, kept, 1 << 20)
        kept.flush()
        if not kept.tell():
            raise InputError(f"{title}: the pipe is empty, expected edges")
        return replace(input_file(kept.name), title=title), kept
    except OSError as err:
        kept.close()
        raise InputError(f"{title}: cannot be read: {describe(err)}") from err
    except BaseException:
        kept.close()
        raise
