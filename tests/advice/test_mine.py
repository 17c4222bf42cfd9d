"""What ``mine`` advises leads to counts."""

import pytest

from tests.advice.case import Case
from tests.advice.conftest import Follow

VERB, FACTS = "graphsys/cli/mining/by_options.py", "graphsys/cli/mining/facts.py"
COMMANDS = "graphsys/cli/mining/mine.py"
TABLE = "--motifs 4 --per-node"


def of_mine(
    options: str, advice: str, follow: str, told_in: str = VERB, **given: object
) -> Case:
    """Return a case of options of ``mine`` that are refused, and those that are advised."""
    settings: dict[str, object] = {"uses": ("g",), "then": (f"mine g {follow} --json",)}
    settings["command"] = f"mine g {options}"
    return Case(
        told_in=told_in,
        advice=advice,
        **(settings | given),  # type: ignore[arg-type]
    )


TRIANGLES = {"counts": {"triangle": 0}}
ONE = "ask for one thing:"
ROWS = {"rows": 3}
CASES = {
    "tables of a pattern": of_mine(
        "--pattern triangle --out t.csv",
        r" gives a number for the graph; tables \((--out), (--per-node), "
        r"(--per-edge), (--features)\) are for (--motifs 4)",
        "",
        told_in=FACTS,
        then=(
            "mine g {4} {1} {0} nodes.csv --json",
            "mine g {4} {2} {0} edges.csv --json",
            "mine g {4} {1} {3} {0} stored --json",
        ),
    ),
    "how often, if at all": of_mine(
        "--frequent",
        "(--frequent): how often. give (--support) 300",
        "{0} {1} 1",
        told_in=FACTS,
    ),
    "a device of one count": of_mine(
        "--pattern triangle --explain --device cuda",
        "--device cuda counts .* of the whole graph; .*, (--explain), (--per-node) and "
        "(--per-edge) need (--device cpu)",
        "",
        told_in=FACTS,
        then=(
            "mine count g triangle {0} {3}",
            "mine motifs g 4 {1} -o nodes.csv {3}",
            "mine motifs g 4 {2} -o edges.csv {3} --json",
        ),
    ),
    "a cluster of one count": of_mine(
        "--pattern triangle --explain --cluster local:2",
        "--cluster counts .* of the whole graph; .*, (--explain), (--per-node) and "
        "(--per-edge) run without it",
        "",
        told_in=FACTS,
        then=(
            "mine count g triangle {0}",
            "mine motifs g 4 {1} -o nodes.csv",
            "mine motifs g 4 {2} -o edges.csv --json",
        ),
    ),
    "a list that is named": of_mine(
        "--pattern 3-path --list",
        "(--list) writes the matches of one --pattern to a file; name it: (-o) x.parquet",
        "--pattern 3-path {0} {1} x.parquet",
        told_in="graphsys/cli/mining/work.py",
        expected={"matches": 1},
    ),
    "memory of what is kept": of_mine(
        "--pattern triangle --memory 1B",
        r"give (--memory \w+) \(memory='\w+'\) or more",
        "",
        told_in="graphsys/mining/simple_graph.py",
        command="$ GRAPHSYS mine g --pattern triangle --memory 1KB",
        then=("$ GRAPHSYS mine g --pattern triangle {0} --json",),
        expected=TRIANGLES,
    ),
    "a pattern": of_mine("", f"{ONE} (--pattern triangle), .*", "{0}", expected=TRIANGLES),
    "motifs": of_mine(
        "", f"{ONE} .*(--motifs 4), for", "{0}", expected={"induced": "vertex"}
    ),
    "frequent": of_mine("", f"{ONE} .*or (--frequent)", "{0} --support 1"),
    "one way": of_mine(
        "--motifs 3 --explain", "--explain is for (--pattern);", "--explain {0} triangle"
    ),
    "disconnected motifs": of_mine(
        "--motifs 3 --disconnected",
        "--disconnected is for counts of .*; leave it out",
        "--motifs 3",
    ),
    "disconnected pattern": of_mine(
        "--motifs 3 --disconnected",
        "for counts of (--pattern);",
        '--disconnected {0} "a-b c-d"',
    ),
    "the pattern is disconnected": of_mine(
        '--pattern "a-b c-d"',
        "ask for it: (--disconnected)",
        '--pattern "a-b c-d" {0}',
        told_in="graphsys/mining/pattern.py",
    ),
    "support": of_mine(
        "--motifs 3 --support 1", "--support and .*; leave them out", "--motifs 3"
    ),
    "support of frequent patterns": of_mine(
        "--motifs 3 --support 1", "are for (--frequent);", "{0} --support 1"
    ),
    "labels of edges": of_mine(
        "--motifs 3 --edge-labels",
        "--edge-labels are .*; leave them out",
        "--motifs 3",
    ),
    "labels of motifs": of_mine(
        "--motifs 3 --labels label", "--labels is for .*; motifs have none", "--motifs 3"
    ),
    "labels of a pattern": Case(
        uses=("labeled",),
        command="mine labeled --motifs 3 --labels label",
        told_in=VERB,
        advice="--labels is for (--pattern) and",
        then=("mine labeled {0} triangle --labels label --json",),
    ),
    "memory of frequent patterns": of_mine(
        "--frequent --support 1 --memory 1GB",
        "--memory is for .*: leave it out",
        "--frequent --support 1",
    ),
    "memory of a pattern": of_mine(
        "--frequent --support 1 --memory 64GB",
        "is for (--pattern) and",
        "{0} triangle --memory 64GB",
        expected=TRIANGLES,
    ),
    "memory of motifs": of_mine(
        "--frequent --support 1 --memory 64GB", "and (--motifs);", "{0} 3 --memory 64GB"
    ),
    "a limit": of_mine(
        "--pattern 3-path --limit 1", "--limit for .*; leave it out", "--pattern 3-path"
    ),
    "a limit of a list": of_mine(
        "--pattern 3-path --limit 1",
        "--limit for (--list);",
        "--pattern 3-path --limit 1 {0} -o x.parquet",
        expected={"matches": 1},
    ),
    "a list of a pattern": of_mine(
        "--motifs 3 --list",
        "--list is for (--pattern),",
        "--list {0} 3-path -o x.parquet",
        expected={"matches": 1},
    ),
    "a list": of_mine(
        "--pattern 3-path --list",
        "to a file; name it: (-o) x.parquet",
        "--pattern 3-path --list {0} x.parquet",
        told_in="graphsys/cli/mining/work.py",
        expected={"matches": 1},
    ),
    "one list": of_mine(
        "--pattern 3-path --pattern triangle --list -o x.parquet",
        "matches of one (--pattern) to",
        "--list {0} 3-path -o x.parquet",
        told_in="graphsys/cli/mining/work.py",
        expected={"matches": 1},
    ),
    "features of nodes": of_mine(
        "--motifs 4 --features",
        " is for counts of .*; add (--per-node)",
        "--motifs 4 --features {0} -o x.csv",
        told_in=COMMANDS,
        expected=ROWS,
    ),
    "out": of_mine(
        "--motifs 4 -o x.csv",
        "add (--per-node)",
        "--motifs 4 -o x.csv {0}",
        told_in=COMMANDS,
        expected=ROWS,
    ),
    "a table of a pattern": of_mine(
        "--pattern triangle --per-node",
        "are for (--motifs 4)",
        "{0} --per-node -o x.csv",
        told_in=FACTS,
        expected=ROWS,
    ),
    "how often": of_mine(
        "--frequent", r"give (--support) \d+,", "--frequent {0} 2", told_in=FACTS
    ),
    "out of frequent patterns": of_mine(
        "--frequent --support 1 -o x.csv",
        "; (--json) prints",
        "--frequent --support 1 {0}",
        told_in=FACTS,
    ),
    "nodes and edges": of_mine(
        f"{TABLE} --per-edge -o x.parquet",
        "(--per-node) and --per-edge make two tables",
        "--motifs 4 {0} -o x.csv",
        told_in=FACTS,
        expected=ROWS,
    ),
    "edges and nodes": of_mine(
        f"{TABLE} --per-edge -o x.parquet",
        "--per-node and (--per-edge) make two tables",
        "--motifs 4 {0} -o x.csv",
        told_in=FACTS,
        expected={"rows": 2},
    ),
    "motifs of nodes": of_mine(
        "--motifs 3 --per-node -o x.csv",
        "counted in those of 4; ask for (4)",
        "",
        told_in=FACTS,
        then=("mine motifs g {0} --per-node -o x.csv --json",),
        expected=ROWS,
    ),
    "induced": of_mine(
        f"{TABLE} --induced edge -o x.parquet",
        "--induced edge: .*; leave it out",
        f"{TABLE} -o x.csv",
        told_in=FACTS,
        expected=ROWS,
    ),
    "a table": of_mine(
        f"{TABLE} --json",
        "name a file with (--out) FILE",
        f"{TABLE} {{0}} x.csv",
        told_in=FACTS,
        expected=ROWS,
    ),
    "device": of_mine(
        f"{TABLE} -o x.csv --device cuda",
        "need (--device cpu)",
        f"{TABLE} -o x.csv {{0}}",
        told_in=FACTS,
        expected=ROWS,
    ),
    "cluster": of_mine(
        f"{TABLE} -o x.csv --cluster local:1",
        "--cluster counts .* run without it",
        f"{TABLE} -o x.csv",
        told_in=FACTS,
        expected=ROWS,
    ),
    "motifs of six nodes": of_mine(
        "--motifs 6",
        "one by one: (6-cycle), for example",
        "--pattern {0}",
        told_in="graphsys/mining/census/shapes.py",
    ),
    "a store": of_mine(
        f"{TABLE} --features -o stored",
        "pass (--overwrite) to",
        f"{TABLE} --features -o stored {{0}}",
        before=(f"mine g {TABLE} --features -o stored",),
        told_in="graphsys/mining/feature_store.py",
        expected=ROWS,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_mining_advises_leads_somewhere_right(name: str, follow: Follow) -> None:
    follow(CASES[name])
