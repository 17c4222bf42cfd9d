"""The format as others see it: golden stores of every version, and plain Arrow readers."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pytest

from graphsys.facade.graph import Graph
from graphsys.storage.manifest import FORMAT_VERSION
from graphsys.storage.verify.verify import verify
from tests.conftest import ROOT
from tests.golden.stores import graphs_v1, graphs_v2, graphs_v3, graphs_v4
from tests.stores import edge_chunk, make_store, read_edges

V1 = graphs_v1.FOLDER
V2 = graphs_v2.FOLDER
V3 = graphs_v3.FOLDER
V4 = graphs_v4.FOLDER
ROADS = {1: [2, 3, 5], 2: [1, 3], 3: [1, 2], 4: [4], 5: [1]}
GUIDES = ROOT / "scripts" / "documenting" / "pages" / "guides"
PAGES = (GUIDES / "store_format.md", GUIDES / "storage.md")


def test_every_format_version_has_a_golden_store() -> None:
    versions = {path.name for path in V1.parent.iterdir() if path.name.startswith("v")}
    assert versions == {f"v{n}" for n in range(1, FORMAT_VERSION + 1)}

    def size(*folders: Path) -> int:
        files = [path for folder in folders for path in folder.rglob("*.arrow")]
        return sum(path.stat().st_size for path in files if path.is_file())

    assert size(V1, V2) < 30_000
    assert size(V3) < 6_000
    assert size(V4) < 6_000


@pytest.mark.parametrize(
    "path", [V1 / "reading", V1 / "roads", V2 / "pins", V3 / "news", V4 / "calls"]
)
def test_golden_stores_verify(path: Path) -> None:
    assert verify(path).problems == []


def test_golden_shared_rows_are_the_ones_given(tmp_path: Path) -> None:
    graphs_v2.write(tmp_path)
    for root in (V2, tmp_path):
        with Graph(root / "pins") as graph:
            assert graph.manifest.format_version == 2
            found: dict[int, Any] = {}
            for part in range(2):
                ids = graph.nodes("node", part).column("id").to_pylist()
                rows, places = graph.feature_rows("node", part, "x")
                assert places is not None
                assert len(rows) < len(places) == len(ids)
                x = graph.features("node", part, "x").tolist()
                found |= dict(zip(ids, x, strict=True))
        assert found == {k: row.tolist() for k, row in enumerate(graphs_v2.X)}
    read = [
        pa.ipc.open_file((root / "pins" / graphs_v2.SHARED).read_bytes()).read_all()
        for root in (V2, tmp_path)
    ]
    assert read[0].equals(read[1])


def test_golden_deltas_are_the_ones_given(tmp_path: Path) -> None:
    graphs_v3.write(tmp_path)
    for root in (V3, tmp_path):
        with Graph(root / "news") as graph:
            assert graph.manifest.format_version == 3
            assert [delta.number for delta in graph.manifest.deltas] == [1]
            edges = read_edges(graph, "edge")
            found = [(e.src, e.dst, dict(e.values)["time"]) for e in edges]
            assert Counter(found) == Counter(graphs_v3.EDGES)
            assert [sorted(graph.neighbors(n)) for n in (1, 4, 7)] == [[2, 7], [2], [1]]


def test_golden_times_have_their_unit(tmp_path: Path) -> None:
    graphs_v4.write(tmp_path)
    for root in (V4, tmp_path):
        with Graph(root / "calls") as graph:
            assert graph.manifest.format_version == 4
            assert graph.time_unit("edge") == "s"
            found = {
                (e.src, e.dst): np.datetime64(dict(e.values)["time"], "s")
                for e in read_edges(graph, "edge")
            }
            assert found == {k: np.datetime64(v) for k, v in graphs_v4.EDGES.items()}


def test_golden_edges_are_the_ones_written_by_hand() -> None:
    with Graph(V1 / "reading") as graph:
        for split, rows in (("train", graphs_v1.READ), ("test", graphs_v1.TEST)):
            found = [
                (
                    e.src,
                    e.dst,
                    e.relation,
                    *(dict(e.values)[k] for k in ("weight", "time", "note")),
                )
                for e in read_edges(graph, "reads", split)
            ]
            assert Counter(found) == Counter(rows)
        assert graph.num_edges == len(graphs_v1.READ)
        assert graph.relations("reads") == ["likes", "owns"]
        people = [graph.nodes("person", part).to_pylist() for part in range(2)]
        by_id = {row["id"]: row for rows in people for row in rows}
        assert set(by_id) == set(graphs_v1.PEOPLE)
        assert by_id["\u674e"] == {"id": "\u674e", "label": 2, "split": "train"}
        for part in range(2):
            rows = graph.nodes("person", part).to_pylist()
            expected = [[row["label"] + 1.0, -row["label"] - 1.0] for row in rows]
            assert graph.features("person", part, "x").tolist() == expected
        words: Any = graph.features("book", 0, "words")
        books = graph.node_ids("book").to_pylist()
        assert dict(zip(books, words.to_pylist(), strict=True)) == {
            7: [1, 5],
            11: [],
            2**62: [9],
        }


def test_golden_undirected_neighbors() -> None:
    neighbors: dict[int, list[int]] = {}
    with Graph(V1 / "roads") as graph:
        ids = graph.node_ids("node").to_pylist()
        for part in range(2):
            index, base = graph.out_index("edge", part), graph.offsets("node")[part]
            for row in range(len(index.indptr) - 1):
                span = slice(index.indptr[row], index.indptr[row + 1])
                neighbors[ids[base + row]] = sorted(ids[n] for n in index.indices[span])
    assert neighbors == ROADS


def test_todays_writer_still_says_the_same(tmp_path: Path) -> None:
    """Not byte for byte (Arrow's metadata may change), but row for row."""
    graphs_v1.write(tmp_path)
    for name in ("reading", "roads"):
        with Graph(V1 / name) as old, Graph(tmp_path / name) as new:
            assert [e.path for e in old.manifest.files] == [
                e.path for e in new.manifest.files
            ]
            for entry in old.manifest.files:
                tables = [
                    pa.ipc.open_file((root / name / entry.path).read_bytes()).read_all()
                    for root in (V1, tmp_path)
                ]
                assert tables[0].equals(tables[1]), entry.path


# ---- other readers


@pytest.fixture(scope="module")
def random_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[Any]]:
    rng = np.random.default_rng(5)
    pairs = [(int(a) * 10, int(b) * 10) for a, b in rng.integers(0, 40, (500, 2))]
    relations = pa.array([f"r{n % 3}" for n in range(500)])
    out = tmp_path_factory.mktemp("format") / "g"
    make_store(out, edge_chunk(pairs, relation=relations), partitions=3).graph.close()
    return out, Counter(pairs)


