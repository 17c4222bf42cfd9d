"""The record of a mutation run: a row a file, as other results are written."""

import json
import sys
from pathlib import Path
from typing import Any

from bench.output import keep_record, result_path, stamp

from mutating.targets import TARGETS


def save_rows(rows: list[dict[str, Any]]) -> Path:
    """Write rows, beside those of other files of TARGETS; return the record's file."""
    told = stamp(" ".join(["scripts/mutation", *sys.argv[1:]]))
    fresh = {row["file"]: told | row for row in rows}
    path = result_path("mutation", told["hardware"])
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    every = {row["file"]: row for row in before if row["file"] in TARGETS} | fresh
    ordered = [every[name] for name in sorted(every)]
    killed = sum(row["killed"] for row in ordered)
    counted = killed + sum(row["survived"] for row in ordered)
    return keep_record("mutation", ordered, killed=killed, rate=killed / max(counted, 1))
