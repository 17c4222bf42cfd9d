"""The pages' colors: one for each meaning, of runs, trainings, clusters and comparisons."""

from typing import Final

COLORS: Final = {
    # text and paper
    "ink": ("#1d2329", "#e7eaee"),
    "soft": ("#5d6670", "#9aa4af"),
    "paper": ("#ffffff", "#14171b"),
    "card": ("#f5f6f8", "#1c2026"),
    "line": ("#dde1e6", "#333a43"),
    "accent": ("#2a5bd7", "#7aa2ff"),
    # what time and lanes go into
    "start": ("#8793a1", "#76828f"),
    "compiling": ("#8a63b8", "#b391e0"),
    "reading": ("#2f7fc1", "#62b0f0"),
    "work": ("#1f8a5b", "#45bd87"),
    "host": ("#a3b18a", "#8d9b74"),
    "evaluation": ("#6b8f2a", "#a5c95e"),
    "waiting": ("#d98a1f", "#f0ad4e"),
    "writing": ("#1d9aa8", "#4fc6d3"),
    "none": ("#d3d8de", "#414a55"),
    # the limit, or the mean, that a chart's line stands for; a failure
    "limit": ("#c0362c", "#ff7b72"),
    # who drives a GPU's copies
    "host-driven": ("#7d8794", "#a2adba"),
    "ours": ("#2f7fc1", "#62b0f0"),
    "unified": ("#b9d4ec", "#2c5272"),
    # the sides of a comparison
    "before": ("#7d8794", "#8e99a6"),
    "after": ("#2a5bd7", "#7aa2ff"),
    # what a training measures
    "loss": ("#2a5bd7", "#7aa2ff"),
    "quality": ("#b0447f", "#ea86ba"),
    # what its memory holds
    "part0": ("#33518f", "#8fb0ff"),
    "part1": ("#b0447f", "#ea86ba"),
    "part2": ("#7a6a2f", "#cdb95f"),
    "part3": ("#5f9ea0", "#7cc8ca"),
    "part4": ("#a65d3f", "#e09a7c"),
    "part5": ("#6e6fb8", "#a9aaf0"),
    "part6": ("#4d6b53", "#93b99a"),
    "part7": ("#d3d8de", "#414a55"),
}
"""By meaning: in light, and in dark."""
OF_LANES: Final[dict[str, str]] = {
    "supersteps": "host",
    "epoch": "host",
    "training": "host",
    "kernels": "work",
    "operators": "work",
    "forward": "work",
    "backward": "work",
    "updating": "work",
    "sampling": "reading",
    "gathering": "reading",
    "reading": "reading",
    "copies": "reading",
    "upload": "reading",
    "waiting": "waiting",
    "exchanging": "waiting",
    "exchange": "waiting",
    "fetch": "waiting",
    "writing": "writing",
    "write": "writing",
    "checkpoints": "writing",
    "evaluation": "evaluation",
    "compiling": "compiling",
}
"""Meanings of the timeline's lanes; of any other ``host``."""


def of_lane(name: str) -> str:
    """Return the meaning of a lane of the timeline, whose color it has."""
    return "waiting" if name.endswith(" waits") else OF_LANES.get(name, "host")


def properties(place: int) -> str:
    """Return the colors as custom properties of CSS: of light (0) or of dark (1)."""
    return " ".join(f"--{name}: {both[place]};" for name, both in COLORS.items())


def rules() -> str:
    """Return a rule of CSS for each color: it fills shapes and backs keys of its class."""
    return "\n".join(
        f".{name} {{ fill: var(--{name}); background-color: var(--{name}); }}"
        for name in COLORS
        if name not in ("ink", "soft", "paper", "card", "line")
    )


def light(name: str) -> str:
    """Return a color in light, for pictures that stand in papers and READMEs."""
    return COLORS[name][0]
