"""The user's cache folder: what can be made again, and is nobody else's to write."""

import os
from pathlib import Path


def user_cache(name: str) -> Path | None:
    """Return a folder of the user's cache, mode 0700, made when missing.

    It lies in ``$GRAPHSYS_CACHE`` or ``$XDG_CACHE_HOME/graphsys`` or ``~/.cache/graphsys``.

    Returns:
        None where it cannot be written, or where somebody else may write.
    """
    base = os.environ.get("GRAPHSYS_CACHE")
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = (Path(base) if base else root / "graphsys") / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        info = folder.stat()
    except (OSError, RuntimeError):  # RuntimeError: nobody's home
        return None
    is_ours = info.st_uid == os.getuid() and os.access(folder, os.W_OK)
    return folder if is_ours else None
