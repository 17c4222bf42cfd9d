"""Case ``embedding_rows``: rows in float32, bfloat16, float16 and int8.

Speed and memory are those of one epoch on an R-MAT graph with the settings of the case
``embedding`` (dim 100, batches of 1000, chunks of 50 with 50 + 50 negatives, 2 workers);
memory is the peak of the proportional set size. Quality is the filtered MRR of the preset
``wn18rr-complex`` on the test split of WN18RR, trained once for every type of row in the
warm-up, at the end of all its epochs; without the data it is left out, and said.

A run is right if its loss is below that of guessing, 16 bits halve the tables and 8 bits
take little over a quarter.
"""

import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS: dict[str, str] = {}
MODULE = "bench.cases.embedding_rows"
ROW_DTYPES = ("float32", "bfloat16", "float16", "int8")
PRESET = "wn18rr-complex"
DIM, CHUNK, WORKERS = 100, 50, 2


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the one work."""
    from graphsys.datasets import recipes

    scale, edge_factor = (16, 4) if quick else (20, 4)
    graph = folder / "rmat"
    recipes.build("rmat", graph, scale=scale, edge_factor=edge_factor, partitions=1)
    answers = _build_quality_graph(folder / "answers")
    overrides = ["epochs=2"] if quick else []
    contenders, reached = [], {}
    for row_dtype in ROW_DTYPES:
        system = f"{OURS}, {row_dtype}"
        run = in_child(
            f"{MODULE}:train_rows",
            pss=True,
            graph=graph,
            out=folder / "run",
            row_dtype=row_dtype,
        )
        contenders.append(Contender(system=system, run=run))
        if answers is not None:
            reached[system] = in_child(
                f"{MODULE}:reach",
                graph=answers,
                out=folder / "quality",
                overrides=[*overrides, f"row_dtype='{row_dtype}'"],
            )
    num_edges = edge_factor << scale

    def verify(results: Mapping[str, Any]) -> None:
        _verify(results)
        for system, run in reached.items():
            results[system]["figures"] |= run().result

    yield Work(
        name=f"R-MAT scale {scale}, {num_edges / 1e6:.3g}M edges, dim {DIM}",
        amount=num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
    )


def _build_quality_graph(out: Path) -> Path | None:
    """Build WN18RR where its data lies; None, and a line, where it does not."""
    from bench.quality.cells import CELLS
    from graphsys.datasets import recipes

    cell = CELLS[PRESET]
    beside = Path(__file__).resolve().parents[4] / "shared"
    source = Path(os.environ.get("GRAPHSYS_SHARED", beside)) / "data" / cell.source
    if not source.is_dir():
        print(f"no MRR: {source.name} is not in ../shared/data", file=sys.stderr)
        return None
    recipes.build(cell.recipe, out, folder=source, partitions=1)
    return out


def _verify(results: Mapping[str, Any]) -> None:
    """Check losses, and the sizes of the tables."""
    guessing = 2 * math.log(2 * CHUNK)
    tables = {}
    for system, result in results.items():
        figures = result["figures"]
        if not 0 < figures["loss"] < guessing:
            raise WrongResultError(
                f"{system}: mean loss {figures['loss']:.3f}, guessing has {guessing:.3f}"
            )
        tables[system] = figures["table_bytes"]
    whole = tables.pop(f"{OURS}, {ROW_DTYPES[0]}")
    for system, size in tables.items():
        share = 0.25 if system.endswith("int8") else 0.5
        if not share * whole <= size < (share + 0.02) * whole:
            raise WrongResultError(f"{system}: tables of {size} B, float32 has {whole} B")


def train_rows(graph: str, out: str, row_dtype: str) -> Outcome:
    """Train one epoch; compilation and loading are timed apart."""
    import graphsys
    from graphsys.embedding import EmbeddingConfig, train

    shutil.rmtree(out, ignore_errors=True)
    config = EmbeddingConfig(
        dim=DIM,
        epochs=1,
        threads=WORKERS,
        batch_size=1000,
        num_batch_negatives=CHUNK,
        num_uniform_negatives=CHUNK,
        checkpoint_seconds=3600.0,
        row_dtype=row_dtype,
    )
    report = train(graphsys.open(graph), config, out)
    files = [
        path for part in ("rows", "state") for path in (Path(out) / part).rglob("*.npy")
    ]
    return Outcome(
        seconds=report.seconds,
        result={
            "figures": {
                "loss": report.metrics["loss"],
                "table_bytes": sum(path.stat().st_size for path in files),
            }
        },
    )


def reach(graph: str, out: str, overrides: list[str]) -> dict[str, float]:
    """Train the preset and rank the test split."""
    import graphsys
    from graphsys.embedding import evaluate, load_config, train

    shutil.rmtree(out, ignore_errors=True)
    train(graphsys.open(graph), load_config(preset=PRESET, overrides=overrides), out)
    metrics = evaluate(out, split="test")["metrics"]
    return {"wn18rr_mrr": metrics["mrr"], "wn18rr_hits@10": metrics["hits@10"]}
