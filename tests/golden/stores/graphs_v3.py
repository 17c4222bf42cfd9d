"""The golden store of format version 3: one with deltas.

Run as a module to write it anew, which is only for a version that is not on main yet.
"""

import shutil
from pathlib import Path
from typing import Any

from graphsys.storage import EdgeChunk
from graphsys.storage.dynamic.append import append
from tests.stores import ListSource, edge_chunk, make_store

FOLDER = Path(__file__).parent / "v3"
EDGES = [(1, 2, 10), (2, 4, 20), (1, 7, 50)]
"""What is left: smaller id, larger id, time."""
REMOVED = (1, 4)


def write(folder: Path) -> None:
    """Write the store ``news``: three undirected edges; one goes as another comes."""
    first = [*EDGES[:2], (*REMOVED, 30)]
    options: dict[str, Any] = {"order": "original", "is_directed": False}
    make_store(folder / "news", _chunk(first), **options).graph.close()
    gone = [ListSource([edge_chunk([REMOVED], time=[45])])]
    new = ListSource([_chunk(EDGES[2:])], is_directed=False)
    append(folder / "news", new, deletes=gone).graph.close()


def _chunk(rows: list[tuple[int, int, int]]) -> EdgeChunk:
    return edge_chunk([row[:2] for row in rows], time=[row[2] for row in rows])


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write(FOLDER)
