"""Change prediction: which links the next snapshot brings, normal and burst ones.

A snapshot is a batch of events. Models learn as for temporal link prediction; they are
measured by how well they tell a snapshot's links from other pairs of the same kind.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.changes import KINDS, SnapshotPairs, changes_of
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.proximity import Proximity
from graphsys.gnn.part_specs import TASKS, TaskSpec
from graphsys.gnn.tasks.event_ranking import require_span
from graphsys.gnn.tasks.link_ranking import read_ends
from graphsys.gnn.tasks.output import Output
from graphsys.gnn.tasks.temporal_links import (
    EventPrediction,
    StaticPrediction,
    messages_of,
)
from graphsys.metrics.areas import roc_auc
from graphsys.metrics.thresholds import best_threshold, f1_of_classes
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Scorer = Callable[[Ints, Ints, int], Doubles]
"""From first ends, second ends and the snapshot's first event: scores ``[n]``."""
_AT_A_TIME = 256


class EventChanges(EventPrediction):
    """A model that follows events, asked about pairs before each snapshot."""

    metric = "roc_auc"

    @torch.no_grad()
    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`measure_changes`."""
        stream, events = self.stream, self.events

        def score(src: Ints, dst: Ints, begin: int) -> Doubles:
            before = int(events.time[begin])
            stream.advance(events.before(before))
            return _scores_of_pairs(stream, src, dst - events.first_dst, before)

        with self.standing():
            return measure_changes(events, self.config, split, score)


class StaticChanges(StaticPrediction):
    """Rows that stand still, asked about pairs of each snapshot."""

    metric = "roc_auc"

    @torch.no_grad()
    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`measure_changes`."""
        require_span(self.events, split)
        ends = read_ends(self.graph, self.pairs, output, self._score)
        first = self.events.first_dst

        def score(src: Ints, dst: Ints, begin: int) -> Doubles:
            query = ends.src[torch.from_numpy(src)]
            others = ends.dst[torch.from_numpy(dst - first)]
            found: Doubles = self._score.own(query, others[:, None])[:, 0].cpu().numpy()
            return found

        return measure_changes(self.events, self.config, split, score)


def measure_changes(
    events: EventStream, config: GnnConfig, split: str, score: Scorer
) -> dict[str, Any]:
    """Tell the links of every snapshot of a split from as many other pairs.

    The pairs are those of :func:`graphsys.gnn.data.changes.changes_of`, scored from what is
    older than the snapshot. Per kind of pair one threshold makes classes of scores: the
    one with the best macro-F1 on valid (on the split itself if there is none).

    Args:
        events: The stream.
        config: ``batch_size`` events are a snapshot; ``seed`` draws the pairs.
        split: Which is measured.
        score: The scores of pairs.

    Returns:
        For ``normal`` and ``burst``: ``f1_micro``, ``f1_macro`` (links and others),
        ``roc_auc``, ``num_links``, ``threshold``; None for a kind that does not occur.
        ``threshold`` and F1 are None where the kind has no pairs to choose a threshold
        on. ``all``: the same F1 of three classes, none, normal and burst. ``roc_auc``: the
        mean over kinds, None where the split has no pairs. ``num_snapshots``,
        ``batch_size``, ``threshold_split``.

    Raises:
        UnknownNameError: There is no such split.
    """
    require_span(events, split)
    size = config.batch_size or 1
    chooser = "valid" if "valid" in events.spans else split
    proximity = Proximity(events)

    def scored(name: str) -> tuple[SnapshotPairs, Doubles, int]:
        parts, scores = [], []
        for begin, end in events.batches(*events.spans[name], size):
            parts.append(changes_of(events, proximity, begin, end, config.seed))
            scores.append(score(parts[-1].src, parts[-1].dst, begin))
        return _joined(parts), np.concatenate(scores), len(parts)

    chosen, chosen_scores, num = scored(chooser)
    pairs, scores = chosen, chosen_scores
    if split != chooser:
        pairs, scores, num = scored(split)
    result: dict[str, Any] = {}
    found = np.zeros(len(scores), dtype=np.int64)
    for number, kind in enumerate(KINDS):
        own, other = (p.is_burst == (kind == "burst") for p in (pairs, chosen))
        threshold = best_threshold(chosen_scores[other], chosen.is_link[other])
        found[own & (scores > threshold)] = number + 1
        result[kind] = _figures(pairs.is_link[own], scores[own], threshold)
    areas = [result[kind]["roc_auc"] for kind in KINDS if result[kind] is not None]
    true = pairs.is_link * (1 + pairs.is_burst.astype(np.int64))
    return {
        "roc_auc": float(np.mean(areas)) if areas else None,
        **result,
        "all": f1_of_classes(found, true, len(KINDS) + 1),
        "num_snapshots": num,
        "batch_size": size,
        "threshold_split": chooser,
    }


def _figures(is_link: Any, scores: Doubles, threshold: float) -> dict[str, Any] | None:
    if not len(scores):
        return None
    found: dict[str, float | None] = dict(
        f1_of_classes((scores > threshold).astype(np.int64), is_link.astype(np.int64), 2)
    )
    is_chosen = threshold < math.inf
    return {
        **(found if is_chosen else dict.fromkeys(found)),
        "roc_auc": roc_auc(scores[is_link], scores[~is_link]),  # links have others beside
        "num_links": int(is_link.sum()),
        "threshold": threshold if is_chosen else None,
    }


def _joined(parts: list[SnapshotPairs]) -> SnapshotPairs:
    names = ("src", "dst", "is_link", "is_burst")
    return SnapshotPairs(
        **{n: np.concatenate([getattr(p, n) for p in parts]) for n in names}
    )


def _scores_of_pairs(stream: Any, src: Ints, dst: Ints, before: int) -> Doubles:
    """Return what a stream model says of pairs, from its scores with all second ends."""
    unique, places = np.unique(src, return_inverse=True)
    found = np.empty(len(src))
    for first in range(0, len(unique), _AT_A_TIME):
        asked = unique[first : first + _AT_A_TIME]
        scores = stream.scores(asked, np.full(len(asked), before), before).numpy()
        own = np.flatnonzero((places >= first) & (places < first + _AT_A_TIME))
        found[own] = scores[places[own] - first, dst[own]]
    return found


def _make(graph: GraphReader, config: GnnConfig) -> EventChanges | StaticChanges:
    kind = EventChanges if config.is_of_events else StaticChanges
    return kind(graph, config)


TASKS.add(
    TaskSpec(
        name="change_prediction",
        make=_make,
        is_of_links=True,
        view=messages_of,
        is_of_events=True,
    )
)
