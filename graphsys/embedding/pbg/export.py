"""A run as the two TSV files that ``torchbiggraph_export_to_tsv`` writes.

Entities: the name, then the numbers of its row, nine digits behind the point. Relations:
name, side ("lhs" or "rhs"), operator, parameter and its shape ("4" or "4x4"), then the
values; first all relations of one parameter, then the next. Without reciprocal relations
there is one side, the right one.
"""

import math
from pathlib import Path
from typing import Any, Final, TextIO

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.model import RelationSet
from graphsys.embedding.pbg.checkpoint import PARAMETERS
from graphsys.embedding.pbg.settings import OPERATORS
from graphsys.embedding.spec.operators import OperatorSpec
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.reader import GraphReader
from graphsys.training.row_files import to_batches

_NAMES: Final = {ours: theirs for theirs, ours in OPERATORS.items()}


def export_pbg(
    run: str | Path | Embeddings,
    entities: str | Path,
    relation_types: str | Path,
    *,
    graph: GraphReader | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> None:
    """Write a run's rows and operators as PyTorch-BigGraph exports them.

    Args:
        run: A run or its folder.
        entities: The file of the rows.
        relation_types: The file of the operators.
        graph: The graph trained on, if it is not where it was.
        overwrite: Replace files that exist.
        progress: Receives one stage.

    Raises:
        ConfigError: Both files are the same, or an operator is of another package.
        OutputExistsError: A file exists.
        StorageFullError: It cannot be written.
    """
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    targets = [Path(entities), Path(relation_types)]
    if targets[0].resolve() == targets[1].resolve():
        raise ConfigError(f"{targets[0]} is to hold entities and relations; give two files")
    for name in (spec.name for m in opened.model for spec in m.specs if spec.is_custom):
        raise ConfigError(
            f"operator {name!r} is of another package; files of PyTorch-BigGraph have no "
            "place for it; leave out --relation-types"
        )
    require_writable(*targets, overwrite=overwrite)
    types = opened.node_types
    progress.stage("export", sum(opened.graph.num_nodes_of(t) for t in types), "nodes")
    with new_files(*targets) as new:
        with new[0].open("w", encoding="utf-8", newline="\n") as stream:
            _write_entities(opened, types, stream, progress)
        with new[1].open("w", encoding="utf-8", newline="\n") as stream:
            _write_relations(opened, stream)
    progress.close()


def _write_entities(
    run: Embeddings, types: list[str], stream: TextIO, progress: Progress
) -> None:
    for batch in to_batches(run, types):
        rows = batch.column("embedding").values.to_numpy().reshape(len(batch), -1)
        line = "%s" + "\t%.9f" * rows.shape[1] + "\n"
        for name, row in zip(batch.column("id").to_pylist(), rows.tolist(), strict=True):
            stream.write(line % (name, *row))
        progress.advance(len(batch))


def _write_relations(run: Embeddings, stream: TextIO) -> None:
    for relations in run.model:
        table = run.operators(relations)
        sides = ("lhs", "rhs") if relations.num_sides == 2 else ("rhs",)
        for side, name in enumerate(sides):
            for spec in {each.name: each for each in relations.specs}.values():
                _write_kind(relations, spec, name, table[2 * side], stream)


def _write_kind(
    relations: RelationSet,
    operator: OperatorSpec,
    side: str,
    values: npt.NDArray[np.float32],
    stream: TextIO,
) -> None:
    """Write the relations with one operator, parameter by parameter."""
    kind = _NAMES.get(operator.name, operator.name)
    is_plural = relations.num_sides == 2
    for number, parameter in enumerate(PARAMETERS.get(kind, (kind,))):
        suffix = "s" * (is_plural and parameter not in ("real", "imag"))
        for r in np.flatnonzero([spec is operator for spec in relations.specs]):
            own = values[relations.offsets[r] : relations.offsets[r + 1]]
            part, shape = _part(kind, number, own)
            fields: list[Any] = [
                relations.relations[r],
                side,
                kind,
                parameter + suffix,
                shape,
            ]
            numbers = "\t".join(f"{value:.9f}" for value in part.tolist())
            stream.write("\t".join([*fields, numbers]) + "\n")


def _part(
    kind: str, number: int, own: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float32], str]:
    """Return one parameter of an operator, flat, and its shape."""
    if kind == "complex_diagonal":
        half = len(own) // 2
        return own[number * half : (number + 1) * half], str(half)
    if kind in ("linear", "affine"):
        dim = math.isqrt(len(own))  # D * D, or D * D + D
        if number == 0:
            return own[: dim * dim], f"{dim}x{dim}"
        return own[dim * dim :], str(dim)
    return own, str(len(own))
