"""Plug-ins by name: in-tree through a decorator, third-party through entry points."""

import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from graphsys.core.errors import unknown_name

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of plug-in.

    Args:
        kind: What is registered, for messages ("partitioner").
        group: Entry-point group of third-party plug-ins, read when a name is first
            asked for; a broken plug-in is reported by name and stops no other.
        adapt: Turns what an entry point gives into a plug-in, or raises: it is broken.
    """

    def __init__(
        self,
        kind: str,
        group: str | None = None,
        *,
        adapt: Callable[[Any], T] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._adapt = adapt
        self._items: dict[str, T] = {}
        self._is_loaded = group is None

    def register(self, name: str) -> Callable[[T], T]:
        """Register the decorated object under ``name``; a name is given once."""

        def decorate(item: T) -> T:
            if name in self._items:
                raise ValueError(f"{self.kind} {name!r} is registered twice")
            self._items[name] = item
            return item

        return decorate

    def get(self, name: str) -> T:
        """Return what is registered under ``name``.

        Raises:
            UnknownNameError: nothing is; the message lists the known names.
        """
        if name not in self._items:
            self._load_entry_points()
        try:
            return self._items[name]
        except KeyError:
            raise unknown_name(self.kind, name, self._items) from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._load_entry_points()
        return sorted(self._items)

    def _load_entry_points(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        for point in entry_points(group=self.group or ""):
            if point.name in self._items:
                continue
            try:
                found = point.load()
                self._items[point.name] = self._adapt(found) if self._adapt else found
            except Exception as err:  # a stranger's plug-in may raise anything
                warnings.warn(
                    f"{self.kind} plug-in {point.name!r} ({point.value}) is broken: "
                    f"{err!r}",
                    RuntimeWarning,
                    stacklevel=3,
                )
