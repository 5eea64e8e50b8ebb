"""Collectives over the named axis of a `vmap`, against what they mean in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, jvp, lax, vmap
from fxflow.errors import NotDifferentiableError, ShapeError

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def over(function, *args, **options):
    return np.asarray(vmap(function, axis_name="i", **options)(*args))


# -- reductions ------------------------------------------------------------------------


def test_psum_pmean_pmax_pmin():
    same = lambda v: np.broadcast_to(v, (4, 3))
    np.testing.assert_array_equal(over(lambda x: lax.psum(x, "i"), X), same(X.sum(0)))
    np.testing.assert_array_equal(over(lambda x: lax.pmean(x, "i"), X), same(X.mean(0)))
    np.testing.assert_array_equal(over(lambda x: lax.pmax(x, "i"), X), same(X.max(0)))
    np.testing.assert_array_equal(over(lambda x: lax.pmin(x, "i"), X), same(X.min(0)))


def test_pytrees():
    out = vmap(lambda t: lax.psum(t, "i"), axis_name="i")({"a": X, "b": (X[:, 0],)})
    assert out["a"].shape == (4, 3)
    assert out["b"][0].tolist() == [18.0] * 4


def test_numbers_of_python_need_no_collective():
    graph = fxflow.make_graph(
        vmap(lambda x: x * lax.psum(1, "i") + lax.pmean(2, "i"), axis_name="i")
    )(X)
    assert "reduce" not in str(graph)
    assert over(lambda x: x * lax.psum(1, "i"), X[:, 0]).tolist() == [0, 12, 24, 36]
    assert over(lambda x: x + lax.pmean(2, "i"), X[:, 0]).tolist() == [2, 5, 8, 11]
    assert over(lambda x: x * lax.psum(True, "i"), X[:, 0]).tolist() == [0, 12, 24, 36]


def test_values_that_are_the_same_for_all():
    two = fnp.array(2.0)
    assert over(lambda x: x + lax.psum(two, "i"), X[:, 0]).tolist() == [8, 11, 14, 17]
    assert over(lambda x: x + lax.pmax(two, "i"), X[:, 0]).tolist() == [2, 5, 8, 11]
    assert over(lambda x: x + lax.pmean(two, "i"), X[:, 0]).tolist() == [2, 5, 8, 11]


def test_integers_and_booleans():
    n = np.arange(4)
    mean = vmap(lambda x: lax.pmean(x, "i"), axis_name="i")(n)
    assert mean.dtype == np.float32 and mean.tolist() == [1.5] * 4
    total = vmap(lambda x: lax.psum(x, "i"), axis_name="i")(n.astype(np.int8))
    assert total.dtype == np.int8 and total.tolist() == [6] * 4
    count = vmap(lambda x: lax.psum(x > 1, "i"), axis_name="i")(n)
    assert count.dtype == np.int32 and count.tolist() == [2] * 4


# -- movement --------------------------------------------------------------------------


def test_all_gather():
    gathered = over(lambda x: lax.all_gather(x, "i"), X)
    np.testing.assert_array_equal(gathered, np.broadcast_to(X, (4, 4, 3)))
    last = over(lambda x: lax.all_gather(x, "i", axis=1), X)
    np.testing.assert_array_equal(last, np.broadcast_to(X.T, (4, 3, 4)))
    tiled = over(lambda x: lax.all_gather(x, "i", tiled=True), X)
    np.testing.assert_array_equal(tiled, np.broadcast_to(X.reshape(12), (4, 12)))
    unmapped = over(lambda x: x[0] * 0 + lax.all_gather(fnp.array(2.0), "i"), X)
    assert (unmapped == 2).all()
    number = over(lambda x: x[:4] + lax.all_gather(2.0, "i"), np.zeros((4, 4)))
    assert (number == 2).all()


def test_psum_scatter():
    value = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
    out = over(lambda x: lax.psum_scatter(x, "i"), value)
    np.testing.assert_array_equal(out, value.sum(0))
    wide = np.arange(96, dtype=np.float32).reshape(4, 8, 3)
    out = over(lambda x: lax.psum_scatter(x, "i", tiled=True), wide)
    np.testing.assert_array_equal(out, wide.sum(0).reshape(4, 2, 3))


def test_ppermute_and_pshuffle():
    ring = [(i, (i + 1) % 4) for i in range(4)]
    out = over(lambda x: lax.ppermute(x, "i", ring), X)
    np.testing.assert_array_equal(out, np.roll(X, 1, 0))
    out = over(lambda x: lax.ppermute(x, "i", [(0, 3)]), X)
    np.testing.assert_array_equal(out, np.stack([0 * X[0]] * 3 + [X[0]]))
    out = over(lambda x: lax.ppermute(x, "i", []), X)
    assert not out.any()
    out = over(lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]), X)
    np.testing.assert_array_equal(out, X[[2, 0, 3, 1]])


def test_pbroadcast():
    out = over(lambda x: lax.pbroadcast(x, "i", 2), X)
    np.testing.assert_array_equal(out, np.broadcast_to(X[2], (4, 3)))


def test_all_to_all():
    value = np.arange(48, dtype=np.float32).reshape(4, 4, 3)
    out = over(lambda x: lax.all_to_all(x, "i", 0, 0), value)
    np.testing.assert_array_equal(out, value.swapaxes(0, 1))
    out = over(lambda x: lax.all_to_all(x, "i", 0, 1), value)
    np.testing.assert_array_equal(out, np.moveaxis(value, 0, 2))
    wide = np.arange(4 * 8 * 3, dtype=np.float32).reshape(4, 8, 3)
    out = over(lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), wide)
    expected = [np.concatenate(wide[:, 2 * i : 2 * i + 2], 1) for i in range(4)]
    np.testing.assert_array_equal(out, np.stack(expected))


def test_axis_index_and_size():
    assert over(lambda x: lax.axis_index("i"), X).tolist() == [0, 1, 2, 3]
    assert over(lambda x: x[0] + lax.axis_size("i"), X).tolist() == [4, 7, 10, 13]
    index = vmap(
        vmap(lambda x: lax.axis_index(("i", "j")), axis_name="j"), axis_name="i"
    )(X)
    np.testing.assert_array_equal(index, np.arange(12).reshape(4, 3))


def test_several_axes():
    both = lambda f: np.asarray(vmap(vmap(f, axis_name="j"), axis_name="i")(X))
    assert (both(lambda x: lax.psum(x, ("i", "j"))) == X.sum()).all()
    np.testing.assert_array_equal(
        both(lambda x: lax.psum(x, "j")), np.repeat(X.sum(1)[:, None], 3, 1)
    )
    np.testing.assert_array_equal(
        both(lambda x: lax.pmax(x, "i")), np.broadcast_to(X.max(0), (4, 3))
    )
    assert (both(lambda x: lax.axis_size(("i", "j"))) == 12).all()
    np.testing.assert_array_equal(
        both(lambda x: lax.all_gather(x, "i")),
        np.broadcast_to(X.T, (4, 3, 4)),
    )


def test_over_no_axes():
    assert over(lambda x: lax.psum(x, ()) + lax.pmean(x, ()), X[:, 0]).tolist() == [
        0.0,
        6.0,
        12.0,
        18.0,
    ]
    assert over(lambda x: lax.pmax(x, ()) * lax.axis_size(()), X[:, 0]).tolist() == [
        0.0,
        3.0,
        6.0,
        9.0,
    ]
    assert over(lambda x: x * 0 + lax.axis_index(()), X[:, 0]).tolist() == [0.0] * 4


def test_pcast_changes_nothing():
    np.testing.assert_array_equal(over(lambda x: lax.pcast(x, "i", to="varying"), X), X)


def test_pswapaxes():
    value = np.arange(48, dtype=np.float32).reshape(4, 3, 4)
    out = over(lambda x: lax.pswapaxes(x, "i", 1), value)
    np.testing.assert_array_equal(out, value.swapaxes(0, 2))


def test_numbers_in_groups():
    own = {"axis_index_groups": [[0], [1, 2, 3]]}
    count = over(lambda x: x * 0 + lax.psum(1, "i", **own), X[:, 0])
    assert count.tolist() == [1, 3, 3, 3]
    mean = over(lambda x: lax.pmean(x, "i", **own), X[:, 0])
    assert mean.tolist() == [0, 6, 6, 6]
    assert over(lambda x: x + lax.pmax(2, "i"), X[:, 0]).tolist() == [2, 5, 8, 11]


def test_keys_are_gathered_and_not_summed():
    keys = fxflow.random.split(fxflow.random.key(0), 4)
    words = np.asarray(fxflow.random.key_data(keys))
    gathered = vmap(lambda k: lax.all_gather(k, "i", axis=-1), axis_name="i")(keys)
    np.testing.assert_array_equal(fxflow.random.key_data(gathered)[2], words)
    with pytest.raises(TypeError, match="psum: takes"):
        vmap(lambda k: lax.psum(k, "i"), axis_name="i")(keys)
    with pytest.raises(ShapeError, match=r"key.*\[3\].*among 4"):
        vmap(lambda k: lax.all_to_all(k, "i", 0, 0, tiled=True), axis_name="i")(
            fxflow.random.split(keys[0], (4, 3))
        )


# -- derivatives -----------------------------------------------------------------------


def test_gradient_around_and_inside():
    squared = lambda x: fnp.sum(lax.psum(x * x, "i"))
    around = grad(lambda x: fnp.sum(vmap(squared, axis_name="i")(x)))(X)
    np.testing.assert_allclose(around, 8 * X)
    # Each slice's result is the sum of all: its cotangents add up.
    inside = over(grad(squared), X)
    np.testing.assert_allclose(inside, 8 * X)
    mean = over(grad(lambda x: fnp.sum(lax.pmean(x * x, "i"))), X)
    np.testing.assert_allclose(mean, 2 * X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.psum(x, "i"),
        lambda x: lax.all_gather(x, "i", axis=1),
        lambda x: lax.psum_scatter(fnp.concatenate([x, x[:1]]), "i"),
        lambda x: lax.ppermute(x, "i", [(0, 1), (2, 0)]),
        lambda x: lax.all_to_all(fnp.concatenate([x, x[:1]]), "i", 0, 0),
        lambda x: lax.pbroadcast(x, "i", 1),
    ],
)
def test_transposes(function):
    """⟨Jv, w⟩ = ⟨v, Jᵀw⟩ summed over the slices, with the derivative taken inside."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=X.shape).astype(np.float32)
    tangent = vmap(lambda x, t: jvp(function, (x,), (t,))[1], axis_name="i")(X, v)
    w = rng.normal(size=tangent.shape).astype(np.float32)
    pulled = vmap(lambda x, ct: fxflow.vjp(function, x)[1](ct)[0], axis_name="i")(X, w)
    left = float(np.vdot(tangent, w))
    assert left == pytest.approx(float(np.vdot(v, pulled)), rel=1e-4)


