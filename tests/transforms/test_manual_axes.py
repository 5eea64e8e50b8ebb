"""`shard_map` inside `shard_map`, and what else meets axes that are manual there."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, shard_map
from fxflow.errors import ArgumentError

MESH = fxflow.make_mesh((4, 2), ("x", "y"))


def on(*entries):
    return NamedSharding(MESH, P(*entries))


def constrain(a, *entries):
    return lax.with_sharding_constraint(a, on(*entries))


OTHER = NamedSharding(fxflow.make_mesh((8,), ("z",)), P("z"))


def over(f, axis_names=frozenset(), ins="x", outs="x", mesh=MESH):
    """A `shard_map` of specs of one axis (None: whole)."""
    return shard_map(
        f, mesh=mesh, in_specs=P(ins), out_specs=P(outs), axis_names=axis_names
    )


def places(v):
    """Adds the place on each axis, in a loop, so that a private function is needed."""
    at = lambda c, _: (c + 10 * lax.axis_index("x") + lax.axis_index("y"), None)
    return lax.scan(at, v, None, 2)[0]


def test_a_nested_one_takes_the_axes_that_are_left():
    v = np.zeros(8, np.float32)
    inner = over(places, ins="y", outs="y")
    f = over(lambda a: inner(a) + lax.axis_index("x") / 2, {"x"})
    want = [20.5 * x + 2 * y for x in range(4) for y in range(2)]
    assert f(v).tolist() == want
    assert fxflow.vmap(f)(np.stack([v, v])).tolist() == [want, want]
    slope = fxflow.grad(lambda v: fnp.sum(f(v) ** 2))(v)
    np.testing.assert_allclose(slope, 2 * np.array(want))
    with fxflow.set_mesh(MESH):
        summed = shard_map(lambda a: lax.psum(a, "y"), in_specs=P("y"), out_specs=P())
        total = over(lambda a: lax.psum(summed(a), "x"), {"x"}, outs=None)
        assert total(np.arange(8.0)).tolist() == [28.0]
    # None are left.
    assert over(over(lambda a: a + 1, ins=None, outs=None))(v).tolist() == [1] * 8
    three = fxflow.make_mesh((2, 2, 2), ("x", "y", "z"))
    digits = lambda a: (
        a + sum(10**i * lax.axis_index(name) for i, name in enumerate("xyz"))
    )
    for name in "zyx":
        names = frozenset() if name == "z" else {name}
        digits = over(digits, names, name, name, three)
    assert digits(v).tolist() == [
        x + 10 * y + 100 * z for x in (0, 1) for y in (0, 1) for z in (0, 1)
    ]


def test_callbacks_where_some_axes_are_the_compilers():
    seen = []

    def f(a):
        fxflow.debug.callback(lambda: seen.append(None))
        fxflow.debug.callback(lambda v: seen.append(v.tolist()), a)
        shape = fxflow.ShapeDtypeStruct(a.shape, a.dtype)
        double = lambda v: (np.asarray(v) * 2, np.asarray(v) + 1)
        twice, more = fxflow.io_callback(double, (shape, shape), a)
        return twice - more

    a = np.arange(8, dtype=np.float32)
    assert over(f, {"x"})(a).tolist() == [v - 1 for v in range(8)]
    fxflow.effects_barrier()
    # Every device calls.
    parts = [[2.0 * i, 2.0 * i + 1] for i in range(4)]
    assert seen.count(None) == 8
    assert sorted(v for v in seen if v) == sorted(parts * 2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda a: over(over(lambda a: a, {"x"}), {"x"})(a),
            "axis_names has 'x', which the shard_map around it is manual over",
        ),
        (
            lambda a: over(over(lambda a: a), {"x"})(a),
            "names the axis 'x', which the shard_map around it is manual over",
        ),
        (
            lambda a: over(over(lambda a: a, mesh=fxflow.make_mesh((2,), ("x",))))(a),
            r"over 'x' of Mesh\('x': 4, 'y': 2\) the mesh must be the same",
        ),
        (
            lambda a: fxflow.pmap(over(lambda a: a))(a.reshape(2, 4)),
            "the mesh must be the same",
        ),
        (
            lambda a: over(lambda a: constrain(a, "x"), {"x"})(a),
            "over the axis 'x', which is manual inside the shard_map",
        ),
        (
            lambda a: over(lambda a: fnp.zeros_like(a, device=on("y")))(a),
            "over the axis 'y', which is manual inside the shard_map",
        ),
        (
            lambda a: over(fxflow.jit(lambda a: a, out_shardings=on("y")))(a),
            "over the axis 'y', which is manual inside the shard_map",
        ),
        (
            lambda a: over(lambda a: lax.with_sharding_constraint(a, OTHER), {"x"})(a),
            "over the axis 'z', which is of another mesh",
        ),
    ],
)
def test_axes_that_are_manual_already(call, words):
    with pytest.raises(ArgumentError, match=words):
        call(np.arange(8, dtype=np.float32))
