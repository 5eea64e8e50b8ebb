"""Drawings of shardings."""

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P
from fxflow.core.errors import ArgumentError
from fxflow.viz import sharding_picture, sharding_text

MESH = fxflow.make_mesh((2, 2), ("x", "y"))


@pytest.mark.parametrize(
    ("shape", "spec", "lines"),
    [
        ((), P(), ["┌───────────┐", "│CPU 0,1,2,3│", "└───────────┘"]),
        ((4,), P("y"), ["┌───────┬───────┐", "│CPU 0,2│CPU 1,3│", "└───────┴───────┘"]),
        (
            (4, 4),
            P("y", "x"),
            [
                "┌─────┬─────┐",
                "│CPU 0│CPU 2│",
                "├─────┼─────┤",
                "│CPU 1│CPU 3│",
                "└─────┴─────┘",
            ],
        ),
    ],
)
def test_text(shape, spec, lines, capsys):
    sharding = NamedSharding(MESH, spec)
    assert sharding_text(shape, sharding).splitlines() == lines
    fxflow.debug.visualize_sharding(shape, sharding)
    fxflow.debug.visualize_array_sharding(fxflow.device_put(np.zeros(shape), sharding))
    assert capsys.readouterr().out.splitlines() == lines * 2


def test_picture():
    pytest.importorskip("matplotlib")
    figure = sharding_picture((4, 4), NamedSharding(MESH, P("x", "y")))
    (axes,) = figure.axes
    assert sorted(t.get_text() for t in axes.texts) == [f"CPU {i}" for i in range(4)]
    assert len(axes.patches) == 4
    assert {p.get_width() for p in axes.patches} == {2}


def test_errors():
    with pytest.raises(ArgumentError, match="at most 2 axes"):
        sharding_text((2, 2, 2), NamedSharding(MESH, P("x")))
    with pytest.raises(ValueError, match="cannot be divided"):
        sharding_text((3,), NamedSharding(MESH, P("x")))
    with pytest.raises(ArgumentError, match="not an array"):
        fxflow.debug.visualize_array_sharding("x")


def test_inside_a_program(capsys):
    def f(x):
        fxflow.debug.visualize_array_sharding(x)
        return x

    with pytest.raises(fxflow.core.errors.ConcretizationError, match="eager"):
        fxflow.jit(f)(fxflow.numpy.ones(2))
