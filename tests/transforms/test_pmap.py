"""`pmap`: against `vmap`, whose meaning it has."""

import gc
import weakref

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax, pmap
from fxflow.core import caches
from fxflow.errors import ArgumentError, AxisError, DonationError, ShapeError

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)


def close(got, want, tol=1e-5):
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


def normal(x):
    return x / lax.psum(fnp.abs(x), "i")


mapped = pmap(normal, "i")


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_any_number_of_devices(count):
    got = mapped(X[:count])
    close(got, fxflow.vmap(normal, axis_name="i")(X[:count]))
    where = NamedSharding(fxflow.make_mesh((count,), ("i",)), P("i"))
    assert got.sharding.is_equivalent_to(where, 2)
    assert [s.device for s in got.addressable_shards] == fxflow.devices()[:count]


def test_axes_and_trees():
    def f(tree, w, k=None):
        return {"a": tree["x"] @ w, "b": (k * 2, lax.psum(tree["x"].sum(), "b"))}

    axes = {"in_axes": ({"x": 1}, None), "out_axes": {"a": -1, "b": (0, None)}}
    w = np.ones((3, 5), np.float32)
    got = pmap(f, axis_name="b", **axes)({"x": X.T}, w, k=np.arange(8))
    assert got["a"].shape == (5, 8) and got["b"][1].shape == ()
    close(got["a"], (X @ w).T)
    close(got["b"][0], np.arange(8) * 2)
    close(got["b"][1], X.sum(), 1e-4)


def test_static_and_decorated():
    @pmap(static_broadcasted_argnums=(1,), in_axes=(0, None))
    def f(x, n):
        return x * n if n > 2 else x

    close(f(X, 3), X * 3)
    close(f(X, 2), X)
    with pytest.raises(ValueError, match="cannot be hashed"):
        f(X, [1])


def test_devices_by_name():
    f = pmap(lambda x: x + 1, devices=["cpu:6", "/job:a/task:0/device:cpu:2"])
    got = f(X[:2])
    assert [s.device.id for s in got.addressable_shards] == [6, 2]
    close(got, X[:2] + 1)
    # Arguments that lie elsewhere are moved.
    close(f(mapped(X[:2])), np.asarray(mapped(X[:2])) + 1)


def test_without_mapped_arguments():
    f = pmap(lambda: lax.axis_index("i") * 2, "i", axis_size=4)
    assert f().tolist() == [0, 2, 4, 6]


def test_under_other_transforms():
    total = pmap(lambda x: fnp.sin(x) * lax.psum(x, "i"), "i")
    plain = fxflow.vmap(lambda x: fnp.sin(x) * lax.psum(x, "i"), axis_name="i")
    x = fnp.asarray(X)
    close(fxflow.jit(lambda v: total(v * 2) + 1)(x), plain(x * 2) + 1)
    weights = np.random.default_rng(1).normal(size=X.shape).astype(np.float32)
    slope = fxflow.grad(lambda v: fnp.sum(total(v) * weights))
    want = fxflow.grad(lambda v: fnp.sum(plain(v) * weights))(x)
    close(slope(x), want)
    close(fxflow.jit(slope)(x), want)
    close(
        fxflow.jvp(total, (x,), (weights,))[1], fxflow.jvp(plain, (x,), (weights,))[1]
    )
    both = np.stack([X, X + 1])
    close(fxflow.vmap(total)(both), fxflow.vmap(plain)(both))
    close(
        fxflow.vmap(total, 1, 1)(both.swapaxes(0, 1)),
        fxflow.vmap(plain)(both).swapaxes(0, 1),
    )
    end, _ = lax.scan(lambda c, _: (total(c) / 8, None), x, None, length=2)
    close(end, plain(plain(x) / 8) / 8)


def test_inside_are_other_transforms():
    def step(w, x):
        slope = fxflow.grad(lambda w: fnp.sum((x @ w) ** 2))(w)
        each = fxflow.vmap(lambda r: lax.psum(r, "i"))(x)
        loop, _ = lax.scan(lambda c, r: (c + lax.pmean(r, "i").sum(), None), 0.0, x)
        return lax.pmean(slope, "i"), each, loop

    w = np.ones((8, 3), np.float32)
    x = np.random.default_rng(2).normal(size=(8, 4, 3)).astype(np.float32)
    got = pmap(step, "i")(w, x)
    want = fxflow.vmap(step, axis_name="i")(w, x)
    for g, v in zip(got, want, strict=True):
        close(g, v, 1e-4)


