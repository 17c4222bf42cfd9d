"""Columns of nodes in programs: which there are, what nulls are, what is refused."""

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import CompileError, InvalidGraphError
from graphsys.core.types import EdgeType
from graphsys.engine import columns
from graphsys.engine import program as gs
from graphsys.engine.execute.prepared import prepare
from graphsys.engine.execute.program_memory import MemoryEstimate
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from graphsys.storage import NodeChunk
from tests.clusters import run_by_workers
from tests.stores import as_ids, edge_chunk, make_store
from tests.unit.engine.algorithms.small_graphs import values

PAIRS = [(1, 2), (2, 3), (3, 1), (4, 1), (5, 4), (5, 1), (1, 2)]


def store(path: Path, **columns: Any) -> str:
    nodes = NodeChunk(ids=as_ids([1, 2, 3, 4, 5]), columns=columns)
    make_store(path / "graph", nodes, edge_chunk(PAIRS), partitions=2)
    return str(path / "graph")


class Ages(gs.VertexProgram):
    """The sum of the ages of those before a node, and its own."""

    found = gs.state("float64")
    combine, schedule, max_supersteps = gs.sum_, "all", 1

    def message(self, src: Any) -> Any:
        return src.age

    def update(self, node: Any, message: Any) -> Any:
        return message + 100.0 * node.age


@pytest.mark.parametrize(
    ("kind", "ages"),
    [
        (pa.int64(), [10, 20, 30, 4, 5]),
        (pa.int8(), [10, 20, 30, 4, 5]),
        (pa.float32(), [10, 20, 30, 4, 5]),
        (pa.float64(), [10, 20, 30, 4, 5]),
    ],
)
def test_numbers_of_all_kinds_are_read(tmp_path: Path, kind: Any, ages: Any) -> None:
    graph = store(tmp_path, age=pa.array(ages, kind))
    wanted = {
        b: 100.0 * ages[b - 1] + sum(ages[a - 1] for a, end in PAIRS if end == b)
        for b in range(1, 6)
    }
    assert values(run(Ages(), graph)) == wanted


class Codes(gs.VertexProgram):
    code = gs.state("int32")

    def update(self, node: Any) -> Any:
        return int(node.color)


def test_texts_are_places_among_all_texts_in_order(tmp_path: Path) -> None:
    graph = store(tmp_path, color=pa.array(["red", None, "blue", "red", "green"]))
    done = run(Codes(), graph, max_supersteps=1)
    assert values(done) == {1: 2, 2: -1, 3: 0, 4: 2, 5: 1}


def test_texts_of_dictionaries_are_those_in_use() -> None:
    whole = pa.array(["zoo", "red", "blue", None, "red"]).dictionary_encode()
    column = pa.chunked_array([whole[1:], pa.array(["green"]).dictionary_encode()])
    known = columns._distinct([column])
    assert known.to_pylist() == ["blue", "green", "red"]
    found = [columns._codes(chunk, known).tolist() for chunk in column.chunks]
    assert found == [[2, 0, -1, 2], [1]]


def test_a_null_float_is_nan(tmp_path: Path) -> None:
    graph = store(tmp_path, age=pa.array([1.0, None, 3.0, 4.0, 5.0]))
    found = values(run(Ages(), graph))
    assert np.isnan(found[2])
    assert np.isnan(found[3])  # hears of 2
    assert found[4] == 405.0


def test_a_null_integer_is_refused(tmp_path: Path) -> None:
    graph = store(tmp_path, age=pa.array([1, None, 3, 4, 5]))
    with pytest.raises(InvalidGraphError, match=r"'age'.*int64 and null for 1.*as floats"):
        run(Ages(), graph)


def test_a_type_without_the_column_has_nulls(tmp_path: Path) -> None:
    kind = EdgeType("user", "buys", "item")
    ages = pa.array([1.5, 2.5])
    make_store(
        tmp_path / "graph",
        NodeChunk(ids=as_ids([1, 2]), node_type="user", columns={"age": ages}),
        NodeChunk(ids=as_ids([7]), node_type="item"),
        edge_chunk([(1, 7), (2, 7)], kind),
    )
    table = run(Ages(), str(tmp_path / "graph")).table.to_pydict()
    found = dict(zip(table["id"], table["value"], strict=True))
    assert np.isnan(found.pop(7))
    assert found == {1: 150.0, 2: 250.0}


def test_times_are_numbers_in_their_unit(tmp_path: Path) -> None:
    class Times(gs.VertexProgram):
        found = gs.state("int64")

        def update(self, node: Any) -> Any:
            return node.born

    days = pa.array([dt.date(1970, 1, k + 1) for k in range(5)])
    done = run(Times(), store(tmp_path, born=days), max_supersteps=1)
    assert values(done) == {1: 0, 2: 1, 3: 2, 4: 3, 5: 4}


def test_an_unknown_one_is_refused_with_those_there_are(tmp_path: Path) -> None:
    graph = store(tmp_path, height=pa.array([1.0] * 5), color=pa.array(["a"] * 5))
    with pytest.raises(CompileError, match=r"src.age is not declared; there are found.*id"):
        run(Ages(), graph)
    with pytest.raises(CompileError, match=r"degree, height, color|degree, color, height"):
        run(Ages(), graph)
    with pytest.raises(CompileError, match=r"src.age is not declared"):
        run(Ages(), Topology.from_edges(np.array([0]), np.array([1]), 2))


def test_a_state_goes_before_a_column_of_its_name(tmp_path: Path) -> None:
    class Own(gs.VertexProgram):
        age = gs.state("float64", default=0.5)

        def update(self, node: Any) -> Any:
            return 2 * node.age

    graph = store(tmp_path, age=pa.array([1, 2, 3, 4, 5]))
    assert set(values(run(Own(), graph, max_supersteps=1)).values()) == {1.0}


def test_only_what_is_read_is_counted_and_read(tmp_path: Path) -> None:
    ages, heights = pa.array([1, 2, 3, 4, 5], pa.int16()), pa.array([None] * 4 + [1])
    graph = store(tmp_path, age=ages, height=heights)  # whose nulls nobody reads
    work = prepare(Ages(), graph)
    arrays = MemoryEstimate(work.plan, work.topology).node_arrays
    assert arrays["age"] == 2
    assert "height" not in arrays
    run(Ages(), graph)


def test_the_simple_graph_has_the_nodes_columns(tmp_path: Path) -> None:
    class Simple(Ages):
        simple = True

    graph = store(tmp_path, age=pa.array([10, 20, 30, 4, 5]))
    assert values(run(Simple(), graph))[4] == 400 + 10 + 5


def test_workers_of_a_cluster_read_them(tmp_path: Path) -> None:
    graph = store(tmp_path, age=pa.array([10, 20, 30, 4, 5]))
    name = f"{Path(__file__)}:Ages"
    table, _ = run_by_workers(name, graph, {}, 2)
    assert table.to_pydict() == run(Ages(), graph).table.to_pydict()
