"""The table of temporal link prediction: the page of figures shows what is saved."""

import json
from typing import Any

from tests.conftest import ROOT

COLUMNS = ("valid_mrr", "mrr", "hits@1", "hits@10", "mrr_seen_pairs", "mrr_new_pairs")


def line_of(row: dict[str, Any]) -> str:
    """Return a preset's line, with the spread of its test MRR where it has several runs."""
    cells = [f"{row[name]:.3f}".lstrip("0") for name in COLUMNS]
    if row["runs"] > 1:
        cells[1] += f" ({row['mrr_spread']:.3f})".replace("(0", "(")
    return " | ".join(["", f"`{row['preset']}`", *cells, ""]).strip()


def test_the_page_shows_what_is_saved() -> None:
    (path,) = (ROOT / "scripts/bench/results").glob("temporal_[!bt]*.json")
    table = json.loads(path.read_text())["table"]
    assert [row["mrr"] for row in table] == sorted((r["mrr"] for r in table), reverse=True)
    page = (ROOT / "scripts/bench/pages/gnn.md").read_text()
    assert "\n".join(map(line_of, table)) in page
    assert path.name in page
