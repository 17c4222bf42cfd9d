"""What the SIMT model is told of embedding training are the queries of its batches."""

from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.model.simt import walk
from graphsys.embedding import EmbeddingConfig
from tests.stores import edge_chunk, make_store

NUM_EDGES, DRAWN = 100, 7


@pytest.mark.parametrize("partitions", [1, 2])
def test_every_query_is_a_row_of_its_candidates(tmp_path: Path, partitions: int) -> None:
    pairs = [(v, (v * 7 + 1) % 40) for v in range(NUM_EDGES)]
    make_store(tmp_path / "graph", edge_chunk(pairs), partitions=partitions)
    config = EmbeddingConfig(
        dim=4,
        epochs=1,
        num_batch_negatives=0,
        num_uniform_negatives=DRAWN,
        batch_size=NUM_EDGES,
        eval_fraction=0.0,
        threads=1,
    )
    with gs.profile() as p:
        gs.embedding.train(gs.open(tmp_path / "graph"), config, tmp_path / "run")
    found = {it["name"]: it["value"] for it in p.report["metrics"]}
    # rows gathered, scored and updated: on a GPU a kernel each
    assert found["predicted_launches"] == 3 * found["kernel_invocations"]
    if partitions > 1:  # the buckets' queries are in launches of their own
        assert 0 < found["lane_utilization"] <= 1
        return
    scores = p.report["gpu"]["parts"]["scores"]
    assert scores["entries"] == 2 * NUM_EDGES * DRAWN  # both ends of every edge ask
    expected = walk(np.full(2 * NUM_EDGES, DRAWN), "thread").utilization
    assert scores["lane_utilization"] == pytest.approx(expected)
    assert found["sm_imbalance"] is not None
    assert found["cta_variance"] is not None
