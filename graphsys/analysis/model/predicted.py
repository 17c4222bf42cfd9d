"""What the SIMT model says of a run, as metrics and as the report's ``gpu`` part."""

from collections.abc import Sequence
from typing import Any

from graphsys.analysis.metrics import Metric, measured
from graphsys.analysis.model.devices import WARP, Gpu, occupancy
from graphsys.analysis.model.row_model import AUTO, RowModel
from graphsys.analysis.model.totals import MappingTotals

BY_BATCH = "rows are made and sent batch by batch"
NO_ROWS = "nothing here walked rows superstep by superstep"

_NAMES = {
    "lane_utilization": "share",
    "warp_variance": "sigma/mu",
    "cta_variance": "sigma/mu",
    "ctas_per_sm": "CTAs",
    "sm_imbalance": "max/mean",
    "atomics": "atomics",
    "index_sectors_per_request": "sectors",
    "value_sectors_per_request": "sectors",
    "coalescing_efficiency": "share",
    "predicted_launches": "launches",
    "row_bytes": "bytes",
}
"""Metrics that stand in every report, with their units."""


def predicted_metrics(model: RowModel | None, reason: str) -> list[Metric]:
    """Return the model's metrics, by the mapping that would be chosen and by each.

    Args:
        model: Has seen the run; None where it was not asked for.
        reason: Why there is no value, where there is none.
    """
    if model is None or not model.launches:
        return [
            measured(name, None, unit, source="model", reason=reason)
            for name, unit in _NAMES.items()
        ]
    found = []
    for name, totals in model.totals.items():
        suffix = "" if name == AUTO else f".{name}"
        found += _of_launches(model.gpu, totals, suffix, model.is_exact, model.reasons)
    for name, own in sorted(model.parts.items()):
        found += _of_launches(model.gpu, own.totals, f".{name}", own.is_exact, own.reasons)
    full = occupancy(
        model.gpu,
        threads=model.shape.threads,
        registers=model.shape.registers,
        shared_bytes=model.shape.shared_bytes,
    )
    found.append(measured("occupancy", full.fraction, "share", source="model"))
    if model.totals[AUTO].is_sampled:
        found.append(
            measured(
                "request_sampling_error",
                model.sampling_error(),
                "share",
                source="model",
                exact=False,
                reason="fewer than two of the sampled SMs made requests",
            )
        )
    size = model.row_bytes or None
    why = BY_BATCH if model.parts else "; ".join(model.reasons) or NO_ROWS
    return [*found, measured("row_bytes", size, "bytes", source="model", reason=why)]


def _of_launches(
    gpu: Gpu, totals: MappingTotals, suffix: str, is_exact: bool, reasons: Sequence[str]
) -> list[Metric]:
    """Return what some launches do, as metrics whose names end in ``suffix``."""
    lanes = totals.intra + totals.inter
    waste = {"intra": totals.intra, "inter": totals.inter} if lanes else {}
    work = float(totals.num_ctas) / gpu.num_sms if totals.num_ctas else None

    def metric(
        name: str,
        value: float | None,
        unit: str,
        *,
        exact: bool = is_exact,
        why: str = "no row had an entry",
    ) -> Metric:
        return measured(
            f"{name}{suffix}", value, unit, source="model", exact=exact, reason=why
        )

    rows = [
        metric("lane_utilization", totals.utilization, "share"),
        metric("warp_variance", totals.warp_variance, "sigma/mu", exact=False),
        metric("cta_variance", totals.cta_variance, "sigma/mu", exact=False),
        metric("ctas_per_sm", work, "CTAs"),
        metric("sm_imbalance", totals.sm_imbalance, "max/mean", exact=False),
        metric("predicted_launches", totals.launches, "launches"),
    ]
    for kind, amount in waste.items():
        rows.append(metric(f"{kind}_task_waste", amount / (WARP * totals.steps), "share"))
    return [*rows, *_of_requests(totals, metric, is_exact, reasons)]


