"""The embedded data set: a shop with users, items and categories, made of rules.

Hidden structure: every user has a community and a style; every item has a category and a
style; a community likes a few categories, a user some of those. What is seen follows:

- ``buys`` (user, item): most items of the user's style in the categories the user likes,
  and now and then one of another style (noise).
- ``bought_by`` (item, user): the inverse of ``buys``.
- ``belongs_to`` (item, category): one category per item.
- ``interested_in`` (user, category): the composition of ``buys`` and ``belongs_to``.
- ``social`` (user, user), two relations in one edge type: ``friend`` is symmetric, both
  directions are edges, between users of one community and style; ``follows`` is not: users
  follow a few leaders of their community, leaders those of the next one.

So held-out edges can be inferred: by inversion, symmetry, composition, and from the
hidden groups; popularity tells little. Ids are strings (``user-00042``). Nodes carry the
hidden community or category as ``label``. Each edge is in ``valid`` or ``test`` with
probability 1/40 each. Everything is drawn by hashing (draws.py).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.generators.draws import Draws, Integers
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

SOCIAL: Final = EdgeType("user", "social", "user")
BUYS: Final = EdgeType("user", "buys", "item")
BOUGHT_BY: Final = EdgeType("item", "bought_by", "user")
BELONGS_TO: Final = EdgeType("item", "belongs_to", "category")
INTERESTED_IN: Final = EdgeType("user", "interested_in", "category")

SPLITS: Final = ("train", "valid", "test")
_HELD_OUT: Final = 1 / 40
_NUM_STYLES: Final = 5
_LIKED: Final = 6  # categories that a community likes
_INTERESTS: Final = 3  # of them, those that a user likes
_NUM_LEADERS: Final = 6
_BUY_CHANCE: Final = 0.7
_NOISE_CHANCE: Final = 0.1
_MIN_BOUGHT: Final = 3


class _Shop(NamedTuple):
    """The hidden structure."""

    community: Integers  # of every user
    style: Integers  # of every user
    interests: Integers  # categories of every user, [users, 3]
    item_category: Integers
    item_style: Integers


class DemoSource(Source):
    """Edges of the demo graph; made by ``demo``."""

    def __init__(
        self, num_users: int, num_categories: int, items_per_style: int, seed: int
    ) -> None:
        self.name = f"demo(seed={seed})"
        self._seed = seed
        self._num_categories = num_categories
        self._items_per_style = items_per_style
        self._shop = self._plan(num_users)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all nodes, then the edges, one chunk for each type and split."""
        shop = self._shop
        names = {
            "user": _names("user", len(shop.style)),
            "item": _names("item", len(shop.item_style)),
            "category": _names("category", self._num_categories),
        }
        labels = {"user": shop.community, "item": shop.item_category}
        for node_type, ids in names.items():
            label = labels.get(node_type)
            yield NodeChunk(
                ids=ids,
                node_type=node_type,
                columns={} if label is None else {"label": label},
            )
        buys = self._buys()
        bought = buys[:, 1]
        for edge_type, src, dst, relation in self._edges(buys):
            splits = self._splits(edge_type, len(src))
            if edge_type == BELONGS_TO:  # an item that is hardly bought has no other edge
                splits[np.bincount(bought, minlength=len(src)) < _MIN_BOUGHT] = 0
            for k, split in enumerate(SPLITS):
                rows = np.flatnonzero(splits == k)
                columns = {} if relation is None else {"relation": relation.take(rows)}
                yield EdgeChunk(
                    src=_coded(src[rows], names[edge_type.src_type]),
                    dst=_coded(dst[rows], names[edge_type.dst_type]),
                    edge_type=edge_type,
                    split=split,
                    columns=columns,
                )

    def _draws(self, purpose: str) -> Draws:
        return Draws(f"demo:{self._seed}:{purpose}")

    def _plan(self, num_users: int) -> _Shop:
        """Draw the hidden structure; communities are of different sizes."""
        num_communities = max(num_users // 80, 2)
        spread = self._draws("community").fractions(num_users) ** 1.25
        community = (spread * num_communities).astype(np.int64)
        liked = self._draws("liked").permutations(num_communities, self._num_categories)
        chosen = self._draws("interests").permutations(num_users, _LIKED)[:, :_INTERESTS]
        num_items = self._num_categories * _NUM_STYLES * self._items_per_style
        item = np.arange(num_items, dtype=np.int64)
        return _Shop(
            community=community,
            style=self._draws("style").integers(num_users, _NUM_STYLES),
            interests=np.take_along_axis(liked[community][:, :_LIKED], chosen, axis=1),
            item_category=item % self._num_categories,
            item_style=item // self._num_categories % _NUM_STYLES,
        )

    def _edges(
        self, buys: Integers
    ) -> Iterator[tuple[EdgeType, Integers, Integers, pa.Array | None]]:
        """Yield the edges of each type: sources, destinations, relations."""
        shop = self._shop
        friend, follows = self._friends(), self._follows()
        relation = np.repeat([0, 1], [len(friend), len(follows)])
        social = np.concatenate([friend, follows])
        names = pa.array(["friend", "follows"]).take(pa.array(relation))
        yield SOCIAL, social[:, 0], social[:, 1], names.dictionary_encode()
        yield BUYS, buys[:, 0], buys[:, 1], None
        yield BOUGHT_BY, buys[:, 1], buys[:, 0], None
        item = np.arange(len(shop.item_category), dtype=np.int64)
        yield BELONGS_TO, item, shop.item_category, None
        composed = _distinct(np.stack([buys[:, 0], shop.item_category[buys[:, 1]]], axis=1))
        yield INTERESTED_IN, composed[:, 0], composed[:, 1], None

    def _buys(self) -> Integers:
        """Return who buys what, ``[n, 2]``, each pair once."""
        shop, per_style = self._shop, self._items_per_style
        num_users = len(shop.style)
        shape = (num_users, _INTERESTS, per_style)
        user = np.broadcast_to(np.arange(num_users)[:, None, None], shape).ravel()
        category = np.broadcast_to(shop.interests[:, :, None], shape).ravel()
        place = np.broadcast_to(np.arange(per_style), shape).ravel()
        style = shop.style[user]
        is_noise = self._draws("noise").fractions(user.size) < _NOISE_CHANCE
        other = self._draws("noise style").integers(user.size, _NUM_STYLES)
        style = np.where(is_noise, other, style)
        item = (place * _NUM_STYLES + style) * self._num_categories + category
        is_bought = self._draws("buy").fractions(user.size) < _BUY_CHANCE
        return _distinct(np.stack([user, item], axis=1)[is_bought])

    def _friends(self) -> Integers:
        """Return pairs within a community and style, both directions, ``[n, 2]``."""
        shop = self._shop
        group = shop.community * _NUM_STYLES + shop.style
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        first = (np.cumsum(sizes) - sizes)[group]
        draws = self._draws("friend").fractions(3 * len(group)).reshape(-1, 3)
        other = order[first[:, None] + (draws * sizes[group][:, None]).astype(np.int64)]
        user = np.repeat(np.arange(len(group)), 3)
        pairs = np.stack([user, other.ravel()], axis=1)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        return _distinct(np.concatenate([pairs, pairs[:, ::-1]]))

    def _follows(self) -> Integers:
        """Return who follows which leader, ``[n, 2]``; leaders follow the next ones."""
        community = self._shop.community
        num_communities = int(community.max()) + 1
        order = np.argsort(community, kind="stable")
        sizes = np.bincount(community, minlength=num_communities)
        first = np.cumsum(sizes) - sizes
        rank = np.empty(len(community), dtype=np.int64)
        rank[order] = np.arange(len(community)) - np.repeat(first, sizes)
        led_by = (community + (rank < _NUM_LEADERS)) % num_communities
        chosen = self._draws("follow").permutations(len(community), _NUM_LEADERS)[:, :3]
        place = first[led_by][:, None] + np.minimum(chosen, sizes[led_by][:, None] - 1)
        leader = order[np.minimum(place, len(order) - 1)]
        pairs = np.stack([np.repeat(np.arange(len(community)), 3), leader.ravel()], axis=1)
        return _distinct(pairs[pairs[:, 0] != pairs[:, 1]])

    def _splits(self, edge_type: EdgeType, size: int) -> npt.NDArray[np.int64]:
        """Return 0, 1 or 2 (train, valid, test) for each edge of a type."""
        draw = self._draws(f"split {edge_type.relation}").fractions(size)
        return (draw < 2 * _HELD_OUT).astype(np.int64) + (draw < _HELD_OUT)


def _distinct(pairs: npt.NDArray[np.int64]) -> Integers:
    """Return each pair once, sorted, ``[n, 2]``."""
    high = int(pairs[:, 1].max()) + 1
    codes = distinct(pairs[:, 0] * high + pairs[:, 1])
    return np.stack([codes // high, codes % high], axis=1)


def _names(word: str, size: int) -> pa.StringArray:
    return pa.array(np.char.mod(f"{word}-%05d", np.arange(size)).tolist(), type=pa.string())


def _coded(numbers: Integers, names: pa.StringArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), names)


def demo(
    *,
    num_users: int = 6400,
    num_categories: int = 160,
    items_per_style: int = 7,
    seed: int = 0,
) -> DemoSource:
    """Make the demo graph: about 12,000 nodes and 250,000 edges.

    Args:
        num_users: Users, at least 160.
        num_categories: Categories, at least 6.
        items_per_style: Items of each category and style.
        seed: Another seed, another graph.

    Raises:
        ConfigError: a number is too small.
    """
    for name, value, low in (
        ("num_users", num_users, 160),
        ("num_categories", num_categories, _LIKED),
        ("items_per_style", items_per_style, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise ConfigError(f"demo.{name}: got {value!r}, expected an int >= {low}")
    return DemoSource(num_users, num_categories, items_per_style, seed)
