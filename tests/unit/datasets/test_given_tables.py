"""Tables of nodes and edges by their types: files and data frames, not described."""

import re
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.cli.main import main
from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.datasets.build_store import open_data
from graphsys.datasets.table_spec.spec import EdgeCard, NodeCard, TablesCard
from graphsys.facade.graph import open_graph
from tests.conftest import ROOT

USERS = {
    "user_id": [30, 10, 20],
    "label": ["good", "bad", "good"],
    "split": ["train", "train", "test"],
    "time": [3, 1, 2],
    "x": [[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]],
}
TRUST = {"truster_id": [10, 20, 30], "trustee_id": [20, 30, 10], "weight": [1.0, 2.0, 0.5]}
ENDS = {"trusts.src": "truster_id", "trusts.dst": "trustee_id"}


def rows_of(graph: gs.Graph, node_type: str = "user") -> dict[Any, Any]:
    """Label, split, time and features of every node by its id."""
    table = graph.nodes(node_type, 0).to_pylist()
    features = graph.features(node_type, 0, "x")
    return {
        row.pop("id"): (row, x.tolist()) for row, x in zip(table, features, strict=True)
    }


EXPECTED = {
    30: ({"label": "good", "split": "train", "time": 3}, [0.5, 1.0]),
    10: ({"label": "bad", "split": "train", "time": 1}, [1.5, 2.0]),
    20: ({"label": "good", "split": "test", "time": 2}, [2.5, 3.0]),
}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dict"])
@pytest.mark.parametrize("is_fixed", [False, True])
def test_data_frames_by_type(tmp_path: Path, library: str, is_fixed: bool) -> None:
    table = pa.table(USERS)
    if is_fixed:
        x = pa.array(USERS["x"], type=pa.list_(pa.float64(), 2))
        table = table.set_column(4, "x", x)
    users: Any = {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "pyarrow": lambda: table,
        "dict": lambda: (
            table.to_pydict()
            if not is_fixed
            else {name: table[name].combine_chunks() for name in table.column_names}
        ),
    }[library]()
    trust: Any = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(library, pa.table)(
        TRUST
    )
    report = gs.ingest(
        out=tmp_path / "g",
        nodes={"user": users},
        edges={("user", "trusts", "user"): trust},
        columns=ENDS,
    )
    graph = report.graph
    assert rows_of(graph) == EXPECTED
    assert [str(kind) for kind in graph.node_types] == ["user"]
    assert graph.edge_types == [gs.EdgeType("user", "trusts", "user")]
    weight = graph.bucket("trusts", 0, 0).weight
    assert weight is not None
    assert sorted(weight.tolist()) == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".tsv", ".arrow"])
def test_files_by_type_from_the_command_line(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / f"users{suffix}", tmp_path / f"trust{suffix}"]
    flat = {**USERS, "a": [0.5, 1.5, 2.5], "b": [1.0, 2.0, 3.0]}
    del flat["x"]
    for path, table in zip(paths, (flat, TRUST), strict=True):
        if suffix == ".parquet":
            pq.write_table(pa.table(table), path)
        elif suffix == ".arrow":
            with pa.ipc.new_file(path, pa.table(table).schema) as file:
                file.write_table(pa.table(table))
        else:
            mark = "," if suffix == ".csv" else "\t"
            pd.DataFrame(table).to_csv(path, sep=mark, index=False)
    columns = "trusts.src=truster_id,trusts.dst=trustee_id,user.x=a+b"
    command = ["ingest", "-o", str(tmp_path / "g"), "--columns", columns]
    command += ["--nodes", f"user={paths[0]}", "--edges", f"user,trusts,user={paths[1]}"]
    assert main(command) == 0
    assert "no model reads" not in capsys.readouterr().err
    with open_graph(tmp_path / "g") as graph:
        assert rows_of(graph) == EXPECTED


