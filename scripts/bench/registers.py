"""Compile all CUDA kernels for Hopper, without a GPU, and write what ptxas says.

``engine`` has every shipped program, what programs have in common, and mining; it needs
numba-cuda with its compiler (the extra ``gpu``) and ptxas. ``embedding`` has the trainer's
Triton kernels for the presets, the defaults and one of every other operator, comparator
and loss, rows in float32 and bfloat16; with ``--all`` every dimension in ``DIMS`` x rows x
comparator x loss, with operators and relation styles in turn (half an hour). ``gnn`` has
those of message passing, forwards and backwards, in the shapes of presets and benchmarks.
Triton brings its ptxas. Exits with 1 where a kernel spills, uses a stack or does not
compile; those are named.
"""

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np

from bench import output
from graphsys.analysis.model.devices import GPUS, occupancy
from graphsys.core.cuda.device import LaunchShape
from graphsys.core.cuda.offline import KernelReport
from graphsys.core.errors import CompileError, ConfigError, MissingDependencyError
from graphsys.embedding import EmbeddingConfig, load_config
from graphsys.embedding.config import preset_names
from graphsys.engine.program import VertexProgram

Reports = dict[str, KernelReport]
COLUMNS = {"weight": np.dtype(np.float64)}
SHAPES = ((8, 8), (16, 1), (47, 3), (64, 4), (100, 8), (256, 1), (602, 1))
"""Features of a head, and heads."""
FORGOTTEN = ("name", "instructions", "lines")
DIMS = (32, 64, 100, 128, 200, 400)
OPERATORS = ("identity", "complex_diagonal", "linear", "translation", "diagonal")
Described = tuple[EmbeddingConfig, bool]


ENGINE_THREADS = LaunchShape().block
"""Threads of a block in launches of the engine and of mining."""


