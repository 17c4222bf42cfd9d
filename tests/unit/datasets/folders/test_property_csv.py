"""CSV with typed headers: LDBC SNB's and Neo4j's, written here as documented."""

import re
import subprocess
from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import open_source
from graphsys.facade.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk

SNB = {
    "person_0_0.csv": 'id|firstName|birthday\n933|Mahinda "M"|628646400000\n4|An|7\n',
    "place_0_0.csv": "id|name\n5|India\n",
    "person_knows_person_0_0.csv": "Person.id|Person.id|creationDate\n933|4|2010-03-13\n",
    "person_isLocatedIn_place_0_0.csv": "Person.id|Place.id\n933|5\n4|5\n",
}
NEO4J = {
    "people.csv": 'name,key:ID(Person),age:int,:LABEL\n"Ann, B",a,30,X\nBob,b,40,X\n',
    "cities.csv": "key:ID(City)\nparis\n",
    "lives.csv": ":START_ID(Person),since:double,:END_ID(City)\na,2001.5,paris\n",
}


def write(folder: Path, files: dict[str, str]) -> list[Path]:
    for name, text in files.items():
        (folder / name).write_text(text)
    return [folder / name for name in files]


def test_snb(tmp_path: Path) -> None:
    graph = ingest(write(tmp_path, SNB), tmp_path / "g", format="snb").graph
    assert sorted(graph.node_types) == ["person", "place"]
    assert sorted(map(tuple, graph.edge_types)) == [
        ("person", "isLocatedIn", "place"),
        ("person", "knows", "person"),
    ]
    person = graph.nodes("person", 0)
    names = dict(
        zip(person["id"].to_pylist(), person["firstName"].to_pylist(), strict=True)
    )
    assert names == {933: 'Mahinda "M"', 4: "An"}


def test_neo4j(tmp_path: Path) -> None:
    chunks = list(open_source(write(tmp_path, NEO4J), format="snb").chunks())
    people = next(it for it in chunks if isinstance(it, NodeChunk))
    assert people.node_type == "Person"
    assert people.ids.to_pylist() == ["a", "b"]
    assert people.columns["name"].to_pylist() == ["Ann, B", "Bob"]
    assert people.columns["age"].tolist() == [30, 40]
    edges = next(it for it in chunks if isinstance(it, EdgeChunk))
    assert edges.edge_type == ("Person", "lives", "City")
    assert (edges.src.to_pylist(), edges.dst.to_pylist()) == (["a"], ["paris"])
    assert edges.columns["since"].tolist() == [2001.5]


MOVIES = {  # as Neo4j's manual has them
    "movies.csv": "movieId:ID,title,year:int,:LABEL\n"
    'tt01,"The Matrix",1999,Movie\ntt02,"The Matrix Reloaded",2003,Movie;Sequel\n',
    "actors.csv": "personId:ID,name,alias:string[],:LABEL\nkeanu,Keanu Reeves,K;KR,Actor\n",
    "roles.csv": ":START_ID,role,:END_ID,:TYPE\nkeanu,Neo,tt01,ACTED_IN\n"
    "keanu,Neo,tt02,LIKED\n",
}


def test_neo4j_without_id_spaces_is_known_by_its_headers(tmp_path: Path) -> None:
    graph = ingest(write(tmp_path, MOVIES), tmp_path / "g").graph
    nodes = {row.pop("id"): row for row in graph.nodes("node", 0).to_pylist()}
    nothing = {"title": None, "year": None, "name": None, "alias": None}
    assert nodes == {
        "tt01": nothing | {"title": "The Matrix", "year": 1999, "label": "Movie"},
        "tt02": nothing
        | {"title": "The Matrix Reloaded", "year": 2003, "label": "Movie;Sequel"},
        "keanu": nothing | {"name": "Keanu Reeves", "alias": "K;KR", "label": "Actor"},
    }
    edges = list(graph.to_networkx().edges(data=True))
    assert sorted((u, v, it["relation"], it["role"]) for u, v, it in edges) == [
        ("keanu", "tt01", "ACTED_IN", "Neo"),
        ("keanu", "tt02", "LIKED", "Neo"),
    ]


def test_neo4j_ids_are_of_one_kind_in_all_files(tmp_path: Path) -> None:
    files = {
        "a.csv": "x:ID(P)\n1\n2\n",
        "b.csv": "x:ID(C){id-type:string}\nparis\n",
        "in.csv": ":START_ID(P);:END_ID(C);n:int;:IGNORE\n1;paris;3;x\n2;paris;;y\n",
    }
    graph = ingest(write(tmp_path, files), tmp_path / "g").graph
    assert graph.nodes("P", 0)["id"].to_pylist() == ["1", "2"]
    (edge_type,) = graph.edge_types
    assert tuple(edge_type) == ("P", "in", "C")
    table = graph.to_pandas()
    assert table["n"].tolist()[0] == 3
    assert table["n"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.csv": "src_id|dst_id\n1|2\n"},
            r"a\.csv:1: found 'src_id\|dst_id', expected a",
        ),
        ({"p_email.csv": "Person.id|email\n1|x\n"}, "expected a header with types"),
        (
            SNB | {"person_0_0.csv": "id|n\n1|a\n2|b\n1|c\n"},
            r"person_0_0\.csv:4: node 1 is listed a second time, after line 2",
        ),
        (SNB | {"person_1_0.csv": "id\n1\n"}, "a second file of nodes of type 'person'"),
        ({"p_0.csv": "id\n1\n"}, "p_0.csv: nodes alone, expected files of edges"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path, files: dict[str, str], message: str
) -> None:
    with pytest.raises((InputError, ConfigError), match=message):
        list(open_source(write(tmp_path, files), format="snb").chunks())


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("given", [["head.csv", "data.csv"], ["head.csv"]])
def test_a_header_in_a_file_of_its_own_is_joined_as_advised(
    given: list[str], end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("head.csv").write_text(":START_ID,:END_ID,:TYPE" + end)
    Path("data.csv").write_text("1,2,KNOWS\n2,3,LIKES\n")
    with pytest.raises(InputError, match="without data; put it before its data") as found:
        ingest(given, "wrong")
    command = re.search(r"its data, (.*), and ingest (\S+)", str(found.value))
    assert command is not None, found.value
    joined = command[1].replace("DATA.csv", "data.csv")
    subprocess.run(joined, shell=True, check=True)
    graph = ingest(command[2], "graph").graph
    assert graph.num_edges == 2
    assert sorted(graph.relations("WHOLE") or []) == ["KNOWS", "LIKES"]


def test_an_export_of_apoc_without_nodes_has_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "e.csv"
    path.write_text("_id,_labels,_start,_end,_type\n,,0,1,KNOWS\n,,1,7,LIKES\n")
    (chunk,) = open_source(path).chunks()
    assert isinstance(chunk, EdgeChunk)
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([0, 1], [1, 7])
    path.write_text("_id,_start,_end\n3,,\n,3,3\n")
    for columns in (None, "src=_start,dst=_end"):
        with pytest.raises(InputError, match=r"\(_id\) stand above .* \(_start, _end\)"):
            open_source(path, columns=columns)
