"""A knowledge graph made of rules, so that what is held out can be inferred.

A person lives in one of the towns, a town lies in one country. Facts of person p:
``lives_in(p, town)``, ``home_of(town, p)`` (inverse), ``citizen_of(p, country)``
(composition of lives_in and lies_in), ``speaks(p, language)`` (the country's, but 5 % any),
``married_to(p, q)`` and back (symmetric), ``knows(p, q)`` (anyone: noise, never held out).
Facts of town t: ``lies_in(t, country)``. Of the facts that a rule gives, the share
``held_out`` goes to each of valid and test.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError
from graphsys.core.types import EdgeType
from graphsys.datasets.generators.drawn import (
    CHUNK_ROWS,
    MAX_NODES,
    DrawnSource,
    Piece,
    check_integers,
    check_shares,
)
from graphsys.datasets.generators.draws import Draws, Integers, as_fractions, as_integers
from graphsys.storage.source import EdgeChunk, NodeChunk

TRIPLE: Final = EdgeType("entity", "triple", "entity")
RELATIONS: Final = (
    "lives_in",
    "home_of",
    "citizen_of",
    "speaks",
    "married_to",
    "knows",
    "lies_in",
)
_OF_PERSON: Final = 6
_INFERRED: Final = (1, 2, 4)
_KINDS: Final = ("person", "town", "country", "language")


# long: four kinds of facts that share their draws, one after the other
def rules(
    num_people: int = 5000,
    num_towns: int = 200,
    num_countries: int = 20,
    *,
    held_out: float = 0.05,
    seed: int = 0,
    chunk_rows: int = CHUNK_ROWS,
    num_threads: int | None = None,
) -> DrawnSource:
    """Make a knowledge graph of people, towns, countries and languages.

    Ids are integers: people, then towns, countries, and a language for each country; the
    node column ``kind`` says which.

    Args:
        num_people: People, six facts each.
        num_towns: Towns.
        num_countries: Countries.
        held_out: Share of the facts that rules give, for each of valid and test.
        seed: Another seed, another graph.
        chunk_rows: Rows made at once; does not change them.
        num_threads: Threads; do not change the graph either.

    Raises:
        ConfigError: a value is out of range.
    """
    check_integers(
        "rules",
        ("num_people", num_people, 2, MAX_NODES // 2),
        ("num_towns", num_towns, 1, MAX_NODES // 4),
        ("num_countries", num_countries, 1, MAX_NODES // 8),
    )
    check_shares("rules", ("held_out", held_out))
    if num_people % 2 or held_out > 0.4:
        raise ConfigError(
            f"rules: got num_people={num_people}, held_out={held_out}, expected an even "
            "number of people (pairs) and at most 0.4"
        )
    name = f"rules:{seed}"
    town_of, country_of, spoken, known, hold = (
        Draws(f"{name}:{it}") for it in ("town", "country", "language", "knows", "hold")
    )
    bounds = np.cumsum([0, num_people, num_towns, num_countries, num_countries])

    def country(town: Integers) -> Integers:
        return as_integers(country_of.words_of(town), num_countries)

    def nodes(first: int, last: int) -> list[NodeChunk]:
        ids = np.arange(first, last, dtype=np.int64)
        kind = np.searchsorted(bounds, ids, side="right") - 1
        names = pa.array(_KINDS).take(pa.array(kind))
        return [NodeChunk(ids=ids, node_type="entity", columns={"kind": names})]

    def people(first: int, last: int) -> list[EdgeChunk]:
        fact = np.arange(first, last, dtype=np.int64)
        person, slot = fact // _OF_PERSON, fact % _OF_PERSON
        town = as_integers(town_of.words_of(person), num_towns)
        home = country(town)
        words = spoken.words_of(person)
        any_country = as_integers(words, num_countries)
        language = np.where((words & np.uint64(0xFF)) < np.uint64(13), any_country, home)
        friend = as_integers(known.words_of(person), num_people)
        src = np.where(slot == 1, bounds[1] + town, person)
        dst = np.choose(
            slot,
            [
                bounds[1] + town,
                person,
                bounds[2] + home,
                bounds[3] + language,
                person ^ 1,
                friend,
            ],
        )
        # Of a married pair only one direction may be held out: the other infers it.
        may_go = np.isin(slot, _INFERRED) & ~((slot == 4) & (person % 2 == 0))
        draw = as_fractions(hold.words_of(fact))
        code = np.where(may_go, (draw < 2 * held_out) + (draw < held_out).astype(int), 0)
        return _by_split(src, dst, slot, code)

    def towns(first: int, last: int) -> list[EdgeChunk]:
        town = np.arange(first, last, dtype=np.int64)
        slot = np.full(len(town), _OF_PERSON)
        zero = np.zeros(len(town), dtype=np.int64)
        return _by_split(bounds[1] + town, bounds[2] + country(town), slot, zero)

    return DrawnSource(
        f"rules(num_people={num_people}, seed={seed})",
        [
            Piece(int(bounds[-1]), nodes),
            Piece(num_people * _OF_PERSON, people),
            Piece(num_towns, towns),
        ],
        is_directed=True,
        chunk_rows=chunk_rows,
        num_threads=num_threads,
    )


def _by_split(
    src: Integers, dst: Integers, slot: Integers, code: Integers
) -> list[EdgeChunk]:
    """Return a chunk for each split that occurs."""
    chunks = []
    for number, split in enumerate(("train", "valid", "test")):
        mask = code == number
        if mask.any():
            relation = pa.DictionaryArray.from_arrays(
                pa.array(slot[mask].astype(np.int32)), pa.array(RELATIONS)
            )
            chunks.append(
                EdgeChunk(
                    src=src[mask],
                    dst=dst[mask],
                    edge_type=TRIPLE,
                    split=split,
                    columns={"relation": relation},
                )
            )
    return chunks
