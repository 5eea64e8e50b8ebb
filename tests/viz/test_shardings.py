"""Drawings of shardings."""

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P
from fxflow.errors import ArgumentError
from fxflow.viz import sharding_picture, sharding_plan_picture, sharding_text

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
def test_shardings_are_drawn_as_text(shape, spec, lines, capsys):
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


def test_a_plan_is_drawn_array_by_array():
    pytest.importorskip("matplotlib")

    def f(layers, x):
        for w in layers:
            x = x @ w["w"] + w["b"]
        return x

    rows = NamedSharding(MESH, P("x"))
    layer = {"w": np.ones((4, 4)), "b": np.ones(4)}
    jitted = fxflow.jit(f, in_shardings=(None, rows))
    plan = fxflow.dataflow.auto_sharding(jitted, MESH)([layer], np.ones((2, 8, 4)))
    figure = sharding_plan_picture(plan)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == ["layers[0]['b']", "layers[0]['w']", "x"]
    x = figure.axes[2]
    assert "axes [0, 1]" in x.get_xlabel() and "P('x')" in x.get_xlabel()
    assert len(x.patches) == 2


def test_shapes_that_cannot_be_drawn_are_refused():
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

    with pytest.raises(fxflow.errors.ConcretizationError, match="eager"):
        fxflow.jit(f)(fxflow.numpy.ones(2))


def test_size_of_the_text():
    sharding = NamedSharding(MESH, P("x"))
    assert sharding_text((4,), sharding, min_width=9).splitlines()[1:2] == [
        "│ CPU 0,1 │ CPU 2,3 │"
    ]
    large = sharding_text((4,), sharding, scale=2.5).splitlines()
    assert len(large) == 2 + 2
    assert len(large[0]) == 3 + 2 * 18
    cut = sharding_text((4,), sharding, max_width=4).splitlines()
    assert cut == ["┌────┬────┐", "│CPU…│CPU…│", "└────┴────┘"]
    for bad in ({"scale": 0}, {"max_width": 0}):
        with pytest.raises(ArgumentError, match="positive"):
            sharding_text((4,), sharding, **bad)


def test_colors_of_the_text():
    sharding = NamedSharding(MESH, P("x"))
    grey = sharding_text(
        (4,), sharding, use_color=True, color_map=lambda v: (v, v, v, 1.0)
    )
    # The first device of the lower half is the third of four: at 2/3.
    assert "\x1b[97;48;2;0;0;0mCPU 0,1\x1b[0m" in grey
    assert "\x1b[30;48;2;170;170;170mCPU 2,3\x1b[0m" in grey
    plain = sharding_text((4, 4), NamedSharding(MESH, P("x", "y")), use_color=True)
    colors = {line for line in plain.replace("m", "m\n").split("\n") if "48;" in line}
    assert len(colors) == 4


def test_options_of_the_picture():
    sharding = NamedSharding(MESH, P("x", "y"))
    figure = sharding_picture((4, 4), sharding, color_map=lambda v: (v, 0.0, 0.0))
    faces = [p.get_facecolor()[:3] for p in figure.axes[0].patches]
    assert sorted(f[0] for f in faces) == pytest.approx([0, 1 / 3, 2 / 3, 1])
    white = sharding_picture((4, 4), sharding, use_color=False, scale=2.0)
    assert {p.get_facecolor() for p in white.axes[0].patches} == {(1, 1, 1, 1)}
    assert list(white.get_size_inches()) == list(2 * figure.get_size_inches())
