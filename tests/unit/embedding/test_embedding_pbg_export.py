"""Runs leave as the two TSV files that PyTorch-BigGraph exports."""

from pathlib import Path

import numpy as np
import pytest

from graphsys import embedding
from graphsys.core.errors import ConfigError, OutputExistsError
from graphsys.embedding import Embeddings
from tests.unit.embedding.pbg_layout import NAMES, Layout, write_layout
from tests.unit.embedding.test_embedding_pbg_checkpoint import open_graph


def make_run(root: Path, **settings: object) -> tuple[Layout, Embeddings]:
    made = write_layout(root, **settings)  # type: ignore[arg-type] # fields of Layout
    graph = open_graph(made)
    return made, embedding.import_pbg(made.checkpoint, graph, root / "run")


def expected_entities(made: Layout) -> list[str]:
    """What PBG's ``make_tsv_for_entities`` writes: name, ``%.9f`` of every number."""
    return [
        "\t".join([name, *(f"{value:.9f}" for value in row)])
        for name, row in zip(NAMES, made.rows, strict=True)
    ]


def expected_relations(made: Layout) -> list[str]:
    """What PBG's ``make_tsv_for_relation_types`` writes, matrices laid flat."""
    lines = []
    for key, values in made.parameters.items():
        _, index, _, side, name = key.split("/")
        own = values if made.is_dynamic else [values]
        numbers = range(len(made.relations)) if made.is_dynamic else [int(index)]
        for number, value in zip(numbers, own, strict=True):
            shape = "x".join(map(str, value.shape))
            fields = [made.relations[number], side, made.operator, name, shape]
            lines.append("\t".join(fields + [f"{x:.9f}" for x in value.reshape(-1)]))
    return lines


@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("operator", ["none", "translation", "linear", "complex_diagonal"])
def test_files_are_laid_out_as_pbgs(
    tmp_path: Path, operator: str, is_dynamic: bool
) -> None:
    made, run = make_run(tmp_path, operator=operator, is_dynamic=is_dynamic)
    entities, relations = tmp_path / "entities.tsv", tmp_path / "relation_types.tsv"
    embedding.export_pbg(run, entities, relations)
    assert sorted(entities.read_text().splitlines()) == expected_entities(made)
    found = relations.read_text().splitlines()
    assert sorted(found) == sorted(expected_relations(made))
    if is_dynamic:  # all relations of a parameter, then the next
        assert found == expected_relations(made)


def test_outputs_are_kept_unless_told_otherwise(tmp_path: Path) -> None:
    _, run = make_run(tmp_path, relations=["r0"])
    first, second = tmp_path / "a.tsv", tmp_path / "b.tsv"
    with pytest.raises(ConfigError, match="is to hold entities and relations"):
        embedding.export_pbg(run, first, first)
    second.write_text("mine")
    with pytest.raises(OutputExistsError, match=r"b\.tsv exists"):
        embedding.export_pbg(run, first, second)
    assert second.read_text() == "mine"
    assert not first.exists()
    embedding.export_pbg(run, first, second, overwrite=True)
    assert np.loadtxt(first, usecols=range(1, 5)).shape == (len(NAMES), 4)
    assert second.read_text() == ""
    assert not list(tmp_path.glob(".*new"))
