"""Level L4: what Nsight Compute counted, from the CSV that it exports.

Both forms are read: ``--page raw`` (a column per metric, a row of units below the heads)
and ``--page details`` (a row per metric). Lines before the heads are Nsight's own messages.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphsys.analysis.metrics import Metric, measured
from graphsys.core.errors import InputError

CORE = (
    "gpu__time_duration.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "sm__ctas_launched.sum",
    "sm__ctas_launched.min",
    "sm__ctas_launched.max",
    "sm__cycles_active.avg",
    "sm__cycles_active.min",
    "sm__cycles_active.max",
    "sm__cycles_elapsed.max",
    "sm__inst_executed.sum",
    "sm__inst_executed.min",
    "sm__inst_executed.max",
    "smsp__warps_launched.sum",
    "smsp__issue_active.sum",
)
"""What one pass over a kernel can count on Hopper. One name that ncu does not know, and it
counts nothing at all: ``ncu --query-metrics --chips gh100`` tells them without a GPU."""
MEMORY = (
    "l1tex__t_sector_hit_rate.pct",
    "lts__t_sector_hit_rate.pct",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
)
"""What two more passes count."""
STALL = "smsp__average_warp_latency_issue_stalled_"
_REASONS = (
    "long_scoreboard",
    "short_scoreboard",
    "barrier",
    "branch_resolving",
    "membar",
    "lg_throttle",
    "mio_throttle",
    "imc_miss",
    "no_instruction",
    "not_selected",
    "wait",
    "math_pipe_throttle",
    "drain",
    "dispatch_stall",
    "sleeping",
    "tex_throttle",
    "misc",
    "selected",
)
STALLS = tuple(f"{STALL}{reason}.ratio" for reason in _REASONS)
"""Why warps do not issue; some passes more."""
_KERNEL, _ID = "Kernel Name", "ID"
_LONG = ("Metric Name", "Metric Unit", "Metric Value")
_SCALES = {
    "second": 1.0,
    "s": 1.0,
    "msecond": 1e-3,
    "ms": 1e-3,
    "usecond": 1e-6,
    "us": 1e-6,
    "nsecond": 1e-9,
    "ns": 1e-9,
    "byte": 1.0,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
}


@dataclass(slots=True)
class CountedKernel:
    """One launch: its name, and its metrics in seconds, bytes and counts."""

    name: str
    values: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class NcuFigures:
    """What a file says.

    Attributes:
        kernels: Launches, in order.
        unknown: Metrics in the file that are not used here.
    """

    kernels: list[CountedKernel] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)

    def total(self, name: str) -> float | None:
        """Return the sum of a metric over the launches; None if any lacks it."""
        values = [kernel.values.get(name) for kernel in self.kernels]
        known = [value for value in values if value is not None]
        return sum(known) if known and len(known) == len(values) else None

    def mean(self, name: str) -> float | None:
        """Return the mean of a metric over the launches, weighted by their time."""
        pairs = [
            (kernel.values[name], kernel.values.get("gpu__time_duration.sum", 1.0))
            for kernel in self.kernels
            if name in kernel.values
        ]
        weight = sum(seconds for _, seconds in pairs)
        return sum(v * w for v, w in pairs) / weight if weight > 0 else None


def read_ncu(path: Path) -> NcuFigures:
    """Read a CSV of Nsight Compute.

    Raises:
        InputError: it has no kernels, or is no such file; the message says what to do where
            counters were not permitted.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as err:
        raise _foreign(path, "it is not text") from err
    begin = next((k for k, line in enumerate(lines) if _is_head(line)), None)
    if begin is None:
        if any("ERR_NVGPUCTRPERM" in line for line in lines):
            raise InputError(
                f"{path}: counters were not permitted (ERR_NVGPUCTRPERM): load the driver "
                "with NVreg_RestrictProfilingToAdminUsers=0, or run ncu as root"
            )
        raise _foreign(path, f"it has no column {_KERNEL!r}")
    rows = list(csv.reader(lines[begin:]))
    head = rows[0]
    is_long = all(name in head for name in _LONG)
    found = NcuFigures()
    try:
        read = _long(head, rows[1:]) if is_long else _wide(head, rows[1:])
        launches: dict[str, CountedKernel] = {}
        for number, name, metric, unit, text in read:
            kernel = launches.setdefault(number, CountedKernel(_plain(name)))
            if not _is_known(metric):  # facts of the device among them, some of them words
                found.unknown.add(metric)
            elif (value := _number(text, unit)) is not None:
                kernel.values[metric] = value
    except (ValueError, IndexError) as err:
        raise _foreign(path, f"a row does not fit its heads ({err})") from err
    found.kernels = list(launches.values())
    if not found.kernels:
        raise InputError(f"{path}: Nsight Compute counted no kernel in it")
    return found


