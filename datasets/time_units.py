"""Integers as times of edges, in a unit that the user gives: seconds since 1970."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from graphsys.core.errors import ConfigError, InputError
from graphsys.storage.manifest import TIME_UNITS
from graphsys.storage.source import EdgeChunk, NodeChunk, Source, WrappedSource
from graphsys.storage.write.times import typed

_OF_MILLIONTHS: Final = {"s": "us", "ms": "ns"}


class TimedSource(WrappedSource):
    """A source whose integers in the column ``time`` of edges have a unit.

    Args:
        source: Where edges come from.
        unit: "s", "ms", "us", "ns" or "d", since 1970, UTC.

    Raises:
        ConfigError: there is no such unit.
    """

    def __init__(self, source: Source, unit: str) -> None:
        if unit not in TIME_UNITS:
            raise ConfigError(
                f"time_unit: got {unit!r}, expected one of {', '.join(TIME_UNITS)}"
            )
        super().__init__(source)
        self.has_millionths = False  # times have a unit now
        self._unit = unit
        if source.has_millionths:  # numbers with fractions, stored as such
            if unit not in _OF_MILLIONTHS:
                raise InputError(
                    f"{source.name}: times have fractions, expected integers for "
                    f"--time-unit {unit}; pass --time-unit s or ms"
                )
            self._unit = _OF_MILLIONTHS[unit]

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the source's chunks, integers as timestamps.

        Raises:
            InputError: edges have no times.
        """
        for chunk in self._source.chunks():
            if not isinstance(chunk, EdgeChunk):
                yield chunk
                continue
            times = chunk.columns.get("time")
            if times is None:
                raise InputError(
                    f"{self.name}: --time-unit {self._unit}, but edges have no column "
                    "time; say which it is with --columns, such as src,dst,time or "
                    "time=NAME,src=NAME,dst=NAME"
                )
            if isinstance(times, np.ndarray):
                timed = {"time": typed(times, self._unit)}
                chunk = replace(chunk, columns={**chunk.columns, **timed})
            yield chunk
