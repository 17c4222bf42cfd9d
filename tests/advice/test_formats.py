"""What is advised about files of other formats leads to the right graph."""

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

OPENING = "datasets/opening.py"
OTHERS = "datasets/other_formats.py"
TRIANGLE = {"num_nodes": 3, "num_edges": 3}
TWO_EDGES = {"num_nodes": 3, "num_edges": 2}


def _parquet(columns: Mapping[str, list[int]]) -> bytes:
    """Return a Parquet file of columns."""
    content = io.BytesIO()
    pq.write_table(pa.table(columns), content)
    return content.getvalue()


def of_name(name: str, text: str | bytes, advice: str, **given: object) -> Case:
    """Return a case of a file whose name says too little."""
    settings: dict[str, object] = {
        "told_in": OPENING,
        "files": {name: text},
        "command": f"ingest {name} -o g",
        "then": (f"ingest {name} -o g {{0}} --json",),
        "expected": TWO_EDGES,
    }
    return Case(advice=advice, **(settings | given))  # type: ignore[arg-type]


def of_fixed(format_name: str, name: str, text: str, told_in: str, **given: object) -> Case:
    """Return a case of columns that cannot be named."""
    settings: dict[str, object] = {
        "files": {name: text},
        "expected": TWO_EDGES,
        "command": f"ingest {name} -o g --format {format_name} --columns src,dst --skip 1",
        "then": (f"ingest {name} -o g --format {format_name} --json",),
    }
    return Case(
        told_in=told_in,
        advice=r"leave out --columns and --skip",
        **(settings | given),  # type: ignore[arg-type]
    )


def of_text(text: str, told_in: str, advice: str, **given: Any) -> Case:
    """Return a case of a file ``a.txt``."""
    return of_name("a.txt", text, advice, told_in=told_in, **given)


