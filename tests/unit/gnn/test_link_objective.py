"""Seeds, negatives, losses and trimming of link prediction, one by one, against NumPy."""

from typing import Any

import numpy as np
import pytest
import torch

from graphsys.core.types import EdgeType
from graphsys.gnn.data.loader import Batch
from graphsys.gnn.data.positive_pairs import make_pairs, read_pairs
from graphsys.gnn.part_specs import TASKS
from graphsys.gnn.process_group import ProcessGroup
from graphsys.gnn.tasks.link_prediction import LinkPrediction, Recommendation
from graphsys.gnn.tasks.link_ranking import rank_pairs
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.sampling import NeighborSampler, message_rows
from graphsys.sampling.adjacency import REVERSED
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.tasks.test_link_prediction import config_of, edges_seen
from tests.unit.gnn.tasks.test_link_prediction import pins as pins  # a fixture

SCORES = torch.tensor([[1.0], [0.0], [-0.5]])
OTHERS = torch.tensor([[0.5, -1.0], [2.0, 0.1], [-0.5, -0.7]])


def batch_of(number: int, places: dict[str, Any]) -> Batch:
    return Batch(number=number, seeds={}, places=places, hops=[], x={}, num_edges=0)


def draw_of(task: Any, epoch: int, number: int) -> Any:
    """Return the sources, destinations and all else of a batch of readers and books."""
    seeds = task.seeds(epoch)[number]
    books, size = seeds["book"], len(seeds["reader"])
    return seeds["reader"], books[:size], books[size:]


def test_losses_of_pairs_are_their_formulas() -> None:
    positive, negative = SCORES.double().numpy(), OTHERS.double().numpy()

    def softplus(x: Any) -> Any:
        return np.log(1 + np.exp(x))

    wanted = {
        "logistic": softplus(-positive).mean() + softplus(negative).mean(),
        "bpr": softplus(negative - positive).mean(),
        "softmax": -np.log(
            np.exp(positive[:, 0]) / (np.exp(positive[:, 0]) + np.exp(negative).sum(1))
        ).mean(),
        "margin": np.maximum(negative - positive + 0.3, 0).mean(),
    }
    for loss, value in wanted.items():
        found = pair_loss(config_of(loss=loss, margin=0.3), SCORES, OTHERS)
        assert found.item() == pytest.approx(value, rel=1e-5), loss


@pytest.mark.parametrize("negatives", [0, 1, 700])
@pytest.mark.parametrize("scale", [1.0, 100.0, 1e30])
def test_softmax_has_the_value_and_gradients_of_torch(negatives: int, scale: float) -> None:
    made = torch.Generator().manual_seed(negatives)
    positive = torch.randn(50, 1, generator=made) * (scale / 9)
    negative = torch.randn(50, negatives, generator=made) * (scale / 9)
    negative[::3, :5] = -torch.inf  # what is left out
    ours = [it.clone().requires_grad_() for it in (positive, negative)]
    others = [it.double().requires_grad_() for it in (positive, negative)]
    loss = pair_loss(config_of(loss="softmax"), *ours)
    loss.backward()  # type: ignore[no-untyped-call]
    classes = torch.zeros(50, dtype=torch.int64)
    wanted = torch.nn.functional.cross_entropy(torch.cat(others, dim=1), classes)
    wanted.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)
    for own, other in zip(ours, others, strict=True):
        assert own.grad is not None
        assert other.grad is not None
        np.testing.assert_allclose(
            own.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-7
        )


def test_softmax_holds_its_scores_once() -> None:
    positive, negative = torch.randn(4, 1), torch.randn(4, 1000)
    held = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        held.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda it: it):
        pair_loss(config_of(loss="softmax"), positive.requires_grad_(), negative)
    assert sum(held) < 1.1 * negative.numel()


