import csv
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file

from graphsys import ingest
from graphsys.cli.main import main
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    UnknownNameError,
)
from graphsys.embedding import EmbeddingConfig, Embeddings, export, nearest, open_run, train
from graphsys.embedding.spec.comparators import COMPARATORS
from graphsys.storage import Graph
from tests.runs import reseal

MakeRing = Callable[[int], Graph]


@pytest.fixture(params=COMPARATORS.names())
def ring_run(
    request: pytest.FixtureRequest, make_ring: MakeRing, tmp_path: Path
) -> Embeddings:
    config = EmbeddingConfig(dim=8, epochs=2, comparator=request.param, init_scale=1.0)
    train(make_ring(3), config, tmp_path / "run")
    return open_run(tmp_path / "run")


@pytest.fixture
def shop_run(shop: Graph, tmp_path: Path) -> Embeddings:
    train(shop, EmbeddingConfig(dim=8, epochs=1), tmp_path / "run")
    return open_run(tmp_path / "run")


def test_nearest_equals_brute_force(ring_run: Embeddings) -> None:
    ids = [f"e{k:02d}" for k in range(40)]
    rows = ring_run.lookup(ids).astype(np.float64)
    comparator = ring_run.config.comparator
    if comparator == "cos":
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ rows[7]
    if comparator in ("l2", "squared_l2"):
        scores = -(
            np.linalg.norm(rows - rows[7], axis=1) ** (2 if "sq" in comparator else 1)
        )
    if comparator == "l1":
        scores = -np.abs(rows - rows[7]).sum(axis=1)
    if comparator == "complex_l1":
        apart = rows - rows[7]
        scores = -np.abs(apart[:, :4] + 1j * apart[:, 4:]).sum(axis=1)
    order = [k for k in np.argsort(-scores, kind="stable") if k != 7][:5]
    found = nearest(ring_run, "e07", 5)
    assert found.column("id").to_pylist() == [ids[k] for k in order]
    np.testing.assert_allclose(found.column("score").to_numpy(), scores[order], rtol=1e-4)
    assert nearest(ring_run, "e07", 1000).num_rows == 39


def test_nearest_takes_integer_ids_as_text(shop_run: Embeddings) -> None:
    found = nearest(shop_run, "3", 2, node_type="user")
    assert found.equals(nearest(shop_run, 3, 2, node_type="user"))
    assert found.schema.field("id").type == pa.int64()


def test_an_unclear_or_unknown_node_is_an_error(shop_run: Embeddings) -> None:
    with pytest.raises(
        ConfigError, match=r"of several types \(category, item, user\); give"
    ):
        nearest(shop_run, 2)
    with pytest.raises(UnknownNameError, match="node 999 is not in the graph"):
        nearest(shop_run, 999)
    with pytest.raises(
        UnknownNameError, match=r"unknown node type 'users'.*did you mean 'user'"
    ):
        nearest(shop_run, 2, node_type="users")
    with pytest.raises(ConfigError, match="k: got 0"):
        nearest(shop_run, 2, 0, node_type="user")
    with pytest.raises(ConfigError, match="give node_type"):
        shop_run.lookup([1])


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "tsv", "npy", "safetensors"])
def test_exports_hold_every_row_under_its_id(
    make_ring: MakeRing, tmp_path: Path, suffix: str
) -> None:
    train(make_ring(3), EmbeddingConfig(dim=8, epochs=1), tmp_path / "run")
    run = open_run(tmp_path / "run")
    out = export(run, tmp_path / f"emb.{suffix}")
    if suffix == "parquet":
        table = pa.parquet.read_table(out)
    elif suffix == "arrow":
        table = pa.ipc.open_file(out).read_all()
    elif suffix == "tsv":
        options = pa.csv.ReadOptions(autogenerate_column_names=True)
        table = pa.csv.read_csv(out, options, pa.csv.ParseOptions(delimiter="\t"))
        rows = np.stack([c.to_numpy() for c in table.columns[1:]], axis=1)
        ids = table.column(0).to_pylist()
    else:
        rows = np.load(out) if suffix == "npy" else load_file(out)["entity"]
        ids = pa.parquet.read_table(f"{out}.ids.parquet").column("id").to_pylist()
    if suffix in ("parquet", "arrow"):
        assert table.schema.field("embedding").type == pa.list_(pa.float32(), 8)
        ids = table.column("id").to_pylist()
        rows = np.array(table.column("embedding").to_pylist(), dtype=np.float32)
    assert sorted(ids) == [f"e{k:02d}" for k in range(40)]
    np.testing.assert_allclose(rows, run.lookup(ids), rtol=1e-6)
    assert not list(tmp_path.glob(".*"))


def test_an_export_of_several_types_names_them(
    shop_run: Embeddings, tmp_path: Path
) -> None:
    table = pa.parquet.read_table(export(shop_run, tmp_path / "all.parquet"))
    assert table.column_names == ["id", "type", "embedding"]
    assert set(table.column("type").to_pylist()) == {"user", "item", "category"}
    users = pa.parquet.read_table(
        export(shop_run, tmp_path / "users.parquet", node_type="user")
    )
    assert users.column_names == ["id", "embedding"]
    assert users.schema.field("id").type == pa.int64()
    assert set(load_file(export(shop_run, tmp_path / "all.safetensors"))) == {
        "user",
        "item",
        "category",
    }


