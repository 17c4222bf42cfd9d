"""One step of scripts/gpu_check, in this process: rows as JSON lines on stdout.

Usage: ``python -m gpu_checking.child STEP SECONDS``.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
import warnings
from typing import Any

from gpu_checking.steps import STEPS, Context


def main() -> int:
    """Run a step; an exception becomes a row."""
    name, seconds = sys.argv[1], float(sys.argv[2])
    step = next(it for it in STEPS if it.name == name)
    is_simulated = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    warnings.simplefilter("ignore")
    if is_simulated:
        from tests.cuda_sim import warp_shim

        warp_shim.install()
        if importlib.util.find_spec("triton") is not None:
            from tests.triton_sim import quick_interpreter

            quick_interpreter.install()
    context = Context(
        deadline=time.monotonic() + 0.9 * seconds, is_simulated=is_simulated, tell=tell
    )
    try:
        module, _, function = step.function.partition(":")
        getattr(importlib.import_module(f"gpu_checking.{module}"), function)(context)
    except Exception as err:  # the row says what the log has in full
        traceback.print_exc()
        tell({"error": f"{type(err).__name__}: {err}"[:500]})
        return 1
    return 0


def tell(row: dict[str, Any]) -> None:
    """Print a row."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
