"""LABOR: inclusion probabilities, shared random numbers, fewer nodes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from graphsys.core.errors import ConfigError
from graphsys.sampling import LaborSampler, NeighborSampler, message_rows
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.sampling.conftest import NUM_NODES, Store, in_matrix

FANOUT = 3
DRAWS = 1500


def dense(sample: Any, k: int = 0) -> Any:
    """Return a block as a matrix over all nodes."""
    block, matrix = sample.blocks[k], np.zeros((NUM_NODES, NUM_NODES), dtype=np.int64)
    rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
    np.add.at(matrix, (rows, block.src_nodes[block.indices]), 1)
    return matrix


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_entry_is_taken_with_its_probability(store: Store, partitions: int) -> None:
    graph = store(partitions)
    whole = in_matrix(graph).toarray()
    sampler = LaborSampler(graph, [FANOUT], seed=5)
    counts = np.zeros_like(whole)
    for batch in range(DRAWS):
        with sampler.sample(np.arange(NUM_NODES), batch=batch) as sample:
            found = dense(sample)
            assert (found <= whole).all()
            counts += found
    degrees = whole.sum(axis=1, keepdims=True)
    chance = np.where(whole > 0, np.minimum(1, FANOUT / np.maximum(degrees, 1)), 0)
    assert (counts[chance == 1] == DRAWS).all()
    is_drawn = (chance > 0) & (chance < 1)
    spread = np.sqrt(DRAWS * chance[is_drawn] * (1 - chance[is_drawn]))
    scores = (counts[is_drawn] - DRAWS * chance[is_drawn]) / spread
    # one number per neighbor and batch: look at one row's, which are independent
    assert np.abs(scores).max() < 5
    hub = (counts[0] - DRAWS * chance[0])[chance[0] > 0]
    variance = DRAWS * chance[0].max() * (1 - chance[0].max())
    assert stats.chi2.sf((hub**2).sum() / variance, len(hub)) > 1e-4


def test_rows_of_a_hop_share_their_neighbors(store: Store) -> None:
    graph = store(1)
    whole = in_matrix(graph).toarray()
    degrees = whole.sum(axis=1)
    sampler = LaborSampler(graph, [FANOUT])
    for batch in range(20):
        found = dense(sampler.sample(np.arange(NUM_NODES), batch=batch))
        for column in range(NUM_NODES):
            asked = np.flatnonzero((whole[:, column] > 0) & (degrees > FANOUT))
            taken = found[asked, column] > 0
            # whoever has the larger chance takes it first
            if taken.any() and not taken.all():
                assert degrees[asked][taken].max() <= degrees[asked][~taken].min()


def test_samples_have_fewer_nodes_than_neighbor_samples(store: Store) -> None:
    graph = store(1)
    seeds = np.arange(0, NUM_NODES, 2)
    nodes: dict[Any, int] = {}
    for kind in (NeighborSampler, LaborSampler):
        sampler = kind(graph, [2])
        nodes[kind] = sum(
            len(sampler.sample(seeds, batch=batch).input_nodes) for batch in range(50)
        )
    assert nodes[LaborSampler] < 0.95 * nodes[NeighborSampler]


def test_all_neighbors_and_hops(store: Store) -> None:
    graph = store(2)
    whole = in_matrix(graph).toarray()
    sample = LaborSampler(graph, [-1, 2]).sample(np.arange(10))
    assert (dense(sample, 1)[:10] == whole[:10]).all()
    hops = LaborSampler(graph, [2, 2], is_layer_dependent=True).sample(np.arange(NUM_NODES))
    assert (dense(hops, 0) == dense(hops, 1)).all()
    hops = LaborSampler(graph, [2, 2]).sample(np.arange(NUM_NODES))
    assert (dense(hops, 0) != dense(hops, 1)).any()


def test_rows_that_find_no_room_are_taken_up_again(tmp_path: Path) -> None:
    # all rows have the same neighbors, so their lengths are the same: far from the average
    pairs = [(src, dst) for src in range(100) for dst in range(100, 400)]
    make_store(
        tmp_path / "g", NodeChunk(ids=np.arange(400)), edge_chunk(pairs), order="original"
    )
    seeds = np.arange(100, 400)
    totals = []
    for batch in range(20):
        sampler = LaborSampler(Graph(tmp_path / "g"), [10], frontier="new")
        block = sampler.sample(seeds, batch=batch).blocks[0]
        lengths = np.diff(block.indptr)
        assert (lengths == lengths[0]).all()
        assert (block.indices.reshape(300, -1) == block.indices[: lengths[0]]).all()
        totals.append(block.num_edges)
    assert max(totals) > 3000 + 6 * np.sqrt(3000) + 64  # beyond the room set aside first


def test_relations_and_threads(shop: Graph) -> None:
    sampler = LaborSampler(message_rows(shop), [2, 1], frontier="new", seed=3)

    def draw(k: int) -> Any:
        with sampler.sample({"user": np.arange(12)}, batch=k) as sample:
            return [
                {
                    name: [b.indptr.tolist(), b.src_nodes.tolist()]
                    for name, b in layer.items()
                }
                for layer in sample.layers
            ]

    alone = [draw(k) for k in range(12)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(draw, range(12))) == alone
    assert alone[0] != alone[1]


def chances_of(whole: Any, fanout: int, rounds: int) -> Any:
    """Return the chance of each entry by the paper: c by bisection, all in NumPy.

    Args:
        whole: Which neighbors each row has ``[N, N]``.
        fanout: k.
        rounds: How often pi changes.
    """
    has, degrees = whole > 0, (whole > 0).sum(axis=1)
    importance = np.ones(whole.shape[1])

    def factor(row: int) -> float:
        pi, degree = importance[has[row]], degrees[row]
        if degree == 0:
            return 0.0
        if degree <= fanout:
            return float((1 / pi).max())

        def excess(log: float) -> float:
            chance = np.minimum(1, np.exp(log) * pi)
            return float((1 / chance).sum() * fanout / degree**2 - 1)

        return float(np.exp(optimize.brentq(excess, -30, 30, xtol=1e-13)))

    factors = np.array([factor(row) for row in range(len(whole))])
    for _ in range(rounds):
        importance *= (has * factors[:, None]).max(axis=0)
        factors = np.array([factor(row) for row in range(len(whole))])
    return np.where(has, np.minimum(1, factors[:, None] * importance), 0)


@pytest.mark.parametrize("rounds", [1, 3])
def test_chances_are_those_of_the_papers_fixed_point(store: Store, rounds: int) -> None:
    graph = store(2)
    whole = (in_matrix(graph).toarray() > 0).astype(np.int64)
    multiple = in_matrix(graph).toarray().max() > 1
    assert not multiple
    chance = chances_of(whole, FANOUT, rounds)
    degrees = whole.sum(axis=1)
    drawn = degrees > FANOUT
    with np.errstate(divide="ignore"):
        spread = np.where(whole > 0, 1 / chance, 0).sum(axis=1)
    np.testing.assert_allclose(spread[drawn], degrees[drawn] ** 2 / FANOUT, rtol=1e-6)
    sampler = LaborSampler(graph, [FANOUT], iterations=rounds, seed=5)
    x = np.random.default_rng(0).normal(1, 1, NUM_NODES)
    counts, sums = np.zeros(whole.shape), np.zeros((2, NUM_NODES))
    for batch in range(DRAWS):
        with sampler.sample(np.arange(NUM_NODES), batch=batch) as sample:
            block, found = sample.blocks[0], dense(sample)
            rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
            sources = block.src_nodes[block.indices]
            inverse = 1 / chance[rows, sources]
            totals = np.bincount(rows, inverse, NUM_NODES)
            assert block.weight is not None
            np.testing.assert_allclose(block.weight, inverse / totals[rows], rtol=1e-5)
            counts += found
            sums[0] += np.bincount(rows, inverse * x[sources], NUM_NODES)
            sums[1] += np.bincount(rows, inverse * x[sources], NUM_NODES) ** 2
    is_drawn = (chance > 0) & (chance < 1)
    assert (counts[chance == 1] == DRAWS).all()
    error = np.sqrt(DRAWS * chance[is_drawn] * (1 - chance[is_drawn]))
    assert np.abs((counts[is_drawn] - DRAWS * chance[is_drawn]) / error).max() < 5
    # sums by 1 / chance have no bias
    mean, wanted = sums[0] / DRAWS, whole @ x
    deviation = np.sqrt(np.maximum(sums[1] / DRAWS - mean**2, 0) / DRAWS)
    assert (np.abs(mean - wanted) <= 5 * deviation + 1e-9).all()


def test_each_round_has_fewer_nodes(store: Store) -> None:
    graph = store(1)
    whole = (in_matrix(graph).toarray() > 0).astype(np.int64)
    expected = [
        chances_of(whole, FANOUT, rounds).max(axis=0).sum() for rounds in (0, 1, 2, 3, 60)
    ]
    assert expected == sorted(expected, reverse=True)
    nodes = {}
    for iterations in (0, 1, -1):
        sampler = LaborSampler(graph, [FANOUT], iterations=iterations, seed=1)
        found = [sampler.sample(np.arange(NUM_NODES), batch=k) for k in range(200)]
        taken = [len(np.unique(each.blocks[0].indices)) for each in found]
        nodes[iterations] = float(np.mean(taken))
    assert nodes[0] > nodes[1] > nodes[-1]
    np.testing.assert_allclose(nodes[0], expected[0], rtol=0.03)
    np.testing.assert_allclose(nodes[1], expected[1], rtol=0.03)
    np.testing.assert_allclose(nodes[-1], expected[-1], rtol=0.03)


def test_weighed_rows_of_many_hops_and_threads(store: Store) -> None:
    graph = store(3)
    whole = in_matrix(graph).toarray()
    for frontier in ("all", "new"):
        sampler: Any = LaborSampler(graph, [2, -1, 0], iterations=2, frontier=frontier)

        def draw(k: int, sampler: Any = sampler) -> Any:
            with sampler.sample(np.arange(8), batch=k) as sample:
                return [
                    (b.indptr.tolist(), b.indices.tolist(), b.weight.tolist())
                    for b in sample.blocks
                ]

        alone = [draw(k) for k in range(8)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(draw, range(8))) == alone
        sample = sampler.sample(np.arange(8))
        for block in sample.blocks:
            filled = np.diff(block.indptr) > 0
            totals = np.add.reduceat(
                np.append(block.weight, 0), block.indptr[:-1], dtype=float
            )
            np.testing.assert_allclose(totals[filled], 1, rtol=1e-5)
        last = sample.blocks[1]  # of the hop with all neighbors
        new = last.dst_nodes[8:] if frontier == "new" else last.dst_nodes
        lengths = np.diff(last.indptr)[-len(new) :] if len(new) else np.empty(0, int)
        assert (lengths == whole[new].sum(axis=1)).all()


def test_iterations_below_all_are_refused(store: Store) -> None:
    with pytest.raises(
        ConfigError, match="iterations: got -2, expected an int >= 0, or -1"
    ):
        LaborSampler(store(1), [2], iterations=-2)


def weights_of(edges: Any, kind: str) -> Any:
    """Return a weight for each edge: alike, a few heavy ones, or some of 0 and below."""
    rng = np.random.default_rng(11)
    if kind == "alike":
        return np.full(len(edges), 0.25)
    found = rng.uniform(0.5, 1.5, len(edges))
    if kind == "heavy":
        found[rng.random(len(edges)) < 0.1] *= 40
    if kind == "none":
        found[::3], found[1::9] = 0.0, -1.0
    return found


def weight_matrix(graph: Graph) -> Any:
    """Return the weights of a graph's edges, of the sources of each node ``[N, N]``."""
    offsets = graph.offsets("node")
    found = np.zeros((NUM_NODES, NUM_NODES))
    for i, j in np.ndindex(len(offsets) - 1, len(offsets) - 1):
        bucket = graph.bucket("edge", i, j)
        found[bucket.dst + offsets[j], bucket.src + offsets[i]] = bucket.weight
    return found