def test_derivatives_inside_are_of_one_device():
    """Whether an array is mapped, handed to all or captured changes no gradient."""
    w, x = np.float32(3), np.arange(1, 9, dtype=np.float32)

    def loss(w, x):
        return (w**2 + 1) * x

    def slopes(w, x):
        mine = fxflow.grad(loss)(w, x)
        summed = fxflow.grad(lambda w: lax.psum(loss(w, x), "i"))(w)
        return mine, lax.pmean(mine, "i"), summed

    want = 6 * x, np.full(8, 27), 48 * x
    for got in (
        pmap(slopes, "i", in_axes=(None, 0))(w, x),
        pmap(slopes, "i")(np.full(8, w), x),
        pmap(lambda x: slopes(fnp.asarray(w), x), "i")(x),
        fxflow.vmap(slopes, (None, 0), axis_name="i")(w, x),
    ):
        for g, v in zip(got, want, strict=True):
            close(g, v)
    mean = pmap(lambda *a: slopes(*a)[1], "i", in_axes=(None, 0), out_axes=None)
    assert float(mean(w, x)) == 27
    assert float(fxflow.grad(mean)(w, x)) == 9


def test_results_that_are_given_once():
    """What may differ between devices is refused, in loops and branches, too."""
    w, x = fnp.ones(()), np.arange(8, dtype=np.float32)

    def once(f):
        return pmap(f, "i", in_axes=(None, 0), out_axes=None)(w, x)

    def scanned(body):
        return lambda w, x: lax.scan(lambda c, _: (body(c, x), None), w, length=2)[0]

    assert float(once(lambda w, x: w * 2)) == 2
    assert float(once(scanned(lambda c, x: c + lax.psum(x * c, "i")))) == 29**2
    assert once(lambda w, x: lax.all_gather(x, "i")).tolist() == x.tolist()
    branches = lambda w, x: lax.cond(w > 0, lambda: lax.pmean(x, "i"), lambda: w)
    assert float(once(branches)) == 3.5
    kind = fxflow.ShapeDtypeStruct((), np.float32)
    host = lambda w, x: lax.psum(fxflow.pure_callback(np.square, kind, x), "i")
    assert float(once(host)) == 140
    for wrong in (
        lambda w, x: fxflow.grad(lambda w: w * x)(w),
        scanned(lambda c, x: c + x),
        lambda w, x: lax.cond(x > 3, lambda: w * 2, lambda: w),
        lambda w, x: lax.while_loop(lambda c: c < x, lambda c: c + 1, w),
        lambda w, x: w + lax.axis_index("i"),
    ):
        with pytest.raises(ArgumentError, match="may differ between"):
            once(wrong)


def test_nested():
    z = np.arange(8, dtype=np.float32).reshape(4, 2)

    def inner(y):
        return y * lax.psum(y, "j") + lax.pmax(y, ("i", "j")) + lax.axis_index("j")

    got = pmap(pmap(inner, "j"), "i")(z)
    close(got, fxflow.vmap(fxflow.vmap(inner, axis_name="j"), axis_name="i")(z))
    assert got.sharding.num_devices == 8
    assert pmap(pmap(lambda x: x + 1))(z).tolist() == (z + 1).tolist()

    def twice(row):
        first = pmap(lambda y: y + lax.psum(y, "j"), "j")(row)
        return pmap(lambda y: y * lax.axis_index("j"), "j")(first)

    assert pmap(twice)(z).tolist() == [[0, 3 * a + 2] for a in (0, 2, 4, 6)]
    square = pmap(pmap(lambda y: y * lax.psum(y, ("i", "j")), "j"), "i")
    slope = fxflow.grad(lambda v: square(v).sum())
    close(slope(fnp.asarray(z)), np.full((4, 2), 2 * z.sum()))
    with pytest.raises(ArgumentError, match="4 slices of 3 for the pmaps inside"):
        pmap(pmap(lambda x: x))(np.ones((4, 3)))


def test_donation():
    f = pmap(lambda x, y: x + y, donate_argnums=0)
    value = fnp.asarray(X)
    for _ in range(3):
        before = value
        value = f(value, X)
        assert before.is_deleted()
    close(value, 4 * X)
    with pytest.raises(DonationError):
        pmap(lambda x: x.sum(), donate_argnums=0)(X)


