"""A store as files of other systems: CSR arrays, GraphAr archives, NetworKit's icebug."""

from graphsys.interop.graph_files.write import FORMATS as FORMATS
from graphsys.interop.graph_files.write import check_format as check_format
from graphsys.interop.graph_files.write import write_graph as write_graph
