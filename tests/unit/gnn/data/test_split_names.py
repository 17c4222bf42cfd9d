"""A split that is to be evaluated while training is there, or the training says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import gnn
from graphsys.core.errors import ConfigError, UnknownNameError
from tests.unit.gnn.conftest import NUM_NODES, Store
from tests.unit.gnn.event_stores import config_of as config_of_events
from tests.unit.gnn.event_stores import event_store, favorites


def split_by(valid: str) -> dict[str, Any]:
    names = np.array(["train", valid, "train", "test"])[np.arange(NUM_NODES) // 3 % 4]
    return {"split": pa.array(names.tolist())}


def config_of(**changes: Any) -> gnn.GnnConfig:
    return gnn.GnnConfig(**{"dim": 8, "epochs": 2, "fanouts": (3, 3), **changes})


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"patience": 1}, r"'valid' with patience=1, but .* leave it out"),
        ({"target": 0.5, "task": "regression"}, r"'valid' with target=0.5, but"),
        ({"lr_schedule": "plateau"}, r"'valid' with lr_schedule=plateau, but"),
        (
            {"patience": 1, "target": 0.5},
            r"'valid' with patience=1 and target=0.5, .* leave them out",
        ),
        ({"eval_split": "dev"}, r"'dev', but .* or eval_every=0"),
    ],
)
def test_a_setting_that_needs_the_missing_split_is_refused(
    groups: Store, tmp_path: Path, changes: dict[str, Any], found: str
) -> None:
    graph = groups(columns=split_by("val"))
    with pytest.raises(ConfigError, match=f"eval_split: got {found}") as caught:
        gnn.train(graph, config_of(**changes), tmp_path / "run")
    assert "the graph has train, val, test; name one" in str(caught.value)
    assert not (tmp_path / "run").exists()
    named = config_of(**{**changes, "eval_split": "val"})
    assert gnn.train(graph, named, tmp_path / "run").metrics["best_epoch"]


def test_a_split_that_may_be_meant_is_named(groups: Store, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"no split is called 'valid'.*eval_split=val$"):
        gnn.train(groups(columns=split_by("val")), config_of(), tmp_path / "run")


def test_a_watched_split_of_one_class_is_told_by_accuracy(
    groups: Store, tmp_path: Path
) -> None:
    split = split_by("valid")
    known = np.array(split["split"].to_pylist())
    label = np.where(known == "valid", 1, np.arange(NUM_NODES) % 2)
    graph = groups(columns={**split, "label": label})
    with pytest.warns(
        UserWarning, match=r"'valid' are of one class, .* accuracy is watched"
    ):
        report = gnn.train(graph, config_of(target=0.0), tmp_path / "run")
    measured = gnn.evaluate(tmp_path / "run", split="valid")["metrics"]
    for metrics in (
        measured,
        {k.removeprefix("valid_"): v for k, v in report.metrics.items()},
    ):
        assert "accuracy" in metrics
        assert "roc_auc" not in metrics
    assert report.metrics["epochs_to_target"] == 1


def test_a_run_without_valid_is_trained_in_silence(groups: Store, tmp_path: Path) -> None:
    report = gnn.train(groups(columns=split_by("test")), config_of(), tmp_path / "run")
    assert report.epochs == 2


def test_an_empty_span_of_events_is_no_split(tmp_path: Path) -> None:
    graph = event_store(tmp_path / "g", favorites(60))
    config = config_of_events("jodie", valid_share=0.0, patience=1)
    with pytest.raises(ConfigError, match="with patience=1, but the graph has train, test"):
        gnn.train(graph, config, tmp_path / "run")
    config = config_of_events("jodie", valid_share=0.0, test_share=0.0)
    gnn.train(graph, config, tmp_path / "run")
    with pytest.raises(UnknownNameError, match=r"graphsys split GRAPH --by time -o GRAPH2"):
        gnn.evaluate(tmp_path / "run")
