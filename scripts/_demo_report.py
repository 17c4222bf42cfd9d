"""The demo's figures: held-out ranking beside chance and popularity, as a table."""

import json
import sys
from pathlib import Path

import graphsys as gs

SHOWN = ("mrr", "hits@1", "hits@10")


def main(graph: str, out: str) -> None:
    """Print the table; what the baselines reach is kept in ``baselines.json``."""
    kept = Path(out) / "baselines.json"
    if not kept.exists():
        with gs.open(graph) as opened:
            found = gs.embedding.baselines(opened)
        kept.write_text(json.dumps(found))
    rows = json.loads(kept.read_text())
    rows["graphsys"] = json.loads((Path(out) / "evaluate.json").read_text())["metrics"]
    print(f"   {'':12}" + "".join(f"{name:>9}" for name in SHOWN))
    for system, metrics in rows.items():
        print(f"   {system:12}" + "".join(f"{metrics[name]:9.3f}" for name in SHOWN))


if __name__ == "__main__":
    main(*sys.argv[1:])
