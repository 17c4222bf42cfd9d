"""What writers need of S3 and pyarrow lacks: conditional puts, and removal by key.

``If-None-Match: *`` puts an object where there is none, ``If-Match: ETAG`` where there is
still the one that was read: the storage lets one of several writers through, and that is
the whole commit.
"""

import contextlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, GraphsysError
from graphsys.core.ownership import remove_objects
from graphsys.core.remote.locations import Location
from graphsys.storage.objects.object_store import (
    CONNECT_S,
    REQUEST_S,
    TRIES,
    endpoint_url,
    failure,
    region,
)

_NO_CREDENTIALS: Final = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
    "SSOTokenLoadError",
)
_PIECE: Final = 8 << 20
_TRIED_ANEW: Final = 3
_GONE: Final = ("NoSuchKey", "404", "NotFound")
_LOST: Final = ("PreconditionFailed", "412", *_GONE)
_BUSY: Final = ("ConditionalRequestConflict", "409")


class S3Writer:
    """A bucket, for a writer.

    Raises:
        ConfigError: the storage has no conditional put that we know.
        MissingDependencyError: boto3 is not installed.
    """

    def __init__(self, location: Location) -> None:
        if location.scheme != "s3":
            raise ConfigError(
                f"{location}: only s3:// can be written to, {location.scheme}:// only "
                "read; write to a local folder and copy it, graph.json or run.json last"
            )
        self.location = location
        boto3 = require("boto3", extra="s3")
        config = require("botocore.config", extra="s3").Config(
            retries={"mode": "standard", "max_attempts": TRIES},
            connect_timeout=CONNECT_S,
            read_timeout=REQUEST_S,
            s3={"addressing_style": "path"} if endpoint_url() else None,
        )
        with self._told():
            self._client = boto3.Session().client(
                "s3", endpoint_url=endpoint_url(), region_name=region(), config=config
            )

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return an object and its ETag; None where there is none.

        Raises:
            ConfigError: there is no such bucket, or this user may not read it.
            ObjectStoreError: the storage fails.
        """
        with self._told():
            try:
                found = self._client.get_object(**self._named(name))
                return found["Body"].read(), found["ETag"]
            except self._client.exceptions.ClientError as err:
                if _code(err) in _GONE:
                    return None
                raise

    def put(self, name: str, body: bytes) -> None:
        """Put an object under a name that nobody else gives.

        Raises:
            ObjectStoreError: the storage fails.
        """
        with self._told():
            self._client.put_object(**self._named(name), Body=body)

    def put_if(self, name: str, body: bytes, etag: str | None) -> bool:
        """Put an object where nobody put another since it was read.

        Args:
            name: The object.
            body: What it is to hold.
            etag: Of what is to be replaced; None where nothing may be there.

        Returns:
            False where somebody did, and nothing was put.

        Raises:
            ObjectStoreError: the storage fails; whether it was put is not known.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        for left in reversed(range(_TRIED_ANEW)):
            with self._told():
                try:
                    self._client.put_object(**self._named(name), Body=body, **condition)
                    return True
                except self._client.exceptions.ClientError as err:
                    if _code(err) not in (*_LOST, *_BUSY):
                        raise
                    is_busy = _code(err) in _BUSY
            # an answer that was lost is asked for again, and then finds our own object
            found = self.read(name)
            if found is not None and found[0] == body:
                return True
            if not (is_busy and left) or (found[1] if found else None) != etag:
                return False
        return False

    def upload(self, file: Path, name: str) -> None:
        """Write an object; until all of it is there, what was stays.

        Also where this is interrupted, or the file cannot be read: pyarrow's streams, once
        opened, would then make an object of what there is.

        Raises:
            OSError: the file cannot be read.
            ObjectStoreError: the storage fails.
        """
        config = require("boto3.s3.transfer", extra="s3").TransferConfig(
            multipart_threshold=_PIECE, multipart_chunksize=_PIECE, use_threads=False
        )
        with file.open("rb") as source, self._told():
            self._client.upload_fileobj(source, **self._named(name), Config=config)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects that are known to be ours; never raises.

        What cannot be removed now, the next writer removes and ``verify`` names.
        """
        keys = [self._key(name) for name in names]
        with contextlib.suppress(GraphsysError), self._told():
            remove_objects(self._client, self.location.bucket, keys)

    def drop_parts(self, folders: Iterable[str]) -> None:
        """Abort the uploads into folders that were never finished; never raises."""
        for folder in folders:
            with contextlib.suppress(GraphsysError), self._told():
                pages = self._client.get_paginator("list_multipart_uploads").paginate(
                    Bucket=self.location.bucket, Prefix=f"{self._key(folder)}/"
                )
                for upload in (it for page in pages for it in page.get("Uploads", ())):
                    self._client.abort_multipart_upload(
                        Bucket=self.location.bucket,
                        Key=upload["Key"],
                        UploadId=upload["UploadId"],
                    )

    def begun(self) -> set[str]:
        """Return the names of objects whose upload was begun and not finished."""
        with self._told():
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self.location.bucket, Prefix=f"{self.location.key}/"
            )
            uploads = [it for page in pages for it in page.get("Uploads", ())]
        return {it["Key"].removeprefix(f"{self.location.key}/") for it in uploads}

    def _key(self, name: str) -> str:
        return "/".join(filter(None, [self.location.key, name]))

    def _named(self, name: str) -> dict[str, Any]:
        return {"Bucket": self.location.bucket, "Key": self._key(name)}

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what botocore raises into one line, without what the answer says."""
        from botocore import exceptions as known

        networks = known.ConnectionError, known.HTTPClientError, known.IncompleteReadError
        try:
            yield
            return
        except known.ClientError as err:
            error = failure(self.location, _code(err))
        except (known.BotoCoreError, ValueError) as err:
            if isinstance(err, GraphsysError):
                raise
            error = self._of_library(err, is_network=isinstance(err, networks))
        raise error

    def _of_library(self, err: Exception, *, is_network: bool) -> GraphsysError:
        kind = type(err).__name__
        if kind in _NO_CREDENTIALS:
            return failure(self.location, "NO_CREDENTIALS")
        if kind == "ProfileNotFound":
            return ConfigError(
                f"{self.location}: AWS_PROFILE names a profile that there is not; look "
                "into ~/.aws/config"
            )
        if not is_network:
            return ConfigError(
                f"{self.location}: the settings of the storage are wrong ({kind}); look at "
                "AWS_ENDPOINT_URL, AWS_REGION and ~/.aws/config"
            )
        return failure(self.location, kind, is_network=True)


def _code(err: Any) -> str:
    return str(err.response.get("Error", {}).get("Code", ""))
