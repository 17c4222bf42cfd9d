"""What exports of graphs advise leads somewhere right."""

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

CLOCK = """\
import datetime as d, pyarrow as a, pyarrow.parquet as q
q.write_table(a.table({"src": [1], "dst": [2], "at": [d.time(1, 2)]}), "clock.parquet")
"""
CASES = {
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
