"""What a program gives a trainer by mistake is told in one line, before there is a run."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphsys import embedding, gnn
from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig
from graphsys.gnn import GnnConfig
from graphsys.training.callbacks import Callback
from tests.stores import edge_chunk, make_store

TRAINERS = [(gnn.train, GnnConfig), (embedding.train, EmbeddingConfig)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("given") / "g"
    make_store(path, edge_chunk([(0, 1), (1, 2), (2, 0)]))
    return path


class Mine(Callback):
    """Does nothing."""


@pytest.mark.parametrize(("train", "kind"), TRAINERS)
@pytest.mark.parametrize(
    ("callbacks", "found"),
    [
        (None, "NoneType"),
        (Mine(), "Mine"),
        ([Mine], "the class Mine"),
        ([Mine(), print], "builtin_function_or_method"),
    ],
)
def test_callbacks_that_are_none(
    graph: Path, tmp_path: Path, train: Any, kind: Any, callbacks: Any, found: str
) -> None:
    message = f"callbacks: got {found}, expected a list of objects of classes that derive"
    with pytest.raises(ConfigError, match=f"^{message}"):
        train(graph, kind(), tmp_path / "run", callbacks=callbacks)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("train", "kind"), TRAINERS)
def test_a_config_of_something_else(
    graph: Path, tmp_path: Path, train: Any, kind: Any
) -> None:
    other = EmbeddingConfig() if kind is GnnConfig else GnnConfig()
    for config in (other, {"epochs": 3}):
        message = f"config: got {type(config).__name__}, expected {kind.__name__} for "
        with pytest.raises(ConfigError, match=f"^{message}"):
            train(graph, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_of_the_other_trainer_is_not_resumed(graph: Path, tmp_path: Path) -> None:
    content = {"kind": "gnn", "format_version": 1, "graph": {"path": str(graph)}}
    (tmp_path / "run.json").write_text(json.dumps(content))
    (tmp_path / "config.toml").write_text('task = "node_classification"\n')
    message = f"{tmp_path} is a run of a graph neural network, expected one of embeddings"
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}"):
        embedding.train(graph, None, tmp_path, resume=True)
