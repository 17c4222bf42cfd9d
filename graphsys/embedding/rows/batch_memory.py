"""What batches of questions take in memory, and how large they may be within a budget.

A few questions are asked first, metered, and forgotten: that tells what the process has,
what kernels take, and whatever grows with the graph. What grows with the questions of a
batch is counted here.
"""

from collections.abc import Callable, Sequence

from graphsys.core.memory import too_small
from graphsys.core.types import true_splits
from graphsys.embedding.data.filtered_queries import BatchLimits
from graphsys.embedding.model import RelationSet
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.embedding.spec.comparators import comparator_of

FEW = 2
"""Questions of a rehearsal, in each direction."""
_QUESTION_BYTES = 200  # numbers, keys, counts
_ROW_BYTES = 52  # of a dimension: rows of both ends and of a wrong answer, in float64 too
_KNOWN_BYTES = 48  # as found, side by side, in order
_SCORES = 4 * 256 * 4096  # of a block of queries and one of candidates
_CANDIDATE_COPIES = 4  # of a block of candidates: as read, as compared
_CANDIDATES = 4096
_BLOCK_NUMBERS = 1 << 20


def candidate_block(dim: int) -> int:
    """Return how many candidates are compared together: their rows take 4 MiB at most."""
    return max(min(_CANDIDATES, _BLOCK_NUMBERS // max(dim, 1)), 1)


def batch_bytes(
    run: TrainedEmbedding,
    model: Sequence[RelationSet],
    limits: BatchLimits,
    num_questions: int,
    threads: int,
) -> int:
    """Return what a batch takes beside what a few questions take.

    Args:
        run: The run.
        model: The edge types that are asked about.
        limits: Of a batch.
        num_questions: Of one edge type and direction, at most.
        threads: Number of threads.
    """
    questions = min(limits.questions, num_questions)
    graph = run.graph
    edges = max(
        sum(graph.num_edges_of(kind, split) for split in true_splits(graph.splits(kind)))
        for kind in (relations.edge_type for relations in model)
    )
    dim = max(run.dim_of(m.edge_type.src_type) for m in model)
    comparator = comparator_of(run.config.comparator)
    matrices = 5 if comparator.is_pairwise or run.config.bias else 1
    share = min(questions / 256, 1)
    return (
        questions * (_QUESTION_BYTES + _ROW_BYTES * dim)
        + min(limits.known, 2 * edges) * _KNOWN_BYTES
        + int(threads * matrices * _SCORES * share)
        + (threads - 1) * _CANDIDATE_COPIES * 4 * candidate_block(dim) * dim
    )


def fitting_limits(
    what: str, needed: Callable[[BatchLimits], int], budget: int
) -> BatchLimits:
    """Return the largest batches that fit a budget.

    Args:
        what: The work.
        needed: Bytes of the process at the peak of the work with such batches.
        budget: Bytes allowed.

    Raises:
        BudgetError: The smallest do not fit; the message names an amount that works.
    """
    every = BatchLimits().smaller()
    for limits in every:
        if needed(limits) <= budget:
            return limits
    raise too_small(what, needed(every[-1]), budget)
