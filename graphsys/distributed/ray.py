"""All that is asked of Ray: processes, their answers, and what it means that one is lost.

No other module imports Ray, and none sees its errors: what a process raised is raised as it
was, and a process that is gone is a :class:`~graphsys.core.errors.WorkerLostError`.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from graphsys.core.deps import require
from graphsys.core.errors import GraphsysError, WorkerLostError

ASIDE: Final = "aside"
"""The group of calls that a worker answers while it works."""
_QUIET: Final[dict[str, Any]] = {"log_to_driver": False, "logging_level": logging.ERROR}


def _ray() -> Any:
    """Return Ray.

    Raises:
        MissingDependencyError: It is not installed.
    """
    return require("ray", extra="ray")


def is_connected() -> bool:
    """Return whether this process is connected to a cluster."""
    return bool(_ray().is_initialized())


def start_here(num_processors: int, store_bytes: int, folder: str) -> None:
    """Start a cluster of this machine, which ends with this process."""
    _ray().init(
        num_cpus=num_processors,
        object_store_memory=store_bytes,
        _temp_dir=folder,
        include_dashboard=False,
        configure_logging=True,
        **_QUIET,
    )


def connect(address: str, variables: dict[str, str]) -> int:
    """Connect to a running cluster, whose workers get some variables; count processors."""
    environment = {"env_vars": variables} if variables else None
    _ray().init(address=address, runtime_env=environment, **_QUIET)
    return max(int(_ray().cluster_resources().get("CPU", 1)), 1)


def leave() -> None:
    """End a cluster of this machine, or leave a running one as it is."""
    _ray().shutdown()


def keep_off_stdout() -> None:
    """Have what Ray says of lost workers go to stderr: stdout has a command's answer.

    Ray has no setting for it (its logs are off), and its thread looks the function up.
    """
    worker = getattr(getattr(_ray(), "_private", None), "worker", None)
    tell = getattr(worker, "print_to_stdstream", None)
    if tell is None or getattr(tell, "is_of_graphsys", False):
        return

    def told(data: dict[str, Any], *arguments: Any, **named: Any) -> Any:
        return tell({**data, "is_err": True}, *arguments, **named)

    told.is_of_graphsys = True  # type: ignore[attr-defined]
    setattr(worker, tell.__name__, told)


def node_address() -> str:
    """Return the address of this machine in the cluster."""
    address: str = _ray().util.get_node_ip_address()
    return address


def is_alone() -> bool:
    """Return whether the cluster has no other machine than this."""
    return not {node["NodeManagerAddress"] for node in _nodes()} - {node_address()}


def ask_nodes(function: Callable[[], Any], timeout_s: float) -> list[Any]:
    """Return what a function returns on every machine of the cluster."""
    ray = _ray()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0)(function)
    where = [
        NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in _nodes()
    ]
    asked = [ask.options(scheduling_strategy=place).remote() for place in where]
    found: list[Any] = ray.get(asked, timeout=timeout_s)
    return found


def start(
    kind: type, *arguments: Any, processors: int = 1, restarts: int = 0, aside: bool = False
) -> Any:
    """Start a process, on as many machines in turn as there are.

    Args:
        kind: Class of what lives in it.
        arguments: What that is made with.
        processors: What it takes; 0 for servers.
        restarts: How often Ray starts it again and repeats what it was asked. Ray runs the
            constructor alone, so what a process learns later is lost.
        aside: Whether it answers :data:`ASIDE` calls while it works.
    """
    made: Any = _ray().remote(
        num_cpus=processors,
        max_restarts=restarts,
        max_task_retries=restarts,
        scheduling_strategy="SPREAD",
        **({"concurrency_groups": {ASIDE: 1}} if aside else {}),
    )(kind)
    return made.remote(*arguments)


def call(
    actor: Any, method: str, *arguments: Any, aside: bool = False, **named: Any
) -> Any:
    """Ask a process for what a method returns; return what stands for the answer."""
    asked = getattr(actor, method)
    if aside:
        asked = asked.options(concurrency_group=ASIDE)
    return asked.remote(*arguments, **named)


def start_task(
    function: Callable[..., Any], arguments: Sequence[Any], restarts: int
) -> Any:
    """Have a function called by some process; return what stands for the answer."""
    made: Any = _ray().remote(
        num_cpus=1,
        max_retries=restarts,
        retry_exceptions=False,
        scheduling_strategy="SPREAD",
    )(function)
    return made.remote(*arguments)


def result(answer: Any, timeout_s: float | None = None) -> Any:
    """Return an answer, or answers, once they are there.

    Raises:
        WorkerLostError: The process is gone.
        TimeoutError: It took too long.
        BaseException: What it raised.
    """
    ray = _ray()
    try:
        return ray.get(answer, timeout=timeout_s)
    except ray.exceptions.GetTimeoutError as err:
        raise TimeoutError(f"no answer within {timeout_s} s") from err
    except ray.exceptions.RayTaskError as err:
        cause = getattr(err, "cause", None) or err
        if isinstance(cause, GraphsysError):
            raise cause from None
        raise cause from err  # a fault of ours: Ray's has the other process's trace
    except ray.exceptions.RayError as err:
        reason = (str(err).strip() or type(err).__name__).splitlines()[0]
        raise WorkerLostError(reason) from err


def wait(
    answers: Sequence[Any], timeout_s: float, count: int = 1
) -> tuple[list[Any], list[Any]]:
    """Wait for some answers; return those that are there, and the others."""
    if not answers:
        return [], []
    found: tuple[list[Any], list[Any]] = _ray().wait(
        list(answers), num_returns=min(count, len(answers)), timeout=timeout_s
    )
    return found


def end(actors: Sequence[Any]) -> None:
    """End processes at once."""
    for actor in actors:
        _ray().kill(actor)


def cancel(answers: Sequence[Any]) -> None:
    """End tasks at once, and those that have not begun."""
    for answer in answers:
        _ray().cancel(answer, force=True)


def _nodes() -> list[dict[str, Any]]:
    return [node for node in _ray().nodes() if node["Alive"]]