def test_columns_of_numbers_that_nothing_reads_are_named(tmp_path: Path) -> None:
    table = {**USERS, "age": [1, 2, 3], "ratio": [0.1, 0.2, 0.3], "city": ["a", "b", "c"]}
    edges = {"user,trusts,user": TRUST}
    with pytest.warns(
        UserWarning,
        match=r"no model reads the columns age, ratio of nodes 'user'.*age\+ratio",
    ):
        gs.ingest(out=tmp_path / "g", nodes={"user": table}, edges=edges, columns=ENDS)
    path = tmp_path / "users.csv"
    path.write_text("user_id,age,city\n10,1,x\n20,,y\n30,2,z\n")
    with pytest.warns(UserWarning, match=r"users.csv:1: no model reads the columns age of"):
        gs.ingest(out=tmp_path / "h", nodes={"user": path}, edges=edges, columns=ENDS)
    del table["age"], table["ratio"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.ingest(out=tmp_path / "i", nodes={"user": table}, edges=edges, columns=ENDS)


@pytest.mark.parametrize("is_file", [True, False])
def test_one_column_of_numbers_is_features_too(tmp_path: Path, is_file: bool) -> None:
    table: Any = {"id": [10, 20], "age": [1.5, 2.0]}
    if is_file:
        table = tmp_path / "users.csv"
        table.write_text("id,age\n10,1.5\n20,2\n")
    edges = {"user,trusts,user": {"src": [10], "dst": [20]}}
    with pytest.warns(UserWarning, match="--columns user.x=age$") as told:
        gs.ingest(out=tmp_path / "g", nodes={"user": table}, edges=edges)
    columns = str(told[0].message).rpartition("--columns ")[2]  # as advised
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = gs.ingest(
            out=tmp_path / "h", nodes={"user": table}, edges=edges, columns=columns
        )
    assert done.graph.features("user", 0, "x").tolist() == [[1.5], [2.0]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_features_stand_in_the_order_in_which_they_are_named(
    tmp_path: Path, suffix: str
) -> None:
    frame = pd.DataFrame({"id": [10, 20], "age": [1, 2], "height": [170, 180]})
    path = tmp_path / f"users{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    edges = {"user,trusts,user": {"src": [10], "dst": [20]}}
    columns = "user.x=height+age"
    done = gs.ingest(out=tmp_path / "g", nodes={"user": path}, edges=edges, columns=columns)
    assert done.graph.features("user", 0, "x").tolist() == [[170, 1], [180, 2]]


def test_lists_of_integers_are_features_where_they_are_named(tmp_path: Path) -> None:
    table = {"id": [10, 20], "price": [1.5, 2.0], "codes": [[1, 2], [3, 4]]}
    edges = {"user,trusts,user": {"src": [10], "dst": [20]}}
    with pytest.warns(UserWarning, match="--columns user.x=price[+]codes$") as told:
        gs.ingest(out=tmp_path / "g", nodes={"user": table}, edges=edges)
    advised = str(told[0].message).rpartition("--columns ")[2]
    for columns, out, row in (
        (advised, "h", [1.5, 1, 2]),
        ("user.x=codes", "i", [1, 2]),
        ("user.x=codes+price", "j", [1, 2, 1.5]),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = gs.ingest(
                out=tmp_path / out, nodes={"user": table}, edges=edges, columns=columns
            )
        assert done.graph.features("user", 0, "x")[0].tolist() == row


@pytest.mark.parametrize("kind", ["nodes", "edges"])
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.orc", b"ORC\n\x00", r"t.orc: .orc files are not read as they are; write it as"),
        ("t.pkl", b"\x80\x05", r"t.pkl: .pkl files .*; load it, .*table [(]of pandas[)]"),
        (
            "t.csv",
            b"\x00\x01,\x02\x03\n",
            r"t.csv:1: found binary data, .*; write it as CSV, P",
        ),
        ("t.csv", b"id,src,\xe9\n1,2,3\n", r"t.csv:1: found byte 0xe9.* iconv -f latin1"),
    ],
)
def test_tables_of_other_formats_are_refused_with_a_way(
    tmp_path: Path, kind: str, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ends = {"src": [1], "dst": [2]}
    nodes = {"user": tmp_path / name} if kind == "nodes" else {}
    edges = {"user,trusts,user": tmp_path / name if kind == "edges" else ends}
    with pytest.raises(InputError, match=said):
        gs.ingest(out=tmp_path / "g", nodes=nodes, edges=edges)


def test_an_empty_or_wrong_feature_is_told_by_the_name_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    edges = {"user,trusts,user": {"src": [10], "dst": [20]}}

    def ingest(nodes: Any, columns: str) -> None:
        gs.ingest(out=tmp_path / "g", nodes={"user": nodes}, edges=edges, columns=columns)

    path.write_text("id,age\n10,\n20,3\n")
    with pytest.raises(InputError, match=r"users\.csv:2: column age is empty, expected"):
        ingest(path, "user.x=age")
    path.write_text("id,age\n10,young\n20,3\n")
    with pytest.raises(InputError, match=r"found 'young' as age, expected a number"):
        ingest(path, "user.x=age")
    with pytest.raises(InputError, match=r"column age: features are of type string"):
        ingest({"id": [10, 20], "age": ["young", "old"]}, "user.x=age")


@pytest.mark.parametrize("number", ["inf", "1e39"])
def test_features_beyond_float32_are_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "users.csv"
    path.write_text(f"id,age,height\n10,1,2\n20,{number},3\n")
    edges = {"user,trusts,user": {"src": [10], "dst": [20]}}
    said = r"users\.csv: row 1 has (inf|1e\+39) in features x, expected a number within"
    with pytest.raises(InputError, match=said):
        gs.ingest(
            out=tmp_path / "g",
            nodes={"user": path},
            edges=edges,
            columns="user.x=age+height",
        )


def test_ends_by_the_names_of_their_types_and_without_a_table_of_nodes(
    tmp_path: Path,
) -> None:
    likes = {"time": [1, 2], "Item": ["b", "c"], "user_id": [1, 2]}
    graph = gs.ingest(out=tmp_path / "g", edges={("user", "likes", "item"): likes}).graph
    assert graph.node_ids("user").to_pylist() == [1, 2]
    assert sorted(graph.node_ids("item").to_pylist()) == ["b", "c"]
    path = tmp_path / "plain.csv"
    path.write_text("1,2\n3,4\n")
    graph = gs.ingest(out=tmp_path / "h", edges={"a,r,b": path}).graph
    assert graph.node_ids("b").to_pylist() == [2, 4]


MARK_AND_CRLF = (
    b"\xef\xbb\xbfid,label,split,time,x0,x1\r\n30,good,train,3,.5,1\r\n"
    b"10,bad,train,1,1.5,2\r\n20,good,test,2,2.5,3\r\n"
)
QUOTES_AND_SEMICOLONS = (
    b'"id";"label";"split";"time";"x0";"x1"\n"30";"good";"train";3;0.5;1\n'
    b'10;"bad";train;1;1.5;2\n20;good;test;2;2.5;"3"\n'
)


@pytest.mark.parametrize("text", [MARK_AND_CRLF, QUOTES_AND_SEMICOLONS])
def test_csv_as_spreadsheets_write_it(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "users.csv"
    path.write_bytes(text)
    edges = {"user,trusts,user": TRUST}
    graph = gs.ingest(
        out=tmp_path / "g",
        nodes={"user": path},
        edges=edges,
        columns={**ENDS, "user.x": "x*"},
    ).graph
    assert rows_of(graph) == EXPECTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"users\.csv: the file is empty"),
        ("id,label\n", r"users\.csv:1: no row behind the header, expected at least one"),
        ("who,label\n1,a\n", r"users\.csv:1: no column for ids among who, label; say"),
        ("id,label\n1,a\n1,b\n", r"users\.csv:3: node 1 is listed a second time"),
        ("id,a,b\n1,NaN,1\n", r"users\.csv:2: found 'NaN' as a, expected a number"),
    ],
)
def test_bad_tables_of_nodes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "users.csv"
    path.write_text(text)
    columns = {"user.x": "a+b"} if "NaN" in text else None
    edges = {"user,trusts,user": {"src": [1], "dst": [1]}}
    with pytest.raises(InputError, match=message):
        gs.ingest(out=tmp_path / "g", nodes={"user": path}, edges=edges, columns=columns)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            [[1.0, 2.0], [3.0]],
            r"column x, row 1: a list of 1 numbers, expected 2 as in the",
        ),
        ([[1.0, 2.0], None], r"column x, row 1: the value is missing"),
        ([[1.0, 2.0], [3.0, None]], r"column x, row 1: a number is missing \(null\)"),
        ([[1.0, 2.0], [3.0, np.nan]], r"column x, row 1: a number is not finite"),
        (
            [[1.0, 2.0], [3.0, -1e300]],
            r"column x, row 1: -1e.300 at place 1 does not fit float32, .* within 3\.4e.38",
        ),
    ],
)
def test_features_that_are_none_are_refused(tmp_path: Path, x: Any, message: str) -> None:
    table = pa.table({"id": [1, 2], "x": x})
    edges = {"user,trusts,user": {"src": [1], "dst": [2]}}
    with pytest.raises(InputError, match=message):
        gs.ingest(out=tmp_path / "g", nodes={"user": table}, edges=edges)


