"""Drift against SciPy's cosine distance and Procrustes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.spatial.distance import cosine
from scipy.stats import ortho_group

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, drift, open_run, train
from graphsys.embedding import run as runs
from graphsys.storage import Graph
from tests.runs import reseal

MakeRing = Callable[[int], Graph]


@pytest.fixture
def trained(make_ring: MakeRing, tmp_path: Path) -> Path:
    """Return a run over the ring in two partitions."""
    config = EmbeddingConfig(dim=8, epochs=1, deterministic=True, init_scale=1.0)
    return train(make_ring(2), config, tmp_path / "old").run


def change(run: Path, out: Path, to: Callable[[npt.NDArray[np.float32]], object]) -> Path:
    """Copy a run and change its rows."""
    shutil.copytree(run, out)
    for name in runs.read_state(out).files:
        if name.startswith("rows/"):
            np.save(out / name, np.asarray(to(np.load(out / name)), dtype=np.float32))
    reseal(out)
    return out


def all_rows(run: Path) -> npt.NDArray[np.float32]:
    """Return the rows of all entities in the order of their ids."""
    opened = open_run(run)
    return opened.lookup(sorted(opened.graph.node_ids("entity").to_pylist()))


def test_an_unchanged_run_has_no_drift(trained: Path) -> None:
    found = drift(trained, trained)["entity"]
    assert found["nodes"] == 40
    assert found["new_nodes"] == 0
    assert found["mean"] == found["max"] == found["p99"] == 0.0


def test_distances_are_those_of_scipy(trained: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    new = change(trained, tmp_path / "new", lambda rows: rows + rng.normal(size=rows.shape))
    pairs = zip(all_rows(trained), all_rows(new), strict=True)
    expected = [cosine(a.astype(np.float64), b.astype(np.float64)) for a, b in pairs]
    found = drift(trained, new, node_type="entity")["entity"]
    assert found["mean"] == pytest.approx(np.mean(expected), abs=1e-9)
    for percent in (50, 90, 99):
        expected_value = np.percentile(expected, percent)
        assert found[f"p{percent}"] == pytest.approx(expected_value, abs=1e-9)
    assert found["max"] == pytest.approx(np.max(expected), abs=1e-9)


def test_alignment_undoes_a_rotation_and_is_that_of_scipy(
    trained: Path, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    turn = ortho_group.rvs(8, random_state=5)
    turned = change(trained, tmp_path / "turned", lambda rows: rows @ turn)
    assert drift(trained, turned)["entity"]["mean"] > 0.3
    assert drift(trained, turned, align=True)["entity"]["max"] < 1e-6
    noisy = change(turned, tmp_path / "noisy", lambda r: r + rng.normal(size=r.shape))
    old, new = all_rows(trained).astype(np.float64), all_rows(noisy).astype(np.float64)
    best, _ = orthogonal_procrustes(old, new)
    expected = [cosine(a, b) for a, b in zip(old @ best, new, strict=True)]
    found = drift(trained, noisy, align=True)["entity"]
    assert found["mean"] == pytest.approx(np.mean(expected), abs=1e-6)
    assert found["aligned"] is True


def test_partitions_do_not_matter(
    make_ring: MakeRing, trained: Path, tmp_path: Path
) -> None:
    config = EmbeddingConfig(dim=8, epochs=1, deterministic=True, init_scale=1.0, seed=1)
    other = train(make_ring(4), config, tmp_path / "other").run
    pairs = zip(all_rows(trained), all_rows(other), strict=True)
    expected = [cosine(a.astype(np.float64), b.astype(np.float64)) for a, b in pairs]
    assert drift(trained, other)["entity"]["mean"] == pytest.approx(np.mean(expected))


def test_runs_that_cannot_be_compared_are_refused(
    make_ring: MakeRing, shop: Graph, trained: Path, tmp_path: Path
) -> None:
    wide = train(make_ring(1), EmbeddingConfig(dim=4, epochs=1), tmp_path / "wide").run
    with pytest.raises(ConfigError, match=r"'entity' have dim 8 in .*old and 4 in .*wide"):
        drift(trained, wide)
    other = train(shop, EmbeddingConfig(dim=8, epochs=1), tmp_path / "shop").run
    with pytest.raises(ConfigError, match="have no node type in common; they have entity"):
        drift(trained, other)
    with pytest.raises(ConfigError, match="have no node type 'user' in common"):
        drift(trained, other, node_type="user")
