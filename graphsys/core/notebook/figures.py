"""Axes to draw on: of the notebook's cell, or of a figure that nobody keeps."""

from typing import Any

from graphsys.core.progress import cell_number


def new_axes(width: float, height: float) -> Any:
    """Return matplotlib's axes that a notebook shows, elsewhere those of a new figure.

    Args:
        width: Of the figure, in inches.
        height: The same.
    """
    size = (width, height)
    if cell_number() is not None:
        from matplotlib import pyplot as plt

        return plt.subplots(figsize=size, layout="constrained")[1]
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
