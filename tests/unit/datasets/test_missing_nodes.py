"""Edges to nodes that the table of nodes lacks: made, dropped or refused, and counted."""

from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from graphsys.core.errors import BudgetError, ConfigError, InputError

KIND = ("user", "trusts", "user")


def tables(folder: Path, ids: str) -> dict[str, Any]:
    names = {"int": ["1", "2", "3", "8", "9"], "string": ["a", "b", "c", "x", "y"]}[ids]
    nodes, edges = folder / "n.csv", folder / "e.csv"
    nodes.write_text("id,name\n" + "".join(f"{it},n{it}\n" for it in names[:3]))
    pairs = [(0, 1), (1, 2), (0, 3), (4, 3), (2, 0)]
    lines = [f"{names[u]},{names[v]},{k}\n" for k, (u, v) in enumerate(pairs)]
    edges.write_text("src,dst,n\n" + "".join(lines))
    return {"nodes": {"user": nodes}, "edges": {KIND: edges}}


@pytest.mark.parametrize("ids", ["int", "string"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_missing_nodes_are_made_dropped_or_refused(
    tmp_path: Path, ids: str, partitions: int
) -> None:
    given = tables(tmp_path, ids) | {"partitions": partitions}
    with pytest.warns(UserWarning, match="2 nodes of type 'user' that edges name .* drop"):
        made = gs.ingest(out=tmp_path / "made", **given).graph
    assert (made.num_nodes, made.num_edges) == (5, 5)
    with pytest.warns(UserWarning, match="dropped 2 of 5 edges, as a node of them"):
        dropped = gs.ingest(out=tmp_path / "d", missing_nodes="drop", **given).graph
    assert (dropped.num_nodes, dropped.num_edges) == (3, 3)
    assert sorted(dropped.to_pandas()["n"]) == [0, 1, 4]
    with pytest.raises(InputError, match=r"2 nodes of type 'user' .*--missing-nodes drop"):
        gs.ingest(out=tmp_path / "r", missing_nodes="refuse", **given)
    assert not (tmp_path / "r").exists()
    with pytest.raises(ConfigError, match="missing_nodes: got 'x', expected make, drop or"):
        gs.ingest(out=tmp_path / "r", missing_nodes="x", **given)


def test_types_without_a_table_miss_nothing(tmp_path: Path) -> None:
    given = tables(tmp_path, "int")
    given["edges"] = {("item", "of", "item"): given["edges"][KIND]}
    for how in ("make", "drop", "refuse"):
        graph = gs.ingest(out=tmp_path / how, missing_nodes=how, **given).graph
        assert graph.num_edges == 5


def test_ids_that_are_other_in_both_tables_are_no_reason_to_drop_all(
    tmp_path: Path,
) -> None:
    given = tables(tmp_path, "int")
    given["nodes"]["user"].write_text("id,name\n77,x\n78,y\n")
    with pytest.raises(InputError, match="no node of any edge is in the tables of nodes"):
        gs.ingest(out=tmp_path / "d", missing_nodes="drop", **given)


def test_ids_that_do_not_fit_the_budget_are_refused_with_what_does(tmp_path: Path) -> None:
    from graphsys.datasets.build_store import open_data
    from graphsys.datasets.missing_nodes import ListedNodesOnly

    source = open_data(**tables(tmp_path, "int"))
    with pytest.raises(BudgetError, match=r"24 B of ids are held .* give 48 B"):
        list(ListedNodesOnly(source, 30).chunks())
