"""Shipped presets train on a tiny graph of triples, and rank what is held out."""

from pathlib import Path

import pytest

import graphsys as gs
from graphsys.embedding import load_config, preset_names

SMALL = ["epochs=1", "dim=8", "threads=1", "eval_every=0"]


@pytest.fixture(scope="module")
def triples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the store of a ring with two relations, a tenth of it held out."""
    work = tmp_path_factory.mktemp("presets")
    lines = [
        f"e{k}\t{'ab'[s % 2]}\te{(k + s) % 50}\n" for s in (1, 2, 5) for k in range(50)
    ]
    (work / "triples.txt").write_text("".join(lines))
    gs.ingest(work / "triples.txt", work / "g", format="triples", split="0.8,0.1,0.1")
    return work / "g"


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_trains_and_is_measured(name: str, triples: Path, tmp_path: Path) -> None:
    config = load_config(preset=name, overrides=SMALL)
    gs.embedding.train(triples, config, tmp_path / "run")
    found = gs.embedding.evaluate(tmp_path / "run")["metrics"]
    assert 0 < found["mrr"] <= 1
    assert found["num_queries"] == 30
