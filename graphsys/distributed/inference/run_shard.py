"""One worker's share of a run of embeddings: what it counts, finds and writes of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.progress import SILENT
from graphsys.distributed.inference.run_work import RunWork, require_checkpoint
from graphsys.distributed.shared_files import shared_files
from graphsys.embedding import run as runs
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.data.held_out import HeldOut
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.evaluation.counts import Counted
from graphsys.embedding.evaluation.evaluate import with_held_out
from graphsys.embedding.evaluation.ranking import count_edges
from graphsys.embedding.files.export import InSlices
from graphsys.embedding.inference.ann_index import prepare
from graphsys.embedding.inference.nearest import BLOCK, search_rows
from graphsys.embedding.rows.scorer import Scorer
from graphsys.graph.slices import Slice
from graphsys.storage.runs.run_folder import check_files
from graphsys.training.row_files import to_batches

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Held-out edges, asked about in one direction.

    Attributes:
        split: Where they are from.
        edge_type: Name of their type.
        asks_for_dst: Whether the source is given, or the destination.
        columns: ``src``, ``relation``, ``dst`` and ``key`` of the edges.
        samples: Candidates, as in ``rank_edges``.
        negatives: Wrong answers, likewise.
    """

    split: str
    edge_type: str
    asks_for_dst: bool
    columns: dict[str, npt.NDArray[np.generic]]
    samples: list[Ints] | None
    negatives: list[Ints] | None


class RunShard:
    """A share of a run, opened: rows of other workers' nodes are read where asked about.

    Args:
        rank: Number of the worker.
        size: How many there are.
        work: The run.

    Raises:
        ConfigError: The run is not what the others have opened.
        CorruptStoreError: A file of the own share is damaged.
    """

    def __init__(self, rank: int, size: int, work: RunWork) -> None:
        self._work, self.share = work, Slice(rank, size)
        self._run: Embeddings | None = None
        self._held_out: dict[str, Embeddings] = {}

    @property
    def run(self) -> Embeddings:
        """The run."""
        if self._run is None:
            run = Embeddings(self._work.path, graph=self._work.graph, content=False)
            require_checkpoint(self._work, run.path, run.state)
            names = {
                runs.find_file(run.state, runs.rows_file(name, part, 0))
                for name in run.node_types
                for part, _, _ in self.share.partitions(run.graph.offsets(name))
            }
            check_files(run.path, *files_where(run.state, names.__contains__))
            self._run = run
        return self._run

    def ready(self) -> None:
        """Return when the run is open; what is wrong with it ends here."""
        _ = self.run

    def count(self, asked: Questions) -> Counted:
        """Count own candidates before the true answers of some edges."""
        if asked.split not in self._held_out:
            self._held_out[asked.split] = with_held_out(self.run, asked.split)
        run = self._held_out[asked.split]
        relations = next(m for m in run.model if m.name == asked.edge_type)
        edges = HeldOut(relations=relations, **asked.columns)  # type: ignore[arg-type]
        with single_threaded_blas():
            return count_edges(
                Scorer(run, relations, asked.asks_for_dst),
                edges,
                samples=asked.samples,
                negatives=asked.negatives,
                threads=self._work.threads,
                share=self.share,
                progress=SILENT,
            )

    def nearest(self, node_type: str, number: int, k: int) -> tuple[Floats, Ints]:
        """Return scores and numbers of the own nodes closest to one, ``[n]``, n <= k."""
        rows = prepare(self.run.take(node_type, np.array([number])), self.run.config)
        found = search_rows(self.run, node_type, rows, k + 1, BLOCK, self.share)
        scores, numbers = found[0][0], found[1][0]
        is_other = (numbers != number) & (numbers >= 0)
        scores, numbers = scores[is_other], numbers[is_other]
        order = np.lexsort((numbers, -scores))[:k]
        return scores[order], numbers[order]

    def write_rows(self, node_type: str, is_typed: bool, place: str) -> str:
        """Write ids and own rows of a type, whole or not at all; return the file."""
        name, writer = f"{self.share.rank}.arrow", None
        batches = to_batches(
            InSlices(self.run), [node_type], is_typed=is_typed, share=self.share
        )
        with shared_files(place) as files:
            new = files.path / f"{self.share.rank}.new"
            with new.open("wb") as stream:
                for batch in batches:
                    writer = writer or pa.ipc.new_file(stream, batch.schema)
                    writer.write_batch(batch)
                if writer is not None:
                    writer.close()
            files.add(name, new)
        return name


def files_where(
    state: runs.EmbeddingRunState, is_meant: Callable[[str], bool]
) -> tuple[dict[str, int], dict[str, Any]]:
    """Return bytes and checksums of some files of a checkpoint."""
    files, checksums = state.files.items(), state.checksums.items()
    return (
        {name: size for name, size in files if is_meant(name)},
        {name: value for name, value in checksums if is_meant(name)},
    )