@pytest.mark.parametrize("in_batch", [False, True])
@pytest.mark.parametrize("has_two_types", [True, False])
def test_the_loss_compares_each_pair_with_shared_own_and_other_nodes(
    library: Graph, groups: Store, has_two_types: bool, in_batch: bool
) -> None:
    graph = library if has_two_types else groups(1)
    config = config_of(
        batch_size=3,
        num_negatives=2,
        alike_negatives=2,
        alike="label",
        loss="softmax",
        in_batch=in_batch,
    )
    task = LinkPrediction(graph, config)
    task.seeds(0)
    generator = torch.Generator().manual_seed(1)
    ends = torch.randn(9, 2, generator=generator)  # of 3 destinations, 2 shared, 4 own...
    ends = torch.cat([ends, torch.randn(2, 2, generator=generator)])  # ... and 6 own
    query = torch.randn(3, 2, generator=generator)
    places = torch.tensor([0, 1, 0, *range(3, 11)])  # the third's is the first's
    if has_two_types:
        rows = {"reader": query, "book": ends}
        where = {"reader": torch.arange(3), "book": places}
    else:
        rows = {"node": torch.cat([query, ends])}
        where = {"node": torch.cat([torch.arange(3), 3 + places])}
    found = task.loss(rows, batch_of(0, where)).item()
    q, e = query.double().numpy(), ends.double().numpy()
    losses = []
    for k, own in enumerate((0, 1, 0)):
        negatives = [3, 4, 5 + 2 * k, 6 + 2 * k]
        if in_batch:
            negatives += [place for place in (0, 1, 0) if place != own]
        scores = e[negatives] @ q[k]
        positive = e[own] @ q[k]
        losses.append(np.log(np.exp(positive) + np.exp(scores).sum()) - positive)
    assert found == pytest.approx(np.mean(losses), rel=1e-5)


def test_the_terms_of_a_batch_are_its_pairs(library: Graph) -> None:
    task = LinkPrediction(library, config_of(batch_size=60))
    batches = task.seeds(0)
    assert len(batches) == 4
    found = [task.num_terms(batch_of(k, {})) for k in range(4)]
    assert found == [60, 60, 60, 20]
    assert [len(seeds["reader"]) for seeds in batches] == found
    assert [len(seeds["reader"]) for seeds in batches[1:4:2]] == [60, 20]
    for number in (-1, 4):
        with pytest.raises(IndexError, match=str(number)):
            batches[number]
    assert len(LinkPrediction(library, config_of(batch_size=0)).seeds(0)) == 1
    every = read_pairs(library, "reads")
    assert task._now.all_pairs(1).tolist() != every[60:120].tolist()  # shuffled


def test_processes_of_a_team_share_the_pairs_and_hide_them_all(library: Graph) -> None:
    task = LinkPrediction(library, config_of(batch_size=60))
    task.process_group = ProcessGroup(rank=1, world_size=2)
    batches = task.seeds(0)
    assert batches.pairs_of(3).tolist() == batches.all_pairs(3)[1::2].tolist()
    assert batches[3]["reader"].tolist() == batches.all_pairs(3)[1::2, 0].tolist()
    assert task.num_terms(batch_of(3, {})) == 20


def test_shared_negatives_are_any_nodes_and_change_with_batch_and_epoch(
    library: Graph,
) -> None:
    task = LinkPrediction(library, config_of(num_negatives=300))
    assert task.num_shared == 300
    drawn = [draw_of(task, epoch, k)[2] for epoch, k in ((0, 0), (0, 1), (1, 0))]
    assert all(len(part) == 300 for part in drawn)
    assert len({tuple(part.tolist()) for part in drawn}) == 3
    counts = np.bincount(drawn[0], minlength=24)
    assert len(counts) == 24
    assert counts.min() > 0  # of both tastes, read or not
    assert counts.max() < 40  # 12.5 each, uniform


