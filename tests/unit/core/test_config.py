import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from graphsys.core.config import (
    apply_overrides,
    check_settings,
    difference,
    from_mapping,
    load_toml,
    option,
    to_mapping,
    to_toml,
    with_whole_lists,
)
from graphsys.core.errors import ConfigError
from graphsys.embedding.config import EmbeddingConfig, load_config, preset_names
from graphsys.embedding.type_configs import RelationConfig
from graphsys.gnn import GnnConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    weight: float = option(1.0, "weight", minimum=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    epochs: int = option(1, "passes", minimum=1, maximum=9)
    lr: float = option(0.1, "rate", above=0)
    name: str = option("x", "name")
    is_fast: bool = option(False, "fast")
    kind: Literal["dot", "cos"] = option("dot", "kind")
    limit: float | None = option(None, "limit")
    types: tuple[str, ...] = option((), "types")
    sizes: tuple[int, ...] = option((), "sizes")
    inner: Inner = option(Inner(), "inner")  # noqa: RUF009 (the config base itself)
    table: Mapping[str, Inner] = option({}, "table")


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("sizes=5,5", (5, 5)),
        ("sizes=5", (5,)),
        ("sizes = [5, 5]", (5, 5)),
        ("sizes=-1,0x10", (-1, 16)),
        ("sizes=", ()),
        ("types=a,b", ("a", "b")),
        ("types=[a, b]", ("a", "b")),
        ('types=["a,b", "c"]', ("a,b", "c")),
        ('types="a,b",c', ('"a', 'b"', "c")),
        ("types=1,true", ("1", "true")),
        ("types=café", ("café",)),
    ],
)
def test_a_list_on_a_command_line_needs_no_brackets(setting: str, expected: Any) -> None:
    """A shell takes quotes away, and zsh takes brackets for names of files."""
    name = setting.partition("=")[0].strip()
    read = apply_overrides({}, with_whole_lists(Outer, [setting]))
    assert getattr(from_mapping(Outer, read), name) == expected


@pytest.mark.parametrize("setting", ["sizes=5,x", "sizes=5,,5", "sizes=1.5,2", "sizes=[5"])
def test_what_is_no_list_is_refused_with_one(setting: str) -> None:
    read = apply_overrides({}, with_whole_lists(Outer, [setting]))
    with pytest.raises(
        ConfigError, match=r"sizes: got .*, expected a list such as \[5, 10"
    ):
        from_mapping(Outer, read)


def test_other_settings_stay_as_they_are() -> None:
    given = ["name=a,b", "inner.weight=1", "types", "table.x.weight=2"]
    assert with_whole_lists(Outer, given) == given


