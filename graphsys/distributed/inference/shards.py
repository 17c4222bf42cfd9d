"""Workers that each answer for a share: started, asked, started again by Ray.

What they are asked changes nothing and may be asked twice, and their constructor reads all
that they have. So a worker that is lost is Ray's to start again, and to ask again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphsys.core.deps import require
from graphsys.core.errors import ClusterError
from graphsys.distributed.cluster import Cluster, connected
from graphsys.distributed.watching import MAX_RESTARTS

_START_S = 120.0
_AHEAD = 2
"""How many questions a worker has at a time: the next waits while it answers one."""

Question = tuple[Any, ...]


class Shards:
    """Workers of a kind, by rank.

    Args:
        kind: Their class; made with a rank, how many there are, and ``arguments``.
        arguments: What else they are made with.
        size: How many.

    Raises:
        ClusterError: They do not begin.
    """

    def __init__(self, kind: type, arguments: Sequence[Any], size: int) -> None:
        ray = require("ray", extra="ray")
        self.size = size
        made: Any = ray.remote(
            num_cpus=1,
            max_restarts=MAX_RESTARTS,
            max_task_retries=MAX_RESTARTS,
            scheduling_strategy="SPREAD",
        )(kind)
        self._actors = [made.remote(rank, size, *arguments) for rank in range(size)]
        begun = [actor.ready.remote() for actor in self._actors]
        ready, waiting = ray.wait(begun, num_returns=size, timeout=_START_S)
        if waiting:
            raise ClusterError(
                f"no worker began within {_START_S:.0f} s; look whether the cluster has "
                f"{size} free processors (ray status)"
            )
        for reference in ready:
            self._result(reference)

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Return what all answer to one question, by rank."""
        return next(self.stream(method, [arguments]))

    def stream(self, method: str, questions: Iterable[Question]) -> Iterator[list[Any]]:
        """Yield what all answer to each question, by rank, in the questions' order.

        Raises:
            ClusterError: A worker is lost again and again.
        """
        asked: deque[list[Any]] = deque()
        for question in questions:
            if len(asked) == _AHEAD:
                yield [self._result(reference) for reference in asked.popleft()]
            asked.append([getattr(a, method).remote(*question) for a in self._actors])
        while asked:
            yield [self._result(reference) for reference in asked.popleft()]

    def end(self) -> None:
        """End all processes."""
        ray = require("ray", extra="ray")
        for actor in self._actors:
            ray.kill(actor)

    def _result(self, reference: Any) -> Any:
        ray = require("ray", extra="ray")
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as err:
            raise (getattr(err, "cause", None) or err) from None
        except ray.exceptions.RayActorError as err:
            raise ClusterError(
                f"a worker was lost {MAX_RESTARTS + 1} times, the last time: "
                f"{_reason(err)}; look at the memory and the system logs of the machines"
            ) from err


@contextmanager
def started(
    cluster: Cluster, kind: type, arguments: Sequence[Any], most: Callable[[], int]
) -> Iterator[Shards]:
    """Start workers, and end them with the context.

    Args:
        cluster: Where.
        kind: Their class.
        arguments: What they are made with.
        most: Returns how many a running cluster has use for.

    Raises:
        ClusterError: Nothing answers, or they do not begin.
    """
    with connected(cluster) as workers:
        if not cluster.local_workers:
            workers = max(min(workers, most()), 1)
        shards = Shards(kind, arguments, workers)
        try:
            yield shards
        finally:
            shards.end()


def _reason(err: BaseException) -> str:
    return (str(err).strip() or type(err).__name__).splitlines()[0]
