"""Vector states: what their functions mean, what comes out, and what is refused."""

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from graphsys.core.errors import CompileError, ConfigError
from graphsys.engine import program as gs
from graphsys.engine.execute.arrays import RunArrays
from graphsys.engine.execute.prepared import prepare
from graphsys.engine.execute.program_memory import MemoryEstimate
from graphsys.engine.output import write_table
from graphsys.engine.program_run import explain
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from tests.cuda_sim.vector_programs import Reduced, reductions
from tests.unit.engine.execute.test_checkpoint import StopAfter, StoppedError
from tests.unit.engine.programs.runs import random_graph

NUM_NODES, NUM_EDGES = 120, 700


def edges() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, NUM_NODES, (2, NUM_EDGES))
    return src, dst, rng.random(NUM_EDGES)


def graph() -> Topology:
    src, dst, weight = edges()
    return Topology.from_edges(src, dst, NUM_NODES, weight=weight)


def vectors(done: Any, column: str = "value") -> Any:
    return np.array(done.table[column].to_pylist())


class FromMany(gs.VertexProgram):
    """Personalized PageRank from many sources at once."""

    sources: tuple  # type: ignore[type-arg]
    rank = gs.state("float64", shape=(64,))
    seed = gs.state("float64", shape=(64,))
    moved = gs.aggregator(gs.maximum)
    combine, results = gs.sum_, ("rank",)

    def start(self, graph: Any) -> Any:
        one = np.eye(64)
        return {s: {"rank": one[k], "seed": one[k]} for k, s in enumerate(self.sources)}

    def message(self, src: Any) -> Any:
        return src.rank / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        return 0.15 * node.seed + 0.85 * message, node.seed

    def aggregate(self, before: Any, node: Any) -> Any:
        return np.max(abs(node.rank - before.rank))

    def until(self, totals: Any) -> bool:
        return bool(totals["moved"] < 1e-13)


def test_many_sources_at_once_give_what_each_gives_alone() -> None:
    # every node has a successor: networkx and the program differ in what others do
    src, dst, _ = edges()
    src, dst = np.append(src, range(NUM_NODES)), np.append(dst, np.arange(1, 121) % 120)
    pairs = np.unique(np.stack([src, dst]), axis=1)
    topology = Topology.from_edges(pairs[0], pairs[1], NUM_NODES)
    found = vectors(run(FromMany(sources=tuple(range(30, 94))), topology))
    known = nx.DiGraph(list(zip(*pairs.tolist(), strict=True)))
    for place in (0, 17, 63):
        alone = nx.pagerank(known, 0.85, {30 + place: 1.0}, max_iter=500, tol=1e-14)
        wanted = [alone[node] for node in range(NUM_NODES)]
        np.testing.assert_allclose(found[:, place], wanted, atol=1e-11)


class Labels(gs.VertexProgram):
    """Label distributions: the mean of the neighbors', which labeled nodes keep to."""

    labels = gs.state("float32", shape=(3,))
    is_known = gs.state("bool")
    likely = gs.state("int8", default=-1)
    combine, direction, max_supersteps = gs.mean, "both", 12

    def start(self, graph: Any) -> Any:
        one = np.eye(3)
        return {k: {"labels": one[k % 3], "is_known": True} for k in range(30)}

    def message(self, src: Any) -> Any:
        return src.labels

    def update(self, node: Any, message: Any) -> Any:
        known = node.is_known
        total = np.sum(message)
        labels = message / total if total > 0 else message
        labels = node.labels if known else labels
        return labels, known, int(np.argmax(message)) if total > 0 else -1


