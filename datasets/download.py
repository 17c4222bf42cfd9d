"""Files from the network: resumed, checked, kept in a cache."""

import fcntl
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from graphsys.core import ownership
from graphsys.core.checksums import file_sha256
from graphsys.core.errors import InputError
from graphsys.core.progress import SILENT, Progress
from graphsys.datasets.files import describe

TIMEOUT_S: Final = 30
_PIECE_BYTES: Final = 1 << 20
_PARTIAL: Final = 206
_RANGE_REFUSED: Final = 416


def cache_folder() -> Path:
    """Return where fetched files are kept: $GRAPHSYS_CACHE or ~/.cache/graphsys."""
    chosen = os.environ.get("GRAPHSYS_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "graphsys"


def fetch(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    num_bytes: int | None = None,
    progress: Progress = SILENT,
) -> Path:
    """Return ``path``, fetched from ``url`` unless it is there and right.

    What was fetched of an interrupted download is kept beside it as ``NAME.part`` and
    continued. The file appears whole or not at all; two processes do not disturb each
    other.

    Args:
        url: Where it comes from.
        path: Where it goes.
        sha256: Its checksum; None to trust the transport.
        num_bytes: Its size, where known, for the progress bar.
        progress: Told of the bytes.

    Raises:
        InputError: the network, the server or the disk fails, or the checksum differs.
    """
    if path.is_file() and (sha256 is None or file_sha256(path) == sha256):
        return path
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab") as out:
            fcntl.flock(out, fcntl.LOCK_EX)
            if path.is_file() and (sha256 is None or file_sha256(path) == sha256):
                ownership.remove_made(part)  # another process was faster
                return path
            _download(url, out.fileno(), part, num_bytes, progress)
            found = file_sha256(part)
            if sha256 is not None and found != sha256:
                ownership.remove_made(part)
                raise InputError(
                    f"{url}: got a file with sha256 {found[:12]}..., expected "
                    f"{sha256[:12]}...; "
                    "try again"
                )
            part.replace(path)
    except urllib.error.HTTPError as err:
        raise InputError(f"{url}: the server answers {err.code} {err.reason}") from err
    except urllib.error.URLError as err:
        reason = err.reason
        text = describe(reason) if isinstance(reason, BaseException) else str(reason)
        raise InputError(f"{url}: cannot be fetched: {text}") from err
    except OSError as err:
        raise InputError(f"{url}: cannot be fetched to {path}: {describe(err)}") from err
    return path


def _download(
    url: str, out: int, part: Path, num_bytes: int | None, progress: Progress
) -> None:
    """Append to ``part`` what is missing of it."""
    if not url.startswith(("https://", "http://")):
        raise InputError(f"{url}: expected an address that begins with https://")
    have = part.stat().st_size
    request = urllib.request.Request(url, headers={"User-Agent": "graphsys"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as err:
        if err.code == _RANGE_REFUSED and have:  # complete already; the checksum decides
            return
        raise
    with answer:
        if have and answer.status != _PARTIAL:  # the server cannot resume
            os.ftruncate(out, 0)
            have = 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else num_bytes
        progress.stage(f"fetch {part.name.removesuffix('.part')}", total, "bytes")
        progress.advance(have)
        while piece := answer.read(_PIECE_BYTES):
            os.write(out, piece)
            have += len(piece)
            progress.advance(len(piece))
    if total is not None and have < total:
        raise InputError(
            f"{url}: the connection ended after {have} of {total} bytes; run it again to "
            "go on"
        )
