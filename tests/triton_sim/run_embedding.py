"""Train embeddings by Triton kernels in its interpreter and on the CPU; compare.

Usage: ``TRITON_INTERPRET=1 python -m tests.triton_sim.run_embedding CASE ...`` from the
root; prints one JSON line per case:

    step:OPERATOR,COMPARATOR,LOSS[,FLAG]...     one step, against torch's autograd too
    bucket:OPERATOR,COMPARATOR,LOSS[,FLAG]...   several batches of odd sizes
    run:PARTITIONS                              a whole training, files and all

A process of its own, since the interpreter is chosen
when Triton is imported. On a machine with a GPU, without the variable, the same cases run
there.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import cut_bucket
from graphsys.embedding.model import relation_sets
from graphsys.embedding.training.api import train
from graphsys.embedding.training.cuda.shapes import BlockShapes
from graphsys.embedding.training.cuda.trainer import DeviceTrainer
from graphsys.embedding.type_configs import RelationConfig
from graphsys.kernels.cpu.embedding.bags import PLAIN
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.step import train_batches
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from tests.embedding_oracle import DIM, OneEdgeType, Result, Step
from tests.triton_sim.run_cases import main
from tests.unit.embedding.conftest import Ring

Floats = npt.NDArray[np.float32]
SMALL = BlockShapes(
    queries=16, candidates=16, depth=16, columns=16, whole=16, members=4, precision="ieee"
)
SRC, DST = ("node", 0), ("node", 1)


def step_config(
    case: str, dim: int = DIM, batch_size: int = 8, chunk: int = 8, uniform: int = 4
) -> tuple[EmbeddingConfig, bool]:
    """Return the settings of ``operator,comparator,loss[,flag]...`` and what is shared."""
    operator, comparator, loss, *flags = case.split(",")
    relations: dict[str, RelationConfig] = {}
    if operator == "mixed":
        operator = "identity"
        relations = {
            "a": RelationConfig(operator="linear", weight=0.5),
            "b": RelationConfig(operator="translation", weight=2.0),
            "*": RelationConfig(operator="complex_diagonal"),
        }
    settings: dict[str, Any] = {
        "operator": operator,
        "comparator": comparator,
        "loss": loss,
        "reciprocal": "reciprocal" in flags,
        "relations": relations,
        "num_batch_negatives": 0 if "uniform" in flags else chunk,
        "regularizer": 0.0 if "free" in flags else 0.05,
    }
    config = EmbeddingConfig(
        dim=dim,
        margin=0.5,
        batch_size=batch_size,
        num_uniform_negatives=uniform,
        **settings,
    )
    return config, "shared" in flags


def run_device(step: Step, **options: Any) -> tuple[float, Floats, Floats, Floats]:
    """Do what ``Step.run_kernel`` does, on the device."""
    src = step.src_rows.copy(), step.src_state.copy()
    dst = src if step.is_shared else (step.dst_rows.copy(), step.dst_state.copy())
    table, losses = step.table.copy(), np.zeros(1)
    sides = (SRC, SRC) if step.is_shared else (SRC, DST)
    trainer = DeviceTrainer(DIM, shapes=SMALL, **options)
    trainer.train_slice(
        "edge",
        sides,
        (src, dst),
        step.model.operators(table),
        step.edges,
        step.settings(),
        losses,
        0,
        1,
    )
    trainer.store_operators()
    for side, held in zip(sides, (src, dst), strict=True):
        trainer.partitions.store(side, *held)
    return float(losses[0]), src[0], dst[0], table


def largest(one: Floats, other: Floats) -> float:
    """Return the largest difference of two arrays, relative to the largest value."""
    scale = np.abs(other).max(initial=1.0)
    return float(np.abs(one - other).max(initial=0.0) / scale)


def furthest(got: tuple[float, Floats, Floats, Floats], other: Result) -> float:
    """Return the largest difference of the rows and operators that two steps leave."""
    return max(
        largest(got[1], other.src_rows),
        largest(got[2], other.dst_rows),
        largest(got[3][::2], other.operators),
    )


def run_step(case: str) -> dict[str, object]:
    """Take one step three ways: on the device, by the CPU's kernel, by torch's autograd."""
    config, is_shared = step_config(case)
    step = Step(config, is_shared=is_shared)
    got, cpu, wanted = run_device(step), step.run_kernel(), step.run_torch()
    return {
        "loss": got[0],
        "cpu_loss": cpu.loss,
        "torch_loss": wanted.loss,
        "from_cpu": furthest(got, cpu),
        "from_torch": furthest(got, wanted),
        "moved": largest(got[1], step.src_rows),
    }


class Bucket:
    """A random bucket of several batches, with repeated rows, a hub, and weights."""

    def __init__(self, config: EmbeddingConfig, *, is_shared: bool) -> None:
        rng = np.random.default_rng(8)
        self.config, self.is_shared = config, is_shared
        (self.model,) = relation_sets(OneEdgeType(), config)
        num_src, num_dst = 41, 41 if is_shared else 29
        scale = np.float32(0.5)
        self.src_rows = rng.normal(size=(num_src, config.dim)).astype(np.float32) * scale
        self.dst_rows = rng.normal(size=(num_dst, config.dim)).astype(np.float32) * scale
        self.table = self.model.initial()
        src = np.minimum(rng.zipf(1.4, 87), num_src).astype(np.uint32) - 1
        dst = rng.integers(0, num_dst, len(src)).astype(np.uint32)
        relation = rng.integers(0, 3, len(src)).astype(np.uint32)
        weight = rng.random(len(src)).astype(np.float32)
        self.edges = cut_bucket(src, dst, relation, weight, self.model, config, ("bucket",))
        self.losses = np.zeros(len(self.edges.batches) - 1)

    def fresh(self) -> tuple[Tables, Floats]:
        """Return copies to train."""
        src_rows, src_state = self.src_rows.copy(), np.zeros(len(self.src_rows), np.float32)
        dst_rows, dst_state = src_rows, src_state
        if not self.is_shared:
            dst_rows = self.dst_rows.copy()
            dst_state = np.zeros(len(dst_rows), np.float32)
        tables = Tables(src_rows, src_state, dst_rows, dst_state, self.is_shared)
        return tables, self.table.copy()


def run_bucket(case: str) -> dict[str, object]:
    """Train a bucket on the device and by the CPU's kernel."""
    config, is_shared = step_config(case, dim=22, batch_size=38, chunk=19, uniform=9)
    bucket = Bucket(config, is_shared=is_shared)
    is_bfloat16 = "bfloat16" in case
    settings = Step(config, is_shared=is_shared).settings()
    cpu, cpu_table = bucket.fresh()
    cpu_losses = bucket.losses.copy()
    slot = np.full(len(cpu.src_rows) + len(cpu.dst_rows), -1, dtype=np.int32)
    train_batches(
        cpu,
        PLAIN,
        bucket.model.operators(cpu_table),
        bucket.edges,
        settings,
        0,
        len(cpu_losses),
        1,
        slot,
        cpu_losses,
    )
    got, table = bucket.fresh()
    losses = bucket.losses.copy()
    sides = (SRC, SRC) if is_shared else (SRC, DST)
    tables = (got.src_rows, got.src_state), (got.dst_rows, got.dst_state)
    shapes = replace(SMALL, whole=32)
    trainer = DeviceTrainer(config.dim, shapes=shapes, is_bfloat16=is_bfloat16)
    half = len(losses) // 2
    for first, last in ((0, half), (half, len(losses))):
        trainer.train_slice(
            "edge",
            sides,
            tables,
            bucket.model.operators(table),
            bucket.edges,
            settings,
            losses,
            first,
            last,
        )
    trainer.store_operators()
    for side, held in zip(sides, tables, strict=True):
        trainer.partitions.store(side, *held)
    return {
        "loss": float(losses.sum()),
        "cpu_loss": float(cpu_losses.sum()),
        "batches": len(losses),
        "tolerance": 0.05 if is_bfloat16 else 1e-3,
        "from_cpu": max(largest(a, b) for a, b in zip(got[:4], cpu[:4], strict=True)),
        "operators_from_cpu": largest(table, cpu_table),
        "moved": largest(got.src_rows, bucket.src_rows),
    }


