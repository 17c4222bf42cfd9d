"""Settings that speak: printed as a file that is taken back, on pages, in errors."""

import dataclasses
import tomllib
import typing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.cli.main import main
from graphsys.core.config import aliases_of, from_mapping
from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, RelationConfig
from graphsys.embedding import load_config as load_embedding
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.gnn import GnnConfig
from graphsys.gnn import load_config as load_gnn
from graphsys.training.settings import as_markdown, as_toml, settings_of

ROOT = Path(__file__).resolve().parents[3]
TRAINERS: list[tuple[str, Any, Any]] = [
    ("embedding", EmbeddingConfig, load_embedding),
    ("gnn", GnnConfig, load_gnn),
]
OLD_NAMES = [
    (load_embedding, "stop_metric", "monitor", "mr"),
    (load_embedding, "regulariser", "regularizer", 0.5),
    (load_embedding, "regulariser_kind", "regularizer_kind", "l2"),
    (load_gnn, "watch", "eval_split", "test"),
]


@pytest.mark.parametrize(("name", "kind", "load"), TRAINERS)
def test_what_is_printed_is_a_config_with_the_defaults(
    name: str, kind: Any, load: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", name, "--settings"]) == 0
    text = capsys.readouterr().out
    file = tmp_path / "all.toml"
    file.write_text(text)
    assert load(file=file) == kind()
    written, flowing = tomllib.loads(text), " ".join(text.replace("\n# ", " ").split())
    for field in dataclasses.fields(kind):
        table = f"[{field.name}.NAME]", f"[[{field.name}]]", f"# {field.name} = "
        assert field.name in written or any(one in text for one in table)
        assert field.metadata["help"] in flowing


@pytest.mark.parametrize(("name", "kind", "load"), TRAINERS)
def test_the_page_in_the_room_is_what_would_be_written(
    name: str, kind: Any, load: Any
) -> None:
    page = (ROOT / "graphsys" / name / "SETTINGS.md").read_text(encoding="utf-8")
    assert page == as_markdown(kind, f"graphsys train {name}"), "run scripts/settings_pages"


@pytest.mark.parametrize(("name", "kind", "load"), TRAINERS)
def test_every_setting_has_a_sentence_and_a_group(name: str, kind: Any, load: Any) -> None:
    for setting in settings_of(kind):
        assert setting.group, setting.name
        for one in (setting, *setting.tables):
            assert one.help.endswith("."), one.name
            choices = one.kind.removeprefix("one of ").split(", ")
            assert one.help[0].isupper() or one.help.split(":")[0] in choices, one.name


@pytest.mark.parametrize(("load", "old", "new", "value"), OLD_NAMES)
def test_old_names_are_read_with_a_note(
    load: Any, old: str, new: str, value: Any, tmp_path: Path
) -> None:
    file = tmp_path / "old.toml"
    shown = f"{old} = {value!r}".replace("'", '"')
    file.write_text(shown)
    with pytest.warns(UserWarning, match=f"{old} is called {new} now"):
        config = load(file=file)
    assert getattr(config, new) == value
    file.write_text("")
    with pytest.warns(UserWarning, match=f"{old} is called {new} now"):
        assert load(file=file, overrides=[shown]) == config
    mapped = from_mapping(type(config), {old: value})  # as the config of an old run is read
    assert mapped == config
    with pytest.raises(ConfigError, match=f"{old}: got it beside {new}"):
        from_mapping(type(config), {old: value, new: value})
    file.write_text(f"{shown}\n{shown.replace(old, new, 1)}\n")
    with pytest.raises(ConfigError, match=f"old.toml: {old}: got it beside {new}"):
        load(file=file)


def test_an_override_by_its_old_name_replaces_the_file_s_new_one(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text('monitor = "mr"\n')
    with pytest.warns(UserWarning, match="stop_metric"):
        config = load_embedding(file=file, overrides=["stop_metric=hits@1"])
    assert config.monitor == "hits@1"


def test_a_run_of_its_day_is_read_without_notes(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('stop_metric = "mr"\n')
    (tmp_path / "run.json").write_text("{}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config = load_embedding(file=tmp_path / "config.toml")
    assert config.monitor == "mr"


def test_no_alias_is_a_name_of_today() -> None:
    for _, kind, _ in TRAINERS:
        assert not aliases_of(kind).keys() & typing.get_type_hints(kind).keys()


def test_a_misspelt_key_is_answered_with_the_nearest_and_what_it_is_for() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'epochs'\? \(Passes over the"):
        from_mapping(GnnConfig, {"epoch": 3})
    with pytest.raises(ConfigError, match="did you mean 'monitor'"):
        from_mapping(EmbeddingConfig, {"stop_metrc": "mr"})


def test_tables_are_told_with_their_keys() -> None:
    text = as_toml(EmbeddingConfig, "x")
    for line in ("# [relations.NAME]", "# [[negatives]]", "# kind = ...", "# alpha = ..."):
        assert line in text
    page = as_markdown(EmbeddingConfig, "x")
    assert "| `negatives[].num` | unset | an int >= 1 |" in page


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (EmbeddingConfig, {"dim": 0}, "dim: got 0, expected an int >= 1"),
    (EmbeddingConfig, {"lr": -0.1}, "lr: got -0.1, expected a float > 0"),
    (EmbeddingConfig, {"epochs": 1.5}, "epochs: got 1.5, expected an int >= 1"),
    (EmbeddingConfig, {"bias": 1}, "bias: got 1, expected a bool, true or false"),
    (EmbeddingConfig, {"row_dtype": "float8"}, "row_dtype: got 'float8', expected one of"),
    (EmbeddingConfig, {"eval_fraction": 0.95}, "eval_fraction: got 0.95, expected a float"),
    (EmbeddingConfig, {"lr": float("nan")}, "lr: got nan, expected a float > 0"),
    (GnnConfig, {"dropout": 1.0}, "dropout: got 1.0, expected a float >= 0 <= 0.99"),
    (GnnConfig, {"layers": 0}, "layers: got 0, expected an int >= 1"),
    (GnnConfig, {"fanouts": (10, "all")}, r"fanouts\[1\]: got 'all', expected an int"),
    (GnnConfig, {"norm": "group"}, "norm: got 'group', expected one of none, layer, batch"),
]


@pytest.mark.parametrize(("kind", "given", "said"), WRONG, ids=str)
def test_a_bound_holds_in_python_as_in_toml(
    kind: Any, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{said}"):
        kind(**given)
    with pytest.raises(ConfigError, match=f"^here: {said}"):
        from_mapping(kind, given, where="here")


def test_numbers_and_lists_of_python_become_what_a_setting_is() -> None:
    config = EmbeddingConfig(dim=np.int64(8), lr=1, edge_types=["a"])  # type: ignore[arg-type]
    assert config == EmbeddingConfig(dim=8, lr=1.0, edge_types=("a",))
    assert type(config.dim) is int
    assert type(config.lr) is float
    assert GnnConfig(fanouts=[3, 2]).fanouts == (3, 2)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="dim: got True, expected an int >= 1"):
        EmbeddingConfig(dim=True)
    with pytest.raises(ConfigError, match=r"weight: got -1\.0, expected a float >= 0"):
        RelationConfig(weight=-1)
    with pytest.raises(ConfigError, match="num: got 0, expected an int >= 1"):
        PoolConfig(kind="uniform", num=0)
