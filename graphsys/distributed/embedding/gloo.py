"""Workers of embeddings joined by gloo: by an object, not for the whole process."""

import secrets
import socket
from datetime import timedelta
from typing import Any

from graphsys.core.errors import ClusterError
from graphsys.distributed.embedding.parameter_server import Floats

MeetingPlace = tuple[str, int, str]
"""Address and port where workers find each other, and the key that only they know."""

TIMEOUT_S = 120.0
"""How long a round waits for a silent worker; a dead one is noticed by its connections."""


class GlooGroup:
    """Workers joined by gloo.

    Args:
        rank: Number of this one.
        size: How many there are.
        meeting: Where the first of them, which :func:`open_meeting`, is found.
        host: This machine's address, for the others.
        timeout_s: How long to wait for a silent worker.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        meeting: MeetingPlace,
        host: str,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        import torch.distributed

        self.size, self._timeout_s = size, timeout_s
        timeout = timedelta(seconds=timeout_s)
        c10d: Any = torch.distributed
        address, port, key = meeting
        store = c10d.TCPStore(address, port, size, False, timeout=timeout)
        store = c10d.PrefixStore(key, store)
        gloo = c10d.ProcessGroupGloo
        options = gloo._Options()  # the constructor without them listens where a name leads
        options._devices = [gloo.create_device(hostname=host)]
        options._timeout = timeout
        self._group: Any = gloo(store, rank, size, options)

    def add(self, values: Floats) -> None:
        """Sum; see :meth:`Group.add`."""
        import torch

        group = self._group
        if group is None:
            raise ClusterError("this worker has left; train again with --resume")
        try:
            group.allreduce([torch.from_numpy(values)]).wait()
        except RuntimeError as err:
            raise ClusterError(
                f"an all-reduce of parameters failed ({str(err).split(' [')[0][-60:]}): a "
                f"worker is lost, or was silent for {self._timeout_s:.0f} s; look at its "
                "machine, then go on with --resume"
            ) from err

    def close(self) -> None:
        """Leave."""
        self._group = None


def open_meeting(size: int, host: str) -> tuple[Any, MeetingPlace]:
    """Let workers find each other here, at one address; names there begin with a key.

    Returns:
        What is to be kept for as long as they train, and where it is.
    """
    store = listening_store(socket.create_server((host, 0)), size)
    return store, (host, store.port, secrets.token_hex(16))


def listening_store(listener: socket.socket, size: int) -> Any:
    """Return a store that listens by a socket: torch's own listens at all addresses."""
    import torch.distributed

    host, port = listener.getsockname()[:2]
    c10d: Any = torch.distributed
    return c10d.TCPStore(
        host, port, size, True, wait_for_workers=False, master_listen_fd=listener.detach()
    )