def test_donated_arguments_are_written_over():
    """Each device's slice is, without a copy first, though two results read it."""

    def step(params, first, second, gradient):
        gradient = lax.pmean(gradient, "i")
        first = 0.9 * first + 0.1 * gradient
        second = 0.99 * second + 0.01 * gradient * gradient
        return params - first / (fnp.sqrt(second) + 1e-8), first, second

    f = pmap(step, "i", donate_argnums=(0, 1, 2))
    plain = pmap(step, "i")
    rng = np.random.default_rng(0)
    given = [rng.random((8, 3, 5), np.float32) for _ in range(4)]
    text = f.lower(*given).compile().as_text()
    assert "input_output_alias" in text
    assert " copy(" not in text
    held, expected = [fnp.array(x) for x in given[:3]], given[:3]
    for _ in range(3):
        before, held = held, f(*held, given[3])
        expected = plain(*expected, given[3])
        for old, got, want in zip(before, held, expected, strict=True):
            assert old.is_deleted()
            close(got, want)


def test_barriers_of_donation_stay_out_of_the_way():
    def step(params, x):
        @fxflow.checkpoint
        def layer(carry, weights):
            return fnp.tanh(carry @ weights), None

        def loss(params):
            return fnp.sum(lax.scan(layer, x, params)[0] ** 2)

        value, gradient = fxflow.value_and_grad(loss)(params)
        gradient = lax.pmean(gradient, "i")
        return params - 0.1 * gradient, lax.cond(
            value > 0, lambda v: lax.optimization_barrier(v + 1), lambda v: v, value
        )

    rng = np.random.default_rng(0)
    params = rng.normal(size=(8, 3, 4, 4)).astype(np.float32) / 4
    x = np.ones((8, 2, 4), np.float32)
    outs = pmap(step, "i", donate_argnums=0)(fnp.array(params), x)
    for got, want in zip(outs, pmap(step, "i")(params, x), strict=True):
        close(got, want)


def test_numbers_of_slices_share_one_table():
    f = pmap(lambda x, n: lax.psum(x, "i") * n, "i", static_broadcasted_argnums=1)
    fxflow.clear_caches()
    for _ in range(2):
        for count in (8, 4, 2):
            for n in (1, 3):
                part = fnp.array(X[:count])
                close(f(part, n), np.broadcast_to(n * X[:count].sum(0), (count, 3)))
    assert caches.sizes()["calls of jit"] == 6


def test_one_slice_of_a_result_costs_one_slice():
    y = mapped(X)
    close(y[3], np.asarray(y)[3])
    close(y[-1], np.asarray(y)[7])
    z = y[2] + y[5]  # they go together
    close(z, np.asarray(y)[2] + np.asarray(y)[5])
    assert y[0].sharding.num_devices == 1
    with pytest.raises(IndexError):
        y[8]
    column = pmap(lambda x: x, in_axes=1, out_axes=1)(X.T)
    close(column[1], X.T[1])


def test_nan_checks():
    f = pmap(lambda x: fnp.log(x))
    with fxflow.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        f(-fnp.ones((2, 2)))


def test_stages_of_a_mapped_function():
    like = fxflow.ShapeDtypeStruct((8, 3), "float32")
    lowered = mapped.lower(like)
    assert "sdy.manual_computation" in lowered.as_text()
    compiled = lowered.compile()
    assert "all-reduce" in compiled.as_text()
    close(compiled(X), mapped(X))
    assert mapped.eval_shape(X).shape == (8, 3)
    assert "psum" in str(mapped.trace(X).graph)


