"""The operator table: kernels, torch's operators by kind, then spans of other work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphsys.analysis.host import HostFigures, KernelTotals
from graphsys.analysis.measured import RunConditions
from graphsys.core.events import Event

_ELSEWHERE = (
    "superstep",
    "compute",
    "kernel_launches",
    "observing",
    "operator",
    "operator_part",
    "epoch",
)
"""Spans that stand elsewhere in the report."""


@dataclass(slots=True)
class Work:
    """What calls of one operator did.

    Attributes:
        calls: How often it was called.
        seconds: How long that took.
        flop: Operations; None where some call did not say.
        bytes: Bytes of what it read and wrote, each tensor counted once a call.
    """

    calls: int = 0
    seconds: float = 0.0
    flop: int | None = 0
    bytes: int = 0

    def add(self, flop: object, num_bytes: object, seconds: float) -> None:
        """Add a call."""
        self.calls += 1
        self.seconds += seconds
        self.bytes += int(str(num_bytes))
        is_known = isinstance(flop, int) and self.flop is not None
        self.flop = self.flop + flop if is_known else None  # type: ignore[operator]

    def limit_share(self, around: RunConditions, seconds: float | None) -> float | None:
        """Return the least time that the machine's limits allow, over the time it took.

        The roofline: bytes at the rate of a copy, or operations at that of a product,
        whichever takes longer.
        """
        if not seconds or around.bandwidth is None:
            return None
        least = self.bytes / around.bandwidth
        if around.gemm_rate is not None and self.flop:
            least = max(least, self.flop / around.gemm_rate)
        return least / seconds


def operator_rows(
    figures: HostFigures, events: Sequence[Event], around: RunConditions
) -> list[dict[str, Any]]:
    """Return the rows of the table, each part sorted by time."""
    told: dict[str, Work] = {}
    parts: dict[str, Work] = {}
    torch: dict[str, Work] = {}
    spans: dict[str, Work] = {}
    for event in events:
        facts, seconds = event.attributes, event.duration_ns / 1e9
        if event.name == "kernel_work":
            work = told.setdefault(str(facts["kernel"]), Work())
            work.add(int(event.value), facts["bytes"], 0.0)
        elif event.name == "operator_part":
            part = parts.setdefault(f"{facts['kernel']}: {facts['kind']}", Work())
            part.add(facts["flop"], facts["bytes"], 0.0)
        elif event.name == "operator":
            work = torch.setdefault(str(facts["kind"]), Work())
            work.add(facts["flop"], facts["bytes"], seconds)
        elif seconds > 0 and event.name not in _ELSEWHERE:
            spans.setdefault(event.name, Work()).add(None, 0, seconds)
    kernels = sorted(figures.kernels.values(), key=lambda kernel: -kernel.seconds)
    rows = [_kernel_row(kernel, told.get(kernel.name), around) for kernel in kernels]
    for name, work in sorted(parts.items(), key=lambda item: -item[1].bytes):
        rows.append(_row(name, "operator", work.calls, None, work, around))
    for kind, works in (("operator", torch), ("span", spans)):
        for name, work in sorted(works.items(), key=lambda item: -item[1].seconds):
            known = work if kind == "operator" else None
            rows.append(_row(name, kind, work.calls, work.seconds, known, around))
    return rows


def _row(
    name: str,
    kind: str,
    calls: int,
    seconds: float | None,
    work: Work | None,
    around: RunConditions,
) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "device": "cpu",
        "calls": calls,
        "seconds": seconds,
        "busy_seconds": None,
        "imbalance": None,
        "waiting": None,
        "flop": None if work is None else work.flop,
        "bytes": None if work is None else work.bytes,
        "limit_share": None if work is None else work.limit_share(around, seconds),
    }


def _kernel_row(
    kernel: KernelTotals, work: Work | None, around: RunConditions
) -> dict[str, Any]:
    has_threads = kernel.device == "cpu"
    # work is told of every launch, the first included, which is not timed
    whole = work is not None and work.calls == kernel.calls
    seconds = kernel.seconds if kernel.is_timed else None
    row = _row(
        kernel.name, "kernel", kernel.calls, seconds, work if whole else None, around
    )
    return row | {
        "device": kernel.device,
        "busy_seconds": kernel.busy_s if has_threads else None,
        "imbalance": kernel.imbalance,
        "waiting": kernel.waiting,
    }
