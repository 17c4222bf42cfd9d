"""What is asked of a run of embeddings on a cluster: ranks, neighbors, all its rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.core.remote.locations import Location, is_remote
from graphsys.distributed.cluster import Cluster, refuse_views
from graphsys.distributed.group import WorkerGroup, started
from graphsys.distributed.inference.parts_folder import parts_beside
from graphsys.distributed.inference.run_shard import Questions, RunShard, files_where
from graphsys.distributed.inference.run_work import work_of
from graphsys.distributed.shared_files import SharedFiles
from graphsys.embedding.data.candidates import Draw
from graphsys.embedding.data.held_out import HeldOut, held_out_edges, with_split
from graphsys.embedding.embeddings import Embeddings
from graphsys.embedding.evaluation.counts import joined, merged
from graphsys.embedding.evaluation.evaluate import (
    Asked,
    DirectionRanks,
    require_sampling,
    with_held_out,
)
from graphsys.embedding.files.export import InSlices, metadata_of, types_for
from graphsys.embedding.inference.nearest import answers
from graphsys.storage.objects.staging import staging
from graphsys.storage.runs.run_folder import check_files, is_gnn_run
from graphsys.storage.transaction import disk_errors
from graphsys.training.row_files import check_target, write_rows

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
    work = work_of(run.path, run.graph.path, run.state, cluster)

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
