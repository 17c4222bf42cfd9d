"""graphsys: graph processing and graph learning on graphs larger than memory.

``import graphsys as gs`` is light: what is heavy loads when it is first used.

Examples:
    ``gs.ingest("edges.txt", "graph")`` makes a store, ``gs.open("graph")`` opens one,
    ``gs.embedding.train(graph, config, "run")`` trains embeddings on it,
    ``gs.algorithms.pagerank(graph)`` and ``gs.run(program, graph)`` compute on it, and
    ``with gs.profile("report.html"):`` explains where the time went.
"""

from typing import TYPE_CHECKING

from graphsys.core.lazy_exports import lazy_exports

__version__ = "0.6.0.dev0"

if TYPE_CHECKING:
    from graphsys import analysis as analysis
    from graphsys import datasets as datasets
    from graphsys import embedding as embedding
    from graphsys import engine as engine
    from graphsys import gnn as gnn
    from graphsys import mining as mining
    from graphsys import partitioners as partitioners
    from graphsys import sampling as sampling
    from graphsys import storage as storage
    from graphsys.analysis.profile import profile as profile
    from graphsys.core.errors import NotConvergedWarning as NotConvergedWarning
    from graphsys.core.types import EdgeType as EdgeType
    from graphsys.engine import algorithms as algorithms
    from graphsys.engine.program import NO_NODE as NO_NODE
    from graphsys.engine.program import NodeId as NodeId
    from graphsys.engine.program import NumberedStates as NumberedStates
    from graphsys.engine.program import Phase as Phase
    from graphsys.engine.program import VertexProgram as VertexProgram
    from graphsys.engine.program import aggregator as aggregator
    from graphsys.engine.program import any_ as any
    from graphsys.engine.program import argmax as argmax
    from graphsys.engine.program import argmin as argmin
    from graphsys.engine.program import combiner as combiner
    from graphsys.engine.program import component as component
    from graphsys.engine.program import edge_state as edge_state
    from graphsys.engine.program import maximum as maximum
    from graphsys.engine.program import mean as mean
    from graphsys.engine.program import minimum as minimum
    from graphsys.engine.program import mode as mode
    from graphsys.engine.program import own_id as own_id
    from graphsys.engine.program import random as random
    from graphsys.engine.program import state as state
    from graphsys.engine.program import sum_ as sum
    from graphsys.engine.result import Result as Result
    from graphsys.engine.run import run as run
    from graphsys.engine.topology import Topology as Topology
    from graphsys.facade.graph import Graph as Graph
    from graphsys.facade.graph import open_graph as open
    from graphsys.facade.ingest import ingest as ingest
    from graphsys.facade.ingest import split as split
    from graphsys.tuning.trials import tune as tune

__all__ = [
    "NO_NODE",
    "EdgeType",
    "Graph",
    "NodeId",
    "NotConvergedWarning",
    "NumberedStates",
    "Phase",
    "Result",
    "Topology",
    "VertexProgram",
    "__version__",
    "aggregator",
    "algorithms",
    "analysis",
    "any",
    "argmax",
    "argmin",
    "combiner",
    "component",
    "datasets",
    "edge_state",
    "embedding",
    "engine",
    "gnn",
    "ingest",
    "maximum",
    "mean",
    "minimum",
    "mining",
    "mode",
    "open",
    "own_id",
    "partitioners",
    "profile",
    "random",
    "run",
    "sampling",
    "split",
    "state",
    "storage",
    "sum",
    "tune",
]

__getattr__ = lazy_exports(__name__)
