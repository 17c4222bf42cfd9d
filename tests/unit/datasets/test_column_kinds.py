"""Columns of a file are read as the graph, or another file, has them, not as they look."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import graphsys as gs
from graphsys.core.errors import InputError
from graphsys.datasets.append import append

NODES = "id,age,city,label\n" + "".join(f"u{k},{k}.5,c{k},{k % 2}\n" for k in range(4))
EDGES = "src,dst,note,share\n" + "".join(f"u{k},u0,n{k},{k}.5\n" for k in range(4))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "e.csv").write_text(EDGES)
    files = {"user": tmp_path / "n.csv"}, {"user,to,user": tmp_path / "e.csv"}
    gs.ingest(out=tmp_path / "g", nodes=files[0], edges=files[1]).graph.close()
    return tmp_path / "g"


@pytest.mark.filterwarnings("ignore:.*no model reads")
@pytest.mark.parametrize("city", ["007", "1.50", "true", "2020-01-01", ""])
def test_texts_stay_as_they_are_written(store: Path, city: str) -> None:
    (store.parent / "m.csv").write_text(f"id,age,city,label\nnew,7,{city},1\n")
    append(store, nodes={"user": store.parent / "m.csv"}).graph.close()
    with gs.Graph(store) as graph:
        assert graph.node_column("user", "city").to_pylist()[-1] == city
        assert graph.node_column("user", "age").to_pylist()[-1] == 7.0


@pytest.mark.parametrize("cell", ["", "NA"])
def test_a_number_may_be_missing_in_all_rows(store: Path, cell: str) -> None:
    (store.parent / "m.csv").write_text(f"id,age,city,label\nnew,{cell},c,1\n")
    append(store, nodes={"user": store.parent / "m.csv"}).graph.close()
    with gs.Graph(store) as graph:
        assert np.isnan(graph.node_column("user", "age").to_pylist()[-1])


@pytest.mark.parametrize("is_typed", [True, False])
def test_columns_of_edges_are_read_so_too(store: Path, is_typed: bool) -> None:
    path = store.parent / "m.csv"
    path.write_text("src,dst,note,share\nu1,u2,007,\n")
    if is_typed:
        append(store, edges={"user,to,user": path}).graph.close()
    else:
        append(store, path).graph.close()
    with gs.Graph(store) as graph:
        table = graph.to_pandas()
    row = table[(table["src"] == "u1") & (table["dst"] == "u2")].iloc[0]
    assert row["note"] == "007"
    assert np.isnan(row["share"])


def test_what_is_no_number_is_refused_with_its_line(store: Path) -> None:
    path = store.parent / "m.csv"
    path.write_text("id,age,city,label\nnew,7,c,1\nother,old,c,1\n")
    with pytest.raises(
        InputError, match=r"m\.csv:3: found 'old' as age, expected a number"
    ):
        append(store, nodes={"user": path})
    path.write_text("id,age,city,label\nnew,7,c,first\n")
    with pytest.raises(InputError, match=r"column 'label' .* is text, in the graph int64"):
        append(store, nodes={"user": path})


FIRST, SECOND = "src,dst,note\na,b,{}\n", "src,dst,note\na,c,{}\n"


@pytest.mark.parametrize("is_typed", [True, False])
@pytest.mark.parametrize(
    ("notes", "wanted"),
    [
        (("x", "007"), ["x", "007"]),
        (("007", "x"), ["007", "x"]),
        (("5", "1.5"), [5.0, 1.5]),
        (("1.5", "5"), [1.5, 5.0]),
        (("5", "6"), [5, 6]),
        (("5", ""), [5.0, None]),
        (("", "5"), [None, 5.0]),
        (("", "x"), ["", "x"]),
        (("", ""), ["", ""]),
    ],
)
def test_several_files_are_read_alike(
    tmp_path: Path, notes: tuple[str, str], wanted: list[object], is_typed: bool
) -> None:
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for file, text, note in zip(files, (FIRST, SECOND), notes, strict=True):
        file.write_text(text.format(note))
    if is_typed:
        made = gs.ingest(out=tmp_path / "g", edges={"user,to,user": files})
    else:
        made = gs.ingest(files, tmp_path / "g")
    with made.graph as graph:
        table = graph.to_pandas().sort_values("dst")
    found = [None if it != it else it for it in table["note"].tolist()]
    assert found == wanted
    assert list(map(type, found)) == list(map(type, wanted))


def test_a_text_below_numbers_is_refused_with_what_takes_it(tmp_path: Path) -> None:
    rows = [f"a,b{k},{k}" for k in range(200)] + ["a,c,late"]
    path = tmp_path / "g.csv"
    path.write_text("\n".join(["src,dst,note", *rows, ""]))
    with pytest.raises(InputError) as refused:
        gs.ingest(path, tmp_path / "g")
    assert str(refused.value).endswith(
        "g.csv:202: found 'late' as note, expected an integer of 64 bits throughout; "
        "correct or remove the line, or write the table as Parquet, where a column's type "
        "is said"
    )
    texts = csv.ConvertOptions(column_types={"note": pa.string()})
    parquet.write_table(csv.read_csv(path, convert_options=texts), tmp_path / "g.parquet")
    with gs.ingest(tmp_path / "g.parquet", tmp_path / "g").graph as graph:
        assert graph.to_pandas()["note"].tolist()[-1] == "late"


def test_features_that_lack_a_number_are_not_advised(tmp_path: Path) -> None:
    path, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    path.write_text("id,age,height\na,1,2\nb,,3\n")
    edges.write_text("src,dst\na,b\n")
    given = {"nodes": {"user": path}, "edges": {"user,to,user": edges}}
    with pytest.warns(UserWarning, match=r"columns age, height of .* user\.x=height$"):
        gs.ingest(out=tmp_path / "g", **given)  # type: ignore[arg-type]
    path.write_text("id,age\na,1\nb,\n")
    with pytest.warns(UserWarning, match=r"fill in what they lack and say .* user\.x=age$"):
        gs.ingest(out=tmp_path / "f", **given)  # type: ignore[arg-type]
    path.write_text("id,age,height\na,1,2\nb,,3\n")
    named = {"user.x": "age+height"}
    with pytest.raises(
        InputError, match=r"n\.csv:3: column age is empty.*; fill it in, or"
    ):
        gs.ingest(out=tmp_path / "h", columns=named, **given)  # type: ignore[arg-type]
