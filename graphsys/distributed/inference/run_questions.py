"""What is asked of a run of embeddings on a cluster: ranks, neighbors, all its rows.

Every worker answers for its partitions; what they found is put together here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Location, is_remote
from graphsys.distributed.cluster import Cluster, refuse_views
from graphsys.distributed.group import WorkerGroup, started
from graphsys.distributed.inference.run_work import (
    RunWork,
    parts_beside,
    require_checkpoint,
    work_of,
)
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.embedding import run as runs
from graphsys.embedding.blas import single_threaded_blas
from graphsys.embedding.data.candidates import Draw
from graphsys.embedding.data.held_out import HeldOut, held_out_edges, with_split
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.evaluation.counts import Counted, joined, merged
from graphsys.embedding.evaluation.evaluate import (
    Asked,
    DirectionRanks,
    require_sampling,
    with_held_out,
)
from graphsys.embedding.evaluation.ranking import count_edges
from graphsys.embedding.files.export import InSlices, metadata_of, types_for
from graphsys.embedding.inference.ann_index import prepare
from graphsys.embedding.inference.nearest import BLOCK, answers, search_rows
from graphsys.embedding.rows.scorer import Scorer
from graphsys.graph.slices import Slice
from graphsys.storage.objects.staging import staging
from graphsys.storage.runs.run_folder import check_files, is_gnn_run
from graphsys.storage.transaction import disk_errors
from graphsys.training.row_files import check_target, to_batches, write_rows

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
            run = Embeddings(
                self._work.path,
                graph=self._work.graph,
                content=False,
                checkpoint=self._work.pinned,
            )
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


_BATCH = 1 << 14
_PARTITIONED = ("rows/", "state/")


def evaluate(
    run: str | Path,
    *,
    cluster: Cluster,
    split: str = "test",
    candidates: int | None = None,
    draw: Draw = "uniform",
    queries: int | None = None,
    seed: int = 0,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Rank the edges of a split on a cluster: every worker looks at its own candidates.

    Args:
        run: The run's folder, which all machines see.
        cluster: Where.
        split: As in :func:`graphsys.embedding.evaluate`, as all that is not named here.
        candidates: Size of samples of candidates.
        draw: How these are sampled.
        queries: How many questions.
        seed: Of the samples.
        progress: Receives one stage.

    Returns:
        What one machine does, and ``workers``.

    Raises:
        ConfigError: As on one machine; a network's run.
        ClusterError: Nothing answers, or a worker is lost again and again.
    """
    require_sampling(candidates, queries, draw)
    opened = _open(run)
    asked_run = with_held_out(opened, split)
    chosen = with_split(asked_run.graph, asked_run.model, split)
    most = None if queries is None else queries // 2
    held = held_out_edges(asked_run.graph, chosen, split, most=most, seed=seed)
    asked = Asked(asked_run, candidates, draw, seed, breakdown=True, threads=1)
    with _shards(cluster, opened) as shards:
        progress.stage(f"evaluate {split}", 2 * sum(map(len, held)), "queries")
        found = [
            _ranked(shards, asked, edges, split, asks_for_dst, progress)
            for edges in held
            if len(edges)
            for asks_for_dst in (True, False)
        ]
        size = shards.size
    result = {"split": split, "metrics": asked.measure(found), "workers": size}
    progress.close()
    return result


def nearest(
    run: str | Path,
    node: Any,
    k: int = 10,
    *,
    cluster: Cluster,
    node_type: str | None = None,
) -> tuple[pa.Table, int]:
    """Find the nodes closest to one, each worker among its own.

    Args:
        run: The run's folder, which all machines see.
        node: As in :func:`graphsys.embedding.nearest`, as all that is not named here.
        k: How many.
        cluster: Where.
        node_type: Type of the node.

    Returns:
        The table that one machine makes, and how many workers looked.

    Raises:
        ConfigError: As on one machine; a network's run.
        UnknownNameError: There is no such node.
        ClusterError: Nothing answers, or a worker is lost again and again.
    """
    if k < 1:
        raise ConfigError(f"k: got {k}, expected an int >= 1")
    opened = _open(run)
    chosen, number = opened.find(node, node_type)
    with _shards(cluster, opened) as shards:
        found = shards.ask_all("nearest", chosen, number, k)
        size = shards.size
    scores, numbers = (np.concatenate(each) for each in zip(*found, strict=True))
    return answers(opened, chosen, k, scores, numbers), size


