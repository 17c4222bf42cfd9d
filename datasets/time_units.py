"""Integers as times of edges, in a unit that the user gives: seconds since 1970."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from graphsys.core.errors import ConfigError, InputError
from graphsys.storage.manifest import TIME_UNITS
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.write.times import typed

_OF_MILLIONTHS: Final = {"s": "us", "ms": "ns"}


class TimedSource(Source):
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
        self.name, self.total_bytes = source.name, source.total_bytes
        self.is_directed, self.allows_nan = source.is_directed, source.allows_nan
        self._source = source
        self._unit = unit
        if source.has_millionths:  # numbers with fractions, stored as such
            if unit not in _OF_MILLIONTHS:
                raise InputError(
                    f"{source.name}: times have fractions, expected integers for "
                    f"--time-unit {unit}; pass --time-unit s or ms"
                )
            self._unit = _OF_MILLIONTHS[unit]

    @property
    def num_parts(self) -> int:
        """How many parts can be read side by side."""
        return self._source.num_parts

    def keep_part(self, number: int) -> None:
        """Forget all parts but one."""
        self._source.keep_part(number)

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
