"""Counters of Nsight Compute: both forms of its CSV, odd files, and names that exist."""

import ctypes
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.files import report_schema
from graphsys.analysis.ncu_report import report_of_ncu
from graphsys.analysis.page.page import page_of
from graphsys.analysis.traces.ncu import CORE, MEMORY, STALLS, ncu_metrics, read_ncu
from graphsys.core.errors import InputError
from tests.unit.analysis.schemas import violations

RAW = """==PROF== Connected to process 7
==PROF== Profiling "pull_0" - 0: 0%....100% - 3 passes
"ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum",\
"smsp__thread_inst_executed.sum","smsp__inst_executed.sum","sm__cycles_active.avg",\
"sm__cycles_active.max","smsp__average_warp_latency_issue_stalled_long_scoreboard.ratio",\
"smsp__average_warp_latency_issue_stalled_wait.ratio","dram__bytes_read.sum",\
"dram__bytes_write.sum","launch__registers_per_thread","new__metric.sum"
"","","","","","usecond","inst","inst","cycle","cycle","","","Mbyte","Kbyte","register",""
"0","7","pull_0","(256, 1, 1)","(8, 1, 1)","1,000.5","3,200","400","10","30","9","1",\
"2","5",\
"32","1"
"1","7","push_0","(256, 1, 1)","(8, 1, 1)","500","1,600","100","10","10","9","1","1","5",\
"32","n/a"
"""
LONG = """"ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","pull_0","Command line","gpu__time_duration.sum","nsecond","2,000"
"0","pull_0","Command line","sm__ctas_launched.min","block","3"
"1","pull_0","Command line","gpu__time_duration.sum","msecond","1"
"1","pull_0","Command line","sm__ctas_launched.min","block","4"
"""


def metrics_at(path: Path) -> dict[str, dict[str, Any]]:
    report = report_of_ncu(path)
    assert violations(report_schema(), report) == []
    assert "ncu.csv" in page_of(report)
    return {metric["name"]: metric for metric in report["metrics"]}


