"""``graphsys tune``: settings of a training are searched."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from graphsys.cli.console import (
    format_value,
    print_facts,
    print_json,
    print_table,
    telling_what_is_kept,
)
from graphsys.cli.help_pages.declarations import described, option
from graphsys.cli.options import (
    OUTPUT,
    DeviceOption,
    GraphArgument,
    JsonOption,
    OverwriteOption,
    examples,
)
from graphsys.cli.training_facts import plan_facts, with_unit

if TYPE_CHECKING:
    from graphsys.tuning import TuneReport

EPILOG = examples(
    "graphsys tune fb -o search --config search.toml --trials 30",
    "graphsys tune fb -o search --resume --minutes 60",
    "graphsys train embedding fb -o run --config search/best.toml",
)
_ROWS_SHOWN = 5


@described
def tune(
    graph: GraphArgument,
    out: Annotated[
        Path, option("-o, --out SEARCH", "The search's folder; must not exist.", OUTPUT)
    ],
    config: Path | None = None,
    trials: int | None = None,
    minutes: float | None = None,
    seed: int | None = None,
    resume: bool = False,
    dry_run: bool = False,
    device: DeviceOption = "cpu",
    memory: str | None = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Search settings of a training: many trials, the best on the valid split as TOML.

    The file says what is trained and searched: trainer = "embedding" or "gnn", preset or
    config, a table [settings], and a table [search] with lines such as
    lr = {low = 1e-3, high = 1e-1, log = true} and dim = [64, 128].

    Search:
        --config FILE: What is searched, as TOML; a resume may leave it out.
        --trials N>=1: Trials in all, over all calls; 20 by default, without end with
            --minutes.
        --minutes M: Begin no trial after so many minutes.

    Run:
        --resume: Go on with the search in the folder.
        --dry-run: Say what the first trial would take; write nothing.
        --memory SIZE: Most memory that a trial may use, for example 4GB.
        --seed N: Seed of all draws; 0 by default.
    """
    import graphsys
    from graphsys.cli.progress import open_progress

    with (
        telling_what_is_kept(lambda: _interrupted(graph, out)),
        graphsys.open(graph) as opened,
    ):
        report = graphsys.tune(
            opened,
            config,
            out,
            trials=trials,
            minutes=minutes,
            seed=seed,
            resume=resume,
            overwrite=overwrite,
            dry_run=dry_run,
            memory=memory,
            device=device,
            progress=open_progress(),
        )
    if dry_run:
        _show_plan(report, json=json)
    else:
        print_search(report, json=json)


def _interrupted(graph: Path, out: Path) -> str:
    from graphsys.storage.folder_kinds import is_search

    if not is_search(out):
        return "no trial had ended yet, nothing is kept; begin again"
    return (
        f"{out} keeps the trials that have ended; go on with graphsys tune {graph} -o "
        f"{out} --resume"
    )


def _facts(report: "TuneReport") -> dict[str, Any]:
    return {
        "output": str(report.out),
        "metric": report.metric,
        "trials": report.trials,
        "pruned": report.pruned,
        "failed": report.failed,
        "seconds": report.seconds,
        "config": None if report.best is None else str(report.config),
    }


def _show_plan(report: "TuneReport", *, json: bool) -> None:
    if json:
        print_json({"output": str(report.out), "plan": report.plan})
        return
    facts = {"search": str(report.out), **plan_facts(report.plan)}
    if "estimated_seconds_of_all_trials" in report.plan:
        all_s = report.plan["estimated_seconds_of_all_trials"]
        facts["all trials, if none ends early"] = with_unit("seconds", all_s)
    print_facts(facts)


def print_search(report: "TuneReport", *, json: bool) -> None:
    """Print what was found: the best trials, and where the settings are."""
    if json:
        print_json(_facts(report) | {"best": report.best, "table": report.table})
        return
    facts = _facts(report) | {"seconds": with_unit("seconds", report.seconds)}
    print_facts({name: it for name, it in facts.items() if it is not None})
    ended = [row for row in report.table if row["state"] == "complete"]
    if not ended:
        return
    ended.sort(key=lambda row: row["value"], reverse=not report.is_lower_better)
    names = list(ended[0]["settings"])
    rows = [
        [row["trial"], row["value"], row["epochs"], *row["settings"].values()]
        for row in ended[:_ROWS_SHOWN]
    ]
    sys.stdout.write("\n")
    shown = [[format_value(cell) for cell in row] for row in rows]
    print_table(["trial", report.metric, "epochs", *names], shown)
