"""Figures, and what is said where they cannot be."""

import sys

import pytest

from fxflow.viz import figures
from fxflow.viz.figures import new_figure


def test_figures_have_the_axes_that_are_asked_for():
    pytest.importorskip("matplotlib", reason="pip install 'fxflow[viz]'")
    figure, axes = new_figure(4, 3, 2, 2)
    assert figure._repr_png_().startswith(b"\x89PNG")  # what notebooks show
    assert len(axes) == 4 and figure.get_size_inches().tolist() == [4, 3]


def test_without_matplotlib(monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    figures._figure_class.cache_clear()
    with pytest.raises(ImportError, match=r"fxflow\[viz\]"):
        new_figure(4, 3)
