"""The contracts of comparators, losses and operators, as tests that anyone can run.

    from graphsys.embedding.testing import ComparatorContract

    class TestMine(ComparatorContract):
        name = "negative_l1"

Run by pytest, or any runner that calls methods named ``test_*``; ``name`` is a registered
name or an entry point's. Gradients are compared with differences of the values themselves.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.embeddings import Embeddings, open_run
from graphsys.embedding.evaluation.evaluate import evaluate
from graphsys.embedding.inference.nearest import nearest
from graphsys.embedding.inference.predict import predict, score
from graphsys.embedding.model import RelationSet, relation_sets
from graphsys.embedding.spec.operators import operator_of
from graphsys.embedding.training.api import train
from graphsys.embedding.training.kernel_table import compiled_objective
from graphsys.kernels.cpu.embedding.calls import Objective, call_rank
from graphsys.kernels.cpu.embedding.candidate_weights import (
    CandidateWeights,
    plain_counting,
)
from graphsys.kernels.cpu.embedding.operators import (
    apply_operators,
    apply_operators_backward,
)
from graphsys.kernels.cpu.embedding.scores import sum_losses
from graphsys.kernels.jit import jit
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, Source

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_STEP = 2e-3
_DIM = 6


class ComparatorContract:
    """What every comparator keeps to; inherit, and set ``name``.

    Attributes:
        name: The comparator's registered name.
    """

    name: ClassVar[str] = ""

    def test_gradients_are_those_of_the_scores(self) -> None:
        """Of a loss of all scores, with and without a bias and negatives of the batch."""
        rng = np.random.default_rng(0)
        queries = rng.normal(size=(4, _DIM)).astype(np.float32)
        candidates = rng.normal(size=(9, _DIM)).astype(np.float32)
        for has_bias in (False, True):
            objective = _objective(comparator=self.name, bias=has_bias)
            for use_batch in (True, False):
                total, *found = _rank(queries, candidates, use_batch, objective)
                assert np.isfinite(total), f"{self.name}: the loss is {total}"
                for rows, own in zip((queries, candidates), found, strict=True):

                    def value(batch: bool = use_batch, by: Objective = objective) -> float:
                        return _rank(queries, candidates, batch, by)[0]

                    where = f"{self.name}, bias {has_bias}, batch {use_batch}"
                    _require_slopes(where, own, _slopes(value, rows))

    def test_training_and_evaluation_and_prediction_score_alike(self) -> None:
        """The kernel that trains, scores, ranks, best answers and the nearest nodes."""
        for has_bias in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                run = _train(Path(folder), comparator=self.name, bias=has_bias)
                self._compare(
                    run, _objective(comparator=self.name, bias=has_bias, loss="logistic")
                )

    def _compare(self, run: Embeddings, objective: Objective) -> None:
        size = run.graph.num_nodes_of("node")
        numbers = np.arange(size)
        rows = run.lookup(numbers.tolist())
        heads, tails = np.divmod(np.arange(size * size), size)
        pairs = {"head": heads.tolist(), "tail": tails.tolist()}
        scores = score(run, pairs).reshape(size, size)
        for head, tail in ((0, 1), (3, 2), (5, 5)):
            trained = _trained_score(rows[head], rows[tail], objective)
            assert abs(trained - scores[head, tail]) < 1e-4, (
                f"{self.name}: training scores {trained}, evaluation {scores[head, tail]}"
            )
        found = evaluate(run, split="test")["metrics"]["unfiltered"]["mr"]
        wanted = np.mean([r for h, t in _TEST for r in _ranks(scores, h, t)])
        assert abs(found - wanted) < 1e-6, f"{self.name}: mean rank {found}, not {wanted}"
        answers = predict(run, {"head": [4]}, k=size, known="keep")
        order = np.lexsort((numbers, -scores[4]))
        assert answers.column("tail").to_pylist() == order.tolist()
        np.testing.assert_allclose(answers.column("score"), scores[4][order], rtol=1e-6)
        if not run.config.bias:
            close = nearest(run, 4, size).to_pydict()
            others = [number for number in order.tolist() if number != 4]
            assert close["id"] == others, f"{self.name}: the nearest are {close['id']}"
            np.testing.assert_allclose(
                close["score"], scores[4][others], rtol=1e-4, atol=1e-5
            )


class LossContract:
    """What every loss keeps to; inherit, and set ``name``.

    Attributes:
        name: The loss's registered name.
        known: The positive's score, those of the negatives, the margin, and the loss.
    """

    name: ClassVar[str] = ""
    known: ClassVar[Sequence[tuple[float, Sequence[float], float, float]]] = ()

    def test_known_values(self) -> None:
        """What the formula says for a few scores."""
        assert self.known, f"{self.name}: give known values"
        for positive, negatives, margin, wanted in self.known:
            found = self._call(np.array([positive]), np.array([negatives]), margin)[0]
            assert abs(found - wanted) < 1e-5, f"{self.name}: {found}, not {wanted}"

    def test_gradients_are_those_of_the_loss(self) -> None:
        """By every score; a better positive never costs more, a better negative may."""
        rng = np.random.default_rng(1)
        positives = rng.normal(size=3).astype(np.float32)
        negatives = rng.normal(size=(3, 5)).astype(np.float32)
        _, own, others = self._call(positives, negatives)

        def value() -> float:
            return self._call(positives, negatives)[0]

        _require_slopes(self.name, own, _slopes(value, positives))
        _require_slopes(self.name, others, _slopes(value, negatives))
        assert (own <= 0).all(), f"{self.name}: {own} at the positives"
        assert (others >= 0).all(), f"{self.name}: {others} at the negatives"

    def test_what_does_not_count_has_no_part(self) -> None:
        """A negative that is the positive's node, or masked; weights are factors."""
        positives, negatives = np.array([0.3, -0.2]), np.array([[0.5, 9.0], [-np.inf, 1]])
        nodes = np.array([7, 0])  # the second is the first positive's node
        total, own, others = self._call(positives, negatives, nodes=nodes)
        assert others[0, 1] == others[1, 0] == 0.0, f"{self.name}: gradients {others}"
        again = negatives.copy()
        again[0, 1] = -5.0
        assert self._call(positives, again, nodes=nodes)[0] == total
        twice = self._call(positives, negatives, nodes=nodes, weight=2.0)
        assert abs(twice[0] - 2 * total) < 1e-5
        np.testing.assert_allclose(twice[1], 2 * own, rtol=1e-5)

    def _call(
        self,
        positives: Any,
        negatives: Any,
        margin: float = 0.5,
        *,
        nodes: Ints | None = None,
        weight: float = 1.0,
    ) -> tuple[float, Floats, Floats]:
        """Return the loss of some queries, and its gradients."""
        scores = np.array(negatives, dtype=np.float32)
        num_queries, width = scores.shape
        objective = _objective(loss=self.name, margin=margin)
        gradients = np.empty(num_queries, dtype=np.float32)
        total = _sum_losses(
            scores,
            np.array(positives, dtype=np.float32),
            np.arange(num_queries, dtype=np.int64),
            np.full(width, 100, dtype=np.int64) if nodes is None else nodes,
            np.full(num_queries, weight, dtype=np.float32),
            np.zeros(width, dtype=np.float32),
            objective,
            plain_counting(),
            gradients,
        )
        return float(total), gradients, scores