def _is_head(line: str) -> bool:
    return f'"{_KERNEL}"' in line or line.startswith(f"{_ID},") or f",{_KERNEL}," in line


def _foreign(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: no CSV of Nsight Compute: {why}; export it by ncu --csv --page raw"
    )


Entry = tuple[str, str, str, str, str]


def _long(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Entry]:
    """Yield launch, kernel, metric, unit and value of a row per metric."""
    places = [head.index(name) for name in (_ID, _KERNEL, *_LONG)]
    for row in rows:
        if row:
            number, name, metric, unit, value = (row[place] for place in places)
            yield number, name, metric, unit, value


def _wide(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Entry]:
    """Yield the same of a column per metric; a first row without id has the units."""
    number, name = head.index(_ID), head.index(_KERNEL)
    units = [""] * len(head)
    if rows and not rows[0][number].strip():
        units, rows = list(rows[0]), rows[1:]
    metrics = [k for k, text in enumerate(head) if "__" in text]
    for row in rows:
        for k in metrics if row else ():
            yield row[number], row[name], head[k], units[k], row[k]


def _plain(name: str) -> str:
    """Return a kernel's name without the types that numba and C++ put behind it."""
    return name.partition("[")[0].partition("(")[0].strip() or name


def _number(text: str, unit: str) -> float | None:
    text = text.strip().replace(",", "")
    if text in ("", "n/a", "nan"):
        return None
    return float(text) * _SCALES.get(unit.strip(), 1.0)


def _is_known(metric: str) -> bool:
    return metric in CORE or metric in MEMORY or metric.startswith(STALL)


def ncu_metrics(found: NcuFigures) -> list[Metric]:
    """Return the counters as metrics, over all launches."""

    def metric(name: str, value: float | None, unit: str, wanted: str) -> Metric:
        reason = f"the file lacks {wanted}"
        return measured(name, value, unit, source="ncu", reason=reason)

    total = found.total
    lanes = found.mean("smsp__thread_inst_executed_per_inst_executed.ratio")
    threads, warps = (
        total("smsp__thread_inst_executed.sum"),
        total("smsp__inst_executed.sum"),
    )
    if threads is not None and warps:
        lanes = threads / warps
    ratio = _ratio(total("sm__cycles_active.max"), total("sm__cycles_active.avg"))
    sectors = _ratio(total(MEMORY[2]), total(MEMORY[3]))
    moved = [total("dram__bytes_read.sum"), total("dram__bytes_write.sum")]
    dram = None if None in moved else sum(it for it in moved if it is not None)
    rates = {"l1_hit_rate": MEMORY[0], "l2_hit_rate": MEMORY[1]}
    per_sm = {"ctas_per_sm_min": CORE[5], "ctas_per_sm_max": CORE[6]}
    none = "counters tell no {}; the model and the host do"
    rows = [
        metric("kernel_invocations", len(found.kernels), "launches", ""),
        metric("kernel_seconds", total(CORE[0]), "s", CORE[0]),
        metric("lane_utilization", None if lanes is None else lanes / 32, "share", CORE[3]),
        metric("sm_imbalance", ratio, "max/mean", "sm__cycles_active.max and .avg"),
        metric("value_sectors_per_request", sectors, "sectors", MEMORY[2]),
        metric("dram_bytes", dram, "bytes", "dram__bytes_read.sum and _write.sum"),
        *(metric(name, total(it), "CTAs", it) for name, it in per_sm.items()),
    ]
    for name, source in rates.items():
        rate = found.mean(source)
        rows.append(metric(name, None if rate is None else rate / 100, "share", source))
    for name, unit in (
        ("work_per_invocation", "edges/launch"),
        ("transfer_count", "transfers"),
        ("transfer_bytes", "bytes"),
        ("transfer_seconds", "s"),
        ("overlap_alpha", "of 1"),
        ("warp_variance", "sigma/mu"),
        ("cta_variance", "sigma/mu"),
        ("ctas_per_sm", "CTAs"),
    ):
        rows.append(
            measured(
                name, None, unit, source="ncu", reason=none.format(name.partition("_")[0])
            )
        )
    return [*rows, *_stalls(found)]


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _stalls(found: NcuFigures) -> list[Metric]:
    """Return the share of each reason for which warps waited to issue."""
    names = sorted({n for k in found.kernels for n in k.values if n.startswith(STALL)})
    means = {name: found.mean(name) or 0.0 for name in names}
    whole = sum(means.values())
    return [
        measured(
            f"stall_{name.removeprefix(STALL).partition('.')[0]}",
            mean / whole if whole else None,
            "share",
            source="ncu",
            reason="no warp was stalled",
        )
        for name, mean in means.items()
    ]
