"""Files that are damaged or out of proportion: one error each, in a bounded time."""

import io
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest

from graphsys import ingest
from graphsys.core.errors import InputError
from graphsys.datasets.files import archive_members, input_file
from graphsys.storage import Graph


def tgz(content: bytes) -> bytes:
    """Return a compressed archive of one file of edges."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.txt")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return made.getvalue()


def test_a_damaged_archive_is_one_error(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    edges = "".join(f"{a}\t{b}\n" for a, b in rng.integers(0, 10_000, (20_000, 2)))
    whole, raised = tgz(edges.encode()), 0
    for k in range(400):
        data = bytearray(whole)
        data[rng.integers(20, len(data))] ^= 1 << rng.integers(8)
        (tmp_path / "x.tgz").write_bytes(data)
        try:
            found = archive_members(input_file(tmp_path / "x.tgz"))
            if k % 40 == 0:
                found[0].read_all()
        except InputError as err:
            raised += 1
            said = str(err)
    assert raised > 10
    assert "\n" not in said


def test_a_hundred_thousand_columns_take_seconds(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(100_000)]
    row = ",".join(["1"] * len(names))
    (tmp_path / "x.csv").write_text(f"src,dst,{','.join(names)}\n1,2,{row}\n2,3,{row}\n")
    began = time.process_time()
    ingest(tmp_path / "x.csv", tmp_path / "graph")
    assert time.process_time() - began < 60  # it was minutes
    with Graph(tmp_path / "graph") as graph:
        assert len(graph.manifest.edge_types["edge"].columns) == 100_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.txt", "1 2 18446744073709551615\n2 3 -1\n"),
        ("x.txt", "1 2 9007199254740993\n# 0.5\n2 3 5\n"),
        ("x.txt", f"1 2 {2**70 + 1}\n2 3 1e3\n"),
        ("x.csv", "src,dst,weight\n1,2,-9223372036854775807\n"),
        ("x.metis", "2 1 001\n2 18446744073709551615\n1 18446744073709551615\n"),
    ],
)
def test_integers_that_a_weight_cannot_hold_are_refused(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="an integer that float64 does not hold exactly"):
        ingest(tmp_path / name, tmp_path / "graph")


def test_weights_that_are_held_exactly_are_kept(tmp_path: Path) -> None:
    weights = ["1152921504606846976", "-18446744073709551616", "1e22", "9007199254740993.0"]
    lines = [f"{k} {k + 1} {weight}\n" for k, weight in enumerate(weights)]
    (tmp_path / "x.txt").write_text("".join(lines))
    ingest(tmp_path / "x.txt", tmp_path / "graph", order="original")
    with Graph(tmp_path / "graph") as graph:
        found = graph.bucket("edge", 0, 0).weight
    assert found is not None
    assert sorted(found.tolist()) == sorted(float(weight) for weight in weights)
