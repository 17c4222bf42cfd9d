"""Verify: is a store what its manifest says, byte for byte, and does it make sense?

Three passes, each over what the one before found sound:

1. ``graph.json``: readable, of a known version, and equal to the text that its own
   checksum stands for;
2. files: every listed one there, inside the folder, with its size and hash, and no other;
3. content (``verify_content``): schemas, ranges, order, and indexes against buckets.

Files are hashed by two threads and read through mappings, so memory does not grow with
the graph.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from graphsys.core.checksums import file_digest, file_sha256
from graphsys.core.errors import CorruptStoreError, InvalidGraphError
from graphsys.core.ownership import CLAIM, is_claimed
from graphsys.core.plain_files import OUT_OF_FILES
from graphsys.core.progress import SILENT, Progress
from graphsys.core.threads import map_in_order
from graphsys.storage.locks import LOCK_NAME, Pin, is_locked, is_pinned
from graphsys.storage.manifest import MANIFEST_NAME, FileEntry, Manifest, before_deltas
from graphsys.storage.opening import pin_current
from graphsys.storage.transaction import generations
from graphsys.storage.verify.content import ContentChecker
from graphsys.storage.verify.deltas import DeltaChecker

_LEFT = "is not listed in graph.json: a killed append left it, and the next one removes it"
_STRAY = "is not the generation that graph.json names, and nobody uses it"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        file: Path relative to the graph's folder.
        what: What is wrong with it.
    """

    file: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What came of a verification.

    Attributes:
        ok: Whether nothing is wrong.
        problems: What is wrong, by file; at most one for each.
    """

    ok: bool
    problems: list[Problem]

    @classmethod
    def of(cls, problems: Mapping[str, str]) -> "VerifyReport":
        """Return what was found, in the order of the files."""
        listed = [Problem(file, what) for file, what in sorted(problems.items())]
        return cls(not listed, listed)


def verify(path: str | os.PathLike[str], progress: Progress = SILENT) -> VerifyReport:
    """Read a whole store and report everything that is wrong with it.

    A generation that a writer is writing or a reader holds, and the lock, are not part of
    the store; one that nobody uses is a problem.

    Args:
        path: The graph's folder.
        progress: Told of the bytes hashed and the files checked.

    Raises:
        InvalidGraphError: the folder is missing or holds no trace of a graph.
    """
    root = Path(path)
    pin: Pin | None = None
    try:
        try:
            manifest, pin = pin_current(root)
        except InvalidGraphError:
            if root.is_dir() and generations(root):
                return VerifyReport.of({MANIFEST_NAME: "is missing"})
            raise
        except CorruptStoreError as err:
            found = _manifest_problem(root)
            if found is not None:
                return VerifyReport.of({MANIFEST_NAME: found})
            manifest = Manifest.read(root)  # only the generation's folder is missing
            del err
        return _verify_generation(root, manifest, progress)
    finally:
        if pin is not None:
            pin.release()


def _verify_generation(root: Path, manifest: Manifest, progress: Progress) -> VerifyReport:
    problems: dict[str, str] = {}
    found = _manifest_problem(root)
    if found is not None:
        problems[MANIFEST_NAME] = found
    problems.update(_unlisted(root, manifest))
    problems.update(_damaged(root, manifest, progress))
    damaged = set(problems)
    progress.stage("check", len(manifest.files), "files")
    for checker in (
        ContentChecker(root, before_deltas(manifest), damaged),
        DeltaChecker(root, manifest, damaged),
    ):
        for file, what in checker.problems(progress):
            problems.setdefault(file, what)
    return VerifyReport.of(problems)


def _manifest_problem(root: Path) -> str | None:
    """Return what is wrong with ``graph.json``, whose checksum covers its exact text."""
    where = root / MANIFEST_NAME
    try:
        Manifest.read(root)
        text = where.read_bytes()
        content = json.loads(text)
    except (CorruptStoreError, InvalidGraphError, OSError, ValueError) as err:
        return " ".join(str(err).removeprefix(str(where)).lstrip(": ").split())
    canonical = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=True) + "\n"
    if text != canonical.encode():
        return "is not byte for byte what its checksum stands for; ingest again"
    return None


# ---- files


def _unlisted(root: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the files of the store that ``graph.json`` does not list."""
    listed = {entry.path for entry in manifest.files}
    others = {name for number, name in _names(root) if number != manifest.generation}
    yield from _stray_generations(root, sorted(others))
    unread: list[OSError] = []
    drafts = f"gen-{manifest.generation}/deltas/"
    is_busy = is_locked(root)
    for folder, folders, files in os.walk(root, onerror=unread.append):
        here = Path(folder)
        if here == root:
            folders[:] = [name for name in folders if name not in others]
            files = [name for name in files if name not in (MANIFEST_NAME, LOCK_NAME)]
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted(files + links):
            file = _shown((here / name).relative_to(root))
            if file in listed or (is_busy and file.startswith(drafts)):
                continue
            if CLAIM.fullmatch(name) and is_claimed(here):
                continue  # a writer was killed as it had committed
            if file.startswith(drafts) and not _is_of_delta(file, manifest):
                yield file, _LEFT
            else:
                yield file, _what_is_unlisted(here / name)
    for err in unread:
        folder = _shown(Path(err.filename).relative_to(root))
        yield folder, f"cannot be read: {(err.strerror or str(err)).lower()}"


