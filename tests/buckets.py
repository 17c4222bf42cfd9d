"""A server for the session, and a bucket, credentials and a cache for each test.

A folder of tests has these fixtures once its ``conftest.py`` imports them.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graphsys.storage.objects import copies
from tests.object_server import ObjectServer

SECRET = "very-secret-key"


@pytest.fixture(scope="session")
def object_server() -> Iterator[ObjectServer]:
    for package in ("boto3", "moto"):
        pytest.importorskip(package, reason=f"{package} is not installed: no S3 to ask")
    from botocore import session

    shared = session.create_loader()  # the model of S3 is parsed once, not by each client
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "create_loader", lambda *_: shared)
        server = ObjectServer()
        yield server
        server.close()


@dataclass
class Bucket:
    """An empty bucket.

    Attributes:
        name: Its name.
        server: Whose it is.
        cache: The user's cache in this test.
        client: boto3's, for what a test does to objects behind our back.
    """

    name: str
    server: ObjectServer
    cache: Path
    client: Any

    def place(self, folder: str) -> str:
        return f"s3://{self.name}/{folder}"

    def names(self, folder: str) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.name, Prefix=f"{folder}/")
        keys = [entry["Key"] for entry in found.get("Contents", [])]
        return [key.removeprefix(f"{folder}/") for key in keys]

    def read(self, key: str) -> bytes:
        body: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return body

    def write(self, key: str, body: bytes) -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=body)

    def cached(self) -> list[str]:
        """Return the names of the files that were fetched."""
        files = (it for it in (self.cache / "remote").glob("*/*/**/*") if it.is_file())
        return sorted("/".join(it.parts[-2:]) for it in files)


@pytest.fixture
def bucket(
    object_server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Bucket]:
    import boto3

    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tester")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    cache = tmp_path / "cache"

    def user_cache(name: str) -> Path:
        folder = cache / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    monkeypatch.setattr(copies, "user_cache", user_cache)
    client = boto3.client("s3", endpoint_url=object_server.url, region_name="us-east-1")
    made = Bucket(f"b{uuid.uuid4().hex[:16]}", object_server, cache, client)
    client.create_bucket(Bucket=made.name)
    object_server.reset()
    yield made
    object_server.reset()


@pytest.fixture
def one_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have clients give up at once: what they wait between tries is not the test's."""
    for module in ("object_store", "s3_writer"):
        monkeypatch.setattr(f"graphsys.storage.objects.{module}.TRIES", 1)
