"""What ``profile`` and the writers of tables advise leads to a page or a table."""

from typing import Any

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

PROFILE, RESULTS = "graphsys/cli/profile.py", "graphsys/cli/results.py"
RUN = "run wcc g -o w.csv"
PAGE = f"profile -o r.html --level L0 -- {RUN}"


def of_graph(command: str, told_in: str, advice: str, *then: str, **given: Any) -> Case:
    """Return a case about the graph ``g``."""
    settings = {"uses": ("g",)} | given
    return Case(command=command, told_in=told_in, advice=advice, then=then, **settings)


CASES = {
    "JSON of a profile": of_graph(
        f"profile -o r.html --json -- {RUN}",
        PROFILE,
        "(--json) belongs to (--compare) and .*; the profiled command takes its own after",
        f"{PAGE} {{0}}",
        "profile {1} r.json r.json {0}",
    ),
    "a page": of_graph(
        f"profile -- {RUN}",
        PROFILE,
        "name the page to write with (--out) FILE.html",
        f"profile {{0}} r.html --level L0 -- {RUN}",
    ),
    "a command of its own": of_graph(
        f"profile -o r.html --level L0 {RUN}",
        PROFILE,
        "give the command after --: (graphsys profile .*)$",
        "{0}",
    ),
    "two reports": of_graph(
        "profile --compare r.json",
        PROFILE,
        "(--compare) takes two reports' .json, got 1",
        "profile {0} r.json r.json --json",
        before=(PAGE,),
    ),
    "two for stdout": of_graph(
        "run wcc g --out - --json",
        RESULTS,
        "(--json) and (--out) - both write to stdout; leave one of them out",
        "run wcc g {1} -",
        "run wcc g {1} w.csv {0}",
        expected={"algorithm": "wcc"},
    ),
    "a format of a file": of_graph(
        "run wcc g --out w.csv --format csv",
        RESULTS,
        "(--format csv) is for (--out -); the name of a file says",
        "run wcc g --out w.csv --json",
        "run wcc g {1} {0}",
    ),
    "a value of every node": of_graph(
        "run pagerank g --json",
        "graphsys/cli/run.py",
        "name a file with (--out) FILE; --json is about the run alone",
        "run pagerank g {0} w.csv --json",
        expected={"algorithm": "pagerank"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_report_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
