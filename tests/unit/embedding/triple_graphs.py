"""Graphs out of lists of triples, for tests that need several of one content."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.types import EdgeType
from graphsys.storage import Graph
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, Source

TRIPLE = EdgeType("entity", "triple", "entity")
Triples = Sequence[tuple[Any, Any, Any]]


class Listed(Source):
    """Triples (head, relation, tail) by split; without relations where they are None."""

    name = "listed"

    def __init__(self, splits: Mapping[str, Triples], *, directed: bool = True) -> None:
        self._splits = splits
        self.is_directed = directed

    def chunks(self) -> Iterator[EdgeChunk]:
        for split, triples in self._splits.items():
            heads, relations, tails = zip(*triples, strict=True)
            columns = {} if relations[0] is None else {"relation": pa.array(relations)}
            ends = [
                pa.array(e) if isinstance(e[0], str) else np.array(e)
                for e in (heads, tails)
            ]
            yield EdgeChunk(
                src=ends[0], dst=ends[1], edge_type=TRIPLE, split=split, columns=columns
            )


def write(path: Path, splits: Mapping[str, Triples] | Triples, **options: Any) -> Graph:
    """Ingest triples; a bare list is the split train."""
    directed = options.pop("directed", True)
    chosen = splits if isinstance(splits, Mapping) else {"train": splits}
    return ingest(Listed(chosen, directed=directed), path, **options).graph


def read_triples(folder: Path, split: str) -> list[tuple[str, str, str]]:
    """Read a split of a knowledge graph: lines of head, relation, tail."""
    lines = (folder / f"{split}.txt").read_text().splitlines()
    return [(head, relation, tail) for head, relation, tail in map(str.split, lines)]
