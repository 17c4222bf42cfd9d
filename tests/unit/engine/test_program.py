"""Programs of every kind that the model allows, and declarations that it refuses."""

import math
import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphsys
from graphsys.core.errors import CompileError, ConfigError, UnknownNameError
from graphsys.engine import program as gs
from graphsys.engine.run import run
from tests.unit.engine.algorithms.small_graphs import SmallGraph, values
from tests.unit.engine.programs.matrices import adjacency
from tests.unit.engine.programs.runs import declared, random_graph

GRAPHS = [
    random_graph(is_directed=True, is_text=True),
    random_graph(is_directed=False, is_text=False),
]
on_both = pytest.mark.parametrize("graph", GRAPHS, ids=["directed", "undirected"])


def found(program: Any, graph: SmallGraph, column: str = "value") -> dict[Any, Any]:
    """Run in both numberings and with one and two threads; all must agree."""
    results = [
        values(run(program, graph.topology(order), num_threads=threads), column)
        for order in (0, 7)
        for threads in (1, 2)
    ]
    for other in results[1:]:
        assert other == pytest.approx(results[0], rel=1e-12)
    return results[0]


def arcs(graph: SmallGraph) -> list[tuple[Any, Any, float]]:
    """Every way that a message may go along an edge."""
    back = [(b, a, w) for a, b, w in graph.edges if a != b]
    return graph.edges if graph.is_directed else [*graph.edges, *back]


# ---- parameters


class Scale(gs.VertexProgram):
    """Every node's degree times a factor, by helper functions and constants."""

    factor: float
    power: int = 2
    is_halved: bool = False
    value = gs.state("float64")

    def update(self, node: Any) -> Any:
        return grown(float(node.out_degree), self.power) * self.factor + SHIFT

    schedule = "all"
    max_supersteps = 1


SHIFT = 0.125


def grown(base: Any, power: Any) -> Any:
    result = 1.0
    for _ in range(power):
        result *= twice(base) / 2
    return math.sqrt(result * result)


def twice(value: Any) -> Any:
    return 2 * value


@on_both
def test_helpers_constants_and_parameters_are_compiled(graph: SmallGraph) -> None:
    topology = graph.topology()
    expected = 1.5 * topology.out_degree.astype(float) ** 3 + SHIFT
    result = run(Scale(factor=1.5, power=3), topology)
    np.testing.assert_allclose(result.to_numpy()["value"], expected)
    assert result.supersteps == 1
    with_other = run(Scale(factor=0.5, power=3), topology).to_numpy()["value"]
    np.testing.assert_allclose(with_other, (expected - SHIFT) / 3 + SHIFT)


def test_missing_and_unknown_parameters_are_named() -> None:
    with pytest.raises(ConfigError, match=r"Scale needs the parameter 'factor' \(float\)"):
        Scale()
    with pytest.raises(UnknownNameError, match=r"'factr'.*did you mean 'factor'"):
        Scale(factr=2.0)
    with pytest.raises(ConfigError, match="'factor' of Scale is of type float, got 'x'"):
        Scale(factor="x")
    with pytest.raises(ConfigError, match=r"'power' of Scale is of type int, got 2\.5"):
        Scale(factor=1.0, power=2.5)
    assert Scale(factor=1, is_halved="true").is_halved is True


# ---- combining


class Reach(gs.VertexProgram):
    """Which of some marked nodes reach a node, as bits, by a combine of our own."""

    marks = gs.state("int64")
    identity = 0
    idempotent = True

    def start(self, graph: Any) -> Any:
        ids = sorted(graph.ids().to_pylist())[:5]
        return {node: {"marks": 1 << k} for k, node in enumerate(ids)}

    def message(self, src: Any, edge: Any) -> Any:
        return src.marks

    def combine(self, some: Any, others: Any) -> Any:
        return some | others

    def update(self, node: Any, message: Any) -> Any:
        return node.marks | message


@on_both
def test_a_combine_of_ones_own(graph: SmallGraph) -> None:
    plain = graph.networkx()
    expected = dict.fromkeys(graph.ids, 0)
    for k, node in enumerate(sorted(graph.ids)[:5]):
        for other in nx.descendants(plain, node) | {node}:
            expected[other] |= 1 << k
    assert found(Reach, graph) == expected


