"""What settings say that they are for can be looked up, for both trainers."""

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, load_config, preset_names
from graphsys.gnn import GnnConfig
from graphsys.gnn.model_spec import models
from graphsys.gnn.part_specs import TASKS
from graphsys.training.config import Parts, is_read, unread

if TYPE_CHECKING:
    from collections.abc import Mapping

OF_GNN: Parts = {"model": models.modules, "task": TASKS.modules}
OF_EMBEDDING: Parts = {"loss": ("softmax", "ranking")}


@pytest.mark.parametrize(
    ("config", "parts"), [(GnnConfig(), OF_GNN), (EmbeddingConfig(), OF_EMBEDDING)]
)
def test_every_setting_says_what_it_is_for(config: Any, parts: Parts) -> None:
    for field in dataclasses.fields(config):
        assert is_read(config, field.name, parts) in (True, False)


@pytest.mark.parametrize("preset", preset_names())
def test_presets_set_nothing_that_is_for_what_they_have_not(preset: str) -> None:
    config = dataclasses.replace(load_config(preset=preset), of_preset=())
    assert unread(config, (), {"loss": (config.loss,)}, "a preset") == []


def test_a_loss_of_others_may_read_the_margin() -> None:
    config = EmbeddingConfig()
    assert not is_read(config, "margin", {"loss": ("softmax",)})
    assert is_read(config, "margin", {"loss": ()})


def test_a_setting_for_what_there_is_not_is_a_wrong_declaration() -> None:
    none: Mapping[str, tuple[str, ...]] = {"model": (), "task": ()}
    with pytest.raises(ConfigError, match="expected a part or key = value"):
        is_read(GnnConfig(), "heads", none)