def test_negatives_of_a_pair_are_no_known_answers(library: Graph) -> None:
    config = config_of(negatives_of="pair", num_negatives=9)
    task = LinkPrediction(library, config)
    assert task.num_shared == 0
    src, _, own = draw_of(task, 0, 1)
    drawn = own.reshape(len(src), 9)
    known = set(map(tuple, read_pairs(library, "reads").tolist()))
    queries = np.repeat(src, 9).tolist()
    assert not set(zip(queries, drawn.ravel().tolist(), strict=True)) & known
    assert len(np.unique(drawn)) > 15


def star(tmp_path: Any, *, is_directed: bool = True) -> Graph:
    """Return a graph of 40 nodes in which 0 and 1 have all edges but one."""
    pairs = [(v, v % 2) for v in range(2, 40)]
    make_store(
        tmp_path / f"star{is_directed}",
        edge_chunk([*pairs, (0, 39)]),
        is_directed=is_directed,
    )
    return Graph(tmp_path / f"star{is_directed}")


def test_negatives_by_degree_follow_the_degrees_of_the_second_ends(tmp_path: Any) -> None:
    graph = star(tmp_path)
    config = config_of(num_negatives=2000, negatives="degree", batch_size=4)
    seeds = LinkPrediction(graph, config).seeds(0)[0]["node"]
    counts = np.bincount(seeds[8:], minlength=40)
    degrees = np.zeros(40)
    for _, dst in read_pairs(graph, "edge"):
        degrees[dst] += 1
    wanted = 2000 * degrees**0.75 / (degrees**0.75).sum()
    assert counts.sum() == 2000
    assert (counts[degrees == 0] == 0).all()
    assert np.abs(counts - wanted).max() < 5 * np.sqrt(1000)
    flat = config_of(num_negatives=2000, batch_size=4)
    uniform = LinkPrediction(graph, flat).seeds(0)[0]["node"]
    assert np.bincount(uniform[8:], minlength=40).min() > 20  # 50 each


def test_negatives_alike_are_no_known_answers_within_one_type(groups: Store) -> None:
    graph = groups(1)
    config = config_of(
        alike_negatives=4, alike="label", num_negatives=5, batch_size=30, seed=3
    )
    task = LinkPrediction(graph, config)
    labels = np.array(graph.node_column("node", "label").to_pylist())
    drawn = []
    for epoch, number in ((0, 0), (0, 1), (1, 0)):
        seeds = task.seeds(epoch)[number]["node"]
        src, dst = np.split(seeds[:60], 2)
        alike = seeds[65:].reshape(30, 4)
        assert (labels[alike] == labels[dst][:, None]).all()
        assert (alike != dst[:, None]).all()
        known = read_pairs(graph, "edge")
        both = set(map(tuple, np.concatenate([known, known[:, ::-1]]).tolist()))
        queries = np.repeat(src, 4).tolist()
        assert not set(zip(queries, alike.ravel().tolist(), strict=True)) & both
        drawn.append(alike.tolist())
    assert drawn[0] != drawn[1] != drawn[2] != drawn[0]


def hidden_and_seen(task: Any, number: int) -> tuple[set[Any], dict[str, set[Any]]]:
    """Return the pairs of a batch, and what its blocks hold without and with trimming."""
    pairs = task._now.all_pairs(number)
    graph, kind = task.graph, task.pairs
    ends = {kind.src_type: pairs[:, 0], kind.dst_type: pairs[:, 1]}
    if kind.src_type == kind.dst_type:
        ends = {kind.src_type: pairs.ravel()}
    sample = NeighborSampler(message_rows(graph), [-1, -1]).sample(ends)
    name, trimmed = kind.edge_type, task.trim(sample, number)
    back = {(d, s) for s, d in edges_seen(trimmed, name + REVERSED)}
    seen = {
        "before": edges_seen(sample.layers, name),
        "along": edges_seen(trimmed, name),
        "against": back,
    }
    return set(map(tuple, pairs.tolist())), seen