class Nearest(gs.VertexProgram):
    """The nearest of some nodes, the smallest id among equally near ones."""

    distance = gs.state("float64", default=math.inf)
    owner = gs.state(gs.NodeId, default=None)

    def start(self, graph: Any) -> Any:
        ids = sorted(graph.ids().to_pylist())[10:50:8]
        return {node: {"distance": 0.0, "owner": node} for node in ids}

    def message(self, src: Any, edge: Any) -> Any:
        return src.distance + edge.weight, src.owner

    combine = gs.argmin

    def update(self, node: Any, message: Any) -> Any:
        far, owner = message
        if far < node.distance or (far == node.distance and owner < node.owner):
            return far, owner
        return node.distance, node.owner


@on_both
def test_messages_of_two_values_by_the_smallest(graph: SmallGraph) -> None:
    plain = graph.networkx()
    expected: dict[Any, tuple[float, Any]] = {}
    for source in sorted(graph.ids)[10:50:8]:
        far = nx.single_source_dijkstra_path_length(plain, source)
        for node, length in far.items():
            expected[node] = min(expected.get(node, (length, source)), (length, source))
    distances = exactly(Nearest, graph, "distance")
    owners = exactly(Nearest, graph, "owner")
    for node in graph.ids:
        assert (distances[node], owners[node]) == expected.get(node, (None, None))


def exactly(program: Any, graph: SmallGraph, column: str) -> dict[Any, Any]:
    """Run in both numberings; the same comes out to the last bit."""
    first = values(run(program, graph.topology()), column)
    assert values(run(program, graph.topology(7), num_threads=2), column) == first
    return first


class Mean(gs.VertexProgram):
    """The mean place of the in-neighbors, by messages of two values that are added."""

    mean = gs.state("float64", default=-1.0)
    combine = gs.sum_
    max_supersteps = 1

    def message(self, src: Any, edge: Any) -> Any:
        if src.id % 3 == 0:
            return None
        return src.id * edge.weight, edge.weight

    def update(self, node: Any, message: Any) -> Any:
        total, weight = message
        return total / weight if weight > 0 else -1.0


@on_both
def test_messages_of_two_values_added_some_of_them_missing(graph: SmallGraph) -> None:
    place = {node: k for k, node in enumerate(sorted(graph.ids))}
    expected = {}
    for node in graph.ids:
        heard = [(place[a], w) for a, b, w in arcs(graph) if b == node and place[a] % 3]
        weight = sum(w for _, w in heard)
        expected[node] = sum(k * w for k, w in heard) / weight if heard else -1.0
    assert found(Mean, graph) == pytest.approx(expected)


class Latest(gs.VertexProgram):
    """The largest id within two steps against the edges."""

    latest = gs.state(gs.NodeId, default=gs.own_id)
    direction = "in"
    combine = gs.maximum
    max_supersteps = 2

    def message(self, src: Any, edge: Any) -> Any:
        return src.latest

    def update(self, node: Any, message: Any) -> Any:
        return max(node.latest, message)


@on_both
def test_messages_against_the_edges(graph: SmallGraph) -> None:
    latest = {node: node for node in graph.ids}
    for _ in range(2):
        heard = dict(latest)
        for a, b, _w in arcs(graph):
            heard[a] = max(heard[a], latest[b])
        latest = heard
    assert exactly(Latest, graph, "value") == latest


# ---- changes instead of messages


class Shares(gs.VertexProgram):
    """An unnormalized PageRank, as a plain sum."""

    tolerance: float = 1e-13
    share = gs.state("float64", default=1.0)
    change = gs.aggregator(gs.sum_)
    combine = gs.sum_

    def message(self, src: Any, edge: Any) -> Any:
        return src.share / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        return 0.2 + 0.8 * message

    def aggregate(self, before: Any, node: Any) -> Any:
        return abs(node.share - before.share)

    def until(self, totals: Any) -> bool:
        return bool(totals["change"] < self.tolerance)


class DeltaShares(gs.VertexProgram):
    """The same, sending changes only."""

    share = gs.state("float64", default=1.0)
    combine = gs.sum_
    delta = True
    delta_tolerance = 1e-13

    def message(self, src: Any, edge: Any) -> Any:
        return src.share / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        return 0.2 + 0.8 * message


