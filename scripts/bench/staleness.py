"""Which result files are old: what they measure has changed since.

``MEASURED`` is the one list of what each case measures. A result is stale where the lines
that changed in those paths, since the commit that it names, are more than a tenth of the
lines that they have now.
"""

import argparse
import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "scripts" / "bench" / "results"
SHARE = 0.1
"""Of a case's lines: more of them changed make its results stale."""

_ENGINE = ("graphsys/engine", "graphsys/kernels/cpu/algorithms")
_EMBEDDING = ("graphsys/embedding", "graphsys/kernels/cpu/embedding")
_GNN = ("graphsys/gnn", "graphsys/kernels/cpu/gnn", "graphsys/sampling")
_INGEST = (
    "graphsys/storage/ingest",
    "graphsys/storage/write",
    "datasets/readers",
    "datasets/text",
    "graphsys/kernels/cpu/text",
)
_MINING = ("graphsys/mining", "graphsys/kernels/cpu/mining")
_CLUSTER = ("graphsys/distributed",)
_ALL = ("graphsys", "datasets", "partitioners")
MEASURED: dict[str, tuple[str, ...]] = {
    "ahep": _GNN,
    "analysis": ("graphsys/analysis", "graphsys/core/events.py"),
    "before_after": _ALL,
    "billion": _ALL,
    "bottlenecks": ("graphsys/analysis", *_ENGINE),
    "bsp_workers": _CLUSTER,
    "changes": ("graphsys/gnn",),
    "cuda_registers": ("graphsys/engine/cuda", "graphsys/kernels/cuda"),
    "cuda_registers_embedding": ("graphsys/kernels/cuda/embedding",),
    "cuda_registers_gnn": ("graphsys/kernels/cuda/gnn",),
    "dynamic": ("graphsys/storage/dynamic", "graphsys/storage/deltas"),
    "embedding": _EMBEDDING,
    "embedding_buffer": _EMBEDDING,
    "embedding_quality": _EMBEDDING,
    "embedding_rows": _EMBEDDING,
    "embedding_step": ("graphsys/kernels/cpu/embedding",),
    "embedding_workers": ("graphsys/distributed/embedding", *_EMBEDDING),
    "engine": _ENGINE,
    "engine_partitions": _ENGINE,
    "engine_programs": _ENGINE,
    "engine_vectors": _ENGINE,
    "engine_stream": ("graphsys/engine/execute",),
    "first_hour": _ALL,
    "first_hour_goals": _ALL,
    "first_look": ("graphsys/storage",),
    "fuzz_readers": ("datasets/readers", "datasets/text"),
    "gnn": _GNN,
    "gnn_owners": _GNN,
    "gnn_quality": _GNN,
    "gnn_rows": _GNN,
    "gnn_sharding": ("graphsys/distributed", *_GNN),
    "gnn_workers": ("graphsys/distributed", *_GNN),
    "bem": _GNN,
    "graph_classes": _GNN,
    "gpu_check": ("graphsys/kernels/cuda", "graphsys/engine/cuda", "graphsys/core/cuda"),
    "incremental": ("graphsys/engine/incremental", "graphsys/kernels/cpu/incremental"),
    "ingest": _INGEST,
    "instructions": ("graphsys/analysis",),
    "kill_billion": ("graphsys/storage", *_EMBEDDING),
    "kill_cluster": _CLUSTER,
    "memory_rule": ("graphsys/engine", *_INGEST),
    "leiden": (
        "graphsys/engine/algorithms/leiden.py",
        "graphsys/kernels/cpu/algorithms/leiden",
    ),
    "low_memory": (*_GNN, *_EMBEDDING),
    "mining": _MINING,
    "mixture": _GNN,
    "mutation": ("scripts/mutating", "scripts/mutation"),
    "neighbor_cache": _GNN,
    "network_evaluation": ("graphsys/gnn/inference", "graphsys/gnn/layerwise_passes.py"),
    "networkx": ("graphsys/interop",),
    "networkx_suite": ("graphsys/interop",),
    "networkx_suite_all": ("graphsys/interop",),
    "partition": ("partitioners",),
    "parameter_servers": ("graphsys/distributed/embedding",),
    "partition_groups": _EMBEDDING,
    "pinsage_negatives": _GNN,
    "readers": ("datasets/readers", "datasets/text"),
    "sampling": ("graphsys/sampling",),
    "time_to_quality": ("graphsys/training", *_GNN, *_EMBEDDING),
    "satisfiability": ("graphsys/engine/algorithms/satisfiability.py",),
    "schedulers": ("graphsys/analysis",),
    "temporal": _GNN,
    "temporal_by_event": _GNN,
    "temporal_training": _GNN,
    "torture": ("graphsys/storage", "datasets"),
}
"""What each case measures: files and folders, by the name that its results begin with."""


