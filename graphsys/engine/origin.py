"""What a result is of: algorithm, parameters and state of the store, kept in its table."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from graphsys.engine.topology import Topology
from graphsys.storage.dynamic.delta_range import state_checksum

_KEY = b"graphsys"
_FREE = ("num_threads", "tolerance", "max_supersteps", "last")
"""Parameters that a result may differ in from what goes on from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a result was computed of.

    Attributes:
        algorithm: Its name.
        parameters: Parameters that decide about the values, as texts.
        generation: Of the store.
        deltas: How many the store had.
        checksum: Hash of the files that it had.
    """

    algorithm: str
    parameters: dict[str, str]
    generation: int
    deltas: int
    checksum: str


def parameters_of(
    function: Callable[..., Any], options: Mapping[str, Any]
) -> dict[str, str]:
    """Return the parameters that decide about values, as texts, defaults included."""
    given = inspect.signature(function).parameters.values()
    return {
        p.name: str(options.get(p.name, p.default))
        for p in given
        if p.kind is p.KEYWORD_ONLY and p.name not in _FREE
    }


def marked(
    table: pa.Table, algorithm: str, parameters: Mapping[str, str], topology: Topology
) -> pa.Table:
    """Return a table that tells what it is of; without a store it tells nothing."""
    graph = topology.graph
    if graph is None or graph.window is not None:
        return table
    manifest = graph.whole_manifest
    count = len(manifest.deltas)
    origin = Origin(
        algorithm=algorithm,
        parameters=dict(parameters),
        generation=manifest.generation,
        deltas=count,
        checksum=state_checksum(manifest, count),
    )
    known = table.schema.metadata or {}
    text = json.dumps(asdict(origin), sort_keys=True)
    return table.replace_schema_metadata({**known, _KEY: text.encode()})


def origin_of(table: pa.Table) -> Origin | None:
    """Return what a table tells it is of, or None."""
    text = (table.schema.metadata or {}).get(_KEY)
    if text is None:
        return None
    try:
        return Origin(**json.loads(text))
    except (TypeError, ValueError):
        return None