def test_extrema_have_no_derivative():
    with pytest.raises(NotDifferentiableError, match="pmax"):
        vmap(grad(lambda x: lax.pmax(x, "i")), axis_name="i")(X[:, 0])


# -- under the other transformations ---------------------------------------------------


def test_inside_and_around_jit():
    def normalised(x):
        return x / lax.psum(x, "i")

    expected = X / X.sum(0)
    for function in (
        jit(vmap(normalised, axis_name="i")),
        vmap(jit(normalised), axis_name="i"),
        jit(vmap(jit(normalised), axis_name="i")),
    ):
        np.testing.assert_allclose(function(X + 1), (X + 1) / (X + 1).sum(0))
    assert expected.shape == (4, 3)


def test_out_axes():
    out = vmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(X)
    assert out.tolist() == X.sum(0).tolist()


def test_inside_scan_and_cond():
    def run(x):
        out, _ = lax.scan(lambda c, _: (c + lax.psum(c, "i"), None), x, None, length=2)
        return out

    first = X[:, 0] + X[:, 0].sum()
    np.testing.assert_allclose(over(run, X[:, 0]), first + first.sum())


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: lax.psum(x, "j"), NameError, "unbound axis name 'j'.*'i'"),
        (lambda x: lax.psum(1, "j"), NameError, "unbound axis name 'j'"),
        (lambda x: lax.pmean(x, "j"), NameError, "unbound axis name"),
        (lambda x: lax.axis_index("j"), NameError, "unbound axis name"),
        (lambda x: lax.axis_size("j"), NameError, "unbound axis name"),
        (lambda x: lax.all_gather(x, "j"), NameError, "unbound axis name"),
        (lambda x: lax.all_gather(x, ("i", "j")), NameError, "unbound axis name 'j'"),
        (lambda x: lax.all_gather(x, ("i", "i")), TypeError, "'i' twice"),
        (lambda x: lax.all_gather(x, ()), TypeError, "axis_name is empty"),
        (lambda x: lax.all_gather(x, "i", axis=5), ValueError, "axis 5.*2 axes"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), TypeError, "sources"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]), TypeError, "targets"),
        (lambda x: lax.ppermute(x, "i", [(0, 4)]), TypeError, "length 4"),
        (lambda x: lax.ppermute(x, "i", [0, 1]), TypeError, "list of pairs"),
        (lambda x: lax.ppermute(x, "j", [(0, 1)]), NameError, "unbound"),
        (
            lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 2]]),
            TypeError,
            "psum: axis_index_groups must hold each index 0 … 3 of the axis 'i' once",
        ),
        (
            lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]]),
            TypeError,
            "all_gather: axis_index_groups must be equally long",
        ),
        (
            lambda x: lax.psum_scatter(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
            ShapeError,
            "as long as the groups, 2",
        ),
        (lambda x: lax.pswapaxes(x, "i", 0), ShapeError, r"f32\[3\]"),
        (lambda x: lax.pcast(x, "i", to="other"), TypeError, "'varying'"),
        (lambda x: lax.pcast(x, "j", to="varying"), NameError, "unbound"),
        (
            lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]),
            TypeError,
            "permutation of 0 … 3",
        ),
        (lambda x: lax.pbroadcast(x, "i", 4), TypeError, "source 4 is out of range"),
        (lambda x: lax.psum_scatter(x, "i"), ShapeError, r"f32\[3\].*'i', 4"),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), ShapeError, "among 4"),
        (lambda x: lax.all_to_all(x, "i", 0, 0), ShapeError, r"axis 0 of f32\[3\]"),
        (lambda x: lax.all_to_all(x, "i", 3, 0), ValueError, "axis 3"),
        (lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), ShapeError, "among 4"),
    ],
)
def test_invalid_axis_names_pairs_and_groups_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        vmap(call, axis_name="i")(X)


def test_outside_a_transformation():
    with pytest.raises(NameError, match=r"no axis is in scope.*axis_name='i'"):
        lax.psum(X, "i")
    with pytest.raises(NameError, match="unbound"):
        jit(lambda x: lax.psum(x, "i"))(X)
