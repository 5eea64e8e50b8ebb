"""Figures of `matplotlib`, which is imported when the first one is made."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that colour-blind readers tell apart (Okabe & Ito 2008), the darker first.
COLORS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#595959",
)  # fmt: skip


@functools.cache
def _figure_class() -> type[Figure]:
    """Returns a class of figures that notebooks show."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install 'fxflow[viz]'"
        ) from error

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            data = io.BytesIO()
            self.savefig(data, format="png", dpi=100)
            return data.getvalue()

    return ShownFigure


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Sequence[Any]]:
    """Returns a figure and its axes, which are made without `pyplot`.

    `pyplot` picks a backend and keeps every figure.

    Args:
      width: in inches.
      height: in inches.
      rows: of axes.
      columns: of axes.
      **options: of `Figure.subplots`.

    Returns:
      The figure, and a list of its axes.

    Raises:
      ImportError: matplotlib is not installed (extra `viz`).
    """
    figure = _figure_class()(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat)