@on_both
def test_delta_mode_equals_the_plain_sum(graph: SmallGraph) -> None:
    plain = values(run(Shares, graph.topology()))
    for threads in (1, 2):
        result = run(DeltaShares, graph.topology(), num_threads=threads)
        assert result.converged
        assert values(result) == pytest.approx(plain, rel=1e-10)
    matrix = adjacency(graph)
    spread = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    exact = np.linalg.solve(np.eye(len(matrix)) - 0.8 * spread.T, np.full(len(matrix), 0.2))
    assert [plain[n] for n in graph.ids] == pytest.approx(exact, rel=1e-10)


# ---- phases, other nodes, totals


class Roots(gs.VertexProgram):
    """Hook every node below its smallest neighbor, then jump to the root of its tree."""

    parent = gs.state(gs.NodeId, default=gs.own_id)

    class Hook(gs.Phase):
        combine = gs.minimum
        direction = "both"

        def message(self, src: Any, edge: Any) -> Any:
            return src.id

        def update(self, node: Any, message: Any) -> Any:
            return min(node.parent, message)

    class Jump(gs.Phase):
        repeat = True

        def update(self, node: Any) -> Any:
            return node.at(node.parent).parent

    phases = (Hook, Jump)


@on_both
def test_phases_in_order_and_pointer_jumping(graph: SmallGraph) -> None:
    parent = {node: node for node in graph.ids}
    for a, b, _ in graph.edges:
        parent[a], parent[b] = min(parent[a], b), min(parent[b], a)
    expected = {}
    for node in graph.ids:
        root = node
        while parent[root] != root:
            root = parent[root]
        expected[node] = root
    assert exactly(Roots, graph, "value") == expected


class Spread(gs.VertexProgram):
    """Halve what is above the mean of the superstep before, until all are close."""

    amount = gs.state("float64")
    mass = gs.aggregator(gs.sum_)
    least = gs.aggregator(gs.minimum)
    most = gs.aggregator(gs.maximum)
    loop = True

    class Cut(gs.Phase):
        """Cut down large amounts."""

        def update(self, node: Any) -> Any:
            mean = self.total("mass") / self.num_nodes
            return node.amount / 2 if node.amount > mean else node.amount

        def aggregate(self, before: Any, node: Any) -> Any:
            return node.amount, node.amount, node.amount

    class Rest(gs.Phase):
        """Do nothing; the totals stay."""

        def update(self, node: Any) -> Any:
            return node.amount

    phases = (Cut, Rest)

    def init(self, node: Any) -> Any:
        return 1.0 + node.id

    def until(self, totals: Any) -> bool:
        return bool(totals["most"] < 4 * totals["least"])

    def answer(self, table: Any) -> float:
        return self.total("mass")


def test_totals_are_those_of_the_last_superstep_that_made_them() -> None:
    graph = GRAPHS[0]
    amounts = np.arange(1.0, len(graph.ids) + 1)
    rounds = 0
    while rounds == 0 or amounts.max() >= 4 * amounts.min():
        amounts = np.where(amounts > amounts.mean(), amounts / 2, amounts)
        rounds += 1
        if rounds > 50:
            pytest.fail("the example never ends")
    result = run(Spread, graph.topology())
    assert sorted(result.to_numpy()["value"]) == pytest.approx(sorted(amounts))
    assert result.supersteps == 2 * rounds
    assert result.result == pytest.approx(amounts.sum())


class Endless(gs.VertexProgram):
    """Counts supersteps; never ends by itself."""

    count = gs.state("int64")
    loop = True
    max_supersteps = 7

    class Step(gs.Phase):
        """Add one."""

        def update(self, node: Any) -> Any:
            return self.superstep + 1

    phases = (Step,)


def test_a_loop_keeps_its_limit_and_says_so() -> None:
    result = run(Endless, GRAPHS[0].topology())
    assert (result.supersteps, result.converged) == (7, False)
    assert set(values(result).values()) == {7}
    sooner = run(Endless, GRAPHS[0].topology(), max_supersteps=3)
    assert (sooner.supersteps, set(values(sooner).values())) == (3, {3})


# ---- declarations


def some(self: Any, *values: Any) -> Any:
    return 1.0


