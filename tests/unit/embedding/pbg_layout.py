"""Data and checkpoints in PyTorch-BigGraph's layout; its scores by its formulas."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

h5py = pytest.importorskip("h5py", reason="h5py comes with the extra all")

Floats = npt.NDArray[np.float32]
NAMES = [f"e{k:02d}" for k in range(24)]
SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "none": {},
    "diagonal": {"diagonal": ("D",)},
    "translation": {"translation": ("D",)},
    "linear": {"linear_transformation": ("D", "D")},
    "affine": {"linear_transformation": ("D", "D"), "translation": ("D",)},
    "complex_diagonal": {"real": ("H",), "imag": ("H",)},
}


@dataclass(kw_only=True)
class Layout:
    """What was written, and what PBG computes from it."""

    root: Path
    operator: str = "none"
    comparator: str = "dot"
    is_dynamic: bool = False
    partitions: int = 2
    dim: int = 4
    relations: list[str] = field(default_factory=lambda: ["r0", "r1", "r2"])
    has_global: bool = False
    rows: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    shift: Floats = field(default_factory=lambda: np.empty(0, np.float32))
    parameters: dict[str, Floats] = field(default_factory=dict)
    edges: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    @property
    def checkpoint(self) -> Path:
        return self.root / "model"

    @property
    def data(self) -> Path:
        return self.root / "data"

    def config(self, **more: Any) -> dict[str, Any]:
        relations: list[dict[str, Any]] = [
            {"name": name, "lhs": "all", "rhs": "all", "operator": self.operator}
            for name in (["any"] if self.is_dynamic else self.relations)
        ]
        return {
            "entities": {"all": {"num_partitions": self.partitions}},
            "relations": relations,
            "dynamic_relations": self.is_dynamic,
            "dimension": self.dim,
            "global_emb": self.has_global,
            "comparator": self.comparator,
            "loss_fn": "softmax",
            "entity_path": str(self.data),
            "edge_paths": [str(self.data / "train")],
            "checkpoint_path": str(self.checkpoint),
            "eval_fraction": 0.0,
            **more,
        }

    def apply(self, side: str, relation: int, x: torch.Tensor) -> torch.Tensor:
        """PBG's operators (model.py of 1.0.0), in float64."""
        index, plural = (0, "s") if self.is_dynamic else (relation, "")

        def parameter(name: str) -> torch.Tensor:
            ending = "" if name in ("real", "imag") else plural
            key = f"relations/{index}/operator/{side}/{name}{ending}"
            value = torch.from_numpy(self.parameters[key]).double()
            return value[relation] if self.is_dynamic else value

        if self.operator == "none":
            return x
        if self.operator == "diagonal":
            return parameter("diagonal") * x
        if self.operator == "translation":
            return x + parameter("translation")
        if self.operator in ("linear", "affine"):
            matrix = parameter("linear_transformation")
            y = torch.matmul(matrix, x.unsqueeze(-1)).squeeze(-1)
            return y + parameter("translation") if self.operator == "affine" else y
        half = self.dim // 2
        real, imag = x[..., :half], x[..., half:]
        a, b = parameter("real"), parameter("imag")
        return torch.cat([real * a - imag * b, real * b + imag * a], dim=-1)

    def scores(self, lhs: int, relation: int, rhs: int, asks_for_rhs: bool) -> Any:
        """PBG's scores of all answers to one question, and the place of the true one."""
        x = torch.from_numpy(self.rows).double()
        if self.has_global:
            x = x + torch.from_numpy(self.shift).double()
        given, all_rows = x[lhs if asks_for_rhs else rhs], x
        if self.is_dynamic:
            given = self.apply("lhs" if asks_for_rhs else "rhs", relation, given)
        elif asks_for_rhs:
            all_rows = self.apply("rhs", relation, all_rows)
        else:
            given = self.apply("rhs", relation, given)
        if self.comparator == "dot":
            found = all_rows @ given
        elif self.comparator == "cos":
            found = (all_rows @ given) / all_rows.norm(dim=-1) / given.norm()
        else:
            found = (all_rows - given).pow(2).sum(dim=-1).neg()
            if self.comparator == "l2":
                found = found.neg().sqrt().neg()
        return found.numpy(), rhs if asks_for_rhs else lhs


def write_layout(root: Path, *, with_names: bool = True, **settings: Any) -> Layout:
    """Write data (train and test) and a checkpoint of random numbers."""
    rng = np.random.default_rng(1)
    made = Layout(root=root, **settings)
    size = len(NAMES) // made.partitions
    made.data.mkdir(parents=True)
    for part in range(made.partitions):
        (made.data / f"entity_count_all_{part}.txt").write_text(f"{size}\n")
        if with_names:
            listed = NAMES[part * size : (part + 1) * size]
            path = made.data / f"entity_names_all_{part}.json"
            path.write_text(json.dumps(listed, indent=4))
    if made.is_dynamic:
        (made.data / "dynamic_rel_count.txt").write_text(f"{len(made.relations)}\n")
        (made.data / "dynamic_rel_names.json").write_text(json.dumps(made.relations))
    made.edges = np.stack(
        [
            rng.integers(0, len(NAMES), 150),
            np.arange(150) % len(made.relations),
            rng.integers(0, len(NAMES), 150),
        ],
        axis=1,
    )
    for split, rows in (("train", made.edges[:120]), ("test", made.edges[120:])):
        (made.data / split).mkdir()
        for i, j in np.ndindex(made.partitions, made.partitions):
            some = rows[(rows[:, 0] // size == i) & (rows[:, 2] // size == j)]
            with h5py.File(made.data / split / f"edges_{i}_{j}.h5", "w") as file:
                file.attrs["format_version"] = 1
                file["lhs"], file["rhs"] = some[:, 0] % size, some[:, 2] % size
                file["rel"] = some[:, 1]
    _write_checkpoint(made, size, rng)
    return made


def _write_checkpoint(made: Layout, size: int, rng: np.random.Generator) -> None:
    made.checkpoint.mkdir()
    (made.checkpoint / "checkpoint_version.txt").write_text("3\n")
    (made.checkpoint / "config.json").write_text(json.dumps(made.config(), indent=4))
    made.rows = rng.normal(size=(len(NAMES), made.dim)).astype(np.float32)
    for part in range(made.partitions):
        with h5py.File(made.checkpoint / f"embeddings_all_{part}.v3.h5", "w") as file:
            file.attrs["format_version"] = 1
            file["embeddings"] = made.rows[part * size : (part + 1) * size]
    count = len(made.relations)
    for side in ("lhs", "rhs") if made.is_dynamic else ("rhs",):
        for index in range(1 if made.is_dynamic else count):
            for name, shape in SHAPES[made.operator].items():
                sizes = [{"D": made.dim, "H": made.dim // 2}[it] for it in shape]
                plural = "s" * (made.is_dynamic and name not in ("real", "imag"))
                key = f"relations/{index}/operator/{side}/{name}{plural}"
                full = [count, *sizes] if made.is_dynamic else sizes
                made.parameters[key] = rng.normal(size=full).astype(np.float32)
    with h5py.File(made.checkpoint / "model.v3.h5", "w") as file:
        file.attrs["format_version"] = 1
        group = file.create_group("model", track_order=True)
        for key, value in made.parameters.items():
            group.create_dataset(key, data=value)
        if made.has_global:
            made.shift = rng.normal(size=made.dim).astype(np.float32)
            group.create_dataset("entities/all/global_embedding", data=made.shift)
