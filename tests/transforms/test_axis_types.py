"""reshard, auto_axes, explicit_axes, get_abstract_mesh.

Types are in `core/spmd/test_layouts`.
"""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, typeof
from fxflow.sharding import (
    AxisType,
    auto_axes,
    explicit_axes,
    get_abstract_mesh,
    reshard,
)


@pytest.fixture(autouse=True)
def mesh():
    explicit = fxflow.make_mesh((4, 2), ("x", "y"), axis_types=AxisType.Explicit)
    with fxflow.set_mesh(explicit):
        yield explicit


def test_reshard(mesh):
    x = {"a": fnp.arange(8.0), "b": np.ones((4, 2), "f4")}
    out = reshard(x, {"a": P(("x", "y")), "b": NamedSharding(mesh, P("x", "y"))})
    assert str(typeof(out["a"])) == "f32[8@(x,y)]"
    assert str(typeof(out["b"])) == "f32[4@x,2@y]"
    assert out["a"].tolist() == x["a"].tolist()
    inside = fxflow.jit(lambda x: reshard(x, P("y")))(out["a"])
    assert str(typeof(inside)) == "f32[8@y]" and inside.sharding.spec == P("y")
    with pytest.raises(ValueError, match="cannot be divided into 4"):
        reshard(fnp.ones(6), P("x"))
    with pytest.raises(ValueError, match="no axis 'z'"):
        reshard(fnp.ones(8), P("z"))
    with pytest.raises(TypeError, match="reshard: got"):
        reshard("text", P())


def test_auto_axes():
    seen = []

    @auto_axes(out_sharding=P("x", None))
    def sorted_(x):
        seen.append((str(typeof(x)), get_abstract_mesh().explicit_axes))
        return fnp.sort(x, 0)

    values = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")
    x = reshard(values, P("x"))
    for call in (sorted_, fxflow.jit(sorted_)):
        out = call(x)
        assert str(typeof(out)) == "f32[8@x,4]"
        np.testing.assert_array_equal(out, np.sort(values, 0))
    assert seen[0] == ("f32[8,4]", ())
    weights = np.arange(32, dtype="f4").reshape(8, 4)
    slope = fxflow.grad(lambda x: (sorted_(x) * weights).sum())(x)
    assert str(typeof(slope)) == "f32[8@x,4]"
    ranks = np.argsort(np.argsort(values, 0), 0)
    np.testing.assert_allclose(slope, np.take_along_axis(weights, ranks, 0))
    with pytest.raises(TypeError, match="out_sharding must say"):
        auto_axes(fnp.sort)
    with pytest.raises(TypeError, match="axes has 'z', which is not an axis"):
        auto_axes(fnp.sort, axes="z", out_sharding=P())(x)


def test_auto_axes_of_some_axes():
    seen = []

    def total(x):
        seen.append((str(typeof(x)), get_abstract_mesh().explicit_axes))
        return x.sum(0)

    values = np.arange(32, dtype="f4").reshape(8, 4)
    x = reshard(values, P("x", "y"))
    for axes, inside in (("x", "f32[8,4@y]"), (["y"], "f32[8@x,4]")):
        part = auto_axes(total, axes=axes, out_sharding=P("y"))
        for call in (part, fxflow.jit(part)):
            out = call(x)
            assert str(typeof(out)) == "f32[4@y]" and out.sharding.spec == P("y")
            np.testing.assert_array_equal(out, values.sum(0))
        assert {s[0] for s in seen} == {inside} and axes[0] not in seen[0][1]
        seen.clear()
    square = auto_axes(lambda x: x * x, axes="x", out_sharding=P(None, "y"))
    slope = fxflow.grad(lambda x: square(x).sum())(x)
    assert str(typeof(slope)) == "f32[8@x,4@y]"
    np.testing.assert_array_equal(slope, 2 * values)
    column = auto_axes(lambda x: x * x, axes="x", out_sharding=P())
    assert str(typeof(fxflow.vmap(column, in_axes=1)(x))) == "f32[4@y,8]"


def test_explicit_axes():
    seen = []

    @explicit_axes(axes="x", in_sharding=P("x"))
    def double(x):
        seen.append((str(typeof(x)), get_abstract_mesh().explicit_axes))
        return fnp.sin(x) * 2

    values = np.arange(32, dtype="f4").reshape(8, 4)
    with fxflow.set_mesh(fxflow.make_mesh((4, 2), ("x", "y"))) as auto:
        x = fxflow.device_put(values, NamedSharding(auto, P(None, "y")))
        for call in (double, fxflow.jit(double)):
            out = call(x)
            assert str(typeof(out)) == "f32[8,4]" and out.sharding.spec[0] == "x"
            np.testing.assert_allclose(out, np.sin(values) * 2, rtol=1e-5)
        slope = fxflow.grad(lambda x: double(x).sum())(x)
        assert str(typeof(slope)) == "f32[8,4]"
        np.testing.assert_allclose(slope, np.cos(values) * 2, rtol=1e-5)
    assert set(seen) == {("f32[8@x,4]", ("x",))}
    # Within auto_axes types say it again; results say what they did outside.
    nested = auto_axes(double, out_sharding=P("y"))
    assert str(typeof(nested(values))) == "f32[8@y,4]"
    with pytest.raises(TypeError, match="in_sharding must say"):
        explicit_axes(fnp.sort)
    with fxflow.set_mesh(None), pytest.raises(TypeError, match="no current mesh"):
        double(values)


def test_abstract_mesh(mesh):
    assert get_abstract_mesh() == mesh.abstract_mesh
    with fxflow.set_mesh(None):
        assert get_abstract_mesh().axis_names == ()
