"""Embeddings as files: Parquet, Arrow, CSV, TSV, NumPy, safetensors, keyed by ids."""

from pathlib import Path

from graphsys.core.budget import stated_budget
from graphsys.core.progress import SILENT, Progress
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.rows.node_rows import require_one_dim
from graphsys.storage.reader import Graph
from graphsys.training.row_files import check_target, write_rows


def export(
    run: str | Path | Embeddings,
    out: str | Path,
    *,
    node_type: str | None = None,
    graph: Graph | None = None,
    overwrite: bool = False,
    memory: int | str | None = None,
    progress: Progress = SILENT,
) -> Path:
    """Write the embeddings to a file whose suffix says the format.

    ``.parquet`` and ``.arrow`` have columns ``id``, ``embedding`` (FixedSizeList<float32>)
    and, for several node types, ``type`` (ids are text then); ``.tsv`` has the same id
    (and type) followed by one column per dimension, without a header, ``.csv`` with one;
    ``.jsonl`` an object a line, ``.json`` a list of them.
    ``.npy`` holds the rows alone and ``.safetensors`` one tensor per node type; the ids lie
    beside them, in the order of the rows, in ``OUT.ids.parquet``.

    Args:
        run: A run or its folder.
        out: The file.
        node_type: Only this type; all by default.
        graph: The graph trained on, if it is not where it was.
        overwrite: Replace the file if there is one.
        memory: Budget of anonymous memory of the process, as ``"4GB"`` or in bytes.
        progress: Receives one stage.

    Returns:
        The file.

    Raises:
        ConfigError: The suffix is not a known one.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        BudgetError: The budget is too small; the message names one that works.
    """
    out, budget = Path(out), stated_budget(memory)
    check_target(out, overwrite=overwrite)
    opened = run if isinstance(run, Embeddings) else Embeddings(run, graph=graph)
    types = [node_type] if node_type is not None else opened.node_types
    for name in types:
        opened.dim_of(name)  # an unknown type ends here
    if out.suffix != ".safetensors":
        require_one_dim(opened.config, types, f"cannot export to {out.name!r}")
    metadata = {"dim": str(opened.config.dim)}
    return write_rows(
        _InSlices(opened), types, out, overwrite=overwrite, metadata=metadata,
        budget=budget, progress=progress,
    )  # fmt: skip


class _InSlices:
    """A run whose rows are made when they are written, if they are not in its files."""

    def __init__(self, run: Embeddings) -> None:
        self.graph, self.rows, self.dim_of = run.graph, run.blocks, run.dim_of
