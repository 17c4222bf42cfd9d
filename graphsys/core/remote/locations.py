"""Locations on object stores, and what is shown of them; loads nothing heavy.

A command line's ``s3://bucket/graph`` comes as a ``Path``, which has one slash left:
``s3:/bucket/graph``. Both mean the same here.
"""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress

SCHEMES: Final = ("s3", "gs")
_LOCATION: Final = re.compile(rf"({'|'.join(SCHEMES)}):/+(.*)", re.DOTALL)
_COLLAPSED: Final = re.compile(rf"\b({'|'.join(SCHEMES)}):/(?=[^/\s])")

Place = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of a bucket.

    Attributes:
        scheme: "s3" or "gs".
        bucket: The bucket.
        key: What all keys of the folder begin with, without slashes around it.
    """

    scheme: str
    bucket: str
    key: str

    @classmethod
    def parse(cls, place: Place) -> Self:
        """Read ``s3://bucket/folder``.

        Raises:
            ConfigError: it names no folder of a bucket, or holds more than that.

        Examples:
            >>> str(Location.parse("s3://shop/graphs/may/"))
            's3://shop/graphs/may'
        """
        found = _LOCATION.fullmatch(os.fspath(place))
        if found is None:
            raise ConfigError(f"{place} is no location of an object store")
        scheme, rest = found.groups()
        bucket, _, key = rest.strip("/").partition("/")
        if "@" in bucket or "?" in rest or ":" in bucket:  # not shown: it may be a secret
            raise ConfigError(
                f"a location is {scheme}://BUCKET/FOLDER and nothing else; credentials and "
                "the endpoint belong into the environment (AWS_ACCESS_KEY_ID, "
                "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL)"
            )
        parts = key.split("/")
        if not bucket or not key or not rest.isprintable() or {"", ".", ".."} & set(parts):
            raise ConfigError(
                f"{scheme}://{rest} names no folder of a bucket; expected {scheme}://BUCKET/"
                "FOLDER, such as s3://shop/graph"
            )
        return cls(scheme, bucket, key)

    def __str__(self) -> str:
        return "/".join([f"{self.scheme}:/", self.bucket, *filter(None, [self.key])])

    @property
    def name(self) -> str:
        """The last part of the key: a file's name, if it is one's location."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> "Location":
        """The folder that this lies in, whose key is empty if that is the bucket."""
        return Location(self.scheme, self.bucket, self.key.rpartition("/")[0])

    def parents(self) -> list["Location"]:
        """Return the folders that this one lies in, the bucket left out."""
        parts = self.key.split("/")
        keys = ("/".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
        return [Location(self.scheme, self.bucket, key) for key in keys]


def is_remote(place: Place) -> bool:
    """Return whether a place is a location on an object store."""
    return _LOCATION.match(os.fspath(place)) is not None


_copies: dict[str, str] = {}
"""Folders on this machine, and the locations that they are copies of."""
_progress: list[Callable[[], Progress]] = [lambda: SILENT]


def show_as(folder: Place, location: Location) -> None:
    """Have :func:`shown` name a location where a text names the folder of its copy."""
    _copies[os.fspath(folder)] = str(location)


def shown(text: str) -> str:
    """Return a text for people, with locations in place of the folders of their copies.

    Examples:
        >>> shown("s3:/shop/graph has no graph.json")
        's3://shop/graph has no graph.json'
    """
    for folder, location in _copies.items():
        text = text.replace(folder, location)
    return _COLLAPSED.sub(r"\1://", text)


def show_progress(make: Callable[[], Progress]) -> None:
    """Have downloads and uploads of this process tell how far they are."""
    _progress[0] = make


def new_progress() -> Progress:
    """Return who is told how far a download or an upload is."""
    return _progress[0]()
