"""Executed notebooks as pages; ``python -m documenting.notebooks`` runs them anew."""

import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "notebooks"
SECONDS = 300


@dataclass(frozen=True)
class Notebook:
    """A notebook of the folder."""

    path: Path

    @cached_property
    def content(self) -> Any:
        """What it holds, as nbformat has it."""
        import nbformat

        return nbformat.read(self.path, as_version=4)

    @property
    def title(self) -> str:
        """Its first heading."""
        return str(self.content.cells[0].source.splitlines()[0].removeprefix("# "))

    @property
    def page(self) -> str:
        """Its page in the site."""
        return f"notebooks/{self.path.stem}.md"


def all_of_them() -> list[Notebook]:
    """Return the notebooks, by their names."""
    return [Notebook(path) for path in sorted(FOLDER.glob("*.ipynb"))]


def pages() -> dict[str, str | bytes]:
    """Return every notebook as Markdown, and the pictures that it shows."""
    from nbconvert import MarkdownExporter

    found: dict[str, str | bytes] = {}
    for notebook in all_of_them():
        files = f"{notebook.path.stem}_files"
        text, resources = MarkdownExporter().from_notebook_node(
            notebook.content,
            {"output_files_dir": files, "unique_key": notebook.path.stem},
        )
        found[notebook.page] = text
        for name, content in resources["outputs"].items():
            found[f"notebooks/{name}"] = content
    return found


def executed(notebook: Notebook) -> Any:
    """Return what a notebook holds after all its cells ran in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    fresh = nbformat.from_dict(notebook.content)
    with tempfile.TemporaryDirectory(prefix="graphsys-notebook-") as folder:
        client = NotebookClient(
            fresh,
            timeout=SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    for cell in fresh.cells:
        cell.metadata.pop("execution", None)  # times of day
    return fresh


def main(names: list[str]) -> None:
    """Run notebooks and keep what they show."""
    import nbformat

    for notebook in all_of_them():
        if not names or notebook.path.stem in names:
            nbformat.write(executed(notebook), notebook.path)
            print(f"ran {notebook.path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
