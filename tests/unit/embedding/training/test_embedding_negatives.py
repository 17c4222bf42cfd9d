"""Draws against the distributions they claim, by SciPy; masks against brute force."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import scipy.stats

from graphsys.core.errors import CorruptStoreError
from graphsys.core.types import Bucket
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import BucketTask, cut_bucket
from graphsys.embedding.model import relation_sets
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.training.edge_sets import list_steps
from graphsys.embedding.training.negative_tables import layout, require_sound
from graphsys.embedding.training.negatives import DST, SRC, Negatives
from graphsys.graph.csr import Csr
from graphsys.kernels.cpu.alias_table import build_alias
from graphsys.kernels.cpu.embedding.candidate_weights import (
    CandidateWeights,
    leave_out,
    plain_counting,
)
from graphsys.kernels.cpu.embedding.chunk import Edges
from graphsys.kernels.cpu.embedding.known import Known, Masks, find_known
from graphsys.kernels.cpu.embedding.negatives import Sampler, draw_pools
from graphsys.kernels.cpu.hashing import mix64
from graphsys.storage import Graph

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def bucket_edges(graph: Graph, config: EmbeddingConfig, step: BucketTask) -> Edges:
    (relations,) = relation_sets(graph, config)
    bucket = graph.bucket(relations.edge_type, *step.bucket)
    assert bucket.relation is not None
    return cut_bucket(
        bucket.src.astype(np.uint32),
        bucket.dst.astype(np.uint32),
        bucket.relation.astype(np.uint32),
        np.empty(0, np.float32),
        relations,
        config,
        (0,),
    )


def draw(
    config: EmbeddingConfig, sampler: Sampler, chunks: int, side: int, relation: int = 0
) -> tuple[Ints, npt.NDArray[np.float32]]:
    """Draw the pools of many chunks, ``[chunks, num_drawn]``."""
    nodes = np.empty((chunks, config.num_drawn), np.int64)
    bias = np.empty((chunks, config.num_drawn), np.float32)
    pools = layout(config)
    for c in range(chunks):
        key = np.uint64(mix64(np.uint64(c)))
        draw_pools(pools, sampler, key, side, relation, 0, nodes[c], bias[c])
    return nodes, bias


def plain_sampler(weights: npt.NDArray[np.float64]) -> Sampler:
    shares = np.empty((1, weights.size), np.float32)
    aliases = np.empty((1, weights.size), np.uint32)
    build_alias(weights, shares[0], aliases[0])
    return Sampler(
        num_nodes=weights.size,
        shares=shares,
        aliases=aliases,
        type_begins=np.array([0, 2, 2, 5]),
        type_nodes=np.array([1, 3, 0, 1, 2], dtype=np.uint32),
        pool_bias=np.zeros(2, np.float32),
        node_bias=np.empty((1, 0), np.float32),
        has_type_bias=np.zeros(2, np.uint8),
        edge_bias=np.empty(0, np.float32),
    )


def implied(share: npt.NDArray[np.float32], alias: npt.NDArray[np.uint32]) -> Floats:
    """Return the distribution that an alias table gives."""
    rest = np.bincount(alias, weights=1.0 - share, minlength=len(share))
    return np.asarray((share + rest) / len(share))


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.75, 1.0])
def test_alias_table_holds_the_distribution_exactly(alpha: float) -> None:
    degrees = np.random.default_rng(0).zipf(1.6, 5000).clip(0, 10**6) - 1
    weights = degrees.astype(np.float64) ** alpha
    share, alias = np.empty(5000, np.float32), np.empty(5000, np.uint32)
    build_alias(weights, share, alias)
    np.testing.assert_allclose(implied(share, alias), weights / weights.sum(), atol=1e-9)
    assert share.min() >= 0
    assert share.max() <= 1


def test_alias_table_of_one_node() -> None:
    share, alias = np.empty(1, np.float32), np.empty(1, np.uint32)
    build_alias(np.array([3.0]), share, alias)
    assert (share.tolist(), alias.tolist()) == ([1.0], [0])


@pytest.mark.parametrize("side", [SRC, DST])
@pytest.mark.parametrize("kind", ["uniform", "degree", "type"])
def test_draws_follow_their_distribution(kind: str, side: int) -> None:
    weights = np.array([0.0, 1.0, 7.0, 2.0, 2.5, 0.5])
    expected = {
        "uniform": np.ones(6),
        "degree": weights,
        "type": np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]),
    }[kind]
    pool = PoolConfig(kind=kind, num=100)  # type: ignore[arg-type]  # a parameter
    config = EmbeddingConfig(negatives=(pool,))
    nodes, _ = draw(config, plain_sampler(weights), 400, side, relation=2)
    counts = np.bincount(nodes.ravel(), minlength=6)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    share = expected[possible] / expected.sum()
    test = scipy.stats.chisquare(counts[possible], share * counts.sum())
    assert test.pvalue > 0.01
    later = np.corrcoef(nodes[:, :-1].ravel(), nodes[:, 1:].ravel())[0, 1]
    assert abs(later) < 0.02  # neighboring draws are independent


def test_pools_and_sides_are_drawn_independently() -> None:
    pools = (PoolConfig(kind="uniform", num=50), PoolConfig(kind="uniform", num=50))
    config = EmbeddingConfig(negatives=pools)
    sampler = plain_sampler(np.ones(1000))
    dst, _ = draw(config, sampler, 100, DST)
    src, _ = draw(config, sampler, 100, SRC)
    for a, b in ((dst[:, :50], dst[:, 50:]), (dst, src), (dst[1:], dst[:-1])):
        assert np.mean(a == b) < 0.01


def test_the_usual_pool_keeps_its_draws() -> None:
    config = EmbeddingConfig(num_uniform_negatives=20)
    nodes, _ = draw(config, plain_sampler(np.ones(77)), 1, DST)
    key = int(mix64(np.uint64(0)))
    wanted = [int(mix64(np.uint64((key + 2 * u + 1) % 2**64))) % 77 for u in range(20)]
    assert nodes[0].tolist() == wanted  # as runs of earlier versions drew them


def ring_edges(graph: Graph) -> set[tuple[int, int, int]]:
    """Return all training edges as global (src, relation, dst)."""
    kind = graph.edge_types[0]
    edges = set()
    src_first, dst_first = graph.offsets(kind.src_type), graph.offsets(kind.dst_type)
    for i, j in graph.buckets(kind):
        bucket = graph.bucket(kind, i, j)
        assert bucket.relation is not None
        edges |= set(
            zip(
                (bucket.src + src_first[i]).tolist(),
                bucket.relation.tolist(),
                (bucket.dst + dst_first[j]).tolist(),
                strict=True,
            )
        )
    return edges


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("side", [SRC, DST])
def test_types_and_degrees_are_those_of_training(
    make_ring: Callable[[int], Graph], partitions: int, side: int
) -> None:
    graph = make_ring(partitions)
    config = EmbeddingConfig(
        negatives=(
            PoolConfig(kind="type", num=4, importance=True),
            PoolConfig(kind="degree", num=6, alpha=0.5, importance=True),
            PoolConfig(kind="uniform", num=5, importance=True),
        )
    )
    (relations,) = relation_sets(graph, config)
    negatives, edges = Negatives(graph, config), ring_edges(graph)
    offsets, kind = graph.offsets("entity"), relations.edge_type
    for step in list_steps(graph, [relations], config):
        part = (step.src, step.dst)[side][1]
        low, high = offsets[part], offsets[part + 1]
        chosen = bucket_edges(graph, config, step)
        sampler = negatives.sampler(relations, step, chosen, side)
        for r in range(3):
            answers = {(s, d)[side] - low for s, q, d in edges if q == r}
            first, last = sampler.type_begins[r], sampler.type_begins[r + 1]
            found = sampler.type_nodes[first:last].tolist()
            assert found == sorted(a for a in answers if 0 <= a < high - low)
        degrees = np.bincount([(s, d)[side] for s, _, d in edges], minlength=40)[low:high]
        q = degrees**0.5 / np.sum(degrees**0.5)
        np.testing.assert_allclose(
            implied(sampler.shares[0], sampler.aliases[0]), q, atol=1e-6
        )
        # E[sum of exp(bias)] over a pool: a third of the other nodes, for each pool
        nodes, bias = draw(config, sampler, 1, side, relation=1)
        size = sampler.type_begins[2] - sampler.type_begins[1]
        np.testing.assert_allclose(
            np.exp(bias[0, :4]), size / 4 * 39 / (high - low) / 3, rtol=1e-5
        )
        np.testing.assert_allclose(
            np.exp(bias[0, 4:10]),
            39 / (high - low) / 3 / (6 * q[nodes[0, 4:10]]),
            rtol=1e-5,
        )
        np.testing.assert_allclose(np.exp(bias[0, 10:]), 39 / 5 / 3, rtol=1e-5)
        assert graph.edge_types[0] == kind


@pytest.mark.parametrize("reciprocal", [False, True])
def test_batch_bias_is_minus_the_log_of_the_frequency(
    make_ring: Callable[[int], Graph], reciprocal: bool
) -> None:
    graph = make_ring(3)
    pools = (PoolConfig(kind="batch", num=8, importance=True),)
    config = EmbeddingConfig(negatives=pools, reciprocal=reciprocal)
    (relations,) = relation_sets(graph, config)
    negatives = Negatives(graph, config)
    for step in list_steps(graph, [relations], config):
        edges = bucket_edges(graph, config, step)
        num_nodes = int(np.diff(graph.offsets("entity"))[step.bucket[1]])
        bias = negatives.sampler(relations, step, edges, DST).edge_bias
        for e in range(len(edges.dst)):
            same = np.ones(len(edges.dst), bool)
            if not reciprocal:  # then a chunk has one relation
                same = edges.relation == edges.relation[e]
            share = np.mean(edges.dst[same] == edges.dst[e])
            assert bias[e] == pytest.approx(-np.log(share) + np.log(39 / num_nodes), 1e-5)


def mask_by_hand(
    edges: set[tuple[int, int, int]], side: int, query: int, relation: int, nodes: Ints
) -> list[int]:
    def is_known(node: int) -> bool:
        pair = (query, relation, node) if side == DST else (node, relation, query)
        return pair in edges

    return [j for j, node in enumerate(nodes.tolist()) if is_known(node)]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("side", [SRC, DST])
def test_masks_equal_brute_force(
    make_ring: Callable[[int], Graph], partitions: int, side: int
) -> None:
    graph = make_ring(partitions)
    config = EmbeddingConfig(mask_known_edges=True)
    (relations,) = relation_sets(graph, config)
    negatives, edges = Negatives(graph, config), ring_edges(graph)
    offsets, num_masked = graph.offsets("entity"), 0
    rng = np.random.default_rng(5)
    for step in list_steps(graph, [relations], config):
        known = negatives.known(relations, step, side)
        query, answer = step.bucket if side == DST else step.bucket[::-1]
        sizes = np.diff(offsets)
        n, k = 50, 40
        rows = rng.integers(0, sizes[query], n)
        codes = np.sort(rng.integers(0, 3, n))
        nodes = rng.integers(0, sizes[answer], k)
        masks = Masks(np.empty(n + 1, np.int64), np.empty(n * k, np.int32))
        find_known(known, rows, codes, n, nodes, k, masks)
        for i in range(n):
            found = masks.positions[masks.starts[i] : masks.starts[i + 1]]
            wanted = mask_by_hand(
                edges,
                side,
                int(rows[i] + offsets[query]),
                int(codes[i]),
                nodes + offsets[answer],
            )
            assert sorted(found.tolist()) == wanted
            num_masked += len(wanted)
    assert num_masked > 20


@pytest.mark.parametrize("has_relations", [False, True])
def test_masks_of_long_rows_and_repeated_edges(has_relations: bool) -> None:
    rng = np.random.default_rng(1)
    lengths = np.array([900, 0, 3, 400])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32)
    indices = np.concatenate([np.sort(rng.integers(0, 500, m)) for m in lengths])
    relation = rng.integers(0, 3, len(indices)).astype(np.uint16)
    if not has_relations:
        relation = relation[:0]
    known = Known(indptr, indices.astype(np.uint32), relation, 100, 300)
    rows, codes = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 2])
    for k in (5, 2000):  # the row is the longer one, or the candidates are
        nodes = rng.integers(0, 300, k)
        masks = Masks(np.empty(6, np.int64), np.empty(5 * k, np.int32))
        find_known(known, rows, codes, 5, nodes, k, masks)
        for i in range(5):
            row = slice(int(indptr[rows[i]]), int(indptr[rows[i] + 1]))
            answers = indices[row]
            if has_relations:
                answers = answers[relation[row] == codes[i]]
            wanted = np.flatnonzero(np.isin(nodes + 100, answers))
            found = np.sort(masks.positions[masks.starts[i] : masks.starts[i + 1]])
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("first", [0, 6])
def test_the_hardest_candidates_count(first: int) -> None:
    rng = np.random.default_rng(2)
    n, num_uniform, num_drawn, num_kept = 6, 4, 30, 10
    hard = slice(n + num_uniform, None)
    nodes = np.concatenate([np.arange(n + num_uniform), np.arange(25), [3, 3, 7, 0, 24]])
    scores = rng.normal(size=(n, len(nodes))).astype(np.float32)
    positives = np.diag(scores).copy()
    masks = Masks(np.array([0, 2, 2, 2, 2, 2, 4]), np.array([1, 19, 19, 20], np.int32))
    counting = CandidateWeights(
        masks,
        np.array([0, num_uniform, num_uniform + num_drawn]),
        np.array([0, num_kept]),
        True,
        np.empty(0, np.float32),
    )
    wanted = scores.astype(np.float64)
    wanted[[0, 0, 5, 5], [1, 19, 19, 20]] = -np.inf
    beats = 1 / (1 + np.exp(positives[:, None] - wanted[:, hard]))
    beats[nodes[hard] == nodes[:n, None]] = 0
    mean = beats.mean(0)
    mean[25:] = -1  # repetitions
    easy = np.argsort(-mean)[num_kept:]
    wanted[:, n + num_uniform + easy] = -np.inf
    found = scores[:, first:].copy()
    assert leave_out(found, positives, nodes, counting, first) == num_drawn - num_kept
    np.testing.assert_allclose(found, wanted[:, first:], rtol=1e-6)


def test_plain_counting_leaves_nothing_out() -> None:
    scores = np.ones((2, 3), np.float32)
    assert leave_out(scores, scores[:, 0], np.arange(3), plain_counting(), 0) == 0
    assert (scores == 1).all()


def test_tables_of_partitions_that_left_are_forgotten(
    make_ring: Callable[[int], Graph],
) -> None:
    graph = make_ring(3)
    config = EmbeddingConfig(negatives=(PoolConfig(kind="degree", num=4),))
    (relations,) = relation_sets(graph, config)
    negatives = Negatives(graph, config)
    for step in list_steps(graph, [relations], config):
        negatives.hold([step.src, step.dst])
        edges = bucket_edges(graph, config, step)
        first = negatives.sampler(relations, step, edges, DST)
        again = negatives.sampler(relations, step, edges, DST)
        assert first.shares is again.shares
        assert step.bucket == Bucket(*step.bucket)
    negatives.hold([])
    assert negatives.sampler(relations, step, edges, DST).shares is not first.shares


@pytest.mark.parametrize(
    ("indptr", "relation"), [([0, 3, 2], [0, 0]), ([0, 1, 3], [0, 0]), ([0, 1, 2], [0, 5])]
)
def test_an_altered_index_is_refused(
    make_ring: Callable[[int], Graph], indptr: list[int], relation: list[int]
) -> None:
    index = Csr(
        indptr=np.array(indptr, np.uint32),
        indices=np.zeros(2, np.uint32),
        relation=np.array(relation, np.uint16),
    )
    message = r"edge type 'triple' .* outside of its range"
    with pytest.raises(CorruptStoreError, match=message):
        require_sound(index, 3, "'triple'", make_ring(1))
