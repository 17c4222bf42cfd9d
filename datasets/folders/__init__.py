"""Graphs that are folders of several files: OGB, GraphBolt, LDBC SNB."""
