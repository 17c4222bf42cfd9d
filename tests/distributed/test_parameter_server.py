"""The parameter server: sums of differences, staleness and its bound, repeated calls."""

from collections.abc import Mapping

import numpy as np
import pytest

from graphsys.distributed.embedding.parameter_server import (
    BLOCK,
    SLACK,
    Blocks,
    Floats,
    ParameterServer,
    Pulled,
    SharedTables,
    as_blocks,
    from_blocks,
    staleness_bound,
    write_blocks,
)


class Worker:
    """Copies of the tables, and the calls of one worker."""

    def __init__(self, server: ParameterServer, name: str, like: Mapping[str, Floats]):
        self.server, self.name, self.number = server, name, 0
        self.tables = {key: np.zeros_like(table) for key, table in like.items()}
        self.pulled = Pulled(blocks={})
        server.join(name)
        self.shared = SharedTables(self.tables, self.call)

    def call(self, pushed: Mapping[str, Blocks], is_last: bool) -> Pulled:
        self.number += 1
        self.pulled = self.server.exchange(self.name, self.number, pushed, is_last=is_last)
        return self.pulled


@pytest.fixture
def tables(rng: np.random.Generator) -> dict[str, Floats]:
    shapes = {"relations/r": (4, 50), "globals/n": (2, BLOCK), "none": (2, 0)}
    return {
        name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, 3 * BLOCK, 3 * BLOCK + 5])
