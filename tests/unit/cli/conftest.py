"""An S3 server and buckets for the tests of this folder."""

from tests.buckets import bucket as bucket
from tests.buckets import object_server as object_server
