"""What a search file says, and what is wrong with it."""

from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.tuning.search import Choice, Range, SettingsSearch, read_search
from tests.unit.tuning.conftest import EMBEDDING, GNN


def search_of(*, search: Any, **head: Any) -> SettingsSearch:
    settings = {"epochs": 2, "eval_every": 1, **head.pop("settings", {})}
    said = {"trainer": "embedding", "settings": settings, "search": search, **head}
    return read_search(said)


def test_a_file_begins_with_a_preset_or_a_config_beside_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("dim = 24\nepochs = 6\n")
    file = tmp_path / "search.toml"
    for begin, dim in (('config = "mine.toml"', 24), ('preset = "demo-complex"', 64)):
        file.write_text(
            f'trainer = "embedding"\n{begin}\n[settings]\neval_every = 2\n'
            "[search]\nlr = {low = 0.01, high = 1}\n"
            '[search.relations."*"]\nweight = {low = 1, high = 3}\n'
        )
        found = read_search(file)
        assert (found.base["dim"], found.base["eval_every"]) == (dim, 2)
        assert found.space == {
            "lr": Range(0.01, 1),
            'relations."*".weight': Range(1, 3),
        }
        config = found.config_of({"lr": 0.5, 'relations."*".weight': 2})
        assert (config.lr, config.relations["*"].weight) == (0.5, 2)


def test_lists_and_numbers_are_what_toml_has() -> None:
    found = search_of(
        search={"dim": [4, 8], "loss": ["softmax"], "lr": {"low": 1, "high": 2}}
    )
    assert found.space["dim"] == Choice((4, 8))
    lists = read_search(GNN | {"search": {"fanouts": [[5, 3], [2, 2]]}})
    assert lists.config_of({"fanouts": [2, 2]}).fanouts == (2, 2)
    assert SettingsSearch.of_mapping(lists.as_mapping()) == lists


def test_a_relation_may_be_called_as_a_key_of_ranges() -> None:
    table = {"relations": {"low": {"weight": [1, 2]}, "*": {"weight": [1]}}}
    assert set(search_of(search=table).space) == {
        "relations.low.weight",
        'relations."*".weight',
    }


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({}, r"got nothing to search, expected a table such as \[search\]"),
        ({"dmi": [1]}, "search.unknown key 'dmi'; did you mean 'dim'"),
        ({"dim": [4, 0]}, "search.dim: got 0, expected an int >= 1"),
        ({"dim": [4, "x"]}, "search.dim: got 'x', expected an int"),
        ({"lr": {"low": -1, "high": 1}}, "search.lr: got -1"),
        ({"lr": 0.1}, r"search.lr: got 0.1, expected a list of values or \{low"),
        ({"dim": []}, r"search.dim: got \[\], expected a list of values"),
        ({"lr": {"low": 1}}, "expected low and high, the latter higher"),
        ({"lr": {"low": 2, "high": 1}}, "expected low and high, the latter higher"),
        ({"lr": {"low": 1, "high": 2, "base": 3}}, "got base = 3, expected numbers low"),
        ({"lr": {"low": "1", "high": 2}}, "got low = '1', expected numbers low"),
        ({"lr": {"low": 1, "high": 2, "log": 3}}, "got log = 3"),
        ({"lr": {"low": 0.0, "high": 2, "log": True}}, "log = true takes low > 0"),
        ({"lr": {"low": 1, "high": 2, "step": 2}}, r"lr.step: got 2, expected it to fit"),
        ({"monitor": ["mrr", "mr"]}, "search.monitor: trials are compared by it"),
        ([1], r"search: got \[1\], expected a table"),
    ],
)
def test_what_is_wrong_with_a_search_is_said(search: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        search_of(search=search)


def test_trials_have_evaluations_to_be_compared_by() -> None:
    one = {"lr": [0.1, 0.2]}
    for every in (0, 3):
        with pytest.raises(ConfigError, match=f"eval_every: got {every} with 2 epochs"):
            search_of(search=one, settings={"eval_every": every})
    with pytest.raises(ConfigError, match="monitor: got held_out_loss, expected a metric"):
        search_of(search=one, settings={"monitor": "held_out_loss", "eval_fraction": 0.1})


def test_other_keys_and_names_are_refused() -> None:
    with pytest.raises(ConfigError, match="unknown key 'trials'"):
        read_search(EMBEDDING | {"trials": 3})
    with pytest.raises(
        ConfigError, match="trainer is missing, expected one of embedding, gnn"
    ):
        read_search({"search": {"lr": [1]}})
    with pytest.raises(UnknownNameError, match="unknown preset 'demo'"):
        read_search(EMBEDDING | {"preset": "demo"})
    with pytest.raises(ConfigError, match="settings: got 3, expected a table"):
        read_search(EMBEDDING | {"settings": 3})
