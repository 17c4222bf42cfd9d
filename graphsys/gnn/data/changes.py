"""The links that a snapshot brings, normal or burst, and pairs that it does not."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.rng import generator
from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.proximity import Proximity

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
KINDS = ("normal", "burst")
_AT_A_TIME = 256


@dataclass(frozen=True, kw_only=True)
class SnapshotPairs:
    """Pairs of a snapshot; the links and as many that are none, in that order.

    Attributes:
        src: First ends, int64 ``[n]``.
        dst: Second ends, int64 ``[n]``, numbers of the stream.
        is_link: Whether the snapshot has the pair, bool ``[n]``.
        is_burst: Whether the pair was not near before, bool ``[n]``.
    """

    src: Ints
    dst: Ints
    is_link: Bools
    is_burst: Bools


def changes_of(
    events: EventStream, proximity: Proximity, begin: int, end: int, seed: int
) -> SnapshotPairs:
    """Return the pairs of events ``begin`` to ``end``, each once, and others beside them.

    A link is normal where its ends were near before the snapshot (:class:`Proximity`), else
    a burst. For each there is a pair with the same first end, of the same kind, that is no
    link of the snapshot: its second end is drawn among the nodes that any event up to the
    snapshot's end has as one. A link without such a pair is left out. Thus neither the
    first end nor nearness tells links from others.
    """
    found = np.unique(np.stack([events.src[begin:end], events.dst[begin:end]]), axis=1)
    src, dst = found[:, found[0] != found[1]]
    is_burst = ~proximity.of_pairs(src, dst, begin)
    known = np.zeros(events.num_dst, dtype=bool)
    known[events.dst[:end] - events.first_dst] = True
    rng = generator(seed, "changes", begin)
    drawn = np.full(len(src), -1)
    for first in range(0, len(src), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        unique, places = np.unique(src[part], return_inverse=True)
        near = proximity.among_all(unique, begin)[places]
        allowed = (near != is_burst[part, None]) & known
        own = src[part] - events.first_dst  # a node is no second end of its own
        row = np.flatnonzero((own >= 0) & (own < events.num_dst))
        allowed[row, own[row]] = False
        low, high = np.searchsorted(src, [unique[0], unique[-1] + 1])
        at = np.searchsorted(unique, src[low:high])
        linked = np.zeros((len(unique), events.num_dst), dtype=bool)
        linked[at, dst[low:high] - events.first_dst] = True
        chance = np.where(allowed & ~linked[places], rng.random(allowed.shape), -1)
        best = chance.argmax(axis=1)
        has_some = chance[np.arange(len(best)), best] >= 0
        drawn[part] = np.where(has_some, best + events.first_dst, -1)
    is_kept = drawn >= 0
    src, dst, is_burst, drawn = (a[is_kept] for a in (src, dst, is_burst, drawn))
    return SnapshotPairs(
        src=np.tile(src, 2),
        dst=np.concatenate([dst, drawn]),
        is_link=np.arange(2 * len(src)) < len(src),
        is_burst=np.tile(is_burst, 2),
    )
