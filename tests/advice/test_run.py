"""What ``run`` and its algorithms advise leads to a result."""

import random

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

VERB = "graphsys/cli/run.py"
PROGRAM = """\
import graphsys as gs
class P(gs.VertexProgram):
    x = gs.state("float64", default=1.0)
    combine = gs.sum
    def message(self, src, edge): return src.x
    def update(self, node, message): return 0.5 * message
"""


def of_run(options: str, advice: str, then: str, **given: object) -> Case:
    """Return a case of options of ``run`` that are refused, and those that are advised."""
    settings: dict[str, object] = {
        "uses": ("g",),
        "told_in": VERB,
        "files": {"p.py": PROGRAM},
    }
    return Case(
        command=f"run {options}",
        advice=advice,
        then=(f"run {then} --json",),
        **(settings | given),  # type: ignore[arg-type]
    )


def formula(num_variables: int, num_clauses: int) -> str:
    """Return the edges of a formula that some assignment satisfies, as CSV."""
    draws = random.Random(1)
    truth = [draws.random() < 0.5 for _ in range(num_variables)]
    lines = ["src,dst,weight"]
    for clause in range(num_clauses):
        chosen = draws.sample(range(num_variables), 3)
        signs = [draws.random() < 0.5 for _ in chosen]
        signs[0] = truth[chosen[0]]
        lines += [
            f"c{clause:03},v{variable:02},{1 if sign else -1}"
            for variable, sign in zip(chosen, signs, strict=True)
        ]
    return "\n".join(lines) + "\n"


def drawn(num_nodes: int, num_edges: int) -> str:
    """Return edges between nodes that are drawn."""
    draws = random.Random(2)
    ends = [[draws.randrange(num_nodes) for _ in range(2)] for _ in range(num_edges)]
    return "".join(f"{a} {b}\n" for a, b in ends)