class OperatorContract:
    """What every operator keeps to; inherit, and set ``name``.

    Attributes:
        name: The operator's registered name.
    """

    name: ClassVar[str] = ""

    def test_first_parameters_have_their_number_and_change_nothing(self) -> None:
        """Unless they are drawn; the same draw gives the same."""
        spec, rows = operator_of(self.name), _rows(5)
        first = spec.first(_DIM, None)
        assert first.dtype == np.float32
        assert first.shape == (spec.num_parameters(_DIM),)
        np.testing.assert_allclose(self._apply(first, rows), rows, atol=1e-6)
        drawn = [spec.first(_DIM, np.random.default_rng(3)) for _ in range(2)]
        assert drawn[0].shape == first.shape
        assert (drawn[0] == drawn[1]).all(), f"{self.name}: another draw, same seed"

    def test_gradients_are_those_of_the_image(self) -> None:
        """By the row, overwritten, and by the parameters, added to what is there."""
        rows, weights, parameters = _rows(4), _rows(4, seed=5), self._drawn()

        def value() -> float:
            image = self._apply(parameters, rows)
            return float((image.astype(np.float64) * weights).sum())

        drows, dparameters = self._gradients(parameters, rows, weights)
        _require_slopes(self.name, drows, _slopes(value, rows))
        _require_slopes(self.name, dparameters - 1.0, _slopes(value, parameters))

    def test_it_is_what_it_says(self) -> None:
        """Affine, and undone on the other row by a shift or by its adjoint."""
        spec, parameters, rows = operator_of(self.name), self._drawn(), _rows(3)
        image = self._apply(parameters, rows)
        if spec.is_affine:
            mixed = self._apply(parameters, 0.25 * rows + 0.75 * rows[::-1].copy())
            np.testing.assert_allclose(mixed, 0.25 * image + 0.75 * image[::-1], atol=1e-5)
        if spec.undone_by == "shift":
            np.testing.assert_allclose(image - parameters, rows, atol=1e-5)
        elif spec.undone_by is not None:
            back, _ = self._gradients(parameters, rows, image)
            np.testing.assert_allclose(back, rows, atol=1e-5)

    def _drawn(self) -> Floats:
        return operator_of(self.name).first(_DIM, np.random.default_rng(3))

    def _apply(self, parameters: Floats, rows: Floats) -> Floats:
        model, out = _relations(operator=self.name), np.empty_like(rows)
        relations = np.zeros(len(rows), dtype=np.int64)
        apply_operators(model.kernel_codes, model.offsets, parameters, relations, rows, out)
        return out

    def _gradients(
        self, parameters: Floats, rows: Floats, dout: Floats
    ) -> tuple[Floats, Floats]:
        model, drows = _relations(operator=self.name), np.full_like(rows, np.nan)
        dparameters = np.ones_like(parameters)
        apply_operators_backward(
            model.kernel_codes,
            model.offsets,
            parameters,
            np.zeros(len(rows), dtype=np.int64),
            rows,
            dout,
            drows,
            dparameters,
        )
        return drows, dparameters


