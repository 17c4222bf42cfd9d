"""Checkpoints of PyTorch-BigGraph become runs that rank as PBG's own formulas do."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import embedding
from graphsys.core.errors import ConfigError, InputError, OutputExistsError
from graphsys.datasets import ingest
from graphsys.embedding.spec.operators import OPERATORS as KNOWN
from graphsys.storage import Graph
from tests.unit.embedding.pbg_layout import NAMES, Layout, h5py, write_layout


def open_graph(made: Layout, partitions: int = 3, *, by_config: bool = True) -> Graph:
    out, folders = made.root / "graph", [made.data / "train", made.data / "test"]
    if not by_config:
        return ingest(folders, out, partitions=partitions).graph
    path = made.root / "data.json"
    path.write_text(json.dumps(made.config(edge_paths=list(map(str, folders)))))
    return ingest(path, out, format="pbg", partitions=partitions).graph


def mean_reciprocal_rank(made: Layout) -> tuple[float, float]:
    """Raw MRR and mean rank of the test edges, by PBG's formulas; ties count half."""
    ranks = []
    for lhs, relation, rhs in made.edges[120:]:
        for asks_for_rhs in (True, False):
            scores, place = made.scores(lhs, relation, rhs, asks_for_rhs)
            better = np.sum(scores > scores[place])
            ranks.append(1 + better + 0.5 * (np.sum(scores == scores[place]) - 1))
    return float(np.mean(1 / np.array(ranks))), float(np.mean(ranks))