def with_occupancy(row: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return what ptxas says of a kernel with its theoretical occupancy on sm_90.

    Args:
        row: With ``registers`` a thread and ``shared_bytes`` a block.
        threads: Of a block.
    """
    found = occupancy(
        GPUS["h100"],
        threads=threads,
        registers=max(row["registers"], 1),
        shared_bytes=row["shared_bytes"],
    )
    told = {"ctas_per_sm": found.ctas, "occupancy": found.fraction}
    return {**row, "threads": threads, **told, "occupancy_limit": found.limit}


def engine(*, is_all: bool) -> Iterator[tuple[str, Reports | str]]:
    """Yield the kernels of every program and part, or why there are none."""
    from graphsys.engine.codegen.plan import plan_of
    from graphsys.engine.codegen.spec import spec_of
    from graphsys.engine.cuda.offline import compile_common, compile_program
    from graphsys.mining.offline import compile_mining

    del is_all
    yield "common", _by_name(compile_common(np.dtype(np.int32)))
    for dtype in (np.dtype(np.int32), np.dtype(np.int64)):
        yield f"mining, {dtype}", _by_name(compile_mining(dtype))
    for name, kind in programs_shipped().items():
        try:
            yield name, _by_name(compile_program(plan_of(spec_of(kind), COLUMNS)))
        except (CompileError, RuntimeError, TypeError) as err:
            yield name, f"{type(err).__name__}: {str(err).splitlines()[0]}"


def programs_shipped() -> dict[str, type[VertexProgram]]:
    """Return every vertex program of graphsys.engine.programs by module and name."""
    from graphsys.engine import programs

    found = {}
    for module in pkgutil.iter_modules(programs.__path__):
        loaded = importlib.import_module(f"{programs.__name__}.{module.name}")
        for name, kind in sorted(vars(loaded).items()):
            if not isinstance(kind, type) or not issubclass(kind, VertexProgram):
                continue
            if kind.__module__ == loaded.__name__ and not name.startswith("_"):
                found[f"{module.name}.{name}"] = kind
    return found


def embedding(*, is_all: bool) -> Iterator[tuple[str, Reports | str]]:
    """Yield the kernels of settings, or why there are none."""
    from graphsys.embedding.training.cuda.offline import compile_step
    from graphsys.embedding.training.cuda.support import require_supported

    seen = set()
    for config, is_bfloat16 in configs_beyond() if is_all else configs_shipped():
        name = config_name(config, is_bfloat16)
        if name in seen:
            continue
        seen.add(name)
        try:
            require_supported(config)
        except ConfigError as err:  # a preset for the CPU
            yield name, str(err)
            continue
        yield name, _by_name(compile_step(config, is_bfloat16=is_bfloat16))


def configs_shipped() -> Iterator[Described]:
    """Yield settings, and whether rows are bfloat16."""
    configs = [EmbeddingConfig()]
    configs += [load_config(preset=name) for name in preset_names()]
    for config in configs:
        yield config, False
        yield config, True
    others: list[tuple[str, str, str, bool, bool]] = [
        ("translation", "l2", "ranking", False, False),
        ("diagonal", "cos", "logistic", True, True),
        ("linear", "squared_l2", "softmax", False, False),
    ]
    for operator, comparator, loss, reciprocal, is_bfloat16 in others:
        settings: dict[str, Any] = {
            "operator": operator,
            "comparator": comparator,
            "loss": loss,
            "reciprocal": reciprocal,
            "regularizer": 0.01,
        }
        yield EmbeddingConfig(**settings), is_bfloat16


def configs_beyond() -> Iterator[Described]:
    """Yield many more."""
    turns = cycle(product((True, False), OPERATORS))
    kinds = product(("dot", "cos", "l2", "squared_l2"), ("softmax", "logistic", "ranking"))
    for (comparator, loss), dim, is_bfloat16 in product(kinds, DIMS, (False, True)):
        reciprocal, operator = next(turns)
        settings: dict[str, Any] = {
            "dim": dim,
            "operator": operator,
            "comparator": comparator,
            "loss": loss,
            "reciprocal": reciprocal,
            "regularizer": 0.01,
        }
        yield EmbeddingConfig(**settings), is_bfloat16


def config_name(config: EmbeddingConfig, is_bfloat16: bool) -> str:
    """Describe what is compiled; equal for equal kernels."""
    style = "two operators" if config.reciprocal else "one operator"
    rows = "bfloat16" if is_bfloat16 else "float32"
    n3 = ", N3" if config.regularizer else ""
    return (
        f"dim {config.dim}, {rows}, {config.operator} ({style}), {config.comparator}, "
        f"{config.loss}{n3}"
    )


def gnn(*, is_all: bool) -> Iterator[tuple[str, Reports | str]]:
    """Yield the kernels of shapes."""
    from graphsys.gnn.ops.offline import compile_kernels

    del is_all
    for (width, heads), precision in product(SHAPES, ("float32", "bfloat16")):
        name = f"{heads} x {width}, {precision}"
        yield name, compile_kernels(width, heads, precision)


KINDS = {"engine": engine, "embedding": embedding, "gnn": gnn}
"""Each yields names with the reports of what is compiled for them."""


def _by_name(reports: list[KernelReport]) -> Reports:
    return {report.name: report for report in reports}


def row_of(report: KernelReport) -> dict[str, Any]:
    """Return a report as a JSON object, with its occupancy."""
    row = {name: it for name, it in asdict(report).items() if name not in FORGOTTEN}
    threads = ENGINE_THREADS if report.warps is None else 32 * report.warps
    if report.warps is None:
        del row["warps"]
    return with_occupancy(row, threads)


def main() -> int:
    """Compile all of a kind; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/cuda_registers", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=KINDS, default="engine")
    parser.add_argument("out", nargs="?", type=Path, help="default: in bench/results")
    parser.add_argument("--all", action="store_true", help="of embedding: every shape")
    options = parser.parse_args()
    kind = options.kind
    case = "cuda_registers" + (f"_{kind}" if kind != "engine" else "")
    out = options.out or output.result_path(case, "sm90")
    if options.out is None:
        output.refuse_dirty_tree()
    kernels: dict[str, dict[str, dict[str, Any]]] = {}
    refused: dict[str, str] = {}
    try:
        for name, found in KINDS[kind](is_all=options.all):
            if isinstance(found, str):
                refused[name] = found
                continue
            kernels[name] = {key: row_of(report) for key, report in found.items()}
            most = max(row["registers"] for row in kernels[name].values())
            print(f"{name}: {len(found)} kernels, at most {most} registers", flush=True)
    except MissingDependencyError as err:
        print(err)
        return 1
    bad = [
        f"{name}: {kernel}"
        for name, rows in kernels.items()
        for kernel, row in rows.items()
        if row["spill_bytes"] or row["stack_bytes"]
    ]
    record: dict[str, Any] = {"target": "sm_90"}
    if kind != "engine":
        record["triton"] = importlib.import_module("triton").__version__
    record["kernels" if kind == "engine" else "configs"] = kernels
    record |= {"spilled": bad, "refused": refused}
    record |= output.stamp(" ".join(["scripts/cuda_registers", *sys.argv[1:]]))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")
    count = sum(map(len, kernels.values()))
    print(
        f"{count} kernels of {len(kernels)} programs, parts or settings, {len(bad)} with "
        f"spills or a stack, {len(refused)} refused; written to {out.name}"
    )
    for line in [*bad, *(f"{name}: {why}" for name, why in refused.items())]:
        print(f"  {line}")
    # a preset for the CPU is refused on purpose, a program is not
    return int(bool(bad) or (kind == "engine" and bool(refused)))


if __name__ == "__main__":
    sys.exit(main())