def test_labels_spread_as_by_a_matrix() -> None:
    src, dst, _ = edges()
    ones = np.ones(NUM_EDGES)
    there = sp.csr_matrix((ones, (dst, src)), shape=(NUM_NODES, NUM_NODES))
    sums, known = there + there.T, np.arange(NUM_NODES) < 30
    labels = np.where(known[:, None], np.eye(3)[np.arange(NUM_NODES) % 3], 0.0)
    for _ in range(12):
        means = sums @ labels
        total = means.sum(axis=1, keepdims=True)
        spread = np.divide(means, total, out=np.zeros_like(means), where=total > 0)
        likely = np.where(total[:, 0] > 0, means.argmax(axis=1), -1)
        labels = np.where(known[:, None], labels, spread)
    done = run(Labels(), graph())
    np.testing.assert_allclose(vectors(done, "labels"), labels, atol=1e-5)
    clear = np.sort(means, axis=1)[:, -1] - np.sort(means, axis=1)[:, -2] > 1e-4
    assert clear.sum() > 60
    assert done.table["likely"].to_numpy()[clear].tolist() == likely[clear].tolist()


def largest(a: Any, b: Any) -> Any:
    return a if abs(a) > abs(b) else b


class Largest(gs.VertexProgram):
    """Random features; of each component the largest that neighbors send."""

    place = gs.state("float64", shape=(8,))
    combine = gs.combiner(largest, identity=0.0, idempotent=True)
    schedule, max_supersteps = "all", 3

    def init(self, node: Any) -> Any:
        return gs.random(7, node.id, gs.component) - 0.5

    def message(self, src: Any, edge: Any, dst: Any) -> Any:
        return edge.weight * (src.place + 0.25 * dst.place)

    def update(self, node: Any, message: Any) -> Any:
        return 0.5 * node.place + message


def test_a_combiner_of_one_s_own_works_on_components() -> None:
    from graphsys.kernels.cpu.hashing import random_fraction

    src, dst, weight = edges()
    place = np.array(
        [[random_fraction(7, v, j) - 0.5 for j in range(8)] for v in range(NUM_NODES)]
    )
    for _ in range(3):
        best = np.zeros_like(place)
        for a, b, w in zip(src, dst, weight, strict=True):
            sent = w * (place[a] + 0.25 * place[b])
            best[b] = np.where(abs(sent) > abs(best[b]), sent, best[b])
        place = 0.5 * place + best
    done = run(Largest(), graph(), check=True)
    np.testing.assert_allclose(vectors(done), place, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 3, 16, 130])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_sums_are_those_of_a_matrix_whatever_the_length(size: int, dtype: str) -> None:
    class Sums(gs.VertexProgram):
        x = gs.state(dtype, shape=(size,))
        combine, max_supersteps = gs.sum_, 1

        def init(self, node: Any) -> Any:
            return (node.id * 7 + gs.component) % 11

        def message(self, src: Any) -> Any:
            return src.x

        def update(self, node: Any, message: Any) -> Any:
            return message

    src, dst, _ = edges()
    ones = np.ones(NUM_EDGES, dtype=int)
    matrix = sp.csr_matrix((ones, (dst, src)), shape=(NUM_NODES, NUM_NODES))
    x = (np.arange(NUM_NODES)[:, None] * 7 + np.arange(size)) % 11
    column = run(Sums(), graph()).table.column("value")
    assert column.type == pa.list_(pa.from_numpy_dtype(np.dtype(dtype)), size)
    np.testing.assert_array_equal(np.array(column.to_pylist()), matrix @ x)


def test_threads_change_no_bit() -> None:
    src, dst = np.random.default_rng(1).integers(0, 3000, (2, 60_000))
    topology = Topology.from_edges(src, dst, 3000, weight=np.full(len(src), 0.3))
    one, two = (run(Largest(), topology, num_threads=n).table for n in (1, 2))
    assert one.equals(two)


def test_vectors_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    whole = run(Labels(), graph()).table
    with pytest.raises(StoppedError):
        run(
            Labels(),
            graph(),
            checkpoint=tmp_path / "kept",
            checkpoint_every=2,
            progress=StopAfter(7),
        )
    done = run(Labels(), graph(), checkpoint=tmp_path / "kept", resume=True)
    assert done.table.equals(whole)


