"""``with gs.profile("report.html") as p``: everything inside is recorded and explained."""

import os
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphsys.analysis.model.devices import gpu_of
from graphsys.core.clocks import CLOCKS, DEVICE_ROWS
from graphsys.core.compiling import CompileWatch
from graphsys.core.errors import ConfigError
from graphsys.core.events import Observer, Recorder, recording
from graphsys.core.memory import MemoryMeter
from graphsys.core.operators import OPERATORS
from graphsys.training.memory_split import MEMORY

if TYPE_CHECKING:
    import pyarrow as pa

    from graphsys.analysis.model.row_model import RowModel
    from graphsys.analysis.model.schedulers import SchedulerModel
    from graphsys.analysis.traces.clocks import ClockModel

COUNTED = ("L4", "L4-stalls")
LEVELS = ("L0", "L1", "L3", *COUNTED)
_COPY_BYTES = 128 << 20
_ALL_SETS = 1 << 18
"""Neighbors of a graph up to which all sets of the caches are simulated."""
_GEMM = (512, 512, 512)
_MULTIPLYING = {"operator", "operator_part"}
"""Events of work that multiplies matrices."""
INSIDE_NCU = "GRAPHSYS_INSIDE_NCU"
"""Set in the environment of a profile that runs inside ``ncu``."""


