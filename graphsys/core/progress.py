"""How long work tells how far it is; the command line draws it, a library is silent."""


class Progress:
    """Receives stages and steps; this base class ignores them."""

    def stage(self, name: str, total: int | None = None, unit: str = "") -> None:
        """Begin a stage; the one before has ended.

        Args:
            name: What is done ("read", "sort", "epoch 3").
            total: Steps until the end, where known.
            unit: What one step is ("bytes", "edges", "buckets").
        """

    def advance(self, steps: int, **figures: float) -> None:
        """Say that ``steps`` more are done, with figures to show (``loss=0.3``)."""

    def close(self) -> None:
        """End the last stage."""


SILENT = Progress()