def test_types_and_roles_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    edges = {"user,trusts,user": {"src": [1], "dst": [2]}}
    out = tmp_path / "g"
    with pytest.raises(ConfigError, match="'user,user', expected source type, relation"):
        gs.ingest(out=out, edges={"user,user": {}})
    with pytest.raises(ConfigError, match=r"got src=a, expected TYPE\.ROLE=NAME"):
        gs.ingest(out=out, edges=edges, columns="src=a,dst=b")
    with pytest.raises(UnknownNameError, match="unknown type in columns 'usr'"):
        gs.ingest(out=out, edges=edges, columns="usr.id=a")
    with pytest.raises(UnknownNameError, match="unknown column 'a'"):
        gs.ingest(out=out, edges=edges, columns="trusts.src=a")
    with pytest.raises(InputError, match=r"no column like f\* among id; correct the"):
        gs.ingest(out=out, nodes={"user": {"id": [1]}}, edges=edges, columns="user.x=f*")
    with pytest.raises(ConfigError, match="columns: 'src' is named twice for trusts, exp"):
        gs.ingest(out=out, edges=edges, columns="trusts.src=src,trusts.dst=src")
    with pytest.raises(ConfigError, match="leave out other forms, skip and edge_type"):
        gs.ingest(out=out, edges=edges, skip=1)
    with pytest.raises(ConfigError, match="either data, or edges and nodes by their types"):
        gs.ingest([(1, 2)], out, edges=edges)
    with pytest.raises(ConfigError, match="out: got none, expected the folder"):
        gs.ingest(edges=edges)
    with pytest.raises(ConfigError, match="edges: got none, expected at least one table"):
        gs.ingest(out=out, nodes={"user": {"id": [1]}})
    wide = tmp_path / "wide.csv"
    wide.write_text("1,2,3,4\n")
    with pytest.raises(InputError, match=r"4 columns and no header; put one above"):
        gs.ingest(out=out, edges={"a,r,b": wide})


