"""Files as strangers have them: what each must become, or the remedy that gets it there.

A row says what a file becomes: how many nodes, and its edges. Where a file is refused, the
row has the remedy that the message must name; the test follows it and looks again.
"""

import re
import subprocess
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from tests.conftest import Run

pytestmark = pytest.mark.e2e


@dataclass(frozen=True, kw_only=True)
class Becomes:
    """What comes of files.

    Attributes:
        files: Names of the files, or another string that begins with a dash.
        options: What is passed besides.
        remedies: What messages must tell, one after the other: options, or a command that
            writes the file NEW.
        nodes: Number of nodes.
        edges: Source and destination of each edge, sorted.
        columns: Values of columns of edges, in the order of the edges.
        ids: Ids of all nodes, where some have no edges.
        of_nodes: Values of columns of nodes, by id.
        says: A pattern of the warning where the files go in; none where it is empty.
    """

    files: str
    options: str = ""
    remedies: tuple[str, ...] = ()
    nodes: int
    edges: str
    columns: dict[str, list[Any]] | None = None
    ids: str = ""
    of_nodes: dict[str, dict[Any, Any]] = field(default_factory=dict)
    says: str = ""


ROWS = [
    Becomes(
        files="comma_blank_names.txt",
        remedies=("--format csv",),
        nodes=4,
        edges="Lima>Cairo Oslo>Cairo Oslo>Rome",
    ),
    Becomes(
        files="comma_blank_names.txt",
        remedies=("--skip 1",),
        nodes=4,
        edges="Lima>Cairo Oslo>Cairo Oslo>Rome",
        says="separated by ','",
    ),
    Becomes(files="comma_txt.txt", nodes=3, edges="1>2 2>3", says="separated by ','"),
    Becomes(
        files="comma_names.txt", nodes=3, edges="alice>bob bob>carol", says="by ',', as in"
    ),
    Becomes(
        files="arrow_style.txt", remedies=("--columns src,_,dst",), nodes=3, edges="1>2 2>3"
    ),
    Becomes(
        files="srcdst.tsv", remedies=("--skip 1",), nodes=3, edges="alice>bob bob>carol"
    ),
    Becomes(
        files="srcdst.tsv",
        remedies=("--format csv",),
        nodes=3,
        edges="alice>bob bob>carol",
    ),
    Becomes(
        files="header.txt", remedies=("--format csv",), nodes=3, edges="alice>bob bob>carol"
    ),
    Becomes(
        files="header5.tsv",
        remedies=("--format csv",),
        nodes=2,
        edges="9606.ENSP1>9606.ENSP2",
    ),
    Becomes(
        files="header5.tsv", remedies=("--skip 1",), nodes=2, edges="9606.ENSP1>9606.ENSP2"
    ),
    Becomes(
        files="header_mid2.csv",
        remedies=("awk 'NR==1{h=$0} NR<=1||$0!=h' FILE > NEW",),
        nodes=4,
        edges="a>b c>d",
    ),
    Becomes(
        files="h3.tsv",
        remedies=("--format csv",),
        nodes=3,
        edges="a>b b>c",
        columns={"relation": ["knows", "knows"]},
    ),
    Becomes(
        files="h3.tsv",
        options="--format triples",
        remedies=("--skip 1",),
        nodes=3,
        edges="a>b b>c",
    ),
    Becomes(
        files="header_above_triples.tsv",
        remedies=("--format triples", "--skip 1"),
        nodes=3,
        edges="k:P1>k:P2 k:P2>k:P3",
        columns={"relation": ["k:cites", "k:cites"]},
    ),
    Becomes(
        files="leadzero2.txt",
        nodes=3,
        edges="01001>1001 1001>02115",
        says="zeros in front, such as '01001'; pass --ids string",
    ),
    Becomes(
        files="leadzero_ids.txt",
        nodes=4,
        edges="00260881>00260622 260881>3",
        says="zeros in front",
    ),
    Becomes(
        files="hashtags2.txt",
        nodes=2,
        edges="alice>#python",
        says="dropped 2 lines .* such as '#python #numpy'",
    ),
    Becomes(
        files="hashtags2.txt",
        options="--format csv --separator space --columns src,dst",
        nodes=4,
        edges="#numpy>#scipy #python>#numpy alice>#python",
    ),
    Becomes(files="id_1_id_2.csv", nodes=3, edges="0>1 1>2"),
    Becomes(
        files="src_dest.csv", nodes=3, edges="AA>BB BB>CC", columns={"dist": [811, 214]}
    ),
    Becomes(
        files="wrote.csv",
        remedies=("--columns src=author,dst=paper",),
        nodes=12,
        edges="",
        says="two types of nodes, .* keep them apart with --edges author,links,paper=",
    ),
    Becomes(
        files="signed.csv", nodes=3, edges="1>2 2>3 3>1", columns={"weight": [4, -10, 2]}
    ),
    Becomes(
        files="people.csv rels.csv",
        nodes=2,
        edges="1>2 2>1",
        columns={"relation": ["KNOWS", "LIKES"]},
        of_nodes={"name": {1: "Ann", 2: "Bob"}},
    ),
    Becomes(
        files="persons.csv knows.csv",
        nodes=3,
        edges="1>2 2>3",
        columns={"weight": [5, 7]},
        of_nodes={"label": {1: "Person", 2: "Person;Admin", 3: "Person"}},
    ),
    Becomes(
        files="iso.adjlist",
        nodes=4,
        edges="1>2 1>3 2>3",
        ids="1 2 3 4",
    ),
    Becomes(files="c.txt.xz", nodes=4, edges="1>2 2>3 3>4"),
    Becomes(files="cr.txt", nodes=4, edges="1>2 2>3 3>4"),
    Becomes(
        files="cr_only.csv",
        nodes=4,
        edges="a>b b>c c>a c>d",
        columns={"weight": [3, 3, 10, 10]},
    ),
    Becomes(
        files="us_dates.csv",
        options="--columns src=src,dst=dst,weight=amount,time=begin_date",
        nodes=3,
        edges="a>b b>c",
        columns={"weight": [5.6, 1.2]},
    ),
    Becomes(files="a.graphml", nodes=2, edges="a>b"),
    Becomes(files="a.gexf", nodes=1, edges=""),
    Becomes(
        files="two_nodes.gexf",
        nodes=2,
        edges="0>1",
        columns={"edge_id": ["0"]},
        of_nodes={"label": {"0": "a", "1": "b"}},
    ),
    Becomes(files="a.gml", nodes=2, edges="a>b"),
    Becomes(files="a.net", nodes=3, edges="a>b b>c", columns={"weight": [1, 2]}),
    Becomes(files="a.json", nodes=2, edges="a>b"),
    Becomes(
        files="a.nt",
        nodes=3,
        edges='http://ex.org/a>http://ex.org/b http://ex.org/b>"Bob_\\"B\\"_Smith"@en',
        columns={"relation": ["http://ex.org/knows", "http://ex.org/name"]},
        says="1 of 2 triples have a literal",
    ),
    Becomes(
        files="a.ttl",
        nodes=2,
        edges="http://ex.org/a>http://ex.org/b",
        columns={"relation": ["http://ex.org/knows"]},
    ),
    Becomes(files="a.gr", nodes=3, edges="1>2 2>3", columns={"weight": [7, 4]}),
    Becomes(files="a.col", nodes=3, edges="1>2 2>3"),
    Becomes(files="konect.out", nodes=3, edges="1>2 2>3", columns={"weight": [1, 1]}),
    Becomes(files="road.tntp", nodes=3, edges="1>2 2>3", columns={"length": [5, 7]}),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.files} {row.options}".strip())
