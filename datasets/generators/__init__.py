"""Graphs made from numbers alone: seeded, streaming, the same on every machine."""

from graphsys.datasets.generators.activity import activity as activity
from graphsys.datasets.generators.communities import communities as communities
from graphsys.datasets.generators.demo import demo as demo
from graphsys.datasets.generators.formulas import ksat as ksat
from graphsys.datasets.generators.kronecker import rmat as rmat
from graphsys.datasets.generators.lattice import grid as grid
from graphsys.datasets.generators.lattice import road as road
from graphsys.datasets.generators.pins import pins as pins
from graphsys.datasets.generators.rules import rules as rules
from graphsys.datasets.generators.simple import planted as planted
from graphsys.datasets.generators.simple import uniform as uniform
