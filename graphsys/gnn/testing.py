"""The contracts of tasks, samplers, decoders and losses, as tests to run on one's own.

    from graphsys.gnn.testing import DecoderContract

    class TestMine(DecoderContract):
        name = "bilinear"

Run by pytest, or any runner that calls methods named ``test_*``; ``name`` is a registered
name or an entry point's.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from graphsys.core.types import EdgeType
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.inference.evaluate import evaluate
from graphsys.gnn.inference.predict import predict
from graphsys.gnn.part_specs import DECODERS, PAIR_LOSSES, SAMPLERS, SIDE_TASKS, TASKS
from graphsys.gnn.tasks.decoders import Decoder
from graphsys.gnn.training.api import build_context, train
from graphsys.sampling import Sample, message_rows
from graphsys.sampling.multi_hop import HopSampler
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.reader import GraphReader
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

Ints = npt.NDArray[np.int64]
_SIZE = 60
_EDGES = EdgeType("node", "edge", "node")


class _Circle(Source):
    """Nodes with features, a label, a number, a split and a time; edges to the next ones.

    Args:
        is_other: Whether what is held out differs: labels of nodes, ends of edges.
    """

    name = "circle"

    def __init__(self, *, is_other: bool = False) -> None:
        self._shift = 1 if is_other else 0

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        here = np.arange(_SIZE)
        split = np.array(["train", "valid", "train", "test"])[here % 4]
        label = (here // 15 + self._shift * (split != "train")) % 4
        yield NodeChunk(
            ids=here,
            node_type="node",
            columns={
                "label": label,
                "number": label * 2.5,
                "split": pa.array(split.tolist()),
                "time": here + 1000,
            },
            features={"x": np.eye(_SIZE, 8, dtype=np.float32)[here % 8] + 0.1},
        )
        src = np.concatenate([here, here, here])
        dst = (src + np.repeat([1, 2, 5], _SIZE)) % _SIZE
        yield EdgeChunk(
            src=src,
            dst=dst,
            edge_type=_EDGES,
            split="train",
            columns={
                "weight": np.ones(len(src), dtype=np.float32),
                "time": np.arange(len(src), dtype=np.int64) + 900,
            },
        )
        for name, step in (("valid", 3), ("test", 4)):
            few = here[::6]
            yield EdgeChunk(
                src=few,
                dst=(few + step + 10 * self._shift) % _SIZE,
                edge_type=_EDGES,
                split=name,
                columns={
                    "weight": np.ones(len(few), dtype=np.float32),
                    "time": np.full(len(few), 2000),
                },
            )


class _Rings(Source):
    """Graphs of 3 to 6 nodes: rings, and those of which an edge is left out.

    Args:
        is_other: Whether labels of graphs that are held out differ.
    """

    name = "rings"
    is_directed = False

    def __init__(self, *, is_other: bool = False) -> None:
        self._shift = 1 if is_other else 0

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        here = np.arange(_SIZE)
        split = np.array(["train", "valid", "train", "test"])[here % 4]
        label = (here // 4 + self._shift * (split != "train")) % 2
        columns = {"label": label, "split": pa.array(split.tolist())}
        yield NodeChunk(ids=here, node_type="graph", columns=columns)
        sizes = 3 + here % 4
        owner, first = np.repeat(here, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
        nodes = np.arange(len(owner))
        yield NodeChunk(
            ids=nodes,
            node_type="node",
            columns={"graph_id": owner},
            features={"x": np.eye(len(nodes), 8, dtype=np.float32)[nodes % 8] + 0.1},
        )
        following = first + (nodes - first + 1) % sizes[owner]
        is_kept = (following != first) | (owner // 4 % 2 == 0)
        yield EdgeChunk(src=nodes[is_kept], dst=following[is_kept], edge_type=_EDGES)


@contextmanager
def _graph(source: Source) -> Iterator[GraphReader]:
    with (
        tempfile.TemporaryDirectory() as folder,
        ingest(source, Path(folder) / "graph").graph as graph,
    ):
        yield graph


class TaskContract:
    """What every task keeps to; inherit, and set ``name``.

    Attributes:
        name: The task's registered name.
        settings: Of the config, where the task needs others; the nodes of the contract's
            graph have the columns ``label`` (a class), ``number``, ``split`` and ``time``.
            Of tasks of graphs it has graphs with ``label`` and ``split``.
    """

    name: ClassVar[str] = ""
    settings: ClassVar[Mapping[str, Any]] = {}

    def test_the_loss_is_finite_and_moves_the_weights(self) -> None:
        """Of every batch of an epoch, whose seeds are of this graph."""
        with _graph(self._source()) as graph:
            context = build_context(graph, self._config())
            task, network = context.task, context.network
            seeds = task.seeds(0)
            assert len(seeds), f"{self.name}: no batches"
            for number, wanted in enumerate(seeds):
                for name, nodes in wanted.items():
                    assert nodes.min() >= 0
                    assert nodes.max() < graph.num_nodes_of(name), f"{self.name}: {nodes}"
                loss = _loss_of(context, wanted, number)
                assert torch.isfinite(loss), f"{self.name}: the loss is {loss}"
                loss.backward()  # type: ignore[no-untyped-call]
            slopes = [p.grad for p in network.parameters() if p.grad is not None]
            assert any(bool(slope.abs().sum() > 0) for slope in slopes)
            assert all(bool(torch.isfinite(slope).all()) for slope in slopes)

    def test_what_is_held_out_has_no_part_in_training(self) -> None:
        """With other labels of nodes and other edges there, the weights are the same."""
        found = []
        for is_other in (False, True):
            with _graph(self._source(is_other)) as graph:
                run = graph.path.parent / "run"
                train(graph, self._config(eval_every=0), run)
                found.append(predict(run).drop_columns(["id"]))
        assert found[0].equals(found[1]), f"{self.name}: training saw what is held out"

    def test_a_run_is_measured_and_asked(self) -> None:
        """On any split, with the metric that it watches; a prediction per node."""
        with _graph(self._source()) as graph:
            config, run = self._config(), graph.path.parent / "run"
            report = train(graph, config, run)
            metric = build_context(graph, config).task.metric
            assert f"valid_{metric}" in report.metrics, f"{self.name}: {report.metrics}"
            metrics = evaluate(run, split="test")["metrics"]
            assert np.isfinite(metrics[metric]), f"{self.name}: {metrics}"
            answers = predict(run, [5, 3, 5])
            assert answers.column("id").to_pylist() == [5, 3, 5]
            assert answers.num_columns > 1
            assert answers.slice(0, 1).equals(answers.slice(2, 1))

    def _source(self, is_other: bool = False) -> Source:
        is_of_graphs = TASKS.get(self.name).is_of_graphs
        return _Rings(is_other=is_other) if is_of_graphs else _Circle(is_other=is_other)

    def _config(self, **changes: Any) -> GnnConfig:
        usual = {
            "task": self.name,
            "epochs": 2,
            "dim": 8,
            "layers": 2,
            "fanouts": (4, 4),
            "batch_size": 16,
            "num_negatives": 8,
            "deterministic": True,
        }
        return GnnConfig(**{**usual, **self.settings, **changes})


def _loss_of(context: Any, seeds: Mapping[str, Ints], number: int) -> torch.Tensor:
    from graphsys.gnn.data.event_batches import EventLoader
    from graphsys.gnn.data.loader import Loader

    loader: Any = EventLoader()
    if not context.config.is_of_events:
        loader = Loader(
            context.message_graph, context.features, prefetch=0, trim=context.task.trim
        )
    batch = loader.make(seeds, epoch=0, number=number)
    rows = context.network(batch.hops, batch.x)
    loss: torch.Tensor = context.task.loss(rows, batch)
    return loss


class StreamContract:
    """What every model that follows events keeps to; inherit, and set ``name``.

    Attributes:
        name: The model's registered name.
        settings: Of the config, where the model needs others.
    """

    name: ClassVar[str] = ""
    settings: ClassVar[Mapping[str, Any]] = {}

    def test_what_is_not_older_has_no_part_in_a_score(self) -> None:
        """Other edges of valid and test, and the order of asking, change nothing."""
        found = []
        for is_other in (False, True):
            with _graph(_Circle(is_other=is_other)) as graph:
                task = build_context(graph, self._config()).task
                stream: Any = task.decoder
                stream.eval()
                sources, times = np.arange(6), np.full(6, 2000)
                stream.advance(stream.events.before(2000))
                with torch.no_grad():
                    asked = [stream.scores(sources, times, 2000) for _ in range(2)]
                assert asked[0].shape == (6, _SIZE)
                assert bool(torch.isfinite(asked[0]).all()), self.name
                assert torch.equal(*asked), f"{self.name}: asking changes the scores"
                found.append(asked[0])
        assert torch.equal(*found), f"{self.name}: the future has a part in the scores"

    def test_a_model_that_forgets_is_as_new(self) -> None:
        """After ``reset`` all is as before the first event; buffers hold all state."""
        with _graph(_Circle()) as graph:
            stream: Any = build_context(graph, self._config()).task.decoder
        new = {name: value.clone() for name, value in stream.state_dict().items()}
        stream.advance(90)
        kept = {name: value.clone() for name, value in stream.state_dict().items()}
        assert int(stream.position) == 90
        stream.advance(40)
        assert int(stream.position) == 40, f"{self.name}: it cannot go back"
        stream.reset()
        for name, value in stream.state_dict().items():
            assert torch.equal(value, new[name]), f"{self.name}: {name} is not forgotten"
        stream.advance(90)
        for name, value in stream.state_dict().items():
            assert torch.equal(value, kept[name]), f"{self.name}: {name} is another"

    def _config(self) -> GnnConfig:
        usual = {
            "task": "temporal_link_prediction",
            "model": self.name,
            "dim": 8,
            "layers": 1,
            "batch_size": 16,
            "heads": 2,
            "num_negatives": 8,
            "deterministic": True,
        }
        return GnnConfig(**{**usual, **self.settings})


class SamplerContract:
    """What every sampler keeps to; inherit, and set ``name``.

    Attributes:
        name: The sampler's registered name.
    """

    name: ClassVar[str] = ""

    def test_seeds_are_kept_and_neighbors_are_real(self) -> None:
        """Seeds in their places, repeated ones too; entries are training edges."""
        with _graph(_Circle()) as graph:
            edges = _edges_of(graph)
            sampler, seeds = self._make(graph), np.array([7, 3, 7, 41])
            with self._sample(sampler, seeds) as sample:
                kept = sample.nodes["node"][sample.seed_places["node"]]
                assert kept.tolist() == seeds.tolist(), f"{self.name}: seeds {kept}"
                assert len(sample.layers) == 2
                for layer in sample.layers:
                    for block in layer.values():
                        rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
                        pairs = zip(rows, block.src_nodes[block.indices], strict=True)
                        wrong = {(int(a), int(b)) for a, b in pairs} - edges
                        assert not wrong, f"{self.name}: {wrong} are no edges"
                        assert block.num_edges

    def test_draws_are_those_of_seed_epoch_and_batch(self) -> None:
        """The same again; a sampler keeps nothing of the samples before."""
        with _graph(_Circle()) as graph:
            sampler, found = self._make(graph), []
            for batch in (0, 1, 0):
                with self._sample(sampler, np.arange(0, 60, 7), batch=batch) as sample:
                    found.append([block.indices.tolist() for block in sample.blocks])
            assert found[0] == found[2], f"{self.name}: another sample, same batch"

    def test_it_can_what_it_says(self) -> None:
        """Every setting that it takes; the later edges are left out if it has times."""
        spec = SAMPLERS.get(self.name)
        with _graph(_Circle()) as graph:
            for name, is_taken in (
                ("replace", spec.can_replace),
                ("weighted", spec.can_weigh),
                ("recent", spec.can_be_recent),
            ):
                if is_taken:
                    sampler = self._make(graph, **{name: True})
                    with self._sample(sampler, np.array([5])) as sample:
                        assert sample.num_edges, f"{self.name}: nothing with {name}"
            if spec.has_times:
                sampler, seeds = self._make(graph), {"node": np.array([30])}
                times = {"node": np.array([0])}
                with sampler.sample(seeds, times=times) as sample:
                    assert sample.num_edges == 0, f"{self.name}: edges of later"

    def _make(self, graph: GraphReader, **settings: Any) -> HopSampler:
        config = GnnConfig(
            sampler=self.name, layers=2, fanouts=(3, 3), batch_size=16, **settings
        )
        rows = message_rows(graph, (), reverse=True)
        made: HopSampler = SAMPLERS.get(self.name).make(rows, config)
        return made

    def _sample(self, sampler: HopSampler, seeds: Ints, batch: int = 0) -> Sample:
        if not SAMPLERS.get(self.name).has_times:
            return sampler.sample({"node": seeds}, batch=batch)
        times = {"node": np.full(len(seeds), 10_000)}
        return sampler.sample({"node": seeds}, batch=batch, times=times)


def _edges_of(graph: GraphReader) -> set[tuple[int, int]]:
    """Return pairs of nodes between which messages go, in numbers of the store."""
    here = graph.lookup("node", np.arange(_SIZE).tolist())
    found = set()
    for step in (1, 2, 5):
        for k in range(_SIZE):
            a, b = int(here[k]), int(here[(k + step) % _SIZE])
            found |= {(a, b), (b, a)}
    return found


class DecoderContract:
    """What every decoder keeps to; inherit, and set ``name``.

    Attributes:
        name: The decoder's registered name.
    """

    name: ClassVar[str] = ""

    def test_both_ways_to_score_agree(self) -> None:
        """A query with all rows, and with rows of its own; its gradients are finite."""
        decoder, query, others = self._make(), _rows(5), _rows(7, seed=1)
        scores = decoder(query, others)
        assert scores.shape == (5, 7)
        own = decoder.own(query, others[None].expand(5, 7, 6))
        torch.testing.assert_close(own, scores)
        if not list(decoder.parameters()):
            return
        scores.sum().backward()
        slopes = [p.grad for p in decoder.parameters()]
        assert all(s is not None and bool(torch.isfinite(s).all()) for s in slopes)

    @torch.no_grad()
    def test_it_is_symmetric_or_not_as_it_says(self) -> None:
        """Scores of pairs and of the pairs turned round; of no two pairs all alike."""
        decoder, query, others = self._make(), _rows(5), _rows(7, seed=1)
        there, back = decoder(query, others), decoder(others, query).T
        is_alike = torch.allclose(there, back, atol=1e-5)
        assert is_alike == decoder.is_symmetric, f"{self.name}: symmetric {is_alike}"
        assert float(there.std()) > 0, f"{self.name}: one score for all"

    def _make(self) -> Decoder:
        torch.manual_seed(0)
        made: Decoder = DECODERS.get(self.name).make(GnnConfig(), 6)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter)
        return made


class PairLossContract:
    """What every loss of pairs keeps to; inherit, and set ``name``.

    Attributes:
        name: The loss's registered name.
    """

    name: ClassVar[str] = ""

    def test_it_is_a_mean(self) -> None:
        """One number, the same for the same pairs twice, finite for scores far apart."""
        positive, negative = _rows(5)[:, :1], _rows(5, seed=1)
        loss = self._measure(positive, negative)
        assert loss.shape == ()
        twice = self._measure(torch.cat([positive] * 2), torch.cat([negative] * 2))
        torch.testing.assert_close(loss, twice)
        assert bool(torch.isfinite(self._measure(positive - 1e4, negative + 1e4)))

    def test_it_asks_pairs_up_and_negatives_down(self) -> None:
        """No slope points the other way, and some points this way."""
        positive = _rows(5)[:, :1].requires_grad_()
        negative = _rows(5, seed=1).requires_grad_()
        self._measure(positive, negative).backward()  # type: ignore[no-untyped-call]
        up, down = positive.grad, negative.grad
        assert up is not None
        assert down is not None
        assert float(up.max()) <= 0 <= float(down.min()), self.name
        assert float(up.min()) < 0 < float(down.max()), self.name

    def _measure(self, positive: torch.Tensor, negative: torch.Tensor) -> torch.Tensor:
        config = GnnConfig(loss=self.name)
        found: torch.Tensor = PAIR_LOSSES.get(self.name).measure(config, positive, negative)
        return found


class SideTaskContract:
    """What every side task keeps to; inherit, and set ``name``.

    Attributes:
        name: The side task's registered name.
    """

    name: ClassVar[str] = ""

    def test_it_is_a_number_that_rows_can_change(self) -> None:
        """Finite, with a slope for rows and for all of its own weights."""
        torch.manual_seed(0)
        shapes = {"node": InputShape(dim=6)}
        module = SIDE_TASKS.get(self.name).make(GnnConfig(), shapes, 6)
        rows = _rows(5).requires_grad_()
        loss = module({"node": rows}, {"node": _rows(5, seed=1)})
        assert loss.shape == ()
        assert bool(torch.isfinite(loss)), self.name
        loss.backward()
        slopes = [rows.grad, *[p.grad for p in module.parameters()]]
        assert all(s is not None and bool(s.any()) for s in slopes), self.name

    def test_a_network_learns_it_beside_links(self) -> None:
        """The report has its loss by itself."""
        config = GnnConfig(
            task="link_prediction",
            side_tasks={self.name: 0.5},
            epochs=1,
            dim=8,
            batch_size=16,
            num_negatives=4,
            eval_every=0,
        )
        with _graph(_Circle()) as graph, tempfile.TemporaryDirectory() as folder:
            report = train(graph, config, Path(folder) / "run")
        own, links = report.metrics[f"{self.name}_loss"], report.metrics["task_loss"]
        assert abs(report.metrics["loss"] - links - 0.5 * own) < 1e-4, self.name


def _rows(count: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((count, 6), generator=generator)
