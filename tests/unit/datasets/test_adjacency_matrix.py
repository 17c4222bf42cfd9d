"""An adjacency matrix as text is no list of edges; its message converts it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InputError


@pytest.mark.parametrize(("size", "separator"), [(3, " "), (7, "\t"), (4, ",")])
def test_a_matrix_is_refused_and_goes_in_converted(
    size: int, separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    matrix = np.random.default_rng(4).integers(0, 2, (size, size))
    np.savetxt("a.txt", matrix, fmt="%d", delimiter=separator)
    with pytest.raises(InputError, match="looks like an adjacency matrix") as found:
        gs.ingest("a.txt", "wrong")
    command = re.search(r"(python -c .*), and ingest (\S+),", str(found.value))
    assert command is not None, found.value
    _, *words = shlex.split(command[1])
    subprocess.run([sys.executable, *words], check=True)
    graph = gs.ingest(command[2], "graph").graph
    edges = {
        (src, dst)
        for chunk in graph.edge_chunks()
        for src, dst in zip(chunk["src"].to_pylist(), chunk["dst"].to_pylist(), strict=True)
    }
    assert edges == set(zip(*map(np.ndarray.tolist, np.nonzero(matrix)), strict=True))


def test_a_name_of_a_file_runs_nothing_when_the_advice_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    name = """a'"$(touch pwned)`touch pwned`.txt"""
    Path(name).write_text("0 1 0\n0 0 1\n1 0 0\n")
    with pytest.raises(InputError) as found:
        gs.ingest(name, "wrong")
    command = re.search(r"(python -c .*), and ingest", str(found.value))
    assert command is not None, found.value
    subprocess.run(command[1], shell=True, check=True)
    assert not Path("pwned").exists()
    assert Path(f"{Path(name).stem}.npz").exists()


def test_edges_with_weights_of_0_and_1_go_in_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 1 1\n1 0 1\n0 0 1\n")
    with pytest.raises(InputError, match="--columns src,dst,weight"):
        gs.ingest(path, tmp_path / "wrong")
    named = gs.ingest(path, tmp_path / "graph", columns=["src", "dst", "weight"])
    assert named.graph.num_edges == 3


def test_more_lines_than_columns_are_edges(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("0 1 1\n1 0 1\n0 0 1\n1 1 0\n")
    assert gs.ingest(path, tmp_path / "graph").graph.num_edges == 4
