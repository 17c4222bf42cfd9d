"""Ray's side of a training of embeddings: a worker's process, and calls between actors."""

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from graphsys.core.deps import require
from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.gloo import GlooGroup, MeetingPlace, open_meeting
from graphsys.distributed.embedding.parameter_server import Floats
from graphsys.distributed.embedding.split_servers import Call
from graphsys.distributed.embedding.work import EmbeddingWork
from graphsys.distributed.embedding.worker import EmbeddingWorker
from graphsys.distributed.profile_events import recorded

CALL_S = 60.0
"""How long an answer of a server is waited for before the call is made again."""
CALLS = 3


class ServerLostError(ClusterError):
    """What is to be begun again from the last checkpoint."""


class RemoteEmbeddingWorker:
    """A worker in a process of its own, made ready by its first call.

    Args:
        name: Its name.
        work: What to train.
        locks: The lock server.
        parameters: The parameter servers.
    """

    def __init__(
        self, name: str, work: EmbeddingWork, locks: Any, parameters: Sequence[Any]
    ) -> None:
        self._made_with = name, work, caller(locks), [*map(caller, parameters)]
        self._worker: EmbeddingWorker | None = None
        self._is_made = threading.Event()
        self._group: GlooGroup | None = None
        self._store: Any = None

    def ready(self) -> None:
        """Return when the process is there."""

    def open_meeting(self, size: int) -> MeetingPlace:
        """Have all workers find each other here; return where."""
        self._store, address = open_meeting(size, _own_address())
        return address

    def join(self, rank: int, size: int, meeting: MeetingPlace) -> None:
        """Join all workers, to all-reduce parameters."""
        self._group = GlooGroup(rank, size, meeting, _own_address())

    def tables(self, epoch: int) -> dict[str, Floats]:
        """Return what is all-reduced; see :meth:`SummedTables.tables`."""
        self._is_made.wait()
        assert self._worker is not None
        return self._worker.summed.tables(epoch)

    def train_epoch(self, epoch: int) -> dict[str, Any]:
        """Train; see :meth:`EmbeddingWorker.train_epoch`."""
        if self._worker is None:
            self._worker = EmbeddingWorker(*self._made_with, self._group)
            self._is_made.set()
        train = partial(self._worker.train_epoch, epoch)
        return recorded(train) if self._made_with[1].is_profiled else train()


def _own_address() -> str:
    """Return this machine's address; one's own where the cluster has no other machine."""
    ray = require("ray", extra="ray")
    address: str = ray.util.get_node_ip_address()
    others = {node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"]}
    return address if others - {address} else "127.0.0.1"


def caller(actor: Any, **options: Any) -> Call:
    """Return what calls the methods of an actor, again where no answer comes.

    Whatever is called may come twice: it carries its number, or changes nothing.

    Args:
        actor: The actor's handle.
        **options: Ray's, of every call.
    """
    ray = require("ray", extra="ray")

    def call(method: str, *arguments: Any, **named: Any) -> Any:
        for _ in range(CALLS):
            asked = getattr(actor, method).options(**options).remote(*arguments, **named)
            try:
                return ray.get(asked, timeout=CALL_S)
            except ray.exceptions.GetTimeoutError:
                continue
            except ray.exceptions.RayTaskError as err:
                raise (getattr(err, "cause", None) or err) from None
            except ray.exceptions.RayActorError as err:
                raise ServerLostError(str(err).splitlines()[0]) from err
        raise ServerLostError(
            f"a server of the training did not answer for {CALLS * CALL_S:.0f} s; look at "
            "its machine, then go on with --resume"
        )

    return call