def weighted_chances(weights: Any, fanout: int, rounds: int) -> Any:
    """Return the chance of each entry by the paper, as :func:`chances_of`.

    Args:
        weights: Of the neighbors of each row, 0 where there is none ``[N, N]``.
        fanout: k.
        rounds: How often pi changes.
    """
    has, importance = weights > 0, weights.copy()

    def factor(row: int) -> float:
        pi, own = importance[row][has[row]], weights[row][has[row]]
        if not len(own):
            return 0.0
        k = min(fanout, len(own))
        if k == len(own):
            return float((1 / pi).max())
        wanted = 1 / k - 1 / len(own)  # of features of variance 1

        def excess(log: float) -> float:
            chance = np.minimum(1, np.exp(log) * pi)
            return float((own**2 * (1 / chance - 1)).sum() / own.sum() ** 2 - wanted)

        return float(np.exp(optimize.brentq(excess, -40, 40, xtol=1e-13)))

    factors = np.array([factor(row) for row in range(len(weights))])
    for number in range(rounds):
        terms = weights if number == 0 else has
        highest = (terms * factors[:, None]).max(axis=0)
        importance = has * (highest if number == 0 else importance.max(axis=0) * highest)
        factors = np.array([factor(row) for row in range(len(weights))])
    return np.where(has, np.minimum(1, factors[:, None] * importance), 0)


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize("kind", ["heavy", "none"])
def test_weighted_chances_and_means_are_those_of_the_paper(
    store: Store, edges: Any, kind: str, rounds: int
) -> None:
    given = weights_of(edges, kind)
    graph = store(3, weight=given)
    weights = np.maximum(weight_matrix(graph), 0)
    assert (weights > 0).sum() == (given > 0).sum()
    chance = weighted_chances(weights, FANOUT, rounds)
    sampler = LaborSampler(
        graph, [FANOUT], iterations=rounds, is_weighted=True, frontier="new", seed=5
    )
    x = np.random.default_rng(0).normal(1, 1, NUM_NODES)
    counts, sums = np.zeros(weights.shape), np.zeros((2, NUM_NODES))
    for batch in range(DRAWS):
        with sampler.sample(np.arange(NUM_NODES), batch=batch) as sample:
            block, found = sample.blocks[0], dense(sample)
            rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
            sources = block.src_nodes[block.indices]
            terms = weights[rows, sources] / chance[rows, sources]
            totals = np.bincount(rows, terms, NUM_NODES)
            assert block.weight is not None
            np.testing.assert_allclose(block.weight, terms / totals[rows], rtol=1e-4)
            counts += found
            estimate = np.bincount(rows, terms * x[sources], NUM_NODES)
            sums += estimate, estimate**2
    is_drawn = (chance > 0) & (chance < 1)
    assert (counts[chance == 1] == DRAWS).all()
    assert not counts[chance == 0].any()
    error = np.sqrt(DRAWS * chance[is_drawn] * (1 - chance[is_drawn]))
    assert np.abs((counts[is_drawn] - DRAWS * chance[is_drawn]) / error).max() < 5
    # sums by weight / chance have no bias
    mean, wanted = sums[0] / DRAWS, weights @ x
    deviation = np.sqrt(np.maximum(sums[1] / DRAWS - mean**2, 0) / DRAWS)
    assert (np.abs(mean - wanted) <= 5 * deviation + 1e-9).all()


