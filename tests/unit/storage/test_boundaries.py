"""Numbers from 2**32 on: dtypes widen, and nothing that small is ever allocated for it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from graphsys.core.types import EdgeType, number_dtype
from graphsys.storage.scratch import Scratch
from graphsys.storage.transaction import Transaction
from graphsys.storage.write import edge_sort
from graphsys.storage.write.edge_index import index_batch
from graphsys.storage.write.edge_log import EdgeLog
from graphsys.storage.write.edge_sort import Cleaning, RangePlan, RowSorter
from graphsys.storage.write.edge_write import EdgeTypeWriter
from tests.stores import edge_chunk

FAR = 2**32
WIDE = np.array([0, FAR, FAR + 10], dtype=np.int64)


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path, 10**8)


@pytest.fixture
def given_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut by partition alone: real plans look at one degree for every row."""

    def make(offsets: npt.NDArray[np.int64], degrees: Any, **_: Any) -> RangePlan:
        return RangePlan(offsets, np.arange(len(offsets) - 1))

    monkeypatch.setattr(edge_sort.RangePlan, "make", make)


def sorter_of(
    scratch: Scratch, offsets: npt.NDArray[np.int64], num_neighbors: int, **dtypes: str
) -> RowSorter:
    nothing = np.empty(0, dtype=np.uint32)
    kinds = {name: np.dtype(kind) for name, kind in dtypes.items()}
    return RowSorter(scratch, "x", offsets, nothing, num_neighbors, kinds, 3)


@pytest.mark.parametrize(
    ("num_nodes", "dtype"),
    [(0, "u4"), (1, "u4"), (FAR - 1, "u4"), (FAR, "u4"), (FAR + 1, "i8"), (2**40, "i8")],
)
def test_numbers_widen_when_the_largest_no_longer_fits(num_nodes: int, dtype: str) -> None:
    assert number_dtype(num_nodes) == np.dtype(dtype)


@pytest.mark.usefixtures("given_plan")
def test_rows_beyond_2_32_are_sorted_by_row_and_neighbor(scratch: Scratch) -> None:
    sorter = sorter_of(scratch, WIDE, FAR + 10, weight="f4")
    row = np.array([FAR + 9, FAR, FAR + 9, 5, FAR], dtype=np.int64)
    neighbor = np.array([FAR + 3, 7, 2, 1, FAR + 1], dtype=np.int64)
    columns = {"weight": np.arange(5, dtype=np.float32)}
    sorter.append(*sorter.group(row, neighbor, columns))
    rows = sorter.sort(1, Cleaning(same_type=False))
    assert rows.row.tolist() == [0, 0, 9, 9]
    assert rows.row.dtype == np.uint32
    assert rows.neighbor.tolist() == [7, FAR + 1, 2, FAR + 3]
    assert rows.neighbor.dtype == np.int64
    assert rows.columns["weight"].tolist() == [1, 4, 2, 0]
    assert rows.counts.tolist() == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]


@pytest.mark.usefixtures("given_plan")
def test_self_loops_and_repeats_beyond_2_32_are_found(scratch: Scratch) -> None:
    sorter = sorter_of(scratch, WIDE, FAR + 10, relation="u2")
    row = np.array([FAR + 1, FAR + 1, FAR + 1, FAR + 2], dtype=np.int64)
    neighbor = np.array([FAR + 1, FAR + 1, FAR + 1, 2], dtype=np.int64)
    columns = {"relation": np.array([2, 0, 2, 1], dtype=np.uint16)}
    sorter.append(*sorter.group(row, neighbor, columns))
    rows = sorter.sort(1, Cleaning(same_type=True, coalesce=True))
    assert (rows.duplicates, rows.self_loops) == (1, 3)
    assert rows.neighbor.tolist() == [FAR + 1, FAR + 1, 2]
    assert rows.columns["relation"].tolist() == [0, 2, 1]


def test_a_plan_cuts_so_that_a_key_fits_64_bits() -> None:
    offsets = np.array([0, 1000], dtype=np.int64)
    degrees = np.zeros(1000, dtype=np.uint32)
    plan = RangePlan.make(offsets, degrees, max_rows=64, column_bytes=0, budget_bytes=10**9)
    assert np.diff(plan.bounds).max() <= 64
    assert plan.bounds[[0, -1]].tolist() == [0, 1000]


