"""Cards: what is known about a data set, as TOML beside this module.

Keys of a card: ``title``, ``about``, ``license``, ``homepage``, ``kind`` ("files" or
"generator"), ``parameters`` (of a generator, with their defaults), ``format`` and
``options`` (as for ``open_source``), ``tables`` (for the format of that name: its
description, see ``described/card.py``), ``unverified`` (true where the files could not be
tried: counts, if any, are as published, and nothing was built), ``files`` (name, url,
sha256, bytes; no url where only the user can fetch it), ``archive`` (a .zip or .tar that
holds them: name, url, sha256, bytes, and the prefix before the files' names), ``instead``
(other sets of names that do as well with ``--from``), ``main`` (the files that are
opened, where not all), ``counts`` (published ones: nodes, and edges by split).
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from typing import Any

from graphsys.core.errors import unknown_name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeFile:
    """A file that a recipe needs.

    Attributes:
        name: Its base name; with folders where the data set has a layout of its own.
        url: Where it can be fetched; empty where it cannot, or comes in an archive.
        sha256: Its checksum, where known.
        bytes: Its size, where known.
    """

    name: str
    url: str = ""
    sha256: str | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(RecipeFile):
    """An archive that holds the files.

    Attributes:
        prefix: What comes before their names in it.
    """

    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A data set as data; see the module for the keys."""

    name: str
    title: str
    about: str
    license: str
    kind: str
    homepage: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    unverified: bool = False
    files: tuple[RecipeFile, ...] = ()
    archive: Archive | None = None
    instead: tuple[tuple[str, ...], ...] = ()
    main: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    def card(self) -> dict[str, Any]:
        """Return what a user wants to know, for printing and for JSON."""
        facts: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "kind": self.kind,
            "license": self.license,
        }
        if self.kind == "files":
            facts["verified"] = not self.unverified
        if self.homepage:
            facts["homepage"] = self.homepage
        if self.parameters:
            facts["parameters"] = dict(self.parameters)
        if self.files:
            facts["files"] = [file.name for file in self.files]
            sources = [self.archive] if self.archive is not None else self.files
            facts["urls"] = [it.url for it in sources if it.url]
        if self.instead:
            facts["or_files"] = [list(names) for names in self.instead]
        facts["counts"] = dict(self.counts)
        return facts


def names() -> list[str]:
    """Return the names of all data sets, sorted."""
    folder = package_files("graphsys.datasets.recipes")
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def show(name: str) -> Recipe:
    """Return the card of a data set.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if name not in names():
        raise unknown_name("data set", name, names())
    entry = package_files("graphsys.datasets.recipes") / f"{name}.toml"
    card = tomllib.loads(entry.read_text("utf-8"))
    return Recipe(
        name=name,
        archive=Archive(**card.pop("archive")) if "archive" in card else None,
        files=tuple(RecipeFile(**file) for file in card.pop("files", [])),
        instead=tuple(tuple(files) for files in card.pop("instead", [])),
        main=tuple(card.pop("main", [])),
        **card,
    )
