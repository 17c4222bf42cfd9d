"""The embedding trainer: edges a second, swaps of partitions, agreement with the CPU."""

import tempfile
import time
from pathlib import Path
from typing import Any

from gpu_checking.kernel_times import kernel_times
from gpu_checking.steps import Context

SETTINGS = {
    "dim": 100,
    "epochs": 2,
    "lr": 0.1,
    "batch_size": 20_000,
    "num_batch_negatives": 500,
    "num_uniform_negatives": 500,
    "checkpoint_seconds": 3600.0,
}
FLOP_PER_EDGE = 3 * 2 * 2 * SETTINGS["dim"] * 1000
"""Scores of 1,000 negatives on both sides, and the gradients at both of their factors."""
WATCHED = "small, kernels watched"
SMALL_BATCH = 256
"""Positives of a batch of the small graph."""
LARGEST_DIFFERENCE = 0.02
"""Of the mean losses of one thread and of the device, which train the same batches."""


_SCALE, _BATCHES = 18, (20_000, 1000)
"""Logarithm of the number of nodes; positives of a batch."""
_PARTITIONS = (1, 4)


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    found = ["small, one thread beside the device, cuda", f"{WATCHED}, cuda"]
    for partitions in _PARTITIONS:
        for device, dtype, batch in cases(_BATCHES):
            found.append(f"{case_of(_SCALE, partitions, dtype, batch)}, {device}")
    return found


def measure(context: Context) -> None:
    """Train on R-MAT graphs, tiny ones in the interpreter."""
    if not context.has_triton():
        return
    left_out: list[str] = []
    if context.is_simulated:
        SETTINGS.update(dim=8, epochs=1, batch_size=64)
        SETTINGS.update(num_batch_negatives=8, num_uniform_negatives=8)
        bench(context, 4, left_out, batches=(64,))
    else:
        bench(context, _SCALE, left_out, _BATCHES)
    context.leave_out(left_out)


def cases(batches: tuple[int, ...]) -> list[tuple[str, str, int]]:
    """Return devices, types of rows and positives of a batch; the card's are first."""
    on_card = [("cuda", dtype, b) for b in batches for dtype in ("float32", "bfloat16")]
    return [*on_card, ("cpu", "float32", batches[0])]


def case_of(scale: int, partitions: int, dtype: str, batch: int) -> str:
    """Return the name of a training."""
    return f"rmat{scale}, {partitions} partitions, {dtype}, batches of {batch}"


def train(graph: Any, out: Path, device: str, **settings: Any) -> dict[str, Any]:
    """Train and return speed, loss and what was copied."""
    from graphsys.core.events import recording
    from graphsys.embedding import EmbeddingConfig
    from graphsys.embedding import train as run

    with recording() as recorder:
        report = run(graph, EmbeddingConfig(**{**SETTINGS, **settings}), out, device=device)
    copied = sum(e.value for e in recorder.events if e.name == "bytes_copied")
    plain = {k: v for k, v in report.metrics.items() if isinstance(v, int | float)}
    return {
        "edges_per_second": report.edges_per_second,
        "seconds": report.seconds,
        "bytes_copied": int(copied),
        **plain,
    }


def bench(
    context: Context, scale: int, left_out: list[str], batches: tuple[int, ...]
) -> None:
    """Time the trainer on R-MAT graphs of 1 and 4 partitions.

    Args:
        context: Of the step.
        scale: Logarithm of the number of nodes.
        left_out: Receives the cases that did not fit.
        batches: Positives of a batch; the CPU trains the first.
    """
    import graphsys
    from graphsys.datasets import recipes

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = min(scale, 10)
        recipes.build("rmat", folder / "small", scale=small, edge_factor=30, partitions=1)
        context.tell(agreement(folder))  # and compiles
        context.tell(where_time_goes(folder))
        for partitions in _PARTITIONS:
            store = folder / f"rmat-{partitions}"
            recipes.build("rmat", store, scale=scale, edge_factor=10, partitions=partitions)
            for number, (device, dtype, batch) in enumerate(cases(batches)):
                case = case_of(scale, partitions, dtype, batch)
                if time.monotonic() > context.deadline:
                    left_out.append(f"{case}, {device}")
                    continue
                row: dict[str, Any] = {"case": case, "device": device}
                try:
                    with graphsys.open(store) as graph:
                        out = folder / f"run-{partitions}-{number}"
                        settings = {"row_dtype": dtype, "batch_size": batch}
                        if device == "cuda":  # compiles
                            train(graph, folder / f"{out.name}-first", device, **settings)
                        row |= train(graph, out, device, **settings)
                except Exception as err:  # one that fails must not hide the others
                    row["error"] = f"{type(err).__name__}: {err}"[:300]
                context.tell(row)


def small_settings() -> dict[str, Any]:
    """Return the settings of trainings of the small graph."""
    negatives = min(SETTINGS["num_batch_negatives"], SMALL_BATCH)
    sizes = {"batch_size": SMALL_BATCH, "num_batch_negatives": negatives}
    return {"row_dtype": "float32", **sizes}


def where_time_goes(folder: Path) -> dict[str, Any]:
    """Train the small graph once more, its kernels watched."""
    import graphsys

    row: dict[str, Any] = {"case": WATCHED, "device": "cuda"}
    try:
        with graphsys.open(folder / "small") as graph:
            out = folder / "small-watched"
            return row | kernel_times(lambda: train(graph, out, "cuda", **small_settings()))
    except Exception as err:  # what is timed later may run all the same
        return row | {"error": f"{type(err).__name__}: {err}"[:300]}


def agreement(folder: Path) -> dict[str, Any]:
    """Train the small graph by one thread and on the device; their losses must agree."""
    import graphsys

    row: dict[str, Any] = {
        "case": "small, one thread beside the device",
        "device": "cuda",
    }
    losses = []
    try:
        for device, more in (("cpu", {"threads": 1}), ("cuda", {})):
            with graphsys.open(folder / "small") as graph:
                found = train(
                    graph, folder / f"small-{device}", device, **small_settings(), **more
                )
            losses.append(found["loss"])
    except Exception as err:  # what is timed later may run all the same
        return row | {"error": f"{type(err).__name__}: {err}"[:300]}
    row["loss_from_cpu"] = abs(losses[1] / losses[0] - 1)
    if row["loss_from_cpu"] > LARGEST_DIFFERENCE:
        row["error"] = "the loss differs from that of one thread"
    return row