def test_text_is_quoted_only_where_it_must_be(
    make_ring: MakeRing, shop_run: Embeddings, tmp_path: Path
) -> None:
    train(make_ring(3), EmbeddingConfig(dim=2, epochs=1), tmp_path / "ring")
    plain = export(tmp_path / "ring", tmp_path / "plain.tsv").read_text().splitlines()
    assert sorted(line.split("\t")[0] for line in plain) == [f"e{k:02d}" for k in range(40)]
    typed = export(shop_run, tmp_path / "typed.tsv").read_text().splitlines()
    assert {line.split("\t")[1] for line in typed} == {"user", "item", "category"}
    with ingest(
        pa.table({"src": ['a"b', "c"], "dst": ["c", "d\te"]}), tmp_path / "odd"
    ).graph as odd:
        train(odd, EmbeddingConfig(dim=2, epochs=1), tmp_path / "run-odd")
    with export(tmp_path / "run-odd", tmp_path / "odd.tsv").open(newline="") as lines:
        ids = {row[0] for row in csv.reader(lines, delimiter="\t")}
    assert ids == {'a"b', "c", "d\te"}


def test_a_csv_has_a_header_and_a_column_per_dimension(
    shop_run: Embeddings, tmp_path: Path
) -> None:
    with export(shop_run, tmp_path / "all.csv").open(newline="") as lines:
        found = list(csv.DictReader(lines))
    table = pa.parquet.read_table(export(shop_run, tmp_path / "all.parquet")).to_pylist()
    dim = len(table[0]["embedding"])
    assert list(found[0]) == ["id", "type", *map(str, range(dim))]
    assert [(row["id"], row["type"]) for row in found] == [
        (row["id"], row["type"]) for row in table
    ]
    assert [float(found[-1][str(k)]) for k in range(dim)] == pytest.approx(
        table[-1]["embedding"], rel=1e-6
    )


def test_an_export_makes_its_folder(shop_run: Embeddings, tmp_path: Path) -> None:
    out = export(shop_run, tmp_path / "new" / "folder" / "emb.parquet", node_type="user")
    assert out.exists()


def test_an_export_keeps_what_exists(shop_run: Embeddings, tmp_path: Path) -> None:
    out = tmp_path / "emb.npy"
    out.write_text("mine")
    with pytest.raises(OutputExistsError, match="--overwrite"):
        export(shop_run, out)
    assert out.read_text() == "mine"
    export(shop_run, out, overwrite=True)
    assert np.load(out).shape[1] == 8
    with pytest.raises(ConfigError, match=r"cannot export to 'emb.xyz': expected .* \.tsv"):
        export(shop_run, tmp_path / "emb.xyz")


def test_a_moved_graph_can_be_given(shop: Graph, shop_run: Embeddings) -> None:
    state = shop_run.path / "run.json"
    state.write_text(state.read_text().replace(str(shop.path), "/nowhere/graph"))
    reseal(shop_run.path)
    with pytest.raises(ConfigError, match=r"/nowhere/graph of the run .* is gone"):
        open_run(shop_run.path)
    assert open_run(shop_run.path, graph=shop).node_types == shop.node_types


FULL = """
import resource, signal, sys
from graphsys import embedding
from graphsys.core.errors import StorageFullError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
run = embedding.open_run(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
try:
    embedding.export(run, sys.argv[2])
except StorageFullError as err:
    print(err)
"""


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "tsv", "npy", "safetensors"])
def test_a_full_disk_is_one_error(
    shop_run: Embeddings, tmp_path: Path, suffix: str
) -> None:
    out = tmp_path / f"x.{suffix}"
    command = [sys.executable, "-c", FULL, str(shop_run.path), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    assert "file too large; allow larger files" in done.stdout
    assert not list(tmp_path.glob("*x*"))


@pytest.mark.parametrize("change", [("dim = ", "dim = 1"), ("row_dtype", "bfloat16")])
def test_a_config_that_does_not_fit_the_rows_is_named(
    shop_run: Embeddings, shop: Graph, change: tuple[str, str]
) -> None:
    config = shop_run.path / "config.toml"
    text = config.read_text()
    if change[0] == "dim = ":
        config.write_text(re.sub(r"^dim = (\d+)", r"dim = 1\1", text, flags=re.M))
    else:
        config.write_text(text.replace('row_dtype = "float32"', 'row_dtype = "bfloat16"'))
    assert config.read_text() != text
    with pytest.raises(CorruptStoreError, match=r"shape|has the checksum"):
        Embeddings(shop_run.path, graph=shop).rows(shop_run.node_types[0], 0)


def test_nearest_shows_the_names_of_entities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "entity2id.txt").write_text("3\nparis\t0\nrome\t1\noslo\t2\n")
    (tmp_path / "relation2id.txt").write_text("1\nlikes\t0\n")
    triples = tmp_path / "train2id.txt"
    triples.write_text("3\n0 1 0\n1 2 0\n2 0 0\n")
    graph, run = str(tmp_path / "graph"), str(tmp_path / "run")
    assert main(["ingest", str(triples), "-o", graph, "--partitions", "2"]) == 0
    words = ["train", "embedding", graph, "-o", run, "--set", "dim=4", "--set", "epochs=1"]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["nearest", run, "0", "-k", "2"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert header == "id\tscore\tname"
    assert {(row.split("\t")[0], row.split("\t")[2]) for row in rows} == {
        ("1", "rome"),
        ("2", "oslo"),
    }