def test_pyarrow_dataset_reads_buckets_and_nodes(
    random_store: tuple[Path, Counter[Any]],
) -> None:
    store, pairs = random_store
    edges = pa.dataset.dataset(store / "gen-1/edges/edge/train", format="ipc")
    assert edges.count_rows() == 500
    assert edges.to_table(columns=["relation"])["relation"].cast(pa.string()).value_counts()
    nodes = pa.dataset.dataset(store / "gen-1/nodes/node", format="arrow")
    ids = nodes.to_table().column("id").to_pylist()
    assert set(ids) == {end for pair in pairs for end in pair}


def test_polars_reads_buckets_and_nodes(random_store: tuple[Path, Counter[Any]]) -> None:
    pl = pytest.importorskip("polars")
    store, pairs = random_store
    found: Counter[Any] = Counter()
    nodes = [
        pl.read_ipc(store / f"gen-1/nodes/node/part-{p}.arrow")["id"] for p in range(3)
    ]
    for i in range(3):
        for j in range(3):
            bucket = pl.read_ipc(store / f"gen-1/edges/edge/train/bucket-{i}-{j}.arrow")
            assert bucket.columns == ["src", "dst", "relation"]
            assert set(bucket["relation"].cast(pl.String)) <= {"r0", "r1", "r2"}
            found.update(
                zip(
                    nodes[i].gather(bucket["src"]),
                    nodes[j].gather(bucket["dst"]),
                    strict=True,
                )
            )
    assert found == pairs
    scanned = (
        pl.scan_ipc(store / "gen-1/edges/edge/train/*.arrow").select(pl.len()).collect()
    )
    assert scanned.item() == 500


def examples() -> dict[str, str]:
    """Return the Python blocks of the guides by the first word of their first comment."""
    text = "".join(page.read_text() for page in PAGES)
    return dict(re.findall(r"```python\n# (\S+?):? .*?\n(.*?)```", text, re.S))


def run_example(name: str, **names: Any) -> dict[str, Any]:
    scope: dict[str, Any] = dict(names)
    exec(compile(examples()[name], f"guides:{name}", "exec"), scope)
    return scope


def test_the_readers_of_the_guide_read(random_store: tuple[Path, Counter[Any]]) -> None:
    store, pairs = random_store
    scope = run_example("pyarrow")
    assert Counter(scope["edges"](scope["open_graph"](store), "edge", "train")) == pairs
    reading = scope["open_graph"](V1 / "reading")
    expected = Counter(row[:2] for row in graphs_v1.READ)
    assert Counter(scope["edges"](reading, "reads", "train")) == expected
    news = scope["open_graph"](V3 / "news")
    left = Counter(row[:2] for row in graphs_v3.EDGES)
    assert Counter(scope["edges"](news, "edge", "train")) == left
    roads, found = scope["open_graph"](V1 / "roads"), {}
    ids = scope["node_ids"](roads, "node")
    for part, keys in enumerate(ids):
        for local, key in enumerate(keys):
            numbers = scope["neighbors"](roads, "edge", "out", part, local)
            found[key] = sorted(sum(ids, [])[number] for number in numbers)  # noqa: RUF017
    assert found == ROADS


def test_the_polars_example_of_the_guide_runs(
    random_store: tuple[Path, Counter[Any]],
) -> None:
    pytest.importorskip("polars")
    store, pairs = random_store
    scope = run_example("Polars", GRAPH=store)
    assert sorted(scope["relations"]["len"]) == [166, 167, 167]
    assert scope["count"] == pairs.total() == 500


def test_the_changing_example_of_the_guide_runs(tmp_path: Path) -> None:
    scope = run_example("changing", GRAPH=tmp_path / "g")
    assert scope["counts"] == [3, 4, 3]
    assert scope["windows"] == [3, 1, 1]
    assert len(scope["ranks"]) == 4
