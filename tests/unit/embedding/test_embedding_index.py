"""Approximate neighbors against exact ones; rows as views in three libraries."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, CorruptStoreError
from graphsys.embedding import EmbeddingConfig, Embeddings, build_index, nearest, train
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from tests.runs import reseal
from tests.stores import ListSource, edge_chunk

NUM_NODES, NUM_GROUPS = 4000, 40


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run whose rows lie around forty centers, as trained ones do."""
    folder = tmp_path_factory.mktemp("clustered")
    pairs = [(k, (k + 1) % NUM_NODES) for k in range(NUM_NODES)]
    ingest(ListSource([edge_chunk(pairs)]), folder / "graph", partitions=3)
    train(Graph(folder / "graph"), EmbeddingConfig(dim=16, epochs=1), folder / "run")
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(NUM_GROUPS, 16))
    for name in Embeddings(folder / "run").state.files:
        if name.startswith("rows/"):
            size = len(np.load(folder / "run" / name))
            rows = centers[rng.integers(0, NUM_GROUPS, size)]
            rows += 0.3 * rng.normal(size=rows.shape)
            np.save(folder / "run" / name, rows.astype(np.float32))
    reseal(folder / "run")
    return folder / "run"


def with_comparator(run: Path, comparator: str) -> Embeddings:
    config = run / "config.toml"
    lines = config.read_text().splitlines()
    config.write_text(
        "\n".join(
            f'comparator = "{comparator}"' if line.startswith("comparator") else line
            for line in lines
        )
        + "\n"
    )
    reseal(run)
    return Embeddings(run)


@pytest.mark.parametrize("comparator", ["dot", "cos", "l2", "squared_l2"])
@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_recall_of_an_index(clustered: Path, kind: Any, comparator: str) -> None:
    """At least 95 % of the ten nearest, and the exact scores."""
    run = with_comparator(clustered, comparator)
    found = total = 0
    for node in range(0, NUM_NODES, 80):
        exact, fast = nearest(run, node, 10), nearest(run, node, 10, index=kind)
        scores = dict(zip(*(exact.column(k).to_pylist() for k in range(2)), strict=True))
        for name, value in zip(
            *(fast.column(k).to_pylist() for k in range(2)), strict=True
        ):
            found += name in scores
            assert name not in scores or value == pytest.approx(scores[name], rel=1e-4)
        total += len(scores)
        assert node not in fast.column("id").to_pylist()
    assert found / total >= 0.95


def test_an_index_is_built_once_for_a_checkpoint(clustered: Path, tmp_path: Path) -> None:
    run = with_comparator(clustered, "l2")
    file = build_index(run, "hnsw")
    assert file == clustered / "indexes" / "node.hnsw.faiss"
    before = file.stat().st_mtime_ns
    first = nearest(Embeddings(clustered), 7, 5, index="hnsw")
    assert file.stat().st_mtime_ns == before
    state = clustered / "run.json"
    content = json.loads(state.read_text())
    state.write_text(json.dumps(content | {"seconds": content["seconds"] + 1}))
    reseal(clustered)
    assert nearest(Embeddings(clustered), 7, 5, index="hnsw").equals(first)
    assert file.stat().st_mtime_ns != before  # a later checkpoint: built anew
    other = build_index(clustered, "ivf", path=tmp_path / "mine.faiss")
    assert other == tmp_path / "mine.faiss"
    assert nearest(clustered, 7, 5, index="ivf", index_path=other).num_rows == 5
    assert not list(clustered.rglob("*.new"))


def test_wrong_indexes_are_errors(clustered: Path) -> None:
    with pytest.raises(
        ConfigError, match="index: got 'annoy', expected one of exact, hnsw"
    ):
        nearest(clustered, 7, index="annoy")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="index: got 'exact', which needs none"):
        build_index(clustered, "exact")
    file = build_index(clustered, "ivf")
    file.write_bytes(b"none")
    with pytest.raises(CorruptStoreError, match=r"the index .*ivf.faiss cannot be read"):
        nearest(clustered, 7, index="ivf")


def test_rows_are_views_of_the_file(clustered: Path) -> None:
    run = Embeddings(clustered)
    rows = run.rows("node", 1)
    assert np.shares_memory(rows, run.rows("node", 1))
    assert not rows.flags.writeable
    column = run.arrow_rows("node", 1)
    assert column.type == pa.list_(pa.float32(), 16)
    values = column.values.to_numpy(zero_copy_only=True)
    assert np.shares_memory(rows, values)
    tensor = run.torch_rows("node", 1)
    assert np.shares_memory(tensor.numpy(), run.torch_rows("node", 1).numpy())
    np.testing.assert_array_equal(tensor.numpy(), rows)
    before = rows.copy()
    tensor[0] = 99.0  # stays in this process
    np.testing.assert_array_equal(Embeddings(clustered).rows("node", 1), before)
    taken = run.take("node", np.arange(3))
    assert not any(np.shares_memory(taken, run.rows("node", p)) for p in range(3))
