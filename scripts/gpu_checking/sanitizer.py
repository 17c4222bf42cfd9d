"""compute-sanitizer around one tiny case of each family of kernels."""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from gpu_checking.steps import Context

_TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
_CASES = {
    "engine": (
        "import numpy as np\n"
        "from graphsys.engine.programs.bfs import BreadthFirst\n"
        "from graphsys.engine.run import run\n"
        "from graphsys.engine.topology import Topology\n"
        "src = np.arange(40) % 13; dst = np.arange(40) * 7 % 13\n"
        "graph = Topology.from_edges(src, dst, 13, directed=False)\n"
        "for strategy in ({strategies}):\n"
        "    run(BreadthFirst(source=0), graph, device='cuda', strategy=strategy)\n"
    ),
    "vectors": (
        "import numpy as np\n"
        "from gpu_checking.vectors import Mixing\n"
        "from graphsys.engine.run import run\n"
        "from graphsys.engine.topology import Topology\n"
        "src = np.arange(40) % 13; dst = np.arange(40) * 7 % 13\n"
        "graph = Topology.from_edges(src, dst, 13, directed=False)\n"
        "run(Mixing(), graph, device='cuda')\n"
    ),
    "mining": (
        "import numpy as np\n"
        "from graphsys.mining import motif_census\n"
        "edges = np.arange(40) % 13, np.arange(40) * 7 % 13\n"
        "motif_census(edges, 4, device='cuda')\n"
    ),
    "gnn": (
        "import numpy as np, torch\n"
        "from graphsys.core.triton.device import cuda_device\n"
        "from graphsys.gnn import SparseRows, spmm\n"
        "rows = SparseRows(np.arange(9), np.arange(8, dtype=np.int32)[::-1].copy(), 8)\n"
        "x = torch.ones((8, 4), device=cuda_device(), requires_grad=True)\n"
        "spmm(rows.to('cuda'), x).sum().backward()\n"
    ),
}
"""A program for each family."""


def planned() -> list[str]:
    """Return the rows that a card is to give."""
    return [f"{tool}, {name}" for tool in _TOOLS for name in _CASES]


def check(context: Context) -> None:
    """Run all cases under every tool, side by side; simulated, without a tool."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None and not context.is_simulated:
        context.tell({"case": "compute-sanitizer", "left_out": "it is not on PATH"})
        return
    left_out: list[str] = []
    works = {}
    for tool in ("none",) if context.is_simulated else _TOOLS:
        for name, program in _CASES.items():
            if name == "gnn" and not context.has_triton():
                continue
            strategies = "'auto'," if context.is_simulated else "'auto', 'fused', 'twc'"
            words = [sys.executable, "-c", program.replace("{strategies}", strategies)]
            if context.is_simulated:
                words[2] = f"{_SHIM}{words[2]}"
            else:
                words = [str(sanitizer), "--tool", tool, "--error-exitcode", "9", *words]
            works[f"{tool}, {name}"] = words

    def work(case: str) -> None:
        if time.monotonic() > context.deadline:
            left_out.append(case)
        else:
            run(context, case, works[case])

    with ThreadPoolExecutor(max(2, (os.cpu_count() or 1) * 3 // 4)) as pool:
        list(pool.map(work, works))
    context.leave_out(left_out)


_SHIM = "from tests.cuda_sim import warp_shim; warp_shim.install()\n"


def run(context: Context, case: str, words: list[str]) -> None:
    """Run one case and tell whether it was clean."""
    limit = max(context.deadline - time.monotonic(), 1)
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        context.tell({"case": case, "left_out": f"it took more than {limit:.0f} s"})
        return
    row = {"case": case, "seconds": round(time.monotonic() - began, 1)}
    if done.returncode:
        told = [it for it in (done.stdout + done.stderr).splitlines() if it.strip()]
        row["error"] = "; ".join(told[-4:])[:600]
    context.tell(row)