@pytest.mark.parametrize(
    "process_group", [ProcessGroup(), ProcessGroup(rank=1, world_size=2)]
)
def test_the_edges_of_the_whole_batch_are_hidden_and_no_others(
    library: Graph, process_group: ProcessGroup
) -> None:
    task = LinkPrediction(library, config_of(batch_size=40))
    task.process_group = process_group
    task.seeds(0)
    hidden, seen = hidden_and_seen(task, 2)
    assert len(hidden) == 40
    assert hidden < seen["before"]
    assert seen["along"] == seen["before"] - hidden
    assert seen["against"] == seen["along"]


def test_edges_of_an_undirected_type_are_hidden_both_ways(groups: Store) -> None:
    task = LinkPrediction(groups(1), config_of(batch_size=10))
    task.seeds(0)
    hidden, seen = hidden_and_seen(task, 1)
    both = hidden | {(d, s) for s, d in hidden}
    assert both < seen["before"]
    assert seen["along"] == seen["before"] - both


def test_an_edge_against_a_hidden_one_is_another_where_edges_are_directed(
    tmp_path: Any,
) -> None:
    pairs = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 2)]
    make_store(tmp_path / "two", edge_chunk(pairs))
    task = LinkPrediction(Graph(tmp_path / "two"), config_of(batch_size=1))
    task.seeds(0)
    for number in range(5):
        hidden, seen = hidden_and_seen(task, number)
        ((s, d),) = hidden
        assert (s, d) in seen["before"]
        assert (s, d) not in seen["along"] | seen["against"]
        if (d, s) in seen["before"]:
            assert (d, s) in seen["along"]


@pytest.mark.parametrize(
    ("changes", "is_trimmed"),
    [
        ({}, True),
        ({"positives": "walks", "node_type": "pin"}, False),
        ({"model": "pinsage", "positives": "walks", "node_type": "pin"}, False),
    ],
)
def test_pairs_that_are_no_edges_have_none_to_hide(
    pins: Graph, changes: dict[str, Any], is_trimmed: bool
) -> None:
    task = LinkPrediction(pins, config_of(**changes))
    assert (task.trim is not None) == is_trimmed
    assert task.node_type == "pin"


def test_walks_from_the_sources_have_negatives_of_the_sources(pins: Graph) -> None:
    config = config_of(
        positives="walks", node_type="board", negatives_of="pair", num_negatives=30
    )
    task = LinkPrediction(pins, config)
    seeds = task.seeds(0)[0]["board"]
    size = len(task._now.pairs_of(0))
    assert size > 5
    assert set(seeds[2 * size :].tolist()) <= set(range(12))


def test_hard_negatives_are_drawn_evenly_from_the_middle_ranks(pins: Graph) -> None:
    config = config_of(
        model="pinsage",
        positives="walks",
        hard_negatives=40,
        hard_ranks=(2, 6),
        batch_size=10,
        walk_length=3,
    )
    task = LinkPrediction(pins, config)
    ranker = task._ranks
    assert ranker is not None
    assert (ranker.num_walks, ranker.walk_length) == (16, 3)  # 48 visits for 6 ranks
    assert (ranker.restart, ranker.seed) == (config.restart, config.seed)
    assert task.seeds(0)[0]["pin"].shape == (2 * 10 + 20,)
    seeds = task.seeds(40)[0]["pin"]
    hard = seeds[40:].reshape(10, 40)
    indptr, ranked, _ = ranker.neighborhoods(seeds[:10], 4, skip=2)
    for k in range(10):
        own = ranked[indptr[k] : indptr[k + 1]].tolist()
        assert 3 <= len(own) <= 4
        assert set(hard[k].tolist()) == set(own)
    assert task.seeds(40)[1]["pin"][40:].tolist() != seeds[40:].tolist()


