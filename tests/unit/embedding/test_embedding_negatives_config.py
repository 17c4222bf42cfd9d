"""The spec of negatives: tables, shorthand, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.config import from_mapping, to_toml
from graphsys.core.errors import ConfigError
from graphsys.embedding.config import EmbeddingConfig, load_config, preset_names
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.training.negative_tables import layout
from graphsys.embedding.type_configs import RelationConfig
from graphsys.kernels.cpu.embedding import negatives as kernels

SPEC = """
loss = "softmax"
[[negatives]]
kind = "batch"
num = 50
importance = true
[[negatives]]
kind = "degree"
num = 20
alpha = 0.5
[[negatives]]
kind = "hard"
num = 5
drawn = 40
"""


def test_tables_of_a_file_are_the_pools(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text(SPEC)
    config = load_config(file=file)
    assert config.pools == (
        PoolConfig(kind="batch", num=50, importance=True),
        PoolConfig(kind="degree", num=20, alpha=0.5),
        PoolConfig(kind="hard", num=5, drawn=40),
    )
    assert config.chunk_size == 50
    assert config.num_drawn == 60
    pools = layout(config)
    assert pools.kinds.tolist() == [kernels.DEGREE, kernels.HARD]
    assert pools.begins.tolist() == [0, 20, 60]
    assert pools.num_kept.tolist() == [0, 5]


def test_a_config_with_pools_is_written_and_read_back_equal(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    (tmp_path / "spec.toml").write_text(SPEC)
    config = load_config(file=tmp_path / "spec.toml")
    file.write_text(to_toml(config))
    assert load_config(file=file) == config


def test_the_shorthand_stands_for_batch_and_uniform() -> None:
    config = EmbeddingConfig(
        num_batch_negatives=30, num_uniform_negatives=40, importance_weights=True
    )
    assert config.pools == (
        PoolConfig(kind="batch", num=30),
        PoolConfig(kind="uniform", num=40, importance=True),
    )
    only_uniform = EmbeddingConfig(num_batch_negatives=0, batch_size=70)
    assert [pool.kind for pool in only_uniform.pools] == ["uniform"]
    assert only_uniform.chunk_size == 70


def test_an_override_replaces_the_shorthand_of_a_preset() -> None:
    overrides = ['negatives=[{kind="uniform", num=9}]']
    for preset in preset_names():
        if load_config(preset=preset).mode != "sampled":
            with pytest.raises(ConfigError, match="or --set mode=sampled"):
                load_config(preset=preset, overrides=overrides)
        config = load_config(preset=preset, overrides=[*overrides, "mode=sampled"])
        assert config.pools == (PoolConfig(kind="uniform", num=9),)


def test_chunks_hold_one_relation_where_a_pool_needs_it() -> None:
    typed = (PoolConfig(kind="type", num=9),)
    assert not EmbeddingConfig(reciprocal=True).is_cut_by_relation
    assert EmbeddingConfig(reciprocal=True, negatives=typed).is_cut_by_relation
    assert EmbeddingConfig(reciprocal=False).is_cut_by_relation


def uniform(**keys: Any) -> dict[str, Any]:
    return {"kind": "uniform", "num": 5, **keys}


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"negatives": 3}, r"c\.toml: negatives: got 3, expected a list"),
        ({"negatives": [3]}, r"negatives\[0\]: got 3, expected a table"),
        ({"negatives": [{"num": 3}]}, r"negatives\[0\]\.kind is missing, expected one of"),
        ({"negatives": [{"kind": "type"}]}, r"\[0\]\.num is missing, expected an int >= 1"),
        (
            {"negatives": [uniform(), uniform(kind="degre")]},
            r"negatives\[1\]\.kind: got 'degre', .* did you mean 'degree'\?",
        ),
        (
            {"negatives": [uniform(alfa=1)]},
            r"unknown key 'negatives\[0\]\.alfa'; did you mean 'alpha'\?",
        ),
        ({"negatives": [uniform(num=0)]}, r"negatives\[0\]\.num: got 0, expected an int"),
        (
            {"negatives": [uniform(alpha=0.5)]},
            (
                r"\[0\]\.alpha: got 0\.5 for the kind uniform, expected it for the kind "
                r"degree only; remove it"
            ),
        ),
        (
            {"negatives": [uniform(drawn=50)]},
            (
                r"\[0\]\.drawn: got 50 for the kind uniform, expected it for the kind "
                r"hard only"
            ),
        ),
        (
            {"negatives": [uniform(kind="hard", drawn=4)]},
            r"negatives\[0\]\.drawn: got 4, expected at least num, 5",
        ),
        (
            {"negatives": [uniform(kind="hard", importance=True)]},
            r"negatives\[0\]\.importance: got true for the kind hard, expected false",
        ),
        (
            {"negatives": [uniform(importance=True)], "loss": "ranking"},
            (
                r"negatives\[0\]\.importance: got true with the loss ranking, expected the "
                r"loss softmax"
            ),
        ),
        (
            {"negatives": [uniform(adversarial=1.0)]},
            (
                r"\[0\]\.adversarial: got 1\.0 with the loss softmax, expected the "
                r"loss logistic"
            ),
        ),
        (
            {"negatives": [uniform(kind="batch"), uniform(kind="batch")]},
            r"negatives\[1\]\.kind: got a second pool of the kind batch, expected one",
        ),
        (
            {"negatives": [uniform(kind="batch", num=1)]},
            r"negatives\[0\]\.num: got 1, expected 2 to batch_size, 1000",
        ),
        (
            {"negatives": [uniform(kind="batch", num=60)], "batch_size": 50},
            r"negatives\[0\]\.num: got 60, expected 2 to batch_size, 50",
        ),
        ({"negatives": [uniform()] * 17}, "negatives: got more than 16 pools"),
        (
            {"negatives": [uniform()], "num_uniform_negatives": 9},
            r"num_uniform_negatives: got 9 beside \[\[negatives\]\], which replace it",
        ),
        (
            {"negatives": [uniform()], "importance_weights": True},
            r"importance_weights: got True beside \[\[negatives\]\]",
        ),
    ],
)
def test_what_does_not_fit_is_named(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(EmbeddingConfig, mapping, where="c.toml")


def test_degrees_of_nothing_are_drawn_equally() -> None:
    from graphsys.embedding.training.negative_tables import degree_weights

    indptr = np.array([0, 0, 0], dtype=np.uint32)
    assert degree_weights(indptr, 0.75).tolist() == [1.0, 1.0]
    indptr = np.array([0, 4, 4, 5], dtype=np.uint32)
    assert degree_weights(indptr, 0.5).tolist() == [2.0, 0.0, 1.0]
    assert degree_weights(indptr, 0.0).tolist() == [1.0, 1.0, 1.0]


def test_one_side_at_least_has_negatives() -> None:
    with pytest.raises(ConfigError, match=r"got true and true, expected negatives on one"):
        EmbeddingConfig(disable_src_negatives=True, disable_dst_negatives=True)
    everything = {"a": RelationConfig(all_negatives=True)}
    with pytest.raises(ConfigError, match=r"relations\.a\.all_negatives: got true with d"):
        EmbeddingConfig(disable_dst_negatives=True, relations=everything)
