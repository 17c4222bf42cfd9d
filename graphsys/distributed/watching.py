"""Workers watched: started, asked how far they are, and started again if one is lost."""

import secrets
from dataclasses import replace
from typing import Any

from graphsys.core.deps import require
from graphsys.core.errors import ClusterError, GraphsysError, WorkerLostError
from graphsys.core.progress import Progress
from graphsys.distributed.work import ProgramWork
from graphsys.distributed.worker import Work

MAX_RESTARTS = 3
"""How often lost workers are started again before a run is given up."""
_WATCH_S = 0.5
_START_S = 120.0


def run_until_done(
    work: Work, num_workers: int, progress: Progress
) -> tuple[list[dict[str, Any]], int]:
    """Run, again after workers were lost; return what each gave back, and how often.

    Args:
        work: What every worker is told.
        num_workers: How many.
        progress: Receives the supersteps.

    Raises:
        ClusterError: workers were lost again and again.
    """
    for restarts in range(MAX_RESTARTS + 1):
        parts = _run_once(work, num_workers, progress)
        if parts is not None:
            return parts, restarts
        if isinstance(work, ProgramWork):
            work = replace(work, resume=work.checkpoint is not None)
    raise ClusterError(
        f"workers were lost {MAX_RESTARTS + 1} times; look at the memory and the system "
        "logs of the machines, then run the command again"
    )


def _run_once(
    work: Work, num_workers: int, progress: Progress
) -> list[dict[str, Any]] | None:
    """Start workers and run; None where one of them was lost."""
    ray = require("ray", extra="ray")
    from graphsys.distributed.actors import start_workers

    workers = start_workers(num_workers)
    try:
        addresses = ray.get([it.address.remote() for it in workers], timeout=_START_S)
        key = secrets.token_bytes(32)
        running = [
            worker.run_among.remote(rank, addresses, key, work)
            for rank, worker in enumerate(workers)
        ]
        done, waiting = 0, list(running)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1, timeout=_WATCH_S)
            for reference in ready:
                ray.get(reference)  # raises what the worker raised
            done = _tell(ray, workers[0], progress, done)
        parts: list[dict[str, Any]] = ray.get(running)
        return parts
    except ray.exceptions.GetTimeoutError as err:
        raise ClusterError(
            f"workers did not begin within {_START_S:.0f} s; look whether the cluster has "
            f"{num_workers} free processors (ray status), then run the command again"
        ) from err
    except ray.exceptions.RayActorError:
        return None
    except ray.exceptions.RayTaskError as err:
        if isinstance(err.cause, WorkerLostError):  # noticed before Ray did
            return None
        if isinstance(err.cause, GraphsysError):
            raise err.cause from None
        raise
    finally:
        for worker in workers:
            ray.kill(worker)


def _tell(ray: Any, worker: Any, progress: Progress, told: int) -> int:
    """Show how far the run is; return the supersteps that were shown."""
    from graphsys.distributed.actors import ASIDE

    try:
        asked = worker.supersteps_done.options(concurrency_group=ASIDE).remote()
        done: int = ray.get(asked, timeout=_WATCH_S)
    except ray.exceptions.GetTimeoutError:
        return told
    if done > told:
        progress.advance(done - told)
    return max(done, told)
