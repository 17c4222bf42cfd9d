"""Files called train, valid and test are splits, whatever their format."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import DEFAULT_SPLIT
from graphsys.datasets.files import InputFile

SPLITS: Final = {
    "train": "train",
    "valid": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
"""The split that a file's name stands for; ``train2id`` and its siblings do as well."""


def split_of(stem: str) -> str | None:
    """Return the split that a file's name stands for, or None.

    Examples:
        >>> split_of("valid"), split_of("test2id"), split_of("edges")
        ('valid', 'test', None)
    """
    return SPLITS.get(stem.removesuffix("2id"))


def splits_of(files: Sequence[InputFile]) -> list[str]:
    """Return the split of each file; of several, all or none are called like splits.

    Raises:
        InputError: only some are, or two stand for the same split.
    """
    found = [split_of(file.stem) for file in files]
    if len(files) < 2 or not any(found):
        return [DEFAULT_SPLIT] * len(files)
    others = [file for file, split in zip(files, found, strict=True) if split is None]
    if others:
        named = [file.name for file, split in zip(files, found, strict=True) if split]
        raise InputError(
            f"{cut_list(named)}: named like splits, but not {others[0].name}; call every "
            "file train, valid or test to have splits, or none to have one graph"
        )
    splits = [split for split in found if split is not None]
    for place, split in enumerate(splits):
        if (first := splits.index(split)) < place:
            raise InputError(
                f"{files[place].name}: a second {split} file beside "
                f"{files[first].name}; name the one to use"
            )
    return splits


def by_split(files: Sequence[InputFile]) -> list[tuple[InputFile, str]]:
    """Return files with their splits, train first; the order is kept where there are none.

    Raises:
        InputError: as :func:`splits_of` does.
    """
    order = list(SPLITS.values())
    pairs = list(zip(files, splits_of(files), strict=True))
    return sorted(pairs, key=lambda pair: order.index(pair[1]))


def split_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are called like splits, sorted."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_file() and path.name.split(".")[0].lower() in SPLITS
    )
