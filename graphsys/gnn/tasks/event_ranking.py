"""How high the second ends of events rank among all nodes, batch by batch in time."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.split_names import unknown_split
from graphsys.metrics.ranking import by_group, ranking_metrics
from graphsys.sampling import recent_rows

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Scorer = Callable[[Ints, Ints, int], torch.Tensor]
_AT_A_TIME: Final = 256
PAIRS: Final = ("new", "seen")


def rank_events(
    events: EventStream, split: str, size: int, score: Scorer
) -> dict[str, Any]:
    """Rank the second end of every event of a split among all nodes of its type.

    Events come in order of time, in batches whose ends no time is cut by; the scores of a
    batch may rest on what is strictly older than its first event. Rank is 1 + better +
    equal / 2. Other second ends of events that the source has at the very same time are
    no candidates, but for ``unfiltered``; all others are, earlier pairs of the source and
    nodes without any event too.

    Args:
        events: The stream.
        split: Whose events are ranked.
        size: Events of a batch.
        score: From sources and times of a batch ``[n]`` and the time before which events
            count, scores ``[n, num_dst]``.

    Returns:
        ``mrr``, ``mr``, ``hits@1``, ``hits@3``, ``hits@10``, the same under
        ``unfiltered``; ``by_pair``, the same of pairs that were ``seen`` before the batch
        and of ``new`` ones; ``num_edges``, ``num_candidates``, ``batch_size``.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It is empty.
    """
    require_span(events, split)
    begin, end = events.spans[split]
    filtered, raw = np.empty(end - begin), np.empty(end - begin)
    is_seen = np.empty(end - begin, dtype=np.int64)
    pairs = recent_rows(
        events.src, events.dst, events.time, events.num_nodes, is_both_ways=False
    )
    for low, high in events.batches(begin, end, size):
        before, part = int(events.time[low]), slice(low - begin, high - begin)
        filtered[part], raw[part] = _ranks(events, low, high, before, score)
        is_seen[part] = _are_seen(events, pairs, low, high, before)
    return {
        **ranking_metrics([filtered], [raw]),
        "by_pair": by_group(PAIRS, is_seen, filtered),
        "num_edges": end - begin,
        "num_candidates": events.num_dst,
        "batch_size": size,
    }


def require_span(events: EventStream, split: str) -> None:
    """Check that there are events of a split.

    Raises:
        UnknownNameError: There are none.
    """
    if split not in events.spans:
        raise unknown_split(split, events.spans, of_edges=True, by_time=True)


def _ranks(
    events: EventStream, low: int, high: int, before: int, score: Scorer
) -> tuple[Doubles, Doubles]:
    """Return filtered and unfiltered ranks of the events of a batch."""
    filtered, raw = np.empty(high - low), np.empty(high - low)
    for first in range(low, high, _AT_A_TIME):
        last = min(first + _AT_A_TIME, high)
        src, time = events.src[first:last], events.time[first:last]
        dst = torch.from_numpy(events.dst[first:last] - events.first_dst)
        scores = score(src, time, before)
        own = scores.gather(1, dst[:, None])
        part = slice(first - low, last - low)
        raw[part] = _rank_of(scores, own)
        row, other = _at_once(events, low, high, src, time)
        column = torch.from_numpy(events.dst[other] - events.first_dst)
        is_other = column != dst[row]
        scores = scores.clone()
        scores[torch.from_numpy(row)[is_other], column[is_other]] = -torch.inf
        filtered[part] = _rank_of(scores, own)
    return filtered, raw


def _rank_of(scores: torch.Tensor, own: torch.Tensor) -> Doubles:
    better, equal = (scores > own).sum(dim=1), (scores == own).sum(dim=1) - 1
    return (1 + better + equal.double() / 2).numpy()


def _at_once(
    events: EventStream, low: int, high: int, src: Ints, time: Ints
) -> tuple[Ints, Ints]:
    """Return which events of a batch have the source and the time of which queries."""
    keys = np.stack([events.src[low:high], events.time[low:high]], axis=1)
    unique, code = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(code.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(code.ravel(), minlength=len(unique)))
    wanted = np.stack([src, time], axis=1)
    place = {tuple(key): k for k, key in enumerate(unique.tolist())}
    own = np.array([place[tuple(key)] for key in wanted.tolist()])
    begins = np.concatenate([[0], ends[:-1]])[own]
    lengths = ends[own] - begins
    row = np.repeat(np.arange(len(src)), lengths)
    within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return row, order[np.repeat(begins, lengths) + within] + low


def _are_seen(events: EventStream, pairs: Any, low: int, high: int, before: int) -> Ints:
    src, dst = events.src[low:high], events.dst[low:high]
    ends = pairs.ends(src, np.full(len(src), before))
    found = zip(dst, pairs.indptr[src], ends, strict=True)
    return np.array([d in pairs.others[begin:end] for d, begin, end in found], np.int64)
