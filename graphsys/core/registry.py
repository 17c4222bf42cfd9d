"""Plug-ins by name: in-tree through a decorator, third-party through entry points.

A user's own come from a file, ``my_program.py:MyProgram``.
"""

import functools
import hashlib
import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from graphsys.core.errors import (
    MODULE_PREFIX,
    CompileError,
    ConfigError,
    cut_list,
    told_with_place,
    unknown_name,
    user_place,
)

T = TypeVar("T")


@functools.lru_cache(maxsize=1)
def _entry_points(path: tuple[str, ...]) -> Any:  # whose class depends on Python's version
    """Return what all packages on a path bring: a training asks for five groups."""
    return entry_points()


class Named(Protocol):
    """What carries the name that it is registered under."""

    @property
    def name(self) -> str:
        """The name."""


S = TypeVar("S", bound=Named)


class Registry(Generic[T]):
    """Names of one kind of plug-in.

    Args:
        kind: What is registered, for messages ("partitioner").
        group: Entry-point group of third-party plug-ins, read when a name is first
            asked for; a broken plug-in is reported by name and stops no other.
        adapt: Turns what an entry point gives into a plug-in, or raises: it is broken.
        modules: The file of ours of each name, which registers it when it is imported:
            when it is first asked for, so that a name that is unknown costs nothing.
    """

    def __init__(
        self,
        kind: str,
        group: str | None = None,
        *,
        adapt: Callable[[Any], T] | None = None,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self._adapt = adapt
        self.modules = dict(modules or {})
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
        if name not in self._items and name in self.modules:
            importlib.import_module(self.modules[name])
        if name not in self._items:
            self._load_others()
        try:
            return self._items[name]
        except KeyError:
            raise unknown_name(self.kind, name, self.names(), self.group) from None

    def names(self) -> list[str]:
        """Return all names, sorted."""
        self._load_others()
        return sorted({*self._items, *self.modules})

    def _load_others(self) -> None:
        """Load what other packages bring, once."""
        if self._is_loaded:
            return
        self._is_loaded = True
        for point in _entry_points(tuple(sys.path)).select(group=self.group or ""):
            if point.name in self._items or point.name in self.modules:
                continue
            try:
                found = point.load()
                self._items[point.name] = self._adapt(found) if self._adapt else found
            except Exception as err:  # a stranger's plug-in may raise anything
                warnings.warn(
                    f"{self.kind} plug-in {point.name!r} ({point.value}) is broken: "
                    f"{err!r}",
                    RuntimeWarning,
                    stacklevel=4,
                )


class SpecRegistry(Registry[S]):
    """A registry of specs: objects of one class that carry their names.

    Args:
        kind: What is registered, for messages ("model").
        group: Entry-point group of third-party specs.
        cls: The class; an entry point that gives anything else is broken.
        modules: As of :class:`Registry`.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        cls: type[S],
        *,
        modules: Mapping[str, str] | None = None,
    ) -> None:
        def checked(found: Any) -> S:
            if not isinstance(found, cls):
                raise TypeError(f"expected a {cls.__name__}, got {type(found).__name__}")
            return found

        super().__init__(kind, group, adapt=checked, modules=modules)

    def add(self, spec: S) -> S:
        """Register a spec under its name, which is given once."""
        return self.register(spec.name)(spec)


def file_and_name(place: str) -> tuple[Path, str]:
    """Return the file and the name of ``file.py:Name``; "" where none is given.

    Examples:
        >>> file_and_name("my.py:Net")
        (PosixPath('my.py'), 'Net')
    """
    name, _, wanted = place.partition(".py:")
    return Path(name + ".py" if wanted else place.removesuffix(":")), wanted


def load_from_file(
    place: str,
    is_wanted: Callable[[Any], bool],
    *,
    kind: str = "class",
    kinds: str,
    source: bytes | None = None,
) -> Any:
    """Run a Python file and return what it has under a name.

    Args:
        place: ``file.py:Name``; the name may be left out where only one object of the
            file's own is wanted.
        is_wanted: Tells whether an object is of the kind.
        kind: What one is called, for messages.
        kinds: What those of the file are called, for messages.
        source: The file's bytes, where they have been read; else they are now.

    Raises:
        ConfigError: There is no such file or name.
        CompileError: The file has an error; the message has its line.
    """
    path, wanted = file_and_name(place)
    if not path.is_file():
        raise ConfigError(f"{path}: there is no such file")
    module_name = MODULE_PREFIX + hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        raise ConfigError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        # not by the loader, which may take compiled code that lies beside the file
        read = path.read_bytes() if source is None else source
        exec(spec.loader.source_to_code(read, str(spec.origin)), vars(module))
    except SyntaxError as err:
        raise CompileError(f"{path}:{err.lineno}: {err.msg}") from err
    except Exception as err:
        where = user_place(err) or str(path)
        raise CompileError(told_with_place(err, where)) from err
    own = {
        key: value
        for key, value in vars(module).items()
        if is_wanted(value)
        and (not isinstance(value, type) or value.__module__ == module_name)
    }
    if not wanted and len(own) == 1:
        return next(iter(own.values()))
    if wanted not in own:
        found = cut_list(sorted(own)) or "none"
        problem = (
            f"has no {kind} {wanted!r}" if wanted else f"needs a {kind}: file.py:Class"
        )
        raise ConfigError(f"{path} {problem}; its {kinds} are: {found}")
    return own[wanted]