@pytest.mark.parametrize("rounds", [0, 2])
def test_equal_weights_are_none(store: Store, edges: Any, rounds: int) -> None:
    graphs = store(1), store(1, weight=weights_of(edges, "alike"))
    found = []
    for graph, is_weighted in zip(graphs, (False, True), strict=True):
        sampler = LaborSampler(
            graph, [FANOUT, -1, 0], iterations=rounds, is_weighted=is_weighted
        )
        with sampler.sample(np.arange(0, NUM_NODES, 7)) as sample:
            found.append([b.indices.tolist() for b in sample.blocks])
            means = [b.weight for b in sample.blocks]
    assert found[0] == found[1]
    for weight in means:
        assert weight is not None


def test_a_weighted_mean_varies_no_more_than_one_of_drawn_neighbors(
    store: Store, edges: Any
) -> None:
    """Beside as many draws by weight with replacement, whose plain mean has no bias.

    Squares of errors are of rows that have entries, over features of variance 1. There are
    fewer nodes, too.
    """
    given, fanout = weights_of(edges, "some"), 4
    graph = store(1, weight=given)
    weights = weight_matrix(graph)
    degrees = (weights > 0).sum(axis=1)
    rows_drawn = degrees > fanout
    x = np.random.default_rng(1).normal(0, 1, (NUM_NODES, 64))
    wanted = weights @ x / np.maximum(weights.sum(axis=1), 1e-9)[:, None]
    samplers: dict[str, Any] = {
        "draws": NeighborSampler(graph, [fanout], is_weighted=True, is_replacing=True),
        "apart": NeighborSampler(graph, [fanout], is_weighted=True),
        "labor": LaborSampler(graph, [fanout], is_weighted=True),
        "labor 1": LaborSampler(graph, [fanout], is_weighted=True, iterations=1),
    }
    errors, nodes, entries = {}, {}, {}
    for name, sampler in samplers.items():
        squares, there, taken, count = np.zeros(NUM_NODES), np.zeros(NUM_NODES), 0, 0
        for batch in range(600):
            with sampler.sample(np.arange(NUM_NODES), batch=batch) as sample:
                block = sample.blocks[0]
                lengths = np.diff(block.indptr)
                rows = np.repeat(block.dst_nodes, lengths)
                share = getattr(block, "weight", None)
                if share is None:
                    share = 1 / np.maximum(lengths, 1)[rows]
                sources = block.src_nodes[block.indices]
                mean = np.zeros_like(wanted)
                np.add.at(mean, rows, share[:, None] * x[sources])
                is_there = np.zeros(NUM_NODES, dtype=bool)
                is_there[rows] = True
                squares += np.where(is_there, ((mean - wanted) ** 2).mean(axis=1), 0)
                there += is_there
                taken += len(np.unique(sources))
                count += len(sources)
        errors[name] = (squares[rows_drawn] / there[rows_drawn]).sum()
        nodes[name], entries[name] = taken / 600, count / 600
    assert errors["labor"] < errors["draws"]
    assert errors["labor 1"] < errors["draws"]
    assert nodes["labor 1"] < nodes["labor"] < nodes["apart"]
    assert entries["labor"] < entries["apart"]


def test_weighted_samples_need_weights(store: Store) -> None:
    with pytest.raises(ConfigError, match="have no weights, by which neighbors were to"):
        LaborSampler(store(1), [2], is_weighted=True)
