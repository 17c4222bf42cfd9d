"""Edges to nodes that no table of nodes lists: left out and counted, on request."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import BudgetError, InputError
from graphsys.core.memory import format_bytes, parse_bytes
from graphsys.storage.ingest.split_column import rows_of
from graphsys.storage.source import EdgeChunk, NodeChunk, Source, WrappedSource


class ListedNodesOnly(WrappedSource):
    """A source without the edges of nodes that its tables do not list.

    The ids of all listed nodes are held in memory. Types of nodes without a table are left
    as they are.

    Args:
        source: Tables of nodes before tables of edges.
        memory: Budget of which ids may take a half.
    """

    def __init__(self, source: Source, memory: int | str) -> None:
        super().__init__(source)
        self._budget = parse_bytes(memory) // 2
        self._listed: dict[str, list[Any]] = {}
        self._known: dict[str, Any] = {}

    @property
    def num_parts(self) -> int:
        """One: who reads edges has to have read all nodes."""
        return 1

    def keep_part(self, number: int) -> None:
        """Keep the one part that there is."""

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield nodes as they are, and the edges between listed ones.

        Raises:
            BudgetError: ids take more than half of the budget.
            InputError: no edge is left.
        """
        dropped = total = 0
        for chunk in self._source.chunks():
            if isinstance(chunk, NodeChunk):
                if not chunk.is_partial:
                    self._listed.setdefault(chunk.node_type, []).append(chunk.ids)
                yield chunk
                continue
            kind = chunk.edge_type
            is_kept = self._mask(kind.src_type, chunk.src)
            is_kept = is_kept & self._mask(kind.dst_type, chunk.dst)
            total += len(is_kept)
            if not is_kept.all():
                dropped += int((~is_kept).sum())
                chunk = rows_of(chunk, np.flatnonzero(is_kept))
            yield chunk
        if not dropped:
            return
        if dropped == total:
            is_text = any(not isinstance(it, np.ndarray) for it in self._known.values())
            hint = "; pass --ids int if 007 and 7 are one" if is_text else ""
            raise InputError(
                f"{self.name}: no node of any edge is in the tables of nodes; are ids the "
                f"same in both?{hint}"
            )
        note(
            f"{self.name}: dropped {dropped} of {total} edges, as a node of them is in no "
            "table of nodes"
        )

    def _mask(self, node_type: str, ids: Any) -> npt.NDArray[np.bool_]:
        """Return which ids are listed, all where the type has no table."""
        if node_type not in self._listed:
            return np.ones(len(ids), dtype=bool)
        if node_type not in self._known:
            self._known[node_type] = self._joined(self._listed[node_type])
        known = self._known[node_type]
        is_integer = isinstance(ids, np.ndarray)
        if is_integer != isinstance(known, np.ndarray):
            return np.ones(len(ids), dtype=bool)  # the store says that kinds differ
        if is_integer:
            place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
            found: npt.NDArray[np.bool_] = known[place] == ids
            return found
        plain = ids.dictionary if pa.types.is_dictionary(ids.type) else ids
        is_in = pc.is_in(plain.cast(pa.large_string()), value_set=known).to_numpy(
            zero_copy_only=False
        )
        if pa.types.is_dictionary(ids.type):
            is_in = is_in[ids.indices.to_numpy(zero_copy_only=False)]
        return np.asarray(is_in, dtype=bool)

    def _joined(self, parts: list[Any]) -> Any:
        held = sum(part.nbytes for part in parts)
        if held > self._budget:
            raise BudgetError(
                f"memory: {format_bytes(held)} of ids are held to find missing nodes, got "
                f"{format_bytes(2 * self._budget)}; give {format_bytes(2 * held)}"
            )
        if isinstance(parts[0], np.ndarray):
            return np.sort(np.concatenate(parts))
        plain = [
            part.dictionary_decode() if pa.types.is_dictionary(part.type) else part
            for part in parts
        ]
        return pa.concat_arrays([part.cast(pa.large_string()) for part in plain])
