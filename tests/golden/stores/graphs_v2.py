"""The golden store of format version 2: rows of features that are stored once.

Run as a module to write it anew, which is only for a version that is not on main yet.
"""

import shutil
from pathlib import Path

import numpy as np

from graphsys.storage import NodeChunk
from tests.stores import edge_chunk, make_store

FOLDER = Path(__file__).parent / "v2"
SHARED = "gen-1/features/node/x/part-0.arrow"
X = np.array([[1, 2, 3], [4, 5, 6]] * 6, dtype=np.float32)


def write(folder: Path) -> None:
    """Write the store ``pins``: 12 nodes that have one of two rows."""
    make_store(
        folder / "pins",
        NodeChunk(ids=np.arange(12), features={"x": X}),
        edge_chunk([(0, 1), (1, 2)]),
        partitions=2,
        order="original",
        features_as="shared",
    ).graph.close()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write(FOLDER)