_EDGES = EdgeType("node", "edge", "node")
_TEST = [(0, 3), (2, 5), (7, 1), (6, 6)]


class _OneRelation:
    def __init__(self) -> None:
        self.edge_types = [_EDGES]

    def edge_type_name(self, edge_type: EdgeType) -> str:
        return edge_type.relation

    def relations(self, edge_type: EdgeType) -> list[str] | None:
        return None


class _Ring(Source):
    """Twelve nodes, each with an edge to the next; a few others are for the test."""

    name = "ring"

    def chunks(self) -> Iterator[EdgeChunk]:
        here = np.arange(12)
        yield EdgeChunk(src=here, dst=(here + 1) % 12, edge_type=_EDGES, split="train")
        heads, tails = np.array(_TEST).T
        yield EdgeChunk(src=heads, dst=tails, edge_type=_EDGES, split="test")


def _relations(**settings: Any) -> RelationSet:
    return relation_sets(_OneRelation(), _config(**settings))[0]


def _config(**settings: Any) -> EmbeddingConfig:
    usual = {"dim": _DIM, "num_batch_negatives": 4, "num_uniform_negatives": 4}
    return EmbeddingConfig(**{**usual, **settings})


def _objective(**settings: Any) -> Objective:
    return compiled_objective(_config(**settings), _relations(**settings), has_single=True)


