"""The command on numba's CUDA simulator, as on a machine with a GPU.

Usage: ``NUMBA_ENABLE_CUDASIM=1 python -m tests.cuda_sim.run_command WORDS`` with the root
on ``PYTHONPATH``.
"""

import sys

from graphsys.cli.main import main
from tests.cuda_sim import warp_shim

if __name__ == "__main__":
    warp_shim.install()
    sys.exit(main(sys.argv[1:]))
