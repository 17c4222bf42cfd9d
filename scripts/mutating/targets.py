"""Which files are mutated, and the tests that should notice: the smallest that do."""

from typing import Final

_UNIT: Final = "tests/unit"
_STORE: Final = tuple(
    f"{_UNIT}/storage/test_{it}.py" for it in ("transaction", "durability", "locks")
)
_RANKS: Final = (f"{_UNIT}/embedding/evaluation/test_embedding_ranking.py",)
_LINKS: Final = (f"{_UNIT}/gnn/test_link_objective.py",)
_DRAWS: Final = f"{_UNIT}/sampling/test_pinned_draws.py"
_ROWS: Final = (f"{_UNIT}/sampling/test_sampled_rows.py",)
_BUILDER: Final = f"{_UNIT}/sampling/test_sample_builder.py"
_SIMT: Final = (f"{_UNIT}/analysis/model/test_simt.py",)
_STREAM: Final = f"{_UNIT}/engine/execute/test_stream.py"
_BLOCKS: Final = f"{_UNIT}/engine/execute/test_rows.py"
_APPEND: Final = f"{_UNIT}/storage/dynamic/test_append.py"
_DELTAS: Final = f"{_UNIT}/storage/deltas"
_LOSSES: Final = (f"{_UNIT}/embedding/test_embedding_losses.py",)

TARGETS: Final[dict[str, tuple[str, ...]]] = {
    # storage commit
    "graphsys/storage/transaction.py": _STORE,
    "graphsys/storage/runs/run_folder.py": (
        f"{_UNIT}/storage/runs/test_run_folder.py",
        f"{_UNIT}/storage/test_durability.py",
    ),
    # evaluation
    "graphsys/metrics/areas.py": (
        f"{_UNIT}/metrics/test_metrics.py",
        f"{_UNIT}/gnn/tasks/test_multiplex_links.py",
    ),
    "graphsys/metrics/ranking.py": (f"{_UNIT}/metrics/test_metrics.py",),
    "graphsys/embedding/evaluation/ranking.py": _RANKS,
    "graphsys/embedding/evaluation/evaluate.py": _RANKS,
    "graphsys/kernels/cpu/embedding/rank.py": (
        f"{_UNIT}/embedding/test_embedding_rank.py",
    ),
    "graphsys/gnn/inference/evaluate.py": (f"{_UNIT}/gnn/tasks/test_link_ranking.py",),
    "graphsys/gnn/tasks/link_ranking.py": (f"{_UNIT}/gnn/tasks/test_link_ranking.py",),
    # samplers
    "graphsys/sampling/neighbors.py": (_DRAWS, f"{_UNIT}/sampling/test_neighbors.py"),
    "graphsys/sampling/sample_builder.py": (_BUILDER, *_ROWS),
    "graphsys/sampling/negatives.py": (_DRAWS, f"{_UNIT}/sampling/test_negatives.py"),
    "graphsys/sampling/pinsage.py": (f"{_UNIT}/sampling/test_importance_draws.py",),
    "graphsys/sampling/temporal.py": (_DRAWS, f"{_UNIT}/sampling/test_temporal.py"),
    "graphsys/kernels/cpu/sampling/sampled_rows.py": _ROWS,
    "graphsys/kernels/cpu/sampling/timed_rows.py": (
        _DRAWS,
        f"{_UNIT}/sampling/test_temporal.py",
    ),
    # losses
    "graphsys/kernels/cpu/embedding/losses.py": _LOSSES,
    "graphsys/gnn/tasks/task.py": (f"{_UNIT}/gnn/tasks/test_task.py",),
    "graphsys/gnn/tasks/link_prediction.py": _LINKS,
    # SIMT counters
    "graphsys/analysis/model/simt.py": _SIMT,
    "graphsys/kernels/cpu/simt/lanes.py": _SIMT,
    "graphsys/kernels/cpu/simt/sectors.py": _SIMT,
    # the engine: rows, blocks, what kernels are given, what a budget allows
    "graphsys/engine/execute/launcher.py": (_STREAM,),
    "graphsys/engine/execute/rows.py": (_BLOCKS,),
    "graphsys/engine/execute/stream.py": (_BLOCKS, _STREAM),
    "graphsys/engine/execute/frontier.py": (f"{_UNIT}/engine/execute/test_frontier.py",),
    "graphsys/engine/codegen/lower.py": (f"{_UNIT}/engine/codegen/test_lower.py",),
    "graphsys/engine/codegen/narrowing.py": (f"{_UNIT}/engine/codegen/test_narrowing.py",),
    # graphs that change
    "graphsys/storage/deltas/changes.py": (f"{_DELTAS}/test_changes.py", _APPEND),
    "graphsys/storage/deltas/positions.py": (f"{_DELTAS}/test_positions.py",),
    "graphsys/storage/deltas/splice.py": (f"{_DELTAS}/test_splice.py",),
    "graphsys/storage/dynamic/deletions.py": (
        f"{_UNIT}/storage/dynamic/test_deletions.py",
        _APPEND,
    ),
    "graphsys/storage/dynamic/compact.py": (f"{_UNIT}/storage/dynamic/test_compact.py",),
    # workers
    "graphsys/distributed/ownership.py": ("tests/distributed/test_ownership.py",),
    "graphsys/distributed/embedding/bucket_locks.py": (
        "tests/distributed/test_bucket_locks.py",
    ),
    "graphsys/distributed/embedding/parameter_server.py": (
        "tests/distributed/test_parameter_server.py",
    ),
    # mining
    "graphsys/mining/pattern.py": (f"{_UNIT}/mining/test_pattern.py",),
    "graphsys/mining/disconnected.py": (f"{_UNIT}/mining/test_disconnected.py",),
    "graphsys/mining/motifs.py": (f"{_UNIT}/mining/test_motifs.py",),
    "graphsys/mining/frequent/search.py": (f"{_UNIT}/mining/test_frequent.py",),
}
WITH_NUMBA: Final = frozenset(
    name
    for name in TARGETS
    if name.startswith(
        (
            "graphsys/embedding/evaluation/",
            "graphsys/sampling/sample_builder.py",
            "graphsys/engine/",
            "graphsys/storage/deltas/",
            "graphsys/storage/dynamic/",
            "graphsys/distributed/",
            "graphsys/mining/",
        )
    )
)
"""Whose tests compile programs, or take minutes where kernels are plain Python; none of
these files holds a kernel."""
