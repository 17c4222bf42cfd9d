"""The debugging aid that tests a user's combine on messages of the run."""

from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.progress import Progress
from graphsys.engine import program as gs
from graphsys.engine.program import Combiner
from graphsys.engine.run import run
from graphsys.engine.topology import Topology


def first(a: Any, b: Any) -> Any:
    return a if a != 0.0 else b


def mean(a: Any, b: Any) -> Any:
    return (a + b) / 2 if a >= 0 and b >= 0 else max(a, b)


def added(a: Any, b: Any) -> Any:
    return a + b


def larger(a: Any, b: Any) -> Any:
    return max(a, b)


def wider(a: Any, b: Any) -> Any:
    return min(a[0], b[0]), max(a[1], b[1])


def program(combiner: Combiner) -> gs.VertexProgram:
    class Own(gs.VertexProgram):
        value = gs.state("float64")
        schedule = "all"
        max_supersteps = 3
        combine = combiner

        def init(self, node: Any) -> Any:
            return 1.0 + gs.random(3, node.id, 0)

        def message(self, src: Any, edge: Any) -> Any:
            return src.value * edge.weight

        def update(self, node: Any, message: Any) -> Any:
            return 0.5 * message

    return Own()


@pytest.fixture
def topology(rng: np.random.Generator) -> Topology:
    ends = rng.integers(0, 50, (2, 300))
    return Topology.from_edges(ends[0], ends[1], 50, weight=rng.random(300))


def test_a_combine_that_keeps_the_first_depends_on_order(topology: Topology) -> None:
    with pytest.raises(ConfigError, match=r"order of messages: \([\d.]+, [\d.]+\) gives"):
        run(program(gs.combiner(first, identity=0.0)), topology, check=True)


def test_a_mean_of_two_depends_on_grouping(topology: Topology) -> None:
    with pytest.raises(ConfigError, match="depends on the grouping of messages"):
        run(program(gs.combiner(mean, identity=-1.0)), topology, check=True)


def test_a_wrong_identity_is_found(topology: Topology) -> None:
    with pytest.raises(ConfigError, match=r"the identity 1\.0 changes the message"):
        run(program(gs.combiner(added, identity=1.0)), topology, check=True)


def test_a_sum_is_not_idempotent(topology: Topology) -> None:
    wrong = gs.combiner(added, identity=0.0, idempotent=True)
    with pytest.raises(ConfigError, match="declared idempotent, but"):
        run(program(wrong), topology, check=True)


def test_sound_combiners_pass(topology: Topology) -> None:
    class Range(gs.VertexProgram):
        low = gs.state("float64")
        high = gs.state("float64")
        schedule = "all"
        max_supersteps = 3
        combine = gs.combiner(wider, identity=(np.inf, -np.inf), idempotent=True)

        def init(self, node: Any) -> Any:
            return 1.0 * node.id, 1.0 * node.id

        def message(self, src: Any, edge: Any) -> Any:
            return src.low, src.high

        def update(self, node: Any, message: Any) -> Any:
            low, high = message
            return min(node.low, low), max(node.high, high)

    run(Range(), topology, check=True)
    run(program(gs.combiner(added, identity=0.0)), topology, check=True)
    run(program(gs.combiner(larger, identity=-np.inf)), topology, check=True)
    run(program(gs.sum_), topology, check=True)


def test_progress_tells_frontier_and_messages(topology: Topology) -> None:
    class Seen(Progress):
        figures: list[dict[str, float]]

        def __init__(self) -> None:
            self.figures = []

        def advance(self, steps: int, **figures: float) -> None:
            self.figures.append(figures)

    seen = Seen()
    run(program(gs.sum_), topology, progress=seen)
    assert len(seen.figures) == 3
    assert {(f["frontier"], f["messages"]) for f in seen.figures} == {(50, 300)}
    assert all(figures["edges/s"] > 0 for figures in seen.figures)