def run_training(case: str) -> dict[str, object]:
    """Train a whole run on the device and on the CPU, given the number of partitions."""
    config = EmbeddingConfig(
        dim=18,
        epochs=2,
        deterministic=True,
        operator="complex_diagonal",
        reciprocal=True,
        batch_size=32,
        num_batch_negatives=16,
        num_uniform_negatives=7,
        lr=0.2,
        init_scale=0.3,
        regularizer=0.01,
        importance_weights=True,
        eval_fraction=0.1,
    )
    losses, rows, held_out = {}, {}, {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        ingest(Ring(), folder / "graph", partitions=int(case))
        for device in ("cpu", "cuda"):
            with Graph(folder / "graph") as graph:
                train(graph, config, folder / device, device=device)
            state = json.loads((folder / device / "run.json").read_text())
            losses[device] = np.array(state["losses"])
            held_out[device] = np.array(state["metrics"]["held_out_loss"])
            found = sorted((folder / device / "rows").rglob("*.npy"))
            rows[device] = np.concatenate([np.load(p, allow_pickle=False) for p in found])
    return {
        "loss": float(losses["cuda"].sum()),
        "cpu_loss": float(losses["cpu"].sum()),
        "tolerance": 1e-4,
        "from_cpu": largest(rows["cuda"], rows["cpu"]),
        "held_out_from_cpu": largest(held_out["cuda"], held_out["cpu"]),
        "moved": float(losses["cuda"][0] - losses["cuda"][-1]),
    }


RUNNERS = {"step": run_step, "bucket": run_bucket, "run": run_training}


if __name__ == "__main__":
    sys.exit(main(RUNNERS))
