"""Connections among workers: what arrives, who is let in, and what a broken one says."""

import os
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ClusterError, WorkerLostError
from graphsys.distributed.transport import connections
from graphsys.distributed.transport.connections import (
    Connection,
    Connections,
    receive_frame,
    send_frame,
)
from graphsys.distributed.transport.exchange import Exchange, Mailbox

KEY = b"k" * 32


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def opened(size: int) -> tuple[list[Connections], list[list[Connection]], list[Mailbox]]:
    """Connect workers of this process among each other."""
    made = [Connections("127.0.0.1") for _ in range(size)]
    mailboxes = [Mailbox() for _ in made]
    addresses = [it.address for it in made]
    peers: list[Any] = [None] * size

    def join(rank: int) -> None:
        peers[rank] = made[rank].open(rank, addresses, KEY, mailboxes[rank])

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return made, peers, mailboxes


def test_a_message_arrives_as_it_was_sent(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    sent: Any = (
        np.arange(6, dtype=np.uint32).reshape(2, 3)[:, ::2],  # not in one piece
        (np.empty(0), np.array(3.5, np.float32), np.array([True, False])),
        {"file": {"bytes": 3, "name": "x"}},
        ("words", None, 1.5),
    )
    send_frame(ends[0], 2**40, sent)
    number, found = receive_frame(ends[1])
    assert number == 2**40
    assert found[2:] == sent[2:]
    for ours, theirs in zip((found[0], *found[1]), (sent[0], *sent[1]), strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        assert ours.tolist() == theirs.tolist()


def test_many_and_large_arrays_arrive(ends: tuple[socket.socket, socket.socket]) -> None:
    sent = (*(np.array([k]) for k in range(2000)), np.arange(3_000_000))
    sender = threading.Thread(target=send_frame, args=(ends[0], 1, sent))
    sender.start()
    _, found = receive_frame(ends[1])
    sender.join()
    assert [int(array[0]) for array in found[:-1]] == list(range(2000))
    assert (found[-1] == sent[-1]).all()


def test_only_numbers_travel(ends: tuple[socket.socket, socket.socket]) -> None:
    objects = np.array([{}, None], dtype=object)
    with pytest.raises(TypeError, match="an array of object cannot be sent"):
        send_frame(ends[0], 1, (objects,))
    for text in (b'[{"array": ["|O", [2]]}]', b"7", b'[{"other": 1}]', b"no"):
        ends[0].sendall((1).to_bytes(8, "little") + len(text).to_bytes(8, "little") + text)
        with pytest.raises((ValueError, KeyError)):
            receive_frame(ends[1])


def test_workers_hear_from_each_other() -> None:
    made, peers, mailboxes = opened(3)
    got: list[Any] = [None] * 3

    def work(rank: int) -> None:
        exchange = Exchange(rank, peers[rank], mailboxes[rank], timeout_s=30)
        rows = [exchange.gather(np.array([rank, turn], float)) for turn in range(20)]
        got[rank] = np.stack(rows)
        assert exchange.sent_bytes == 20 * 2 * 16

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for found in got:
        assert found[:, :, 0].tolist() == [[0.0, 1.0, 2.0]] * 20
        assert found[:, :, 1].tolist() == [[float(turn)] * 3 for turn in range(20)]
    for it in made:
        it.close()


def test_a_worker_whose_connection_breaks_is_lost() -> None:
    made, peers, mailboxes = opened(2)
    exchange = Exchange(0, peers[0], mailboxes[0], timeout_s=30)
    peers[1][0].send(1, 1, (np.arange(3),))
    peers[1][0].close()  # as the system does for a process that dies
    ((found,),) = exchange.all_to_all([()])  # what was on its way arrives
    assert found.tolist() == [0, 1, 2]
    with pytest.raises(WorkerLostError, match="the connection to worker 1 broke; look at"):
        exchange.all_to_all([()])
    for it in made:
        it.close()


def test_nobody_is_let_in_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    made, mailbox = Connections("127.0.0.1"), Mailbox()
    made.open(0, [], KEY, mailbox)
    with socket.create_connection(made.address, 10) as stranger:
        stranger.recv(32, socket.MSG_WAITALL)
        stranger.sendall(os.urandom(32) + bytes(4) + os.urandom(32))
        assert stranger.recv(1) == b""  # hung up, and no word of its own key
    with pytest.raises(WorkerLostError, match="the connection to worker 0 broke"):
        Connections("127.0.0.1").open(1, [made.address], b"another", Mailbox())
    # and who listens has to prove it too
    monkeypatch.setattr(connections, "_proof", lambda key, *words: os.urandom(32))
    with pytest.raises(WorkerLostError, match="the connection to worker 0 broke"):
        Connections("127.0.0.1").open(1, [made.address], KEY, Mailbox())
    with pytest.raises(ClusterError, match="worker 1 sent nothing for 0 s"):
        mailbox.take(1, [1], 0.01)
    made.close()


def test_a_worker_that_takes_nothing_is_told_of(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[0].settimeout(0.05)
    stopped = Connection(1, ends[0])
    with pytest.raises(ClusterError, match="worker 1 took nothing for 600 s; look at its"):
        stopped.send(1, 0, (np.zeros(4_000_000),))
