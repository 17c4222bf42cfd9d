"""Operations and bytes of a slice of a bucket, by operator, against sums by hand."""

from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.analysis.profile import profile
from graphsys.core.events import recording

DIM = 8


def trained(folder: Path, **settings: object) -> dict[str, dict[str, int]]:
    """Train one epoch of 60 edges in one chunk; return the work by kind, and all of it."""
    rng = np.random.default_rng(3)
    graph = gs.ingest(rng.integers(0, 30, (60, 2)), folder / "graph").graph
    config = gs.embedding.EmbeddingConfig(dim=DIM, epochs=1, threads=1, **settings)  # type: ignore[arg-type]
    with recording() as recorder:
        gs.embedding.train(graph, config, folder / "run")
    found: dict[str, dict[str, int]] = {}
    for event in recorder.events:
        if event.name in ("operator_part", "kernel_work"):
            name = str(event.attributes.get("kind", "all"))
            flop = event.attributes.get("flop", event.value)
            own = found.setdefault(name, {"flop": 0, "bytes": 0})
            own["flop"] += int(str(flop).removesuffix(".0"))
            own["bytes"] += int(str(event.attributes["bytes"]))
    return found


def test_products_are_those_of_the_chunks(tmp_path: Path) -> None:
    n, drawn = 60, 40
    found = trained(
        tmp_path, batch_size=n, num_batch_negatives=n, num_uniform_negatives=drawn
    )
    k = n + drawn
    # scores of n queries against k tails and the drawn heads; two gradients of each
    products = n * k + n * drawn
    assert found["gemm"]["flop"] == 3 * 2 * products * DIM
    assert found["softmax"]["flop"] == 2 * n * k
    assert found["gather"] == {"flop": 0, "bytes": 2 * k * (DIM * (4 + 4) + 8)}
    assert found["scatter"]["flop"] == 2 * k * DIM
    assert "elementwise" not in found  # the one relation has no operator
    assert found["all"]["flop"] == sum(
        it["flop"] for name, it in found.items() if name != "all"
    )


def test_questions_for_one_end_are_compared_with_all_nodes_there(tmp_path: Path) -> None:
    pairs = np.random.default_rng(3).integers(0, 30, (60, 2))
    size = len(np.unique(pairs))
    every = trained(tmp_path / "1", mode="1vsall")
    assert every["gemm"]["flop"] == 3 * 2 * 60 * 2 * size * DIM
    once = trained(tmp_path / "k", mode="kvsall")
    questions = sum(len(np.unique(ends)) for ends in pairs.T)
    assert once["gemm"]["flop"] == 3 * 2 * questions * size * DIM


def test_a_report_has_the_operators_and_the_roofline(tmp_path: Path) -> None:
    graph = gs.ingest([(k, (k * 7 + 1) % 50) for k in range(200)], tmp_path / "g").graph
    config = gs.embedding.EmbeddingConfig(dim=DIM, epochs=1, operator="diagonal")
    with profile(tmp_path / "r.html", level="L0") as p:
        gs.embedding.train(graph, config, tmp_path / "run")
    rows = {row["name"]: row for row in p.report["operators"]}
    kernel = rows["train_batches"]
    assert kernel["flop"] > rows["train_batches: gemm"]["flop"] > 0
    assert kernel["limit_share"] > 0
    assert rows["train_batches: elementwise"]["flop"] > 0
    assert rows["train_batches: gemm"]["seconds"] is None
    total = sum(
        row["bytes"] for name, row in rows.items() if name.startswith("train_batches:")
    )
    assert kernel["bytes"] == total
    assert p.report["configuration"]["gemm_flop_per_second"] > 0
    assert 'id="roofline"' in (tmp_path / "r.html").read_text()


def test_negatives_without_the_batch_leave_the_positives_out(tmp_path: Path) -> None:
    n, drawn = 60, 40
    found = trained(
        tmp_path, batch_size=n, num_batch_negatives=0, num_uniform_negatives=drawn
    )
    assert found["gemm"]["flop"] == pytest.approx(6 * 2 * n * drawn * DIM)
