"""The quality table: pairs of walks, and that the page shows what is saved."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.unit.embedding.triple_graphs import write


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module


def test_pairs_are_near_on_walks_of_their_relation(bench: Any, tmp_path: Path) -> None:
    pairs = bench("bench.quality.walk_pairs")
    line = [(f"n{k}", "line", f"n{k + 1}") for k in range(8)]
    jump = [("n0", "jump", "n7"), ("n7", "jump", "n3")]
    splits = {"train": line + jump, "test": [("n0", "line", "n5")]}
    graph = write(tmp_path / "graph", splits, directed=False)
    walks = pairs.Walks(per_node=4, length=6, window=2)
    found = pairs.pair_graph(graph, walks, tmp_path / "walks")
    (kind,) = found.edge_types
    assert kind == pairs.NEAR
    names, near = found.relations(kind), set()
    for code, name in enumerate(names):
        src, dst = pairs.edges_of(found, kind, "train", code)
        ids = [found.node_ids(end).to_pylist() for end in (kind.src_type, kind.dst_type)]
        near |= {
            (name, ids[0][s], ids[1][d])
            for s, d in zip(src.tolist(), dst.tolist(), strict=True)
        }
        assert len(src) > 50
    numbers = [(r, int(a[1:]), int(b[1:])) for r, a, b in near]
    assert {abs(a - b) for r, a, b in numbers if r == "line"} == {0, 1, 2}
    assert {b for r, a, b in numbers if r == "jump"} == {0, 3, 7}
    assert {(r, b, a) for r, a, b in numbers} == set(numbers)
    assert found.num_nodes_of("node") == found.num_nodes_of("context") == 9


def test_the_page_shows_what_is_saved(bench: Any) -> None:
    table = bench("bench.quality.table")
    rows = table.saved_rows()
    page = (ROOT / "scripts/bench/pages/embedding.md").read_text()
    assert table.markdown(rows) in page


def test_ranks_below_what_is_published_have_a_search_that_explains_them(
    bench: Any,
) -> None:
    cells = bench("bench.quality.cells").CELLS
    rows = bench("bench.quality.table").saved_rows()
    page = (ROOT / "scripts/bench/pages/embedding.md").read_text()
    below = {
        row["preset"]
        for row in rows
        if row["test"].get("mrr", 1) < 0.98 * cells[row["preset"]].published.get("mrr", 0)
    }
    links = {name: f"- `{name}` ([search](../searches/{name}.toml)): " for name in below}
    assert [name for name, link in links.items() if link not in page] == []


def test_of_two_machines_the_newest_row_of_a_cell_counts(
    bench: Any, tmp_path: Path
) -> None:
    def save(hardware: str, *rows: tuple[str, str]) -> None:
        told = [{"preset": name, "partitions": 1, "date": date} for name, date in rows]
        path = tmp_path / f"embedding_quality_{hardware}_202611.json"
        path.write_text(json.dumps({"rows": told}))

    save("a-2c", ("umls-complex", "2026-11-28"), ("codex-s-rescal", "2026-11-30"))
    save("b-2c", ("umls-complex", "2026-11-29"), ("codex-s-rescal", "2026-11-29"))
    found = bench("bench.quality.table").saved_rows(tmp_path)
    assert {row["preset"]: row["date"] for row in found} == {
        "umls-complex": "2026-11-29",
        "codex-s-rescal": "2026-11-30",
    }


def test_a_table_has_a_line_per_metric(bench: Any) -> None:
    table = bench("bench.quality.table")
    head = {"partitions": 1, "dim": 8, "epochs": 3, "train_cpu_seconds": 1.6}
    ranks = {"mrr": 0.5, "hits@1": 0.25, "hits@10": 0.75, "valid_mrr": 0.625}
    shares = {"f1_micro@50%": 0.4, "f1_macro@50%": 0.3}
    shares |= {"valid_f1_micro": 0.2, "valid_f1_macro": 0.1}
    lines = table.markdown(
        [
            {"preset": "blogcatalog-dot", **head, "test": shares},
            {"preset": "umls-complex", **head, "test": ranks},
            {"preset": "codex-s-complex", **head, "test": ranks}
            | {"seeds": [1, 2, 3], "spread": {"mrr": 0.0125}},
        ]
    ).splitlines()
    cells = "1 | 8 | 3 | 2"
    assert lines[2].startswith(
        f"| `codex-s-complex` | {cells} | 3 | MRR | 0.625 | 0.500 (0.013) | 0.250 | 0.750 |"
    )
    assert lines[3].startswith(
        f"| `umls-complex` | {cells} | 1 | MRR | 0.625 | 0.500 | 0.250 | 0.750 |"
    )
    assert "| f1_micro@50% | 0.200 | 0.400 |  |  | 0.410 |" in lines[4]
    assert "| f1_macro@50% | 0.100 | 0.300 |  |  | 0.273 |" in lines[5]
