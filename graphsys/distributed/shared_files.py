"""Files by which processes of several machines tell each other: whole, or not there.

They lie in a folder that all machines see, or as objects of a location. Then each process
has a folder of its own, where what it makes begins and what it reads arrives: a file is
put when it is whole, and of a large one a reader gets the bytes that it needs.
"""

import contextlib
import io
import itertools
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core import ownership
from graphsys.core.arrays import load_array, npy_pieces
from graphsys.core.compiling import PARSER
from graphsys.core.errors import CorruptStoreError
from graphsys.core.remote.locations import Location, Place, is_remote
from graphsys.core.threads import run_parallel
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.objects.staging import staging

Array = npt.NDArray[Any]
Values: TypeAlias = npt.NDArray[Any] | pa.Array
Part = tuple[str, int, int]
"""Name of an array's file, its first row that is wanted, and the first that is not."""
_THREADS: Final = 8  # they wait for answers
_HEAD_BYTES: Final = 64 << 10
"""Of an array's object, got first: its header, and most small ones as a whole."""


class SharedFiles:
    """Files in a folder that all machines see; names are relative to it.

    Attributes:
        path: A folder of this machine, for files that are not whole yet.
        place: What others are told, to open the same.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.place = path, str(path)

    def add(self, name: str, file: Path) -> None:
        """Have a file there that was made in :attr:`path`, in place of any before it.

        Raises:
            ObjectStoreError: The storage fails.
        """
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)

    def local(self, name: str) -> Path:
        """Return where a file is that somebody added, here to be mapped.

        Raises:
            CorruptStoreError: There is no such file any more.
            ObjectStoreError: The storage fails.
        """
        return self.path / name

    def let_go(self, names: Iterable[str]) -> None:
        """Say that files are not read from here again."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, for everybody."""
        ownership.remove_listed(self.path, names)

    def remove_folder(self, name: str) -> None:
        """Remove all files of a folder, for everybody."""
        with contextlib.suppress(OSError):
            folder = self.path / name
            ownership.remove_listed(folder, [*ownership.files_below(folder)])
            ownership.remove_empty(folder)

    def parts(self, wanted: Sequence[Part]) -> list[Array]:
        """Return rows of some arrays."""
        return [self.load(name)[begin:end] for name, begin, end in wanted]

    def pieces(self, names: Sequence[str], place: int) -> list[pa.Array]:
        """Return of some Arrow arrays the piece at a place (see :meth:`save`)."""
        return [self._piece(name, place) for name in names]

    def load(self, name: str, *, is_arrow: bool = False) -> Any:
        """Return a whole array, mapped; an Arrow array that was saved as one piece."""
        return self._piece(name, 0) if is_arrow else load_array(self.local(name))

    def save(self, name: str, values: Values, bounds: Sequence[int] | None = None) -> None:
        """Write an array.

        Args:
            name: Of its file.
            values: The array, of numbers or Arrow's.
            bounds: Where pieces of an Arrow array begin that are read one by one, and the
                end; None for one piece.
        """
        new = self.path / f"new-{uuid.uuid4().hex}"
        with new.open("wb") as stream:
            if isinstance(values, np.ndarray):
                stream.writelines(npy_pieces(values))
            else:
                _write_pieces(stream, values, bounds or (0, len(values)))
        self.add(name, new)

    def save_all(self, arrays: Mapping[str, Values]) -> None:
        """Write several arrays."""
        for name, values in arrays.items():
            self.save(name, values)

    def _piece(self, name: str, place: int) -> pa.Array:
        mapped = pa.memory_map(str(self.local(name)))
        return pa.ipc.open_file(mapped).get_batch(place).column(0)


class _Objects(SharedFiles):
    """Files as objects, with a folder of this process."""

    def __init__(self, path: Path, location: Location) -> None:
        super().__init__(path)
        self.place = str(location)
        self._store = ObjectStore(location)

    def add(self, name: str, file: Path) -> None:
        """Put a file; what was here under its name goes."""
        self._store.upload(file, name)
        ownership.remove_made(file)
        self.let_go([name])

    def local(self, name: str) -> Path:
        """Get a file, unless it is here."""
        file = self.path / name
        if not file.exists():
            new = self.path / f"new-{uuid.uuid4().hex}"
            with self._required(name):
                self._store.download(name, new)
            file.parent.mkdir(parents=True, exist_ok=True)
            new.replace(file)
        return file

    def let_go(self, names: Iterable[str]) -> None:
        """Remove files from this machine."""
        super().remove(names)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; what fails to go is for who removes the place."""
        names = list(names)
        self.let_go(names)
        self._writer.remove(names)

    def remove_folder(self, name: str) -> None:
        """Remove the objects of a folder."""
        super().remove_folder(name)
        prefix = f"{name}/" if name else ""
        self.remove([it for it in self._store.sizes() if it.startswith(prefix)])

    def parts(self, wanted: Sequence[Part]) -> list[Array]:
        """Get the bytes of these rows, several at a time."""
        return run_parallel(lambda part: self._rows(*part), wanted, _THREADS)

    def pieces(self, names: Sequence[str], place: int) -> list[pa.Array]:
        """Get the bytes of these pieces, several at a time."""
        return run_parallel(lambda name: self._far_piece(name, place), names, _THREADS)

    def save_all(self, arrays: Mapping[str, Values]) -> None:
        """Put several arrays at a time."""
        run_parallel(lambda each: self.save(*each), list(arrays.items()), _THREADS)

    def _rows(self, name: str, begin: int, end: int) -> Array:
        if (self.path / name).exists():
            found: Array = self.load(name)[begin:end]
            return found
        with self._required(name), self._store.opened(name) as source:
            head = source.read_at(min(_HEAD_BYTES, source.size()), 0)
            stream = io.BytesIO(head)
            with PARSER:
                np.lib.format.read_magic(stream)
                shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            begin, end = min(begin, shape[0]), min(end, shape[0])
            row = dtype.itemsize * int(np.prod(shape[1:]))
            first, size = stream.tell() + begin * row, (end - begin) * row
            if first + size <= len(head):
                body = head[first : first + size]
            else:
                body = source.read_at(size, first)
        return np.frombuffer(body, dtype=dtype).reshape(end - begin, *shape[1:])

    def _far_piece(self, name: str, place: int) -> pa.Array:
        with self._required(name), self._store.opened(name) as source:
            return pa.ipc.open_file(source).get_batch(place).column(0)

    @contextmanager
    def _required(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise CorruptStoreError(
                f"{self._store.location}/{name} is missing: somebody removed it, or wrote "
                "that location anew, while this command went on; run it again"
            ) from None

    @cached_property
    def _writer(self) -> S3Writer:
        return S3Writer(self._store.location)


@contextmanager
def shared_files(place: Place) -> Iterator[SharedFiles]:
    """Open a folder that all machines see, or a location, for as long as the block lasts.

    Raises:
        ConfigError: this user can write no cache, where it is a location.
    """
    if not is_remote(place):
        yield SharedFiles(Path(os.fspath(place)))
        return
    location = Location.parse(place)
    with staging(location) as folder:
        folder.mkdir()
        yield _Objects(folder, location)


def _write_pieces(stream: Any, values: pa.Array, bounds: Sequence[int]) -> None:
    schema = pa.schema([("value", values.type)])
    with pa.ipc.new_file(stream, schema) as writer:
        for begin, end in itertools.pairwise(bounds):
            piece = values.slice(begin, end - begin)
            writer.write(pa.record_batch([piece], schema=schema))
