"""What the units of a training hold in memory, part by part."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphsys.core.memory import resident_bytes
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.schedule import Part
from graphsys.embedding.rows.table_files import Floats, Table
from graphsys.embedding.training.plan import scratch_split
from graphsys.training.memory_split import split_of, tell_memory

if TYPE_CHECKING:
    from graphsys.embedding.training.bucket_trainer import BucketWork


class UnitMemory:
    """Counts the parts of a training's memory; see :meth:`Planner.memory_split`.

    Tables and orders are counted by their arrays, what kernels make for themselves by the
    same sizes that they make it with.

    Args:
        context: The training.
        tables: The partitions in memory.
        operators: Parameters and state of every edge type's operators.
    """

    def __init__(
        self,
        context: EmbeddingContext,
        tables: Mapping[Part, Table],
        operators: Mapping[str, Floats],
    ) -> None:
        self._config, self._model = context.config, context.model
        self._tables, self._operators = tables, operators
        self._process, self._most = resident_bytes(), dict[str, int]()

    def end_unit(self, work: "Sequence[BucketWork]") -> None:
        """Count what there is after a unit was trained, before its partitions go."""
        trained = {part for it in work for part in (it.step.src, it.step.dst)}
        tables = dict(self._tables)  # a thread may load the next one
        rows = sum(tables[part][0].nbytes for part in trained)
        states = sum(tables[part][1].nbytes for part in trained)
        others = [table for part, table in tables.items() if part not in trained]
        operators = sum(table.nbytes for table in self._operators.values()) // 2
        edges = [it.edges for it in work]
        num_rows = max(len(tables[it.step.src][0]) for it in work)
        num_rows += max(len(tables[it.step.dst][0]) for it in work)
        num_nodes = max(len(tables[part][0]) for part in trained)
        found = {
            "parameters": rows + operators,
            "optimizer": states + operators,
            "caches": sum(table[0].nbytes + table[1].nbytes for table in others),
            "topology": sum(
                e.order.nbytes + e.chunks.nbytes + e.batches.nbytes for e in edges
            ),
            **scratch_split(self._config, self._model, num_rows, num_nodes),
        }
        for name, size in found.items():
            self._most[name] = max(self._most.get(name, 0), size)
        tell_memory("unit", self._process, lambda: found)

    def split(self, peak: int) -> dict[str, int]:
        """Return the parts of the most that the process had; empty without a unit."""
        return split_of(peak, self._process, self._most) if self._most else {}
