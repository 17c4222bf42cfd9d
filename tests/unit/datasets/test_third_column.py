"""A third column that nobody named, and edges that repeat: refused, or told."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets import open_source
from graphsys.datasets.text.third_column import ThirdColumnCheck

COMMANDS = (
    r"the third column may be a weight or an id: 40 of its 40 distinct values are ids of "
    r"the first two, too; say which: --columns src,dst,weight \(or src,dst,time\), "
    r"--columns relation,src,dst, or --format triples for src relation dst"
)


def layers(mark: str, num_thirds: int = 40) -> str:
    """A multiplex graph: layer, source, destination; a ring in every one of two layers."""
    edges = [
        (layer, k, (k + 1) % num_thirds) for layer in (1, 2) for k in range(num_thirds)
    ]
    return "".join(mark.join(map(str, edge)) + "\n" for edge in edges)


def read(path: Path, **options: Any) -> list[Any]:
    return list(open_source(path, **options).chunks())


@pytest.mark.parametrize(
    ("name", "mark"), [("g.txt", " "), ("g.tsv", "\t"), ("g.csv", ",")]
)
@pytest.mark.parametrize("ids", ["auto", "string"])
def test_a_third_column_of_ids_is_refused_with_the_commands_that_settle_it(
    tmp_path: Path, name: str, mark: str, ids: str
) -> None:
    path = tmp_path / name
    path.write_text(layers(mark))
    with pytest.raises(InputError, match=rf"{name}:1: {COMMANDS}"):
        read(path, ids=ids)
    with pytest.raises(InputError, match=COMMANDS):
        gs.ingest(path, tmp_path / "g", ids=ids)
    assert not (tmp_path / "g" / "graph.json").exists()
    (chunk,) = read(path, columns="src,dst,weight", ids=ids)
    assert chunk.columns["weight"][:2].tolist() == [1, 2]
    (chunk,) = read(path, columns="relation,src,dst")
    assert (chunk.src[:2].tolist(), chunk.dst[:2].tolist()) == ([0, 1], [1, 2])
    assert set(chunk.columns["relation"].to_pylist()) == {"1", "2"}
    (chunk,) = read(path, format="triples", separator=mark, ids="int")
    assert chunk.dst[:2].tolist() == [1, 2]


def test_few_values_fractions_and_other_numbers_are_weights(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text(layers(" ", 32))  # ratings: 32 values are few
    assert len(read(path)[0].src) == 64
    path.write_text(layers(" ") + "1 2 0.5\n")
    assert len(read(path)[0].src) == 81
    path.write_text("".join(f"{k} {k + 1} {k + 1_000_000}\n" for k in range(100)))
    assert len(read(path)[0].src) == 100
    tenths = [k if k % 10 else 1000 + k for k in range(200)]  # nine tenths are ids, exactly
    path.write_text("".join(f"{k} {k + 1} {third}\n" for k, third in enumerate(tenths)))
    with pytest.raises(InputError, match="180 of its 200 distinct values"):
        read(path)
    tenths[1] = 5000
    path.write_text("".join(f"{k} {k + 1} {third}\n" for k, third in enumerate(tenths)))
    assert len(read(path)[0].src) == 200


def test_ids_are_compared_over_all_blocks_within_bounded_memory() -> None:
    check = ThirdColumnCheck("g.txt:1")
    rows = np.arange(3_000_000)
    for begin in range(0, len(rows), 1_000_000):  # only later blocks have the ids
        src = rows[begin : begin + 1_000_000]
        check.add({"src": src, "dst": src, "weight": ((src + 2_000_000) % 3_000_000) * 1.0})
    with pytest.raises(InputError, match=r"g.txt:1: the third column may be"):
        check.check()
    assert max(sample.bits for sample in (check._ids, check._thirds)) >= 2
    other = ThirdColumnCheck("g.txt:1")
    other.add({"src": rows, "dst": rows, "weight": rows * 7.0})  # a seventh of them are ids
    other.check()


def test_edges_that_mostly_repeat_are_told(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n" * 3 + "2 3\n")  # half of them
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.ingest(path, tmp_path / "quiet")
    path.write_text("1 2\n" * 4 + "2 3\n")
    with pytest.warns(
        UserWarning, match=r"3 of the 5 edges of 'edge' repeat another .*--col"
    ):
        gs.ingest(path, tmp_path / "told")
    path.write_text("1 2 10\n" * 4 + "2 3 11\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.ingest(path, tmp_path / "times", columns="src,dst,time")
        gs.ingest(path, tmp_path / "one", coalesce=True)


@pytest.mark.parametrize("name", ["g.e", "g.wel"])
def test_formats_that_say_what_the_third_column_is_are_believed(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text("".join(f"{k} {(k + 1) % 40} {k}\n" for k in range(40)))
    (tmp_path / "g.v").write_text("".join(f"{k}\n" for k in range(40)))
    chunks = [it for it in read(path) if hasattr(it, "src")]
    assert sorted(chunks[0].columns["weight"].tolist()) == list(range(40))
