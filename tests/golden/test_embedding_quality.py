"""What a short training reaches on the demo graph; the big graphs are run by script.

``scripts/bench/run quality_embedding`` trains FB15k-237 and WN18RR; figures are committed.
"""

from pathlib import Path

import pytest

from graphsys.datasets import recipes
from graphsys.embedding import baselines, evaluate, load_config, train


@pytest.mark.parametrize("partitions", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_the_demo_is_learnt_far_above_popularity(tmp_path: Path, partitions: int) -> None:
    graph = recipes.build("demo", tmp_path / "graph", partitions=partitions).graph
    config = load_config(preset="demo-complex", overrides=["epochs=4", "threads=2"])
    report = train(graph, config, tmp_path / "run")
    found = evaluate(report.run, split="test")["metrics"]["mrr"]
    # measured 0.53 (1 partition) and 0.48 (4); HOGWILD varies by about 0.01
    assert found > 0.4
    assert found > 20 * baselines(graph)["popularity"]["mrr"]
