"""Traces: a synthetic one of a GPU, empty, cut short, zipped and foreign ones."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from graphsys.analysis.files import report_schema
from graphsys.analysis.page.page import page_of
from graphsys.analysis.trace_report import report_of_trace
from graphsys.analysis.traces import trace_reader
from graphsys.analysis.traces.trace import read_trace
from graphsys.core.errors import InputError
from tests.unit.analysis.schemas import violations


def kernel(name: str, ts: float, dur: float, number: int, **args: Any) -> dict[str, Any]:
    given = {
        "grid": [66, 2, 1],
        "block": [256, 1, 1],
        "correlation": number,
        "registers per thread": 40,
        "stream": 7,
        **args,
    }
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": given}


def launch(number: int, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": name,
        "ts": 1.0,
        "dur": 1.0,
        "args": {"correlation": number},
    }


def copy(name: str, ts: float, dur: float, size: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "gpu_memcpy",
        "name": name,
        "ts": ts,
        "dur": dur,
        "args": {"bytes": size},
    }


EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    *(launch(number) for number in (1, 2, 3, 4)),
    kernel("pull", 100.0, 50.0, 1),
    kernel("pull", 200.0, 30.0, 2),
    kernel("push", 230.0, 20.0, 3),
    copy("Memcpy HtoD (Pageable -> Device)", 140.0, 40.0, 1000),
    copy("Memcpy DtoH (Device -> Pinned)", 300.0, 10.0, 1 << 20),
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 500},
]


def trace_text(events: Any = EVENTS) -> str:
    document = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
        "traceEvents": events,
        "baseTimeNanoseconds": 17,
    }
    return json.dumps(document, indent=1)


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
@pytest.mark.parametrize("window", [7, 1 << 20])
def test_a_trace_tells_kernels_copies_and_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, window: int
) -> None:
    monkeypatch.setattr(trace_reader, "_WINDOW", window)
    path, text = tmp_path / name, trace_text()
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    found = read_trace(path)
    assert (found.num_events, found.num_kernels, found.num_launches) == (11, 3, 4)
    pull = found.kernels["pull"]
    assert (pull.calls, pull.total_us, pull.longest_us, pull.ctas) == (2, 80.0, 50.0, 264)
    assert (pull.threads, pull.registers) == (256, 40)
    assert found.copies == [1000, 1 << 20]
    assert found.copied == {"HtoD": [1, 1000, 40.0], "DtoH": [1, 1 << 20, 10.0]}
    assert found.num_sms == 132
    assert found.num_lost == 1
    # kernels 100-150, 200-250; copies 140-180, 300-310: 10 of 50 us overlap
    assert found.overlap_alpha == pytest.approx(10 / 50)
    assert found.idle_share == pytest.approx(50 / 150)


def test_its_report_has_every_key_and_says_what_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(trace_text())
    report = report_of_trace(path)
    assert violations(report_schema(), report) == []
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    assert metrics["lost_kernels"]["value"] == 1
    assert metrics["kernel_invocations"] == {
        "name": "kernel_invocations",
        "value": 3,
        "unit": "launches",
        "source": "trace",
        "exact": True,
        "reason": None,
    }
    assert metrics["ctas_per_sm"]["value"] == 3.0
    assert metrics["transfer_seconds"]["value"] == pytest.approx(50e-6)
    assert "no lanes" in metrics["lane_utilization"]["reason"]
    assert [row["name"] for row in report["operators"]] == [
        "pull",
        "push",
        "copy DtoH",
        "copy HtoD",
    ]
    assert any(
        "1 kernels were launched but" in f["text"] for f in report["verdict"]["findings"]
    )
    assert "33 % of the time between" in report["verdict"]["findings"][0]["text"]
    assert "pull" in page_of(report)
    own = {"metrics": [{"name": "kernel_invocations", "value": 10}]}
    lost = {m["name"]: m["value"] for m in report_of_trace(path, own)["metrics"]}
    assert lost["lost_kernels"] == 7


def test_a_trace_without_kernels_is_a_report(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    path.write_text(trace_text([EVENTS[0], EVENTS[-1]]))
    report = report_of_trace(path)
    assert violations(report_schema(), report) == []
    metrics = {metric["name"]: metric for metric in report["metrics"]}
    assert metrics["kernel_invocations"]["value"] == 0
    assert metrics["overlap_alpha"]["value"] is None
    assert "2 events but no kernel" in report["verdict"]["summary"]
    path.write_text(json.dumps(EVENTS))  # the bare list is a trace, too
    assert read_trace(path).num_kernels == 3
    path.write_text('{"traceEvents": [], "deviceProperties": []}')
    assert read_trace(path).num_events == 0


def test_a_trace_that_is_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    path, text = tmp_path / "t.json", trace_text()
    for end in range(1, len(text.rstrip()), 23):
        path.write_text(text[:end])
        with pytest.raises(InputError, match=r"cut short|no Kineto"):
            read_trace(path)
    path.write_text(text[: len(text) // 2])
    with pytest.raises(InputError, match="cut short: it ends inside its events; record it"):
        read_trace(path)
    path.write_bytes(gzip.compress(text.encode())[:-30])
    with pytest.raises(InputError, match="cut short: its gzip stream ends early"):
        read_trace(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"ncu,csv\n1,2\n", "begins with 'n'"),
        (
            b'{"nodes": [1, 2], "edges": []}',
            r"has no traceEvents \(its keys: edges, nodes\)",
        ),
        (b'{"traceEvents": [1, 2]}', "has 1 among its events"),
        (b'{"traceEvents": {"a": 1}}', r"has '{' where '\[' belongs"),
        (b'{"traceEvents": [{"ph": x, "name": "k"}]}', "is not JSON"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "is not text"),
        (
            b'[{"ph": "X", "cat": "kernel", "name": "k"}]',
            r"event 1 \('k'\) lacks or garbles",
        ),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_trace(path)


def test_large_traces_are_read_in_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_reader, "_WINDOW", 1000)
    path = tmp_path / "t.json"
    path.write_text(trace_text([kernel("k", float(k), 0.5, k) for k in range(2000)]))
    reader = trace_reader.TraceReader(path)
    held = [len(reader._text) for _ in reader.events()]
    assert len(held) == 2000
    assert max(held) < 4000