def test_blocks_are_the_table(size: int) -> None:
    table = np.arange(1, size + 1, dtype=np.float32).reshape(1, size)
    blocks = as_blocks(table)
    assert blocks.shape == (-(-size // BLOCK), BLOCK)
    np.testing.assert_array_equal(from_blocks(blocks, (1, size)), table)
    written = np.zeros_like(table)
    write_blocks(written, np.arange(len(blocks), dtype=np.uint32), blocks)
    np.testing.assert_array_equal(written, table)


def test_what_workers_change_adds_up(tables: dict[str, Floats]) -> None:
    server = ParameterServer(tables)
    a, b = Worker(server, "a", tables), Worker(server, "b", tables)
    for worker in (a, b):
        worker.shared.exchange()
        for name, table in tables.items():
            np.testing.assert_array_equal(worker.tables[name], table)
    a.tables["relations/r"][1, 7] += 1.0
    b.tables["relations/r"][1, 7] += 2.0
    b.tables["globals/n"][0, 0] -= 1.0
    for worker in (a, b, a):
        worker.shared.exchange()
    wanted = {name: table.copy() for name, table in tables.items()}
    wanted["relations/r"][1, 7] += 3.0
    wanted["globals/n"][0, 0] -= 1.0
    for found in (a.tables, b.tables, server.tables()):
        for name, table in wanted.items():
            np.testing.assert_allclose(found[name], table, atol=1e-6)


def test_only_changed_blocks_travel(tables: dict[str, Floats]) -> None:
    server = ParameterServer(tables)
    a, b = Worker(server, "a", tables), Worker(server, "b", tables)
    a.shared.exchange()
    b.shared.exchange()
    before = b.shared.sent_bytes
    a.tables["relations/r"][0, 0] += 1.0
    a.shared.exchange()
    b.shared.exchange()
    assert b.shared.sent_bytes - before == BLOCK * 4 + 4
    assert list(b.pulled.blocks) == ["relations/r"]


@pytest.mark.parametrize("pushes", [1, 5])
def test_of_rows_travels_one_sum_whatever_was_trained(
    rng: np.random.Generator, pushes: int
) -> None:
    """And its state: the row of a feature that many nodes have is no more than that."""
    dim = 100
    tables = {
        "rows/n": rng.normal(size=(50, dim)).astype(np.float32),
        "state/n": rng.normal(size=50).astype(np.float32),
    }
    server = ParameterServer(tables)
    a, b = Worker(server, "a", tables), Worker(server, "b", tables)
    a.shared.exchange()
    b.shared.exchange()
    before = a.shared.sent_bytes, b.shared.sent_bytes
    for _ in range(pushes):  # batches between two exchanges
        a.tables["rows/n"][7] += 1.0
        a.tables["state/n"][7] += 0.5
    a.shared.exchange()
    b.shared.exchange()
    one_row = 4 + dim * 4 + 4 + 4
    assert b.shared.sent_bytes - before[1] == one_row
    assert a.shared.sent_bytes - before[0] == 2 * one_row  # pushed, and pulled again
    np.testing.assert_allclose(b.tables["rows/n"][7], tables["rows/n"][7] + pushes, 1e-5)
    assert b.tables["state/n"][7] == pytest.approx(tables["state/n"][7] + 0.5 * pushes)


def test_a_call_that_comes_again_adds_nothing(tables: dict[str, Floats]) -> None:
    server = ParameterServer(tables)
    server.join("a")
    server.exchange("a", 1, {}, is_last=False)
    chosen = np.array([0], dtype=np.uint32)
    pushed = {"globals/n": (chosen, np.ones((1, BLOCK), dtype=np.float32))}
    first = server.exchange("a", 2, pushed, is_last=False)
    again = server.exchange("a", 2, pushed, is_last=False)
    np.testing.assert_array_equal(
        first.blocks["globals/n"][1], again.blocks["globals/n"][1]
    )
    np.testing.assert_allclose(
        server.tables()["globals/n"][0], tables["globals/n"][0] + 1, rtol=1e-6
    )
    assert server.staleness() == {"a": (1, 0, 0)}


def test_who_is_ahead_waits_and_nobody_waits_for_who_is_idle_or_lost(
    tables: dict[str, Floats],
) -> None:
    server = ParameterServer(tables)
    a, b = Worker(server, "a", tables), Worker(server, "b", tables)

    def push(worker: Worker, is_last: bool = False) -> bool:
        worker.tables["globals/n"][0] += 1
        worker.shared.exchange(is_last=is_last)
        return worker.pulled.is_ahead

    a.shared.exchange()
    assert not any(push(a) for _ in range(10))  # alone
    push(a, is_last=True)
    a.shared.exchange()
    b.shared.exchange()  # b comes in as far as a is
    assert [push(a) for _ in range(SLACK + 1)] == [False] * SLACK + [True]
    assert server.is_ahead("a")
    assert not push(b)
    assert not server.is_ahead("a")
    push(b, is_last=True)
    assert not any(push(a) for _ in range(5))
    b.shared.exchange()
    assert [push(a) for _ in range(SLACK + 1)][-1]
    server.forget("b")
    assert not server.is_ahead("a")
    b.shared.exchange()
    assert not b.pulled.is_member


def test_staleness_stays_within_its_bound(
    tables: dict[str, Floats], rng: np.random.Generator
) -> None:
    """Whoever may go on does, in any order, with units of any length."""
    names = "abc"
    server = ParameterServer(tables)
    workers = [Worker(server, name, tables) for name in names]
    is_training = dict.fromkeys(names, False)
    for _ in range(3000):
        worker = workers[rng.choice(3, p=[0.6, 0.3, 0.1])]
        if server.is_ahead(worker.name):
            continue
        is_last = is_training[worker.name] and rng.random() < 0.2
        if is_training[worker.name]:
            worker.tables["globals/n"][0] += 1
        worker.shared.exchange(is_last=is_last)
        is_training[worker.name] = not is_last
    figures = server.staleness()
    assert min(pushes for pushes, _, _ in figures.values()) > 50
    most = max(most for _, _, most in figures.values())
    assert SLACK < most <= staleness_bound(3)


def test_what_is_not_finite_stays_with_who_made_it(tables: dict[str, Floats]) -> None:
    server = ParameterServer(tables)
    worker = Worker(server, "a", tables)
    worker.shared.exchange()
    worker.tables["globals/n"][0, 0] = np.nan
    worker.shared.exchange()
    assert np.isfinite(server.tables()["globals/n"]).all()
    assert server.staleness()["a"][0] == 0


def test_who_pushes_before_it_pulled_has_missed_what_was_pushed_by_then(
    tables: dict[str, Floats],
) -> None:
    server = ParameterServer(tables)
    chosen = np.array([0], dtype=np.uint32)
    pushed = {"globals/n": (chosen, np.ones((1, BLOCK), dtype=np.float32))}
    for worker in "abc":
        server.join(worker)
        pulled = server.exchange(worker, 1, pushed, is_last=False)
        assert pulled.is_member
        assert list(pulled.blocks) == ["relations/r", "globals/n"]  # all, the first time
    assert server.staleness() == {"a": (1, 0, 0), "b": (1, 1, 1), "c": (1, 2, 2)}


@pytest.mark.parametrize(("workers", "slack", "bound"), [(1, 2, 0), (2, 2, 6), (3, 0, 4)])
def test_each_of_the_others_is_behind_and_then_ahead(
    workers: int, slack: int, bound: int
) -> None:
    assert staleness_bound(workers, slack) == bound