def test_a_column_per_metric(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(RAW)
    metrics = metrics_at(path)
    values = {name: metric["value"] for name, metric in metrics.items()}
    assert values["kernel_invocations"] == 2
    assert values["kernel_seconds"] == pytest.approx(1.5005e-3)
    assert values["lane_utilization"] == pytest.approx(4800 / 500 / 32)
    assert values["sm_imbalance"] == 2.0
    assert values["dram_bytes"] == 3_010_000
    assert values["stall_long_scoreboard"] == pytest.approx(0.9)
    assert metrics["l2_hit_rate"]["reason"] == "the file lacks lts__t_sector_hit_rate.pct"
    assert metrics["transfer_count"]["value"] is None
    report = report_of_ncu(path)
    assert (
        report["configuration"]["not used"]
        == "launch__registers_per_thread, new__metric.sum"
    )
    assert [row["name"] for row in report["operators"]] == ["pull_0", "push_0"]
    assert "Warps wait for memory" in report["verdict"]["summary"]


def test_a_row_per_metric(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(LONG)
    values = {name: metric["value"] for name, metric in metrics_at(path).items()}
    assert values["kernel_seconds"] == pytest.approx(0.001002)
    assert values["ctas_per_sm_min"] == 7
    assert values["lane_utilization"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no column 'Kernel Name'"),
        ("a,b\n1,2\n", "has no column 'Kernel Name'"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user...\n", "counters were not permitted"),
        (RAW.partition('"0","7"')[0], "counted no kernel"),
        (RAW + '"2","7"\n', "a row does not fit its heads"),
        (RAW.replace('"3,200"', '"many"'), "a row does not fit its heads"),
    ],
)
def test_odd_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_ncu(path)


def test_what_nsight_compute_wrote_on_an_h100_is_read() -> None:
    """A kernel that adds 1 to 2**20 float64 by 4,096 CTAs; some facts are words."""
    found = read_ncu(Path(__file__).with_name("ncu_of_h100.csv"))
    (kernel,) = found.kernels
    assert kernel.name == "f"
    assert {*CORE, *MEMORY} <= kernel.values.keys()
    assert "c2clink__enabled_mask" in found.unknown
    metrics = {it.name: it.value for it in ncu_metrics(found)}
    assert metrics["lane_utilization"] == 1
    assert metrics["value_sectors_per_request"] == 8  # 32 lanes of 8 bytes
    assert metrics["dram_bytes"] == pytest.approx(8 << 20, rel=0.001)
    assert metrics["kernel_seconds"] == pytest.approx(6.912e-6)
    assert kernel.values["sm__ctas_launched.sum"] == 4096
    assert (metrics["stall_long_scoreboard"] or 0) > 0.7


class Struct(ctypes.Structure):
    """CUPTI's structures begin with their size and a pointer of its own."""


def made(fields: list[tuple[str, Any]], **values: Any) -> Any:
    kind = type(
        "Params",
        (Struct,),
        {
            "_fields_": [
                ("structSize", ctypes.c_size_t),
                ("pPriv", ctypes.c_void_p),
                *fields,
            ]
        },
    )
    found = kind(**values)
    last = getattr(kind, fields[-1][0])
    found.structSize = last.offset + last.size
    return found


def libraries() -> Iterator[str]:
    chosen = os.environ.get("CUPTI_LIB")
    if chosen:
        yield chosen
    yield "libcupti.so"
    triton = importlib.util.find_spec("triton")  # which brings one along
    if triton is not None and triton.origin is not None:
        yield str(Path(triton.origin).parent / "backends/nvidia/lib/cupti/libcupti.so")
    for folder in sorted(Path("/usr/local").glob("cuda*/**/libcupti.so*")):
        yield str(folder)


def cupti() -> Any:
    for name in libraries():
        try:
            found = ctypes.CDLL(name)
            assert found.cuptiProfilerHostInitialize
        except (OSError, AttributeError):
            continue
        return found
    pytest.skip("libcupti is not installed; set CUPTI_LIB (pip install nvidia-cuda-cupti)")


POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t
NAMES = ctypes.POINTER(ctypes.c_char_p)


def begun(library: Any) -> Any:
    """Return CUPTI's handle for Hopper; no device is needed."""
    fields = [
        ("type", ctypes.c_int),
        ("chip", ctypes.c_char_p),
        ("avail", POINTER),
        ("host", POINTER),
    ]
    begin = made(fields, chip=b"GH100")
    assert library.cuptiProfilerHostInitialize(ctypes.byref(begin)) == 0
    return begin.host


def is_known(library: Any, host: Any, *metrics: str) -> bool:
    """Return whether CUPTI takes metrics; they stay with the handle if so."""
    names = (ctypes.c_char_p * len(metrics))(*(name.encode() for name in metrics))
    wanted = made(
        [("host", POINTER), ("names", NAMES), ("count", SIZE)],
        host=host,
        names=ctypes.cast(names, NAMES),
        count=len(metrics),
    )
    code: int = library.cuptiProfilerHostConfigAddMetrics(ctypes.byref(wanted))
    return code == 0


def num_passes(library: Any, metrics: tuple[str, ...]) -> int:
    """Return how often a kernel has to be replayed to count metrics."""
    host = begun(library)
    assert is_known(library, host, *metrics)
    sized = made([("host", POINTER), ("size", SIZE)], host=host)
    assert library.cuptiProfilerHostGetConfigImageSize(ctypes.byref(sized)) == 0
    image = (ctypes.c_uint8 * sized.size)()
    fields = [("host", POINTER), ("size", SIZE), ("image", POINTER)]
    filled = made(fields, host=host, size=sized.size, image=ctypes.addressof(image))
    assert library.cuptiProfilerHostGetConfigImage(ctypes.byref(filled)) == 0
    fields = [("size", SIZE), ("image", POINTER), ("passes", SIZE)]
    told = made(fields, size=sized.size, image=ctypes.addressof(image))
    assert library.cuptiProfilerHostGetNumOfPasses(ctypes.byref(told)) == 0
    return int(told.passes)


def test_every_counter_named_here_exists_on_hopper() -> None:
    library = cupti()
    host = begun(library)
    every = (*CORE, *MEMORY, *STALLS)
    assert [name for name in every if not is_known(library, host, name)] == []
    assert not is_known(library, host, "sm__no_such_metric.sum")


def test_what_is_counted_by_default_takes_one_pass() -> None:
    library = cupti()
    assert num_passes(library, CORE) == 1
    assert 1 < num_passes(library, (*CORE, *MEMORY, *STALLS)) <= 10
