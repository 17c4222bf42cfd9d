"""Several parameter servers are one to workers; how many, a model of times says."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from graphsys.distributed.embedding.parameter_server import (
    BLOCK,
    Call,
    ExchangeModel,
    Floats,
    ParameterServer,
    SharedTables,
    SplitServers,
)


def called(server: ParameterServer) -> Call:
    return lambda method, *words, **named: getattr(server, method)(*words, **named)


def split(tables: Mapping[str, Floats], size: int) -> Call:
    servers = [ParameterServer(part) for part in SplitServers.parts(tables, size)]
    return SplitServers.of([*map(called, servers)], tables)


@pytest.fixture
def tables(rng: np.random.Generator) -> dict[str, Floats]:
    shapes = {
        "relations/r": (7, 50),
        "globals/n": (2, BLOCK),
        "rows/n": (11, 6),
        "state/n": (11,),
        "one": (1, 3),
        "none": (2, 0),
    }
    return {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }


class Worker:
    """Copies of the tables, exchanged with servers that are called as one."""

    def __init__(self, call: Call, name: str, tables: Mapping[str, Floats]) -> None:
        self.tables = {key: np.zeros_like(table) for key, table in tables.items()}
        self._call, self._name, self._number = call, name, 0
        call("join", name)
        self.shared = SharedTables(self.tables, self._exchange)

    def _exchange(self, pushed: Any, is_last: bool) -> Any:
        self._number += 1
        words = "exchange", self._name, self._number, pushed
        self._call(*words, is_last=is_last)
        return self._call(*words, is_last=is_last)  # a call that comes twice counts once


@pytest.mark.parametrize("size", [2, 3, 5])
def test_several_hold_what_one_holds(tables: dict[str, Floats], size: int) -> None:
    servers = called(ParameterServer(tables)), split(tables, size)
    found = []
    for call in servers:
        rng = np.random.default_rng(3)
        workers = [Worker(call, name, tables) for name in "ab"]
        for step in range(6):
            worker = workers[step % 2]
            worker.shared.exchange()
            for table in worker.tables.values():
                flat = table.reshape(-1)
                if flat.size:
                    flat[rng.integers(0, flat.size, 2)] += rng.normal(size=2)
            worker.shared.exchange(is_last=step > 3)
        for worker in workers:
            worker.shared.exchange(is_last=True)
        held = call("tables")
        for worker in workers:
            for name, table in held.items():
                assert table.shape == tables[name].shape
                np.testing.assert_allclose(worker.tables[name], table, atol=1e-6)
        found.append(held)
    for name in tables:
        np.testing.assert_allclose(found[0][name], found[1][name], atol=1e-6)
    assert servers[0]("staleness").keys() == servers[1]("staleness").keys()


def test_who_is_ahead_at_one_waits_and_who_is_forgotten_is_told(
    tables: dict[str, Floats],
) -> None:
    call = split(tables, 3)
    for name in "ab":
        call("join", name)
        call("exchange", name, 1, {}, is_last=False)
    for number in range(2, 6):
        pulled = call("exchange", "a", number, {}, is_last=False)
    assert pulled.is_ahead
    assert call("is_ahead", "a")
    call("exchange", "b", 2, {}, is_last=True)
    assert not call("is_ahead", "a")
    call("forget", "b")
    assert not call("exchange", "b", 3, {}, is_last=False).is_member


@pytest.mark.parametrize(
    ("shared_s", "call_s", "best"), [(0.4, 0.001, 8), (0.09, 0.01, 3), (0.001, 0.1, 1)]
)
def test_the_number_is_that_of_the_model(shared_s: float, call_s: float, best: int) -> None:
    model = ExchangeModel({n: 0.02 + shared_s / n + call_s * n for n in (1, 2, 4)})
    assert (model.shared_s, model.call_s) == pytest.approx((shared_s, call_s))
    assert model.best(8) == best
    assert model.best(1) == 1


def test_exchanges_are_timed_with_all_workers_at_once(tables: dict[str, Floats]) -> None:
    begun = []

    def start(size: int) -> Call:
        call, name_of = split(tables, size), set[str]()

        def slow(method: str, *words: Any, **named: Any) -> Any:
            if method == "exchange":
                name_of.add(words[0])
                time.sleep(0.08 / size)
            return call(method, *words, **named)

        begun.append(name_of)
        return slow

    model = ExchangeModel.timed(start, tables, 3)
    assert begun == [{"0", "1", "2"}] * 3
    assert model.best(4) == 4
    assert model.text(4).startswith(
        "parameters are at 4 servers: an exchange of all workers"
    )