class Profile:
    """Records what happens inside its ``with`` block; see :func:`profile`.

    Attributes:
        report: What the JSON file says, once the block has ended.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        level: str,
        gpu_model: str,
        command: str,
        schedulers: bool = False,
        sampled_sms: int = 0,
    ) -> None:
        self._sampled_sms = sampled_sms
        self.path, self.level, self.command = path, level, command
        self._schedulers: SchedulerModel | None = None
        self._has_schedulers = schedulers
        self.report: dict[str, Any] = {}
        self._gpu = gpu_of(gpu_model)
        self._model: RowModel | None = None
        self._clocks: ClockModel | None = None
        self._recorder = Recorder()
        self._meter = MemoryMeter()
        self._open = ExitStack()
        self._start_ns = 0
        self._started = ""
        self._error: str | None = None
        self._is_dropped = False
        self._before: list[tuple[int, int] | None] = []

    def drop(self) -> None:
        """Make no report: the work was interrupted."""
        self._is_dropped = True

    def fail(self, error: str) -> None:
        """Have the report say that the work failed, and why; nothing is raised."""
        self._error = error

    def __enter__(self) -> "Profile":
        from graphsys.analysis.files import identities_of

        observers = self._observers()
        self._before = [] if self.path is None else identities_of(self.path)
        self._open.enter_context(CompileWatch(emits=True))
        self._open.enter_context(self._meter)
        self._recorder = self._open.enter_context(recording(observers))
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._start_ns = time.perf_counter_ns()
        return self

    def _observers(self) -> dict[str, Observer]:
        """Return who wants to see what at this level."""
        found: dict[str, Observer] = {MEMORY: _ignore}  # it is told as events
        if self.level == "L0":
            return found
        from graphsys.analysis.model.row_model import RowModel

        self._model = RowModel(self._gpu, sampled_sms=self._sampled_sms)
        # operators are told as spans
        found |= {"rows": self._model, OPERATORS: _ignore}
        if self._has_schedulers:
            from graphsys.analysis.model.caches import SAMPLED_SETS, CacheModel
            from graphsys.analysis.model.schedulers import SchedulerModel

            caches = CacheModel(self._gpu, sampled_sets=SAMPLED_SETS, whole_up_to=_ALL_SETS)
            self._schedulers = SchedulerModel(self._gpu, caches=caches)
            found["rows"] = self._show_rows
        if self.level != "L1":
            found[DEVICE_ROWS] = _ignore  # they are told as rows
        if self.level == "L3":
            from graphsys.analysis.traces.clocks import ClockModel

            self._clocks = found[CLOCKS] = ClockModel()
        return found

    def _show_rows(self, visits: Any) -> None:
        """Show launches over rows to the SIMT model and to the warp schedulers."""
        assert self._model is not None  # _observers() made both
        assert self._schedulers is not None
        told = list(visits)
        self._model(told)
        self._schedulers(told)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end_ns = time.perf_counter_ns()
        self._open.close()
        if self._is_dropped or isinstance(err, KeyboardInterrupt):
            return
        if err is not None:
            self.fail(f"{type(err).__name__}: {err}")
        self._finish(end_ns)

    def _finish(self, end_ns: int) -> None:
        """Make the report, and write it where a path was given."""
        from graphsys.analysis.measured import RunConditions
        from graphsys.analysis.report import Recorded, report_of
        from graphsys.analysis.sides import observing_of
        from graphsys.core.bandwidth import copy_bandwidth, gemm_rate

        events = list(self._recorder.events)
        # observers in two threads at once take the time of one
        own_ns = end_ns - self._start_ns
        own_ns -= observing_of(events).inside(self._start_ns, end_ns)
        names = {event.name for event in events}
        moves = bool(names & {"superstep", "operator", "kernel_work"})
        self.report = report_of(
            Recorded(
                command=self.command,
                events=events,
                model=self._model,
                clocks=self._clocks,
                schedulers=self._schedulers,
                around=RunConditions(
                    wall_s=own_ns / 1e9,
                    peak_bytes=self._meter.peak_bytes,
                    bandwidth=copy_bandwidth(_COPY_BYTES, 3) if moves else None,
                    gemm_rate=gemm_rate(_GEMM, 3) if names & _MULTIPLYING else None,
                ),
                start_ns=self._start_ns,
                end_ns=end_ns,
                error=self._error,
                configuration={
                    "level": self.level,
                    "gpu_model": self._gpu.name,
                    "started": self._started,
                    "model_seconds": sum(self._recorder.observing_ns.values()) / 1e9,
                },
            )
        )
        if self.path is not None:
            from graphsys.analysis.files import require_untouched, write_report

            require_untouched(self.path, self._before)
            write_report(self.report, self.path)

    def summary(self) -> str:
        """Return the verdict and the main figures as a few lines of text.

        Raises:
            ConfigError: the block has not ended.
        """
        from graphsys.analysis.page.text import summary_of

        if not self.report:
            raise ConfigError("the profile is not done: call summary() after the block")
        return summary_of(self.report)

    def write_trace(self, path: "str | os.PathLike[str]") -> None:
        """Write the spans as a Chrome trace, which Perfetto and chrome://tracing show.

        Args:
            path: The file; gzipped where its name ends in ``.gz``.

        Raises:
            StorageFullError: it cannot be written.
        """
        from graphsys.analysis.files import write_trace
        from graphsys.analysis.page.timeline import trace_of

        write_trace(trace_of(self._recorder.events, self._start_ns), Path(path))

    def events(self) -> "pa.Table":
        """Return all events as an Arrow table.

        Returns:
            ``name``, ``start_ns``, ``duration_ns``, ``value``, ``thread_id``, and
            ``attributes`` as JSON text.
        """
        from graphsys.analysis.page.text import events_table

        return events_table(self._recorder.events)


def _ignore(_: Any) -> None: ...


def counts_by_ncu(level: str) -> bool:
    """Return whether a level needs ``ncu`` to be started around this process."""
    return level in COUNTED and not os.environ.get(INSIDE_NCU)


def profile(
    path: "str | os.PathLike[str] | None" = None,
    *,
    level: str = "L1",
    gpu_model: str = "h100",
    overwrite: bool = False,
    command: str = "python",
    schedulers: bool = False,
    sampled_sms: int = 0,
) -> Profile:
    """Record everything inside a ``with`` block and explain where the time went.

    Args:
        path: The page to write, ``.html``; the same as JSON is written beside it. None
            writes nothing.
        level: ``L0`` for the host's counters, ``L1`` for the SIMT model besides, which
            takes up to some seconds per superstep of 20M edges; ``L3`` for clocks inside
            the kernels of CUDA runs besides, superstep by superstep. ``L4`` belongs to the
            command line, which starts ``ncu``.
        gpu_model: The GPU that the model stands for: ``h100``, ``h200``, ``a100``,
            ``m2050``.
        overwrite: Replace existing files.
        command: What the report calls the work.
        schedulers: Simulate the caches and warp schedulers (round-robin,
            greedy-then-oldest, two-level) of some SMs too; not at level L0.
        sampled_sms: Have the requests of so many SMs stand for all in launches of more than
            131,072 rows, with ``request_sampling_error`` among the metrics; lanes and
            balance stay as they are. 0: all requests are counted.

    Raises:
        ConfigError: no such level, schedulers at level L0, or the path is no ``.html``.
        UnknownNameError: no such GPU.
        OutputExistsError: a file exists.
        StorageFullError: the folder cannot be written to.

    Examples:
        >>> with profile() as p:
        ...     pass
        >>> print(p.summary().splitlines()[0])
        Nothing was measured: no superstep and no kernel ran.
    """
    if level not in LEVELS:
        a_trace = "; L2 explains a GPU's trace: profile -o PAGE.html --trace FILE"
        raise ConfigError(
            f"level must be one of {', '.join(LEVELS)}, got {level!r}"
            f"{a_trace if level == 'L2' else ''}"
        )
    if schedulers and level == "L0":
        raise ConfigError(
            "schedulers are simulated over rows, which level L0 does not look at: take L1"
        )
    if sampled_sms < 0 or sampled_sms == 1:
        raise ConfigError(
            f"sampled_sms: got {sampled_sms}, expected 0, or 2 or more, whose differences "
            "tell the error"
        )
    if counts_by_ncu(level):
        raise ConfigError(
            f"level {level} starts ncu around a process: use graphsys profile --level "
            f"{level} -- COMMAND"
        )
    target = None
    if path is not None:
        from graphsys.analysis.files import check_target

        target = Path(path)
        check_target(target, overwrite=overwrite)
    return Profile(
        target,
        level=level,
        gpu_model=gpu_model,
        command=command,
        schedulers=schedulers,
        sampled_sms=sampled_sms,
    )
