"""The golden store of format version 4: one whose times have a unit.

Run as a module to write it anew, which is only for a version that is not on main yet.
"""

import shutil
from pathlib import Path

import numpy as np

from tests.stores import edge_chunk, make_store

FOLDER = Path(__file__).parent / "v4"
EDGES = {(1, 2): "2024-05-01T09:30", (2, 3): "2024-05-02T00:00", (1, 3): "1969-12-31T23:59"}
"""The time of every pair."""


def write(folder: Path) -> None:
    """Write the store ``calls``: three edges with times to the second."""
    times = np.array(list(EDGES.values()), "datetime64[s]")
    make_store(folder / "calls", edge_chunk(list(EDGES), time=times)).graph.close()


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    write(FOLDER)
