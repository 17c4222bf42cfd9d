"""What is checked of a file of a store: is it what was written, and inside its bounds?

Reading follows what files say without asking again: an offset or a neighbor that is out of
bounds would make kernels read anywhere, one that is merely wrong would change results. So
whoever maps a file for the first time compares its checksum and checks its bounds, both at
the speed of memory; ``checked_files`` remembers that for as long as the file is the same.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.storage.manifest import EdgeTypeEntry
from graphsys.storage.views import view_of

_PIECE = 1 << 20  # numbers looked at together: what is made of them stays in the cache


def check_rows(batch: pa.RecordBatch, size: int) -> None:
    """Check that a file has a row for every node of its partition.

    Raises:
        ValueError: It has not.
    """
    if batch.num_rows != size:
        raise ValueError(f"it has {batch.num_rows} rows, its partition {size} nodes")


def check_nodes(batch: pa.RecordBatch, size: int, id_type: pa.DataType) -> None:
    """Check that a node table has an id for every node of its partition.

    Raises:
        ValueError: It has not.
    """
    check_rows(batch, size)
    ids = batch.column("id")
    if ids.type != id_type or ids.null_count:
        raise ValueError(
            f"it has ids of type {ids.type}, {ids.null_count} missing; expected {id_type}"
        )


def check_bucket(batch: pa.RecordBatch, rows: int, num_src: int, num_dst: int) -> None:
    """Check that a bucket's edges join nodes of its partitions.

    Raises:
        ValueError: An edge does not, or there are more or fewer than stated.
    """
    if batch.num_rows != rows:
        raise ValueError(f"it has {batch.num_rows} edges, graph.json says {rows}")
    for name, size in (("src", num_src), ("dst", num_dst)):
        _require_below(view_of(batch.column(name)), size, name)


def check_added(
    batch: pa.RecordBatch, num_src: int, num_dst: int, num_relations: int
) -> None:
    """Check that the edges of a delta join nodes that there are.

    Raises:
        ValueError: An edge does not, or has a relation that there is not.
    """
    for name, size in (("src", num_src), ("dst", num_dst)):
        _require_below(view_of(batch.column(name)), size, name)
    if "relation" in batch.schema.names:
        codes = view_of(batch.column("relation").indices)
        _require_below(codes, num_relations, "relation")


def check_removed(
    batch: pa.RecordBatch, num_src: int, num_dst: int, num_deltas: int
) -> None:
    """Check that what a delta removed is of nodes and deltas that there are.

    Raises:
        ValueError: It is not.
    """
    sizes = {"src": num_src, "dst": num_dst, "delta": num_deltas, "row": 2**63 - 1}
    for name, size in sizes.items():
        _require_below(view_of(batch.column(name)), size, name)


def check_index(
    batch: pa.RecordBatch, num_rows: int, num_others: int, edge: EdgeTypeEntry
) -> None:
    """Check that rows lie one behind the other and name nodes that there are.

    Args:
        batch: The one row of lists of an index file.
        num_rows: Nodes of the partition.
        num_others: Nodes of the type of the neighbors.
        edge: The edge type.

    Raises:
        ValueError: They do not.
    """
    if batch.num_rows != 1:
        raise ValueError(f"it has {batch.num_rows} rows, expected 1")
    columns = zip(batch.schema.names, batch.columns, strict=True)
    lists = {n: view_of(c.values) for n, c in columns}
    indptr, indices = lists.pop("indptr"), lists["indices"]
    if len(indptr) != num_rows + 1:
        raise ValueError(f"its indptr has {len(indptr)} numbers, expected {num_rows + 1}")
    _require_offsets(indptr, len(indices))
    for name, values in lists.items():
        if len(values) != len(indices):
            raise ValueError(f"its {name} has {len(values)} entries of {len(indices)}")
    _require_below(indices, num_others, "indices")
    if "relation" in lists:
        _require_below(lists["relation"], len(edge.relations or ()), "relation")
    if "edge" in lists:
        _require_below(lists["edge"], max(sum(edge.num_edges.values()), 1), "edge")


def _require_offsets(indptr: npt.NDArray[np.integer], num_entries: int) -> None:
    if indptr[0] != 0 or indptr[-1] != num_entries:
        raise ValueError(
            f"its indptr goes from {indptr[0]} to {indptr[-1]}, expected 0 to {num_entries}"
        )
    for begin in range(0, len(indptr), _PIECE):
        piece = indptr[begin : begin + _PIECE + 1]
        if (piece[1:] < piece[:-1]).any():
            raise ValueError("its indptr descends")


def _require_below(values: npt.NDArray[np.integer], bound: int, name: str) -> None:
    if not len(values):
        return
    least, most = 0, int(values.max())
    if values.dtype.kind == "i":
        least = int(values.min())
    if least < 0 or most >= bound:
        found = most if least >= 0 else least
        raise ValueError(f"its {name} holds {found}, expected 0 to {bound - 1}")
