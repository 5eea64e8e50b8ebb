"""reshard, auto_axes, get_abstract_mesh; types in `core/spmd/test_layouts`."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, typeof
from fxflow.sharding import (
    AxisType,
    auto_axes,
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
    with pytest.raises(TypeError, match="some of them cannot be left"):
        auto_axes(fnp.sort, axes="x", out_sharding=P())(x)
    with pytest.raises(AttributeError, match=r"axis_types=AxisType\.Explicit"):
        fxflow.sharding.explicit_axes


def test_abstract_mesh(mesh):
    assert get_abstract_mesh() == mesh.abstract_mesh
    with fxflow.set_mesh(None):
        assert get_abstract_mesh().axis_names == ()
