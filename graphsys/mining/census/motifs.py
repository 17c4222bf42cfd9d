"""All connected motifs of 3, 4 or 5 nodes."""

from collections.abc import Callable
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.core.progress import SILENT, Progress
from graphsys.mining.census.device import device_kernels
from graphsys.mining.census.five_motifs import copies_of_5
from graphsys.mining.census.shapes import induced_counts, shapes_of
from graphsys.mining.census.small import copies_of_3, copies_of_4
from graphsys.mining.census.sums import DegreeOrderedGraph, SmallCounts, kernels_of

_SMALL: Final[dict[int, Callable[[SmallCounts], dict[str, int]]]] = {
    3: copies_of_3,
    4: copies_of_4,
}


def motif_counts(
    rows: DegreeOrderedGraph,
    size: int,
    *,
    induced: str = "vertex",
    num_threads: int | None = None,
    progress: Progress = SILENT,
    device: str = "cpu",
) -> dict[str, int]:
    """Count all connected motifs of a size, by name.

    Exact, of any size: sums are kept in two words. For 5 nodes the third nodes of all
    triangles are listed, which takes 12 bytes for each triangle.

    Args:
        rows: The graph.
        size: 3, 4 or 5.
        induced: ``vertex`` counts the sets of nodes whose edges are the motif, each set
            once; ``edge`` the sets of edges that are the motif.
        num_threads: All cores by default.
        progress: Receives a stage for each kernel.
        device: ``cpu``, or ``cuda`` for sizes 3 and 4.

    Raises:
        ConfigError: motifs of this size are not counted there, or ``induced`` is neither
            word.

    Examples:
        >>> import numpy as np
        >>> from types import SimpleNamespace
        >>> square = SimpleNamespace(  # of nodes 0 to 3
        ...     indptr=np.array([0, 2, 4, 6, 8]),
        ...     indices=np.array([1, 3, 0, 2, 1, 3, 0, 2], dtype=np.int32),
        ... )
        >>> motif_counts(square, 3)
        {'3-path': 4, 'triangle': 0}
    """
    shapes_of(size)
    if induced not in ("vertex", "edge"):
        raise ConfigError(
            f"induced={induced!r} is neither 'vertex' nor 'edge'; motifs are counted "
            "vertex-induced unless 'edge' is asked for"
        )
    copies = _copies(rows, size, num_threads, progress, device)
    named = {name: copies[name] for name in shapes_of(size)}
    return induced_counts(size, named) if induced == "vertex" else named


def _copies(
    rows: DegreeOrderedGraph,
    size: int,
    num_threads: int | None,
    progress: Progress,
    device: str,
) -> dict[str, int]:
    """Count the copies of all connected graphs of a size."""
    if device == "cuda":
        if size not in _SMALL:
            raise ConfigError(
                f"device='cuda' counts motifs of 3 and 4 nodes, got {size}; those of "
                f"{size} are counted on device='cpu'"
            )
        with device_kernels(rows, progress) as on_device:
            return _SMALL[size](on_device)
    with kernels_of(rows, num_threads, progress) as kernels:
        return _SMALL[size](kernels) if size in _SMALL else copies_of_5(kernels)
