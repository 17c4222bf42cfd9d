"""Peers that cannot share our environment and have one of their own."""

import subprocess
from pathlib import Path

SCRIPT = Path(__file__).resolve().with_name("peer_environments")
OWN = ("torchbiggraph", "torch_sparse", "raphtory", "pykeen", "tgm")


def peer_python(name: str) -> str | None:
    """Return the Python of a peer's environment, or None where none was made."""
    done = subprocess.run(
        [str(SCRIPT), "--check", name], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None if done.returncode == 0 else None


def has_environment(module: str) -> bool:
    """Return whether a module has an environment of its own that was made."""
    return module in OWN and peer_python(module) is not None
