"""Learned rows of a node type in a run's files: read and written one by one, kept whole.

A partition of the embedding trainer's tables comes into memory whole, for its edges are
sorted by partition; a minibatch reaches rows of all partitions, so here each row has a
place of its own. What is in a place is the same, a row and its Adagrad state. A row that a
checkpoint holds is never written over: its next version gets a free place, so that
committing a checkpoint copies no rows, and a kill leaves the one before whole.
"""

import copy
import mmap
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.errors import CorruptStoreError
from graphsys.core.rng import draw_key
from graphsys.kernels.cpu.gnn.stored_rows import (
    LIVE,
    copy_marks,
    mark_places,
    read_rows,
    take_places,
    touch_rows,
    write_rows,
)
from graphsys.storage.manifest import file_name
from graphsys.storage.runs.run_folder import sync_folder, write_durably
from graphsys.storage.transaction import disk_errors

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

FOLDER: Final = "rows"
SEGMENT_BYTES: Final = 32 << 20
_COMMITTED, _BEST, _COMMITTED_BEST = 2, 4, 8
_SNAPSHOTS = 4  # the rows of now, of the checkpoint, and of the best epoch, twice
_SCALE = 0.1


class RowFiles:
    """Rows of float32 with a state each, in memory until there is a folder.

    Args:
        name: The node type.
        num_rows: Rows N; in memory each has 4 bytes (8 beyond 2**28 rows) for its place,
            and a byte for each place.
        dim: Numbers of a row.
        seed: Of the first values, normal with deviation 0.1.
    """

    def __init__(self, name: str, num_rows: int, dim: int, seed: int) -> None:
        self.name, self.num_rows, self.dim = name, num_rows, dim
        self._key = draw_key(seed, "rows", name)
        self._place_bytes = 4 * (dim + 1)
        places = max(1, min(SEGMENT_BYTES // self._place_bytes, 2 * num_rows))
        self._bits = places.bit_length() - 1
        is_small = 2 * _SNAPSHOTS * num_rows < 2**31
        self._place_of = np.full(num_rows, -1, np.int32 if is_small else np.int64)
        # zeros cost nothing until they are touched
        self._marks = np.zeros(_SNAPSHOTS * num_rows + (2 << self._bits), dtype=np.uint8)
        self._holds = self._marks[:0]
        self._cursor = np.zeros(1, dtype=np.int64)
        self._segments: list[npt.NDArray[np.uint8]] = []
        self._maps: list[mmap.mmap] = []
        self._addresses = np.zeros(0, dtype=np.uint64)
        self._dirty: set[int] = set()
        self._path: Path | None = None
        self._is_read_only = False

    def __deepcopy__(self, memo: dict[int, Any]) -> "RowFiles":
        """Return a copy; of files that are only read this one: nothing of it changes."""
        if self._is_read_only:
            return self
        copied = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, copy.deepcopy(value, memo))
        return copied

    @property
    def most_bytes(self) -> int:
        """What the files take at most: all rows once more for each snapshot of them."""
        return _SNAPSHOTS * self.num_rows * self._place_bytes

    def open(self, path: Path, files: Mapping[str, int], *, is_writing: bool) -> None:
        """Go on from a checkpoint's files, or with none yet.

        Args:
            path: The run's folder.
            files: Sizes of the checkpoint's files by name.
            is_writing: Whether rows are trained; else those of the best epoch are read.

        Raises:
            CorruptStoreError: A file is missing or damaged.
        """
        self._path, self._is_read_only = path, not is_writing
        own = [name for name in files if Path(name).parent == self._folder]
        segments = [name for name in own if _number_of(name, "segment") is not None]
        for name in sorted(segments, key=lambda n: _number_of(n, "segment") or 0):
            self._map(path / name, is_writing=is_writing)
        last, best = (_newest(own, stem) for stem in ("places", "best"))
        if is_writing and best is not None:
            self._read_places(path / best)
            mark_places(self._place_of, self._holds, _BEST)
            copy_marks(self._holds, _BEST, _COMMITTED_BEST)
        chosen = last if is_writing or best is None else best
        if chosen is not None:
            self._read_places(path / chosen)
            mark_places(self._place_of, self._holds, LIVE)
            mark_places(self._place_of, self._holds, _COMMITTED)

    def read(self, rows: Ints, out: Floats, states: Floats) -> None:
        """Read rows ``[n, dim]`` and states ``[n]``, given their numbers ``[n]``."""
        read_rows(
            rows,
            self._place_of,
            self._addresses,
            self._bits,
            self._key,
            _SCALE,
            out,
            states,
        )

    def touch(self, rows: Ints) -> None:
        """Have the pages of rows in memory, for they are read soon."""
        touch_rows(rows, self._place_of, self._addresses, self._bits, self._place_bytes)

    def write(self, rows: Ints, values: Floats, states: Floats) -> None:
        """Write rows ``[n, dim]`` and states ``[n]``, given distinct numbers ``[n]``.

        Raises:
            StorageFullError: The disk is full; the checkpoint stays.
        """
        served = 0
        while True:
            served = take_places(rows, served, self._place_of, self._holds, self._cursor)
            if served == len(rows):
                break
            self._grow()
        write_rows(rows, self._place_of, self._addresses, self._bits, values, states)
        places: Ints = self._place_of[rows].astype(np.int64)
        self._dirty.update(distinct(places >> self._bits).tolist())

    def hold_best(self, epoch: int) -> None:
        """Keep the rows as they are now besides those to come, as the best epoch's.

        Raises:
            StorageFullError: The disk is full.
        """
        mark_places(self._place_of, self._holds, _BEST)
        self._cursor[0] = 0
        self._write_places("best", epoch)

    def flush(self, serial: int, best: int) -> dict[str, int]:
        """Make everything durable; return the files of a checkpoint with their sizes.

        Args:
            serial: Number of the checkpoint.
            best: Its best epoch, 0 for none.

        Raises:
            StorageFullError: The disk is full; the checkpoint before stays.
        """
        assert self._path is not None  # only a run has checkpoints
        names = [f"{self._folder}/segment-{k}.bin" for k in range(len(self._segments))]
        with disk_errors(self._path / self._folder):
            for k in sorted(self._dirty):
                self._maps[k].flush()
        self._dirty.clear()
        names.append(self._write_places("places", serial))
        if best:
            names.append(f"{self._folder}/best-{best}.bin")
        for folder in (self._path / self._folder, self._path / FOLDER, self._path):
            sync_folder(folder)
        return {name: (self._path / name).stat().st_size for name in names}

    def committed(self) -> None:
        """Let go of what only the checkpoint before held."""
        mark_places(self._place_of, self._holds, _COMMITTED)
        copy_marks(self._holds, _BEST, _COMMITTED_BEST)
        self._cursor[0] = 0

    @property
    def _folder(self) -> Path:
        return Path(FOLDER) / file_name(self.name)

    def _grow(self) -> None:
        """Add a segment, whose space is there before it is mapped."""
        size = self._place_bytes << self._bits
        if self._path is None:
            self._add(np.zeros(size, dtype=np.uint8))
            return
        file = self._path / self._folder / f"segment-{len(self._segments)}.bin"
        with disk_errors(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as stream:
                os.posix_fallocate(stream.fileno(), 0, size)
            self._map(file, is_writing=True)

    def _map(self, file: Path, *, is_writing: bool) -> None:
        try:
            with file.open("r+b" if is_writing else "rb") as stream:
                access = mmap.ACCESS_WRITE if is_writing else mmap.ACCESS_READ
                mapped = mmap.mmap(stream.fileno(), 0, access=access)
        except (FileNotFoundError, ValueError) as err:
            raise CorruptStoreError(
                f"{file} cannot be read: {err}; train the run again"
            ) from err
        mapped.madvise(mmap.MADV_RANDOM)
        self._maps.append(mapped)
        self._add(np.frombuffer(mapped, dtype=np.uint8))

    def _add(self, segment: npt.NDArray[np.uint8]) -> None:
        self._segments.append(segment)
        self._addresses = np.array(
            [each.ctypes.data for each in self._segments], dtype=np.uint64
        )
        self._holds = self._marks[: len(self._segments) << self._bits]

    def _write_places(self, stem: str, number: int) -> str:
        assert self._path is not None  # only a run has checkpoints
        name = f"{self._folder}/{stem}-{number}.bin"
        with disk_errors(self._path / name):
            (self._path / name).parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._path / name, self._place_of.data.cast("B"))
        return name

    def _read_places(self, file: Path) -> None:
        found: Any = np.fromfile(file, dtype=self._place_of.dtype)
        if len(found) != self.num_rows or found.max(initial=-1) >= len(self._holds):
            raise CorruptStoreError(
                f"{file} says where {len(found)} rows of {len(self._holds)} places lie, "
                f"expected {self.num_rows} rows within them; train the run again"
            )
        self._place_of = found


def is_written_again(name: str) -> bool:
    """Return whether a file goes on being written after the checkpoint that lists it."""
    return _number_of(name, "segment") is not None


def _number_of(name: str, stem: str) -> int | None:
    match = re.fullmatch(rf"{stem}-(\d+)\.bin", Path(name).name)
    return int(match[1]) if match else None


def _newest(names: list[str], stem: str) -> str | None:
    """Return the one name with a stem, or None."""
    return next((name for name in names if _number_of(name, stem) is not None), None)