OPENKE = "2\n0 1 0\n1 2 0\n"
ARCS = "p sp 3 2\na 1 2 5\na 2 3 7\n"
CASES = {
    "sif": of_name(
        "a.sif", "a pp b\nb pp c\n", r"pass (--format triples) if", told_in=OTHERS
    ),
    "no suffix": of_name(
        "edges",
        "1 2\n2 3\n",
        r"does not tell the format; say it with (--format), one of",
        then=("ingest edges -o g {0} edgelist --json",),
    ),
    "a zip archive": of_name(
        "edges",
        "1 2\n2 3\n",
        r"the format of what is in it; say it with (--format), one of",
        before=("$ {python} -m zipfile -c a.zip edges",),
        command="ingest a.zip -o g",
        then=("ingest a.zip -o g {0} edgelist --json",),
    ),
    "several formats": of_name(
        "a.csv",
        "1,2\n",
        r"say which with (--format)",
        expected={"num_edges": 2},
        files={"a.csv": "1 2\n", "b.txt": "2 3\n"},
        command="ingest a.csv b.txt -o g",
        then=("ingest a.csv b.txt -o g {0} edgelist --json",),
    ),
    "a pipe": of_name(
        "a.txt",
        "1 2\n2 3\n",
        r"a pipe has no name.*; say it with (--format), one of",
        before=("$ mkfifo pipe; (cat a.txt > pipe &) &> /dev/null",),
        command="ingest pipe -o g",
        then=("ingest pipe -o g {0} edgelist --json",),
    ),
    "dot": of_name(
        "a.dot",
        "digraph { a -> b; b -> c }\n",
        r"as GML, (gv2gml) FILE > NEW.gml",
        program="gv2gml",
        then=("$ {0} a.dot > b.gml", "ingest b.gml -o g --json"),
    ),
    "openke": of_fixed("openke", "train2id.txt", OPENKE, "datasets/readers/openke.py"),
    "openke as triples": Case(
        files={"train2id.txt": OPENKE},
        told_in="datasets/readers/openke.py",
        command="ingest train2id.txt -o g --format openke --columns src,dst,relation",
        advice=r"or use (--format triples)",
        then=("ingest train2id.txt -o g --skip 1 --columns src,dst,relation {0} --json",),
        expected=TWO_EDGES,
    ),
    "openke without a count": Case(
        files={"train2id.txt": "0 1 0\n1 2 0\n"},
        told_in="datasets/readers/openke.py",
        command="ingest train2id.txt -o g --format openke",
        advice=r"use (--format triples --columns src,dst,relation)",
        then=("ingest train2id.txt -o g {0} --json",),
        expected=TWO_EDGES,
    ),
    "gap": of_fixed("gap", "a.gr", ARCS, "datasets/readers/gap.py"),
    "konect": of_name(
        "out.a",
        "1 2\n2 3\n",
        r"pass (--format edgelist) if",
        told_in="datasets/readers/published.py",
    ),
    "konect of many columns": of_name(
        "out.a",
        "% sym weighted\n1 2 3 4 5\n2 3 3 4 5\n",
        r"pass (--format edgelist) and (--columns)",
        told_in="datasets/readers/published.py",
        then=("ingest out.a -o g {0} {1} src,dst,a,b,c --json",),
    ),
    "not as NetworkX reads it": of_name(
        "a.json",
        "1 2\n2 3\n",
        r"another format with (--format)",
        told_in="datasets/readers/networkx_files.py",
        then=("ingest a.json -o g {0} edgelist --json",),
    ),
    "names of NetworkX": of_name(
        "a.gml",
        'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ]\n'
        "edge [ source 0 target 1 ] ]\n",
        r"\((--ids string)\)",
        told_in="datasets/readers/networkx_graphs.py",
        command="ingest a.gml -o g --ids int",
        expected={"num_nodes": 2},
    ),
    "a negative id of NetworkX": of_name(
        "a.gml",
        "graph [ node [ id 0 label -1 ] node [ id 1 label 2 ]\n"
        "edge [ source 0 target 1 ] ]\n",
        r"; (--ids string) takes it",
        told_in="datasets/readers/networkx_graphs.py",
        command="ingest a.gml -o g --ids int",
        expected={"num_nodes": 2},
    ),
    "a negative id in a table": of_name(
        "a.parquet",
        _parquet({"src": [-1, 2], "dst": [2, 3]}),
        r"; (--ids string) takes it",
        told_in="datasets/columns.py",
    ),
    "no N-Triples": of_name(
        "a.nt",
        "a likes b\nb likes c\n",
        r"pass (--format triples) for",
        told_in="datasets/readers/rdf.py",
    ),
    "N-Triples not in UTF-8": of_name(
        "a.nt",
        "<a> <p> <caf\u00e9> .\n".encode("latin-1"),
        r"with (iconv -f \S+ -t \S+) FILE > NEW",
        told_in="datasets/readers/rdf.py",
        then=("$ {0} a.nt > b.nt", "ingest b.nt -o g --json"),
        expected={"num_edges": 1},
    ),
    "GML not in UTF-8": of_name(
        "a.gml",
        'graph [ node [ id 0 label "caf\u00e9" ] ]'.encode("latin-1"),
        r"with (iconv -f \S+ -t \S+) FILE > NEW",
        told_in="datasets/readers/networkx_files.py",
        then=("$ {0} a.gml > b.gml", "ingest b.gml -o g --json"),
        expected={"num_nodes": 1},
    ),
    "triples below a count": of_name(
        "a.txt",
        "2\na likes b\nb likes c\n",
        r"pass (--skip 1) if",
        told_in="datasets/readers/triples.py",
        command="ingest a.txt -o g --format triples",
        then=("ingest a.txt -o g --format triples {0} --json",),
    ),
    "triples with times": of_name(
        "a.txt",
        "a likes b 3 4\nb likes c 5 6\n",
        r"pass (--columns src,relation,dst,_,_) and",
        told_in="datasets/readers/triples.py",
        command="ingest a.txt -o g --format triples",
        then=("ingest a.txt -o g --format triples {0} --json",),
    ),
    "triples below a header": of_name(
        "a.txt",
        "head relation tail\na likes b\nb likes c\n",
        r"pass (\S+ 1), or",
        told_in="datasets/readers/triples.py",
        command="ingest a.txt -o g --format triples",
        then=("ingest a.txt -o g --format triples {0} --json",),
    ),
    "names of neighbors": of_name(
        "a.adjlist",
        "1 2\n2 b\n",
        r"pass (--ids string) if",
        told_in="datasets/table_spec/edges.py",
    ),
    "neighbors not in UTF-8": of_name(
        "a.adjlist",
        "b caf\u00e9\n".encode("latin-1"),
        r"with (iconv -f \S+ -t \S+) FILE > NEW",
        command="ingest a.adjlist -o g --ids string",
        told_in="datasets/table_spec/edges.py",
        expected={"num_edges": 1},
        then=("$ {0} a.adjlist > b.adjlist", "ingest b.adjlist -o g --json"),
    ),
    "graphalytics of names": of_name(
        "a.e",
        "a b\nb c\n",
        r"pass (--ids string)",
        files={"a.e": "1 2\n2 3\n", "a.v": "a\n1\n2\n3\n"},
        told_in="datasets/readers/graphalytics.py",
        expected={"num_nodes": 4},
    ),
    "graphalytics": of_fixed(
        "ldbc",
        "a.e",
        "1 2\n2 3\n",
        "datasets/readers/graphalytics.py",
        files={"a.e": "1 2\n2 3\n", "a.v": "1\n2\n3\n"},
    ),
    "four columns of CSV": of_name(
        "a.csv",
        "1,2,5,7\n2,3,5,8\n",
        r"name them with (--columns \S+)",
        told_in="datasets/readers/delimited.py",
    ),
    "unknown columns": of_name(
        "a.csv",
        "buyer,seller\na,b\nb,c\n",
        r"say which they are with (--columns \S+), or",
        told_in="datasets/readers/delimited.py",
    ),
    "unknown columns with blanks": of_name(
        "a.csv",
        "the buyer,the seller\na,b\nb,c\n",
        r"say which they are with (--columns \"[^\"]+\"), or",
        told_in="datasets/roles.py",
    ),
    "no header": of_name(
        "a.csv",
        "a,b\nb,c\nc,a\n",
        r"or (--columns \S+) if this line is no header",
        told_in="datasets/readers/delimited.py",
        expected=TRIANGLE,
    ),
    "fractions of seconds": of_text(
        "1 2 5.5\n2 3 6.5\n",
        "datasets/time_units.py",
        r"pass (--time-unit s) or ms",
        command="ingest a.txt -o g --columns src,dst,time --time-unit d",
        then=("ingest a.txt -o g --columns src,dst,time {0} --json",),
    ),
    "a unit without times": of_text(
        "1 2 5\n2 3 6\n",
        "datasets/time_units.py",
        r"say which it is with (--columns), such as (src,dst,time)",
        command="ingest a.txt -o g --time-unit s",
        then=("ingest a.txt -o g --time-unit s {0} {1} --json",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_advised_about_a_format_leads_somewhere_right(
    name: str, follow: Follow
) -> None:
    follow(CASES[name])
