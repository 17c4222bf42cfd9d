"""Graphs of several tables, described in TOML: which file holds which nodes and edges."""

from graphsys.datasets.described.card import TablesCard as TablesCard
from graphsys.datasets.described.source import DescribedSource as DescribedSource
from graphsys.datasets.described.source import describe_source as describe_source
from graphsys.datasets.described.source import open_tables as open_tables
