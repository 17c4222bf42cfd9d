"""Parameters summed by gloo over workers that are threads: sums, rounds, silence."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.all_reduce import SummedTables, staleness_bound
from graphsys.distributed.embedding.gloo import open_meeting
from graphsys.distributed.embedding.parameter_server import Floats
from graphsys.distributed.embedding.work import by_exchange
from graphsys.embedding import EmbeddingConfig
from tests.clusters import gloo_groups


class Workers:
    """Workers that have the same tables."""

    def __init__(self, size: int, timeout_s: float = 30.0) -> None:
        groups = gloo_groups(size, timeout_s)
        self.tables = [
            {
                "relations/r": np.ones((4, 5), np.float32),
                "none": np.ones((2, 0), np.float32),
            }
            for _ in groups
        ]
        self.summed = [
            SummedTables(tables, group)
            for tables, group in zip(self.tables, groups, strict=True)
        ]
        for each in self.summed:
            each.begin()

    def own(self, rank: int) -> Floats:
        return self.tables[rank]["relations/r"]

    def train(self, rank: int, value: float) -> None:
        self.own(rank)[rank, 0] += value
        self.summed[rank].exchange()

    def train_alone(self) -> None:
        for _ in range(3):  # of a round that had begun the end may come
            self.train(0, 1.0)

    def together(self, work: Callable[[int], None]) -> None:
        with ThreadPoolExecutor(len(self.summed)) as pool:
            list(pool.map(work, range(len(self.summed))))

    def finish(self) -> None:
        self.together(lambda rank: self.summed[rank].finish(0))


@pytest.fixture
def two() -> Iterator[Workers]:
    workers = Workers(2)
    yield workers
    for each in workers.summed:
        each.close()


def test_units_of_any_length_add_up_to_the_same_bits(rng: np.random.Generator) -> None:
    workers = Workers(3)
    steps = rng.random(size=(3, 4, 6)).astype(np.float32)
    lengths = rng.integers(0, 6, size=(3, 4))

    def work(rank: int) -> None:
        summed = workers.summed[rank]
        for unit, length in zip(steps[rank], lengths[rank], strict=True):
            summed.take(is_training=False)
            summed.take(is_training=True)
            for step in unit[:length]:
                workers.own(rank)[...] += step
                summed.exchange()
            workers.own(rank)[...] += unit[-1]
            summed.take(is_training=False)
        summed.finish(0)

    workers.together(work)
    wanted = 1 + steps[..., -1].sum()
    wanted += sum(steps[r, u, : lengths[r, u]].sum() for r in range(3) for u in range(4))
    np.testing.assert_allclose(workers.own(0), wanted, rtol=1e-5)
    for rank, summed in enumerate(workers.summed):
        np.testing.assert_array_equal(workers.own(rank), workers.own(0))
        assert 0 <= summed.most_missed <= staleness_bound(3)
        assert 0 < summed.pushes <= summed.rounds == workers.summed[0].rounds
        assert summed.sent_bytes == summed.rounds * (2 * 2 * (20 + 2) * 4 // 3)


def test_nobody_waits_for_who_does_not_train(two: Workers) -> None:
    two.summed[0].take(is_training=True)
    for _ in range(3):
        two.train(0, 1.0)
    assert two.summed[0].missed == 0
    two.summed[0].take(is_training=False)
    two.summed[1].take(is_training=True)
    two.train(1, 2.0)
    assert two.own(1)[0, 0] == two.own(0)[0, 0] == 4.0
    two.finish()
    np.testing.assert_array_equal(two.own(0)[:2, 0], [4.0, 3.0])


def test_who_trains_is_waited_for(two: Workers) -> None:
    for summed in two.summed:
        summed.take(is_training=True)
    done = threading.Event()

    def first() -> None:
        two.train(0, 1.0)
        done.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert not done.wait(0.3)
    two.train(1, 1.0)
    thread.join()
    assert [each.missed for each in two.summed] == [1, 1]  # each other's, of that round


def test_tables_have_what_others_handed_over_before(two: Workers) -> None:
    for value in (2.0, 3.0):
        two.own(1)[1, 0] = value
        two.summed[1].take(is_training=False)
        assert two.summed[0].tables(0)["relations/r"][1, 0] == value
    two.finish()
    assert two.summed[0].tables(0)["relations/r"][1, 0] == 3.0  # no rounds any more


def test_who_is_left_hears_of_a_lost_worker(two: Workers) -> None:
    two.summed[0].take(is_training=True)
    two.train(0, 1.0)
    two.summed[1].close()
    with pytest.raises(ClusterError, match=r"all-reduce of parameters .* a worker is lost"):
        two.train_alone()
    with pytest.raises(ClusterError, match="all-reduce of parameters failed"):
        two.summed[0].finish(0)
    with pytest.raises(ClusterError, match="this worker has left"):
        two.summed[1].exchange()


def test_a_silent_worker_is_given_up() -> None:
    workers = Workers(2, timeout_s=0.5)
    for summed in workers.summed:
        summed.take(is_training=True)
    with pytest.raises(ClusterError, match=r"was silent for 0 s"):
        workers.train_alone()
    for each in workers.summed:
        each.close()


def test_what_is_not_finite_stays_with_who_made_it(two: Workers) -> None:
    two.summed[0].take(is_training=True)
    two.train(0, np.nan)
    assert np.isnan(two.own(0)[0, 0])
    two.summed[0].take(is_training=False)
    assert np.isfinite(two.summed[1].tables(0)["relations/r"]).all()


def test_rows_of_nodes_stay_at_the_server() -> None:
    names = ("relations/r", "globals/n", "rows/n", "state/n")
    tables = {name: np.zeros((1, 1), np.float32) for name in names}
    served, summed = by_exchange(tables, EmbeddingConfig(parameter_exchange="all_reduce"))
    assert (list(served), list(summed)) == (["rows/n", "state/n"], list(names[:2]))
    assert by_exchange(tables, EmbeddingConfig()) == (tables, {})


def test_a_meeting_listens_at_one_address_and_names_begin_with_a_key() -> None:
    import torch.distributed

    c10d: Any = torch.distributed
    store, (host, port, key) = open_meeting(2, "127.0.0.1")
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    here = [it[1] for it in lines if it[3] == "0A" and it[1].endswith(f":{port:04X}")]
    assert here == [f"0100007F:{port:04X}"]
    other = c10d.TCPStore(host, port, 2, False)
    c10d.PrefixStore(key, other).set("name", "ours")
    assert not store.check(["name"])
    assert len(key) == 32
