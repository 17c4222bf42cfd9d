"""Attacks on graphsys: ``__main__`` takes turns, ``world`` is attacked, ``judge`` judges.

A case is told by (seed, attack, number) alone and starts from the same small world: three
stores, a run of embeddings and one of a network. Commands run in processes forked from one
that has everything imported and compiled; a tenth is repeated by the installed command.
"""
