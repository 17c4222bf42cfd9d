"""Graphs made from numbers alone: seeded, streaming, the same on every machine."""

from graphsys.datasets.generators.demo import demo as demo
from graphsys.datasets.generators.kronecker import rmat as rmat
