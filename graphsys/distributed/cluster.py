"""Starting Ray on this machine, or connecting to a cluster, and leaving either again."""

import contextlib
import fcntl
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphsys.core import ownership
from graphsys.core.deps import own_version
from graphsys.core.errors import ClusterError, ConfigError
from graphsys.core.threads import num_cores
from graphsys.distributed import ray
from graphsys.storage import text_cells
from graphsys.storage.locks import is_pinned
from graphsys.storage.reader import GraphReader

_STORE_BYTES = 200 << 20
"""Ray's object store on this machine: what travels is messages, not graphs."""
_FOLDER = "graphsys-ray-"
_MOST_LOCAL = 64
_CONNECT_S = 10
_LOCK = threading.Lock()
_open: "list[_OpenCluster]" = []
"""The cluster that this process has, while anyone is within :func:`connected`."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What ``--cluster`` names.

    Attributes:
        address: Of a running cluster; "" for workers on this machine.
        local_workers: How many of those; 0: a running cluster has one a processor.
    """

    address: str
    local_workers: int = 0

    @classmethod
    def parse(cls, text: str) -> "Cluster":
        """Read ``local:4`` or the address of a running cluster.

        Raises:
            ConfigError: no number of workers, or no host and port.

        Examples:
            >>> Cluster.parse("local:4").local_workers
            4
        """
        kind, _, rest = text.strip().partition(":")
        if kind == "local":
            if not rest.isdigit() or not 1 <= int(rest) <= _MOST_LOCAL:
                raise ConfigError(
                    f"--cluster local:N takes 1 to {_MOST_LOCAL} workers, got {text!r}"
                )
            return cls("", int(rest))
        host, _, port = text.strip().removeprefix("ray://").rpartition(":")
        if text.strip() != "auto" and not (host and port.isdigit()):
            raise ConfigError(
                f"--cluster takes local:N, or HOST:PORT of a running Ray cluster, got "
                f"{text!r}"
            )
        return cls(text.strip())


@contextmanager
def connected(cluster: Cluster) -> Iterator[int]:
    """Have Ray for as long as the context lasts, and yield the number of workers.

    Every run on a cluster does this by itself. Who starts many opens it once around them:
    within the context they use what is started, all of its workers or ``local:N`` of them.
    Workers on this machine end with the context and with this process, however it ends.

    Args:
        cluster: What to start or to connect to.

    Raises:
        MissingDependencyError: Ray is not installed.
        ClusterError: nothing answers at the address.
        ConfigError: this process is connected to another cluster already.

    Examples:
        >>> two = Cluster.parse("local:2")
        >>> with connected(two):  # doctest: +SKIP
        ...     distributed.train_embedding("graph", config, "rows", cluster=two)
        ...     distributed.evaluate("rows", cluster=two)
    """
    with _LOCK:
        if not _open:
            stack = contextlib.ExitStack()
            workers = stack.enter_context(_running(cluster))
            _open.append(_OpenCluster(cluster, workers, stack))
        opened = _open[0]
        workers = _share_of(opened, cluster)
        opened.users += 1
    try:
        yield workers
    finally:
        with _LOCK:  # other threads may be within: the last one leaves
            opened.users -= 1
            if not opened.users:
                _open.clear()
                opened.stack.close()


@dataclass
class _OpenCluster:
    """A cluster, its workers, what ends it, and how many contexts use it."""

    cluster: Cluster
    workers: int
    stack: contextlib.ExitStack
    users: int = 0


