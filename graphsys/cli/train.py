"""``graphsys train``: models are fitted to a graph."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsys.cli.console import print_facts, print_json, print_note, telling_what_is_kept
from graphsys.cli.help_pages.declarations import described, option
from graphsys.cli.help_pages.verbs import Verb, VerbGroup
from graphsys.cli.options import (
    CONTROL,
    OUTPUT,
    ClusterOption,
    DeviceOption,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    examples,
)
from graphsys.cli.training_facts import metric_facts, plan_facts
from graphsys.core.remote import locations

MODEL = "Model"

RunOption = Annotated[
    Path,
    option(
        "-o, --out RUN",
        "The run's folder, or s3://...; must not exist, unless --resume.",
        OUTPUT,
    ),
]
SetOption = Annotated[
    list[str] | None,
    option(
        "--set KEY=VALUE",
        "Change one setting, after preset and config; may be repeated. A list is 5,10 or "
        "[5, 10], a table key by key: --set relations.likes.weight=2.",
        MODEL,
    ),
]
ResumeOption = Annotated[
    bool,
    option(
        "--resume",
        "Go on from the run's last checkpoint, with its settings; --set epochs=N makes it "
        "longer.",
        CONTROL,
    ),
]


def _config_of(model: str) -> Any:
    """Return the module of the settings of ``train MODEL``."""
    if model == "gnn":
        from graphsys.gnn import config

        return config
    from graphsys.embedding import config  # type: ignore[no-redef]

    return config


def _complete_preset(model: str) -> Callable[[str], list[str]]:
    """Return what completes the name of a preset of ``train MODEL``."""

    def complete(incomplete: str) -> list[str]:
        names = _config_of(model).preset_names()
        return [name for name in names if name.startswith(incomplete)]

    return complete


def _settings_option(model: str, kind: str) -> Any:
    """Return an option that prints all settings of ``train MODEL``, and ends."""

    def show(is_asked: bool) -> None:
        if is_asked:
            from graphsys.training.settings import as_toml

            config = getattr(_config_of(model), kind)
            sys.stdout.write(as_toml(config, f"graphsys train {model}"))
            raise typer.Exit

    return option(
        "--settings",
        "Print all settings with their defaults, as a TOML file, and end.",
        MODEL,
        is_eager=True,
        callback=show,
    )


EmbeddingSettings = Annotated[bool, _settings_option("embedding", "EmbeddingConfig")]
GnnSettings = Annotated[bool, _settings_option("gnn", "GnnConfig")]

app = typer.Typer(help="Train a model on a graph.", cls=VerbGroup, rich_markup_mode=None)


@app.command(
    cls=Verb,
    epilog=examples(
        "graphsys train embedding demo -o run --preset demo-complex",
        "graphsys train embedding fb -o run --config my.toml --set epochs=8 --set dim=200",
        "graphsys train embedding fb -o run --resume --set epochs=40",
        "graphsys train embedding fb -o run --cluster local:2",
    ),
)
@described
def embedding(
    graph: GraphArgument,
    out: RunOption,
    preset: Annotated[
        str | None,
        option(
            "--preset NAME",
            "A config that comes with graphsys, for example demo-complex.",
            MODEL,
            autocompletion=_complete_preset("embedding"),
        ),
    ] = None,
    config: Path | None = None,
    set_: SetOption = None,
    settings_: EmbeddingSettings = False,
    resume: ResumeOption = False,
    dry_run: bool = False,
    device: DeviceOption = "cpu",
    memory: str | None = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Train embeddings of a graph's nodes, bucket by bucket within a memory budget.

    Model:
        --config FILE: A TOML config, or one of PyTorch-BigGraph (.py, .json; not executed).

    Run:
        --dry-run: Say what memory, disk and time it would take; write nothing.
        --memory SIZE: Most memory to use, for example 4GB: as many partitions as fit are
            kept in it; without it the fewest. The peak is at most that and 300 MB.
    """
    from graphsys import embedding as library

    if preset is None and config is not None and library.is_pbg_config(config):
        settings = library.from_pbg_config(config, overrides=set_ or [], tell=print_note)
    else:
        settings = _settings_of(library, out, preset, config, set_, resume=resume)
    _train(
        library,
        graph,
        settings,
        out,
        json=json,
        resume=resume,
        overwrite=overwrite,
        dry_run=dry_run,
        memory=memory,
        device=device,
        cluster=cluster,
    )


