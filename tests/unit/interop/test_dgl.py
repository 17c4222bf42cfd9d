"""DGL's graphs in and out, its layers on our blocks, its loader over our stores."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm
from graphsys.sampling import NeighborSampler
from graphsys.storage import Graph
from tests.unit.interop.conftest import (
    FOLLOWS,
    LIKES,
    NUM_NODES,
    USER,
    Store,
    entries,
    x_of,
)

pytest.importorskip("dgl", reason="the extra dgl is not installed (Python 3.11 only)")

from graphsys.core.deps import require_dgl
from graphsys.interop import dgl as bridge

dgl = require_dgl()

fn = dgl.function
SEEDS = torch.tensor([5, 0, 39, 17])


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """DGL warns of affinity with every loader."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="dgl")
        yield


def summed(mfg: Any, x: torch.Tensor) -> torch.Tensor:
    """Return DGL's sums of messages."""
    with mfg.local_scope():
        mfg.srcdata["h"] = x
        mfg.update_all(fn.copy_u("h", "m"), fn.sum("m", "out"))
        found: torch.Tensor = mfg.dstdata["out"]
        return found


def test_dgl_sums_on_our_blocks_as_we_do(store: Store) -> None:
    sample = NeighborSampler(store(), [4, 3]).sample(SEEDS.numpy())
    for block in sample.blocks:
        x = torch.rand(block.num_src, 6)
        mfg = bridge.block_to_dgl(block)
        torch.testing.assert_close(summed(mfg, x), spmm(SparseRows.of(block), x))
        assert mfg.srcdata[dgl.NID].tolist() == block.src_nodes.tolist()
        assert mfg.dstdata[dgl.NID].tolist() == block.dst_nodes.tolist()
        back = bridge.block_from_dgl(mfg)
        for name in ("indptr", "indices", "src_nodes", "dst_nodes", "edge"):
            np.testing.assert_array_equal(getattr(back, name), getattr(block, name))


def test_entries_of_blocks_are_not_copied(store: Store) -> None:
    (block,) = NeighborSampler(store(), [4]).sample(SEEDS.numpy()).blocks
    mfg = bridge.block_to_dgl(block)
    back = bridge.block_from_dgl(mfg)
    block.indices[:] = 2
    block.src_nodes[:] = 9
    assert mfg.adj_tensors("csc")[1].tolist() == [2] * block.num_edges
    assert back.indices.tolist() == [2] * block.num_edges
    assert back.src_nodes.tolist() == [9] * block.num_src


def test_blocks_of_dgls_own_sampler_come_to_us(store: Store) -> None:
    graph = bridge.to_dgl(store(), idtype=torch.int64)
    sampler = dgl.dataloading.NeighborSampler([4, 3])
    _, _, mfgs = sampler.sample(graph, SEEDS)
    for mfg in mfgs:
        block = bridge.block_from_dgl(mfg)
        x = torch.rand(block.num_src, 6)
        torch.testing.assert_close(summed(mfg, x), spmm(SparseRows.of(block), x))
        ends = np.stack(
            [
                block.src_nodes[block.indices],
                np.repeat(block.dst_nodes, np.diff(block.indptr)),
            ],
            axis=1,
        )
        np.testing.assert_array_equal(ends, entries(store())[block.edge])


@pytest.mark.parametrize(("partitions", "idtype"), [(1, None), (3, None), (1, torch.int64)])
def test_a_graph_has_its_columns(store: Store, partitions: int, idtype: Any) -> None:
    graph = store(is_directed=False, partitions=partitions)
    made = bridge.to_dgl(graph, idtype=idtype)
    assert made.idtype == (idtype or torch.int32)
    ids = graph.node_ids("node").to_numpy()
    src, dst = (end.numpy() for end in made.edges(order="eid"))
    np.testing.assert_array_equal(np.stack([src, dst], 1), entries(graph))
    np.testing.assert_array_equal(made.ndata["feat"], x_of(NUM_NODES)[ids])
    np.testing.assert_array_equal(made.ndata["label"], ids % 4)
    np.testing.assert_array_equal(made.ndata["val_mask"], ids % 4 == 1)
    low, high = np.sort([ids[src], ids[dst]], axis=0)
    np.testing.assert_array_equal(made.edata["weight"], low + high + 1)
    np.testing.assert_array_equal(made.edata["edge_attr"][:, 0], low * 101)


def test_rows_of_one_partition_are_views_of_the_file(store: Store) -> None:
    graph = store()
    made = bridge.to_dgl(graph)
    pointer = made.adj_tensors("csc")[1].data_ptr()
    mapped = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        begin, end = (int(it, 16) for it in line.split()[0].split("-"))
        if begin <= pointer < end:
            mapped.append(line.split()[-1])
    assert len(mapped) == 1
    assert mapped[0].startswith(str(graph.path))


@pytest.mark.parametrize("is_directed", [True, False])
def test_graphs_go_out_and_come_back(
    store: Store, tmp_path: Path, is_directed: bool
) -> None:
    first = bridge.to_dgl(store(is_directed=is_directed))
    graph = bridge.from_dgl(first, tmp_path / "again", undirected=not is_directed)
    assert graph.is_directed is is_directed
    same(first, bridge.to_dgl(graph))


def test_graphs_of_several_types_come_back(shop: Graph, tmp_path: Path) -> None:
    first = bridge.to_dgl(shop)
    assert first.canonical_etypes == [tuple(FOLLOWS), tuple(LIKES)]
    same(first, bridge.to_dgl(bridge.from_dgl(first, tmp_path / "again")))


