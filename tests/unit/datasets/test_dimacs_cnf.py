"""Formulas of SAT solvers: the factor graph, and every refusal."""

from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import open_source
from tests.unit.datasets.test_graph_formats import read, write


def test_clauses_lead_to_variables(tmp_path: Path) -> None:
    text = "c of three\np cnf 4 3\n1 -2 0 2\nc in between\n3 -4 0\n-1 0\n%\n0\n"
    path = write(tmp_path / "f.cnf", text)
    assert open_source(path).is_directed
    nodes, edges = read(path)
    assert sorted(nodes) == [1, 2, 3, 4, 5, 6, 7]
    assert edges == [(5, 1, 1), (5, 2, -1), (6, 2, 1), (6, 3, 1), (6, 4, -1), (7, 1, -1)]


def test_repeated_literals_and_clauses_that_always_hold(tmp_path: Path) -> None:
    path = write(tmp_path / "f.cnf", "p cnf 3 3\n2 1 2 0\n3 -1 -3 0\n-2 -2 0\n")
    assert read(path)[1] == [(4, 1, 1), (4, 2, 1), (6, 2, -1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 0\n", "f.cnf: found no line 'p cnf VARIABLES CLAUSES'"),
        ("p cnf 3\n", "f.cnf:1: found 'p cnf 3', expected 'p cnf VARIABLES CLAUSES'"),
        ("c\np sat 3 1\n", "f.cnf:2: found 'p sat 3 1'"),
        ("p cnf 3 1\n1 x 0\n", "f.cnf:2: found 'x', expected numbers of variables"),
        ("p cnf 3 1\n1 2\n", "f.cnf: the last clause ends without 0"),
        ("p cnf 3 2\n1 2 0\n", "found 1 clauses, expected 2 as line 1 says"),
        ("p cnf 3 1\n", "found 0 clauses, expected 1"),
        ("p cnf 3 1\n1 -4 0\n", "clause 1 names variable 4, expected 1 to 3"),
        ("p cnf 3 2\n1 0 0\n", "clause 2 is empty"),
    ],
)
def test_formulas_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path / "f.cnf", text)
    with pytest.raises(InputError) as caught:
        list(open_source(path).chunks())
    assert message in str(caught.value)


@pytest.mark.parametrize("options", [{"skip": 1}, {"ids": "string"}, {"undirected": True}])
def test_options_of_other_formats(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write(tmp_path / "f.cnf", "p cnf 1 1\n1 0\n")
    with pytest.raises(ConfigError):
        open_source(path, **options)
    with pytest.raises(InputError, match="a second formula"):
        open_source([path, path])
