"""Layer-wise samples: right on average, of the wanted size, with the least variance."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.core.types import EdgeType
from graphsys.sampling import PartitionedCsr, Sample, message_rows
from graphsys.sampling.layerwise import LayerSampler, chances_of
from tests.stores import edge_chunk, make_store

Floats = npt.NDArray[np.float64]
NUM = 40
READS = EdgeType("reader", "reads", "book")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[PartitionedCsr]:
    """Return readers and books in partitions; some books have many readers."""
    rng = np.random.default_rng(4)
    pairs = [(r, b) for r in range(NUM) for b in range(NUM) if rng.random() < 3 / (b + 3)]
    graph = make_store(
        tmp_path_factory.mktemp("rows") / "g",
        edge_chunk(pairs, READS),
        partitions={"reader": 3, "book": 2},
    ).graph
    return message_rows(graph)


def dense(rows: PartitionedCsr) -> Floats:
    """Return the matrix of means over neighbors, ``[N, M]``."""
    found = np.zeros((rows.num_nodes, rows.num_neighbors))
    begins = rows.offsets[:-1]
    for begin, index in zip(begins, rows.indexes, strict=True):
        for k in range(len(index.indptr) - 1):
            own = index.indices[index.indptr[k] : index.indptr[k + 1]]
            np.add.at(found[begin + k], own.astype(np.int64), 1 / max(len(own), 1))
    return found


def weighted(sample: Sample, name: str, shape: tuple[int, int]) -> Floats:
    """Return the weights of a sample's first hop as a matrix over all nodes."""
    block = sample.layers[-1][name]
    assert block.weight is not None
    found = np.zeros(shape)
    own = np.repeat(block.dst_nodes, np.diff(block.indptr))
    np.add.at(found, (own, block.src_nodes[block.indices]), block.weight)
    return found


def test_weights_are_those_of_the_mean_on_average(rows: list[PartitionedCsr]) -> None:
    (by_book,) = [r for r in rows if r.node_type == "reader"]
    wanted, seeds = dense(by_book), np.arange(NUM)[::-3]
    sampler = LayerSampler(rows, [8], seed=1)
    total, sizes = np.zeros_like(wanted), []
    times = 4000
    for batch in range(times):
        with sampler.sample({"reader": seeds}, batch=batch) as sample:
            total += weighted(sample, by_book.name, wanted.shape)
            sizes.append(len(np.unique(sample.layers[-1][by_book.name].indices)))
    assert np.mean(sizes) == pytest.approx(8, abs=0.15)
    np.testing.assert_allclose(total[seeds] / times, wanted[seeds], atol=0.03)
    assert not total[np.setdiff1d(np.arange(NUM), seeds)].any()


def test_all_sources_are_kept_where_there_are_no_more(rows: list[PartitionedCsr]) -> None:
    for counts in ([NUM], [-1]):
        with LayerSampler(rows, counts).sample({"book": np.arange(NUM)}) as sample:
            for each in rows:
                if each.node_type == "book":
                    found = weighted(sample, each.name, (NUM, NUM))
                    np.testing.assert_allclose(found, dense(each), rtol=1e-6)


def test_no_other_chances_have_less_variance() -> None:
    """The variance of a Poisson sample's sums is the sum of ``w_u (1 / p_u - 1)``."""
    rng = np.random.default_rng(2)
    weights = rng.pareto(1.0, 30) + 0.01
    chances = chances_of(weights, 12)
    assert chances.sum() == pytest.approx(12)
    assert (chances == 1).any()
    least = float((weights * (1 / chances - 1)).sum())
    for _ in range(2000):
        a, b = rng.choice(30, 2, replace=False)
        moved = min(chances[a], 1 - chances[b]) * rng.random()
        other = chances.copy()
        other[a] -= moved
        other[b] += moved
        if other[a] > 0:
            assert (weights * (1 / other - 1)).sum() >= least - 1e-9


def test_a_sample_is_the_same_whoever_asks_and_whatever_was_before(
    rows: list[PartitionedCsr],
) -> None:
    def draw(sampler: LayerSampler) -> list[object]:
        with sampler.sample({"reader": np.arange(9)}, epoch=1, batch=2) as sample:
            return [
                [getattr(block, field).tolist() for field in ("indptr", "indices", "edge")]
                for layer in sample.layers
                for block in layer.values()
            ]

    used = LayerSampler(rows, [5, 5], seed=3)
    with used.sample({"book": np.arange(20)}):
        pass
    assert draw(used) == draw(LayerSampler(rows, [5, 5], seed=3))
    assert draw(used) != draw(LayerSampler(rows, [5, 5], seed=4))


def test_hops_grow_by_so_many_nodes_not_by_a_factor(rows: list[PartitionedCsr]) -> None:
    sampler = LayerSampler(rows, [4, 4, 4], seed=5)
    sizes = []
    for batch in range(200):
        with sampler.sample({"reader": np.arange(6)}, batch=batch) as sample:
            sizes.append(sum(len(nodes) for nodes in sample.nodes.values()))
    assert np.mean(sizes) <= 6 + 2 * 3 * 4


@pytest.mark.parametrize("counts", [[0], [-2], [3, 0]])
def test_counts_out_of_range_are_refused(
    rows: list[PartitionedCsr], counts: list[int]
) -> None:
    with pytest.raises(ConfigError, match=r"counts: got .*, expected an int >= 1, or -1"):
        LayerSampler(rows, counts)


def test_a_number_outside_the_graph_is_named_and_leaves_no_trace(
    tmp_path: Path,
) -> None:
    graph = make_store(tmp_path / "g", edge_chunk([(0, 1), (1, 2), (2, 0)])).graph
    (only, _) = message_rows(graph)
    sampler = LayerSampler([only], [2])
    sampler.rows = (replace(only, num_neighbors=2),)
    with pytest.raises(CorruptStoreError, match="names nodes outside the graph"):
        sampler.sample(np.array([0, 1, 2]))