@app.command(
    cls=Verb,
    epilog=examples(
        "graphsys train gnn cora -o run --preset cora-gcn",
        "graphsys train gnn cora -o run --config my.toml --set fanouts=[15,10]",
        "graphsys train gnn cora -o run --resume --set epochs=400",
        "graphsys train gnn cora -o run --cluster local:2",
    ),
)
@described
def gnn(
    graph: GraphArgument,
    out: RunOption,
    preset: Annotated[
        str | None,
        option(
            "--preset NAME",
            "A config that comes with graphsys, for example cora-gcn.",
            MODEL,
            autocompletion=_complete_preset("gnn"),
        ),
    ] = None,
    config: Path | None = None,
    set_: SetOption = None,
    settings_: GnnSettings = False,
    resume: ResumeOption = False,
    dry_run: bool = False,
    device: DeviceOption = "cpu",
    memory: str | None = None,
    cluster: ClusterOption = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Train a graph neural network on samples of a graph, or on all of it at once.

    Model:
        --config FILE: A TOML config. In fanouts the first number is of the hop next to the
            seeds, as in PyG; DGL has it last.

    Run:
        --dry-run: Say what memory and time it would take; write nothing.
        --memory SIZE: Most memory to use, for example 4GB; a training that is planned to
            need more recomputes layers, and is refused where that is not enough.
    """
    from graphsys import gnn as library

    settings = _settings_of(library, out, preset, config, set_, resume=resume)
    from graphsys.gnn.process_group import is_first_process  # torch, for settings that fit

    _train(
        library,
        graph,
        settings,
        out,
        is_telling=is_first_process(),
        json=json,
        resume=resume,
        overwrite=overwrite,
        dry_run=dry_run,
        memory=memory,
        device=device,
        cluster=cluster,
    )


def _settings_of(
    library: Any,
    out: Path,
    preset: str | None,
    config: Path | None,
    overrides: list[str] | None,
    *,
    resume: bool,
) -> Any:
    """Return the settings of a training: those of the run, if it only goes on."""
    if resume and preset is None and config is None:
        from graphsys.storage.runs.remote_checkpoint import settings_folder

        with settings_folder(out) as folder:
            return library.run_config(folder, overrides or [])
    return library.load_config(preset=preset, file=config, overrides=overrides or [])


def _train(
    library: Any,
    graph: Path,
    settings: Any,
    out: Path,
    *,
    is_telling: bool = True,
    cluster: str | None = None,
    json: bool,
    **how: Any,
) -> None:
    """Train with the trainer of a room, and print its report.

    Args:
        library: The room, which has ``train``.
        graph: The graph's folder.
        settings: What it trains with.
        out: The run's folder.
        is_telling: Whether this process is the one that tells.
        cluster: Where to train; None for this process.
        json: Whether to print the report as JSON.
        how: Further arguments of ``train``.
    """
    import graphsys
    from graphsys.cli.progress import open_progress
    from graphsys.core.progress import SILENT
    from graphsys.storage.runs.remote_checkpoint import run_target

    progress = open_progress() if is_telling else SILENT
    model = library.__name__.rpartition(".")[2]
    with (
        telling_what_is_kept(
            lambda: interrupted_training(model, graph, out, is_resuming=how["resume"])
        ),
        run_target(out, cluster, how) as folder,
        graphsys.open(graph) as opened,
    ):
        train = _trainer(library, cluster)
        report = train(opened, settings, folder, progress=progress, **how)
        progress.close()
    if is_telling:
        _show(report, json=json, dry_run=how["dry_run"])


def _trainer(library: Any, cluster: str | None) -> Any:
    """Return what trains: the room's function, or the one that does it on a cluster."""
    if cluster is None:
        return library.train
    from functools import partial

    from graphsys import distributed

    name = library.__name__.rpartition(".")[2]
    where = distributed.Cluster.parse(cluster)
    return partial(getattr(distributed, f"train_{name}"), cluster=where)


def interrupted_training(model: str, graph: Path, out: Path, *, is_resuming: bool) -> str:
    """Return what an interrupted training left, and how to go on."""
    from graphsys.core.errors import GraphsysError
    from graphsys.storage.runs.remote_checkpoint import settings_folder

    if model == "gnn":
        from graphsys.gnn.run import read_state
    else:
        from graphsys.embedding.run import read_state  # type: ignore[assignment]

    try:
        with settings_folder(out) as folder:
            state = read_state(folder)
    except (GraphsysError, OSError):
        why = "the training had no checkpoint yet"
        if locations.is_remote(out):
            why = f"{out} gets whole runs, and checkpoints by --cluster HOST:PORT alone"
        return f"{why}, nothing is kept; begin again"
    if state.is_complete and not is_resuming:  # a callback may have ended what goes on
        return f"the run {out} that was there stays as it was; begin again"
    epochs = f"{state.epoch} whole epoch{'' if state.epoch == 1 else 's'}"
    more = " and a part" if getattr(state, "unit", getattr(state, "batch", 0)) else ""
    return (
        f"{out} keeps {epochs}{more}; go on with "
        f"graphsys train {model} {graph} -o {out} --resume"
    )


def _show(report: Any, *, json: bool, dry_run: bool) -> None:
    """Print a report of either training."""
    place = locations.shown(str(report.run))
    facts = {
        "run": place,
        "epochs": report.epochs,
        "seconds": report.seconds,
        "edges_per_second": report.edges_per_second,
        "metrics": report.metrics,
    }
    if hasattr(report, "workers"):
        facts["workers"] = report.workers
    if json:
        print_json(facts)
    elif dry_run:
        print_facts({"run": place, **plan_facts(report.metrics)})
    else:
        shown = {k.replace("_", " "): v for k, v in facts.items() if k != "metrics"}
        print_facts(shown | metric_facts(report.metrics))
