"""HAN: neighbors by metapath and both attentions against loops; whether it learns."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn import functional

from graphsys import gnn
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.gnn import GnnConfig
from graphsys.gnn.models import layers
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.sampling import NeighborSampler, metapath_rows
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, are_equal, weights_of

NUM = 36
EDGES = {
    "written_by": [(p, (p % 3) + 3 * (p % 4)) for p in range(NUM)],
    "about": [(p, t) for p in range(NUM) for t in range(5) if (p + t) % 3 == 0],
}


@pytest.fixture
def papers(tmp_path: Path) -> Graph:
    """Return papers of 3 kinds; authors write of one kind, subjects lead to all."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (NUM, 6)).astype(np.float32)
    x[:, 0] += np.arange(NUM) % 3
    split = np.array(["train", "train", "valid", "test"])[np.arange(NUM) // 3 % 4]
    make_store(
        tmp_path / "papers",
        NodeChunk(
            ids=np.arange(NUM),
            node_type="paper",
            features={"x": x},
            columns={"label": np.arange(NUM) % 3, "split": pa.array(split.tolist())},
        ),
        NodeChunk(ids=np.arange(12), node_type="author"),
        NodeChunk(ids=np.arange(5), node_type="subject"),
        edge_chunk(EDGES["written_by"], EdgeType("paper", "written_by", "author")),
        edge_chunk(EDGES["about"], EdgeType("paper", "about", "subject")),
        partitions={"paper": 2, "author": 1, "subject": 1},
    )
    return Graph(tmp_path / "papers")


def config_of(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "model": "han",
        "dim": 8,
        "heads": 2,
        "layers": 1,
        "batch_size": 0,
        "epochs": 60,
        "lr": 0.02,
        "threads": 1,
    }
    return GnnConfig(**{**settings, **changes})


def test_neighbors_by_metapath_share_a_neighbor(papers: Graph) -> None:
    found = {rows.name: rows for rows in metapath_rows(papers, "paper")}
    assert set(found) == {"written_by:reversed:and_back", "about:reversed:and_back"}
    ids = np.array(papers.node_ids("paper").to_pylist())
    for rows in found.values():
        pairs = EDGES[rows.edge_type.relation]
        ends = [{e for p, e in pairs if p == paper} for paper in range(NUM)]
        sample = NeighborSampler([rows], [-1]).sample(np.arange(NUM))
        block = sample.layers[0][rows.name]
        for v in range(NUM):
            near = block.src_nodes[block.indices[block.indptr[v] : block.indptr[v + 1]]]
            wanted = {u for u in range(NUM) if u != ids[v] and ends[u] & ends[ids[v]]}
            assert sorted(ids[near].tolist()) == sorted(wanted)
    (own,) = metapath_rows(papers, "author")
    assert (own.node_type, own.neighbor_type, own.num_entries) == ("author", "author", 0)


def test_han_is_its_formula() -> None:
    torch.manual_seed(0)
    relations = [("a", "n", "n"), ("b", "n", "n")]
    dense = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    rows = {}
    for name, part in (("a", dense), ("b", dense.T)):
        indptr = np.concatenate([[0], np.cumsum(part.sum(1).numpy())])
        rows[name] = SparseRows(indptr, part.nonzero()[:, 1].numpy().astype(np.int32), 4)
    layer, x = layers.HAN(relations, 3, 6, 2), torch.randn(4, 3)
    found = layer(rows, {"n": x}, {"n": x})["n"]
    by_path, scores = [], []
    for name, part in (("a", dense), ("b", dense.T)):
        gat: Any = layer.by_path[name]
        h = (x @ gat.source.weight.T).view(4, 2, 3)
        z = torch.zeros(4, 2, 3)
        for v in range(4):
            near = [v, *part[v].nonzero()[:, 0].tolist()]
            for head in range(2):
                own = h[v, head] @ gat.of_dst[head]
                raw = torch.stack([h[u, head] @ gat.of_src[head] + own for u in near])
                share = functional.leaky_relu(raw, 0.2).softmax(0)
                z[v, head] = share @ h[near, head]
        by_path.append(functional.elu(z.flatten(1) + gat.bias))
        hidden = torch.tanh(by_path[-1] @ layer.hidden.weight.T + layer.hidden.bias)
        scores.append((hidden @ layer.query).mean())
    first = torch.sigmoid(scores[0] - scores[1])
    wanted = first * by_path[0] + (1 - first) * by_path[1]
    assert torch.allclose(found, wanted, atol=1e-5)
    found.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_han_learns_and_resumes_bit_by_bit(papers: Graph, tmp_path: Path) -> None:
    config = config_of(
        deterministic=True, checkpoint_seconds=0, dropout=0.1, attention_dropout=0.1
    )
    gnn.train(papers, config, tmp_path / "whole")
    assert gnn.evaluate(tmp_path / "whole")["metrics"]["accuracy"] > 0.8  # chance: .33
    assert gnn.predict(tmp_path / "whole", [4])["id"].to_pylist() == [4]
    with pytest.raises(StoppedError):
        gnn.train(papers, config, tmp_path / "run", progress=StopAfter(20))
    gnn.train(papers, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"batch_size": 64}, ConfigError, "batch_size: got 64 with model han, expected 0"),
        ({"edge_types": ("cites",)}, UnknownNameError, "unknown edge type 'cites'"),
        ({"node_type": "author"}, ConfigError, "'author'"),
    ],
)
def test_what_does_not_fit_is_told(
    papers: Graph, tmp_path: Path, changes: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gnn.train(papers, config_of(**changes), tmp_path / "run")


def test_metapaths_need_edges_of_the_type(papers: Graph) -> None:
    with pytest.raises(
        ConfigError, match="no edges of those chosen have ends of node type"
    ):
        metapath_rows(papers, "author", ["about"])
