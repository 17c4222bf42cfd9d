"""What exports of graphs, and files of a word or a graph alone, advise."""

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

CLOCK = """\
import datetime as d, pyarrow as a, pyarrow.parquet as q
q.write_table(a.table({"src": [1], "dst": [2], "at": [d.time(1, 2)]}), "clock.parquet")
"""
HUB = "1 hub 5\n1 hub 6\n2 hub 5\n"
LONE = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="c" for="graph" attr.name="label" attr.type="int"/>
<graph edgedefault="directed"><data key="c">1</data>
<node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>
"""


def of_hub(advice: str, num_nodes: int) -> Case:
    """Return a case about a word that is second in every line."""
    return Case(
        files={"hub.txt": HUB},
        command="ingest hub.txt -o g",
        advice=advice,
        then=("ingest hub.txt -o g {0} --json",),
        expected={"num_nodes": num_nodes, "num_edges": 3},
        told_in="datasets/text/dialect.py",
    )


CASES = {
    "a word that is a relation": of_hub("pass (--format triples) if it is a relation", 4),
    "a word to leave out": of_hub("(--columns src,_,dst) to leave it out", 4),
    "a word that is a node": of_hub("(--columns src,dst,weight) if it is a node", 3),
    "a folder of one graph": Case(
        files={"fold/a.graphml": LONE},
        command="ingest fold -o g --format graphs",
        advice="(fold): a folder with no files of format (graphs); name the files in it",
        then=(
            "ingest {0}/a.graphml -o g --format {1}",
            "ingest {0}/a.graphml -o h --json",
        ),
        expected={"num_edges": 1},
        told_in="datasets/opening.py",
    ),
    "overwrite an export": Case(
        uses=("g",),
        before=("export g --format csr -o out",),
        command="export g --format networkit -o out",
        advice="replace it with (--overwrite)",
        then=("export g --format networkit -o out {0} --json",),
        expected={"format": "networkit"},
        told_in="graphsys/interop/graph_files/write.py",
    ),
    "a column that GraphAr has no type for": Case(
        files={"clock.py": CLOCK},
        before=("$ {python} clock.py", "ingest clock.parquet -o clock"),
        command="export clock --format graphar -o out",
        advice="give (--format csr), which keeps it",
        then=("export clock {0} -o out --json",),
        expected={"format": "csr"},
        told_in="graphsys/interop/graph_files/column_types.py",
    ),
    "no pickles": Case(
        uses=("g",),
        command="export g --format pyg -o out",
        advice="or give (--format csr)",
        then=("export g {0} -o out --json",),
        expected={"format": "csr"},
        told_in="graphsys/interop/graph_files/write.py",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_export_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
