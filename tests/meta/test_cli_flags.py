"""The command line's flags are a contract: a change here is a decision."""

from typing import Any

import typer

from graphsys.cli.main import app

FLAGS = {
    "graphsys": "--debug --help --install-completion --show-completion --version",
    "graphsys dataset": "--help",
    "graphsys dataset list": "--help --json",
    "graphsys dataset show": "NAME --help --json",
    "graphsys dataset build": "NAME --allow-other-counts --from --help --json --memory "
    "--order --out --overwrite --param --partitioner --partitions --seed",
    "graphsys ingest": "FILES --by --cluster --coalesce --columns --drop-self-loops "
    "--edges --features-as --format --help --ids --inverse --json --memory "
    "--missing-nodes --negatives --nodes "
    "--order --out --overwrite --partitioner --partitions --seed --separator --signed "
    "--skip --split --time-unit --undirected",
    "graphsys split": "GRAPH --by --help --inverse --json --memory --negatives --out "
    "--overwrite --ratio --seed",
    "graphsys append": "GRAPH FILES --columns --delete --delete-columns --edges --format "
    "--help --ids --json --missing-deletes --nodes --separator --signed --skip",
    "graphsys compact": "GRAPH --help --json --memory",
    "graphsys info": "GRAPH|RUN|SEARCH --help --json",
    "graphsys verify": "GRAPH|RUN --help --json",
    "graphsys partition": "GRAPH --compare --help --json --memory --order --out "
    "--overwrite --partitioner --partitions --seed",
    "graphsys run": "ALGORITHM GRAPH --check --checkpoint --checkpoint-every --cluster "
    "--device --device-memory --explain --format --from --help --implementation --json "
    "--list --max-supersteps --memory --name-column --out --overwrite --param "
    "--require-convergence --resume --safe-cells --strategy --threads",
    "graphsys mine": "--help",
    "graphsys mine count": "GRAPH PATTERN... --cluster --device --disconnected --explain "
    "--help --induced --json --labels --memory --threads",
    "graphsys mine motifs": "GRAPH SIZE --cluster --device --features --format --help "
    "--induced --json --memory --out --overwrite --per-edge --per-node --safe-cells "
    "--threads",
    "graphsys mine list": "GRAPH PATTERN --help --induced --json --labels --limit --memory "
    "--out --overwrite --threads",
    "graphsys mine frequent": "GRAPH --edge-labels --help --json --labels --max-edges "
    "--support --threads",
    "graphsys mine by-options": "GRAPH --cluster --device --disconnected --edge-labels "
    "--explain --features --format --frequent --help --induced --json --labels --limit "
    "--list --max-edges --memory --motifs --out --overwrite --pattern --per-edge "
    "--per-node --safe-cells --support --threads",
    "graphsys train": "--help",
    "graphsys train embedding": "GRAPH --cluster --config --device --dry-run --help --json "
    "--memory --out --overwrite --preset --resume --set --settings",
    "graphsys train gnn": "GRAPH --cluster --config --device --dry-run --help --json "
    "--memory --out --overwrite --preset --resume --set --settings",
    "graphsys tune": "GRAPH --config --device --dry-run --help --json --memory --minutes "
    "--out --overwrite --resume --seed --trials",
    "graphsys evaluate": "RUN --candidates --cluster --draw --help --json --memory "
    "--model --queries --seed --split",
    "graphsys nearest": "RUN NODE --cluster --help --index --json --k --memory --model "
    "--name-column --node-type --relation",
    "graphsys predict": "RUN --cluster --format --graph --help --json --known "
    "--known-splits --memory --model --name-column --nodes --out --overwrite "
    "--relation --safe-cells --top-k",
    "graphsys export": "RUN --cluster --format --help --json --memory --model "
    "--name-column --node-type --out --overwrite --relation --relation-types --safe-cells",
    "graphsys plot": "RUN --help --json --out --overwrite",
    "graphsys doctor": "--cluster --help --json --warm-up",
    "graphsys plan": "--calibrate --dim --edges --help --json --machines --memory "
    "--network --nodes --partitions --supersteps",
    "graphsys profile": "COMMAND --chrome-trace --compare --compile --gpu-model --help "
    "--json --level --ncu --out --overwrite --schedulers --trace",
}


def collect(command: Any, path: str) -> dict[str, str]:
    """Return the arguments and long options of every command, by its path."""
    context = typer.Context(command)
    arguments, options = [], []
    for param in command.get_params(context):
        if param.param_type_name == "argument":
            arguments.append(str(param.metavar))
        else:
            options.append("--" + max(param.opts, key=len).lstrip("-"))
    found = {path: " ".join([*arguments, *sorted(options)])}
    for name, inner in getattr(command, "commands", {}).items():
        found |= collect(inner, f"{path} {name}")
    return found


def test_flags_are_the_agreed_ones() -> None:
    assert collect(typer.main.get_command(app), "graphsys") == FLAGS


def test_every_flag_has_help_and_every_verb_an_example() -> None:
    def check(command: Any, path: str) -> None:
        assert command.help, path
        for param in command.get_params(typer.Context(command)):
            assert param.help, f"{path} {param.name}"
        inner = getattr(command, "commands", {})
        assert inner or "graphsys" in (command.epilog or ""), path
        for name, child in inner.items():
            check(child, f"{path} {name}")

    check(typer.main.get_command(app), "graphsys")
