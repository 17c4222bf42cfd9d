"""The quality table as Markdown, as it stands in graphsys/embedding/README.md."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bench.output import RESULTS, ROOT
from bench.quality.cells import CELLS

_HEAD = (
    "preset",
    "partitions",
    "dim",
    "epochs",
    "CPU s",
    "seeds",
    "metric",
    "valid",
    "test",
)
_RANKS = ("hits@1", "hits@10")


def saved_rows(folder: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the newest row of every cell, whichever machine measured it."""
    files = sorted(folder.glob("embedding_quality_*.json"))
    rows = [row for file in files for row in json.loads(file.read_text())["rows"]]
    rows.sort(key=lambda row: str(row["date"]))
    return list({(row["preset"], row["partitions"]): row for row in rows}.values())


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return saved rows as a table, in the order of the cells, and a line for every gap."""
    order = {name: place for place, name in enumerate(CELLS)}
    known = sorted(
        (row for row in rows if row["preset"] in order),
        key=lambda row: (order[row["preset"]], row["partitions"]),
    )
    names = (*_HEAD, *_RANKS, "published")
    lines = [
        "| " + " | ".join(names) + " |",
        "| " + " | ".join("---" for _ in names) + " |",
    ]
    lines += ["| " + " | ".join(cells) + " |" for row in known for cells in _cells(row)]
    presets = dict.fromkeys(row["preset"] for row in known)
    gaps = [
        f"- `{name}`{_search(name)}: {CELLS[name].gap}"
        for name in presets
        if CELLS[name].gap
    ]
    return "\n".join([*lines, *([""] if gaps else []), *gaps])


def _search(name: str) -> str:
    """Return a link to the search of a preset's settings, where there is one."""
    file = f"searches/{name}.toml"
    exists = (ROOT / "scripts" / "bench" / file).exists()
    return f" ([search](../{file}))" if exists else ""


def _cells(row: Mapping[str, Any]) -> Iterable[list[str]]:
    """Yield a line per metric that is worth one: all shares of a classification."""
    test, cell = row["test"], CELLS[row["preset"]]
    names = [name for name in test if name.startswith("f1_")]
    names = names or [name for name in ("mrr", "auc_pr", "roc_auc") if name in test]
    head = [
        f"`{row['preset']}`",
        *(str(row[key]) for key in ("partitions", "dim", "epochs")),
    ]
    seeds = len(row.get("seeds", [0]))
    head += [_number(row.get("train_cpu_seconds"), 0), str(seeds)]
    for name in names:
        values = [test[name], *(test.get(rank) for rank in _RANKS)]
        values = [
            test.get(f"valid_{name.split('@')[0]}"),
            *values,
            cell.published.get(name),
        ]
        shown = [_number(value) for value in values]
        if seeds > 1:
            shown[1] += f" ({_number(row['spread'][name])})"
        yield [*head, name.replace("mrr", "MRR"), *shown]


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"
