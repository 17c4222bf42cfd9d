"""What writes a store, for users: the report has the graph that they use."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, cast

from graphsys.datasets import build_store
from graphsys.facade.graph import Graph
from graphsys.storage.ingest import split as split_store
from graphsys.storage.ingest.ingest import IngestReport
from graphsys.storage.reader import GraphReader

P = ParamSpec("P")


def for_users(
    write: Callable[P, IngestReport[GraphReader]],
) -> Callable[P, IngestReport[Graph]]:
    """Return a function that writes a store with :class:`Graph` in its report."""

    @functools.wraps(write)
    def written(*args: P.args, **options: P.kwargs) -> IngestReport[Graph]:
        report = write(*args, **options)
        return cast("IngestReport[Graph]", replace(report, graph=Graph.of(report.graph)))

    return written


ingest = for_users(build_store.ingest)
split = for_users(split_store.split)
