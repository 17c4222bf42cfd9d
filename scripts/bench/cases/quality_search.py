"""Search settings by labels of valid; `graphsys tune` knows none that rows are asked for.

    scripts/bench/run quality_search CELL -o FOLDER [--trials 4]

A trial is a training with settings that Optuna draws from searches/CELL.toml, and is worth
`valid_f1`, the mean of micro and macro: labels learned from the rows, within a half of the
nodes. The journal in FOLDER keeps the trials; the same command goes on with them. Test is
not looked at.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench import output
from bench.quality import cells, gnn_cells
from bench.quality.tasks import label_rows, valid_label_scores
from bench.quality.walk_pairs import pair_graph
from graphsys import embedding, gnn
from graphsys.core.config import as_overrides, load_toml
from graphsys.datasets import recipes
from graphsys.tuning.search import SettingsSearch, read_search

SEARCHES = output.ROOT / "scripts" / "bench" / "searches"
_OF_LABELS = {name for name, cell in cells.CELLS.items() if cell.task == "classification"}
_OF_ROWS = {name for name, cell in gnn_cells.CELLS.items() if cell.is_of_rows}


def trained_on(name: str, shared: Path, folder: Path) -> tuple[Any, Any]:
    """Return the graph that has the labels, and the one that trials learn from."""
    cell = cells.CELLS.get(name) or gnn_cells.CELLS[name]
    source = shared / "data" / cell.source
    graph = recipes.build(cell.recipe, folder / "graph", folder=source).graph
    walks = getattr(cell, "walks", None)
    return graph, pair_graph(graph, walks, folder) if walks else graph


def valid_of(
    name: str, search: SettingsSearch, drawn: Mapping[str, Any], graphs: Any, run: Path
) -> float:
    """Train once; return the mean of micro-F1 and macro-F1 on valid."""
    graph, pairs = graphs
    fixed = load_toml(SEARCHES / f"{name}.toml").get("settings", {})
    settings = {**fixed, **drawn}
    config = search.library.load_config(preset=name, overrides=as_overrides(settings))
    search.library.train(pairs, config, run, overwrite=run.exists())
    if search.trainer == "gnn":
        rows = gnn.open_run(run, graph=graph).output()
    else:
        rows = label_rows(embedding.open_run(run), graph)
    _, scores = valid_label_scores(rows, graph)
    return sum(scores) / 2


def main(arguments: list[str]) -> int:
    """Run trials, each after what is known of those before it."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    parser = output.parser_of(__doc__)
    parser.add_argument("cell", choices=sorted(_OF_LABELS | _OF_ROWS))
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--shared", type=Path, default=output.ROOT.parent / "shared")
    options = parser.parse_args(arguments)
    search = read_search(SEARCHES / f"{options.cell}.toml")
    options.out.mkdir(parents=True, exist_ok=True)
    backend = JournalFileBackend(str(options.out / "trials.log"))
    study = optuna.create_study(
        storage=JournalStorage(backend),
        study_name=options.cell,
        sampler=optuna.samplers.TPESampler(seed=0),
        direction="maximize",
        load_if_exists=True,
    )
    with tempfile.TemporaryDirectory(prefix="quality-search-") as name:
        graphs = trained_on(options.cell, options.shared, Path(name))
        for _ in range(options.trials):
            trial = study.ask()
            drawn = search.draw(trial)
            value = valid_of(options.cell, search, drawn, graphs, Path(name) / "run")
            study.tell(trial, value)
            print(f"valid_f1 {value:.4f}", drawn, flush=True)
    print("best", f"{study.best_value:.4f}", study.best_params)
    return 0
