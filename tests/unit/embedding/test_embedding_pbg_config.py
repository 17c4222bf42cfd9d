"""Configs of PyTorch-BigGraph: read without running them, no key lost in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, from_pbg_config, is_pbg_config

FB15K = '''
#!/usr/bin/env python3
"""A config as PBG's examples have them."""
import os

BASE = "data"
DIM = 50 * 4

def get_torchbiggraph_config():
    """Return it."""
    entities: dict = {"all": {"num_partitions": 4}}
    config = dict(
        entity_path=f"{BASE}/FB15k",
        edge_paths=[BASE + "/train", BASE + "/valid", BASE + "/test"],
        checkpoint_path="model/fb15k",
        entities=entities,
        relations=[
            {"name": "all_edges", "lhs": "all", "rhs": "all",
             "operator": "complex_diagonal"},
        ],
        dynamic_relations=True,
        dimension=DIM,
        global_emb=False,
        comparator="dot",
        num_epochs=50,
        num_uniform_negs=1000,
        loss_fn="softmax",
        lr=0.1,
        regularization_coef=1e-3,
        eval_fraction=0,
        num_gpus=1,
    )
    config["workers"] = 2
    config.update(dict(relation_lr=1e-2))
    return config
'''
SMALL: dict[str, Any] = {
    "entities": {"all": {"num_partitions": 1}},
    "relations": [{"name": "r", "lhs": "all", "rhs": "all"}],
    "dimension": 10,
    "global_emb": False,
    "eval_fraction": 0,
}


def small(**more: Any) -> dict[str, Any]:
    return SMALL | more


def write(tmp_path: Path, text: str, name: str = "config.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_python_config_is_taken_over(tmp_path: Path) -> None:
    told: list[str] = []
    config = from_pbg_config(write(tmp_path, FB15K), tell=told.append)
    assert config == EmbeddingConfig(
        dim=200,
        epochs=50,
        threads=2,
        operator="complex_diagonal",
        comparator="dot",
        loss="softmax",
        reciprocal=True,
        batch_size=1000,
        num_batch_negatives=50,
        num_uniform_negatives=1000,
        lr=0.1,
        relation_lr=0.01,
        regularizer=1e-3,
        init_scale=0.001,
        margin=0.1,
    )
    assert any("num_gpus=1 is left out" in line for line in told)
    assert any("graphsys ingest --partitions all=4" in line for line in told)
    assert any("edge_paths: 3 folders" in line for line in told)


def test_nothing_of_the_file_is_executed(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    text = f"open({str(witness)!r}, 'w')\n" + FB15K
    from_pbg_config(write(tmp_path, text))
    assert not witness.exists()


def test_pbgs_defaults_are_taken_over() -> None:
    config = from_pbg_config(SMALL)
    assert (config.comparator, config.loss, config.lr) == ("cos", "ranking", 0.01)
    assert (config.epochs, config.num_batch_negatives) == (1, 50)
    assert (config.num_uniform_negatives, config.reciprocal) == (50, False)


def test_json_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, json.dumps(small(loss_fn="logistic")), "config.json")
    config = from_pbg_config(path, overrides=["dim=20", "lr=0.5"])
    assert (config.loss, config.dim, config.lr) == ("logistic", 20, 0.5)


def test_sides_without_negatives_are_taken_over() -> None:
    config = from_pbg_config(small(disable_lhs_negs=True))
    assert (config.disable_src_negatives, config.disable_dst_negatives) == (True, False)
    config = from_pbg_config(small(disable_rhs_negs=True))
    assert (config.disable_src_negatives, config.disable_dst_negatives) == (False, True)


def test_relations_with_their_own_settings() -> None:
    relations: list[dict[str, Any]] = [
        {"name": "a", "lhs": "all", "rhs": "all", "operator": "translation"},
        {"name": "b", "lhs": "all", "rhs": "all", "weight": 2},
    ]
    config = from_pbg_config(small(relations=relations, regularization_coef=0.5))
    assert config.relations["a"].operator == "translation"
    assert config.relations["b"].operator == "identity"
    assert (config.relations["a"].weight, config.relations["b"].weight) == (1.0, 2.0)
    assert config.regularizer == 0.25  # once per edge there, once per query here
    equal = [dict(relation, operator="linear", weight=3) for relation in relations]
    config = from_pbg_config(small(relations=equal))
    assert config.operator == "linear"
    assert config.relations["*"].weight == 3.0


def test_files_are_told_apart(tmp_path: Path) -> None:
    assert is_pbg_config(write(tmp_path, FB15K))
    assert is_pbg_config(write(tmp_path, FB15K, "config"))
    assert is_pbg_config(write(tmp_path, "{}", "config.txt"))
    assert not is_pbg_config(write(tmp_path, "dim = 3", "config.toml"))
    assert not is_pbg_config(write(tmp_path, "dim = 3", "config2"))
    assert not is_pbg_config(tmp_path / "missing")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"num_epoch": 3}, "PBG has no key 'num_epoch'; did you mean 'num_epochs'"),
        (
            {"entities": {"all": {"num_parts": 1}}},
            "PBG has no key 'entities.all.num_parts'",
        ),
        ({"entities": {"all": {}}}, "num_partitions: got None, expected an integer >= 1"),
        ({"entities": {}}, "entities is missing; PBG needs it"),
        ({"entities": 3}, "entities: got 3, expected a dictionary"),
        (
            {"entities": {"all": {"num_partitions": 1, "featurized": True}}},
            "entities.all.featurized=True cannot be taken over: PBG keeps features in its",
        ),
        ({"relations": [{"name": "r"}]}, r"relations\[0\]\.lhs is missing"),
        (
            {"relations": [{"name": "r", "lhs": "all", "rhs": "al"}]},
            r"relations\[0\]\.rhs: got 'al', expected one of the entities all",
        ),
        (
            {"relations": [dict(SMALL["relations"][0], operator="complex_diag")]},
            "operator: got 'complex_diag', .* did you mean 'complex_diagonal'",
        ),
        (
            {"relations": [dict(SMALL["relations"][0], operator="xyz")]},
            "operator: got 'xyz', .*; of your own are not run here",
        ),
        (
            {"relations": [SMALL["relations"][0]] * 2, "dynamic_relations": True},
            "dynamic_relations with 2 relations, expected one",
        ),
        (
            {
                "relations": [
                    SMALL["relations"][0],
                    dict(SMALL["relations"][0], operator="linear"),
                ]
            },
            "the name 'r' is given twice, with other settings",
        ),
        ({"dimension": "ten"}, "dimension: got 'ten', expected an integer"),
        ({"global_emb": "x"}, "global_emb: got 'x', expected true or false"),
        ({"lr": [1]}, r"lr: got \[1\], expected a number"),
        ({"comparator": "dott"}, "comparator: got 'dott', .*did you mean 'dot'"),
        ({"loss_fn": "softmx"}, "loss: got 'softmx', .*did you mean 'softmax'"),
        ({"regularizer": "L9"}, "regularizer='L9' cannot be taken over: PBG has N3"),
        ({"bucket_order": "up"}, "bucket_order: got 'up', expected one of random"),
    ],
)
def test_what_cannot_be_taken_over_is_named(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_pbg_config(small(**more))


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("num_machines", 4, "one machine trains"),
        ("half_precision", True, "float32"),
        ("num_partition_servers", 2, "partitions not in memory are files"),
        ("eval_num_uniform_negs", 10, "evaluation ranks all nodes"),
        ("verbose", 1, "progress is shown"),
        ("num_batch_negs", 0, "the positives of a batch share the uniform negatives"),
    ],
)
def test_what_is_left_out_is_told(key: str, value: Any, reason: str) -> None:
    told: list[str] = []
    from_pbg_config(small(**{key: value}), tell=told.append)
    assert len(told) == 1
    assert told[0].startswith(f"{key}={value}")
    assert reason in told[0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return dict(dimension=len('abc'))", r"config\.py:2: `len\('abc'\)` is more than"),
        ("return other", "config.py:2: `other` is more than a plain value"),
        ("for k in []: pass", "config.py:2: `for k in"),
        ("return 3", "the config is a int, expected a dictionary"),
        ("pass", "get_torchbiggraph_config returns nothing"),
        ("return dict(a=10 ** 9)", r"`10 \*\* 9` is more than a plain value"),
        ("return dict(a=1 / 0)", "`1 / 0` is more than a plain value"),
        ("print(1)", r"`print\(1\)` is more than a plain value"),
        ("return {[]: 1}", r"is more than a plain value"),
    ],
)
def test_what_is_more_than_a_literal_is_refused(
    tmp_path: Path, body: str, message: str
) -> None:
    path = write(tmp_path, f"def get_torchbiggraph_config():\n    {body}\n")
    with pytest.raises(ConfigError, match=message):
        from_pbg_config(path)


def test_files_that_are_no_configs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no function get_torchbiggraph_config"):
        from_pbg_config(write(tmp_path, "x = 1\n"))
    with pytest.raises(ConfigError, match="not a readable config of PBG"):
        from_pbg_config(write(tmp_path, "def ("))
    with pytest.raises(ConfigError, match="not a readable config of PBG"):
        from_pbg_config(write(tmp_path, "{", "config.json"))
    with pytest.raises(ConfigError, match="does not exist"):
        from_pbg_config(tmp_path / "none.py")
    text = "def get_torchbiggraph_config():\n    a = 'x' * 1\n    return a\n"
    with pytest.raises(ConfigError, match=r"`'x' \* 1` is more than"):
        from_pbg_config(write(tmp_path, text))
    doubled = "    a = a + a\n" * 30
    text = f"def get_torchbiggraph_config():\n    a = 'x'\n{doubled}    return a\n"
    with pytest.raises(ConfigError, match=r"`a \+ a` is more than"):
        from_pbg_config(write(tmp_path, text))


def test_what_surrounds_the_training_is_taken_over() -> None:
    config = from_pbg_config(
        small(
            init_path="old",
            num_edge_chunks=3,
            checkpoint_preservation_interval=5,
            eval_fraction=0.05,
        )
    )
    assert config.init_from == "old"
    assert config.edge_chunks == 3
    assert config.preserve_every == 5
    assert config.eval_fraction == 0.05
