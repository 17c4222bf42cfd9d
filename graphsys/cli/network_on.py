"""A network's run for a command: its folder, or opened on a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphsys.cli.options import parse_cluster


@contextmanager
def network_on(
    cluster: str | None, run: Path, graph: Any = None, *, memory: str | None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield what functions of :mod:`graphsys.gnn` take as a run, and what to tell of it.

    Args:
        cluster: What ``--cluster`` was given.
        run: Folder of the run.
        graph: The graph, if it is not where it was.
        memory: What ``--memory`` was given, which a cluster does not take.

    Yields:
        The run, and ``workers`` where there are any.
    """
    if cluster is None:
        yield run, {}
        return
    where = parse_cluster(cluster, memory=memory)
    from graphsys import distributed

    with distributed.opened_network(run, cluster=where, graph=graph) as opened:
        yield opened, {"workers": opened.workers}