def test_the_command_line_says_what_it_wants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["ingest", "-o", str(tmp_path / "g")]
    assert main(out) == 2
    assert "expected either FILES, or tables with --nodes and" in capsys.readouterr().err
    for pair, what in (("user", "no TYPE=FILE"), ("=a.csv", "no TYPE=FILE")):
        assert main([*out, "--nodes", pair]) == 2
        assert what in capsys.readouterr().err
    assert main([*out, "--nodes", "u=a.csv", "--nodes", "u=b.csv"]) == 2
    assert "a type that is given twice; give one file for each" in capsys.readouterr().err


def test_every_key_of_a_description_is_documented() -> None:
    text = (ROOT / "scripts/documenting/pages/guides/datasets.md").read_text()
    table = text[
        text.index("## A description of tables") : text.index("## Many small graphs")
    ]
    documented = set(re.findall(r"`(\w+)`", table))
    for card in (TablesCard, NodeCard, EdgeCard):
        keys = {field.name for field in fields(card)} - {"nodes", "edges"}
        assert keys <= documented


def test_ids_of_tables_by_type_keep_zeros_and_refuse_a_second_header(
    tmp_path: Path,
) -> None:
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text("id,name\n01001,a\n1001,b\n")
    edges.write_text("src,dst\n1001,01001\n")
    tables: dict[str, Any] = {
        "nodes": {"zip": nodes},
        "edges": {("zip", "to", "zip"): edges},
    }
    with pytest.warns(UserWarning, match="zeros in front"):
        chunks: list[Any] = list(open_data(**tables).chunks())
    assert [it.to_pylist() for it in (chunks[0].ids, chunks[1].src, chunks[1].dst)] == [
        ["01001", "1001"],
        ["1001"],
        ["01001"],
    ]
    nodes.write_text("id,name\na,x\nid,name\nb,y\n")
    edges.write_text("src,dst\na,b\n")
    with pytest.raises(InputError, match=r"n\.csv:3: found the header of line 1 again"):
        list(open_data(**tables).chunks())


def test_columns_between_runs_of_blanks_are_tables_too(tmp_path: Path) -> None:
    nodes, edges = tmp_path / "n.txt", tmp_path / "e.txt"
    nodes.write_text("id   name\n1    ann\n20   bob\n")
    edges.write_text("src  dst\n1    20\n20   1\n")
    tables: dict[str, Any] = {
        "nodes": {"user": nodes},
        "edges": {("user", "to", "user"): edges},
    }
    graph = gs.ingest(out=tmp_path / "g", **tables).graph
    assert (graph.num_nodes, graph.num_edges) == (2, 2)
    assert sorted(graph.nodes("user", 0)["name"].to_pylist()) == ["ann", "bob"]


