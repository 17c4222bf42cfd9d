"""Runs of embeddings whose files a test has written anew."""

import json
from pathlib import Path

from graphsys.core.checksums import file_digest
from graphsys.storage.runs.run_folder import write_content


def reseal(run: Path) -> None:
    """Have ``run.json`` state what it and the run's files are now."""
    content = json.loads((run / "run.json").read_text())
    content.pop("checksum")
    content["files"] = {name: (run / name).stat().st_size for name in content["files"]}
    content["checksums"] = {
        name: file_digest(run / name) for name in (*content["files"], "config.toml")
    }
    write_content(run, content)
