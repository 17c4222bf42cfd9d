"""Temporal link prediction: who meets whom next, learned from the past alone.

Models that follow events (``ModelSpec.make_stream``) learn them in order of time. Others
learn the training edges as link prediction does, and their rows stand still while the
edges of valid and test are ranked in order of time.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphsys.core.errors import ConfigError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.event_batches import EventBatches
from graphsys.gnn.data.events import EventStream, read_events, training_view
from graphsys.gnn.data.loader import Batch, Trim
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.models.stream import StreamModel
from graphsys.gnn.part_specs import TASKS, TaskSpec
from graphsys.gnn.process_group import current_process_group
from graphsys.gnn.tasks.decoders import make_decoder
from graphsys.gnn.tasks.event_ranking import rank_events, require_span
from graphsys.gnn.tasks.link_prediction import LinkPrediction
from graphsys.gnn.tasks.link_ranking import read_ends
from graphsys.gnn.tasks.output import Output, rows_column
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.gnn.tasks.task import Seeds
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]


class EventPrediction:
    """Events one batch after the other, by a model that takes each in after scoring it.

    Raises:
        ConfigError: Edges without times, or several processes.
        UnknownNameError: An edge type that is not in the graph.
    """

    metric = "mrr"
    units: Sequence[float] = ()
    relations: Collection[str] = ()

    def __init__(self, graph: GraphReader, config: GnnConfig) -> None:
        self.graph, self.config, self.process_group = graph, config, current_process_group()
        if self.process_group.world_size > 1:
            raise ConfigError(
                f"model {config.model}: got {self.process_group.world_size} processes, "
                "expected one: each batch rests on what all before it left"
            )
        self.events: EventStream = read_events(graph, config)
        make = spec_of(config.model).make_stream
        assert make is not None  # this task is for models that have it
        decoder = make_decoder(config, config.dim)
        self.stream = make(config, self.events, decoder)
        assert isinstance(self.stream, StreamModel)  # what ModelSpec says it makes
        self.node_type, self.num_out = self.events.dst_type, config.dim
        self.classes: list[Any] = []
        self.trim: Trim | None = None
        self.decoder: nn.Module | None = self.stream

    def seeds(self, epoch: int) -> Seeds:
        """Return the batches of an epoch, in order of time; none where nothing learns."""
        if not self.stream.is_trained:
            return []
        return EventBatches(self.events, self.config, epoch)

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch, given the scores of its pairs and negatives.

        What a model gives as ``penalty`` is added.
        """
        found: torch.Tensor = pair_loss(self.config, rows["positive"], rows["negative"])
        return found + rows["penalty"] if "penalty" in rows else found

    def num_terms(self, batch: Batch) -> int:
        """Return how many events a batch has."""
        return batch.num_edges

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have edges."""
        return self.events.known_splits

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return 1 - MRR and MRR of the watched split, or None without such edges."""
        return _watched(self, output)

    @torch.no_grad()
    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`rank_events`.

        The model takes in what is older than each batch, from where it stands on, and
        stands there again afterwards.
        """
        require_span(self.events, split)
        stream = self.stream

        def score(sources: Ints, times: Ints, before: int) -> torch.Tensor:
            stream.advance(self.events.before(before))
            found: torch.Tensor = stream.scores(sources, times, before)
            return found

        with self.standing():
            return rank_events(self.events, split, self.config.batch_size, score)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Let the model go on in time without training, and stand where it was after."""
        kept = {name: buffer.clone() for name, buffer in self.stream.named_buffers()}
        self.stream.eval()
        try:
            yield
        finally:
            for name, buffer in self.stream.named_buffers():
                buffer.copy_(kept[name])

    def answers(
        self, found: npt.NDArray[np.float32], relation: str | None
    ) -> dict[str, Any]:
        """Return ``embedding``: the rows just after the training edges."""
        return {"embedding": rows_column(found)}


class StaticPrediction(LinkPrediction):
    """Link prediction on the training edges, measured in order of time.

    Raises:
        ConfigError: Edges without times, or as :class:`LinkPrediction`.
    """

    def __init__(self, graph: GraphReader, config: GnnConfig) -> None:
        super().__init__(training_view(graph, config), config)
        self.events: EventStream = read_events(graph, config)

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have edges."""
        return self.events.known_splits

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return 1 - MRR and MRR of the watched split, or None without such edges."""
        return _watched(self, output)

    @torch.no_grad()
    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`rank_events`."""
        require_span(self.events, split)
        ends = read_ends(self.graph, self.pairs, output, self._score)

        def score(sources: Ints, times: Ints, before: int) -> torch.Tensor:
            return self.scores(ends.src[torch.from_numpy(sources)], ends.dst).cpu()

        return rank_events(self.events, split, self.config.batch_size or 1, score)


def _watched(
    task: EventPrediction | StaticPrediction, output: Output
) -> tuple[float, float] | None:
    if task.config.eval_split not in task.known_splits:
        return None
    found = task.measure(task.config.eval_split, output)[task.metric]
    return None if found is None else (1 - found, found)


def _make(graph: GraphReader, config: GnnConfig) -> EventPrediction | StaticPrediction:
    kind = EventPrediction if config.is_of_events else StaticPrediction
    return kind(graph, config)


def messages_of(graph: GraphReader, config: GnnConfig) -> GraphReader:
    """Return what of the graph carries messages; models that follow events have none."""
    return graph if config.is_of_events else training_view(graph, config)


TASKS.add(
    TaskSpec(
        name="temporal_link_prediction",
        make=_make,
        is_of_links=True,
        view=messages_of,
        is_of_events=True,
    )
)