@pytest.mark.parametrize(
    ("cls", "setting"),
    [
        (EmbeddingConfig, 'relations={NAME = {operator = "affine"}}'),
        (EmbeddingConfig, 'negatives=[{kind = "batch", num = 5}]'),
        (EmbeddingConfig, 'edge_sets=[{edge_types = ["a", "b"]}]'),
        (EmbeddingConfig, "node_types={NAME = {dim = 5}}"),
        (GnnConfig, "side_tasks={NAME = 0.5}"),
        (GnnConfig, "fanouts=[5, 10]"),
        (GnnConfig, 'features=["a", "b"]'),
    ],
)
def test_the_form_that_a_refusal_shows_is_taken(cls: type, setting: str) -> None:
    name, _, shown = setting.partition("=")
    with pytest.raises(ConfigError) as caught:
        from_mapping(cls, {name: "x" if shown[0] != "{" else 3})
    assert str(caught.value).endswith(f"such as {shown}")
    known = shown.replace("NAME", "content") if cls is GnnConfig else shown
    read = apply_overrides({}, [f"{name}={known}"])
    assert list(read) == [name]
    check_settings(cls, read, "")


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"epochs": 0}, "f.toml: epochs: got 0, expected an int >= 1 <= 9"),
        ({"epochs": 10}, "epochs: got 10"),
        ({"epochs": True}, "epochs: got True, expected an int"),
        ({"epochs": "3"}, "epochs: got '3', expected an int"),
        ({"lr": 0}, "lr: got 0.0, expected a float > 0"),
        ({"lr": float("nan")}, "lr: got nan"),
        ({"lr": float("inf")}, "lr: got inf"),
        ({"lr": 10**400}, "lr: got 1000"),
        ({"name": 3}, "name: got 3, expected a str"),
        (
            {"kind": "doot"},
            "one of dot, cos; did you mean 'dot'?",
        ),
        ({"types": "a"}, 'types: got \'a\', expected a list such as ["a", "b"]'),
        ({"sizes": 5}, "sizes: got 5, expected a list such as [5, 10]"),
        ({"types": [1]}, "types[0]: got 1, expected a str"),
        ({"inner": 3}, "inner: got 3, expected a table such as {weight = 0.5}"),
        ({"inner": {"weigth": 3}}, "unknown key 'inner.weigth'; did you mean 'weight'?"),
        (
            {"table": {"a.b": {"weight": -1}}},
            "table.a.b.weight: got -1.0, expected",
        ),
        ({"table": 1}, "expected a table by name such as {NAME = {weight = 0.5}}"),
        ({"zzz": 1}, "unknown key 'zzz'; known: epochs, lr"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_mapping(Outer, mapping, where="f.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("f.toml: ")
    assert "\n" not in str(caught.value)


def test_a_config_survives_toml(tmp_path: Path) -> None:
    config = Outer(
        epochs=3,
        limit=2.5,
        types=("a", "b"),
        name='quo"te \u00e9',
        inner=Inner(weight=2),
        table={"/people/x": Inner(weight=0.5), "plain": Inner()},
    )
    (tmp_path / "config.toml").write_text(to_toml(config), encoding="utf-8")
    assert from_mapping(Outer, load_toml(tmp_path / "config.toml")) == config
    assert "limit" not in to_mapping(Outer())


def test_overrides_are_toml_or_else_text() -> None:
    settings = [
        "epochs=3",
        "name=some text",
        'table."a.b".weight=2',
        'table."k=v".weight=1',
        'types=["a"]',
        "is_fast=true",
        "epochs=4",
    ]
    start = {"epochs": 1, "table": {"old": {"weight": 3}}}
    found = apply_overrides(start, settings)
    assert found["epochs"] == 4
    assert found["name"] == "some text"
    assert found["table"] == {
        "old": {"weight": 3},
        "a.b": {"weight": 2},
        "k=v": {"weight": 1},
    }
    assert found["types"] == ["a"]
    assert start == {"epochs": 1, "table": {"old": {"weight": 3}}}


@pytest.mark.parametrize(
    ("text", "value"),
    [(".001", 0.001), ("-.5", -0.5), ("5.", 5.0), (" .1e-2 ", 0.001), ("5.e3", 5000.0)],
)
def test_a_point_at_the_end_of_a_number_is_fine(text: str, value: float) -> None:
    assert apply_overrides({}, [f"lr={text}"]) == {"lr": value}


@pytest.mark.parametrize("text", [".", "v.1", "1.2.", ".5.", '".5"'])
def test_other_texts_with_points_stay_texts(text: str) -> None:
    assert apply_overrides({}, [f"label={text}"]) == {"label": text.strip('"')}


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("epochs", "has no key or no '='"),
        ("=3", "has no key"),
        ("a..b=3", "is not a key"),
        ("epochs.x=3", "epochs is a value, not a table"),
    ],
)
def test_a_broken_override_is_an_error(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        apply_overrides({"epochs": 1}, [setting])


def test_a_missing_or_broken_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        load_toml(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(ConfigError, match="not a readable TOML file"):
        load_toml(tmp_path / "bad.toml")


def test_differences_are_listed_by_path() -> None:
    old, new = {"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 3, "d": 4}}
    assert difference(old, new) == ["b.c: 2 -> 3", "b.d: unset -> 4"]


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_loads(name: str) -> None:
    assert isinstance(load_config(preset=name), EmbeddingConfig)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 7, "operator": "complex_diagonal"}, "dim: got 7, expected an even number"),
        (
            {"dim": 7, "relations": {"a": {"operator": "complex_diagonal"}}},
            "dim: got 7, expected an even number",
        ),
        ({"num_batch_negatives": 2000}, "num_batch_negatives: got 2000, expected at most"),
        ({"num_batch_negatives": 0, "num_uniform_negatives": 0}, "got 0 and 0"),
        (
            {
                "num_batch_negatives": 0,
                "num_uniform_negatives": 0,
                "relations": {"a": {"all_negatives": True}, "*": {}},
            },
            "got 0 and 0, expected negatives of at least one kind, or all nodes for every",
        ),
        ({"importance_weights": True, "loss": "ranking"}, "got true with the loss ranking"),
        ({"dropout": 0.1}, "dropout: got 0.1 without reciprocal, expected questions that"),
        (
            {"regularizer_kind": "dura"},
            "regularizer_kind: got dura without reciprocal, expected an operator on the",
        ),
        ({"operator": "complex"}, "did you mean 'complex_diagonal'"),
        ({"loss": "sofmax"}, "did you mean 'softmax'"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(EmbeddingConfig, changes)


def test_preset_and_file_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give one of them"):
        load_config(preset="wn18rr-complex", file=tmp_path / "x.toml")
    with pytest.raises(LookupError, match=r"unknown preset 'wn18rr-compelx'.*did you mean"):
        load_config(preset="wn18rr-compelx")
    (tmp_path / "x.toml").write_text("dim = 4\n[relations.likes]\nweight = 2\n")
    config = load_config(file=tmp_path / "x.toml", overrides=["epochs=2"])
    assert (config.dim, config.epochs) == (4, 2)
    assert config.relations == {"likes": RelationConfig(weight=2.0)}


def test_tables_nested_without_end_are_refused(tmp_path: Path) -> None:
    deep = "a = " + "{a = " * 5000
    (tmp_path / "deep.toml").write_text(deep)
    with pytest.raises(ConfigError, match=r"deep\.toml: not a readable TOML file"):
        load_toml(tmp_path / "deep.toml")
    assert apply_overrides({}, ["a=" + "[" * 5000])["a"].startswith("[[")


def test_integers_of_thousands_of_digits_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text(f"dim = {'9' * 5000}\n")
    with pytest.raises(ConfigError, match=r"x\.toml: not a readable TOML file"):
        load_toml(file)
    with pytest.raises(ConfigError, match=r"epochs: got .999.*, expected an int") as caught:
        from_mapping(Outer, apply_overrides({}, [f"epochs={'9' * 5000}"]))
    assert len(str(caught.value)) < 400
    with pytest.raises(ConfigError, match="epochs: got an integer of thousands of digits"):
        from_mapping(Outer, apply_overrides({}, [f"epochs=0x{'f' * 5000}"]))
