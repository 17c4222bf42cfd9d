"""Level L2: what a GPU's trace says: kernels, copies, gaps, and what the profiler lost."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphsys.analysis.intervals import Intervals
from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.traces.trace_reader import TraceReader
from graphsys.core.errors import InputError

_LAUNCHES = (
    "cudaLaunchKernel",
    "cuLaunchKernel",
    "hipLaunchKernel",
    "hipModuleLaunchKernel",
)
_RUNTIMES = ("cuda_runtime", "cuda_driver", "runtime")
_NO_COUNTER = "a trace tells no lanes; level L1 models them"


@dataclass(slots=True)
class TracedKernel:
    """All launches of a kernel in a trace; times in microseconds."""

    name: str
    calls: int = 0
    total_us: float = 0.0
    longest_us: float = 0.0
    ctas: int = 0
    threads: int = 0
    registers: int | None = None


class _Spans:
    """Many spans in little memory: beginnings and ends in nanoseconds."""

    def __init__(self) -> None:
        self._begins, self._ends = array("q"), array("q")

    def add(self, event: Mapping[str, Any]) -> None:
        begin = round(1000 * float(event["ts"]))
        self._begins.append(begin)
        self._ends.append(begin + round(1000 * float(event.get("dur", 0))))

    def __len__(self) -> int:
        return len(self._begins)

    def united(self, *others: "_Spans") -> Intervals:
        """Return when at least one of them was under way."""
        return Intervals(
            span
            for spans in (self, *others)
            for span in zip(spans._begins, spans._ends, strict=True)
        )

    def reach(self) -> tuple[int, int] | None:
        """Return the first beginning and the last end."""
        return (min(self._begins), max(self._ends)) if len(self) else None


@dataclass(slots=True)
class TraceFigures:
    """What a trace says.

    Attributes:
        num_events: Events of any kind.
        kernels: By name.
        launched: Correlation numbers of the host's launches.
        ran: Correlation numbers of the kernels.
        num_launches: The host's launches.
        copies: Sizes of the copies in bytes; 0 where the trace has none.
        copied: By direction ("HtoD"): count, bytes, microseconds.
        num_sms: Of the device, where the trace says.
        kernel_spans: When kernels ran.
        copy_spans: When copies ran.
    """

    num_events: int = 0
    kernels: dict[str, TracedKernel] = field(default_factory=dict)
    launched: set[int] = field(default_factory=set)
    ran: set[int] = field(default_factory=set)
    num_launches: int = 0
    copies: list[int] = field(default_factory=list)
    copied: dict[str, list[float]] = field(default_factory=dict)
    num_sms: int | None = None
    kernel_spans: _Spans = field(default_factory=_Spans)
    copy_spans: _Spans = field(default_factory=_Spans)

    @property
    def num_kernels(self) -> int:
        """Kernels in the trace."""
        return len(self.kernel_spans)

    @property
    def num_lost(self) -> int:
        """Launches whose kernel is not in the trace."""
        return len(self.launched - self.ran)

    @property
    def overlap_alpha(self) -> float | None:
        """(N + C - T) / min(N, C) of copies and kernels."""
        copying, working = (
            self.copy_spans.united().length,
            self.kernel_spans.united().length,
        )
        both = self.kernel_spans.united(self.copy_spans).length
        shorter = min(copying, working)
        return (copying + working - both) / shorter if shorter else None

    @property
    def idle_share(self) -> float | None:
        """Share of the time from the first kernel to the last in which none ran."""
        reach = self.kernel_spans.reach()
        if reach is None or reach[1] == reach[0]:
            return None
        return 1.0 - self.kernel_spans.united().length / (reach[1] - reach[0])


def read_trace(path: Path) -> TraceFigures:
    """Read a trace, plain or gzipped; 0 kernels are no error.

    Raises:
        InputError: it is empty, cut short or no trace.
    """
    found, reader = TraceFigures(), TraceReader(path)
    for event in reader.events():
        found.num_events += 1
        try:
            _add(found, event)
        except (KeyError, TypeError, ValueError) as err:
            raise InputError(
                f"{path}: event {found.num_events} ({event.get('name', 'no name')!r}) "
                f"lacks or garbles {err}; give what torch.profiler wrote"
            ) from err
    devices = reader.properties.get("deviceProperties") or [{}]
    sms = devices[0].get("numSms") if isinstance(devices[0], dict) else None
    found.num_sms = int(sms) if sms else None
    return found


def _add(found: TraceFigures, event: Mapping[str, Any]) -> None:
    kind, args = str(event.get("cat", "")).lower(), event.get("args") or {}
    if event.get("ph") != "X":
        return
    if kind == "kernel":
        _add_kernel(found, event, args)
    elif kind in ("gpu_memcpy", "memcpy"):
        found.copy_spans.add(event)
        size = int(args.get("bytes", 0))
        found.copies.append(size)
        totals = found.copied.setdefault(
            _direction(str(event.get("name", ""))), [0, 0, 0.0]
        )
        for k, amount in enumerate((1, size, float(event.get("dur", 0)))):
            totals[k] += amount
    elif kind in _RUNTIMES and any(it in str(event.get("name")) for it in _LAUNCHES):
        found.num_launches += 1
        if "correlation" in args:
            found.launched.add(int(args["correlation"]))


def _add_kernel(
    found: TraceFigures, event: Mapping[str, Any], args: Mapping[str, Any]
) -> None:
    name = str(event["name"])
    kernel = found.kernels.setdefault(name, TracedKernel(name))
    took = float(event.get("dur", 0))
    kernel.calls += 1
    kernel.total_us += took
    kernel.longest_us = max(kernel.longest_us, took)
    x, y, z = args.get("grid") or (0, 0, 0)
    kernel.ctas += int(x) * int(y) * int(z)
    width, height, depth = args.get("block") or (0, 0, 0)
    kernel.threads = int(width) * int(height) * int(depth)
    if "registers per thread" in args:
        kernel.registers = int(args["registers per thread"])
    if "correlation" in args:
        found.ran.add(int(args["correlation"]))
    found.kernel_spans.add(event)


def _direction(name: str) -> str:
    for direction in ("HtoD", "DtoH", "DtoD", "PtoP"):
        if direction.lower() in name.lower():
            return direction
    return "other"


def trace_metrics(found: TraceFigures, own_launches: int | None) -> list[Metric]:
    """Return a trace's figures as metrics.

    Args:
        found: The trace.
        own_launches: Launches that graphsys counted itself, from a report; None without.
    """

    def metric(
        name: str, value: float | None, unit: str, why: str = "", *, exact: bool = True
    ) -> Metric:
        return measured(name, value, unit, source="trace", exact=exact, reason=why)

    copy_us = sum(totals[2] for totals in found.copied.values())
    ctas = sum(kernel.ctas for kernel in found.kernels.values())
    per_sm = ctas / found.num_sms if found.num_sms and ctas else None
    lost = found.num_lost if found.launched else None
    if own_launches is not None:
        lost = max(own_launches - found.num_kernels, 0)
    none = "the trace has no kernel"
    return [
        metric("kernel_invocations", found.num_kernels, "launches"),
        metric(
            "lost_kernels",
            lost,
            "launches",
            "the trace has no launches of the host to compare with; give a report",
        ),
        metric(
            "work_per_invocation",
            None,
            "edges/launch",
            "a trace tells no edges; profile the command itself",
        ),
        metric("transfer_count", len(found.copies), "transfers"),
        metric("transfer_bytes", sum(found.copies), "bytes"),
        metric("transfer_seconds", copy_us / 1e6, "s"),
        metric("overlap_alpha", found.overlap_alpha, "of 1", "no copies, or no kernels"),
        metric("device_idle_share", found.idle_share, "share", none),
        metric(
            "ctas_per_sm",
            per_sm,
            "CTAs",
            "the trace does not name the number of SMs" if ctas else none,
            exact=False,
        ),
        *(
            metric(name, None, unit, _NO_COUNTER)
            for name, unit in (
                ("lane_utilization", "share"),
                ("warp_variance", "sigma/mu"),
                ("cta_variance", "sigma/mu"),
                ("sm_imbalance", "max/mean"),
            )
        ),
    ]
