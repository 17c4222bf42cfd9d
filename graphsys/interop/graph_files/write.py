"""A store as a folder of files: which format, within which memory, whole or not at all."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from graphsys.core import ownership
from graphsys.core.errors import ConfigError, OutputExistsError, unknown_name
from graphsys.core.memory import require_budget, resident_bytes, stated_budget
from graphsys.core.progress import SILENT, Progress
from graphsys.interop.graph_files.blocks import (
    LARGEST_BLOCK,
    LEAST_BLOCK,
    EdgeRows,
    node_blocks,
)
from graphsys.interop.graph_files.csr import write_csr
from graphsys.interop.graph_files.graphar import write_graphar
from graphsys.interop.graph_files.icebug import write_icebug
from graphsys.storage.folder_kinds import kind_of, require_outside
from graphsys.storage.reader import GraphReader
from graphsys.storage.transaction import disk_errors, sync_file, sync_folder


def require_free(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that may not be written, before any work is done.

    Raises:
        ConfigError: It is a graph or a run, lies in one, is no folder, or holds files that
            no export wrote.
        OutputExistsError: It exists, with files in it, and ``overwrite`` is off.
    """
    require_outside(out)
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise ConfigError(f"{out} is no folder; name a new one")
    if not out.exists() or not any(out.iterdir()):
        return
    if (kind := kind_of(out)) is not None:
        raise ConfigError(f"{out} is a {kind}; name a new folder")
    listed = ownership.claimed_names(out)
    if not ownership.is_claimed(out):
        raise ConfigError(f"{out} holds files that no export wrote; name a new folder")
    if others := ownership.strangers(out, lambda it: it in listed or _is_claim(it)):
        raise ConfigError(
            f"{out} holds {others[0]!r}, which no export wrote; name a new folder"
        )
    if not overwrite:
        raise OutputExistsError(f"{out} exists; replace it with --overwrite")


