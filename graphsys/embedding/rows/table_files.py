"""The tables on disk: partitions are loaded from a run's files and stored to new ones."""

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from graphsys.core import ownership
from graphsys.core.errors import TrainingFailedError
from graphsys.core.events import count, span
from graphsys.core.rng import generator
from graphsys.core.threads import run_parallel
from graphsys.embedding import run as runs
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.node_rows import EmbeddingTables
from graphsys.embedding.rows.nonfinite import describe_rows
from graphsys.embedding.rows.row_precision import (
    Stored,
    are_finite,
    rows_at_a_time,
    stored_dtype,
    stored_width,
    to_floats,
    to_stored,
)
from graphsys.storage.grouped.merged_view import GroupedGraph, stored_graph
from graphsys.storage.runs import run_folder
from graphsys.storage.runs.run_pins import remove_replaced

if TYPE_CHECKING:  # numba takes half a second, which asking for neighbors has not
    from graphsys.kernels.cpu.embedding.bags import Extras

Floats = npt.NDArray[np.float32]
Table = tuple[Stored, Floats]  # rows and states, see row_precision and state_shape()
_INIT_ROWS = 1 << 16


def first_rows(config: EmbeddingConfig, part: Part, size: int) -> Stored:
    """Draw the rows that a partition starts with.

    Args:
        config: Seed, dimension, scale and type of rows.
        part: Node type and partition, which key the draw.
        size: Number of rows N.

    Returns:
        Normal values of ``[N, dim]``, as they are stored.
    """
    dim, row_dtype = config.dim_of(part[0]), config.row_dtype
    rows = np.empty((size, stored_width(row_dtype, dim)), dtype=stored_dtype(row_dtype))
    scale = np.float32(config.init_scale_of(part[0]))
    step = rows_at_a_time(dim)  # no plan of a training counts what is drawn at once

    def fill(number: int) -> None:
        """Draw a block, each by a generator of its own: nobody waits for another."""
        keys = (number,) if number else ()
        rng = generator(config.seed, "first values", *part, *keys)
        end = min((number + 1) * _INIT_ROWS, size)
        for begin in range(number * _INIT_ROWS, end, step):
            piece = rows[begin : min(begin + step, end)]
            drawn = rng.standard_normal((len(piece), dim), dtype=np.float32)
            drawn *= scale
            piece[...] = to_stored(drawn, row_dtype)

    run_parallel(fill, range(-(-size // _INIT_ROWS)), config.threads or None)
    return rows


def first_table(config: EmbeddingConfig, part: Part, size: int) -> Table:
    """Return a partition that was never trained: :func:`first_rows` and no state."""
    states = np.zeros(state_shape(config, part[0], size), dtype=np.float32)
    return first_rows(config, part, size), states


def state_shape(config: EmbeddingConfig, node_type: str, size: int) -> tuple[int, ...]:
    """Return the shape of the optimizer's states of ``size`` rows."""
    if config.optimizer == "row_adagrad":
        return (size,)
    dim = config.dim_of(node_type)
    return size, 1 + 2 * dim if config.optimizer == "adam" else dim


def row_bytes(config: EmbeddingConfig, node_type: str) -> int:
    """Return what a row takes, without its state."""
    width = stored_width(config.row_dtype, config.dim_of(node_type))
    return stored_dtype(config.row_dtype).itemsize * width


def table_bytes(config: EmbeddingConfig, node_type: str, size: int) -> int:
    """Return what ``size`` rows and their states take, in memory and in files."""
    return size * row_bytes(config, node_type) + 4 * math.prod(
        state_shape(config, node_type, size)
    )


def read_global(
    path: Path, state: runs.EmbeddingRunState, config: EmbeddingConfig, node_type: str
) -> Floats:
    """Return the global vector of a node type and its Adagrad state, float32 ``[2, D]``.

    It begins as zeros.
    """
    name = runs.find_file(state, runs.globals_file(node_type, 0))
    if name is None:
        return np.zeros((2, config.dim_of(node_type)), dtype=np.float32)
    return runs.read_array(path, name, shape=(2, config.dim_of(node_type)))


class TableFiles:
    """Rows, the optimizer's states and operators of a run while it trains.

    A partition that was never written has its first values, drawn from (seed, type,
    partition); so a new run needs no files at all. A stored partition is a new file; it is
    durable and part of a checkpoint only after :meth:`flush` and a commit. Not safe for
    two threads at once: :class:`PartitionBuffer` sees to that.

    Args:
        context: The training, with the checkpoint to go on from.

    Attributes:
        operators: Parameters and state of every edge type's operators.
        bytes_read, bytes_written: Of partitions, so far.
    """

    def __init__(self, context: EmbeddingContext) -> None:
        path, graph, state = context.path, context.graph, context.state
        config, model = context.config, context.model
        self.path = path
        self._config = config
        self.node_rows = EmbeddingTables(graph, config)
        self._graph = stored_graph(graph)
        on_disk = EmbeddingTables(self._graph, config)
        self._sizes = {t: on_disk.sizes(t) for t in graph.node_types}
        self._grouped = graph if isinstance(graph, GroupedGraph) else None
        self._current = dict(state.files)
        self._committed = set(state.files)
        self._volatile: set[str] = set()
        self._checksums = dict(state.checksums)
        self._serial = state.serial
        self.bytes_read = self.bytes_written = 0
        self.operators: dict[str, Floats] = {}
        for relations in model:
            name = runs.find_file(state, runs.relations_file(relations.name, 0))
            table = relations.initial()
            if name is not None:
                table = runs.read_array(path, name, shape=table.shape)
            self.operators[relations.name] = table
        self.globals = {
            name: read_global(path, state, config, name)
            for name in graph.node_types
            if config.has_global(name)
        }

    def extras(self, src_type: str, dst_type: str) -> "Extras":
        """Return what makes the rows of the nodes of two types from their tables."""
        from graphsys.kernels.cpu.embedding.bags import NO_VECTOR, Extras

        return Extras(
            self.node_rows.bags(src_type),
            self.node_rows.bags(dst_type),
            self.globals.get(src_type, NO_VECTOR),
            self.globals.get(dst_type, NO_VECTOR),
            src_type == dst_type,
        )

    def adopt(self, part: Part, files: Mapping[str, tuple[int, str]]) -> None:
        """Take files that another process stored as those of a partition.

        They stay when this process stores the partition: who stored them removes them.

        Args:
            part: The partition.
            files: Bytes and checksums of its rows and states, by name; none: it has its
                first values.
        """
        self._forget(part)
        for name, (size, checksum) in files.items():
            self._current[name], self._checksums[name] = size, checksum
            self._volatile.add(name)
            self._committed.add(name)

    def listed(self, part: Part) -> dict[str, tuple[int, str]]:
        """Return bytes and checksums of the files of a partition, by name."""
        return {
            name: (self._current[name], str(self._checksums[name]))
            for name in self._names(part)
        }

    def number_above(self, serial: int) -> None:
        """Give files numbers above ``serial`` from now on."""
        self._serial = max(self._serial, serial)

    def number_from(self, serial: int) -> None:
        """Give the next files the numbers after ``serial``, which nobody else gives."""
        self._serial = serial

    def load(self, part: Part) -> Table:
        """Return a partition as it was stored last, or with its first values.

        Raises:
            CorruptStoreError: Its file is missing or of another shape.
        """
        if self._grouped is None:
            return self._load(part)
        pieces, row_dtype = self._pieces(part), self._config.row_dtype
        size = pieces[-1][1].stop
        width = stored_width(row_dtype, self._config.dim_of(part[0]))
        rows = np.empty((size, width), dtype=stored_dtype(row_dtype))
        states = np.empty(state_shape(self._config, part[0], size), dtype=np.float32)
        for piece, chosen in pieces:
            rows[chosen], states[chosen] = self._load(piece)
        return rows, states

    def _load(self, part: Part) -> Table:
        node_type, number = part
        size, dim = int(self._sizes[node_type][number]), self._config.dim_of(node_type)
        rows_name = self._find(runs.rows_file(node_type, number, 0))
        state_name = self._find(runs.state_file(node_type, number, 0))
        with span("read", node_type=node_type, partition=number):
            # Never trained: the first values can be drawn again at any time, and need no
            # file.
            if rows_name is None or state_name is None:
                return first_table(self._config, part, size)
            dtype = stored_dtype(self._config.row_dtype)
            width = stored_width(self._config.row_dtype, dim)
            rows = runs.read_array(self.path, rows_name, shape=(size, width), dtype=dtype)
            shape = state_shape(self._config, node_type, size)
            state = runs.read_array(self.path, state_name, shape=shape)
        count("bytes_read", rows.nbytes + state.nbytes)
        self.bytes_read += rows.nbytes + state.nbytes
        return rows, state

    def store(self, part: Part, table: Table) -> None:
        """Write a partition to new files; the checkpoint's own stay.

        Raises:
            StorageFullError: The disk is full; what was there is whole.
            TrainingFailedError: A row is not finite; it is not written.
        """
        for piece, chosen in self._pieces(part):
            self._store(piece, (table[0][chosen], table[1][chosen]))

    def _store(self, part: Part, table: Table) -> None:
        rows, state = table
        self._require_finite(part, rows)
        with span("write_back", node_type=part[0], partition=part[1]):
            self._replace(functools.partial(runs.rows_file, *part), rows)
            self._replace(functools.partial(runs.state_file, *part), state)
        count("bytes_written", rows.nbytes + state.nbytes)
        self.bytes_written += rows.nbytes + state.nbytes

    def _pieces(self, part: Part) -> list[tuple[Part, slice]]:
        """List the partitions on disk that one in memory stands for, and their rows."""
        if self._grouped is None:
            return [(part, slice(None))]
        members = list(self._grouped.members(*part))
        bounds = np.cumsum([0, *self._sizes[part[0]][members]]).tolist()
        return [
            ((part[0], k), slice(begin, end))
            for k, (begin, end) in zip(members, itertools.pairwise(bounds), strict=True)
        ]

    def keep(self, name: Callable[[int], str], array: npt.NDArray[np.generic]) -> None:
        """Write a further file of the run, which every checkpoint from now on lists.

        Args:
            name: Gives the path of a version of the file, by its number.
            array: The content.
        """
        self._replace(name, array)

    def read(self, name: Callable[[int], str]) -> npt.NDArray[np.generic]:
        """Return the content of such a file.

        Raises:
            CorruptStoreError: It is missing or damaged.
        """
        found = self._find(name(0))
        return runs.read_array(self.path, found or name(0))

    def flush(self, state: runs.EmbeddingRunState) -> None:
        """Make everything stored durable and list it in the checkpoint to be committed.

        Until :meth:`committed` both stay, this checkpoint's files and those of the one
        before: a commit that fails may have replaced ``run.json`` first.
        """
        for name, table in self.operators.items():
            if not np.isfinite(table).all():
                raise TrainingFailedError(
                    f"operators of edge type {name!r} are not finite; lower relation_lr or "
                    f"raise regularizer (the checkpoint before is kept in {self.path})"
                )
            self._replace(functools.partial(runs.relations_file, name), table)
        for name, table in self.globals.items():
            self._replace(functools.partial(runs.globals_file, name), table)
        # Only now: files that a later store replaces before the checkpoint are never
        # flushed.
        for name in sorted(self._volatile):
            runs.sync_file(self.path / name)
        self._volatile.clear()
        self._committed |= self._current.keys()
        state.serial = self._serial
        state.files = dict(self._current)
        known = self._checksums
        listed = (*state.files, runs.CONFIG_NAME)
        state.checksums = {name: known[name] for name in listed if name in known}

    def committed(self) -> None:
        """Remove what the checkpoint of the last :meth:`flush` superseded."""
        remove_replaced(self.path, self._committed - self._current.keys())
        self._committed = set(self._current)

    def _require_finite(self, part: Part, rows: Stored) -> None:
        """Keep what the last batch of a bucket may have spoilt out of the checkpoint."""
        row_dtype = self._config.row_dtype
        if are_finite(rows, row_dtype):
            return
        found = describe_rows(self._graph, {part: to_floats(rows, row_dtype)})
        raise TrainingFailedError(
            f"{found} after a bucket of partition {part[1]}; lower lr or raise regularizer "
            f"(the checkpoint before it is kept in {self.path})"
        )

    def _replace(self, name: Callable[[int], str], array: Stored) -> None:
        """Write a file and drop the one before it, unless the checkpoint needs that."""
        self._serial += 1
        # A new name each time: the checkpoint's file stays until the next one is committed.
        old, new = self._find(name(0)), name(self._serial)
        run_folder.require_there(self.path, {}, {runs.CONFIG_NAME} & self._checksums.keys())
        self._current[new] = runs.write_array(self.path / new, array)
        self._checksums[new] = runs.array_checksum(array)
        self._volatile.add(new)
        if old is not None:
            del self._current[old]
            self._checksums.pop(old, None)
            if old not in self._committed:
                self._volatile.discard(old)
                ownership.remove_listed(self.path, [old])

    def _names(self, part: Part) -> list[str]:
        found = (self._find(f(*part, 0)) for f in (runs.rows_file, runs.state_file))
        return [name for name in found if name is not None]

    def _forget(self, part: Part) -> None:
        for name in self._names(part):
            del self._current[name]
            self._checksums.pop(name, None)
            self._volatile.discard(name)

    def _find(self, name: str) -> str | None:
        stem = name.rsplit(".", 2)[0]
        found = (file for file in self._current if file.rsplit(".", 2)[0] == stem)
        return next(found, None)
