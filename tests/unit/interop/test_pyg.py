"""PyG's loaders over our stores, its layers on our blocks, its graphs in and out."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.gnn.models.layers.sage import SAGE
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.sampling import NeighborSampler
from graphsys.storage import EdgeChunk, Graph, NodeChunk
from tests.stores import make_store
from tests.unit.interop.conftest import (
    FOLLOWS,
    LIKES,
    NUM_NODES,
    USER,
    Store,
    entries,
    x_of,
)

pytest.importorskip("torch_geometric", reason="the extra pyg is not installed")

from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.nn import GATConv, SAGEConv
from torch_geometric.sampler import NegativeSampling
from torch_geometric.utils import trim_to_layer

from graphsys.interop import pyg

SEEDS = torch.tensor([5, 0, 39, 17])


def batch_of(graph: Graph, fanouts: Any, seeds: Any = SEEDS, **options: Any) -> Any:
    """Return the one batch of a NodeLoader over a store."""
    sampler = pyg.GraphsysSampler(graph, fanouts, **options)
    loader = NodeLoader(pyg.stores(graph), sampler, seeds, batch_size=64)
    (batch,) = loader
    return batch


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_batch_holds_true_edges_and_the_rows_of_its_nodes(
    store: Store, partitions: int
) -> None:
    graph = store(partitions=partitions)
    numbers = torch.from_numpy(graph.lookup("node", SEEDS.numpy()))
    batch = batch_of(graph, [3, 2], numbers)
    ids = graph.node_ids("node").to_numpy()
    assert batch.batch_size == 4
    assert batch.n_id[:4].tolist() == numbers.tolist()
    assert len(batch.n_id.unique()) == batch.num_nodes
    np.testing.assert_array_equal(batch.x, x_of(NUM_NODES)[ids[batch.n_id]])
    np.testing.assert_array_equal(batch.y, ids[batch.n_id] % 4)
    assert batch.train_mask.tolist() == (ids[batch.n_id] % 4 == 0).tolist()
    assert batch.val_mask.tolist() == (ids[batch.n_id] % 4 == 1).tolist()
    sampled = batch.n_id[batch.edge_index].T.numpy()
    np.testing.assert_array_equal(sampled, entries(graph)[batch.e_id])
    assert len(batch.e_id.unique()) == batch.num_edges


def test_fanouts_cut_rows_and_small_rows_are_whole(store: Store) -> None:
    graph = store()
    batch = batch_of(graph, [4])
    degrees = np.bincount(entries(graph)[:, 1], minlength=NUM_NODES)[SEEDS]
    sampled = torch.bincount(batch.edge_index[1], minlength=4)[:4]
    assert degrees.max() > 4
    assert sampled.tolist() == np.minimum(degrees, 4).tolist()


def test_all_neighbors_agree_with_pygs_own_subgraph(store: Store) -> None:
    from torch_geometric.utils import k_hop_subgraph

    graph = store()
    batch = batch_of(graph, [-1, -1])
    data = pyg.to_data(graph)
    nodes, *_ = k_hop_subgraph(SEEDS, 2, data.edge_index, num_nodes=NUM_NODES)
    assert sorted(batch.n_id.tolist()) == nodes.tolist()
    inner, *_ = k_hop_subgraph(SEEDS, 1, data.edge_index, num_nodes=NUM_NODES)
    wanted = np.isin(entries(graph)[:, 1], inner)
    assert sorted(batch.e_id.tolist()) == np.flatnonzero(wanted).tolist()


def test_hops_are_counted_so_that_trimming_gives_the_same(store: Store) -> None:
    batch = batch_of(store(), [3, 2])
    assert sum(batch.num_sampled_nodes) == batch.num_nodes
    assert sum(batch.num_sampled_edges) == batch.num_edges
    torch.manual_seed(0)
    layers = [SAGEConv(3, 5), SAGEConv(5, 2)]
    whole, trimmed, edges = batch.x, batch.x, batch.edge_index
    for place, layer in enumerate(layers):
        whole = layer(whole, batch.edge_index)
        trimmed, edges, _ = trim_to_layer(
            place, batch.num_sampled_nodes, batch.num_sampled_edges, trimmed, edges
        )
        trimmed = layer(trimmed, edges)
    torch.testing.assert_close(trimmed[:4], whole[:4])


def test_draws_follow_torchs_seed(store: Store) -> None:
    graph = store()
    torch.manual_seed(7)
    first, other = batch_of(graph, [3]), batch_of(graph, [3])
    torch.manual_seed(7)
    assert torch.equal(batch_of(graph, [3]).e_id, first.e_id)
    assert not torch.equal(other.e_id, first.e_id)


def test_columns_of_edges_come_by_transform_or_with_data(store: Store) -> None:
    graph = store(is_directed=False, partitions=2)
    sampler = pyg.GraphsysSampler(graph, [3, 3])
    seeds = torch.arange(6)
    ours, theirs = (
        next(iter(NodeLoader(data, sampler, seeds, batch_size=6, transform=transform)))
        for data, transform in (
            (pyg.stores(graph), pyg.EdgeAttributes(graph)),
            (pyg.to_data(graph), None),
        )
    )
    ids = graph.node_ids("node").to_numpy()
    for batch in (ours, theirs):
        low, high = np.sort(ids[batch.n_id[batch.edge_index]], axis=0)
        np.testing.assert_array_equal(batch.edge_weight, low + high + 1)
        np.testing.assert_array_equal(batch.edge_attr[:, 1], low * 100 + high)
    weights = pyg.GraphsysFeatureStore(graph).get_tensor("edge", "edge_weight", None)
    np.testing.assert_array_equal(weights, pyg.to_data(graph).edge_weight)
    with pytest.raises(UnknownNameError, match="no_such"):
        pyg.EdgeAttributes(graph, ("no_such",))


def test_graph_store_lists_edges_in_the_samplers_order(store: Store, shop: Graph) -> None:
    graph = store(partitions=3)
    row, col, _ = pyg.GraphsysGraphStore(graph).coo()
    np.testing.assert_array_equal(torch.stack([row, col], 1), entries(graph))
    rows, colptrs, _ = pyg.GraphsysGraphStore(shop, reverse=True).csc()
    assert set(rows) == {
        tuple(LIKES),
        tuple(FOLLOWS),
        ("item", "rev_likes", "user"),
        ("user", "rev_follows", "user"),
    }
    np.testing.assert_array_equal(rows[LIKES], entries(shop, "likes")[:, 0])
    assert len(colptrs["item", "rev_likes", "user"]) == USER + 1


def test_feature_store_takes_every_kind_of_index(store: Store) -> None:
    features = pyg.GraphsysFeatureStore(store())
    x = x_of(NUM_NODES)
    mask = torch.arange(NUM_NODES) % 2 == 0
    for index in (None, slice(3, 9), mask, torch.tensor([4, 4]), np.array([1])):
        found = features.get_tensor(None, "x", index)
        np.testing.assert_array_equal(found, x if index is None else x[index])
    assert features.get_tensor_size(None, "x", None) == (NUM_NODES, 3)
    assert features.nodes_of("valid").tolist() == list(range(1, NUM_NODES, 4))
    assert not features.put_tensor(torch.zeros(1), None, "x", None)
    with pytest.raises(UnknownNameError, match="'z'"):
        features.get_tensor(None, "z", None)
    with pytest.raises(UnknownNameError, match="dev_mask"):
        features.nodes_of("dev")


def test_typed_batches_hold_true_edges(shop: Graph) -> None:
    features = pyg.GraphsysFeatureStore(shop)
    batch = batch_of(shop, [2, 2], features.nodes_of("train"), reverse=True)
    # the feature store was made without reverse: batches have their edge types anyway
    assert batch["user"].batch_size == 3
    for kind, name in ((LIKES, "likes"), (FOLLOWS, "follows")):
        if tuple(kind) not in batch.edge_types:
            continue
        part = batch[tuple(kind)]
        src, dst = part.edge_index
        pairs = np.stack([batch[kind[0]].n_id[src], batch[kind[2]].n_id[dst]], axis=1)
        np.testing.assert_array_equal(pairs, entries(shop, name)[part.e_id])
    np.testing.assert_array_equal(batch["user"].x, x_of(USER)[batch["user"].n_id])
    assert sum(batch.num_sampled_nodes_dict["item"]) == batch["item"].num_nodes


def test_typed_fanouts_and_edges_against_a_type(shop: Graph) -> None:
    back = ("item", "rev_likes", "user")
    fanouts = {
        tuple(LIKES): [0],
        tuple(FOLLOWS): [0],
        back: [-1],
        ("user", "rev_follows", "user"): [0],
    }
    sampler = pyg.GraphsysSampler(shop, fanouts, reverse=True)
    data = pyg.stores(shop, reverse=True)
    seeds = ("user", torch.arange(USER))
    (batch,) = NodeLoader(data, sampler, seeds, batch_size=USER)
    assert batch[back].num_edges == shop.num_edges_of("likes")
    assert batch["user", "follows", "user"].num_edges == 0
    items = batch["item"].n_id[batch[back].edge_index[0]]
    users = batch["user"].n_id[batch[back].edge_index[1]]
    found = set(zip(users.tolist(), items.tolist(), strict=True))
    assert found == set(map(tuple, entries(shop, "likes").tolist()))


@pytest.mark.parametrize("mode", [None, "binary", "triplet"])
def test_link_loader_names_the_ends_of_its_edges(store: Store, mode: Any) -> None:
    graph = store()
    edges = pyg.to_data(graph).edge_index[:, :10]
    negatives = mode and NegativeSampling(mode, 2)
    sampler = pyg.GraphsysSampler(graph, [3])
    loader = LinkLoader(
        pyg.stores(graph), sampler, (None, edges), neg_sampling=negatives, batch_size=10
    )
    (batch,) = loader
    if mode == "triplet":
        found = torch.stack([batch.src_index, batch.dst_pos_index])
        assert batch.dst_neg_index.shape == (10, 2)
    else:
        found = batch.edge_label_index[:, :10]
        assert batch.edge_label_index.shape[1] == (10 if mode is None else 30)
    assert torch.equal(batch.n_id[found], edges)


def test_link_loader_over_types(shop: Graph) -> None:
    edges = torch.from_numpy(entries(shop, "likes").T.copy())
    sampler = pyg.GraphsysSampler(shop, [2, 2], reverse=True)
    loader = LinkLoader(
        pyg.stores(shop, reverse=True),
        sampler,
        (tuple(LIKES), edges),
        neg_sampling="binary",
        batch_size=edges.shape[1],
    )
    (batch,) = loader
    users, items = batch[tuple(LIKES)].edge_label_index[:, : edges.shape[1]]
    found = torch.stack([batch["user"].n_id[users], batch["item"].n_id[items]])
    assert torch.equal(found, edges)
    assert batch[tuple(LIKES)].edge_label.mean() == 0.5


def test_worker_processes_share_the_store(store: Store) -> None:
    graph = store()
    sampler = pyg.GraphsysSampler(graph, [-1])
    loader = NodeLoader(
        pyg.stores(graph), sampler, torch.arange(NUM_NODES), batch_size=20, num_workers=1
    )
    assert sum(batch.num_edges for batch in loader) == len(entries(graph))


@pytest.mark.parametrize("strategy", ["uniform", "latest"])
def test_temporal_batches_hold_older_edges_of_each_seed(
    store: Store, strategy: Any
) -> None:
    graph = store(partitions=2, time=True)
    sampler = pyg.GraphsysSampler(
        graph, [3, 2], is_temporal=True, temporal_strategy=strategy
    )
    seeds, times = torch.tensor([5, 0, 5, 17]), torch.tensor([40, 90, 10, 60])
    loader = NodeLoader(
        pyg.stores(graph),
        sampler,
        seeds,
        input_time=times,
        batch_size=4,
        transform=pyg.EdgeAttributes(graph, ("edge_time",)),
    )
    (batch,) = loader
    assert batch.n_id[:4].tolist() == seeds.tolist()
    assert batch.batch[:4].tolist() == [0, 1, 2, 3]
    assert batch.seed_time.tolist() == times.tolist()
    src, dst = batch.edge_index
    assert batch.num_edges > 0
    assert torch.equal(batch.batch[src], batch.batch[dst])
    assert (batch.edge_time < times[batch.batch[dst]]).all()
    pairs = set(zip(batch.batch.tolist(), batch.n_id.tolist(), strict=True))
    assert len(pairs) == batch.num_nodes


def test_temporal_links(store: Store) -> None:
    graph = store(time=True)
    edge_index = torch.tensor([[3, 8, 1], [5, 0, 17]])
    times = torch.tensor([30, 60, 90])
    loader = LinkLoader(
        pyg.stores(graph),
        pyg.GraphsysSampler(graph, [-1, -1], is_temporal=True),
        (None, edge_index),
        edge_label_time=times,
        neg_sampling="binary",
        batch_size=3,
        transform=pyg.EdgeAttributes(graph, ("edge_time",)),
    )
    (batch,) = loader
    found = batch.n_id[batch.edge_label_index]
    assert torch.equal(found[:, :3], edge_index)
    assert batch.edge_label.tolist() == [1, 1, 1, 0, 0, 0]
    assert (batch.edge_time < times[batch.batch[batch.edge_index[1]]]).all()


def test_temporal_links_between_types(tmp_path: Path) -> None:
    likes = np.array([(u, i) for u in range(6) for i in range(4) if (u + i) % 2])
    chunk = EdgeChunk(
        src=likes[:, 0],
        dst=likes[:, 1],
        edge_type=LIKES,
        columns={"time": np.arange(len(likes)) * 10},
    )
    make_store(
        tmp_path / "g",
        NodeChunk(ids=np.arange(6), node_type="user", features={"x": x_of(6)}),
        NodeChunk(ids=np.arange(4), node_type="item", features={"x": x_of(4)}),
        chunk,
        order="original",
    )
    graph = Graph(tmp_path / "g")
    sampler = pyg.GraphsysSampler(graph, [-1, -1], is_temporal=True, reverse=True)
    times = torch.tensor([30, 90, 60])
    pairs = torch.tensor([[0, 2, 4], [1, 3, 1]])
    loader = LinkLoader(
        pyg.stores(graph, reverse=True),
        sampler,
        (tuple(LIKES), pairs),
        edge_label_time=times,
        batch_size=3,
        transform=pyg.EdgeAttributes(graph, ("edge_time",), reverse=True),
    )
    (batch,) = loader
    for kind in batch.edge_types:
        ends = batch[kind].edge_index[1]
        seeds = batch[kind[2]].batch[ends]
        assert (batch[kind].edge_time < times[seeds]).all()
    label = batch[tuple(LIKES)].edge_label_index
    assert torch.equal(batch["user"].n_id[label[0]], pairs[0])
    assert torch.equal(batch["item"].n_id[label[1]], pairs[1])
    assert 0 < batch[tuple(LIKES)].num_edges <= 3 * 9  # nine edges before 90


def test_bad_input_is_told(store: Store, shop: Graph) -> None:
    graph = store()
    with pytest.raises(ConfigError, match="2 nodes, 1 of them different"):
        batch_of(graph, [2], torch.tensor([3, 3]))
    sampler = pyg.GraphsysSampler(graph, [2])
    loader = NodeLoader(
        pyg.stores(graph), sampler, SEEDS, input_time=torch.zeros(4, dtype=torch.long)
    )
    with pytest.raises(ConfigError, match="without regard to time"):
        next(iter(loader))
    with pytest.raises(ConfigError, match="edges 'edge' have no times"):
        pyg.GraphsysSampler(graph, [2], is_temporal=True)
    timed = store(time=True)
    sampler = pyg.GraphsysSampler(timed, [2], is_temporal=True)
    with pytest.raises(ConfigError, match="got no times of seeds, but is_temporal"):
        next(iter(NodeLoader(pyg.stores(timed), sampler, SEEDS)))
    with pytest.raises(ConfigError, match="is_replacing: got True with is_temporal"):
        pyg.GraphsysSampler(timed, [2], is_temporal=True, is_replacing=True)
    with pytest.raises(UnknownNameError, match="no relation"):
        pyg.GraphsysSampler(shop, {("user", "hates", "item"): [2]})
    with pytest.raises(ConfigError, match="use to_hetero_data"):
        pyg.to_data(shop)


@pytest.mark.parametrize("is_directed", [True, False])
def test_data_goes_out_and_comes_back(
    store: Store, tmp_path: Path, is_directed: bool
) -> None:
    first = pyg.to_data(store(is_directed=is_directed))
    assert first.is_undirected() is not is_directed
    graph = pyg.from_data(first, tmp_path / "again", undirected=not is_directed)
    assert graph.is_directed is is_directed
    second = pyg.to_data(graph)
    assert set(first.keys()) == set(second.keys())
    for name in first.keys():  # noqa: SIM118  # iterating Data yields pairs
        if name != "num_nodes":
            torch.testing.assert_close(first[name], second[name])


def test_hetero_data_goes_out_and_comes_back(shop: Graph, tmp_path: Path) -> None:
    first = pyg.to_hetero_data(shop)
    second = pyg.to_hetero_data(pyg.from_data(first, tmp_path / "again"))
    assert first.metadata() == second.metadata()
    ids = shop.node_ids("item").to_numpy()  # two partitions renumber the items
    np.testing.assert_array_equal(first["item"].x, x_of(len(ids))[ids])
    for one, other in zip(first.stores, second.stores, strict=True):
        for name, values in one.items():
            if isinstance(values, torch.Tensor):
                torch.testing.assert_close(values, other[name])


def test_labels_of_several_classes_and_relations_come_back(tmp_path: Path) -> None:
    data = Data(
        x=torch.eye(3).double(),
        y=torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
        edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
        edge_type=torch.tensor([1, 0, 1]),
        edge_time=torch.tensor([30, 10, 20]),
        name="left out",
    )
    graph = pyg.from_data(data, tmp_path / "g")
    found = pyg.to_data(graph)
    assert torch.equal(found.y, data.y)
    assert torch.equal(found.x, torch.eye(3))
    order = found.edge_index[1]  # sorted by destination: edges 2, 0, 1
    assert order.tolist() == [0, 1, 2]
    assert found.edge_time.tolist() == [20, 30, 10]
    names = graph.relations("edge")
    assert names is not None
    assert [names[code] for code in found.edge_type.tolist()] == ["1", "1", "0"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": torch.zeros(2)}, "'y' has 2 rows, expected 3"),
        ({"train_mask": torch.ones(3, 10, dtype=torch.bool)}, "has 10 splits"),
        (
            {
                "train_mask": torch.tensor([True, True, False]),
                "test_mask": torch.tensor([False, True, True]),
            },
            "1 nodes of split 'test'",
        ),
        ({"edge_index": None}, "no edge_index"),
    ],
)
def test_data_that_is_no_store_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    for name, value in change.items():
        data[name] = value
    with pytest.raises(InputError, match=message):
        pyg.from_data(data, tmp_path / "g")
    one_way = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
    with pytest.raises(InputError, match="edge 0 -> 1"):
        pyg.from_data(one_way, tmp_path / "g", undirected=True)
    with pytest.raises(InputError, match="expected PyG's Data"):
        pyg.source_of(HeteroData)


def test_pygs_sage_on_our_blocks_equals_ours(store: Store) -> None:
    graph = store()
    sample = NeighborSampler(graph, [4, 3]).sample(SEEDS.numpy())
    theirs, ours = SAGEConv(3, 6), SAGE(3, 6)
    with torch.no_grad():
        ours.own.weight.copy_(theirs.lin_r.weight)
        ours.neighbor.weight.copy_(theirs.lin_l.weight)
        ours.own.bias.copy_(theirs.lin_l.bias)
    block = sample.blocks[0]
    x = torch.from_numpy(x_of(NUM_NODES)[sample.input_nodes] / 100)
    wanted = ours(SparseRows.of(block), x, x[: block.num_dst])
    torch.testing.assert_close(theirs(*pyg.bipartite(block, x)), wanted)
    pair = (x, x[: block.num_dst])
    torch.testing.assert_close(theirs(pair, pyg.adjacency(block)), wanted)
    attention = GATConv((3, 3), 2, add_self_loops=False)
    assert attention(*pyg.bipartite(block, x)).shape == (block.num_dst, 2)
    with pytest.raises(ConfigError, match="x has 1 rows"):
        pyg.bipartite(block, x[:1])


def test_a_pyg_model_learns_over_node_loader(planted: Graph) -> None:
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([SAGEConv(8, 32), SAGEConv(32, 3)])
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.02)
    features, edges = pyg.stores(planted)
    sampler = pyg.GraphsysSampler(planted, [10, 5])

    def scores(batch: Any) -> Any:
        hidden = layers[0](batch.x, batch.edge_index).relu()
        return layers[1](hidden, batch.edge_index)[: batch.batch_size]

    for _ in range(4):
        for batch in NodeLoader(
            (features, edges),
            sampler,
            features.nodes_of("train"),
            batch_size=64,
            shuffle=True,
        ):
            loss = torch.nn.functional.cross_entropy(
                scores(batch), batch.y[: batch.batch_size]
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    test = features.nodes_of("test")
    (batch,) = NodeLoader((features, edges), sampler, test, batch_size=len(test))
    found = scores(batch).argmax(dim=1)
    assert (found == batch.y[: batch.batch_size]).float().mean() > 0.85