@contextlib.contextmanager
def new_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder to write files in; at the end it takes its place.

    A hidden file in it lists what was written, so that a later export may replace it. What
    a killed writer of the same folder left beside it goes.

    Args:
        out: The folder to make, or to replace.
        overwrite: Replace one that an export made.

    Raises:
        ConfigError: As :func:`require_free`.
        OutputExistsError: As :func:`require_free`.
        StorageFullError: It cannot be written; the old one stays.
    """
    require_free(out, overwrite=overwrite)
    with disk_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        _sweep(out)
        draft = ownership.make_folder(ownership.draft_of(out))
        lock = os.open(draft, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ownership.claim(draft)
            yield draft
            ownership.unclaim(draft)
            names = sorted(ownership.files_below(draft))
            ownership.claim(draft, names, moved_to=out.name)
            for name in names:
                sync_file(draft / name)
            require_free(out, overwrite=overwrite)
            _move(draft, out)
        finally:
            ownership.remove_folder(draft)
            os.close(lock)


def _move(draft: Path, out: Path) -> None:
    aside = ownership.draft_of(out)
    if out.exists():
        claims = {it.name for it in out.iterdir() if _is_claim(it.name)}
        ownership.claim(out, ownership.claimed_names(out) | claims, moved_to=aside.name)
        out.rename(aside)
    draft.rename(out)
    sync_folder(out.parent)
    ownership.remove_claimed(aside, lambda name: False)
    ownership.remove_empty(aside)


def _is_claim(name: str) -> bool:
    """Return whether a name is of a claim, be it for another name of the folder."""
    return ownership.CLAIM.fullmatch(name) is not None


def _sweep(out: Path) -> None:
    """Remove the unfinished folders of writers that are dead: nobody holds their locks."""
    for path in out.parent.iterdir():
        is_left = ownership.is_draft(path.name, out.name)
        if is_left and path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError), ownership.held_alone(path):
                ownership.remove_claimed(path, lambda name: True)


FORMATS: Final = ("csr", "graphar", "networkit")
_IN_PYTHON: Final = {
    "pyg": "graphsys.open(GRAPH).to_pyg()",
    "dgl": "graphsys.open(GRAPH).to_dgl()",
}
_COPIES: Final = 6  # of a block: sorted, taken, cast, encoded
_WRITER_BYTES: Final = 64 << 20  # libraries at their first use, pages that are encoded


def check_format(name: str) -> None:
    """Refuse what is no format of graphs.

    Raises:
        UnknownNameError: There is none of that name.
        ConfigError: Its files would be pickles; the message names the call in Python.
    """
    if name in _IN_PYTHON:
        raise ConfigError(
            f"format {name!r}: its files would be pickles, which run code where they are "
            f"read; call {_IN_PYTHON[name]} in Python, or give --format csr"
        )
    if name not in FORMATS:
        raise unknown_name("format of graphs", name, FORMATS)


def write_graph(
    graph: GraphReader,
    out: Path | str,
    *,
    format: str = "csr",
    memory: int | str | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Write a graph as a folder of files of another system.

    Nodes are numbered as in the store. Of edges with splits the training ones are written,
    as every index holds them.

    Args:
        graph: An open graph.
        out: The folder to make.
        format: "csr" (NumPy arrays), "graphar" (GraphAr 1) or "networkit" (icebug-disk 1).
        memory: Most memory of the process; None: no limit. Rows are then written fewer
            at a time.
        overwrite: Replace a folder that an earlier call made.
        progress: Receives a stage for each type.

    Returns:
        What was written: ``output``, ``format``, ``num_nodes``, ``num_edges`` (as stored),
        and ``splits_left_out`` by edge type.

    Raises:
        UnknownNameError: There is no such format.
        ConfigError: PyG's and DGL's graphs, which are pickles; a column that the format has
            no type for; a folder that no export wrote.
        OutputExistsError: The folder exists.
        StorageFullError: It cannot be written; what was there stays.
        BudgetError: The memory is too small; the message names an amount that works.

    Complexity:
        O(N + E) time; memory for some rows, and what indexes of later changes take.
    """
    check_format(format)
    out = Path(out)
    require_free(out, overwrite=overwrite)
    rows = _rows_within(graph, format, stated_budget(memory))
    writers: dict[str, Any] = {
        "csr": write_csr,
        "graphar": partial(write_graphar, name=out.absolute().name),
        "networkit": write_icebug,
    }
    with new_folder(out, overwrite=overwrite) as folder:
        writers[format](graph, folder, rows, progress)
    progress.close()
    left = {
        name: [it for it in graph.splits(name) if it != graph.default_split(name)]
        for name in graph.manifest.edge_types
    }
    return {
        "output": str(out),
        "format": format,
        "num_nodes": graph.num_nodes,
        "num_edges": graph.num_edges,
        "splits_left_out": {name: splits for name, splits in left.items() if splits},
    }


def _rows_within(graph: GraphReader, format: str, budget: int | None) -> int:
    """Return how many rows are written at a time within a budget.

    Raises:
        BudgetError: It is not enough for a few.
    """
    if budget is None:
        return LARGEST_BLOCK
    edges = [EdgeRows(graph, name).row_bytes for name in graph.manifest.edge_types]
    nodes = [_node_bytes(graph, name) for name in graph.node_types]
    row_bytes = _COPIES * max([*edges, *nodes, 1])
    beside = resident_bytes() + _WRITER_BYTES
    rows = min(max((budget - beside) // row_bytes, LEAST_BLOCK), LARGEST_BLOCK)
    require_budget(f"writing {format}", beside + rows * row_bytes, budget)
    return int(rows)


def _node_bytes(graph: GraphReader, name: str) -> int:
    """Return the bytes of a node of a type, by some of them."""
    block = next(node_blocks(graph, name, LEAST_BLOCK), None)
    if block is None or not block.table.num_rows:
        return 0
    features = sum(values.nbytes for values in block.features.values())
    return int((block.table.nbytes + features) // block.table.num_rows) + 16
