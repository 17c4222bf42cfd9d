"""Kinds of files that people have: right at once, or by the remedies that messages name."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from graphsys.core.errors import InputError
from tests.stores import read_file_edges

SNAP = "# Directed graph: x.txt\n# Nodes: 3 Edges: 2\n# FromNodeId\tToNodeId\n0\t1\n2\t1\n"
GEPHI = "Source;Target;Type;Id;Weight\nanna;ben;Directed;0;1.0\nben;carl;Directed;1;2\n"
BIOGRID = (
    "#BioGRID ID\tGene Interactor A\tGene Interactor B\n103\t6416\t2318\n117\t84\t88\n"
)
TWEETS = '"source","target","time"\n"1","2","Wed Oct 10 20:19:24 +0000 2018"\n'
PATTERN = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n"
PSQL = "id | src | dst\n---+-----+----\n 1 | a | b\n 2 | b | c\n"

AB, NUMBERS = [("a", "b"), ("b", "c")], [("1", "2"), ("2", "3")]
KINDS: list[tuple[str, str, tuple[str, ...], list[tuple[str, str]]]] = [
    ("snap.txt", SNAP, (), [("0", "1"), ("2", "1")]),
    ("gephi.csv", GEPHI, (), [("anna", "ben"), ("ben", "carl")]),
    ("kaggle.csv", ",node_1,node_2\n0,1,2\n1,2,3\n", (), NUMBERS),
    ("pandas.csv", ",source,target,weight\n0,a,b,1.5\n1,b,c,2\n", (), AB),
    ("ogb.csv", "1,2\n2,3\n", (), NUMBERS),
    ("pattern.mtx", PATTERN, (), NUMBERS),
    (
        "mentions.txt",
        "@anna @ben\n@ben @carl\n",
        (),
        [("@anna", "@ben"), ("@ben", "@carl")],
    ),
    ("tweets.csv", TWEETS, (), [("1", "2")]),
    ("igraph.ncol", "a b 1.5\nb c 2\n", (), AB),
    ("excel.csv", "\ufeffSource;Target\r\na;b\r\nb;c\r\n", (), AB),
    ("links.tsv.gz", "from_id\tto_id\n1\t2\n2\t3\n", ("--skip 1",), NUMBERS),
    ("links.tsv.gz", "from_id\tto_id\n1\t2\n2\t3\n", ("--format csv",), NUMBERS),
    (
        "colon.txt",
        "1: 2\n2: 3\n",
        ("sed 's/:/ /' FILE > NEW",),
        NUMBERS,
    ),
    (
        "wide.txt",
        "1 2 3 4\n2 3\n",
        ("--format adjacency",),
        [("1", "2"), ("1", "3"), ("1", "4"), ("2", "3")],
    ),
    ("wikidata.tsv", "Q42\tP31\tQ5\n", ("--format triples",), [("Q42", "Q5")]),
    (
        "u.data.txt",
        "1\t2\t3\t881250949\n2\t3\t3\t891717742\n",
        ("--columns src,dst,c3,c4",),
        NUMBERS,
    ),
    ("psql.txt", PSQL, ("grep -v '^--' FILE > NEW", "--format csv"), AB),
    ("biogrid.txt", BIOGRID, ("--columns _,src,dst",), [("6416", "2318"), ("84", "88")]),
    ("mails.txt", "1 2;\n2 3;\n", ("sed 's/; *$//' FILE > NEW",), NUMBERS),
]


@pytest.mark.parametrize(("name", "text", "remedies", "expected"), KINDS)
def test_a_kind_of_file_goes_in_right_or_its_remedies_lead_there(
    tmp_path: Path,
    name: str,
    text: str,
    remedies: tuple[str, ...],
    expected: list[tuple[str, str]],
) -> None:
    path, options = tmp_path / name, ""
    content = text.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    for remedy in remedies:
        if name != "biogrid.txt":  # its message leaves the names to the user
            with pytest.raises(InputError) as refused:
                read_file_edges(path, options)
            assert remedy in str(refused.value)
        if remedy.startswith("--"):
            options += f" {remedy}"
        else:
            new = tmp_path / f"new-{name}"
            command = remedy.replace("FILE", str(path)).replace("NEW", str(new))
            subprocess.run(["bash", "-c", command], check=True)
            path = new
    assert read_file_edges(path, options) == expected


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "g.txt"), ("utf-32", "g.txt"), ("latin-1", "g.csv")]
)
def test_other_encodings_are_refused_with_the_command_that_converts_them(
    tmp_path: Path, encoding: str, name: str
) -> None:
    mark = "," if name == "g.csv" else "\t"
    text = f"source{mark}target\n" * (name == "g.csv") + f"caf\u00e9{mark}th\u00e9\n"
    path, new = tmp_path / name, tmp_path / f"new-{name}"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(InputError, match="iconv") as refused:
        read_file_edges(path, "")
    (command,) = re.findall(r"iconv -f \S+ -t [\w-]+", str(refused.value))
    subprocess.run(["bash", "-c", f"{command} {path} > {new}"], check=True)
    assert read_file_edges(new, "") == [("caf\u00e9", "th\u00e9")]
