"""Graphs of several tables, described in TOML: which file holds which nodes and edges."""

from graphsys.datasets.table_spec.source import DescribedSource as DescribedSource
from graphsys.datasets.table_spec.source import describe_source as describe_source
from graphsys.datasets.table_spec.source import open_tables as open_tables
from graphsys.datasets.table_spec.spec import TablesCard as TablesCard
