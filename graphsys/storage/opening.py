"""Opening a store: the current generation, held, and its files, looked at but not read."""

from pathlib import Path

from graphsys.core.errors import CorruptStoreError
from graphsys.storage.locks import Pin
from graphsys.storage.manifest import FileEntry, Manifest

_MAGIC = b"ARROW1"


def pin_current(path: Path) -> tuple[Manifest, Pin]:
    """Return the manifest and a pin on the generation that it names.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or the generation's folder is missing or altered.
    """
    while True:
        manifest = Manifest.read(path)
        try:
            pin = Pin(path / f"gen-{manifest.generation}")
        except (FileNotFoundError, NotADirectoryError, PermissionError) as err:
            if Manifest.read(path).generation != manifest.generation:
                continue  # a writer committed in between
            raise CorruptStoreError(
                f"{path} has no folder gen-{manifest.generation} that can be read, which "
                "graph.json names; ingest again or restore it"
            ) from err
        # a writer may have swept the generation away before the pin held it
        if Manifest.read(path).generation == manifest.generation:
            return manifest, pin
        pin.release()


def check_file(root: Path, entry: FileEntry) -> None:
    """Check that a file is inside the folder, of its size, and begins and ends as Arrow.

    Raises:
        CorruptStoreError: it is not.
    """
    file = root / entry.path
    remedy = "run `graphsys verify`, then ingest again or restore the file"
    try:
        real = file.resolve(strict=True)
        size = real.stat().st_size
    except (OSError, RuntimeError) as err:  # RuntimeError: a link to itself
        raise CorruptStoreError(
            f"{entry.path} of graph {root} is missing; {remedy}"
        ) from err
    if not real.is_relative_to(root.resolve()):
        raise CorruptStoreError(
            f"{entry.path} of graph {root} is a link out of the graph's folder; "
            "do not use this graph"
        )
    if size != entry.bytes:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} has {size} bytes, graph.json says "
            f"{entry.bytes}; {remedy}"
        )
    try:
        with file.open("rb") as data:
            head = data.read(len(_MAGIC))
            data.seek(max(size - len(_MAGIC), 0))
            tail = data.read()
    except OSError as err:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} cannot be read ({err.strerror}); {remedy}"
        ) from err
    if head != _MAGIC or tail != _MAGIC:
        raise CorruptStoreError(
            f"{entry.path} of graph {root} is not an Arrow file; {remedy}"
        )
