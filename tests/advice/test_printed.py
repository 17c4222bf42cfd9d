"""What help, settings, plans and reports on stdout advise leads somewhere right."""

import re
from pathlib import Path

import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError
from tests.advice.case import advised
from tests.advice.conftest import Command
from tests.conftest import ROOT

HELP = "graphsys/cli/help_pages/algorithms.py"
SETTINGS = "graphsys/training/settings.py"
HISTORY = "graphsys/training/history.py"
FOLLOWED = (
    (HELP, "--help"),
    (HELP, "--param"),
    (HELP, "graphsys run"),
    (SETTINGS, "--config"),
    (SETTINGS, "--set"),
    ("graphsys/storage/info.py", "graphsys compact"),
    ("graphsys/planning/verbs.py", "--set"),
    ("graphsys/cli/evaluate.py", "--json"),
    (HISTORY, "graphsys train"),
    (HISTORY, "--resume"),
    (HISTORY, "--set"),
    (HISTORY, "--config"),
)


@pytest.fixture
def graph(folder: Path, command: Command) -> Path:
    """Make the graph ``g`` of three nodes in the current folder."""
    (folder / "a.txt").write_text("1 2\n2 3\n3 1\n")
    assert command("ingest a.txt -o g").code == 0
    return folder / "g"


def test_the_help_of_an_algorithm_names_commands_that_work(
    graph: Path, command: Command
) -> None:
    page = command("run pagerank --help").out
    usage = re.search(r"(graphsys run) pagerank GRAPH \[OPTIONS\]", page)
    assert usage is not None, page
    assert re.search(r"each as --param NAME=VALUE.*damping", page, re.DOTALL), page
    assert command(f"{usage[1]} pagerank g -o r.csv --param damping=0.5").code == 0
    options = re.search(r"Options of all algorithms: (graphsys run --help)", page)
    assert options is not None, page
    assert "--param" in command(options[1]).out


def test_printed_settings_are_a_file_that_config_takes(
    folder: Path, graph: Path, command: Command
) -> None:
    page = command("train embedding --settings").out
    assert "give it to --config FILE" in page
    assert "on the command line: --set KEY=VALUE" in page
    (folder / "own.toml").write_text(re.sub(r"(?m)^#? ?epochs = .*$", "epochs = 1", page))
    done = command("train embedding g -o run --config own.toml --set dim=4 --json")
    assert done.code == 0, done.said
    state = (folder / "run" / "config.toml").read_text()
    assert re.search(r"(?m)^epochs = 1$", state), state
    assert re.search(r"(?m)^dim = 4$", state), state


def test_a_graph_of_many_deltas_says_what_folds_them_in(
    graph: Path, command: Command
) -> None:
    advice = None
    for _ in range(110):
        assert command("append g a.txt").code == 0
        advice = re.search(r"(graphsys compact) folds them in", command("info g").out)
        if advice:
            break
    assert advice is not None
    assert command(f"{advice[1]} g").code == 0
    told = command("info g")
    assert "folds them in" not in told.out + told.said


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ("--set epochs=1", r"--resume --set epochs=2$"),
        (
            (
                "--set epochs=9 --set eval_every=1 --set eval_split=train --set patience=1 "
                "--set min_improvement=2"
            ),
            r"-o (NEW) --config run/config\.toml --set init_from=run$",
        ),
    ],
)
def test_a_run_says_how_more_of_it_is_trained(
    graph: Path, command: Command, settings: str, advice: str
) -> None:
    none = command("info run")
    assert none.code == 2
    refused = command("plot run")
    assert re.search(r"expected what `(graphsys train)` writes", refused.said)
    assert command(f"train embedding g -o run --set dim=4 {settings}").code == 0
    told = command("info run").out
    line = re.search(rf"(?m)^to train more +(graphsys train embedding .*{advice})", told)
    assert line is not None, told
    assert command(line[1]).code == 0
    assert "not complete" not in command("info run").out


def test_a_plan_says_how_learned_rows_stay_on_disk(graph: Path, command: Command) -> None:
    plan = command("plan --nodes 1000000 --edges 10000000")
    advice = re.search(r"(--set learned_rows=disk) keeps\s+them\s+there", plan.out)
    assert advice is not None, plan.out
    line = f"train gnn g -o run --set epochs=1 --set dim=4 {advice[1]}"
    assert command(f"{line} --set task=link_prediction").code == 0


def test_relations_that_are_not_shown_are_in_the_json(
    folder: Path, command: Command
) -> None:
    lines = [f"e{n} r{n % 40} e{n + 1}\n" for n in range(400)]
    (folder / "kg.txt").write_text("".join(lines))
    settings = "--set epochs=1 --set dim=4 --set operator=diagonal"
    for line in (
        "ingest kg.txt -o kg --format triples --split 0.5,0,0.5",
        f"train embedding kg -o run {settings}",
    ):
        done = command(line)
        assert done.code == 0, done.said
    shown = command("evaluate run")
    more = re.search(
        r"(\d+) relations with fewer queries are in (--json) alone", shown.said
    )
    assert more is not None, shown.said
    names = set(re.findall(r'"(r\d+)"', command(f"evaluate run {more[2]}").out))
    assert len(names) == len(set(re.findall(r"\br\d+\b", shown.out))) + int(more[1])


def test_a_plan_names_patterns_that_are_counted(graph: Path, command: Command) -> None:
    plan = command("plan --nodes 100 --edges 200")
    row = advised(
        plan.out, "graphsys/planning/verbs.py", r"(mine) (--pattern triangle) \d\S* "
    )
    again = advised(plan.out, "graphsys/planning/probes.py", r"(mine --pattern triangle) ")
    assert again[1] == f"{row[1]} {row[2]}"
    assert command(f"{row[1]} g {row[2]} --json").code == 0


def test_the_page_of_settings_names_what_prints_them(command: Command) -> None:
    page = (ROOT / "graphsys" / "gnn" / "SETTINGS.md").read_text()
    line = advised(
        page,
        "graphsys/training/settings.py",
        r"(--settings)` prints them as a TOML",
    )
    assert "give it to --config FILE" in command(f"train gnn {line[1]}").out


def test_a_network_that_is_not_there_is_trained(graph: Path, command: Command) -> None:
    with pytest.raises(ConfigError) as missing:
        gs.gnn.open_run("run")
    line = advised(
        str(missing.value),
        "graphsys/gnn/run.py",
        r"with `(graphsys train gnn) GRAPH -o RUN`",
    )
    words = "--set task=link_prediction --set epochs=1 --set dim=4"
    assert command(f"{line[1]} g -o run {words}").code == 0
    assert gs.gnn.open_run("run").state.epoch == 1