def test_a_file_becomes_what_it_means_or_its_remedy_leads_there(
    tmp_path: Path, run_cli: Run, shared_data: Path, row: Becomes
) -> None:
    folder = shared_data / "strangers"
    files = [str(folder / name) for name in row.files.split()]
    if not all(Path(file).is_file() for file in files):
        pytest.skip(f"no {row.files} in {folder}")
    options, out = row.options.split(), tmp_path / "graph"
    for number, remedy in enumerate(row.remedies):
        done = run_cli("ingest", *files, "-o", out, *options, "--json")
        assert done.returncode == 2, done.stdout
        assert re.fullmatch(r"error: [^\n]*\n", done.stderr), done.stderr
        assert remedy in done.stderr
        assert not out.exists()
        if remedy.startswith("--"):
            options += remedy.split()
        else:
            files = [follow(remedy, files, tmp_path / f"{number}")]
    done = run_cli("ingest", *files, "-o", out, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert re.search(row.says, done.stderr), done.stderr
    assert bool(row.says) == ("warning: " in done.stderr), done.stderr
    expect(out, row)


def follow(command: str, files: list[str], folder: Path) -> str:
    """Run a command that a message names; return the file that it wrote."""
    folder.mkdir()
    new = folder / Path(files[0]).name
    command = command.replace("FILE", files[0]).replace("NEW", str(new))
    subprocess.run(["bash", "-c", command], check=True)
    return str(new)


def expect(store: Path, row: Becomes) -> None:
    """Compare a store with a row."""
    with warnings.catch_warnings(), gs.open(store) as graph:
        warnings.simplefilter("ignore")
        found = graph.to_networkx()
    assert found.number_of_nodes() == row.nodes
    if not row.edges:
        return
    edges = sorted(
        ((str(u), str(v), data) for u, v, data in found.edges(data=True)),
        key=lambda edge: edge[:2],
    )
    expected = sorted(
        tuple(pair.replace("_", " ").split(">")) for pair in row.edges.split()
    )
    assert [edge[:2] for edge in edges] == expected
    for name, values in (row.columns or {}).items():
        assert [edge[2][name] for edge in edges] == values, name
    if row.ids:
        assert sorted(map(str, found)) == row.ids.split()
    for name, by_id in row.of_nodes.items():
        assert dict(found.nodes(data=name)) == by_id
