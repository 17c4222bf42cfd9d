"""Workers of a cluster, whatever they do: started, asked, watched, replaced, ended.

A worker is a process with a processor of its own. That one is lost is noticed within
:data:`WATCH_S`. Then Ray starts it again, where its constructor reads all that it has; or
who has the group replaces it; or all begin again. How often, says :class:`RestartBudget`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from graphsys.core.errors import ClusterError, GraphsysError, WorkerLostError
from graphsys.distributed import ray
from graphsys.distributed.cluster import Cluster, connected

MAX_RESTARTS = 3
"""How often lost workers are started again before a run is given up."""
START_S = 120.0
"""How long the first answer of a worker is waited for."""
WATCH_S = 0.5
"""How long is waited for answers before workers are looked at."""
_AHEAD = 2
"""How many questions a worker has at a time: the next waits while it answers one."""

Question = tuple[Any, ...]


class RestartBudget:
    """How often workers may be lost.

    Args:
        advice: What a user does once they were too often.

    Attributes:
        used: How often they were.
    """

    def __init__(self, advice: str) -> None:
        self.used, self._advice = 0, advice

    def take(self, reason: object = "") -> None:
        """Count that workers were lost.

        Args:
            reason: What was said the last time, if that is of use.

        Raises:
            ClusterError: They were too often.
        """
        if self.used >= MAX_RESTARTS:
            last = f", the last time: {reason}" if reason else ""
            raise ClusterError(
                f"workers were lost {MAX_RESTARTS + 1} times{last}; look at the memory and "
                f"the system logs of the machines, then {self._advice}"
            )
        self.used += 1


class WorkerGroup:
    """Workers of one kind, by rank, which end with the context.

    Args:
        kind: Their class.
        size: How many.
        arguments: What the worker of a rank is made with.
        restarts: How often Ray starts one again, and asks it again. What it is asked may
            then come twice, and must change nothing.

    Attributes:
        workers: Their processes.
    """

    def __init__(
        self,
        kind: type,
        size: int,
        arguments: Callable[[int], Sequence[Any]] = lambda rank: (),
        *,
        restarts: int = 0,
    ) -> None:
        self.size, self._kind, self._arguments = size, kind, arguments
        self._restarts = restarts
        self.workers = [self._start(rank) for rank in range(size)]

    def __enter__(self) -> "WorkerGroup":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ray.end(self.workers)

    def begin(self, method: str, *arguments: Any) -> list[Any]:
        """Return what all answer to their first question, by rank.

        Raises:
            ClusterError: They do not begin.
            WorkerLostError: One was lost.
        """
        asked = [ray.call(worker, method, *arguments) for worker in self.workers]
        _, waiting = ray.wait(asked, START_S, count=self.size)
        if waiting:
            raise ClusterError(
                f"workers did not begin within {START_S:.0f} s; look whether the cluster "
                f"has {self.size} free processors (ray status), then run the command again"
            )
        return self._answers(asked)

    def run(
        self,
        method: str,
        arguments: Callable[[int], Sequence[Any]],
        watch: Callable[[Any], None],
        *,
        symptom: type[ClusterError] = WorkerLostError,
        last_words_s: float = 0.0,
    ) -> list[Any]:
        """Have all work until they are done; return what they give back, by rank.

        Args:
            method: What they do.
            arguments: What the worker of a rank is told.
            watch: Called with the first worker, now and then.
            symptom: What a worker raises that lost another.
            last_words_s: How long what others say is waited for once one has failed: it may
                have lost the one that has the reason.

        Raises:
            WorkerLostError: One was lost, as Ray says or another that waited for it.
            BaseException: What was wrong besides.
        """
        running = [
            ray.call(worker, method, *arguments(rank))
            for rank, worker in enumerate(self.workers)
        ]
        waiting = running
        while waiting:
            ready, waiting = ray.wait(waiting, WATCH_S)
            failed = [err for err in map(_failure, ready) if err is not None]
            # Who failed first may only have lost the one that has the reason.
            if failed and last_words_s:
                ready, _ = ray.wait(waiting, last_words_s, count=self.size)
                failed += [err for err in map(_failure, ready) if err is not None]
            if failed:
                raise_reason(failed, symptom)
            watch(self.workers[0])
        return [ray.result(answer) for answer in running]

    def replace(self, rank: int) -> Any:
        """Start another worker in the place of a lost one, and return it."""
        self.workers[rank] = self._start(rank)
        return self.workers[rank]

    def ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Return what all answer to one question, by rank."""
        return next(self.stream(method, [arguments]))

    def stream(self, method: str, questions: Iterable[Question]) -> Iterator[list[Any]]:
        """Yield what all answer to each question, by rank, in the questions' order.

        Raises:
            ClusterError: A worker was lost more often than Ray starts it again.
        """
        asked: deque[list[Any]] = deque()
        for question in questions:
            # One question waits at each worker while it answers another: none stands idle
            # meanwhile.
            if len(asked) == _AHEAD:
                yield self._answers(asked.popleft())
            asked.append([ray.call(each, method, *question) for each in self.workers])
        while asked:
            yield self._answers(asked.popleft())

    def _answers(self, asked: Sequence[Any]) -> list[Any]:
        try:
            return [ray.result(answer) for answer in asked]
        except WorkerLostError as err:
            if not self._restarts:
                raise
            raise ClusterError(
                f"a worker was lost {self._restarts + 1} times, the last time: {err}; look "
                "at the memory and the system logs of the machines"
            ) from err

    def _start(self, rank: int) -> Any:
        return ray.start(
            self._kind,
            *self._arguments(rank),
            restarts=self._restarts,
            aside=not self._restarts,
        )


