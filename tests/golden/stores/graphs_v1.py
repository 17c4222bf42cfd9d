"""The hand-written graphs behind the golden stores of format version 1.

The stores in ``v1/`` were written once, by ``python -m tests.golden.stores.graphs_v1`` in
the repository's root, and stay as they are: whatever becomes of the format, they must
still open.
"""

import shutil
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from graphsys.core.types import EdgeType
from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

FOLDER: Final = Path(__file__).parent / "v1"
READS: Final = EdgeType("person", "reads", "book")

PEOPLE: Final = ["Ada", "Bj\u00f6rn", "\u674e", ""]
READ: Final = [
    # person, book, relation, weight, time, note
    ("Ada", 7, "likes", 0.5, 10, "twice"),
    ("Ada", 2**62, "likes", 1.0, 11, None),
    ("Bj\u00f6rn", 7, "owns", 2.0, 12, "a gift"),
    ("\u674e", 11, "likes", -1.0, -13, ""),
    ("\u674e", 11, "likes", -1.0, -13, ""),
    ("", 7, "owns", 0.0, 0, None),
]
TEST: Final = [("Ada", 11, "owns", 4.0, 20, "held out")]
ROADS: Final = [(1, 2), (2, 3), (3, 1), (4, 4), (5, 1)]


def write(folder: Path) -> None:
    """Write both stores."""
    books = [7, 11, 2**62]
    make_store(
        folder / "reading",
        NodeChunk(
            ids=pa.array(PEOPLE),
            node_type="person",
            columns={
                "label": np.arange(4),
                "split": pa.array(["train", "test", "train", None]),
            },
            features={"x": np.array([[1, -1], [2, -2], [3, -3], [4, -4]], np.float16)},
        ),
        NodeChunk(
            ids=np.array(books),
            node_type="book",
            features={"words": pa.array([[1, 5], [], [9]], pa.large_list(pa.uint32()))},
        ),
        *(
            edge_chunk(
                [row[:2] for row in rows],
                READS,
                split,
                relation=pa.array([row[2] for row in rows]),
                weight=np.array([row[3] for row in rows]),
                time=np.array([row[4] for row in rows]),
                note=pa.array([row[5] for row in rows], pa.string()),
            )
            for split, rows in (("train", READ), ("test", TEST))
        ),
        partitions={"person": 2, "book": 1},
        order="original",
    ).graph.close()
    make_store(
        folder / "roads", edge_chunk(ROADS), is_directed=False, partitions=2, order="degree"
    ).graph.close()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write(FOLDER)
