"""A picture of an embedding: its nodes in the plane of the two main directions."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.datasets.temporary import GraphLike
from graphsys.embedding.data.candidates import draw_candidates
from graphsys.embedding.inference.drawing import Plot, to_html, to_png, to_svg
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.storage.output_file import new_files, require_writable

Doubles = npt.NDArray[np.float64]
SUFFIXES: Final = (".png", ".html", ".svg")
_WRITERS: Final = {".png": to_png, ".html": to_html, ".svg": to_svg}
_COLUMNS: Final = ("label", "class", "type", "category", "name")
_GROUPS = 10
_BLOCK = 1 << 14


def picture(
    run: str | Path | TrainedEmbedding,
    out: str | Path,
    *,
    node_type: str | None = None,
    color: str | None = None,
    num_nodes: int = 5000,
    seed: int = 0,
    graph: GraphLike | None = None,
    overwrite: bool = False,
) -> Path:
    """Draw the nodes by the two principal components of their rows.

    The components are those of all rows of the types drawn; of the nodes a uniform
    sample is shown. Every node's id appears on pointing at it (``.html``, ``.svg``).

    Args:
        run: A run or its folder.
        out: The file: ``.html`` or ``.svg``, or ``.png``, for which matplotlib is needed.
        node_type: Draw only this type; all by default, colored by type.
        color: Column of the node tables that colors the nodes: text and integers by
            value (the ten most frequent), other numbers by size. By default the column
            label, class, type, category or name, if there is one.
        num_nodes: How many nodes to draw at most, of each type.
        seed: Of their choice.
        graph: The graph trained on, if it is not where it was.
        overwrite: Replace the file if there is one.

    Returns:
        The file.

    Raises:
        ConfigError: The suffix is not one of these, or there is nothing to draw.
        UnknownNameError: There is no such node type or column.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    out = Path(out)
    if out.suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot draw {out.name!r}: expected a name that ends in one of "
            f"{', '.join(SUFFIXES)}"
        )
    if num_nodes < 1:
        raise ConfigError(f"num_nodes: got {num_nodes}, expected an int >= 1")
    if out.suffix == ".png":
        require("matplotlib", extra="plot")
    require_writable(out, overwrite=overwrite)
    opened = (
        run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run, graph=graph)
    )
    types = [opened.the_type(node_type)] if node_type is not None else opened.node_types
    shown = _choose(opened, types, num_nodes, seed)
    axes = principal_axes(opened, types)
    points = np.concatenate(
        [axes.project(opened.take(name, numbers)) for name, numbers in shown]
    )
    ids = [str(key) for name, some in shown for key in opened.ids(name, some).to_pylist()]
    values, title = _values(opened, shown, color)
    groups, names, is_ordered = _group(values)
    plot = Plot(
        points=points,
        ids=ids,
        groups=groups,
        names=names,
        is_ordered=is_ordered,
        legend=title,
        axes=tuple(f"PC{k + 1} ({axes.shares[k]:.0%} of variance)" for k in range(2)),
        title=f"{opened.path.name}: {len(ids)} nodes",
    )
    _write(out, _WRITERS[out.suffix](plot))
    return out


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Directions of the largest variance.

    Attributes:
        mean: Mean of the rows, float64 ``[D]``.
        directions: Unit vectors, float64 ``[D, 2]``.
        shares: Their shares of the variance, float64 ``[2]``.
    """

    mean: Doubles
    directions: Doubles
    shares: Doubles

    def project(self, rows: npt.NDArray[np.floating]) -> Doubles:
        """Return the coordinates of rows, float64 ``[n, 2]``."""
        return (rows.astype(np.float64) - self.mean) @ self.directions


def principal_axes(run: TrainedEmbedding, types: Iterable[str]) -> Axes:
    """Find the two main directions of all rows of some types, in two passes.

    Raises:
        ConfigError: The types' rows differ in length.
    """
    types = list(types)
    lengths = {run.dim_of(name) for name in types}
    if len(lengths) > 1:
        raise ConfigError(
            f"the node types {', '.join(types)} have rows of different lengths "
            f"({', '.join(map(str, sorted(lengths)))}); give node_type"
        )
    dim = lengths.pop()
    total, count = np.zeros(dim), 0
    for block in _blocks(run, types):
        total += block.sum(axis=0)
        count += len(block)
    mean, spread = total / max(count, 1), np.zeros((dim, dim))
    for block in _blocks(run, types):
        centered = block - mean
        spread += centered.T @ centered
    sizes, vectors = np.linalg.eigh(spread)
    directions = np.zeros((dim, 2))
    directions[:, : min(dim, 2)] = vectors[:, ::-1][:, :2]
    largest = np.argmax(np.abs(directions), axis=0)  # a sign that no layout changes
    directions *= np.where(directions[largest, [0, 1]] < 0, -1.0, 1.0)
    shares = np.zeros(2)
    shares[: min(dim, 2)] = sizes[::-1][:2] / max(float(sizes.sum()), 1e-300)
    return Axes(mean=mean, directions=directions, shares=shares)


def _blocks(run: TrainedEmbedding, types: Iterable[str]) -> Iterable[Doubles]:
    for name in types:
        for part in range(run.graph.num_partitions(name)):
            rows = run.rows(name, part)
            for begin in range(0, len(rows), _BLOCK):
                yield rows[begin : begin + _BLOCK].astype(np.float64)


def _choose(
    run: TrainedEmbedding, types: list[str], num_nodes: int, seed: int
) -> list[tuple[str, npt.NDArray[np.int64]]]:
    """Sample nodes of every type by their ids."""
    return [
        (name, np.sort(drawn))
        for name in types
        for drawn in draw_candidates(run.graph, run.model, name, num_nodes, 1, seed=seed)
    ]


def _values(
    run: TrainedEmbedding, shown: list[tuple[str, npt.NDArray[np.int64]]], color: str | None
) -> tuple[pa.Array, str]:
    """Return what colors each node, and what it is called."""
    columns = {
        name: [c for c in run.graph.nodes(name, 0).column_names if c != "id"]
        for name, _ in shown
    }
    known = sorted({column for some in columns.values() for column in some})
    if color is not None and color not in known:
        raise unknown_name("node column", color, known)
    chosen = color or next((c for c in _COLUMNS if c in known and len(shown) == 1), None)
    if chosen is None:
        owners = [name for name, numbers in shown for _ in range(len(numbers))]
        return pa.array(owners, pa.string()), "node type" if len(shown) > 1 else ""
    pieces = []
    for name, numbers in shown:
        if chosen not in columns[name]:
            pieces.append(pa.nulls(len(numbers)))
            continue
        parts = range(run.graph.num_partitions(name))
        tables = [run.graph.nodes(name, part).select([chosen]) for part in parts]
        column = pa.concat_tables(tables).column(chosen).take(pa.array(numbers))
        pieces.append(column.combine_chunks())
    kinds = {piece.type for piece in pieces if not pa.types.is_null(piece.type)}
    kind = kinds.pop() if len(kinds) == 1 else pa.string()
    return pa.concat_arrays([piece.cast(kind) for piece in pieces]), chosen


def _group(values: pa.Array) -> tuple[npt.NDArray[np.int64], list[str], bool]:
    """Sort values into at most eleven groups: their numbers, names, whether they rise."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_floating(values.type):
        numbers: Any = values.fill_null(float("nan")).to_numpy(zero_copy_only=False)
        finite = numbers[np.isfinite(numbers)]
        if not len(finite):
            return np.zeros(len(numbers), dtype=np.int64), [""], False
        bounds = np.unique(np.quantile(finite, np.linspace(0, 1, 9)))
        place = np.clip(np.searchsorted(bounds, numbers, "right") - 1, 0, len(bounds) - 1)
        return place.astype(np.int64), [f">= {bound:.4g}" for bound in bounds], True
    text = values.cast(pa.string()).fill_null("none")
    counted = pc.value_counts(text).to_pylist()
    counted.sort(key=lambda entry: (-entry["counts"], entry["values"]))
    names = [entry["values"] for entry in counted[:_GROUPS]]
    place = pc.index_in(text, value_set=pa.array(names, pa.string())).fill_null(len(names))
    rest = len(counted) - len(names)
    if rest > 0:
        names.append(f"{rest} others")
    return place.to_numpy(zero_copy_only=False).astype(np.int64), names, False


def _write(out: Path, content: bytes) -> None:
    with new_files(out) as [new]:
        new.write_bytes(content)
