"""A claim whose writer was killed before its text lists nothing, and keeps nobody away."""

from pathlib import Path

from graphsys.core import ownership

CUT_SHORT = ".graphsys-0123456789abcdef"


def test_a_claim_cut_short_goes_with_its_folder_and_takes_nothing_else(
    tmp_path: Path,
) -> None:
    ours, users = tmp_path / "ours", tmp_path / "users"
    for folder in (ours, users):
        folder.mkdir()
        (folder / CUT_SHORT).touch()
    (users / "notes.txt").write_text("mine")
    assert ownership.remove_claimed(ours, lambda _: True)
    assert not ownership.remove_claimed(users, lambda _: True)
    assert (users / "notes.txt").read_text() == "mine"


def test_a_claim_cut_short_is_replaced_by_the_next_one(tmp_path: Path) -> None:
    (tmp_path / CUT_SHORT).touch()
    ownership.claim(tmp_path)
    (claim,) = tmp_path.iterdir()
    assert ownership.is_claim(claim.name, claim.read_bytes(), tmp_path.name)
    (tmp_path / "part.npy").touch()
    assert ownership.remove_claimed(tmp_path, lambda name: name == "part.npy")


def test_a_claim_with_another_text_is_none(tmp_path: Path) -> None:
    (tmp_path / CUT_SHORT).write_text("{}")
    assert not ownership.is_claimed(tmp_path)
