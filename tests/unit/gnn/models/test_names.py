"""Types and relations may have any name that a store takes, also one of torch's own."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.types import EdgeType
from graphsys.gnn.config import GnnConfig
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store


@pytest.mark.parametrize("model", ["sage", "hgt"])
def test_names_that_torch_has_itself_train_and_evaluate(tmp_path: Path, model: str) -> None:
    rng = np.random.default_rng(0)
    pairs = [(int(a), int(b)) for a, b in rng.integers(0, 20, (120, 2))]
    to, kind = (EdgeType("items", name, "items") for name in ("to", "type"))
    columns = {
        "label": pa.array([f"v{k % 2}" for k in range(20)]),
        "split": pa.array((["train"] * 3 + ["test"]) * 5),
    }
    nodes = NodeChunk(ids=np.arange(20), node_type="items", columns=columns)
    make_store(
        tmp_path / "g", nodes, edge_chunk(pairs[:60], to), edge_chunk(pairs[60:], kind)
    )
    config = GnnConfig(
        model=model, dim=8, epochs=1, batch_size=8, eval_every=0, keep="last"
    )
    gnn.train(tmp_path / "g", config, tmp_path / "run")
    assert gnn.evaluate(tmp_path / "run", split="test")["metrics"]
