"""Files out of downloaded archives: the named members, and nothing else."""

import shutil
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from graphsys.core.errors import InputError
from graphsys.datasets.files import DAMAGE, describe


def unpack(archive: Path, prefix: str, names: Sequence[str], folder: Path) -> None:
    """Write members of an archive into a folder, each whole or not at all.

    Args:
        archive: A .zip, or a tar compressed or not.
        prefix: What comes before the names in the archive.
        names: Names of files, with folders where the data set has them.
        folder: Where they go, under their names.

    Raises:
        InputError: the archive is damaged, or a member is missing.
    """
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                for name in names:
                    with packed.open(prefix + name) as member:
                        _write(member, folder / name)
        else:
            with tarfile.open(archive) as packed_tar:
                for name in names:
                    found = packed_tar.extractfile(prefix + name)
                    if found is None:
                        raise KeyError(name)
                    _write(found, folder / name)
    except KeyError as err:
        raise InputError(
            f"{archive}: has no member {err.args[0]}; the archive is another version"
        ) from err
    except (*DAMAGE, RuntimeError) as err:  # RuntimeError: a member is encrypted
        if isinstance(err, InputError):
            raise
        raise InputError(
            f"{archive}: cannot be unpacked: {describe(err)}; remove it and fetch it again"
        ) from err


def _write(member: IO[Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as out:
        shutil.copyfileobj(member, out, 1 << 20)
    part.replace(path)
