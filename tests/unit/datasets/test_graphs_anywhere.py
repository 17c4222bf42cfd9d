"""A graph is taken in any of its shapes wherever one is wanted, and leaves no folder."""

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphsys as gs
from graphsys.core.errors import ConfigError, InputError
from graphsys.sampling import NeighborSampler

SRC, DST = np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 3, 0])
PAIRS = {(int(s), int(d)) for s, d in zip(SRC, DST, strict=True)}


def of_networkx() -> Any:
    nx = pytest.importorskip("networkx")
    return nx.DiGraph(sorted(PAIRS))


def of_scipy() -> Any:
    from scipy.sparse import coo_array

    return coo_array((np.ones(5), (SRC, DST)), shape=(4, 4))


def of_pyg() -> Any:
    data = pytest.importorskip("torch_geometric.data")
    return data.Data(edge_index=torch.from_numpy(np.stack([SRC, DST])), num_nodes=4)


def of_dgl() -> Any:
    dgl = pytest.importorskip("dgl")
    return dgl.graph((torch.from_numpy(SRC), torch.from_numpy(DST)))


SHAPES: dict[str, Callable[[], Any]] = {
    "networkx": of_networkx,
    "scipy": of_scipy,
    "pyg": of_pyg,
    "dgl": of_dgl,
    "pandas": lambda: pytest.importorskip("pandas").DataFrame({"src": SRC, "dst": DST}),
    "array of edges": lambda: np.stack([SRC, DST], axis=1),
    "edge_index array": lambda: np.stack([SRC, DST]),
    "edge_index tensor": lambda: torch.from_numpy(np.stack([SRC, DST])),
    "tensor of edges": lambda: torch.from_numpy(np.stack([SRC, DST], axis=1)),
    "pair of tensors": lambda: (torch.from_numpy(SRC), torch.from_numpy(DST)),
    "dict of tensors": lambda: {"src": torch.from_numpy(SRC), "dst": torch.from_numpy(DST)},
}


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, float]:
    """Return the ranks of the graph as a store."""
    graph = gs.ingest((SRC, DST), tmp_path_factory.mktemp("store") / "g").graph
    return ranks_of(graph)


def ranks_of(graph: Any) -> dict[Any, float]:
    table = gs.algorithms.pagerank(graph).table
    values = table["value"].to_numpy().round(6).tolist()
    return dict(zip(table["id"].to_pylist(), values, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_the_same_graph(
    shape: str, wanted: dict[Any, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SHAPES[shape]()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert ranks_of(given) == wanted
    sampler = NeighborSampler(given, [-1])
    with sampler.sample(np.array([3])) as sample:
        assert sorted(sample.input_nodes.tolist()) == [1, 2, 3]
    del sampler, sample
    gc.collect()
    assert not list(tmp_path.iterdir())  # the stores went with their graphs


def test_trainings_and_runs_take_stores_by_their_paths(tmp_path: Path) -> None:
    store = tmp_path / "g"
    gs.ingest((SRC, DST), store)
    config = gs.embedding.EmbeddingConfig(
        dim=2, epochs=1, num_batch_negatives=2, num_uniform_negatives=2
    )
    gs.embedding.train(store, config, tmp_path / "run")
    found = gs.embedding.evaluate(tmp_path / "run", split="train", graph=store)
    assert found == gs.embedding.evaluate(tmp_path / "run", split="train")
    said = "got a tuple, expected an open graph or its path.*gs.ingest"
    with pytest.raises(ConfigError, match=said):
        gs.embedding.train((SRC, DST), config, tmp_path / "other")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=said):
        gs.gnn.train((SRC, DST), None, tmp_path / "other")  # type: ignore[arg-type]


def test_what_an_ingest_returned_stands_for_its_graph(tmp_path: Path) -> None:
    made: Any = gs.ingest((SRC, DST), tmp_path / "g")
    assert ranks_of(made) == ranks_of(made.graph)
    config = gs.embedding.EmbeddingConfig(
        dim=2, epochs=1, num_batch_negatives=2, num_uniform_negatives=2
    )
    assert gs.embedding.train(made, config, tmp_path / "run").epochs == 1


def test_what_may_be_either_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \[2, 3\]: may be two edges, or an edge_"):
        ranks_of(torch.tensor([[0, 1, 2], [1, 2, 0]]))
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(InputError, match=r"layout torch\.sparse_coo, expected a dense one"):
        ranks_of(sparse)
