"""Labels that say that there is none are no class, and never one in silence."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.gnn import load_config
from graphsys.gnn.data.labels import NodeLabels, read_labels
from graphsys.storage import NodeChunk, open_graph
from tests.stores import edge_chunk, make_store

SPLIT = ["train", "train", "valid", "test", None, None]


def labels_of(folder: Path, values: Any, split: Any = SPLIT) -> NodeLabels:
    columns = {"label": pa.array(values), "split": pa.array(split)}
    nodes = NodeChunk(ids=np.arange(6), columns=columns)
    make_store(folder / "g", nodes, edge_chunk([(0, 1)]), partitions=1)
    with open_graph(folder / "g") as graph:
        return read_labels(graph, load_config())


NONE = [
    ([0, 1, 0, 1, -1, -1], [0, 1]),
    ([0.0, 1.0, 0.0, 1.0, float("nan"), None], [0, 1]),
    (np.array([0, 1, 0, 1, np.nan, np.nan], np.float32), [0, 1]),
    (["a", "b", "a", "b", "", "  "], ["a", "b"]),
    (["a", "b", "a", "b", "NaN", None], ["a", "b"]),
    ([5, 7, 5, 7, -1, None], [5, 7]),
]


@pytest.mark.filterwarnings("ignore:.*are -1")
@pytest.mark.parametrize(("values", "classes"), NONE)
def test_labels_that_say_none_are_no_class(
    tmp_path: Path, values: Any, classes: list[Any]
) -> None:
    found = labels_of(tmp_path, values)
    assert found.classes == classes
    assert found.of(np.arange(4)).tolist() == [0, 1, 0, 1]


@pytest.mark.filterwarnings("ignore:.*are -1")
@pytest.mark.parametrize(("values", "classes"), NONE)
def test_in_a_split_they_are_refused_as_the_error_says(
    tmp_path: Path, values: Any, classes: list[Any]
) -> None:
    with pytest.raises(InvalidGraphError, match=r"1 of 3 .* 'train' have no 'label': 4"):
        labels_of(tmp_path, values, ["train", "train", "valid", "test", "train", None])
    found = labels_of(tmp_path / "out", values, SPLIT)  # "take them out of the split"
    assert found.classes == classes


def test_minus_1_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="2 labels of column 'label' are -1"):
        labels_of(tmp_path, [0, 1, 0, 1, -1, -1])


def test_minus_1_and_1_alone_are_two_classes_and_that_is_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="-1 and 1 .* are taken for two classes"):
        found = labels_of(tmp_path, [-1, 1, -1, 1, 1, None])
    assert found.classes == [-1, 1]


@pytest.mark.parametrize("values", [[[0], [-1]], [["a"], [""]], [["a", "nan"], ["b"]]])
def test_lists_of_classes_have_no_such_entry(tmp_path: Path, values: Any) -> None:
    with pytest.raises(ConfigError, match="an empty list is a node without classes"):
        labels_of(tmp_path, [*values, values[0], values[0], [], []])


@pytest.mark.parametrize(
    ("kind", "name"),
    [(np.float64, "double"), (np.float32, "float"), (np.float16, "halffloat")],
)
def test_floats_that_are_whole_numbers_are_classes_and_that_is_said(
    tmp_path: Path, kind: type, name: str
) -> None:
    values: Any = np.array([0, 2, 1, 0, 2, 1], dtype=kind)
    with pytest.warns(UserWarning, match=rf"'label' .* kept as {name}: .*=regression"):
        found = labels_of(tmp_path, values)
    assert found.classes == [0, 1, 2]
    assert found.of(np.arange(6)).tolist() == [0, 2, 1, 0, 2, 1]


@pytest.mark.parametrize("odd", [np.inf, 1e300])
def test_floats_beyond_whole_numbers_are_refused(tmp_path: Path, odd: float) -> None:
    with pytest.raises(ConfigError, match="is double, expected integers, text or lists"):
        labels_of(tmp_path, [0.0, 1.0, 0.0, 1.0, odd, None])


def test_fractions_are_refused_with_the_task_that_takes_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="train task=regression"):
        labels_of(tmp_path, [0.5, 1.0, 0.25, 1.0, None, None])


def test_usual_labels_say_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert labels_of(tmp_path, [0, 1, 2, 1, None, 0]).classes == [0, 1, 2]