def test_vectors_are_written_as_lists(tmp_path: Path) -> None:
    table = run(Labels(), graph()).table.select(["id", "labels"])
    rows = table.to_pylist()
    write_table(table, tmp_path / "a.parquet")
    write_table(table, tmp_path / "a.jsonl")
    write_table(table, tmp_path / "a.csv")
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["labels"] for line in lines] == [r["labels"] for r in rows]
    text = (tmp_path / "a.csv").read_text().splitlines()
    assert json.loads(text[1].partition(",")[2].strip('"')) == rows[0]["labels"]


def test_vectors_are_counted_in_what_a_run_needs_and_told() -> None:
    work = prepare(Labels(), graph())
    arrays = MemoryEstimate(work.plan, work.topology).node_arrays
    assert arrays["state labels"] == 12
    assert arrays["state likely"] == 1
    assert arrays["message float32 (3,) 0"] == 12
    text = explain(Labels(), graph())
    assert "labels float32 (3,)" in text
    assert "messages: float32 (3,), combined by mean" in text


def test_vectors_begin_where_a_cache_line_does() -> None:
    """Those of 64 bytes then lie in one line each, not two: a quarter of the time."""
    work = prepare(Labels(), graph())
    arrays = RunArrays(work.plan, work.topology, np.zeros)
    found = [arrays.states["labels"], arrays.next_of("labels")]
    found.append(arrays.message(work.plan.phases[0], "out", 0))
    assert all(it.ctypes.data % 64 == 0 for it in found)


def test_a_component_s_number_needs_a_vector() -> None:
    class Alone(gs.VertexProgram):
        x = gs.state("int32")

        def update(self, node: Any) -> Any:
            return gs.component

    with pytest.raises(CompileError, match="there is none; declare a vector"):
        run(Alone(), graph(), max_supersteps=1)


class Vector(gs.VertexProgram):
    """What the refused ones begin as."""

    x = gs.state("float32", shape=(4,))
    y = gs.state("float32")
    combine: ClassVar[Any] = gs.sum_
    max_supersteps = 1

    def message(self, src: Any) -> Any:
        return src.x

    def update(self, node: Any, message: Any) -> Any:
        return message, node.y


class NumberOfVector(Vector):
    def update(self, node: Any, message: Any) -> Any:
        z = 2 * message
        return node.x, z


class NumberByVector(Vector):
    def update(self, node: Any, message: Any) -> Any:
        z = 0.0
        if message > 1:
            z = 1.0
        return node.x, z


class Several(Vector):
    combine = gs.argmin

    def message(self, src: Any) -> Any:
        return src.x, src.y


class Argmin(Vector):
    combine = gs.argmin


class Delta(Vector):
    delta = True


class Indexed(Vector):
    def update(self, node: Any, message: Any) -> Any:
        return message, message[1]


class IndexedByText(Vector):
    def message(self, src: Any) -> Any:
        return src.x["a; b"]


class IndexedNumber(Vector):
    def message(self, src: Any) -> Any:
        return src.y

    def update(self, node: Any, message: Any) -> Any:
        return node.x, message[0]


class SumOfNumber(Vector):
    def update(self, node: Any, message: Any) -> Any:
        return message, np.sum(node.y)


class SumOfChanging(Vector):
    def update(self, node: Any, message: Any) -> Any:
        z = node.x
        if node.y > 0:
            z = message
        return message, np.sum(z)


class At(Vector):
    def update(self, node: Any, message: Any) -> Any:
        return node.at(node.id).x, node.y


class MeanOfSome(Vector):
    combine = gs.mean

    def message(self, src: Any) -> Any:
        return src.x if src.y > 0 else None


class VectorTotal(Vector):
    total_x = gs.aggregator(gs.sum_)

    def aggregate(self, before: Any, node: Any) -> Any:
        return node.x


class VectorTest(Vector):
    def accepts(self, node: Any) -> Any:
        return node.x > 0


class TwoLengths(Vector):
    z = gs.state("float32", shape=(5,))


