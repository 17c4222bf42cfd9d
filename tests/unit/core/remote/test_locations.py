from pathlib import Path

import pytest

from graphsys.core.errors import ConfigError
from graphsys.core.remote.locations import Location, is_remote, show_as, shown


def test_a_path_that_lost_a_slash_is_the_same_location() -> None:
    whole = Location.parse("s3://shop/graphs/may")
    assert Location.parse(Path("s3://shop/graphs/may")) == whole
    assert str(whole) == "s3://shop/graphs/may"
    assert [str(it) for it in whole.parents()] == ["s3://shop/graphs"]


def test_folders_are_not_remote() -> None:
    assert not is_remote("shop/graph")
    assert not is_remote("/s3:/shop")
    assert is_remote(Path("gs://shop/graph"))


@pytest.mark.parametrize(
    "text", ["s3://", "s3://shop", "s3://shop/", "s3://shop/a/../b", "s3://shop/a//b"]
)
def test_what_names_no_folder_of_a_bucket_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="names no folder of a bucket; expected s3://BUC"):
        Location.parse(text)


@pytest.mark.parametrize(
    "text", ["s3://key:hush@shop/a", "s3://shop/a?secret=hush", "s3://key:hush/a"]
)
def test_credentials_in_a_location_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError, match="belong into the environment") as caught:
        Location.parse(text)
    assert "hush" not in str(caught.value)


def test_messages_name_the_location_instead_of_its_copy() -> None:
    show_as("/cache/remote/12ab/may", Location.parse("s3://shop/may"))
    assert shown("/cache/remote/12ab/may has no x") == "s3://shop/may has no x"
    assert shown(str(Path("s3://shop/may"))) == "s3://shop/may"
