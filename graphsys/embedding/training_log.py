"""``training.jsonl`` of a run: what happened, one JSON object a line.

Lines are written as things happen; a checkpoint records how long the log is, and a resume
cuts it there, so that nothing is told twice. Every line has ``event``:

- ``unit``: ``epoch``, ``unit``, ``phase`` (which part of which edge set), ``edges``,
  ``loss`` (mean per edge), ``seconds``, ``edges_per_second``, and with held-out edges
  ``held_out_edges``, ``held_out_loss_before`` and ``held_out_loss_after`` (mean per
  held-out edge, before and after the unit);
- ``epoch``: ``epoch``, ``loss``, and ``held_out_loss`` over all of its units;
- ``evaluation``: ``epoch``, ``split``, ``metrics``;
- ``warm_start``, ``stopped``: what was taken over, why training ended.

Epochs, units and phases count from 1.
"""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import IO, Any

from graphsys.core.checksums import file_digest
from graphsys.core.errors import CorruptStoreError
from graphsys.core.plain_files import parse_json, read_plain
from graphsys.storage.transaction import disk_errors

LOG_NAME = "training.jsonl"


class TrainingLog:
    """Appends to the log of a run.

    Args:
        path: The run's folder.
        num_bytes: Length of the log at the checkpoint that is gone on from; what follows
            was done after it and is to be done again.

    Raises:
        CorruptStoreError: Something else than a file has its name.
        StorageFullError: It cannot be written.
    """

    def __init__(self, path: Path, num_bytes: int) -> None:
        self._file = path / LOG_NAME
        if self._file.exists() and not self._file.is_file():  # a pipe would be waited for
            raise CorruptStoreError(f"{self._file} is no plain file; remove it and resume")
        with disk_errors(self._file):
            self._stream: IO[bytes] = self._file.open("ab")
            # a log that somebody removed or cut is no part of the checkpoint
            self._stream.truncate(min(num_bytes, self._stream.tell()))

    def write(self, event: str, **facts: Any) -> None:
        """Append a line; numbers that are not finite become null."""
        line = json.dumps({"event": event} | {k: _plain(v) for k, v in facts.items()})
        with disk_errors(self._file):
            self._stream.write(line.encode() + b"\n")
            self._stream.flush()

    def sync(self) -> int:
        """Flush to the disk; return the length, for the checkpoint."""
        with disk_errors(self._file):
            self._stream.flush()
            os.fsync(self._stream.fileno())
            return os.fstat(self._stream.fileno()).st_size

    def checksum(self, num_bytes: int) -> str:
        """Return the checksum of the first bytes, for the checkpoint; none if removed."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return file_digest(self._file, num_bytes=num_bytes)
        return ""

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """Read the log of a run.

    Returns:
        One dictionary per line; none for a run without a log.

    Raises:
        CorruptStoreError: A line is no JSON object; the message says which.
    """
    file = Path(path) / LOG_NAME
    if not file.exists():
        return []
    lines = read_plain(file).split(b"\n")
    result = []
    for number, line in enumerate(lines, 1):
        if not line and number == len(lines):
            break
        try:
            facts = parse_json(line)
            if not isinstance(facts, dict):
                raise ValueError("no object")
        except ValueError as err:
            raise CorruptStoreError(
                f"{file}, line {number}: expected a JSON object, got {line[:40]!r}; remove "
                "the line (the log is for reading, no checkpoint needs it)"
            ) from err
        result.append(facts)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