def test_a_query_that_walks_visit_nothing_from_has_uniform_hard_negatives(
    pins: Graph,
) -> None:
    config = config_of(
        model="pinsage",
        positives="walks",
        hard_negatives=9,
        hard_ranks=(38, 40),
        batch_size=10,
    )
    task = LinkPrediction(pins, config)
    drawn = task._draw_hard(np.arange(10), 9, 0)
    assert drawn.shape == (10, 9)
    assert len(np.unique(drawn)) > 25  # of 40 pins: no query visits so many
    again = task._draw_hard(np.arange(10), 9, 1)
    assert drawn.tolist() != again.tolist()
    shared = task._negatives.draw(np.arange(10), 9, epoch=9, batch=1)
    assert drawn.tolist() != shared.tolist()


def rows_of_library() -> Any:
    generator = torch.Generator().manual_seed(4)
    rows = {
        "reader": torch.randn(30, 3, generator=generator),
        "book": torch.randn(24, 3, generator=generator),
    }

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        return rows[node_type][nodes]

    return output


def test_what_is_watched_is_the_metric_of_the_watched_split(library: Graph) -> None:
    output, pairs = rows_of_library(), make_pairs(library, config_of())
    found = LinkPrediction(library, config_of()).watch(output)
    mrr = rank_pairs(library, pairs, "valid", output)["mrr"]
    assert found == (1 - mrr, mrr)
    assert 0 < mrr < 1
    assert LinkPrediction(library, config_of(eval_split="test")).watch(output) != found
    assert LinkPrediction(library, config_of(eval_split="nowhere")).watch(output) is None


def test_rows_are_the_network_s_or_the_mean_of_neighbors(tmp_path: Any) -> None:
    kind = EdgeType("board", "holds", "pin")
    make_store(tmp_path / "g", edge_chunk([(0, 0), (0, 1), (1, 2)], kind))
    graph = Graph(tmp_path / "g")
    config: dict[str, Any] = {"positives": "walks", "node_type": "pin", "dim": 2}
    rows = torch.tensor([[1.0, 0.0], [3.0, 2.0], [5.0, 5.0]])

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        assert node_type == "pin"
        return rows[nodes]

    task = LinkPrediction(graph, config_of(**config))
    assert task.row_types() == ["board", "pin"]
    assert task.rows(output, "pin").tolist() == rows.tolist()
    boards = task.rows(output, "board").tolist()
    ids = graph.node_ids("pin").to_pylist()
    near = {0: [ids.index(0), ids.index(1)], 1: [ids.index(2)]}
    wanted = [
        rows[near[it]].mean(dim=0).tolist() for it in graph.node_ids("board").to_pylist()
    ]
    assert boards == wanted


def test_pairs_of_walks_are_watched_by_links_and_by_recommendations(tmp_path: Any) -> None:
    kind = EdgeType("board", "holds", "pin")
    pairs = [(b, p) for b in range(4) for p in range(6) if (b + p) % 2]
    make_store(
        tmp_path / "g", edge_chunk(pairs[:9], kind), edge_chunk(pairs[9:], kind, "valid")
    )
    graph = Graph(tmp_path / "g")
    config: dict[str, Any] = {"positives": "walks", "node_type": "pin", "dim": 2}

    def output(node_type: str, nodes: Any) -> torch.Tensor:
        return torch.ones(len(nodes), 2)

    watched = LinkPrediction(graph, config_of(**config)).watch(output)
    assert watched is not None  # the boards, which have no rows, are the mean of their pins
    assert watched[0] == 1 - watched[1]
    assert 0 < watched[1] < 1
    recommended = config_of(**config, task="recommendation")
    found = Recommendation(graph, recommended).watch(output)
    assert found == (0, 1)  # there are fewer than 20 pins


def test_tasks_of_links_say_so() -> None:
    assert {name for name in TASKS.names() if TASKS.get(name).is_of_links} >= {
        "link_prediction",
        "recommendation",
    }
    assert not TASKS.get("node_classification").is_of_links
    assert TASKS.get("node_classification").has_times