def same(first: Any, second: Any) -> None:
    """Check that two graphs are equal, with their columns."""
    assert first.canonical_etypes == second.canonical_etypes
    for kind in first.canonical_etypes:
        for one, other in zip(
            first.edges(etype=kind, order="eid"),
            second.edges(etype=kind, order="eid"),
            strict=True,
        ):
            assert torch.equal(one, other)
        check(first.edges[kind].data, second.edges[kind].data)
    for name in first.ntypes:
        check(first.nodes[name].data, second.nodes[name].data)


def check(first: Any, second: Any) -> None:
    assert set(first) == set(second)
    for name in first:
        torch.testing.assert_close(first[name], second[name])


def test_dgls_own_graphs_become_stores(tmp_path: Path) -> None:
    made = dgl.graph(([0, 1, 2], [1, 2, 0]))
    made.ndata["train_mask"] = torch.tensor([True, False, False])
    made.edata["w"] = torch.tensor([1.0, 2.0, 3.0])
    graph = bridge.from_dgl(made, tmp_path / "g")
    assert graph.node_types == ["node"]
    assert bridge.to_dgl(graph).edata["weight"].tolist() == [3.0, 1.0, 2.0]
    with pytest.raises(InputError, match="edge 0 -> 1"):
        bridge.from_dgl(made, tmp_path / "h", undirected=True)
    with pytest.raises(InputError, match="expected a DGLGraph"):
        bridge.source_of(7)


def test_loader_prefetches_from_the_store(store: Store) -> None:
    graph = store(partitions=2)
    sampler = bridge.GraphsysBlockSampler(
        graph,
        [2, 3],
        prefetch_node_feats=["feat"],
        prefetch_labels=["label"],
        prefetch_edge_feats=["weight"],
    )
    storage = bridge.GraphsysStorage(graph)
    ids = graph.node_ids("node").to_numpy()
    seen = []
    loader = dgl.dataloading.DataLoader(
        storage, torch.arange(NUM_NODES), sampler, batch_size=16
    )
    for inputs, outputs, (far, near) in loader:
        assert near.in_degrees().max() == 3
        assert far.in_degrees().max() == 2
        np.testing.assert_array_equal(far.srcdata["feat"], x_of(NUM_NODES)[ids[inputs]])
        np.testing.assert_array_equal(near.dstdata["label"], ids[outputs] % 4)
        src, dst = far.edges(order="eid")
        src, dst = far.srcdata[dgl.NID][src.long()], far.dstdata[dgl.NID][dst.long()]
        pairs = np.stack([src, dst], axis=1)
        np.testing.assert_array_equal(pairs, entries(graph)[far.edata[dgl.EID]])
        np.testing.assert_array_equal(far.edata["weight"], ids[pairs].sum(axis=1) + 1)
        seen += outputs.tolist()
    assert seen == list(range(NUM_NODES))


def test_loader_over_types_feeds_dgls_layers(shop: Graph) -> None:
    sampler = bridge.GraphsysBlockSampler(
        shop,
        [-1, 2],
        reverse=True,
        prefetch_node_feats={"user": ["feat"], "item": ["feat"]},
    )
    loader = dgl.dataloading.DataLoader(
        bridge.GraphsysStorage(shop, reverse=True),
        {"user": torch.arange(USER)},
        sampler,
        batch_size=5,
    )
    kinds = ["likes", "rev_likes", "follows", "rev_follows"]
    layer = dgl.nn.HeteroGraphConv({kind: dgl.nn.SAGEConv(3, 4, "mean") for kind in kinds})
    for inputs, outputs, (far, _) in loader:
        found = layer(far, {name: far.srcnodes[name].data["feat"] for name in far.srctypes})
        assert found["user"].shape == (far.num_dst_nodes("user"), 4)
        assert len(inputs["user"]) == far.num_src_nodes("user")
        assert len(outputs["item"]) == 0
        src, dst = far.edges(etype="likes", order="eid")
        pairs = np.stack(
            [
                far.srcnodes["user"].data[dgl.NID][src.long()],
                far.dstnodes["item"].data[dgl.NID][dst.long()],
            ],
            axis=1,
        )
        where = far.edges["likes"].data[dgl.EID]
        np.testing.assert_array_equal(pairs, entries(shop, "likes")[where])


def test_draws_follow_torchs_seed(store: Store) -> None:
    sampler = bridge.GraphsysBlockSampler(store(), [3])
    torch.manual_seed(7)
    first, other = (sampler.sample(None, SEEDS)[2][0].edata[dgl.EID] for _ in range(2))
    torch.manual_seed(7)
    assert torch.equal(sampler.sample(None, SEEDS)[2][0].edata[dgl.EID], first)
    assert not torch.equal(other, first)


def test_bad_input_is_told(store: Store) -> None:
    graph = store()
    sampler = bridge.GraphsysBlockSampler(graph, [3])
    with pytest.raises(ConfigError, match="cannot leave out edges"):
        sampler.sample(None, SEEDS, exclude_eids=torch.tensor([1]))
    storage = bridge.GraphsysStorage(graph)
    with pytest.raises(UnknownNameError, match="did you mean 'feat'"):
        storage.get_node_storage("feet")
    with pytest.raises(UnknownNameError, match="unknown edge type 'likes'"):
        storage.get_edge_storage("weight", "likes")
    two = dgl.heterograph({("a", "x", "b"): ([0], [0]), ("a", "y", "b"): ([0], [0])})
    with pytest.raises(ConfigError, match="choose one with edge_type"):
        bridge.block_from_dgl(two)