HARD = "--param flips=20 --param fraction=1.0 --param seed=1"
FLIPPING = "--param labels=x=5,y=6"
DONE = {"converged": True}
CASES = {
    "a list": of_run(
        "wcc",
        r"; (graphsys run --list) shows",
        "--list",
    ),
    "names on a cluster": of_run(
        "wcc g -o r.csv --name-column name --cluster local:2",
        "(--name-column) does not go with",
        "wcc g -o r.csv --json",
    ),
    "out": of_run(
        "pagerank g --json",
        "(--out) FILE",
        "pagerank g {0} r.csv",
        expected={"output": "r.csv"},
    ),
    "overwrite a result": of_run(
        "wcc g -o r.csv",
        "replace it with (--overwrite)",
        "wcc g -o r.csv {0}",
        before=("run wcc g -o r.csv",),
        told_in="graphsys/storage/output_file.py",
        expected={"result": 1},
    ),
    "memory": Case(
        uses=("g",),
        command="$ GRAPHSYS run pagerank g --memory 10MB",
        advice=r"give (--memory \w+)",
        then=("$ GRAPHSYS run pagerank g -o r.csv --json {0}",),
        told_in="graphsys/core/memory.py",
        expected=DONE,
    ),
    "endless program": of_run(
        "p.py:P g",
        "run it with (--max-supersteps)",
        "p.py:P g -o p.csv {0} 5",
        told_in="graphsys/engine/codegen/spec.py",
        expected=DONE,
    ),
    "more supersteps": of_run(
        "pagerank g --max-supersteps 5",
        r"\((--max-supersteps \d+)\)",
        "pagerank g -o p.csv {0}",
        code=0,
        told_in="graphsys/engine/result.py",
        expected=DONE,
    ),
    "katz": of_run(
        "katz u --param alpha=0.7069",
        r"\((--max-supersteps \d+)\)",
        "katz u --param alpha=0.7069 -o p.csv {0}",
        uses=("u",),
        code=1,
        expected=DONE,
        told_in="graphsys/engine/programs/katz.py",
    ),
    "last, of a program": of_run(
        "p.py:P g --max-supersteps 5 --from r.parquet",
        "--from goes with listed algorithms, not",
        "p.py:P g --max-supersteps 5 -o p.csv",
        before=("run pagerank g -o r.parquet",),
    ),
    "last, without a cluster": of_run(
        "pagerank g --from r.parquet --cluster local:1",
        "does not go with .*; leave out one",
        "pagerank g -o p.csv --from r.parquet",
        before=("run pagerank g -o r.parquet",),
    ),
    "last of another file": of_run(
        "pagerank g --from r.parquet -o p.csv",
        "what (graphsys run) pagerank wrote of this",
        "pagerank g --from s.parquet -o p.csv",
        before=(
            (
                "$ {python} -c 'import pyarrow as a, pyarrow.parquet as p; "
                'p.write_table(a.table(dict(id=[1], value=[.5])), "r.parquet")\''
            ),
            "run pagerank g -o s.parquet",
        ),
        told_in="graphsys/engine/last_result.py",
    ),
    "a format": of_run(
        "wcc g -o r.csv --format csv",
        "(--format) csv is for",
        "wcc g -o r.csv",
        told_in="graphsys/cli/results.py",
    ),
    "a parameter": of_run(
        "pagerank g --param damping",
        "(--param) takes name=value",
        "pagerank g -o p.csv {0} damping=.5",
        told_in="graphsys/engine/parameters.py",
    ),
    "an unknown parameter": of_run(
        "pagerank g --param dampin=.5",
        "did you mean '?(damping)",
        "pagerank g -o p.csv --param {0}=.5",
        told_in="graphsys/engine/parameters.py",
    ),
    "scores that rounding moves": of_run(
        "eigenvector r --param tolerance=0",
        r"\((--param tolerance=1e-12)\)",
        "eigenvector r -o p.csv {0}",
        uses=(),
        files={"r.txt": drawn(300, 900)},
        before=("ingest r.txt -o r",),
        code=0,
        told_in="graphsys/engine/programs/eigenvector.py",
        expected=DONE,
    ),
    "labels that flip": of_run(
        f"label_propagation flip {FLIPPING} --max-supersteps 50",
        r"\((--param iterations=\d+)\)",
        f"label_propagation flip {FLIPPING} -o p.csv {{0}}",
        uses=("flip",),
        code=0,
        told_in="graphsys/engine/programs/label_propagation.py",
        expected=DONE,
    ),
    "clauses that are left": of_run(
        f"survey_propagation f {HARD} --param tries=1",
        r"\((--param tries=\d+)\)",
        f"survey_propagation f -o p.csv {HARD} {{0}}",
        uses=(),
        files={"f.csv": formula(30, 120)},
        before=("ingest f.csv -o f",),
        code=0,
        told_in="graphsys/engine/algorithms/satisfiability.py",
        expected=DONE,
    ),
    "no labels": of_run(
        "label_propagation g -o p.csv",
        r"\((--param labels)=ID=0,ID=1\)",
        "label_propagation g -o p.csv {0}=1=0,3=1",
        expected=DONE,
        told_in="graphsys/engine/programs/label_propagation.py",
    ),
    "an algorithm is no command": Case(
        uses=("g",),
        command="wcc g",
        advice="by (graphsys run) NAME",
        then=("graphsys run wcc g --json",),
        told_in="graphsys/cli/main.py",
        expected={"result": 1},
    ),
    "a parameter is no option": Case(
        uses=("g",),
        command="run bfs g --source 1",
        advice="is given as (--param source=)VALUE",
        then=("run bfs g {0}1 -o r.csv --json",),
        told_in="graphsys/cli/main.py",
    ),
    "a pattern comes after the graph": Case(
        uses=("g",),
        command="mine triangle g",
        advice="write (graphsys mine) count GRAPH PATTERN, or see (graphsys mine) --help",
        then=("{1} --help", "{0} count g triangle --json"),
        told_in="graphsys/cli/main.py",
        expected={"counts": {"triangle": 0}},
    ),
    "help": Case(
        uses=("g",),
        command="run wcc g --no-such",
        advice="see graphsys (run --help)",
        then=("graphsys {0}",),
        told_in="graphsys/cli/main.py",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_run_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
