"""The machine is described even where parts of it are missing."""

from pathlib import Path

import pytest

from graphsys.core import machine


def test_description_has_its_parts(tmp_path: Path) -> None:
    found = machine.describe_machine(tmp_path)
    assert found["cpu"]["usable_cores"] >= 1
    assert found["memory"]["total_bytes"] >= found["memory"]["available_bytes"] > 0
    assert found["disk"]["free_bytes"] > 0
    assert found["packages"]["numpy"] == {
        "version": found["packages"]["numpy"]["version"],
        "extra": None,
    }
    assert found["packages"]["polars"]["extra"] == "all"
    assert "pytest" not in found["packages"]


def test_no_driver_is_a_reason_and_not_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    gpu = machine.describe_gpu()
    assert gpu == {"devices": [], "reason": "nvidia-smi is not installed"}
    assert machine.describe_counters(has_gpu=False)["reason"] == "no GPU"


def test_a_driver_that_fails_is_quoted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert machine.describe_gpu() == {"devices": [], "reason": "NVIDIA-SMI has failed"}


def test_devices_are_listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771, 570.1'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert machine.describe_gpu()["devices"] == [
        {"name": "NVIDIA H200", "memory_bytes": 143771 << 20, "driver": "570.1"}
    ]
