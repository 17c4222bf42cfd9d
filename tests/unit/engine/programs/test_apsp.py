"""All pairs of distances against SciPy and NetworkX."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.engine.algorithms import all_pairs
from graphsys.engine.algorithms.all_pairs import apsp
from graphsys.engine.output import write_pieces, write_table
from graphsys.engine.topology import Topology
from tests.unit.engine.algorithms.small_graphs import SmallGraph, small_graphs
from tests.unit.engine.programs.runs import Stored


def distances(result: Any) -> dict[tuple[Any, Any], float | None]:
    source, target, value = (
        result.table[name].to_pylist() for name in ("id", "other", "value")
    )
    pairs = list(zip(source, target, strict=True))
    assert len(set(pairs)) == len(pairs)
    return dict(zip(pairs, value, strict=True))


def expected_distances(graph: SmallGraph) -> dict[tuple[Any, Any], float | None]:
    found = dict(nx.all_pairs_dijkstra_path_length(graph.networkx()))
    return {(a, b): found[a].get(b) for a in graph.ids for b in graph.ids}


@settings(max_examples=25)
@given(graph=small_graphs(max_nodes=8), order=st.integers(0, 2))
def test_distances_are_those_of_networkx(graph: SmallGraph, order: int) -> None:
    result = apsp(graph.topology(order), num_threads=1)
    assert distances(result) == expected_distances(graph)
    assert len(result) == len(graph.ids) ** 2


def test_layouts_and_threads_do_not_matter(stored: Stored) -> None:
    expected = expected_distances(stored.graph)
    for name in ("whole", "three parts by degree"):
        for threads in (1, 2):
            assert distances(apsp(stored.stores[name], num_threads=threads)) == expected


def test_what_would_not_fit_is_refused() -> None:
    graph = SmallGraph([1, 2, 3], [(1, 2, 1.0)], True).topology()
    done = apsp(graph, max_nodes=2)
    assert len(done) == 9
    with pytest.raises(ConfigError, match=r"3\^2 = 9 rows .* 2 nodes for .*-o FILE"):
        _ = done.table
    with pytest.raises(InvalidGraphError, match="weights of 0 or more"):
        apsp(SmallGraph([1, 2], [(1, 2, -1.0)], True).topology())


@pytest.mark.parametrize("is_weighted", [False, True])
def test_blocks_of_thousands_of_nodes_are_those_of_scipy(
    is_weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    num, rng = 2000, np.random.default_rng(11)
    src, dst = rng.integers(0, num, (2, 5000))
    weight = rng.integers(1, 9, 5000).astype(np.float64) / 4 if is_weighted else None
    keys, first = np.unique(src * num + dst, return_index=True)
    src, dst = src[first], dst[first]
    own = np.ones(len(keys)) if weight is None else weight[first]
    given = None if weight is None else own
    topology = Topology.from_edges(src, dst, num_nodes=num, weight=given)
    matrix = scipy.sparse.csr_array((own, (src, dst)), shape=(num, num))
    expected = scipy.sparse.csgraph.dijkstra(matrix)
    monkeypatch.setattr(all_pairs, "BLOCK_BYTES", int(300 * num * all_pairs.row_bytes(8)))
    done = apsp(topology, max_nodes=100)
    assert done.pieces is not None
    rows = 0
    for piece in done.pieces():
        sources = piece.num_rows // num
        assert sources <= 300
        ids = piece["id"].to_numpy().reshape(-1, num)
        assert (ids == np.arange(rows, rows + sources)[:, None]).all()
        assert (piece["other"].to_numpy().reshape(-1, num) == np.arange(num)).all()
        found = piece["value"].fill_null(np.inf).to_numpy().reshape(-1, num)
        assert (
            found == expected[rows : rows + sources]
        ).all()  # sums of quarters are exact
        rows += sources
    assert rows == num


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".jsonl", ".json"])
def test_a_file_of_blocks_is_that_of_the_table(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = SmallGraph(["a", "b", "c"], [("a", "b", 1.5), ("b", "c", 2.0)], True).topology()
    monkeypatch.setattr(all_pairs, "BLOCK_BYTES", 1)  # a source a block
    blocks = apsp(graph, max_nodes=2)
    assert blocks.pieces is not None
    write_pieces(blocks.pieces(), tmp_path / f"blocks{suffix}")
    write_table(apsp(graph).table, tmp_path / f"table{suffix}")
    if suffix == ".parquet":
        tables = [
            pq.read_table(tmp_path / f"{name}.parquet") for name in ("blocks", "table")
        ]
        assert tables[0].equals(tables[1])
    elif suffix == ".arrow":
        found = pa.ipc.open_file(tmp_path / "blocks.arrow").read_all()
        assert found.equals(apsp(graph).table)
    else:
        written = [(tmp_path / f"{it}{suffix}").read_bytes() for it in ("blocks", "table")]
        assert written[0] == written[1]
        assert written[0]
