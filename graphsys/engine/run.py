"""``gs.run``: compile a program for a graph, run it, and return its states by user id."""

import os
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.progress import IN_NOTEBOOKS, SILENT, Progress
from graphsys.engine.execute.prepared import PreparedProgram, prepare, run_on_host
from graphsys.engine.program import VertexProgram
from graphsys.engine.result import Result
from graphsys.engine.topology import Topology
from graphsys.storage.reader import GraphReader


def run(
    program: VertexProgram | type[VertexProgram],
    graph: GraphReader | Topology | str | os.PathLike[str],
    *,
    num_threads: int | None = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    memory: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    check: bool = False,
    device: str = "cpu",
    strategy: str = "auto",
    device_memory: int | str | None = None,
    progress: Progress = IN_NOTEBOOKS,
) -> Result:
    """Run a vertex program.

    Args:
        program: The program with its parameters; a class where all have defaults.
        graph: An open graph, its path, or edges in memory.
        num_threads: Threads; all cores by default.
        max_supersteps: Stop after so many, more or fewer than the program says.
        require_convergence: Raise instead of returning a result that a limit cut short.
        memory: Budget of anonymous memory (``"4GB"``, or bytes); what there is by default.
            Rows are streamed from the store, and states paged, where they do not fit.
        checkpoint: Folder that keeps the run's state, so that it can be resumed.
        checkpoint_every: Supersteps between two checkpoints; 10 by default.
        resume: Go on from the folder's checkpoint, if there is one.
        check: Test a combiner of your own on sampled messages after every superstep.
        device: ``cpu`` or ``cuda``.
        strategy: On CUDA, who visits a node's edges: ``thread``, ``warp``, ``block``,
            ``twc`` (by degree), ``edge`` (a thread per edge) or ``auto``; or ``fused``:
            many supersteps in one launch, wherever a program allows it.
        device_memory: On CUDA, the budget of the device (``"40GB"``, or bytes); rows that
            do not fit are streamed. Nine tenths of what is free by default.
        progress: Told about every superstep.

    Returns:
        One row per node: ``id`` and ``value``, or a column per state.

    Raises:
        CompileError: the program cannot be compiled.
        ConfigError: a parameter is missing or does not fit; the checkpoint is of another
            run; with ``check``, a combiner that depends on the order of messages.
        BudgetError: the budget is too small; the message names one that works.
        CorruptStoreError: the checkpoint is incomplete.
        OutputExistsError: there is a checkpoint, and ``resume`` is off.
        NotConvergedError: with ``require_convergence``.

    Warns:
        NotConvergedWarning: a limit ended the run; ``Result.converged`` is false.
    """
    check_settings(
        device,
        strategy,
        device_memory=device_memory,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        check=check,
    )
    work = prepare(
        program, graph, memory=memory, device=device, max_supersteps=max_supersteps
    )
    done = run_prepared(
        work,
        num_threads=num_threads,
        max_supersteps=max_supersteps,
        require_convergence=require_convergence,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        check=check,
        device=device,
        strategy=strategy,
        device_memory=device_memory,
        progress=progress,
    )
    return done.warned()


def run_prepared(
    work: PreparedProgram,
    *,
    device: str = "cpu",
    strategy: str = "auto",
    device_memory: int | str | None = None,
    num_threads: int | None = None,
    max_supersteps: int | None = None,
    require_convergence: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: bool = False,
    check: bool = False,
    progress: Progress = SILENT,
) -> Result:
    """Run what :func:`prepare` returned; arguments and errors are those of :func:`run`."""
    check_settings(
        device,
        strategy,
        device_memory=device_memory,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        resume=resume,
        check=check,
    )
    if device == "cuda":
        from graphsys.engine.cuda.run import run_on_device

        topology = work.topology.simplified() if work.program.simple else work.topology
        return run_on_device(
            work.program,
            topology,
            strategy=strategy,
            device_memory=device_memory,
            max_supersteps=max_supersteps,
            require_convergence=require_convergence,
            progress=progress,
        )
    return run_on_host(
        work,
        num_threads=num_threads,
        max_supersteps=max_supersteps,
        require_convergence=require_convergence,
        checkpoint=checkpoint,
        checkpoint_every=10 if checkpoint_every is None else checkpoint_every,
        resume=resume,
        check=check,
        progress=progress,
    )


def check_settings(
    device: str = "cpu",
    strategy: str = "auto",
    *,
    device_memory: Any = None,
    checkpoint: Any = None,
    checkpoint_every: Any = None,
    resume: bool = False,
    check: bool = False,
) -> None:
    """Refuse devices that there are not, and what a device cannot do.

    Raises:
        ConfigError: an unknown device, a strategy or a device's memory on the CPU, a
            checkpoint on CUDA, no checkpoint to resume from or to write every so often.
    """
    if resume and checkpoint is None:
        raise ConfigError("resume needs checkpoint, the folder to resume from")
    if checkpoint_every is not None and checkpoint is None:
        raise ConfigError("checkpoint_every needs checkpoint, the folder to keep it in")
    if device not in ("cpu", "cuda"):
        raise ConfigError(f"device must be 'cpu' or 'cuda', got {device!r}")
    if device == "cpu" and strategy != "auto":
        raise ConfigError(f"strategy={strategy!r} needs device='cuda'; the CPU has one way")
    if device == "cpu" and device_memory is not None:
        raise ConfigError(
            f"device_memory={device_memory!r} needs device='cuda'; the budget of a run on "
            "the CPU is memory"
        )
    if device == "cuda" and (checkpoint is not None or check):
        what = "check" if checkpoint is None else "checkpoint"
        raise ConfigError(f"{what} works with device='cpu' only; leave it out for CUDA")