@dataclass(frozen=True, kw_only=True)
class Age:
    """How old a result file is: as old as its oldest row.

    Attributes:
        name: Of the file.
        date: Of its oldest commit, ``yyyy-mm-dd``; "" where it names none.
        share: Of the measured lines, those changed since; None where that cannot be known.
    """

    name: str
    date: str
    share: float | None

    @property
    def is_stale(self) -> bool:
        """Whether more changed than a figure bears, or nobody can know."""
        return self.share is None or self.share > SHARE


def case_of(name: str) -> str:
    """Return the case of a result file: what stands before hardware and month."""
    return name.rsplit("_", 2)[0]


def age_of(path: Path, root: Path = ROOT) -> Age:
    """Return how old a result file is, by the history of the repository in ``root``."""
    commits = sorted(set(_commits(json.loads(path.read_text()))))
    known = [(date, commit) for commit in commits if (date := _date(commit, root))]
    if not known:
        return Age(name=path.name, date="", share=None)
    date, commit = min(known)
    share = changed_since(commit, MEASURED[case_of(path.stem)], root)
    return Age(name=path.name, date=date, share=share)


def changed_since(commit: str, paths: Sequence[str], root: Path = ROOT) -> float | None:
    """Return the share of the lines below some paths that changed since a commit.

    Returns:
        Changed lines by the lines that there are now; None where the history of ``root``
        does not have the commit.
    """
    if not _date(commit, root):
        return None
    changed = _git(root, "diff", "-M", "--numstat", commit, "HEAD", "--", *paths)
    lines = [line.split("\t")[:2] for line in changed.splitlines()]
    count = sum(max(int(a), int(b)) for a, b in lines if a != "-")
    files = [root / it for it in _git(root, "ls-files", "--", *paths).splitlines()]
    total = sum(len(it.read_bytes().splitlines()) for it in files if it.is_file())
    return count / max(total, 1)


def fresh(
    rows: Iterable[dict[str, Any]], case: str, root: Path = ROOT
) -> list[dict[str, Any]]:
    """Return the rows of a case that are not stale: a call goes on with the others."""
    shares: dict[str, float | None] = {}

    def is_fresh(commit: str) -> bool:
        if commit not in shares:
            shares[commit] = changed_since(commit, MEASURED[case], root)
        share = shares[commit]
        return share is not None and share <= SHARE

    return [row for row in rows if is_fresh(row.get("commit", ""))]


def marked(text: str, ages: dict[str, Age]) -> str:
    """Return a page whose links to stale results say of when they are.

    Args:
        text: The page; ``[runs](results/x.json)`` becomes ``[runs of DATE](...)``.
        ages: Of every result file, by its name.
    """

    def mend(found: re.Match[str]) -> str:
        words = re.sub(r",? of (\d{4}-\d\d-\d\d|an unknown commit)$", "", found[1])
        age = ages.get(found[3])
        if age is not None and age.is_stale:
            words += f" of {age.date or 'an unknown commit'}"
        return f"[{words}]({found[2]}{found[3]})"

    return re.sub(r"\[([^\]\n]+)\]\(([\w./-]*results/)([\w.-]+\.json)\)", mend, text)


def runs_of(found: Any) -> Iterator[dict[str, Any]]:
    """Yield what states a commit in a result, wherever it stands in it."""
    if isinstance(found, dict):
        if isinstance(found.get("commit"), str):
            yield found
        found = list(found.values())
    if isinstance(found, list):
        for each in found:
            yield from runs_of(each)


def _commits(found: Any) -> Iterator[str]:
    return (it["commit"] for it in runs_of(found))


def _date(commit: str, root: Path) -> str:
    """Return when a commit was made; "" where the history has none of that name."""
    return _git(root, "log", "-1", "--format=%cs", commit, "--", strict=False).strip()


def _git(root: Path, *arguments: str, strict: bool = True) -> str:
    done = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=strict
    )
    return done.stdout if done.returncode == 0 else ""


def main() -> None:
    """Print which results are stale; ``--mark`` writes it into the pages too."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--mark", action="store_true", help="say so in the READMEs")
    options = parser.parse_args()
    ages = {path.name: age_of(path) for path in sorted(RESULTS.glob("*.json"))}
    for age in ages.values():
        if age.is_stale:
            share = "an unknown share" if age.share is None else f"{100 * age.share:.0f} %"
            print(f"{age.name}: of {age.date or 'no known commit'}; {share} changed since")
    print(f"{sum(age.is_stale for age in ages.values())} of {len(ages)} results are stale")
    pages = _git(ROOT, "ls-files", "--", "*.md").splitlines() if options.mark else []
    for name in pages:
        page = ROOT / name
        if (text := page.read_text()) != (new := marked(text, ages)):
            page.write_text(new)


if __name__ == "__main__":
    main()
