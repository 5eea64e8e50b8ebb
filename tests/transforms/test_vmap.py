"""vmap: axes, structure, composition, named axes."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, vmap
from fxflow.core.errors import ArgumentError, ShapeError


@settings(max_examples=20, deadline=None)
@given(
    st.integers(1, 4),
    st.tuples(st.integers(0, 3), st.integers(1, 3)),
    st.sampled_from([0, 1, 2, -1, None]),
    st.sampled_from([0, 1, -1]),
)
def test_is_a_loop(size, shape, in_axis, out_axis):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype("f4")
    if in_axis is not None:
        ndim = len(shape) + 1
        stacked = np.moveaxis(
            rng.normal(size=(size, *shape)).astype("f4"), 0, in_axis % ndim
        )
    else:
        stacked = x
    y = rng.normal(size=(size, shape[1])).astype("f4")

    def one(a, b):
        return fnp.sin(a) * b + a.sum()

    got = vmap(one, in_axes=(in_axis, 0), out_axes=out_axis)(stacked, y)
    rows = [
        np.asarray(one(x if in_axis is None else np.take(stacked, i, in_axis), y[i]))
        for i in range(size)
    ]
    np.testing.assert_allclose(got, np.stack(rows, out_axis), rtol=1e-5, atol=1e-6)


def test_pytrees_of_axes():
    def fun(p, x):
        return {"y": p["w"] @ x + p["b"], "w": p["w"]}

    p = {"w": fnp.ones((2, 3)), "b": fnp.arange(4.0)}
    x = fnp.ones((3, 4))
    out = vmap(fun, in_axes=({"w": None, "b": 0}, 1), out_axes={"y": 1, "w": None})(
        p, x
    )
    assert out["y"].shape == (2, 4) and out["w"].shape == (2, 3)
    np.testing.assert_allclose(out["y"], 3 + np.arange(4.0) + np.zeros((2, 1)))


def test_nested_jitted_and_unmapped():
    x = fnp.arange(6.0).reshape(2, 3)
    outer = vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))
    np.testing.assert_allclose(
        jit(outer)(x[0], x[1]), np.outer(np.asarray(x[1]), np.asarray(x[0]))
    )
    assert vmap(lambda a: 1.0, axis_size=3)(fnp.ones(3)).shape == (3,)
    assert vmap(lambda: fnp.ones(2), axis_size=3)().shape == (3, 2)


def test_keyword_arguments_are_mapped_over_axis_0():
    got = vmap(lambda x, *, y: x * y)(fnp.ones(3), y=fnp.arange(3.0))
    assert got.tolist() == [0.0, 1.0, 2.0]


def test_unmapped_traced_scalars():
    # A 0-d value from an outer transformation beside a mapped one.
    g = grad(lambda w: vmap(lambda x: x * w)(fnp.arange(3.0)).sum())
    assert float(g(2.0)) == 3.0
    assert float(jit(g)(2.0)) == 3.0


def test_named_axes():
    x = fnp.arange(6.0).reshape(3, 2)

    def normalized(v):
        return v - lax.pmean(v, "i")

    got = vmap(normalized, axis_name="i")(x)
    np.testing.assert_allclose(got, x - np.asarray(x).mean(0))
    np.testing.assert_allclose(jit(vmap(jit(normalized), axis_name="i"))(x), got)
    two = vmap(vmap(lambda v: lax.psum(v, ("i", "j")), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(two(x), np.full((3, 2), 15.0))
    only = vmap(vmap(lambda v: lax.psum(v, "i"), axis_name="j"), axis_name="i")
    np.testing.assert_allclose(only(x), np.broadcast_to(np.asarray(x).sum(0), (3, 2)))


def test_gradient_through_collectives():
    x = fnp.arange(3.0)
    per = vmap(grad(lambda v: lax.psum(v**2, "i")), axis_name="i")(x)
    np.testing.assert_allclose(per, [0.0, 6.0, 12.0])
    whole = grad(lambda v: vmap(lambda t: lax.psum(t**2, "i"), axis_name="i")(v)[0])(x)
    np.testing.assert_allclose(whole, [0.0, 2.0, 4.0])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: vmap(lambda x, y: x)(fnp.ones(3), fnp.ones(4)),
            TypeError,
            r"axis 0 of argument x \(f32\[3\]\) is 3.*argument y \(f32\[4\]\) is 4",
        ),
        (lambda: vmap(lambda x: x, in_axes=None)(1.0), TypeError, "nothing to map"),
        (lambda: vmap(lambda x: x)(1.0), ValueError, "out of range for 0 axes"),
        (lambda: vmap(lambda x: x, in_axes=2)(fnp.ones(3)), IndexError, "axis 2"),
        (
            lambda: vmap(lambda x: x, in_axes=(0, 0))(fnp.ones(3)),
            TypeError,
            "2 entries",
        ),
        (lambda: vmap(lambda x: x, in_axes="a"), TypeError, "in_axes is an int"),
        (
            lambda: vmap(lambda x: x, in_axes=({"a": 0},))({"b": fnp.ones(3)}),
            TypeError,
            "does not fit the structure",
        ),
        (
            lambda: vmap(lambda x: x, out_axes=None)(fnp.ones(3)),
            TypeError,
            "out_axes is None",
        ),
        (lambda: vmap(lambda x: x, out_axes=3)(fnp.ones(3)), ValueError, "out_axes"),
        (lambda: vmap(lambda x: x)([1, "a"]), TypeError, r"x\[1\].*not an array"),
        (lambda: vmap(lambda x: lax.psum(x, "k"))(fnp.ones(3)), NameError, "'k'"),
        (lambda: vmap(3), TypeError, "takes a function"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_spmd_axis_name_divides_the_mapped_axis():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))
    a = np.arange(64.0, dtype=np.float32).reshape(8, 2, 4)

    def constrained(v):
        rows = fxflow.NamedSharding(mesh, fxflow.P(None, "y"))
        return fxflow.lax.with_sharding_constraint(fnp.sin(v), rows)

    run = fxflow.jit(fxflow.vmap(constrained, spmd_axis_name="x"))
    out = run(a)
    np.testing.assert_allclose(out, np.sin(a), rtol=1e-6)
    assert out.sharding.spec == fxflow.P("x", None, "y")
    # Through calls, loops and a second mapped axis.
    nested = fxflow.vmap(
        fxflow.vmap(lambda v: fxflow.checkpoint(fxflow.jit(constrained))(v)),
        spmd_axis_name=("x",),
    )
    out = fxflow.jit(nested)(a.reshape(8, 2, 2, 2))
    assert out.sharding.spec[0] == "x"
    assert out.sharding.spec[3] == "y"


def test_spmd_axis_name_and_shard_map():
    mesh = fxflow.make_mesh((4, 2), ("x", "y"))

    @fxflow.shard_map(
        mesh=mesh, in_specs=(fxflow.P("y"), fxflow.P()), out_specs=fxflow.P()
    )
    def total(v, w):
        slope = fxflow.grad(lambda w: fnp.sum(w * v))(w)
        return fxflow.lax.psum(fnp.sum(v * w), "y") + slope

    a = np.arange(32.0, dtype=np.float32).reshape(8, 4)
    for spmd, local in [("x", "f32[2,2]"), (None, "f32[8,2]")]:
        run = fxflow.vmap(total, in_axes=(0, None), spmd_axis_name=spmd)
        np.testing.assert_allclose(run(a, 2.0), 3 * a.sum(1))
        assert local in str(fxflow.make_graph(run)(a, 2.0))
    with pytest.raises(ShapeError, match=r"length 6, cannot be divided into 4"):
        fxflow.vmap(total, in_axes=(0, None), spmd_axis_name="x")(a[:6], 2.0)
    with pytest.raises(ArgumentError, match="divide others over 'y' already"):
        fxflow.vmap(total, in_axes=(0, None), spmd_axis_name="y")(a, 2.0)