def test_traces_once():
    traced = []

    @pmap
    def f(x):
        traced.append(x)
        return x * 2

    y = f(X)
    for _ in range(3):
        y = f(y)
    f(X)
    assert len(traced) == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: mapped(np.ones((9, 2))),
            ArgumentError,
            "9 slices, but process 0 has 8 devices.*num_cpu_devices = 9",
        ),
        (
            lambda: pmap(lambda x, y: x)(X, X[:4]),
            ShapeError,
            r"one length, got x f32\[8,3\] along axis 0, y f32\[4,3\] along axis 0",
        ),
        (
            lambda: pmap(lambda x: x, in_axes=2)(X),
            AxisError,
            r"in_axes is 2 for argument x f32\[8,3\]",
        ),
        (
            lambda: pmap(lambda x: x, out_axes=3)(X),
            AxisError,
            r"out_axes is 3 for a result f32\[3\]",
        ),
        (
            lambda: pmap(lambda x: x, in_axes=None)(X),
            ArgumentError,
            "no argument is mapped",
        ),
        (
            lambda: pmap(lambda x: x, out_axes=None)(X),
            ArgumentError,
            "may differ between devices",
        ),
        (lambda: pmap(lambda x: "a")(X), ArgumentError, "the function returned"),
        (lambda: mapped("abc"), ArgumentError, "an argument is"),
        (
            lambda: pmap(lambda x: lax.psum(x, "j"), "i")(X),
            NameError,
            "unbound axis name 'j'",
        ),
        (
            lambda: pmap(lambda x: x, axis_size=3)(X),
            ShapeError,
            "axis_size=3, but the arguments have 8",
        ),
        (lambda: pmap(3), ArgumentError, "pmap"),
        (lambda: pmap(lambda x: x, devices=[])(X), ValueError, "devices is empty"),
    ],
)
def test_lengths_axes_and_devices_that_do_not_fit_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_mapped_function_does_not_outlive_its_last_reference():
    f = pmap(lambda x: x + 1)
    f(X)
    reference = weakref.ref(f)
    del f
    gc.collect()
    assert reference() is None


def test_static_arguments_anywhere():
    f = pmap(
        lambda a, x, b, *, k: a * x + b + k,
        in_axes=(None, 0, None),
        static_broadcasted_argnums=(0, 2),
    )
    for _ in range(2):
        close(f(3, X, 5, k=X), 4 * X + 5)


def test_slices_without_elements():
    empty = np.zeros((8, 0, 2), np.float32)
    where = NamedSharding(fxflow.make_mesh((8,), ("i",)), P("i"))

    def f(e, x):
        return e * 2, lax.psum(x, "i") + e.sum(), x[:0]

    for g in (pmap(f, "i"), pmap(f, "i", donate_argnums=(0, 1))):
        outs = g(fnp.array(empty), fnp.array(X))
        for got, want in zip(
            outs, fxflow.vmap(f, axis_name="i")(empty, X), strict=True
        ):
            assert got.shape == want.shape
            close(got, want)
            assert got.sharding.is_equivalent_to(where, got.ndim)
            assert got[3].shape == want.shape[1:]
            assert [s.device for s in got.addressable_shards] == fxflow.devices()
        total = np.asarray(outs[1])
        close(g(outs[0], outs[1])[1], 8 * total)


def test_nothing_but_slices_without_elements():
    empty = np.zeros((8, 0), np.float32)
    where = NamedSharding(fxflow.make_mesh((8,), ("i",)), P("i"))
    for f in (lambda e: e + 1, lambda e: lax.psum(e, "i")):
        g = pmap(f, "i")
        got = g(g(empty))
        assert got.shape == (8, 0)
        assert got.sharding.is_equivalent_to(where, 2)
    assert pmap(lambda x: x[:0], "i")(X).shape == (8, 0)
    close(pmap(lambda e: lax.psum(e.sum() + 1, "i"), "i")(empty), np.full(8, 8))


def test_more_with_slices_without_elements():
    empty = np.zeros((8, 0), np.float32)

    def loss(e, x):
        def f(e, x):
            return lax.psum(fnp.sum(x * x) + fnp.sum(fnp.sin(e)), "i")

        return fnp.sum(pmap(f, "i")(e, x))

    for derive in (fxflow.grad, lambda *a: fxflow.jit(fxflow.grad(*a))):
        de, dx = derive(loss, (0, 1))(empty, X)
        assert de.shape == (8, 0)
        close(dx, 16 * X)
    mapped_twice = fxflow.vmap(pmap(lambda e, x: (e, x * 2), "i"))
    e, x = mapped_twice(np.zeros((3, 8, 0)), np.stack([X] * 3))
    assert e.shape == (3, 8, 0)
    close(x, np.stack([X * 2] * 3))
    whole = pmap(lambda e, x: (e, x + e.sum()), in_axes=(None, 0), out_axes=(None, 0))
    e, x = whole(np.zeros((0, 2), np.float32), X)
    assert e.shape == (0, 2)
    close(x, X)
    nested = pmap(pmap(lambda e, x: (e, lax.psum(x, ("i", "j"))), "j"), "i")
    e, x = nested(empty.reshape(2, 4, 0), X.reshape(2, 4, 3))
    assert e.shape == (2, 4, 0)
    close(x, np.broadcast_to(X.sum(0), (2, 4, 3)))
