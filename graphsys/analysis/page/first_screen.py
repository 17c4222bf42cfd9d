"""What a person with ten seconds sees: the time, the verdict, the mission's numbers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from graphsys.analysis.page import charts
from graphsys.analysis.page.text import number_text

MAX_BARS: Final = 60
"""Bars of a small chart; of more steps, several in a row share one."""
_COLORS: Final = {"kernel": "work", "other": "none"}
_EXPLAINED: Final = {
    "start": "importing, opening the graph, until the work begins",
    "other": "not explained by what was recorded",
}
_SOURCES: Final = {
    "model": "modelled",
    "trace": "in the trace",
    "clock": "by clocks",
    "ncu": "counted",
}

Report = Mapping[str, Any]


def first_screen(report: Report) -> dict[str, Any]:
    """Return the page's first screen.

    Args:
        report: The whole report.

    Returns:
        ``wall`` (seconds as text, or ""), ``parts`` of it, ``verdict`` and the three
        ``numbers``.
    """
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    parts = _wall_parts(report)
    total = sum(part["seconds"] for part in parts)
    return {
        "wall": seconds_text(total) if total else "",
        "parts": parts,
        "verdict": _verdict(report),
        "numbers": [
            _launches(report, metrics),
            _lanes(report, metrics),
            _balance(report, metrics),
        ],
    }


def seconds_text(seconds: float) -> str:
    """Write a time for people.

    Examples:
        >>> [seconds_text(it) for it in (0.5089, 75.0, 0.00457, 3.2e-7, 0.0)]
        ['0.51 s', '75 s', '4.6 ms', '0.32 us', '0 s']
    """
    if seconds <= 0:
        return "0 s"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 0.1 or unit == "us":
            break
    amount = seconds * scale
    return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.2g} {unit}"


def _wall_parts(report: Report) -> list[dict[str, Any]]:
    """Return the parts of the bar: kernels in shades of one color."""
    rows = report.get("wall_time") or []
    total = sum(row["seconds"] for row in rows)
    found, shade = [], 0
    for row in rows:
        share = row["seconds"] / total if total else 0.0
        is_kernel = row["part"] == "kernel"
        found.append(
            {
                "seconds": row["seconds"],
                "share": share,
                "name": row["name"],
                "time": seconds_text(row["seconds"]),
                "percent": "< 1 %" if share < 0.005 else f"{100 * share:.0f} %",
                "color": _COLORS.get(row["part"], row["part"]),
                "shade": min(shade, 3) if is_kernel else 0,
                "is_kernel": is_kernel,
                "about": _EXPLAINED.get(row["part"], ""),
            }
        )
        shade += is_kernel
    return found


def _verdict(report: Report) -> dict[str, Any]:
    """Return the largest finding, the others, the machine's load and what to do next."""
    verdict = report["verdict"]
    first, *others = verdict["findings"] or [None]
    found = {"text": verdict["summary"], "advice": ""}
    if first is not None:
        found = {"text": first["text"], "advice": first["advice"]}
    then = verdict.get("next")
    if then is not None and then["reason"] == found["advice"]:
        then = {**then, "reason": ""}  # said once
    return {**found, "others": others, "load": verdict.get("load", ""), "next": then}


def _known(metric: Mapping[str, Any] | None) -> Any:
    return None if metric is None else metric["value"]


def _steps_name(report: Report) -> str:
    steps = report["supersteps"]
    if any(step["mode"] == "train" for step in steps):
        is_embedding = any(row["name"] == "train_batches" for row in report["operators"])
        return "bucket" if is_embedding else "batch"
    return "superstep"


def _series(
    report: Report, values: Sequence[float | None]
) -> tuple[list[float | None], str]:
    """Return means of equal parts of the steps, and what the chart's axis is."""
    size, means = charts.means_of_parts(values, MAX_BARS)
    name = _steps_name(report)
    plural = {"batch": "batches"}.get(name, f"{name}s")
    if len(values) == 1:
        return means, f"one {name}"
    text = f"{len(values):,} {plural}, first to last"
    return means, text + (f"; {size} a bar" if size > 1 else "")


def _launches(report: Report, metrics: Mapping[str, Any]) -> dict[str, Any]:
    count = _known(metrics.get("kernel_invocations"))
    work = _known(metrics.get("work_per_invocation"))
    about = f"{_short(work)} edges each" if work is not None else "work not counted"
    if work is None:
        about = (metrics.get("work_per_invocation") or {}).get("reason") or about
    values = [
        None if step["edges"] is None else step["edges"] / max(step["kernels"], 1)
        for step in report["supersteps"]
    ]
    kernels = [row for row in report["operators"] if row["kind"] == "kernel"][:MAX_BARS]
    drawn: tuple[Markup, str] | None = None
    if any(values):
        drawn = _by_step(report, values, "edges each", "edges each")
    elif kernels:
        names = [row["name"] for row in kernels]
        calls = [float(row["calls"]) for row in kernels]
        chart = charts.small_bars(calls, "work", "calls", names)
        of = names[0] if len(names) == 1 else f"each of {len(names)} kernels"
        drawn = chart, f"calls of {of}"
    text = None if count is None else number_text(count)
    return _number("Kernel invocations", text, "", about, drawn)


