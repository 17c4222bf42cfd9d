"""The work of ``graphsys mine``: one library function each."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphsys.cli.console import print_json, visible
from graphsys.cli.progress import open_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from graphsys.distributed.mining_run import ClusterCounts
    from graphsys.mining import FrequentPattern
    from graphsys.storage import IngestReport
    from graphsys.storage.reader import GraphReader


def count(
    graph: Path,
    patterns: list[str],
    induced: str,
    labels: str | None,
    threads: int | None,
    device: str,
    memory: str | None,
    disconnected: bool,
) -> dict[str, int]:
    """Count patterns."""
    from graphsys import mining

    return mining.count_all(
        graph,
        patterns,
        induced=induced,
        labels=labels,
        num_threads=threads,
        progress=open_progress(),
        device=device,
        memory=memory,
        disconnected=disconnected,
    )


def explain(
    graph: Path,
    patterns: list[str],
    induced: str,
    labels: str | None,
    memory: str | None,
    disconnected: bool,
    *,
    as_json: bool,
) -> None:
    """Say how patterns would be counted."""
    from graphsys import mining

    lines, python = mining.explain_all(
        graph,
        patterns,
        induced=induced,
        labels=labels,
        memory=memory,
        disconnected=disconnected,
    )
    if as_json:
        plans = dict(zip(patterns, lines, strict=True))
        codes = {text: code for text, code in zip(patterns, python, strict=True) if code}
        more = {"python": codes} if codes else {}
        print_json({"plans": plans, **more, "induced": induced})
        return
    for text, said in zip(patterns, lines, strict=True):
        sys.stdout.write(visible(f"{text} ({induced}-induced)\n"))
        sys.stdout.writelines(visible(f"  {line}\n") for line in said)
    for code in dict.fromkeys(filter(None, python)):  # patterns share it
        names = [text for text, own in zip(patterns, python, strict=True) if own == code]
        sys.stdout.write(visible(f"\n# counts {' and '.join(names)}\n{code}"))


def one_listed(patterns: list[str], out: Path | None) -> tuple[str, Path]:
    """Return the pattern and the file of a list by options.

    Raises:
        ConfigError: There are several patterns, or no file.
    """
    from graphsys.core.errors import ConfigError

    if out is None or len(patterns) > 1:
        raise ConfigError(
            "--list writes the matches of one --pattern to a file; name it: -o x.parquet"
        )
    return patterns[0], out


def list_matches(
    graph: Path,
    pattern: str,
    induced: str,
    labels: str | None,
    out: Path,
    limit: int | None,
    threads: int | None,
    overwrite: bool,
    memory: str | None,
) -> int:
    """Write the matches of a pattern; return how many they are."""
    from graphsys import mining

    return mining.write_matches(
        graph,
        pattern,
        out,
        induced=induced,
        labels=labels,
        limit=limit,
        num_threads=threads,
        overwrite=overwrite,
        memory=memory,
    )


def census(
    graph: Path,
    size: int,
    induced: str,
    threads: int | None,
    device: str,
    memory: str | None,
) -> dict[str, int]:
    """Count all motifs of a size."""
    from graphsys import mining

    return mining.motif_census(
        graph,
        size,
        induced=induced,
        num_threads=threads,
        progress=open_progress(),
        device=device,
        memory=memory,
    )


def count_on_cluster(
    graph: Path, cluster: str, induced: str, threads: int | None, wanted: dict[str, Any]
) -> "ClusterCounts":
    """Count patterns or motifs on a cluster."""
    import graphsys
    from graphsys.distributed.cluster import Cluster
    from graphsys.distributed.mining_run import count_on_cluster

    where = Cluster.parse(cluster)
    with graphsys.open(graph) as opened:
        return count_on_cluster(
            opened,
            where,
            induced=induced,
            num_threads=threads,
            progress=open_progress(),
            **wanted,
        )


def orbits(
    graph: Path,
    is_per_edge: bool,
    features: bool,
    threads: int | None,
    memory: str | None,
) -> "pa.Table":
    """Count the places of nodes or edges."""
    from graphsys import mining

    per: Any = "edge" if is_per_edge else "node"
    return mining.orbits(
        graph, per=per, features=features, num_threads=threads, memory=memory
    )


def store(
    graph: Path, out: Path, threads: int | None, memory: str | None, overwrite: bool
) -> "IngestReport[GraphReader]":
    """Write a graph again with the places of its nodes as features."""
    from graphsys import mining

    return mining.store_with_orbits(
        graph,
        out,
        num_threads=threads,
        memory=memory or "4GB",
        overwrite=overwrite,
        progress=open_progress(),
    )


def frequent(graph: Path, wanted: dict[str, Any]) -> "list[FrequentPattern]":
    """Find frequent patterns."""
    from graphsys import mining

    return mining.frequent_patterns(graph, **wanted)


def timed(work: Any) -> tuple[Any, dict[str, float]]:
    """Return what a function does, and its seconds without and in compiling."""
    from graphsys.core.compiling import CompileWatch

    with CompileWatch() as watch:
        began = time.perf_counter()
        done = work()
        seconds = time.perf_counter() - began
    facts = {"seconds": seconds - watch.seconds, "compile_seconds": watch.seconds}
    return done, facts