def test_a_plan_never_crosses_a_partition_and_skips_no_row(
    rng: np.random.Generator,
) -> None:
    offsets = np.array([0, 300, 300, 1000, 1001], dtype=np.int64)
    degrees = rng.integers(0, 5000, 1001, dtype=np.uint32)
    plan = RangePlan.make(offsets, degrees, max_rows=10**9, column_bytes=8, budget_bytes=1)
    assert (np.diff(plan.bounds) >= 0).all()
    assert set(offsets.tolist()) <= set(plan.bounds.tolist())
    owners = np.searchsorted(offsets, plan.bounds[:-1], side="right") - 1
    filled = np.diff(plan.bounds) > 0
    assert (owners[filled] == plan.parts[filled]).all()
    assert set(plan.parts.tolist()) == {0, 1, 2, 3}
    sums = np.add.reduceat(degrees.astype(np.int64), plan.bounds[:-1][filled])
    assert sums.max() < 2 * (1 << 16)


@pytest.mark.parametrize(("num_edges", "dtype"), [(FAR - 1, "u4"), (FAR, "i8")])
def test_row_offsets_widen_with_the_partitions_edges(
    num_edges: int, dtype: str, tmp_path: Path
) -> None:
    counts = np.array([num_edges - 1, 1], dtype=np.int64)
    batch = index_batch(
        counts, np.empty(0, dtype=np.uint32), {}, Scratch(tmp_path, 1 << 20)
    )
    indptr = batch.column(0).values.to_numpy()
    assert indptr.dtype == np.dtype(dtype)
    assert indptr.tolist() == [0, num_edges - 1, num_edges]


@pytest.mark.parametrize(("largest", "kind"), [(FAR - 1, pa.uint32()), (FAR, pa.int64())])
def test_positions_of_edges_widen(largest: int, kind: pa.DataType, tmp_path: Path) -> None:
    columns = {"edge": np.array([largest], dtype=np.int64)}
    scratch = Scratch(tmp_path, 1 << 20)
    batch = index_batch(np.array([1]), np.array([0], dtype=np.uint32), columns, scratch)
    assert batch.column(batch.schema.get_field_index("edge")).type.value_type == kind


class FarNumbering:
    """Numbers of a type with more than 2**32 nodes, none of which exists."""

    def __init__(self, offsets: npt.NDArray[np.int64]) -> None:
        self.offsets = offsets
        self.num_nodes = int(offsets[-1])

    def degrees(self) -> npt.NDArray[np.uint32]:
        return np.empty(0, dtype=np.uint32)


@pytest.mark.usefixtures("given_plan")
def test_buckets_of_far_partitions_hold_narrow_local_numbers(tmp_path: Path) -> None:
    with Transaction(tmp_path / "g") as transaction:
        scratch = Scratch(transaction.scratch_dir, 10**8)
        kind = EdgeType("user", "likes", "item")
        log = EdgeLog(kind, scratch)
        # two splits without "train": no index, whose rows would have to be allocated
        for split in ("valid", "test"):
            log.add(edge_chunk([(0, 0), (1, 1), (2, 2)], kind, split))
        log.finish()
        near: Any = FarNumbering(np.array([0, 2, 3], dtype=np.int64))
        far: Any = FarNumbering(np.array([0, FAR, FAR + 4], dtype=np.int64))
        writer = EdgeTypeWriter(
            "likes",
            log,
            near,
            far,
            transaction,
            scratch,
            cleaning=Cleaning(same_type=False),
            is_directed=True,
        )
        src = np.array([0, 1, 2], dtype=np.uint32)
        dst = np.array([FAR + 3, FAR - 1, FAR], dtype=np.int64)
        for split in ("valid", "test"):
            writer.append(*writer.group(split, src, dst, {}))
        entry = writer.write()
        assert entry.num_edges == {"valid": 3, "test": 3}
        assert writer.counts["test"].tolist() == [[1, 1], [0, 1]]
        folder = transaction.path / "gen-1/edges/likes/test"
        found = {
            path.stem: pa.ipc.open_file(path.read_bytes()).read_all().to_pydict()
            for path in folder.iterdir()
        }
        assert found == {
            "bucket-0-0": {"src": [1], "dst": [FAR - 1]},
            "bucket-0-1": {"src": [0], "dst": [3]},
            "bucket-1-1": {"src": [0], "dst": [0]},
        }
        schema = pa.ipc.open_file((folder / "bucket-0-1.arrow").read_bytes()).schema
        assert schema.field("dst").type == pa.uint32()