def raise_reason(
    found: Sequence[BaseException], symptom: type[ClusterError] = WorkerLostError
) -> None:
    """Raise what was wrong, of what workers raised.

    Args:
        found: What they raised.
        symptom: What a worker raises that lost another, which is no reason.

    Raises:
        WorkerLostError: There is no other reason.
        BaseException: The reason.
    """
    reasons = [err for err in found if not isinstance(err, symptom)]
    # Errors that say what to do come first.
    for err in sorted(reasons, key=lambda err: not isinstance(err, GraphsysError)):
        raise err
    raise WorkerLostError(str(found[0]))


def _failure(answer: Any) -> BaseException | None:
    """Return what a worker that has ended raised, if anything."""
    try:
        ray.result(answer)
    except Exception as err:
        return err
    return None


def ask_aside(worker: Any, method: str) -> Any:
    """Return what a worker answers while it works, or None if it takes too long."""
    try:
        return ray.result(ray.call(worker, method, aside=True), timeout_s=WATCH_S)
    except TimeoutError:
        return None


@contextmanager
def started(
    cluster: Cluster, kind: type, arguments: Sequence[Any], most: Callable[[], int]
) -> Iterator[WorkerGroup]:
    """Start workers that each answer for a share, and end them with the context.

    What they are asked changes nothing, and their constructor reads all that they have: a
    lost one is Ray's to start again, and to ask again.

    Args:
        cluster: Where.
        kind: Their class; made with a rank, how many there are, and ``arguments``.
        arguments: What else they are made with.
        most: Returns how many a running cluster has use for.

    Raises:
        ClusterError: Nothing answers, or they do not begin.
    """
    with connected(cluster) as size:
        if not cluster.local_workers:
            size = max(min(size, most()), 1)
        with WorkerGroup(
            kind, size, lambda rank: (rank, size, *arguments), restarts=MAX_RESTARTS
        ) as group:
            group.begin("ready")
            yield group


def run_tasks(
    function: Callable[..., Any],
    questions: Sequence[Question],
    told: Callable[[int, Any], None] | None = None,
) -> list[Any]:
    """Have tasks done by whichever workers are free; Ray does those of lost ones again.

    Args:
        function: What each does.
        questions: What each is told.
        told: Called with the place and the answer of each, in their order.

    Raises:
        ClusterError: One was lost again and again.
    """
    asked = [ray.start_task(function, question, MAX_RESTARTS) for question in questions]
    try:
        results = []
        for place, answer in enumerate(asked):
            results.append(ray.result(answer))
            if told is not None:
                told(place, results[-1])
        return results
    except WorkerLostError as err:
        ray.cancel(asked)
        raise ClusterError(
            f"a task of the ingest was lost, which Ray tries {MAX_RESTARTS} times again: "
            f"{err}; look at the memory and the system logs of the machines, then give "
            "the same command again"
        ) from err
    except BaseException:
        ray.cancel(asked)
        raise
