"""An environment of the installed wheel and its dependencies, without the tree.

Nothing is downloaded: packages of the environment that runs the tests are linked, those
alone that the wheel asks for.
"""

import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.conftest import ROOT

BUILT_OF = (
    "graphsys",
    "datasets",
    "partitioners",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
_PROGRAM = """#!{python} -P
import sys
from {module} import {function}
sys.exit({function}())
"""


def build_wheel(work: Path) -> Path:
    """Build a wheel of the tree, in a copy of it; return its path."""
    tree = work / "tree"
    tree.mkdir()
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in BUILT_OF:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "--quiet", "--wheel-dir", work, tree],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = work.glob("graphsys-*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path, extras: Iterable[str] = ()) -> Path:
    """Make an environment with a wheel and what it asks for.

    Args:
        folder: Where; must not exist.
        wheel: The wheel.
        extras: Its extras that are installed too.

    Returns:
        The folder of its programs.
    """
    venv.create(folder, symlinks=True, with_pip=False)
    [site] = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    [info] = site.glob("graphsys-*.dist-info")
    _copy_compiled(site)
    own = metadata.Distribution.at(info)
    others = [metadata.distribution(name) for name in sorted(_required(own, extras))]
    for distribution in others:
        _link(distribution, site)
    for distribution in (own, *others):
        for entry in distribution.entry_points.select(group="console_scripts"):
            module, _, function = entry.value.partition(":")
            program = folder / "bin" / entry.name
            text = {"module": module, "function": function.split("[")[0].strip()}
            program.write_text(_PROGRAM.format(python=folder / "bin" / "python", **text))
            program.chmod(0o755)
    return folder / "bin"


def _copy_compiled(site: Path) -> None:
    """Copy what tests have compiled: numba takes it where kernels are the same."""
    for pattern in ("*.nbc", "*.nbi"):  # an index last, as it names the others
        for path in (ROOT / "graphsys" / "kernels").rglob(f"__pycache__/{pattern}"):
            to = site / path.relative_to(ROOT)
            to.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, to)


def _required(own: metadata.Distribution, extras: Iterable[str]) -> set[str]:
    """Return the names of all distributions that one needs, without its own."""
    found: set[str] = set()
    left = [(own, ("", *extras))]
    while left:
        distribution, wanted = left.pop()
        for requirement in map(Requirement, distribution.requires or ()):
            marker, name = requirement.marker, canonicalize_name(requirement.name)
            if marker and not any(marker.evaluate({"extra": extra}) for extra in wanted):
                continue
            if name not in found:
                found.add(name)
                left.append((metadata.distribution(name), ("", *requirement.extras)))
    return found


def _link(distribution: metadata.Distribution, site: Path) -> None:
    """Link the top-level files and folders of a distribution into another site."""
    files = distribution.files or ()
    for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(distribution.locate_file(top))))
