"""Caches of which a quarter of the sets was looked at, beside all of them."""

import math
import statistics

from bench.study.finding import GPU, LABELS, OLD
from bench.study.statistics import Rows

HEADS = (
    "hit rate",
    "runs",
    "off by, median",
    "at most",
    "stated error, median",
    "off by at most two errors",
)
CLEAR = 2.0


def beside_all(rows: Rows) -> list[tuple[str, ...]]:
    """Return how far hit rates of sampled sets are from those of all, by GPU and size.

    Runs that were sampled alone are not among them.

    Args:
        rows: The runs of the case ``schedulers``.
    """
    lines = []
    for size in sorted({_size(figures) for _, figures in rows}):
        for gpu in (GPU, OLD):
            for level in (1, 2):
                own = [it for _, it in rows if _size(it) == size]
                found = _differences(own, gpu, f"l{level}_hit_rate")
                if found:
                    what = f"{LABELS[gpu]} L{level}, about 1e{size} entries or values"
                    lines.append((what, *_told(found)))
    return lines


def _size(figures: dict[str, float]) -> int:
    return round(math.log10(max(figures.get("entries", 1.0), 1.0)))


def _differences(
    figures: list[dict[str, float]], gpu: str, name: str
) -> list[tuple[float, float]]:
    """Return how far off each run is, and the error that was stated."""
    sampled = f"{gpu} sampled {name}"
    return [
        (abs(own[sampled] - own[f"{gpu} {name}"]), own[f"{sampled}_error"])
        for own in figures
        if f"{gpu} {name}" in own and f"{sampled}_error" in own
    ]


def _told(found: list[tuple[float, float]]) -> tuple[str, ...]:
    off, errors = zip(*found, strict=True)
    within = statistics.fmean(a <= CLEAR * b for a, b in found)
    return (
        str(len(found)),
        f"{statistics.median(off):.2%}",
        f"{max(off):.2%}",
        f"{statistics.median(errors):.2%}",
        f"{within:.0%}",
    )