OPERATORS = ["none", "diagonal", "translation", "linear", "affine", "complex_diagonal"]


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("comparator", ["dot", "cos", "l2", "squared_l2"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_ranks_are_those_of_pbgs_formulas(
    tmp_path: Path, operator: str, comparator: str, is_dynamic: bool
) -> None:
    if operator == "affine" and operator not in KNOWN.names():
        pytest.skip("no affine operator yet")
    made = write_layout(
        tmp_path, operator=operator, comparator=comparator, is_dynamic=is_dynamic
    )
    graph = open_graph(made)
    run = embedding.import_pbg(made.checkpoint, graph, tmp_path / "run")
    found = embedding.evaluate(run, split="test")["metrics"]["unfiltered"]
    assert (found["mrr"], found["mr"]) == pytest.approx(mean_reciprocal_rank(made))
    lhs, relation, rhs = made.edges[:9].T
    triples = {
        "head": [NAMES[k] for k in lhs],
        "relation": [made.relations[k] for k in relation],
        "tail": [NAMES[k] for k in rhs],
    }
    expected = []
    for head, kind, tail in made.edges[:9]:
        scores, place = made.scores(head, kind, tail, True)
        expected.append(scores[place])
    assert embedding.score(run, triples) == pytest.approx(
        np.array(expected), rel=1e-5, abs=1e-5
    )


@pytest.mark.parametrize("partitions", [1, 2, 4])
def test_rows_find_their_nodes_whatever_the_partitions(
    tmp_path: Path, partitions: int
) -> None:
    made = write_layout(tmp_path, partitions=partitions, relations=["r0"], has_global=True)
    run = embedding.import_pbg(made.checkpoint, open_graph(made, 3), tmp_path / "run")
    assert np.array_equal(run.lookup(NAMES), made.rows + made.shift)
    assert not run.config.reciprocal
    assert run.state.is_complete
    answer = embedding.nearest(run, NAMES[0], 3).column("id").to_pylist()
    scores = (made.rows + made.shift) @ (made.rows + made.shift)[0]
    expected = [NAMES[k] for k in np.argsort(-scores, kind="stable") if k != 0]
    assert answer == expected[:3]


def test_entities_and_relations_without_names_are_known_by_number(tmp_path: Path) -> None:
    made = write_layout(tmp_path, with_names=False, operator="diagonal")
    settings = made.config()
    settings["relations"][1]["operator"] = "translation"  # so that names matter
    with h5py.File(made.checkpoint / "model.v3.h5", "a") as file:
        group = file["model/relations/1/operator/rhs"]
        group["translation"] = group["diagonal"][...]
    (made.checkpoint / "config.json").write_text(json.dumps(settings))
    graph = open_graph(made, by_config=False)
    run = embedding.import_pbg(made.checkpoint, graph, tmp_path / "run")
    assert np.array_equal(run.lookup([0, 13, 23]), made.rows[[0, 13, 23]])
    assert run.config.relations["1"].operator == "translation"


def test_adagrads_sums_come_along(tmp_path: Path) -> None:
    made = write_layout(tmp_path, operator="complex_diagonal", is_dynamic=True)
    sums = torch.arange(12, dtype=torch.float32)

    def add(file: Path, states: dict[int, Any]) -> None:
        content = io.BytesIO()
        torch.save({"state": states, "param_groups": [{"lr": 0.1}]}, content)
        with h5py.File(file, "a") as opened:
            data = np.frombuffer(content.getvalue(), dtype="V1")
            opened.create_dataset("optimizer/state_dict", data=data)

    add(made.checkpoint / "embeddings_all_1.v3.h5", {0: {"step": 9, "sum": sums}})
    # parameters in torch's order: lhs real, lhs imag, rhs real, rhs imag
    states = {
        k: {"step": torch.tensor(1.0), "sum": torch.full((3, 2), k + 1.0)} for k in range(4)
    }
    add(made.checkpoint / "model.v3.h5", states)
    run = embedding.import_pbg(made.checkpoint, open_graph(made, 1), tmp_path / "run")
    kept = np.load(next((tmp_path / "run").glob("state/*/part-0.1.npy")))
    numbers = run.graph.lookup("all", NAMES)
    assert np.array_equal(kept[numbers], np.concatenate([np.zeros(12), np.arange(12)]))
    table = run.operators(run.model[0])
    assert table[1, :4].tolist() == [1, 1, 2, 2]
    assert table[3, :4].tolist() == [3, 3, 4, 4]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    made = write_layout(tmp_path, relations=["r0"])
    graph, out = open_graph(made), tmp_path / "run"
    other = write_layout(tmp_path / "other", with_names=False, relations=["r0"])
    few = open_graph(other)
    with pytest.raises(ConfigError, match="must have all entities of the checkpoint"):
        embedding.import_pbg(made.checkpoint, few, out)
    with pytest.raises(InputError, match="holds no checkpoint of PBG"):
        embedding.import_pbg(tmp_path, graph, out)
    with pytest.raises(InputError, match="holds no entity_count files"):
        embedding.import_pbg(made.checkpoint, graph, out, entity_path=tmp_path / "none")
    part = made.checkpoint / "embeddings_all_1.v3.h5"
    content = part.read_bytes()
    part.unlink()
    with pytest.raises(InputError, match=r"embeddings_all_1\.v3\.h5 is missing"):
        embedding.import_pbg(made.checkpoint, graph, out)
    part.write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="cannot be read as HDF5"):
        embedding.import_pbg(made.checkpoint, graph, out)
    with h5py.File(part, "w") as file:
        file["embeddings"] = np.zeros((12, 3), dtype=np.float32)
    with pytest.raises(InputError, match=r"rows of shape \(12, 3\), expected \(12, 4\)"):
        embedding.import_pbg(made.checkpoint, graph, out)
    with h5py.File(part, "w") as file:
        file["other"] = np.zeros(1)
    with pytest.raises(InputError, match="has no dataset 'embeddings'"):
        embedding.import_pbg(made.checkpoint, graph, out)
    stated = made.checkpoint / "config.json"
    settings = stated.read_text()
    stated.write_text(json.dumps(made.config(relations=[{}])))
    with pytest.raises(ConfigError, match=r"relations\[0\]\.name is missing"):
        embedding.import_pbg(made.checkpoint, graph, out)
    stated.write_text(settings)
    assert not out.exists()
    assert not list(tmp_path.glob("run*"))
    part.write_bytes(content)
    embedding.import_pbg(made.checkpoint, graph, out)
    with pytest.raises(OutputExistsError, match="holds a run"):
        embedding.import_pbg(made.checkpoint, graph, out)
    embedding.import_pbg(made.checkpoint, graph, out, overwrite=True)


def test_a_graph_with_other_nodes_is_refused(tmp_path: Path) -> None:
    made = write_layout(tmp_path, relations=["r0"])
    text = tmp_path / "more.tsv"
    text.write_text("".join(f"{name}\textra\n" for name in NAMES))
    graph = ingest(text, tmp_path / "more").graph
    with pytest.raises(ConfigError, match="has 24 entities of 'all', 24 of them distinct"):
        embedding.import_pbg(made.checkpoint, graph, tmp_path / "run")


def test_relations_that_differ_are_refused(tmp_path: Path) -> None:
    made = write_layout(tmp_path, operator="diagonal", is_dynamic=True)
    graph = open_graph(made)
    (made.data / "dynamic_rel_names.json").write_text('["r0", "r1", "other"]')
    with pytest.raises(ConfigError, match="the relations r2, which the checkpoint lacks"):
        embedding.import_pbg(made.checkpoint, graph, tmp_path / "run")
