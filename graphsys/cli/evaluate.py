"""``graphsys evaluate``: how good a run is on held-out edges or nodes."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from graphsys.cli.console import (
    format_value,
    is_terminal,
    print_facts,
    print_json,
    print_note,
    print_table,
)
from graphsys.cli.help_pages.declarations import described
from graphsys.cli.options import (
    ClusterOption,
    JsonOption,
    LimitOption,
    ModelOption,
    RunArgument,
    SeedOption,
    examples,
    network_on,
    parse_cluster,
    require_no_model,
)

EPILOG = examples(
    "graphsys evaluate run",
    "graphsys evaluate run --split valid --json",
    "graphsys evaluate run --queries 10000 --candidates 1000",
    "graphsys evaluate run --cluster local:2",
)
_MEANS = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
_RELATIONS_SHOWN = 20


@described
def evaluate(
    run: RunArgument,
    split: str = "test",
    candidates: int | None = None,
    draw: str = "uniform",
    queries: int | None = None,
    seed: SeedOption = 0,
    memory: LimitOption = None,
    model: ModelOption = None,
    cluster: ClusterOption = None,
    json: JsonOption = False,
) -> None:
    """Measure a run on held-out edges (filtered ranking) or nodes (their classes).

    Options:
        --split NAME: Which held-out edges or nodes.

    Run:
        --candidates N>=1: Rank among samples of N nodes; among all nodes of the type by
            default.
        --draw NAME: How those are sampled: uniform, or degree (by training edges).
        --queries N>=2: Ask N questions, two per edge drawn; about all edges by default.
    """
    from graphsys import embedding
    from graphsys.cli.progress import open_progress
    from graphsys.storage.runs.run_folder import is_gnn_run

    progress = open_progress()
    if is_gnn_run(run):
        _refuse_sampling(candidates, queries, draw)
        found = _by_network(run, split, memory, model, cluster, progress)
        if json:
            print_json(found)
        else:
            shown = {
                name.replace("_", " "): "-" if value is None else value
                for name, value in found["metrics"].items()
            }
            print_facts({"split": found["split"]} | shown)
        if untold := [name for name, it in found["metrics"].items() if it is None]:
            print_note(
                f"note: {', '.join(untold)}: nothing of split {found['split']!r} says it; "
                "its values are all of one kind, or there are none"
            )
        return
    require_no_model(model)
    rank: Any = partial(embedding.evaluate, memory=memory)
    if cluster is not None:
        from graphsys import distributed

        where = parse_cluster(cluster, memory=memory)
        rank = partial(distributed.evaluate, cluster=where)
    result: dict[str, Any] = rank(
        run,
        split=split,
        candidates=candidates,
        draw=draw,
        queries=queries,
        seed=seed,
        progress=progress,
    )
    progress.close()
    state = embedding.open_run(run).state
    if not state.is_complete:
        print_note(
            f"note: {run} is a checkpoint after {state.epoch} whole epochs; "
            "its training goes on with --resume"
        )
    if json:
        print_json(result)
    else:
        _show(result)


def _by_network(
    run: Path,
    split: str,
    memory: str | None,
    model: str | None,
    cluster: str | None,
    progress: Any,
) -> dict[str, Any]:
    """Measure a run of a graph neural network."""
    from graphsys import gnn

    with network_on(cluster, run, memory=memory, model=model) as (opened, facts):
        found = gnn.evaluate(opened, split=split, memory=memory, progress=progress)
        progress.close()
    return found | facts


def _refuse_sampling(candidates: int | None, queries: int | None, draw: str) -> None:
    """Refuse options that runs of graph neural networks do not have."""
    from graphsys.core.errors import ConfigError

    for name, is_given in (
        ("--candidates", candidates is not None),
        ("--queries", queries is not None),
        ("--draw", draw != "uniform"),
    ):
        if is_given:
            raise ConfigError(f"{name} is for runs of embeddings; leave it out")


def _show(result: Mapping[str, Any]) -> None:
    """Print the metrics for people: the whole, then every breakdown as a table."""
    metrics = result["metrics"]
    confidence = metrics["confidence"]
    level = f"{confidence['level']:.0%} interval"
    print_facts(
        {
            "split": result["split"],
            "queries": metrics["num_queries"],
            "candidates": metrics["candidates"],
            "roc auc": "-" if metrics["roc_auc"] is None else metrics["roc_auc"],
            "intervals": confidence["method"],
        }
    )
    sys.stdout.write("\n")
    if (odd := metrics.get("untrained")) and odd["edges"]:
        print_note(
            f"note: {odd['nodes']} nodes and {odd['relations']} relations of "
            f"{result['split']} have no training edge; {odd['edges']} of its edges have "
            "one of these"
        )
    rows = [
        [
            name,
            metrics[name],
            _interval(confidence[name]),
            metrics["head"][name],
            metrics["tail"][name],
            metrics["unfiltered"][name],
        ]
        for name in _MEANS
    ]
    _table(["metric", "filtered", level, "head", "tail", "unfiltered"], rows)
    by_category = metrics["by_category"]
    _table(
        ["category", "queries", *_MEANS, "head mrr", "tail mrr"],
        [
            [*_row(name, some), some["head"]["mrr"], some["tail"]["mrr"]]
            for name, some in by_category.items()
        ],
    )
    _table(
        ["degree of answer", "queries", *_MEANS],
        [_row(name, some) for name, some in metrics["by_degree"].items()],
    )
    by_relation = sorted(
        metrics["by_relation"].items(), key=lambda item: (-item[1]["num_queries"], item[0])
    )
    shown = by_relation[:_RELATIONS_SHOWN]
    _table(["relation", "queries", *_MEANS], [_row(name, some) for name, some in shown])
    if len(by_relation) > len(shown):
        more = len(by_relation) - len(shown)
        print_note(f"note: {more} relations with fewer queries are in --json alone")


def _row(name: str, some: Mapping[str, Any]) -> list[Any]:
    return [name, some["num_queries"], *(some[metric] for metric in _MEANS)]


def _interval(bounds: list[float] | None) -> str:
    return "-" if bounds is None else " .. ".join(format_value(bound) for bound in bounds)


def _table(columns: list[str], rows: list[list[Any]]) -> None:
    if not rows:
        return
    if not is_terminal(sys.stdout):  # four digits are enough for the eye in a pipe too
        rows = [
            [format_value(cell) if isinstance(cell, float) else cell for cell in row]
            for row in rows
        ]
    print_table(columns, rows)
    sys.stdout.write("\n")
