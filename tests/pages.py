"""The fenced commands of a page, run by a stranger: from an installed wheel."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BY_CI = re.compile(r"^(scripts/\w+|\. \.venv/bin/activate).*\n", re.MULTILINE)
"""What ``.ci/run`` calls, and what brings the installed command into a person's shell."""


@dataclass(frozen=True)
class Section:
    """What stands below one heading of a page.

    Attributes:
        heading: Its text.
        blocks: Language and text of every fenced block, in their order.
        prose: All that stands there.
    """

    heading: str
    blocks: tuple[tuple[str, str], ...]
    prose: str

    def script(self) -> str:
        """Return all blocks as one script for a shell; Python goes to ``example.py``."""
        python = "".join(text for language, text in self.blocks if language == "python")
        shell = "".join(text for language, text in self.blocks if language != "python")
        lines = [BY_CI.sub("", shell)]
        if python:  # one file: later blocks go on where earlier ones end
            lines.append(f"cat > example.py <<'END_OF_EXAMPLE'\n{python}END_OF_EXAMPLE\n")
            lines.append("python -P example.py\n")
        return "".join(lines)

    def in_order(self) -> str:
        """Return all blocks as one script in the order of the page.

        It is one Python program, which has a shell run the blocks that are for one.
        """
        lines = ["import subprocess as _subprocess\n"]
        for language, text in self.blocks:
            call = ["bash", "-euo", "pipefail", "-c", text]
            code = (
                text if language == "python" else f"_subprocess.run({call}, check=True)\n"
            )
            lines.append(code)
        program = "".join(lines)
        return (
            f"cat > example.py <<'END_OF_EXAMPLE'\n{program}END_OF_EXAMPLE\n"
            "python -P example.py\n"
        )


def sections_of(page: str) -> dict[str, Section]:
    """Return the sections of a page that have fenced blocks, by heading."""
    found = {}
    for text in re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)[1:]:
        heading = text.splitlines()[0]
        if blocks := tuple(FENCED.findall(text)):
            found[heading] = Section(heading, blocks, text)
    return found


def run_script(
    script: str,
    programs: Path | str,
    cwd: Path,
    variables: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run lines in a shell that ends at the first command that fails.

    Args:
        script: The lines.
        programs: The folder of the installed programs, which come first; or several, as in
            ``PATH``.
        cwd: Where.
        variables: More variables of the environment.
    """
    path = f"{programs}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=cwd,
        env={**os.environ, **(variables or {}), "PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