def _rows(count: int, seed: int = 4) -> Floats:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, _DIM)).astype(np.float32)


@jit
def _call_rank(
    queries: Floats,
    candidates: Floats,
    nodes: Ints,
    weights: Floats,
    use_batch: bool,
    objective: Objective,
    bias: Floats,
    counting: CandidateWeights,
    scratch: Floats,
    scratch_distances: Floats,
    dqueries: Floats,
    dcandidates: Floats,
) -> float:
    return float(
        call_rank(
            objective.calls.rank,
            queries,
            candidates,
            nodes,
            weights,
            use_batch,
            objective,
            bias,
            counting,
            scratch,
            scratch_distances,
            dqueries,
            dcandidates,
        )
    )


@jit
def _sum_losses(
    scores: Floats,
    positives: Floats,
    own: Ints,
    nodes: Ints,
    weights: Floats,
    bias: Floats,
    objective: Objective,
    counting: CandidateWeights,
    gradients: Floats,
) -> float:
    return float(
        sum_losses(
            scores,
            0,
            positives,
            own,
            nodes,
            weights,
            bias,
            objective,
            counting,
            0,
            gradients,
        )
    )


def _rank(
    queries: Floats, candidates: Floats, use_batch: bool, objective: Objective
) -> tuple[float, Floats, Floats]:
    """Return the loss of all queries, and its gradients."""
    num_queries, num_candidates = len(queries), len(candidates)
    scratch = np.empty((2, num_queries * num_candidates), dtype=np.float32)
    dqueries, dcandidates = np.empty_like(queries), np.empty_like(candidates)
    total = _call_rank(
        queries,
        candidates,
        np.arange(num_candidates, dtype=np.int64),
        np.ones(num_queries, dtype=np.float32),
        use_batch,
        objective,
        np.zeros(num_candidates, dtype=np.float32),
        plain_counting(),
        scratch[0],
        scratch[1],
        dqueries,
        dcandidates,
    )
    return float(total), dqueries, dcandidates


def _trained_score(query: Floats, candidate: Floats, objective: Objective) -> float:
    """Return the score that the training kernel gave a pair, from its logistic loss."""
    loss = _rank(query[None].copy(), candidate[None].copy(), True, objective)[0]
    return float(-np.log(np.expm1(loss)))


def _ranks(scores: Doubles, head: int, tail: int) -> tuple[float, float]:
    """Return the ranks of an edge's ends among all nodes, ties halfway."""
    found = []
    for row, own in ((scores[head], tail), (scores[:, tail], head)):
        equal = np.sum(row == row[own]) - 1
        found.append(1 + np.sum(row > row[own]) + 0.5 * equal)
    return found[0], found[1]


def _train(folder: Path, **settings: Any) -> Embeddings:
    """Train an epoch on a ring of twelve nodes, from rows far apart."""
    graph = ingest(_Ring(), folder / "graph").graph
    config = _config(epochs=1, init_scale=1.0, threads=1, **settings)
    train(graph, config, folder / "run")
    return open_run(folder / "run")


def _slopes(value: Callable[[], float], array: Floats) -> Doubles:
    """Return the differences of a value by every number of an array, over the step."""
    slopes = np.empty(array.shape, dtype=np.float64)
    for place in np.ndindex(array.shape):
        before = array[place]
        array[place] = before + _STEP
        above, high = value(), float(array[place])
        array[place] = before - _STEP
        below, low = value(), float(array[place])
        array[place] = before
        slopes[place] = (above - below) / (high - low)
    return slopes


def _require_slopes(where: str, found: Floats, wanted: Doubles) -> None:
    scale = max(float(np.abs(wanted).max(initial=0)), 1e-3)
    apart = float(np.abs(found - wanted).max(initial=0))
    assert apart < 0.02 * scale, f"{where}: gradients {found}, differences {wanted}"
