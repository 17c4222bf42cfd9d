"""What an error or a warning advises is done here, and leads somewhere right.

``tests/meta/test_remedies.py`` makes the list of all that is advised.
"""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess, run

import pytest

Run = Callable[..., CompletedProcess[str]]

PROGRAM = """\
import graphsys as gs
class P(gs.VertexProgram):
    x = gs.state("float64", default=1.0)
    combine = gs.sum
    def message(self, src, edge): return src.x
    def update(self, node, message): return 0.5 * message
"""
FILES = {
    "twice.txt": b"1 2\n1 2\n1 2\n2 3\n",
    "latin.txt": "caf\u00e9 a\nb caf\u00e9\n".encode("latin-1"),
    "head.txt": b"some text here now\n1 2\n2 3\n",
    "triples.txt": b"a likes b\nb likes c\n",
    "four.csv": b"1,2,5,7\n2,3,5,8\n",
    "gone.txt": b"7 8\n",
    "p.py": PROGRAM.encode(),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A message, and how what it advises is done.

    Attributes:
        command: What is refused, or warned of.
        advice: What the message says; groups become ``{0}``, ``{1}`` of ``then``.
        then: The command that follows the advice.
        told_in: Our file that has the message.
        remedies: What it advises, as the list of all names it.
        before: Commands before.
        expected: Of the JSON that ``then`` prints, where it is to be looked at.
        code: Exit code of what is refused; 0 where it is warned of.
    """

    command: str
    advice: str
    then: str
    told_in: str
    remedies: tuple[str, ...]
    before: tuple[str, ...] = ()
    expected: dict[str, object] = field(default_factory=dict)
    code: int = 2


_GRAPH = "ingest twice.txt -o g"
CASES = {
    "coalesce": Case(
        command="ingest twice.txt -o u --undirected", advice=r"pass (--coalesce) to keep",
        then="ingest twice.txt -o u2 --undirected {0} --json", code=0,
        told_in="graphsys/storage/ingest/quality.py", remedies=("--coalesce",),
        expected={"num_edges": 2},
    ),
    "skip": Case(
        command="ingest head.txt -o h", advice=r"a count, pass (--skip 1)",
        then="ingest head.txt -o h {0} --json", expected={"num_nodes": 3, "num_edges": 2},
        told_in="datasets/readers/edgelist.py", remedies=("--skip",),
    ),
    "triples": Case(
        command="ingest triples.txt -o t", advice=r"pass (--format triples)",
        then="ingest triples.txt -o t {0} --json", expected={"num_nodes": 3},
        told_in="datasets/readers/edgelist.py", remedies=("--format",),
    ),
    "columns of a table": Case(
        command="ingest four.csv -o f", advice=r"name them with (--columns \S+)",
        then="ingest four.csv -o f {0} --json", expected={"num_nodes": 3, "num_edges": 2},
        told_in="datasets/readers/delimited.py", remedies=("--columns",),
    ),
    "overwrite a graph": Case(
        before=(_GRAPH,), command=_GRAPH, advice=r"pass (--overwrite)",
        then=_GRAPH + " {0} --json", expected={"num_edges": 4},
        told_in="graphsys/storage/transaction.py", remedies=("--overwrite",),
    ),
    "overwrite a result": Case(
        before=(_GRAPH, "run wcc g -o r.csv"), command="run wcc g -o r.csv",
        advice=r"replace it with (--overwrite)",
        then="run wcc g -o r.csv --json {0}", expected={"result": 1},
        told_in="graphsys/storage/output_file.py", remedies=("--overwrite",),
    ),
    "memory": Case(
        before=(_GRAPH,), command="run pagerank g --memory 10MB",
        advice=r"give (--memory \w+)", then="run pagerank g -o r.csv --json {0}",
        told_in="graphsys/core/budget.py", remedies=("--memory",),
        expected={"converged": True},
    ),
    "disconnected": Case(
        before=(_GRAPH,), command='mine g --pattern "a-b c-d"',
        advice=r"ask for it: (--disconnected)",
        then='mine g --pattern "a-b c-d" --json {0}',
        told_in="graphsys/mining/pattern.py", remedies=("--disconnected",),
    ),
    "out": Case(
        before=(_GRAPH,), command="run pagerank g --json", advice="(--out) FILE",
        then="run pagerank g --json {0} r.csv", expected={"output": "r.csv"},
        told_in="graphsys/cli/run.py", remedies=("--out",),
    ),
    "endless program": Case(
        before=(_GRAPH,), command="run p.py:P g", advice="run it with (--max-supersteps)",
        then="run p.py:P g -o p.csv --json {0} 5", expected={"converged": True},
        told_in="graphsys/engine/codegen/spec.py", remedies=("--max-supersteps",),
    ),
    "more supersteps": Case(
        before=(_GRAPH,), command="run pagerank g --max-supersteps 5",
        advice=r"\((--max-supersteps \d+)\)",
        then="run pagerank g -o p.csv --json {0}", code=0, expected={"converged": True},
        told_in="graphsys/engine/result.py", remedies=("--max-supersteps",),
    ),
    "katz": Case(
        before=(_GRAPH, "ingest twice.txt -o u --undirected --coalesce"), code=1,
        command="run katz u --param alpha=0.7069", advice=r"\((--max-supersteps \d+)\)",
        then="run katz u --param alpha=0.7069 -o p.csv --json {0}",
        expected={"converged": True},
        told_in="graphsys/engine/programs/katz.py", remedies=("--max-supersteps",),
    ),
    "groups": Case(
        before=(_GRAPH,), command="train embedding g -o e --set partition_groups=3",
        advice=r"`graphsys (partition .*) -o GRAPH2`", then="{0} -o g9 --json",
        told_in="graphsys/embedding/training/api.py",
        remedies=("graphsys partition", "--partitioner", "--partitions"),
    ),
    "deletes": Case(
        before=(_GRAPH,), command="append g --delete gone.txt",
        advice=r"pass (--missing-deletes count)",
        then="append g --delete gone.txt --json {0}", expected={"num_edges": 4},
        told_in="graphsys/storage/dynamic/deletions.py", remedies=("--missing-deletes",),
    ),
    "partition": Case(
        before=(_GRAPH,), command="partition g --partitioner hash",
        advice="give --out GRAPH2, (--compare)",
        then="partition g --partitions 2 --json {0}",
        told_in="graphsys/cli/partition.py", remedies=("--compare",),
    ),
    "no graph": Case(
        command="info g", advice=r"`graphsys (ingest)` or",
        then="{0} twice.txt -o g --json",
        told_in="graphsys/storage/manifest.py", remedies=("graphsys ingest",),
        expected={"num_edges": 4},
    ),
    "an algorithm is no command": Case(
        before=(_GRAPH,), command="wcc g", advice="by graphsys (run) NAME",
        then="{0} wcc g --json", told_in="graphsys/cli/main.py",
        remedies=("graphsys run",), expected={"result": 1},
    ),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_what_a_message_advises_leads_somewhere_right(
    name: str, folder: Path, run_cli: Run
) -> None:
    case = CASES[name]
    for command in case.before:
        assert run_cli(*shlex.split(command), cwd=folder).returncode == 0
    refused = run_cli(*shlex.split(case.command), cwd=folder)
    assert refused.returncode == case.code, refused.stderr
    advice = re.search(case.advice, refused.stderr)
    assert advice is not None, refused.stderr
    done = run_cli(*shlex.split(case.then.format(*advice.groups())), cwd=folder)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {key: told[key] for key in case.expected} == case.expected


def test_a_file_that_is_not_utf_8_is_converted_as_advised(
    folder: Path, run_cli: Run
) -> None:
    refused = run_cli("ingest", "latin.txt", "-o", "g", cwd=folder)
    assert refused.returncode == 2
    advice = re.search(r"with (iconv -f \S+ -t \S+)", refused.stderr)
    assert advice is not None, refused.stderr
    command = [*shlex.split(advice[1]), "latin.txt"]
    text = run(command, cwd=folder, capture_output=True, check=True).stdout
    (folder / "utf8.txt").write_bytes(text)
    done = run_cli("ingest", "utf8.txt", "-o", "g", "--json", cwd=folder)
    assert json.loads(done.stdout)["num_nodes"] == 3


FOLLOWED = {(case.told_in, it) for case in CASES.values() for it in case.remedies} | {
    ("datasets/text/first_lines.py", "iconv")
}
"""Our file and what is advised there, of all that is done above."""
