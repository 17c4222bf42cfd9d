"""Embeddings as files: Parquet, Arrow, CSV, TSV, NumPy, safetensors, keyed by ids."""

from pathlib import Path

from graphsys.core.memory import stated_budget
from graphsys.core.progress import SILENT, Progress
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.rows.node_rows import require_one_dim
from graphsys.storage.reader import GraphReader
from graphsys.training.row_files import check_target, write_rows


def export(
    run: str | Path | Embeddings,
    out: str | Path,
    *,
    node_type: str | None = None,
    graph: GraphReader | None = None,
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
    return write_rows(
        InSlices(opened),
        types_for(opened, out, node_type),
        out,
        overwrite=overwrite,
        metadata=metadata_of(opened),
        budget=budget,
        progress=progress,
    )


def types_for(run: Embeddings, out: Path, node_type: str | None) -> list[str]:
    """Return the node types that go to a file: the one given, or all.

    Raises:
        UnknownNameError: There is no such type.
        ConfigError: Their rows are of different lengths, which the format does not take.
    """
    types = [node_type] if node_type is not None else run.node_types
    for name in types:
        run.dim_of(name)  # an unknown type ends here
    if out.suffix != ".safetensors":
        require_one_dim(run.config, types, f"cannot export to {out.name!r}")
    return types


def metadata_of(run: Embeddings) -> dict[str, str]:
    """Return what a ``.safetensors`` file tells of a run."""
    return {"dim": str(run.config.dim)}


class InSlices:
    """A run whose rows are made when they are written, if they are not in its files."""

    def __init__(self, run: Embeddings) -> None:
        self.graph, self.rows, self.dim_of = run.graph, run.blocks, run.dim_of
