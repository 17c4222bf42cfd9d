"""PinSage's neighborhoods against exact visit probabilities; walks against networkx."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.sampling import ImportanceSampler, rows_of, walk
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import Store, in_matrix

Floats = npt.NDArray[np.float64]


@pytest.fixture
def boards(tmp_path: Path) -> Graph:
    """Return 8 boards that hold 4 of 30 pins each; pin 29 is on none."""
    rng = np.random.default_rng(2)
    pairs = [(b, int(p)) for b in range(8) for p in rng.choice(29, 5, replace=False)]
    make_store(
        tmp_path / "boards",
        NodeChunk(ids=np.arange(8), node_type="board"),
        NodeChunk(ids=np.arange(30), node_type="pin"),
        edge_chunk(pairs, EdgeType("board", "holds", "pin")),
        is_directed=False,
        partitions={"board": 1, "pin": 2},
    )
    return Graph(tmp_path / "boards")


def test_shares_are_those_of_personalised_pagerank(store: Store) -> None:
    graph = store(2)
    matrix = in_matrix(graph)
    ring = nx.DiGraph([(v, int(u)) for v in range(60) for u in matrix[v].indices])
    sampler = ImportanceSampler(
        rows_of(graph, "edge"),
        num_neighbors=(60,),
        num_walks=4000,
        walk_length=40,
        restart=0.4,
    )
    block = sampler.sample(np.array([7])).blocks[0]
    scores = nx.pagerank(ring, alpha=0.6, personalization={7: 1.0})
    found = block.src_nodes[block.indices]
    assert 7 not in found
    expected = np.array([scores[int(node)] for node in found])
    assert block.weight is not None
    assert block.weight.sum() == pytest.approx(1.0, abs=1e-5)
    assert np.abs(block.weight - expected / expected.sum()).max() < 0.005
    assert (np.diff(block.weight) <= 0).all()


def test_walks_over_boards_stay_among_pins(boards: Graph) -> None:
    to_board = rows_of(boards, "holds")
    to_pin = rows_of(boards, "holds", "out")
    holds = in_matrix(boards, "holds")
    together = ((holds @ holds.T) > 0).toarray()
    sampler = ImportanceSampler(
        to_board, to_pin, num_neighbors=(3, 30), num_walks=60, walk_length=1
    )
    pins = np.arange(30)
    sample = sampler.sample(pins)
    assert list(sample.nodes) == ["pin"]
    last, first = sample.blocks[1], sample.blocks[0]
    for k, node in enumerate(last.dst_nodes):
        found = last.src_nodes[last.indices[last.indptr[k] : last.indptr[k + 1]]]
        assert len(found) <= 3
        assert all(together[node, other] and other != node for other in found)
    whole = first.src_nodes[first.indices[first.indptr[3] : first.indptr[4]]]
    near = set(np.flatnonzero(together[first.dst_nodes[3]]).tolist())
    assert set(whole.tolist()) == near - {int(first.dst_nodes[3])}


def test_ranks_go_on_where_others_end(store: Store) -> None:
    sampler = ImportanceSampler(rows_of(store(1), "edge"), num_walks=200, walk_length=5)
    nodes = np.array([3, 59, 8])
    indptr, whole, shares = sampler.neighborhoods(nodes, 30)
    begins, rest, _ = sampler.neighborhoods(nodes, 10, skip=20)
    for k in range(3):
        row = whole[indptr[k] : indptr[k + 1]]
        assert rest[begins[k] : begins[k + 1]].tolist() == row[20:30].tolist()
    assert indptr[1] == indptr[2]  # node 59 has no edges
    assert shares[: indptr[1]].sum() == pytest.approx(1)
    with pytest.raises(UnknownNameError, match="60 nodes of type 'node'"):
        sampler.neighborhoods(np.array([60]), 3)


def test_rows_must_lead_back(boards: Graph) -> None:
    holds = rows_of(boards, "holds")
    with pytest.raises(ConfigError, match="walks go from pin to board; give rows that"):
        ImportanceSampler(holds)
    with pytest.raises(ConfigError, match="restart: got 1, expected"):
        ImportanceSampler(holds, rows_of(boards, "holds", "out"), restart=1)
    with pytest.raises(ConfigError, match="num_walks: got 0, expected an int >= 1"):
        ImportanceSampler(holds, num_walks=0)


def test_walks_follow_edges_and_are_uniform(store: Store) -> None:
    graph = store(2)
    rows, matrix = rows_of(graph, "edge", "out"), in_matrix(graph).T.tocsr()
    walks = walk([rows], np.full(4000, 7), 3)
    assert (walks[:, 0] == 7).all()
    for step in range(3):
        for here, there in walks[:200, step : step + 2]:
            is_end = here < 0 or matrix[here].nnz == 0
            assert there == -1 if is_end else matrix[here, there] > 0
    first = np.bincount(walks[:, 1], minlength=60)[matrix[7].indices]
    assert np.abs(first / 4000 - 1 / matrix[7].nnz).max() < 0.03
    assert (walk([rows], np.full(4000, 7), 3, epoch=1) != walks).any()


def second_order(matrix: Any, last: int, here: int, p: float, q: float) -> Floats:
    """Return node2vec's chances of the step after ``last`` and ``here`` ``[N]``."""
    follows = (matrix[here].toarray()[0] > 0).astype(float)
    is_near = matrix[last].toarray()[0] > 0
    weight = follows * np.where(is_near, 1.0, 1.0 / q)
    weight[last] = follows[last] / p
    return np.asarray(weight / weight.sum())


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.5), (1e7, 1e7), (1e-9, 1.0)])
@pytest.mark.parametrize("partitions", [1, 3])
def test_walks_with_p_and_q_are_node2vecs(
    store: Store, partitions: int, p: float, q: float
) -> None:
    graph = store(partitions)
    rows, matrix = rows_of(graph, "edge", "out"), in_matrix(graph).T.tocsr()
    walks = walk([rows], np.full(60_000, 7), 2, p=p, q=q)
    assert (walk([rows], np.full(60_000, 7), 2, p=p, q=q) == walks).all()
    for here in matrix[7].indices[:6]:
        ends = walks[walks[:, 1] == here, 2]
        if matrix[here].nnz == 0:
            assert (ends == -1).all()
            continue
        expected = second_order(matrix, 7, int(here), p, q)
        counts = np.bincount(ends, minlength=60)
        assert not counts[expected == 0].any()
        is_possible = expected * len(ends) > 5
        difference = counts - expected * len(ends)
        degrees = is_possible.sum()
        statistic = (difference[is_possible] ** 2 / expected[is_possible]).sum() / len(ends)
        assert statistic < degrees + 6 * np.sqrt(2 * degrees)  # chi square