@pytest.mark.parametrize("suffix", ["", ".csv", ".parquet"])
@pytest.mark.parametrize("columns", [["uid", "id"], ["id", "uid"]])
def test_a_column_named_for_a_role_wins_over_one_called_so(
    tmp_path: Path, suffix: str, columns: list[str]
) -> None:
    def given(frame: pd.DataFrame, name: str) -> Any:
        path = tmp_path / f"{name}{suffix}"
        if suffix == ".csv":
            frame.to_csv(path, index=False)
        elif suffix:
            frame.to_parquet(path)
        return path if suffix else frame

    users = pd.DataFrame({"id": [1, 2], "uid": [10, 20], "grade": [7, 8], "label": [0, 1]})
    sales = pd.DataFrame({"src": [5, 6], "buyer": [10, 20], "seller": [20, 10]})
    sales = sales.assign(time=[7, 8], when=[100, 200])
    nodes = {"user": given(users[[*columns, "grade", "label"]], "users")}
    edges = {"user,buys,user": given(sales, "sales")}
    roles = "buys.src=buyer,buys.dst=seller,buys.time=when,user.id=uid,user.label=grade"
    with pytest.warns(UserWarning, match="is left out, for") as told:
        graph = gs.ingest(out=tmp_path / "g", nodes=nodes, edges=edges, columns=roles).graph
    left = [
        pair
        for it in told
        for pair in re.findall(r"column '(\w+)' is left out, for '(\w+)'", str(it.message))
    ]
    assert sorted(left) == [
        ("id", "uid"),
        ("label", "grade"),
        ("src", "buyer"),
        ("time", "when"),
    ]
    assert graph.nodes("user", 0).to_pydict() == {"id": [10, 20], "label": [7, 8]}
    rows = {"src": [10, 20], "dst": [20, 10], "edge_type": ["buys"] * 2, "time": [100, 200]}
    assert graph.to_polars().to_dict(as_series=False) == rows
    named = {"src": "buyer", "dst": "seller", "time": "when"}
    with pytest.warns(UserWarning, match="the column 'src' is left out, for 'buyer' is"):
        plain = gs.ingest(edges["user,buys,user"], tmp_path / "h", columns=named).graph
    assert plain.to_polars().drop("edge_type").rows() == [(10, 20, 100), (20, 10, 200)]


def test_features_that_are_there_stay_where_more_are_advised(tmp_path: Path) -> None:
    table = {"id": [1, 2], "x": [[1.0, 2.0], [3.0, 4.0]], "age": [5, 6]}
    edges = {"user,r,user": {"src": [1], "dst": [2]}}
    with pytest.warns(UserWarning, match=r"--columns user.x=x[+]age$") as told:
        graph = gs.ingest(out=tmp_path / "g", nodes={"user": table}, edges=edges).graph
    more = {**table, "id": [3, 4]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.append(nodes={"user": more})  # has the columns that the graph has
        advised = str(told[0].message).rpartition("--columns ")[2]
        both = gs.ingest(
            out=tmp_path / "h", nodes={"user": table}, edges=edges, columns=advised
        )
    assert both.graph.features("user", 0, "x").tolist() == [[1, 2, 5], [3, 4, 6]]
    with pytest.warns(UserWarning, match="'x' is left out, for 'age' is taken as x"):
        gs.ingest(
            out=tmp_path / "i", nodes={"user": table}, edges=edges, columns="user.x=age"
        )


@pytest.mark.parametrize("is_nodes", [True, False])
def test_a_table_with_a_column_twice_is_refused(tmp_path: Path, is_nodes: bool) -> None:
    nodes, edges = tmp_path / "n.csv", tmp_path / "e.csv"
    nodes.write_text("id,label,label\na,0,1\n" if is_nodes else "id\na\n")
    edges.write_text("src,dst\na,a\n" if is_nodes else "src,dst,label,label\na,a,0,1\n")
    with pytest.raises(InputError, match=r"[ne]\.csv:1: column 'label' occurs twice, exp"):
        gs.ingest(out=tmp_path / "g", nodes={"user": nodes}, edges={"user,to,user": edges})
