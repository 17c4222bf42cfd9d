"""What the machine and the installation have, as one plain mapping.

``graphsys doctor`` prints it, and every benchmark result carries it.
"""

import os
import platform
import re
import shutil
import subprocess
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

from graphsys.core.cuda.toolkit import describe_compiler
from graphsys.core.deps import own_version
from graphsys.core.memory import available_bytes
from graphsys.core.threads import num_cores

_CAP_SYS_ADMIN = 1 << 21


def describe_machine(folder: Path | None = None) -> dict[str, Any]:
    """Describe this machine.

    Args:
        folder: A folder on the disk in question; by default the current one.

    Returns:
        ``cpu`` (``model``, ``cores``, ``usable_cores``), ``memory`` (``total_bytes``,
        ``available_bytes``), ``disk`` (``folder``, ``total_bytes``, ``free_bytes``),
        ``gpu`` (``devices``; ``reason`` where there are none), ``cuda_compiler``
        (``path``; ``reason`` where there is none), ``counters``
        (``allowed``, ``reason``), ``system``, ``python``, ``graphsys``, ``packages``
        (name to ``version``, null where not installed, and ``extra``),
        ``numba_cache``, ``torch_threads`` (null where torch cannot be loaded).
    """
    gpu = describe_gpu()
    return {
        "cpu": {
            "model": cpu_model(),
            "cores": os.cpu_count(),
            "usable_cores": num_cores(),
        },
        "memory": {
            "total_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
            "available_bytes": available_bytes(),
        },
        "disk": describe_disk(folder or Path.cwd()),
        "gpu": gpu,
        "cuda_compiler": describe_compiler(),
        "counters": describe_counters(has_gpu=bool(gpu["devices"])),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "graphsys": own_version(),
        "packages": describe_packages(),
        "numba_cache": numba_cache(),
        "torch_threads": torch_threads(),
    }


def cpu_model() -> str:
    """Return the processor's name, or its architecture where the system hides it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe_disk(folder: Path) -> dict[str, Any]:
    """Return the size of the disk that holds ``folder`` and what is free, in bytes."""
    usage = shutil.disk_usage(folder)
    return {"folder": str(folder), "total_bytes": usage.total, "free_bytes": usage.free}


def describe_gpu() -> dict[str, Any]:
    """Return the NVIDIA devices that the driver sees, or why there are none."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return {"devices": [], "reason": "nvidia-smi is not installed"}
    query = [
        "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader,nounits",
    ]
    try:
        found = subprocess.run(
            [command, *query], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        return {"devices": [], "reason": f"nvidia-smi did not answer: {err}"}
    if found.returncode != 0:
        lines = (found.stdout + found.stderr).strip().splitlines()
        return {"devices": [], "reason": lines[0] if lines else "nvidia-smi failed"}
    devices = []
    for line in found.stdout.strip().splitlines():
        name, mebibytes, driver = (part.strip() for part in line.split(","))
        size = int(mebibytes) * 2**20 if mebibytes.isdigit() else None
        devices.append({"name": name, "memory_bytes": size, "driver": driver})
    return {"devices": devices, "reason": None if devices else "the driver lists no device"}


def describe_counters(*, has_gpu: bool) -> dict[str, Any]:
    """Return whether this process may read the GPU's performance counters, and why.

    Source: NVIDIA, ERR_NVGPUCTRPERM: counters are for CAP_SYS_ADMIN only, unless the
    kernel module was loaded with NVreg_RestrictProfilingToAdminUsers=0.
    """
    if not has_gpu:
        return {"allowed": False, "reason": "no GPU"}
    try:
        params = Path("/proc/driver/nvidia/params").read_text()
    except OSError as err:
        return {"allowed": None, "reason": f"the driver's parameters are hidden: {err}"}
    found = re.search(r"RmProfilingAdminOnly:\s*(\d)", params)
    if found and found.group(1) == "0":
        return {"allowed": True, "reason": "RmProfilingAdminOnly is 0"}
    if _capabilities() & _CAP_SYS_ADMIN:
        return {"allowed": True, "reason": "this process has CAP_SYS_ADMIN"}
    return {
        "allowed": False,
        "reason": "for administrators only; load the driver with "
        "NVreg_RestrictProfilingToAdminUsers=0",
    }


def _capabilities() -> int:
    status = Path("/proc/self/status").read_text()
    found = re.search(r"CapEff:\s*([0-9a-f]+)", status)
    return int(found.group(1), 16) if found else 0


def describe_packages() -> dict[str, dict[str, str | None]]:
    """Return graphsys' dependencies by name: installed version, and extra if optional."""
    extras: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("graphsys") or []
    except metadata.PackageNotFoundError:  # it runs from its folder
        requirements = []
    for requirement in requirements:
        name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", requirement)
        if not (extra and extra.group(1) == "dev"):
            extras.setdefault(name, []).append(extra.group(1) if extra else "")
    sizes = Counter(it for found in extras.values() for it in found)

    def weight(extra: str) -> tuple[bool, int]:
        return extra == "bench", sizes[extra]  # what benchmarks need is nobody else's

    return {
        name: {
            "version": _installed_version(name),
            "extra": None if "" in found else min(found, key=weight),
        }
        for name, found in extras.items()
    }


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def numba_cache() -> str:
    """Return where numba keeps compiled kernels: see numba's caching of user modules."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return chosen
    package = Path(__file__).resolve().parent.parent
    if os.access(package, os.W_OK):
        return f"__pycache__ beside each module of {package}"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return str(Path(home) / "numba")


def torch_threads() -> int | None:
    """Return how many threads torch takes; None where torch cannot be loaded."""
    try:
        import torch
    except (ImportError, OSError):
        return None
    return torch.get_num_threads()