@contextmanager
def _running(cluster: Cluster) -> Iterator[int]:
    """Start Ray or connect to it, and leave it with the context; see :func:`connected`."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if ray.is_connected():
        raise ConfigError("this process is connected to a Ray cluster; leave that first")
    folder, lock = None, -1
    ray.keep_off_stdout()
    try:
        if cluster.local_workers:
            _sweep()
            folder, lock = _own_folder()
            with _starting():
                ray.start_here(cluster.local_workers, _STORE_BYTES, str(folder))
            yield cluster.local_workers
        else:
            yield _connect(cluster.address)
    finally:
        ray.leave()
        if folder is not None:
            ownership.remove_folder(folder)
            os.close(lock)


def _share_of(opened: _OpenCluster, cluster: Cluster) -> int:
    """Return the workers that a run on a cluster has of the one that is open.

    Raises:
        ConfigError: Another one is open, or one of fewer workers.
    """
    if cluster == opened.cluster:
        return opened.workers
    if opened.cluster.local_workers and 1 <= cluster.local_workers <= opened.workers:
        return cluster.local_workers
    both = (cluster, opened.cluster)
    given, has = (it.address or f"local:{it.local_workers}" for it in both)
    raise ConfigError(
        f"this process has the cluster {has} open and cannot open {given} beside it; "
        "name that one, or leave it first"
    )


@contextmanager
def _starting() -> Iterator[None]:
    """Say in a line that Ray did not start: on a busy machine it gives up by itself.

    Raises:
        ClusterError: It did not.
    """
    try:
        yield
    except Exception as err:  # Ray raises it as such
        reason = " ".join(str(err).split()) or type(err).__name__
        raise ClusterError(
            f"Ray did not start on this machine: {reason[:200]}; end what else runs here, "
            "or take fewer workers, and run the command again"
        ) from err


def _sweep() -> None:
    """Remove the folders of processes that were killed: nobody holds their locks.

    Numbers of processes would not do: other containers may share the folder for temporary
    files, and number theirs alike.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        with contextlib.suppress(OSError):
            if ownership.is_claimed(folder) and not is_pinned(folder):
                ownership.remove_claimed(folder, lambda _: True)


def _own_folder() -> tuple[Path, int]:
    """Make a folder for Ray, and hold a lock on it."""
    folder = ownership.temporary(_FOLDER)  # a short path: sockets lie in it
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_SH)
    ownership.claim(folder)
    return folder, lock


def _connect(address: str) -> int:
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host:  # Ray itself asks for minutes
            socket.create_connection((host, int(port)), _CONNECT_S).close()
        return ray.connect(address, text_cells.chosen())
    except (OSError, RuntimeError, ValueError, OverflowError) as err:
        raise ClusterError(
            f"no Ray cluster answers at {address}; start one by `ray start --head` and "
            "give its address; where it asks for a token, set RAY_AUTH_TOKEN here too"
        ) from err


def threads_per_worker(num_workers: int, *, is_local: bool) -> int:
    """Return how many threads a worker takes: on a running cluster it has one processor."""
    return max(num_cores() // num_workers, 1) if is_local else 1


def refuse_views(graph: GraphReader) -> None:
    """Refuse a graph that its folder does not tell all about.

    Raises:
        ConfigError: it is a view of times.
    """
    if graph.window is not None:
        raise ConfigError(
            "a cluster opens graphs by their folder, this is a view of times; write it "
            "as a graph first (gs.ingest(view, folder))"
        )


def describe_cluster(cluster: Cluster) -> dict[str, Any]:
    """Ask every node what it has.

    Returns:
        ``workers``, ``address`` and ``nodes``: of each ``host``, ``python``, ``graphsys``
        and ``ray`` (versions), ``cores``, ``memory_free_bytes``, and ``problems``: where it
        differs from this process.
    """
    with connected(cluster) as workers:
        nodes = ray.ask_nodes(describe_node, timeout_s=60)
    here = describe_node()
    for node in nodes:
        node["problems"] = [
            f"{name} {node[name]}, here {here[name]}"
            for name in ("python", "graphsys", "ray")
            if node[name] != here[name]
        ]
    where = cluster.address or f"local:{cluster.local_workers}"
    return {"address": where, "workers": workers, "nodes": nodes}


def describe_node() -> dict[str, Any]:
    """Return versions, cores and free memory of the machine that this runs on."""
    import platform
    from importlib.metadata import version

    from graphsys.core.memory import available_bytes

    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "graphsys": own_version(),
        "ray": version("ray"),
        "cores": num_cores(),
        "memory_free_bytes": available_bytes(),
    }
