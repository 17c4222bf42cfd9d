"""What MkDocs builds besides the pages of its own: see ``sources`` and ``generated``."""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parents[1]))

from documenting import generated, notebooks, pictures, sources

ROLE = re.compile(r":\w+:<code>~?")
"""What docstrings call names by; code is what they become."""


def on_config(config: Any) -> Any:
    for section in config.nav:
        if "Notebooks" in section:
            section["Notebooks"] = [{it.title: it.page} for it in notebooks.all_of_them()]
        if "Reference" in section:
            python = next(it for it in section["Reference"] if "Python" in it)
            python["Python"] = [{it.title: it.page} for it in generated.MODULES]
    return config


def on_files(files: Any, config: Any) -> Any:
    pages = sources.pages() | generated.pages() | notebooks.pages()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    source = sources.source_of(page.file.src_uri)
    text = sources.linked(markdown, source, page.file.src_uri)
    return pictures.inlined(sources.spaced(text))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    return ROLE.sub("<code>", html)