def _lanes(report: Report, metrics: Mapping[str, Any]) -> dict[str, Any]:
    name, metric = _measured_first(metrics, "lane_utilization")
    value = _known(metric)
    drawn: tuple[Markup, str] | None = None
    if name == "lane_utilization":
        values = [step["lane_utilization"] for step in report["supersteps"]]
        drawn = _by_step(report, values, "lanes at work", "0 to 100 %", most=1.0)
    histogram = list(_histogram(report, name))[1:]
    if drawn is None and any(histogram):
        names = [f"{k} lanes" for k in range(1, 33)]
        chart = charts.small_bars([float(it) for it in histogram], "work", "steps", names)
        drawn = chart, "steps with 1 to 32 lanes at work"
    share = None if value is None else f"{100 * value:.0f}"
    about = _about(metric, report["gpu"], "of a warp's 32")
    return _number("Lanes at work", share, "%", about, drawn)


def _balance(report: Report, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return the balance of SMs; that of the workers where nobody modelled those."""
    name, metric = _measured_first(metrics, "sm_imbalance")
    value, cluster = _known(metric), report.get("cluster")
    if value is None and cluster is not None and cluster["load_imbalance"] is not None:
        value, workers = cluster["load_imbalance"], cluster["workers"]
        label = "Balance of workers"
        about = f"busiest over mean of {len(workers)}; measured"
        values = [
            step["most_work_seconds"] / step["mean_work_seconds"]
            if step["mean_work_seconds"]
            else None
            for step in cluster["supersteps"]
        ]
        work = {f"worker {row['rank']}": row["work_seconds"] for row in workers}
        whose = "each worker"
    else:
        label = "Balance of SMs"
        about = _about(metric, report["gpu"], "busiest over mean")
        values = [step.get("sm_imbalance") for step in report["supersteps"]]
        values = values if name == "sm_imbalance" else []
        work = {f"SM {k}": it for k, it in enumerate(_sm_work(report, name))}
        whose = f"{len(work)} SMs"
    drawn = _by_step(report, values, "busiest over mean", "line: even", line=1.0)
    mean = sum(work.values()) / max(len(work), 1)
    if drawn is None and mean > 0:
        shares = [it / mean for it in work.values()]
        chart = charts.small_bars(shares, "work", "of the mean", list(work), line=1.0)
        drawn = chart, f"work of {whose}; line: even"
    text = None if value is None else _short(value)
    return _number(label, text, "\u00d7", about, drawn)


def _by_step(
    report: Report,
    values: Sequence[float | None],
    what: str,
    axis: str,
    *,
    most: float | None = None,
    line: float | None = None,
) -> tuple[Markup, str] | None:
    """Draw a number of every step, and tell the axis; None where none is known."""
    if all(it is None for it in values):
        return None
    bars, steps = _series(report, values)
    return charts.small_bars(bars, "work", what, most=most, line=line), f"{axis}; {steps}"


def _number(
    label: str, value: str | None, unit: str, about: str, drawn: tuple[Markup, str] | None
) -> dict[str, Any]:
    """Return one of the screen's numbers, with its chart where there is one."""
    chart, axis = drawn or (Markup(""), "")
    is_known = value is not None
    return {
        "label": label,
        "value": value if is_known else "\u2013",
        "unit": unit if is_known else "",
        "about": about,
        "chart": chart,
        "axis": axis,
    }


def _measured_first(
    metrics: Mapping[str, Any], name: str
) -> tuple[str, Mapping[str, Any] | None]:
    """Return what was measured inside a GPU, else what the model says."""
    for suffix in (".ncu", ".clock"):
        if _known(metrics.get(name + suffix)) is not None:
            return name + suffix, metrics[name + suffix]
    return name, metrics.get(name)


def _about(metric: Mapping[str, Any] | None, gpu: Report | None, what: str) -> str:
    """Say what a number is of, or why there is none."""
    if metric is None:
        return "not in this report"
    if metric["value"] is None:
        return str(metric["reason"])
    source = _SOURCES.get(metric["source"], "measured")
    where = f", {gpu['name']}" if gpu is not None and metric["source"] == "model" else ""
    return f"{what}; {source}{where}"


def _histogram(report: Report, name: str) -> Sequence[int]:
    if name.endswith(".clock"):
        return _added(report, "active_lane_histogram")
    gpu = report["gpu"]
    return gpu["mappings"]["auto"]["active_lane_histogram"] if gpu else [0]


def _sm_work(report: Report, name: str) -> Sequence[float]:
    if name.endswith(".clock"):
        return _added(report, "sm_work")
    gpu = report["gpu"]
    return gpu["mappings"]["auto"].get("sm_work", []) if gpu else []


def _added(report: Report, name: str) -> list[Any]:
    """Add up a list of each instrumented kernel."""
    kernels = [it[name] for it in report.get("clocks") or []]
    return [sum(it) for it in zip(*kernels, strict=True)]


def _short(value: float) -> str:
    """Write a number with three digits and a unit of thousands.

    Examples:
        >>> [_short(it) for it in (2746.0, 12.88, 1.058, 3_400_000, 0.0)]
        ['2,746', '12.9', '1.06', '3.4 M', '0']
    """
    if value >= 1e9:
        return f"{value / 1e9:.3g} G"
    if value >= 1e6:
        return f"{value / 1e6:.3g} M"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
