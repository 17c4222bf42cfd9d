"""Objects of a folder of a bucket, read and written through pyarrow's file systems.

What fails is tried again by the storage's client, some times; then one line says what
failed. No message holds more of an answer than its code: answers may repeat credentials.
"""

import io
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from graphsys.core.errors import ConfigError, GraphsysError, ObjectStoreError
from graphsys.core.remote.locations import Location

TRIES: Final = 6
"""Of a request, the first included: at one failure in ten, one in a million fails."""
CONNECT_S: Final = 10
REQUEST_S: Final = 60
_GS_RETRY_S: Final = 5
_PIECE: Final = 8 << 20
_PAUSE_S: Final = 0.2
_CUT: Final = "Failed to flush response stream"
_CODE: Final = re.compile(r"AWS Error ([A-Z_]+)|HTTP status (\d+)|curlCode: (\d+)")
_REFUSED: Final = (
    "ACCESSDENIED",
    "INVALIDACCESSKEYID",
    "SIGNATUREDOESNOTMATCH",
    "EXPIREDTOKEN",
    "INVALIDTOKEN",
    "INVALIDCLIENTTOKENID",
    "MISSINGAUTHENTICATIONTOKEN",
    "401",
    "403",
    "FORBIDDEN",
    "UNRECOGNIZEDCLIENT",
    "INVALIDSIGNATURE",
    "NOCREDENTIALS",
    "PARTIALCREDENTIALS",
    "TOKENREFRESHREQUIRED",
)


def failure(location: Location, code: str, *, is_network: bool = False) -> GraphsysError:
    """Return the error for what a storage answered.

    Args:
        location: What was asked for.
        code: The answer's code, in any notation.
        is_network: Whether there was no answer at all.
    """
    plain = code.replace("_", "").upper()
    if plain == "NOSUCHBUCKET":
        return missing_bucket(location)
    if plain in _REFUSED:
        return ConfigError(
            f"{location}: the storage refuses this user ({code}); set AWS_ACCESS_KEY_ID "
            "and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, to one who may use the bucket"
        )
    if is_network:
        endpoint = endpoint_url()
        where = f" at {_without_user(endpoint)}" if endpoint else ""
        return ObjectStoreError(
            f"{location}: no storage answers{where}; look at the network and at "
            "AWS_ENDPOINT_URL, and run the command again"
        )
    return ObjectStoreError(
        f"{location}: the storage failed {TRIES} times ({code or 'no code'}); wait a while "
        "and run the command again"
    )


def missing_bucket(location: Location) -> ConfigError:
    """Return the error for a bucket that there is not."""
    return ConfigError(
        f"{location}: there is no bucket {location.bucket!r}; make it, or look at its name "
        "and at AWS_ENDPOINT_URL"
    )


def endpoint_url() -> str | None:
    """Return the storage's address where it is not the provider's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def region() -> str | None:
    """Return the bucket's region, where the environment says it or nobody would ask."""
    named = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return named or ("us-east-1" if endpoint_url() else None)


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


