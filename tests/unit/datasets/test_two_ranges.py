"""Users and items that are both numbered from 0 are said to become one type."""

import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.datasets import open_source

USERS, ITEMS = 150, 220


def pairs(rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return who likes what, each user and each item at least once."""
    users = np.concatenate([np.arange(USERS), rng.integers(0, USERS, 2000)])
    items = rng.integers(0, ITEMS, len(users))
    items[:ITEMS] = np.arange(ITEMS)[::-1]
    return sorted(set(zip(users.tolist(), items.tolist(), strict=True)))


def write(path: Path, found: list[tuple[int, int]]) -> None:
    if path.suffix == ".adjlist":
        lines = [
            " ".join([str(u), *(str(i) for v, i in found if v == u)]) for u in range(USERS)
        ]
    else:
        mark = "," if path.suffix == ".csv" else "\t"
        lines = [f"{u}{mark}{i}" for u, i in found]
        lines = ["user_id,item_id", *lines] if path.suffix == ".csv" else lines
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", ["g.txt", "g.adjlist", "g.csv"])
def test_two_ranges_are_said_with_the_command_that_keeps_them_apart(
    tmp_path: Path,
    rng: np.random.Generator,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    write(path, found := pairs(rng))
    columns = "src=user_id,dst=item_id" if name == "g.csv" else None
    with pytest.warns(
        UserWarning, match="sources are all of 0 to 149, dest.* 0 to 219"
    ) as it:
        merged = gs.ingest(path, tmp_path / "merged", columns=columns).graph
    assert merged.num_nodes == ITEMS
    (command,) = re.findall(r"--edges \S+", str(it[0].message))
    arguments = ["ingest", *shlex.split(command), "-o", str(tmp_path / "apart")]
    arguments += ["--format", "adjacency"] if name == "g.adjlist" else []
    assert main(arguments) == 0, capsys.readouterr().err
    apart = gs.open(tmp_path / "apart")
    assert (apart.num_nodes, apart.num_edges) == (USERS + ITEMS, len(found))


def test_ordinary_graphs_are_left_alone(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "g.txt"
    full = np.concatenate([rng.permutation(300), rng.integers(0, 300, 3000)])
    graphs = {
        "all have edges of both directions": (full, np.roll(full, 7)),
        "numbered as met": (
            rng.integers(0, 200, 3000),
            rng.integers(0, 300, 3000),
        ),
        "a path": (np.arange(2000), np.arange(1, 2001)),
        "loops": (np.arange(2000) % 150, np.arange(2000) % 150),
    }
    graphs["numbered as met"][1][:] = np.where(
        rng.random(3000) < 0.7, rng.integers(200, 300, 3000), rng.integers(0, 60, 3000)
    )
    for what, (src, dst) in graphs.items():
        np.savetxt(path, np.stack([src, dst], 1), "%d")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert list(open_source(path).chunks()), what


def test_named_columns_need_no_full_range_of_items(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = [f"{k // 4 + 1},{(k * 37) % 199 + 1},4.0" for k in range(400)]
    path.write_text("userId,movieId,rating\n" + "\n".join(rows) + "\n")
    with pytest.warns(
        UserWarning, match=r"apart with --edges user,links,movie=\S+"
    ) as said:
        list(open_source(path, columns="src=userId,dst=movieId").chunks())
    (command,) = re.findall(r"--edges \S+", str(said[0].message))
    assert main(["ingest", *shlex.split(command), "-o", str(tmp_path / "g")]) == 0
    assert set(gs.open(tmp_path / "g").node_types) == {"user", "movie"}
