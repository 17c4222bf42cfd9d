"""Against PyTorch-BigGraph itself, where scripts/bench/peer_environments made one."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from graphsys import embedding
from tests.conftest import ROOT
from tests.unit.embedding.pbg_layout import NAMES, write_layout
from tests.unit.embedding.test_embedding_pbg_checkpoint import open_graph

SCRIPT = ROOT / "scripts" / "bench" / "peer_environments"
DRIVER = Path(__file__).with_name("pbg_driver.py")


@pytest.fixture(scope="session")
def pbg_python() -> str:
    """Return the Python that has torchbiggraph."""
    done = subprocess.run(
        [str(SCRIPT), "--check", "torchbiggraph"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("no environment of torchbiggraph: scripts/bench/peer_environments")
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("operator", "comparator", "is_dynamic"),
    [
        ("complex_diagonal", "dot", True),
        pytest.param("translation", "l2", False, marks=pytest.mark.slow),
    ],
)
def test_a_real_checkpoint_ranks_and_exports_as_pbg_does(
    tmp_path: Path, pbg_python: str, operator: str, comparator: str, is_dynamic: bool
) -> None:
    made = write_layout(
        tmp_path,
        operator=operator,
        comparator=comparator,
        is_dynamic=is_dynamic,
        partitions=1,
        relations=["r0", "r1", "r2"] if is_dynamic else ["r0"],
        has_global=not is_dynamic,
    )
    real = tmp_path / "real"
    real.mkdir()
    if not is_dynamic:  # its exporter wants the names of static relations too
        (made.data / "dynamic_rel_names.json").write_text('["r0"]')
    settings = made.config(
        checkpoint_path=str(real / "model"),
        num_epochs=3,
        workers=1,
        lr=0.1,
        init_scale=0.5,
        hogwild_delay=0,
        batch_size=50,
    )
    (real / "config.json").write_text(json.dumps(settings))
    subprocess.run(
        [pbg_python, "-P", "-W", "ignore", str(DRIVER), real / "config.json", real],
        check=True,
        capture_output=True,
        timeout=120,
    )
    graph = open_graph(made, 2)
    run = embedding.import_pbg(real / "model", graph, tmp_path / "run")
    stats = json.loads((real / "stats.json").read_text())
    found = embedding.evaluate(run, split="test")["metrics"]["unfiltered"]
    assert found["mrr"] == pytest.approx(stats["mrr"], rel=1e-5)
    assert found["mr"] == pytest.approx(stats["pos_rank"], rel=1e-5)
    assert found["hits@10"] == pytest.approx(stats["r10"], rel=1e-5)
    entities, relations = tmp_path / "entities.tsv", tmp_path / "relation_types.tsv"
    embedding.export_pbg(run, entities, relations)
    theirs = sorted((real / "entities.tsv").read_text().splitlines())
    assert sorted(entities.read_text().splitlines()) == theirs
    theirs = (real / "relation_types.tsv").read_text().splitlines()
    assert sorted(relations.read_text().splitlines()) == sorted(theirs)
    sums = [np.load(path) for path in (tmp_path / "run").glob("state/*/*.npy")]
    assert len(np.concatenate(sums)) == len(NAMES)
    assert np.concatenate(sums).min() > 0