class MeanOfChanged(Vector):
    combine = gs.mean
    schedule = "changed"


class BadStart(Vector):
    def start(self, graph: Any) -> Any:
        return {3: {"x": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (NumberOfVector, "update gives a vector for the state 'y'.*np.sum"),
        (NumberByVector, "update gives a vector for the state 'y'"),
        (Several, "a message is one vector, or numbers"),
        (Argmin, "gs.argmin combines numbers.*gs.sum, gs.mean"),
        (Delta, "delta = True"),
        (IndexedNumber, r"message\[0\] does not compile: message is one number; write"),
        (IndexedByText, r"src\.x\['a; b'\] does not compile.*write np.sum"),
        (Indexed, r"message\[1\] does not compile.*gs.component == 1"),
        (SumOfNumber, "np.sum of a program reduces a vector"),
        (SumOfChanging, "reads 'z', which is assigned several times"),
        (At, "node.at reads numbers"),
        (MeanOfSome, "gs.mean needs a message along every edge"),
        (VectorTotal, "aggregate gives a vector for a number"),
        (VectorTest, "accepts gives a vector for a number"),
        (TwoLengths, r"one shape, got x \(4,\), z \(5,\)"),
        (MeanOfChanged, "gs.mean needs the messages of all neighbors"),
        (BadStart, r"values of shape \(2,\), expected \(4,\) or one number"),
    ],
)
def test_what_works_for_numbers_only_is_refused(
    program: type[gs.VertexProgram], what: str
) -> None:
    with pytest.raises((CompileError, ConfigError), match=what):
        run(program(), graph())


@pytest.mark.parametrize("shape", [(2, 3), (0,), (-1,), "x", (2.5,), (True,)])
def test_a_shape_is_one_length(shape: Any) -> None:
    with pytest.raises(ConfigError, match="expected one dimension"):
        gs.state("float32", shape=shape)


def test_vectors_are_of_numbers_that_are_there() -> None:
    with pytest.raises(ConfigError, match="has no shape"):
        gs.state(gs.NodeId, shape=(3,))
    with pytest.raises(ConfigError, match="has no null"):
        gs.state("float32", shape=(3,), null=0.0)


def test_what_an_indexed_vector_is_refused_with_works() -> None:
    class Second(Vector):
        def update(self, node: Any, message: Any) -> Any:
            return message, np.sum(message * (gs.component == 1))

        def init(self, node: Any) -> Any:
            return gs.component + 1.0, math.nan

    done = run(Second(), graph())
    np.testing.assert_array_equal(vectors(done, "x")[:, 1], done.table["y"].to_numpy())


def test_reductions_are_numpy_s() -> None:
    done = run(Reduced(), graph(), max_supersteps=1)
    for name, wanted in reductions(vectors(done, "x")).items():
        found = done.table[name].to_numpy()
        if name in ("mean", "square"):
            np.testing.assert_allclose(found, wanted)
        else:
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("is_directed", [True, False])
def test_means_of_numbers_are_those_of_networkx(is_directed: bool) -> None:
    class Mean(gs.VertexProgram):
        x = gs.state("float64")
        combine, max_supersteps = gs.mean, 1

        def init(self, node: Any) -> Any:
            return node.id

        def message(self, src: Any) -> Any:
            return src.id

        def update(self, node: Any, message: Any) -> Any:
            return message

    made = random_graph(is_directed=is_directed, is_text=False)
    done, known = run(Mean(), made.topology()), made.networkx()
    rank = {node: place for place, node in enumerate(sorted(made.ids))}
    for row in done.table.to_pylist():
        heard = [rank[a] for a in _heard(known, row["id"])]
        assert row["value"] == pytest.approx(np.mean(heard) if heard else 0.0)


def _heard(known: Any, node: Any) -> list[Any]:
    """Return the other ends of the edges that lead to a node, a loop once."""
    if known.is_directed():
        return [a for a, _ in known.in_edges(node)]
    return [b for _, b in known.edges(node)]
