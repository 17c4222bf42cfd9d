"""Signed edges: the sign of an edge's weight as its relation, positive or negative."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.core.types import SIGNS
from graphsys.storage.source import EdgeChunk, NodeChunk, WrappedSource


class SignedSource(WrappedSource):
    """A source whose edges have the sign of their weight as relation.

    The weight that is left is its size, so that an edge of -10 counts ten times.
    """

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the source's chunks, edges with relations.

        Raises:
            InputError: edges have no weights or a weight of 0, or they have relations.
        """
        for chunk in self._source.chunks():
            yield self._signed(chunk) if isinstance(chunk, EdgeChunk) else chunk

    def _signed(self, chunk: EdgeChunk) -> EdgeChunk:
        given = chunk.columns.get("weight")
        if given is None:
            raise InputError(
                f"{self.name}: --signed, but edges have no column weight; say which it is "
                "with --columns, such as src,dst,weight or weight=NAME,src=NAME,dst=NAME"
            )
        if "relation" in chunk.columns:
            raise InputError(
                f"{self.name}: --signed, but edges have relations, which a sign would "
                "replace; leave out --signed, or the column relation"
            )
        weight = np.asarray(given)
        if weight.dtype.kind not in "iuf":
            return chunk  # no numbers, which is refused where all weights are looked at
        if (zero := np.flatnonzero(weight == 0)).size:
            ends = [np.asarray(side)[zero[0]] for side in (chunk.src, chunk.dst)]
            raise InputError(
                f"{self.name}: the edge from {ends[0]} to {ends[1]} has weight 0, which "
                "has no sign; leave such edges out"
            )
        codes = pa.array((weight < 0).astype(np.int32))
        signs = pa.DictionaryArray.from_arrays(codes, pa.array(SIGNS, type=pa.string()))
        size = np.abs(weight.astype(np.float64) if weight.dtype.kind == "i" else weight)
        columns = {**chunk.columns, "relation": signs, "weight": size}
        return replace(chunk, columns=columns)
