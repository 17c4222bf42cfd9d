"""Columns of edges: exact weights in the smallest type, and inputs that do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import InputError
from graphsys.storage import EdgeChunk, Graph
from tests.deltas import append_chunks
from tests.stores import edge_chunk, make_store, read_edges

BIG = 2**53 + 1


def weights_of(out: Path, *columns: Any, **options: Any) -> Any:
    """Ingest one edge for each weight and return the stored weights."""
    at, chunks = 0, []
    for column in columns:
        pairs = [(k, k + 1) for k in range(at, at + len(column))]
        chunks.append(edge_chunk(pairs, weight=column))
        at += len(column)
    with make_store(out, *chunks, **options).graph as graph:
        return graph.bucket("edge", 0, 0).weight


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ([np.array([0.5, -(2.0**100), 0.0])], "f4"),
        ([np.array([0.1])], "f8"),
        ([np.array([0.5]), np.array([0.1])], "f8"),
        ([np.array([0.1], "f4")], "f4"),
        ([np.array([1e300])], "f8"),
        ([np.array([1, 2**24])], "f4"),
        ([np.array([1, 2**24 + 1])], "f8"),
        ([np.array([True, False])], "f4"),
        ([pa.array([1, 2], pa.int8())], "f4"),
        ([pa.chunked_array([[0.5], [1.5]])], "f4"),
        ([np.array([BIG])], "i8"),
        ([np.array([-BIG])], "i8"),
        ([np.array([1]), np.array([BIG]), np.array([7])], "i8"),
        ([np.array([BIG]), np.array([2.0])], "i8"),
        ([np.array([2**64 - 1], "u8"), np.array([1])], "u8"),
        ([np.array([2**63 - 1])], "i8"),
    ],
)
def test_weights_are_exact_in_the_smallest_type_that_holds_all(
    columns: list[Any], dtype: str, tmp_path: Path
) -> None:
    found = weights_of(tmp_path / "g", *columns)
    assert found.dtype == np.dtype(dtype)
    given = [
        value
        for column in columns
        for value in (
            column if isinstance(column, np.ndarray) else column.to_numpy()
        ).tolist()
    ]
    assert sorted(found.tolist()) == sorted(given)


@pytest.mark.parametrize(
    "columns",
    [
        [np.array([BIG]), np.array([0.5])],
        [np.array([0.5]), np.array([BIG])],
        [np.array([2**64 - 1], "u8"), np.array([-1])],
        [np.array([BIG]), np.array([1e300])],
    ],
)
def test_weights_that_no_type_holds_exactly_are_refused(
    columns: list[Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="which no one type holds exactly"):
        weights_of(tmp_path / "g", *columns)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("values", "dtype", "total"),
    [
        ([1.0, 2.0], "f4", 3.0),
        ([0.5, 0.25], "f8", 0.75),  # sums of fractions may need more digits
        ([2**24, 1], "f8", 2**24 + 1),
        ([BIG, 2], "i8", BIG + 2),
    ],
)
def test_sums_of_weights_are_exact(
    values: list[Any], dtype: str, total: float, tmp_path: Path
) -> None:
    chunk = edge_chunk([(0, 1)] * len(values), weight=np.array(values))
    with make_store(tmp_path / "g", chunk, coalesce=True).graph as graph:
        weight = graph.bucket("edge", 0, 0).weight
    assert weight is not None
    assert weight.dtype == np.dtype(dtype)
    assert weight.tolist() == [total]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            {"weight": np.array([1.0, np.nan])},
            r"1 values that are not finite, the first \(nan\) in row 1",
        ),
        (
            {"weight": np.array([np.inf, -np.inf])},
            r"2 values that are not finite, the first \(inf\) in row 0",
        ),
        ({"weight": pa.array([1.0, None])}, "1 missing values"),
        ({"weight": pa.array(["a", "b"])}, "'weight' .* expected numbers"),
        ({"time": np.array([1.5, 2.5])}, "double, expected integers or timestamps"),
        ({"time": pa.array([1, None])}, "1 missing values"),
        ({"relation": pa.array(["a", None])}, "1 missing values"),
        ({"weight": np.array([1.0])}, "'weight' has 1 rows, src has 2"),
        ({"src": np.array([1, 2])}, "a column cannot be called 'src'"),
        ({"edge": np.array([1, 2])}, "a column cannot be called 'edge'"),
    ],
)
def test_a_column_that_cannot_be_is_named(
    column: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        make_store(tmp_path / "g", edge_chunk([(0, 1), (1, 2)], **column))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("first", [{}, {"note": pa.array(["x"])}])
def test_columns_do_not_come_and_go(first: dict[str, Any], tmp_path: Path) -> None:
    second = {} if first else {"note": pa.array(["x"])}
    with pytest.raises(
        InputError, match="'note' is in some of the input and not in the rest"
    ):
        make_store(
            tmp_path / "g", edge_chunk([(0, 1)], **first), edge_chunk([(1, 2)], **second)
        )


@pytest.mark.parametrize("later", ["x", 0.5, [1]])
def test_a_column_does_not_change_its_type(later: Any, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"columns change between chunks of the input: .*note"
    ):
        make_store(
            tmp_path / "g",
            edge_chunk([(0, 1)], note=pa.array([1])),
            edge_chunk([(1, 2)], note=pa.array([later])),
        )


def test_ends_of_different_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'dst' has 1 rows, src has 2"):
        make_store(tmp_path / "g", EdgeChunk(src=np.array([1, 2]), dst=np.array([1])))


def test_relations_are_coded_by_name_whatever_their_order(tmp_path: Path) -> None:
    for n, names in enumerate((["b", "a", "c"], ["c", "b", "a"])):
        chunk = edge_chunk([(0, 1), (0, 2), (0, 3)], relation=pa.array(names))
        with make_store(tmp_path / str(n), chunk).graph as graph:
            assert graph.relations("edge") == ["a", "b", "c"]
            assert [edge.relation for edge in read_edges(graph, "edge")] == names
            relation = graph.bucket("edge", 0, 0).relation
            assert relation is not None
            assert relation.dtype == np.uint16


def test_many_relations_take_wider_codes(tmp_path: Path) -> None:
    names = [f"r{n:05d}" for n in range(2**16 + 1)]
    chunk = edge_chunk([(0, 1)] * len(names), relation=pa.array(names))
    with make_store(tmp_path / "g", chunk).graph as graph:
        relation = graph.bucket("edge", 0, 0).relation
        assert relation is not None
        assert relation.dtype == np.uint32
        assert relation.tolist() == list(range(len(names)))


def test_dates_count_days(tmp_path: Path) -> None:
    dates = np.array(["1970-01-02", "1969-12-31"], "datetime64[D]")
    with make_store(
        tmp_path / "g", edge_chunk([(0, 1), (1, 0)], time=dates)
    ).graph as graph:
        time = graph.bucket("edge", 0, 0).time
        assert time is not None
        assert time.tolist() == [1, -1]
        assert graph.time_unit("edge") == "d"


@pytest.mark.parametrize(
    "times", [[0, 2**31], [-(2**31) - 1], np.array([86_400 * 2**40], "datetime64[s]")]
)
def test_days_have_32_bits(times: Any, tmp_path: Path) -> None:
    dates = np.array(["1970-01-02"], "datetime64[D]")
    make_store(tmp_path / "g", edge_chunk([(0, 1)], time=dates)).graph.close()
    edges = edge_chunk([(k, 1) for k in range(len(times))], time=times)
    with pytest.raises(InputError, match="of which a date has 32 bits"):
        append_chunks(tmp_path / "g", edges)
    make_store(tmp_path / "same", edge_chunk([(0, 1)], time=dates)).graph.close()
    with Graph(tmp_path / "g") as graph, Graph(tmp_path / "same") as same:
        assert graph.fingerprint == same.fingerprint


def test_times_beyond_64_bits_in_the_unit_before_are_refused(tmp_path: Path) -> None:
    make_store(
        tmp_path / "g", edge_chunk([(0, 1)], time=np.array([5], "datetime64[ms]"))
    ).graph.close()
    for extreme in (2**63 - 1, -(2**63) + 1):
        edges = edge_chunk([(0, 1)], time=np.array([extreme], "datetime64[s]"))
        with pytest.raises(InputError, match="in milliseconds are beyond 64 bits"):
            append_chunks(tmp_path / "g", edges)
    least = pa.array([-(2**63)]).cast(pa.timestamp("s"))
    with pytest.raises(InputError, match="in milliseconds are beyond 64 bits"):
        append_chunks(tmp_path / "g", edge_chunk([(0, 1)], time=least))