def test_on_a_metapath_only_the_last_node_is_special(boards: Graph) -> None:
    to_board, to_pin = rows_of(boards, "holds"), rows_of(boards, "holds", "out")
    pins = np.repeat(np.arange(30), 2000)
    uniform, back, away = (
        walk([to_board, to_pin], pins, 2, p=p, q=q)
        for p, q in ((1.0, 1.0), (0.25, 1.0), (1.0, 0.25))
    )
    shares = []
    for walks in (uniform, back, away):
        arrived = walks[walks[:, 2] >= 0]
        shares.append((arrived[:, 0] == arrived[:, 2]).mean())
    # five pins a board: 1/5; four times as likely: 4/8; a fourth as likely: 1/17
    assert np.allclose(shares, [1 / 5, 1 / 2, 1 / 17], atol=0.01)


def test_p_and_q_are_numbers_above_0(store: Store) -> None:
    rows, starts = [rows_of(store(1), "edge")], np.array([1])
    with pytest.raises(ConfigError, match=r"p: got 0.0, expected a number > 0"):
        walk(rows, starts, 2, p=0.0)
    with pytest.raises(ConfigError, match=r"q: got inf, expected a number > 0"):
        walk(rows, starts, 2, q=np.inf)


def test_metapaths_change_between_types(boards: Graph) -> None:
    to_board = rows_of(boards, "holds")
    to_pin = rows_of(boards, "holds", "out")
    walks = walk([to_board, to_pin], np.arange(30), 4)
    holds = in_matrix(boards, "holds").toarray()
    for pin, board, other, second, last in walks:
        if board >= 0:
            assert holds[pin, board] == holds[other, board] == holds[other, second] == 1
            assert holds[last, second] == 1
    assert (walks[29, 1:] == -1).all() or holds[29].any()
    with pytest.raises(ConfigError, match="step 1 leads to board, step 2 begins at pin"):
        walk([to_board], np.arange(3), 2)
    with pytest.raises(UnknownNameError, match="start 30 is not in the graph"):
        walk([to_board], np.array([30]), 1)
