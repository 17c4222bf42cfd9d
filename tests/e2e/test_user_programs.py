"""Whatever goes wrong in a user's program names the user's file and line, in one line."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

Run = Callable[..., CompletedProcess[str]]

BASE = """\
import numpy as np
import graphsys as gs
class Mine(gs.VertexProgram):
    x = gs.state("float64")
    combine = gs.sum
    max_supersteps = 2
    def message(self, src, edge): return src.x
    def update(self, node, message): return message
"""
FAULTS = [
    ("    def start(self, graph): return {}['missing']", "KeyError: 'missing'"),
    ("    def start(self, graph): gs.open('nowhere')", "nowhere does not exist"),
    ("    def start(self, graph): open('data.txt')", "FileNotFoundError"),
    ("    def start(self, graph): return 7", "returns 7, expected"),
    ("    def start(self, graph): return {1: 5}", "returns {1: 5}, expected"),
    ("    def until(self, totals): raise RuntimeError('two\\nlines')", "Error: two lines"),
    ("    def until(self, totals): return totals['none'] > 1", "KeyError: 'none'"),
    (
        "    max_supersteps = 1; until = lambda s, t: True; answer = lambda s, t: 1 / 0",
        "ZeroDivisionError: division by zero",
    ),
    ("    def __init__(self, **given): raise MemoryError()", "MemoryError"),
    ("    y = undefined", "NameError: name 'undefined' is not defined"),
    ("    y = gs.state('float32', default=np.zeros(4))", "a state begins as one number"),
    ("    y = gs.state('float32', shape=(4, 4))", "a state is a number or a vector"),
    ("    y = gs.state('float32', default=[0, 1])", "a state begins as one number"),
    ("    y = gs.state('float32', default='zero')", "a state begins as one number"),
    ("    y = gs.edge_state('float32', default=np.zeros(2))", "begins as one number"),
    ("    def update(self, node, message): return [0]", "Mine.update"),
]


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from graphsys import ingest

    folder = tmp_path_factory.mktemp("star")
    edges = folder / "star.txt"
    edges.write_text("1 2\n1 3\n1 4\n")
    ingest(edges, folder / "g")
    return folder / "g"


@pytest.mark.parametrize(("line", "message"), FAULTS)
def test_a_fault_is_told_with_file_and_line(
    star: Path, tmp_path: Path, run_cli: Run, line: str, message: str
) -> None:
    (tmp_path / "mine.py").write_text(BASE + line + "\n")
    done = run_cli("run", "mine.py:Mine", star, cwd=tmp_path)
    assert done.returncode in (1, 2), done.stderr
    (error,) = [it for it in done.stderr.splitlines() if it.startswith("error:")]
    assert "mine.py:9: " in error
    assert message in error
    assert "Traceback" not in done.stderr


def test_a_scalar_for_each_number_is_what_the_error_advises(
    star: Path, tmp_path: Path, run_cli: Run
) -> None:
    text = BASE.replace(
        '    x = gs.state("float64")',
        '    x0 = gs.state("float32")\n    x1 = gs.state("float32")',
    )
    text = text.replace("src.x", "src.x0").replace("return message", "return message, 1.0")
    (tmp_path / "mine.py").write_text(text)
    done = run_cli("run", "mine.py:Mine", star, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "x0" in done.stdout
    assert "x1" in done.stdout


def test_labels_of_label_propagation_are_numbers() -> None:
    import numpy as np

    import graphsys as gs
    from graphsys.core.errors import ConfigError

    graph = gs.Topology.from_edges(np.array([0]), np.array([1]), num_nodes=2)
    labels: list[Any] = ["a", None, -1, 0.5, float("nan"), True, np.int32(3)]
    for label in labels[:-1]:
        with pytest.raises(ConfigError, match=r"label of 0 is .*, expected an int >= 0"):
            gs.algorithms.label_propagation(graph, labels={0: label})
    found = gs.algorithms.label_propagation(graph, labels={0: labels[-1]})
    assert found.table["value"].to_pylist() == [3, 3]


def test_a_program_of_ones_own_has_no_native_implementation(
    star: Path, tmp_path: Path, run_cli: Run
) -> None:
    (tmp_path / "mine.py").write_text(BASE)
    words = ("run", "mine.py:Mine", star, "--implementation", "native")
    done = run_cli(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "does not go with --implementation native" in done.stderr
