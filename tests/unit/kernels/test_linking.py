"""Machine code of a kernel does not depend on which others the process has loaded."""

import os
import subprocess
import sys
from pathlib import Path

RUN = """
import hashlib
import numpy as np
from graphsys.kernels.cpu.embedding.operators import COMPLEX, apply_operators

rng = np.random.default_rng(0)
rows, operator = rng.random((64, 32), np.float32), rng.random(32, np.float32)
codes, offsets = np.array([COMPLEX]), np.array([0, 32])
turned = np.empty_like(rows)
apply_operators(codes, offsets, operator, np.zeros(64, np.int64), rows, turned)
print(hashlib.sha256(turned).hexdigest())
"""


def test_bits_are_the_same_whether_kernels_were_compiled_or_loaded(tmp_path: Path) -> None:
    """Products of complex numbers may be fused in two ways, which round differently."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, loaded = [
        subprocess.run(
            [sys.executable, "-c", RUN],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert compiled == loaded
