"""What workers are told to run: names and values, which every machine resolves itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphsys.engine.program import VertexProgram


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramWork:
    """A vertex program on a store, by paths and names.

    Attributes:
        graph: Folder of the store, which every machine sees.
        algorithm: Name of a listed algorithm, or ``file.py:Class``.
        parameters: Of the program, by name.
        max_supersteps: End after so many.
        threads: Of a worker; all cores of its machine by default.
        checkpoint: Folder of checkpoints, which every machine sees, or None.
        checkpoint_every: Supersteps between two.
        resume: Whether to go on from a checkpoint.
        is_profiled: Whether the worker records itself.
    """

    graph: str
    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    max_supersteps: int | None = None
    threads: int | None = None
    checkpoint: str | None = None
    checkpoint_every: int = 10
    resume: bool = False
    is_profiled: bool = False

    def program(self) -> VertexProgram:
        """Return the program."""
        from graphsys.engine.algorithms import get
        from graphsys.engine.load_program import load_program

        if ".py" in self.algorithm:
            return load_program(self.algorithm)(**self.parameters)
        return get(self.algorithm).program_class()(**self.parameters)
