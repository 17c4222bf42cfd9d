"""Whose word runs the file of a user's own model, ``my_model.py:Net``.

A run records the file and its checksum. It may be a stranger's run, whose settings name
any file of this machine: that file is run only where the user names it, or has named it
before with the content that it has now.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphsys.core.errors import ConfigError
from graphsys.core.registry import file_and_name
from graphsys.core.user_cache import user_cache
from graphsys.gnn.model_spec import checksum_of, is_file, models
from graphsys.storage.runs.run_folder import read_content

_MARKS = "models"  # of the user's cache: an empty file for each that the user has named


def load_named(place: str) -> str:
    """Run the file of a model that the user has named, and remember that.

    Args:
        place: ``my_model.py:Net``; a relative path is taken from the working directory.

    Returns:
        The same with the whole path.

    Raises:
        ConfigError: There is no such file, or no such class in it.
        CompileError: The file has an error; the message has its line.
    """
    place, seen = models.load(place)
    mark = _mark_of(file_and_name(place)[0], seen)
    if mark is not None:
        mark.touch(mode=0o600)
    return place


def require_word(run: Path, settings: Mapping[str, Any], recorded: str) -> None:
    """Check that the user has named the file of a run's model, as it is now.

    Args:
        run: The run's folder.
        settings: Its settings.
        recorded: Checksum of the file that was trained with; "" where it is unknown.

    Raises:
        ConfigError: The file is gone, has changed, or the user has not named it; the
            message says what to do.
    """
    model = settings.get("model")
    if not isinstance(model, str) or not is_file(model):
        return
    path, name = file_and_name(model)
    remedy = f"--model FILE.py:{name}, for train --set model=FILE.py:{name}"
    if not path.is_file():
        raise ConfigError(
            f"the run {run} has the model {model}, and there is no such file; restore it, "
            f"or say where it is: {remedy}"
        )
    now = checksum_of(path.read_bytes())
    if now != recorded:
        raise ConfigError(
            f"the run {run} has the model {model}, and that file has changed since; "
            f"restore it, or have it used as it is: {remedy}"
        )
    mark = _mark_of(path, now)
    if not path.is_absolute() or mark is None or not mark.exists():
        raise ConfigError(
            f"the run {run} has the model {model}, a file that would be executed and that "
            f"you have not trained with here; read it, then name it: {remedy}"
        )


def require_word_for(run: Path, settings: Mapping[str, Any]) -> None:
    """Check the same of a run's folder, by what its ``run.json`` records."""
    require_word(run, settings, str(read_content(run).get("model_digest", "")))


def _mark_of(path: Path, seen: str) -> Path | None:
    """Return the file that says that the user has named a file with such a checksum."""
    folder = user_cache(_MARKS)
    if folder is None:
        return None
    return folder / hashlib.sha256(f"{path}\0{seen}".encode()).hexdigest()