def _of_requests(
    totals: MappingTotals, metric: Any, is_exact: bool, reasons: Sequence[str]
) -> list[Metric]:
    """Return the metrics of memory requests: of the launches whose addresses are known."""
    requests = totals.requests
    why = "; ".join(reasons)
    why = f"not measured ({why})" if why else "depends on how tiles are staged"
    values: dict[str, tuple[float | None, str]] = {
        "index_sectors_per_request": (None, "sectors"),
        "value_sectors_per_request": (None, "sectors"),
        "coalescing_efficiency": (None, "share"),
        "atomics": (None, "atomics"),
        "conflicts_per_request": (None, "lanes"),
    }
    if requests is not None:
        values = {
            "index_sectors_per_request": (
                requests.per_request(requests.index_sectors),
                "sectors",
            ),
            "value_sectors_per_request": (
                requests.per_request(requests.value_sectors),
                "sectors",
            ),
            "coalescing_efficiency": (requests.value_efficiency, "share"),
            "atomics": (requests.atomics, "atomics"),
            "conflicts_per_request": (requests.per_request(requests.conflicts), "lanes"),
        }
        why = "no row had an entry"
    exact = is_exact and not totals.unknown and not totals.is_sampled
    return [
        metric(name, value, unit, exact=exact, why=why)
        for name, (value, unit) in values.items()
    ]


def gpu_facts(model: RowModel) -> dict[str, Any]:
    """Return the report's part about the GPU that the model stands for."""
    gpu, shape = model.gpu, model.shape
    full = occupancy(
        gpu,
        threads=shape.threads,
        registers=shape.registers,
        shared_bytes=shape.shared_bytes,
    )
    return {
        "name": gpu.name,
        "num_sms": gpu.num_sms,
        "cta_threads": shape.threads,
        "registers_per_thread": shape.registers,
        "shared_bytes_per_cta": shape.shared_bytes,
        "resident_ctas_per_sm": full.ctas,
        "occupancy": full.fraction,
        "occupancy_limit": full.limit,
        "row_bytes": model.row_bytes,
        "is_exact": model.is_exact,
        "degrees": model.degrees.as_rows(),
        "mappings": {
            name: _mapping_facts(model, totals) for name, totals in model.totals.items()
        },
        "parts": {
            name: {
                "entries": own.entries,
                "is_exact": own.is_exact,
                "reasons": own.reasons,
                **_mapping_facts(model, own.totals),
            }
            for name, own in sorted(model.parts.items())
        },
    }


def _mapping_facts(model: RowModel, totals: MappingTotals) -> dict[str, Any]:
    sms = totals.ctas_per_sm
    return {
        "launches": totals.launches,
        "warp_steps": totals.steps,
        "active_lane_steps": totals.active,
        "intra_task_idle": totals.intra,
        "inter_task_idle": totals.inter,
        "lane_utilization": totals.utilization,
        "active_lane_histogram": totals.histogram.tolist(),
        "warp_variance": totals.warp_variance,
        "cta_variance": totals.cta_variance,
        "ctas": totals.num_ctas,
        "ctas_per_sm": {
            "min": int(sms.min()),
            "mean": float(sms.mean()),
            "max": int(sms.max()),
        },
        "idle_sms": int((sms == 0).sum()),
        "sm_ctas": sms.tolist(),
        "sm_work": totals.busy.round(3).tolist(),
        "sm_imbalance": totals.sm_imbalance,
        "sm_imbalance_static": totals.sm_imbalance_static,
        "fillings": {
            name: {
                "launches": filling.launches,
                "waves": filling.waves / filling.launches,
                "cta_imbalance": filling.ctas / filling.launches,
                "sm_imbalance": filling.work / filling.launches,
            }
            for name, filling in totals.fillings.items()
            if filling.launches
        },
        "tail_efficiency": totals.tail_efficiency(model.resident),
        "requests": _request_facts(totals),
    }


def _request_facts(totals: MappingTotals) -> dict[str, Any] | None:
    requests = totals.requests
    if requests is None:
        return None
    per = requests.per_request
    return {
        "requests": requests.requests,
        "launches_without": totals.unknown,
        "lanes_per_request": per(requests.lanes),
        "index_sectors_per_request": per(requests.index_sectors),
        "index_lines_per_request": per(requests.index_lines),
        "index_efficiency": requests.index_efficiency,
        "value_sectors_per_request": per(requests.value_sectors),
        "value_lines_per_request": per(requests.value_lines),
        "value_efficiency": requests.value_efficiency,
        "atomics": requests.atomics,
        "conflicts_per_request": per(requests.conflicts),
    }
