"""The tables in memory: the partitions of the unit being trained, the rest on disk."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import CorruptStoreError
from graphsys.core.events import count, span
from graphsys.core.rng import generator
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import RelationSet
from graphsys.embedding.schedule import Part
from graphsys.storage.reader import Graph

Floats = npt.NDArray[np.float32]
_INIT_ROWS = 1 << 16


def first_values(config: EmbeddingConfig, part: Part, size: int) -> Floats:
    """Draw the rows that a partition starts with.

    Args:
        config: Seed, dimension and scale.
        part: Node type and partition, which key the draw.
        size: Number of rows N.

    Returns:
        Normal values, float32 ``[N, dim]``.
    """
    rng = generator(config.seed, "first values", *part)
    rows = np.empty((size, config.dim), dtype=np.float32)
    for begin in range(0, size, _INIT_ROWS):
        block = rows[begin : begin + _INIT_ROWS]
        rng.standard_normal(out=block, dtype=np.float32)
        block *= np.float32(config.init_scale)
    return rows


class TableFiles:
    """Rows, Adagrad states and operators of a run while it trains.

    A partition that was never written has its first values, drawn from (seed, type,
    partition); so a new run needs no files at all.

    Args:
        path: The run's folder.
        graph: The graph trained on.
        model: Its relations.
        config: Dimension, seed and scale.
        state: The checkpoint to go on from.
    """

    def __init__(
        self,
        path: Path,
        graph: Graph,
        model: list[RelationSet],
        config: EmbeddingConfig,
        state: runs.RunState,
    ) -> None:
        self.path = path
        self._config = config
        self._sizes = {t: np.diff(graph.offsets(t)) for t in graph.node_types}
        self._current = dict(state.files)
        self._committed = set(state.files)
        self._serial = state.serial
        self.resident: dict[Part, tuple[Floats, Floats]] = {}
        self._dirty: set[Part] = set()
        self.operators: dict[str, Floats] = {}
        for relations in model:
            name = runs.find_file(state, runs.relations_file(relations.name, 0))
            self.operators[relations.name] = (
                relations.initial() if name is None else runs.read_array(path, name)
            )

    def hold(self, parts: Iterable[Part]) -> None:
        """Bring partitions into memory and write back those that are not among them."""
        wanted = list(dict.fromkeys(parts))
        for part in [p for p in self.resident if p not in wanted]:
            if part in self._dirty:
                self._write(part)
            del self.resident[part]
        for part in wanted:
            if part not in self.resident:
                with span("read", node_type=part[0], partition=part[1]):
                    self.resident[part] = self._load(part)
        self._dirty.update(wanted)

    def flush(self, state: runs.RunState) -> None:
        """Write everything changed and list it in the checkpoint to be committed."""
        for part in sorted(self._dirty & self.resident.keys()):
            self._write(part)
        for name, table in self.operators.items():
            self._replace(functools.partial(runs.relations_file, name), table)
        state.serial = self._serial
        state.files = dict(self._current)

    def committed(self) -> None:
        """Take note that the files of the last :meth:`flush` are a checkpoint."""
        self._committed = set(self._current)

    def _load(self, part: Part) -> tuple[Floats, Floats]:
        node_type, number = part
        size, dim = int(self._sizes[node_type][number]), self._config.dim
        rows_name = self._find(runs.rows_file(node_type, number, 0))
        state_name = self._find(runs.state_file(node_type, number, 0))
        if rows_name is None or state_name is None:
            return first_values(self._config, part, size), np.zeros(size, dtype=np.float32)
        rows = runs.read_array(self.path, rows_name)
        state = runs.read_array(self.path, state_name)
        count("bytes_read", rows.nbytes + state.nbytes)
        if rows.shape != (size, dim) or state.shape != (size,):
            raise CorruptStoreError(
                f"{self.path / rows_name} has shape {rows.shape}, expected {(size, dim)}; "
                "train the run again"
            )
        return rows, state

    def _write(self, part: Part) -> None:
        rows, state = self.resident[part]
        with span("write_back", node_type=part[0], partition=part[1]):
            self._replace(functools.partial(runs.rows_file, *part), rows)
            self._replace(functools.partial(runs.state_file, *part), state)
        count("bytes_written", rows.nbytes + state.nbytes)
        self._dirty.discard(part)

    def _replace(self, name: Callable[[int], str], array: Floats) -> None:
        """Write a file and drop the one before it, unless the checkpoint needs that."""
        self._serial += 1
        old, new = self._find(name(0)), name(self._serial)
        self._current[new] = runs.write_array(self.path / new, array)
        if old is not None:
            del self._current[old]
            if old not in self._committed:
                (self.path / old).unlink(missing_ok=True)

    def _find(self, name: str) -> str | None:
        stem = name.rsplit(".", 2)[0]
        found = (file for file in self._current if file.rsplit(".", 2)[0] == stem)
        return next(found, None)