class NoUpdate(gs.Phase):
    """A phase that forgets its update."""


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"value": None}, "Given declares no state"),
        ({"id": gs.state("int64")}, "a state cannot be called 'id'"),
        ({"degree": gs.state("int64")}, "a state cannot be called 'degree'"),
        ({"update": None}, "Given has no update"),
        ({"message": None}, "Given has combine but no message; write message(self, src"),
        ({"combine": None}, "Given has message but no combine; write combine = gs.sum"),
        ({"combine": min}, "combine is <built-in function min>; write combine = gs.min"),
        ({"combine": np.add}, "combine is <ufunc 'add'>; write combine = gs.sum"),
        ({"max_supersteps": 0}, "max_supersteps is 0, expected a whole number >= 1"),
        ({"max_supersteps": 2.5}, "max_supersteps is 2.5, expected a whole number >= 1"),
        ({"combine": 3}, "combine must be gs.sum, gs.minimum ..., got 3"),
        ({"combine": some}, "combine needs identity"),
        ({"direction": "up"}, "direction must be 'out', 'in' or 'both', got 'up'"),
        ({"schedule": "some"}, "schedule must be 'changed' or 'all', got 'some'"),
        ({"combine": gs.sum_}, "would never end: give until"),
        ({"combine": gs.mode, "schedule": "changed"}, "gs.mode needs the messages of all"),
        ({"stores": "kept"}, "stores names 'kept', the edge states are none"),
        ({"aggregate": some}, "aggregate needs a total: write x = gs.aggregator"),
        ({"delta": True}, "delta = True needs combine = gs.sum"),
        ({"phases": (int,)}, "phases of Given must be gs.Phase"),
        ({"phases": (NoUpdate,)}, "Given.NoUpdate has no update"),
    ],
)
def test_declarations_that_do_not_fit_are_refused(attributes: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        declared(**attributes)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("mesage", some, "message"),
        ("accept", some, "accepts"),
        ("max_superstep", 3, "max_supersteps"),
        ("combiner", gs.sum_, "combine"),
    ],
)
def test_a_name_that_is_nearly_one_of_a_programs_is_told(
    name: str, value: Any, meant: str
) -> None:
    said = f"^Near.{name} is not read by any run; did you mean '{meant}'"
    with pytest.warns(UserWarning, match=said) as told:
        type("Near", (gs.VertexProgram,), {name: value})
    assert [it.filename for it in told] == [__file__]


def test_helpers_states_and_parameters_are_not_told() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = {
            "update": some,
            "updated": some,  # a helper beside what it is like
            "starts": gs.state("int64"),
            "phase": gs.aggregator(gs.sum_),
            "gather": some,
            "_updates": 3,
            "messages": 3,
            "__annotations__": {"messages": int},
        }
        type("Far", (gs.VertexProgram,), given)


def test_totals_have_three_operations() -> None:
    with pytest.raises(ConfigError, match=r"takes gs.sum, .* got gs.mode"):
        gs.aggregator(gs.mode)


class Misnamed(Latest):
    """Starts and shows what it does not declare."""

    def start(self, graph: Any) -> Any:
        return {GRAPHS[1].ids[0]: {"lates": 3}}


class Shown(Latest):
    """Shows what it does not declare."""

    results = ("lates",)


def test_states_that_are_not_declared_are_refused_at_run_time() -> None:
    topology = GRAPHS[1].topology()
    with pytest.raises(ConfigError, match="start of Misnamed sets 'lates'"):
        run(Misnamed, topology)
    with pytest.raises(ConfigError, match="results names 'lates', the states are latest"):
        run(Shown, topology)


def test_delta_needs_messages_of_the_sender_alone() -> None:
    class Weighed(DeltaShares):
        def message(self, src: Any, edge: Any) -> Any:
            return src.share * edge.weight

    with pytest.raises(CompileError, match="with delta = True a message is one number"):
        run(Weighed, GRAPHS[0].topology())


def test_the_public_names_are_those_of_programs() -> None:
    for name in ("sum", "any"):
        assert getattr(graphsys, name) is getattr(gs, f"{name}_")
    with pytest.raises(TypeError, match="declares how to combine"):
        graphsys.sum([1, 2])
