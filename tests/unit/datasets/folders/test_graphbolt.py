"""GraphBolt's OnDiskDataset folders, written here in their documented layout."""

from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import InputError
from graphsys.datasets import ingest, open_source

pytest.importorskip("yaml", reason="PyYAML comes with the extra all")

CARD = """
dataset_name: test
graph:
  nodes:
    - {type: user, num: 3}
    - {type: item, num: 2}
  edges:
    - {type: "user:likes:item", format: csv, path: likes.csv}
    - {type: "user:follows:user", format: numpy, path: follows.npy}
feature_data:
  - {domain: node, type: item, name: feat, format: numpy, in_memory: false, path: f.npy}
tasks:
  - name: link_prediction
    train_set: []
  - name: node_classification
    num_classes: 4
    train_set:
      - type: user
        data:
          - {name: seeds, format: numpy, path: train.npy}
          - {name: labels, format: numpy, path: label.npy}
    test_set:
      - type: user
        data:
          - {name: seeds, format: numpy, path: test.npy}
"""


def write(root: Path, card: str = CARD, **arrays: list[object]) -> Path:
    root.mkdir(exist_ok=True)
    (root / "metadata.yaml").write_text(card)
    (root / "likes.csv").write_text("0,1\n2,0\n")
    content = {
        "follows": [[0, 1], [1, 2]],
        "f": [[0.5, 1], [2, 3]],
        "train": [2],
        "label": [3],
        "test": [0],
    }
    for name, values in (content | arrays).items():
        np.save(root / f"{name}.npy", np.array(values))
    return root


def test_a_folder(tmp_path: Path) -> None:
    graph = ingest(write(tmp_path / "d"), tmp_path / "g").graph
    assert sorted(map(tuple, graph.edge_types)) == [
        ("user", "follows", "user"),
        ("user", "likes", "item"),
    ]
    user = graph.nodes("user", 0)
    assert user["split"].to_pylist() == ["test", None, "train"]
    assert user["label"].to_pylist() == [None, None, 3]
    assert graph.features("item", 0, "feat").tolist() == [[0.5, 1], [2, 3]]
    assert graph.num_edges == 4


def test_one_kind_of_nodes(tmp_path: Path) -> None:
    card = "graph:\n  nodes: [{num: 3}]\n  edges: [{format: csv, path: likes.csv}]\n"
    graph = ingest(write(tmp_path / "d", card), tmp_path / "g").graph
    assert (graph.num_nodes, graph.num_edges) == (3, 2)


@pytest.mark.parametrize(
    ("card", "arrays", "message"),
    [
        ("a: [", {}, r"metadata\.yaml: no YAML"),
        ("- a", {}, "expected a mapping with graph"),
        ("graph: {nodes: []}", {}, "lacks or misplaces 'edges'"),
        (CARD.replace("item, num: 2", "item, num: 1"), {}, "'feat' has 2 rows, expected 1"),
        (
            CARD.replace("user:likes:item", "likes"),
            {},
            "edge type 'likes', expected source:",
        ),
        (
            CARD.replace("format: numpy, path: follows", "format: torch, path: follows"),
            {},
            "format 'torch', expected numpy",
        ),
        (CARD, {"follows": [[0], [3]]}, r"follows\.npy: unknown node 3, expected 0 to 2"),
        (CARD, {"follows": [[0, 1, 1]]}, r"shape \[1, 3\], expected \[2, edges\]"),
        (CARD, {"test": [7]}, "test_set names node 7, expected 0 to 2"),
        (CARD, {"label": [1, 2]}, r"labels of shape \[2\], expected one for each of 1"),
        (
            CARD.replace("user, num: 3", "user, num: 2"),
            {"follows": [[0], [1]], "train": [1]},
            r"likes\.csv:2: unknown node 2, expected 0 to 1",
        ),
    ],
)
def test_wrong_folders_are_refused(
    tmp_path: Path, card: str, arrays: dict[str, list[object]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(open_source(write(tmp_path / "d", card, **arrays)).chunks())
