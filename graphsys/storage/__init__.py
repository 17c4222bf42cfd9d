"""The store: graphs as partitioned Arrow files; ingest into it, mapped reads from it."""

from graphsys.storage.ingest.ingest import IngestReport as IngestReport
from graphsys.storage.ingest.ingest import ingest as ingest
from graphsys.storage.ingest.options import IngestOptions as IngestOptions
from graphsys.storage.reader import GraphReader as GraphReader
from graphsys.storage.reader import open_graph as open_graph
from graphsys.storage.source import EdgeChunk as EdgeChunk
from graphsys.storage.source import NodeChunk as NodeChunk
from graphsys.storage.source import Source as Source
from graphsys.storage.views import EdgeBucket as EdgeBucket
from graphsys.storage.views import Index as Index

Graph = GraphReader
"""Name of the plain reader here; what users open is ``graphsys.Graph``."""