class ObjectStore:
    """The objects of a location; names are relative to it."""

    def __init__(self, location: Location) -> None:
        self.location = location

    @cached_property
    def _files(self) -> Any:
        return file_system(self.location)

    def _path(self, name: str) -> str:
        return "/".join(filter(None, [self.location.bucket, self.location.key, name]))

    def read(self, name: str) -> bytes | None:
        """Return what an object holds; None where there is none.

        Raises:
            ConfigError: there is no such bucket, or it may not be read.
            ObjectStoreError: the storage fails.
        """
        try:
            with self._told():
                return _again_if_cut(lambda: self._whole(name))
        except FileNotFoundError:
            return None

    def _whole(self, name: str) -> bytes:
        with self._files.open_input_stream(self._path(name)) as stream:
            return bytes(stream.read())

    def require_bucket(self) -> None:
        """Tell a missing bucket from a missing object.

        Raises:
            ConfigError: there is no such bucket.
        """
        import pyarrow.fs as pafs

        with self._told():
            found = self._files.get_file_info(self.location.bucket)
        if found.type == pafs.FileType.NotFound:
            raise missing_bucket(self.location)

    def kind(self, name: str) -> str | None:
        """Return "file" or "folder", None where nothing has that name.

        Raises:
            ConfigError: there is no such bucket, or it may not be read.
            ObjectStoreError: the storage fails.
        """
        import pyarrow.fs as pafs

        with self._told():
            found = self._files.get_file_info(self._path(name)).type
        known = {pafs.FileType.File: "file", pafs.FileType.Directory: "folder"}
        return known.get(found)

    def sizes(self) -> dict[str, int]:
        """Return the bytes of every object of the folder, by name."""
        return {name: int(info.size) for name, info in self._listed()}

    def written(self) -> dict[str, float]:
        """Return when every object of the folder was written, in seconds, by name."""
        return {name: info.mtime_ns / 1e9 for name, info in self._listed()}

    def _listed(self) -> list[tuple[str, Any]]:
        import pyarrow.fs as pafs

        root = self._path("")
        wanted = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        with self._told():
            found = self._files.get_file_info(wanted)
        files = (info for info in found if info.type == pafs.FileType.File)
        return [(info.path.removeprefix(f"{root}/"), info) for info in files]

    def download(self, name: str, file: Path) -> None:
        """Fetch an object into a file; what the file holds already is its beginning.

        Raises:
            FileNotFoundError: there is no such object.
            OSError: the file cannot be written.
            ObjectStoreError: the storage fails.
        """
        with self._told():
            source = self._files.open_input_file(self._path(name))
        with source, file.open("ab") as target:
            with self._told():
                size = source.size()
            at = target.tell()
            if at > size:
                target.truncate(0)
                at = 0
            while at < size:
                with self._told():
                    piece = ObjectFile(source).read_at(min(_PIECE, size - at), at)
                if not piece:
                    raise ObjectStoreError(
                        f"{self.location}/{name} ended after {at} of {size} bytes; run the "
                        "command again"
                    )
                target.write(piece)
                at += len(piece)

    @contextmanager
    def opened(self, name: str) -> Iterator["ObjectFile"]:
        """Give an object, to read some of its bytes.

        Raises:
            FileNotFoundError: there is no such object.
            ObjectStoreError: the storage fails, while the block reads too.
        """
        with self._told(), self._files.open_input_file(self._path(name)) as source:
            yield ObjectFile(source)

    def upload(self, file: Path, name: str) -> None:
        """Write an object under a name that nobody knows yet.

        It appears when all of it is there, but where this is interrupted: then a part of
        it may. What is to be replaced, :meth:`S3Writer.upload` writes.

        Raises:
            ObjectStoreError: the storage fails.
        """
        with (
            file.open("rb") as source,
            self._told(),
            self._files.open_output_stream(self._path(name)) as target,
        ):
            while piece := source.read(_PIECE):
                target.write(piece)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what pyarrow raises into one line."""
        try:
            yield
            return
        except (FileNotFoundError, GraphsysError):
            raise
        except OSError as err:
            found = _CODE.search(str(err))
            code, status, curl = found.groups() if found else ("", "", "")
            is_network = (
                bool(curl) or code == "NETWORK_CONNECTION" or "curlCode" in str(err)
            )
            if found is None and err.errno is not None:
                raise
            error = failure(self.location, code or status or "", is_network=is_network)
        raise error  # outside of the handler: the answer itself is not told


class ObjectFile(io.RawIOBase):
    """An object that is read in pieces."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source, self._at = source, 0

    def size(self) -> int:
        """Return its bytes."""
        return int(self._source.size())

    def read_at(self, size: int, at: int) -> bytes:
        """Return some of its bytes, fewer at its end.

        Raises:
            OSError: the storage fails again and again.
        """
        return _again_if_cut(lambda: bytes(self._source.read_at(size, at)))

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def seekable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read from where it is."""
        data = self.read_at(len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size()}[whence]
        self._at = begin + offset
        return self._at

    def tell(self) -> int:
        """Return where it is."""
        return self._at


def _again_if_cut(read: Callable[[], bytes]) -> bytes:
    """Read again where the answer was an error that did not fit.

    pyarrow reads the answer to a request into the memory for the bytes asked for: where
    that says what failed, and is longer, it takes it for damage, and does not try again.

    Args:
        read: Reads bytes.

    Raises:
        OSError: the storage fails again and again.
    """
    for left in reversed(range(TRIES)):
        try:
            return read()
        except OSError as err:
            if not left or _CUT not in str(err):
                raise
        time.sleep(_PAUSE_S)
    return b""


def file_system(location: Location) -> Any:
    """Return pyarrow's file system for a location.

    Raises:
        ConfigError: the settings in the environment make none.
    """
    import pyarrow.fs as pafs

    if location.scheme != "s3":
        try:
            # pyarrow itself asks for a quarter of an hour
            limit = f"retry_limit_seconds={_GS_RETRY_S}" if location.scheme == "gs" else ""
            uri = f"{location}?{limit}" if limit else str(location)
            return pafs.FileSystem.from_uri(uri)[0]
        except (OSError, ValueError, NotImplementedError) as err:
            raise ConfigError(
                f"{location}: this pyarrow cannot open {location.scheme}:// here; look at "
                "its credentials, or copy the folder and use the copy"
            ) from err
    settings: dict[str, Any] = {
        "connect_timeout": CONNECT_S,
        "request_timeout": REQUEST_S,
        "retry_strategy": pafs.AwsStandardS3RetryStrategy(max_attempts=TRIES),
        "allow_delayed_open": True,  # one request for a small object in place of three
    }
    endpoint = endpoint_url()
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        settings["endpoint_override"] = f"{parts.netloc}{parts.path}".rstrip("/")
        settings["scheme"] = parts.scheme
    if region():
        settings["region"] = region()
    try:
        if not region():
            settings["region"] = pafs.resolve_s3_region(location.bucket)
        return pafs.S3FileSystem(**settings)
    except (OSError, ValueError) as err:
        if "not found" in str(err).lower():
            raise missing_bucket(location) from None
        raise ObjectStoreError(
            f"{location}: no storage answers; look at the network, AWS_REGION and "
            "AWS_ENDPOINT_URL, and run the command again"
        ) from None