def export(
    run: str | Path,
    out: str | Path,
    *,
    cluster: Cluster,
    node_type: str | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> int:
    """Write the embeddings to a file: workers make rows, one process encodes the file.

    Args:
        run: The run's folder, which all machines see.
        out: The file, as in :func:`graphsys.embedding.export`; its folder is seen by all,
            or it is on an object store, and what workers make goes beside it meanwhile.
        cluster: Where.
        node_type: Only this type.
        overwrite: Replace the file if there is one.
        progress: Receives one stage.

    Returns:
        How many workers made rows.

    Raises:
        ConfigError: As on one machine; a network's run.
        OutputExistsError: The file exists.
        StorageFullError: It cannot be written.
        ClusterError: Nothing answers, or a worker is lost again and again.
    """
    out = Path(out) if is_remote(out) else Path(out).absolute()
    check_target(out, overwrite=overwrite)
    opened = _open(run)
    types = types_for(opened, out, node_type)
    with (
        _shards(cluster, opened) as shards,
        disk_errors(out),
        _parts_for(out, cluster) as files,
    ):

        def batches(names: list[str]) -> Iterator[pa.RecordBatch]:
            for name in names:
                parts = shards.ask_all("write_rows", name, len(types) > 1, files.place)
                for part in parts:
                    yield from _read(files.local(part))
                    files.remove([part])

        write_rows(
            InSlices(opened),
            types,
            out,
            overwrite=overwrite,
            metadata=metadata_of(opened),
            batches=batches,
            progress=progress,
        )
        return shards.size


@contextmanager
def _parts_for(out: Path, cluster: Cluster) -> Iterator[SharedFiles]:
    """Have files for what goes into a file: beside it, or in this machine's cache."""
    if not is_remote(out) or not cluster.local_workers:
        with parts_beside(out) as files:
            yield files
        return
    with staging(Location.parse(out).parent) as folder:
        folder.mkdir()
        yield SharedFiles(folder)


def _open(run: str | Path) -> Embeddings:
    """Open a run; its rows are for the workers to check.

    Raises:
        ConfigError: It is a network's.
    """
    path = Path(run)
    if is_gnn_run(path):
        raise ConfigError(
            f"{path} is a run of a graph neural network, this takes runs of embeddings; "
            "open it by graphsys.distributed.opened_network"
        )
    opened = Embeddings(path, content=False)
    check_files(
        opened.path,
        *files_where(opened.state, lambda name: not name.startswith(_PARTITIONED)),
    )
    refuse_views(opened.graph)
    return opened


@contextmanager
def _shards(cluster: Cluster, run: Embeddings) -> Iterator[WorkerGroup]:
    """Start workers that have a run open."""
    work = work_of(run, cluster)

    def most() -> int:
        return max(run.graph.num_partitions(name) for name in run.node_types)

    with started(cluster, RunShard, [work], most) as shards:
        yield shards


def _ranked(
    shards: WorkerGroup,
    asked: Asked,
    edges: HeldOut,
    split: str,
    asks_for_dst: bool,
    progress: Progress,
) -> DirectionRanks:
    """Have the edges of one type ranked, a batch at a time."""
    kind = edges.relations.edge_type
    samples, negatives = asked.samples(kind.dst_type if asks_for_dst else kind.src_type)
    question = Questions(
        split=split,
        edge_type=edges.relations.name,
        asks_for_dst=asks_for_dst,
        columns={},
        samples=samples,
        negatives=negatives,
    )
    columns = ("src", "relation", "dst", "key")
    cuts = [slice(b, b + _BATCH) for b in range(0, len(edges), _BATCH)]
    questions = (
        (replace(question, columns={name: getattr(edges, name)[cut] for name in columns}),)
        for cut in cuts
    )
    parts = []
    for counted in shards.stream("count", questions):
        parts.append(merged(counted))
        progress.advance(len(parts[-1].counts))
    ranks = joined(parts).ranks()
    return DirectionRanks(edges=edges, asks_for_dst=asks_for_dst, ranks=ranks)


def _read(part: Path) -> Iterator[pa.RecordBatch]:
    if not part.stat().st_size:  # a share without nodes
        return
    with pa.memory_map(str(part)) as mapped:
        reader = pa.ipc.open_file(mapped)
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)
