"""Reports as files: the page and the JSON beside it, written whole or not at all."""

import contextlib
import gzip
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphsys.analysis.report import SCHEMA_VERSION
from graphsys.core.errors import ConfigError, GraphsysError, InputError, OutputExistsError
from graphsys.core.plain_files import read_json
from graphsys.core.remote.locations import is_remote
from graphsys.storage.output_file import new_files, require_writable
from graphsys.storage.transaction import disk_errors

_KEYS = (
    "schema_version",
    "command",
    "status",
    "machine",
    "verdict",
    "metrics",
    "supersteps",
    "operators",
)


def json_path(page: Path) -> Path:
    """Return where the JSON of a page goes."""
    return page.with_suffix(".json")


def check_target(page: Path, *, overwrite: bool) -> None:
    """Refuse what could not be written, before any work is done.

    Raises:
        ConfigError: the name does not end in ``.html``, or is a folder.
        OutputExistsError: the page or its JSON exists.
        StorageFullError: the folder cannot be written to.
    """
    if page.suffix != ".html":
        raise ConfigError(
            f"cannot write {page.name!r}: expected a name that ends in .html (the JSON is "
            "written beside it)"
        )
    require_writable(page, json_path(page), overwrite=overwrite)
    if is_remote(page):  # there are no folders to make
        return
    if page.parent.exists() and not page.parent.is_dir():
        raise ConfigError(f"{page.parent} is a file; name a folder for {page.name}")
    try:
        with disk_errors(page):
            page.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=page.parent).close()
    except FileNotFoundError as err:  # of /proc and the like
        raise ConfigError(
            f"cannot make files in {page.parent}; name another folder for {page.name}"
        ) from err


def check_outputs(words: list[str], out: Path, chrome_trace: Path | None) -> None:
    """Refuse a page, or its JSON, that is an output of the command or lies in one.

    Raises:
        ConfigError: One is.
    """
    own = [out, out.with_suffix(".json"), *([chrome_trace] if chrome_trace else [])]
    for file in own:
        place = os.path.abspath(file)
        for word in words:
            for given in {word, word.partition("=")[2], word.removeprefix("-o")} - {""}:
                if os.path.abspath(given) == place:
                    raise ConfigError(
                        f"{file} is where the profile goes, and the command names it too; "
                        "choose another name for the page"
                    )
        for option, given in itertools.pairwise([*words, ""]):
            folder = os.path.join(os.path.abspath(given), "")
            if option in ("-o", "--out") and place.startswith(folder):
                raise ConfigError(
                    f"{file} would lie in {given}, which the command writes; choose a page "
                    "outside of it"
                )


def require_untouched(page: Path, before: Sequence[tuple[int, int] | None]) -> None:
    """Refuse to write over what was written since the profile began.

    Args:
        page: The page.
        before: What :func:`identities_of` said then.

    Raises:
        OutputExistsError: The page or its JSON was; it stays.
    """
    for file, then, now in zip(
        (page, json_path(page)), before, identities_of(page), strict=True
    ):
        if then != now and now is not None:
            raise OutputExistsError(
                f"{file} was written by what was profiled and stays; there is no report: "
                "choose another name for the page and run it again"
            )


def identities_of(page: Path) -> list[tuple[int, int] | None]:
    """Return what tells whether the page and its JSON are written by somebody else."""
    return [None if is_remote(it) else _identity(it) for it in (page, json_path(page))]


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def write_report(report: Mapping[str, Any], page: Path) -> None:
    """Write the page and its JSON; old ones stay until both are complete.

    Raises:
        StorageFullError: they cannot be written.
    """
    from graphsys.analysis.page.page import page_of

    _write_both(page, page_of(report), report)


def write_comparison(before: Path, after: Path, page: Path) -> None:
    """Write the page of two reports beside each other, and what differs as JSON.

    Raises:
        InputError: one of them is no report of ours.
        StorageFullError: they cannot be written.
    """
    from graphsys.analysis.compare import compare_reports
    from graphsys.analysis.page.comparison import comparison_page

    reports = read_report(before), read_report(after)
    with unaltered(before, after):
        text = comparison_page(*reports, (str(before), str(after)))
        found = compare_reports(*reports)
    _write_both(page, text, found)


def _write_both(page: Path, text: str, facts: Mapping[str, Any]) -> None:
    texts = {json_path(page): json.dumps(facts, indent=1, allow_nan=False)}
    texts[page] = text
    with new_files(*texts) as new:
        for path, text in zip(new, texts.values(), strict=True):
            path.write_text(text + "\n", encoding="utf-8")


def write_trace(spans: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write a Chrome trace, gzipped where the name ends in ``.gz``.

    Raises:
        StorageFullError: it cannot be written.
    """
    text = json.dumps({"displayTimeUnit": "ms", "traceEvents": spans})
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with new_files(path) as [new]:
        new.write_bytes(content)


def read_report(path: Path) -> dict[str, Any]:
    """Read a report's JSON.

    Raises:
        InputError: it is no report of ours, or one of another schema version.
    """
    try:
        found = read_json(path)
    except ValueError as err:
        raise InputError(f"{path}: not JSON ({err}); give the .json of a report") from err
    missing = [key for key in _KEYS if not isinstance(found, dict) or key not in found]
    if missing:
        raise InputError(
            f"{path}: no report of graphsys profile, it lacks {missing[0]!r}; give the "
            ".json of a report"
        )
    if found["schema_version"] != SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {found['schema_version']!r}, this graphsys reads "
            f"{SCHEMA_VERSION}; profile it again"
        )
    with unaltered(path):
        for metric in found["metrics"]:
            value = metric["value"]
            if not isinstance(metric["name"], str) or isinstance(value, bool | str | list):
                raise TypeError(f"metric {metric['name']!r} has the value {value!r}")
    return dict(found)


@contextlib.contextmanager
def unaltered(*paths: Path) -> Iterator[None]:
    """Say that reports were altered, where something in them is not as it was written.

    Raises:
        InputError: something is not.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as err:
        if isinstance(err, GraphsysError):
            raise
        names = " and ".join(map(str, paths))
        raise InputError(
            f"{names}: not as graphsys profile writes reports "
            f"({type(err).__name__}: {err}); profile it again"
        ) from err


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of reports, as it is published in this package."""
    text = files("graphsys.analysis").joinpath("report_schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