def _is_of_delta(file: str, manifest: Manifest) -> bool:
    """Whether a file lies in the folder of a delta that the manifest names."""
    number = file.split("/")[2]
    return number in {str(delta.number) for delta in manifest.deltas}


def _stray_generations(root: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield generations that are not the current one and that nobody writes or reads."""
    if names and is_locked(root):
        return
    for name in names:
        if not is_pinned(root / name):
            ours = ": a killed writer left it, and the next one removes it"
            foreign = ": no writer of ours left it; it stays until you remove it"
            is_ours = is_claimed(root / name) or not any((root / name).iterdir())
            yield name, _STRAY + (ours if is_ours else foreign)


def _names(root: Path) -> list[tuple[int, str]]:
    return [(number, folder.name) for number, folder in generations(root)]


def _shown(path: Path) -> str:
    """Return a path as text that any output can show, whatever bytes are in it."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def _what_is_unlisted(path: Path) -> str:
    if path.is_symlink():
        return "is a link that graph.json does not list; remove it"
    is_empty = path.is_file() and path.stat().st_size == 0
    return f"is not listed in graph.json{' and empty' if is_empty else ''}; remove it"


def _damaged(
    root: Path, manifest: Manifest, progress: Progress
) -> Iterator[tuple[str, str]]:
    """Yield the listed files that are missing, elsewhere, or not what was written."""
    total = sum(entry.bytes for entry in manifest.files)
    progress.stage("hash", total, "bytes")
    whole = root.resolve()

    def check(entry: FileEntry) -> tuple[FileEntry, str | None]:
        try:
            return entry, _what_is_damaged(whole, entry)
        except OSError as err:
            if err.errno in OUT_OF_FILES:
                raise
            return entry, f"cannot be read: {(err.strerror or str(err)).lower()}"

    for entry, what in map_in_order(check, manifest.files):
        progress.advance(entry.bytes)
        if what is not None:
            yield entry.path, what


def _what_is_damaged(root: Path, entry: FileEntry) -> str | None:
    found = what_is_damaged(root, entry.path, entry.bytes, MANIFEST_NAME)
    if found is not None:
        return found
    if not entry.bytes:
        return "is empty"
    real = root / entry.path
    if f"sha256:{file_sha256(real)}" != entry.checksum:
        return "does not match its checksum"
    if entry.xxh3 and file_digest(real) != entry.xxh3:
        return "does not match its fast checksum, which readers compare"
    return None


def what_is_damaged(root: Path, name: str, size: int | None, lister: str) -> str | None:
    """Return what is wrong with a listed file before anything reads it, or None.

    Args:
        root: The folder, resolved.
        name: The file.
        size: Its bytes, where they are stated.
        lister: The file that states them.
    """
    try:
        real = (root / name).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError, RuntimeError):  # a link to itself
        return "is missing"
    if not real.is_relative_to(root):
        return "is a link out of the graph's folder; do not use this graph"
    if not real.is_file():
        return "is not a plain file"
    found = real.stat().st_size
    if size is not None and found != size:
        return f"has {found} bytes, {lister} says {size}"
    return None
