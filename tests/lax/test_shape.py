"""The same elements under other axes."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.core.arrays.array import as_array, host_of, typeof
from fxflow.errors import AxisError, ShapeError
from tests.lax.key_arrays import keys, words

X = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.broadcast_in_dim(X, (2, 4, 3), (0, 2)), np.stack([X] * 4, 1)),
        (lambda: lax.broadcast(X, (2,)), np.stack([X, X])),
        (lambda: lax.broadcast_to_rank(X, 4), X[None, None]),
        (lambda: lax.reshape(X, (3, 2)), X.reshape(3, 2)),
        (lambda: lax.reshape(X, (6,), dimensions=(1, 0)), X.T.ravel()),
        (lambda: lax.squeeze(X[None, :, None]), X),
        (lambda: lax.squeeze(X[None, :, None], (-2,)), X[None]),
        (lambda: lax.expand_dims(X, (0, -1)), X[None, :, :, None]),
        (lambda: lax.collapse(X[None], 1), X.reshape(1, 6)),
        (lambda: lax.collapse(X[None], 0, 2), X),
        (lambda: lax.collapse(X, 1, 1), X[:, None]),
        (lambda: lax.transpose(X, (-1, 0)), X.T),
        (lambda: lax.rev(X, (-1,)), X[:, ::-1]),
        (lambda: lax.rev(X, ()), X),
        (lambda: lax.tile(X, (2, 1)), np.tile(X, (2, 1))),
        (lambda: lax.tile(X, (0, 3)), np.tile(X, (0, 3))),
    ],
)
def test_agrees_with_numpy(got, expected: np.ndarray) -> None:
    out = got()
    assert out.dtype == expected.dtype
    np.testing.assert_array_equal(np.asarray(out), expected)


def test_what_changes_nothing_returns_its_operand() -> None:
    x = as_array(X)
    assert lax.reshape(x, (2, 3)) is x
    assert lax.transpose(x, (0, 1)) is x
    assert lax.broadcast_in_dim(x, (2, 3), (0, 1)) is x


def test_host_results_are_views() -> None:
    x = as_array(np.zeros((64, 64), "f4"))
    for out in (lax.reshape(x, (4096,)), lax.transpose(x, (1, 0)), lax.rev(x, (0,))):
        assert np.shares_memory(host_of(out), host_of(x))


def test_python_scalars_stay_weak() -> None:
    assert lax.broadcast(1.0, (2,)).weak_type
    assert not lax.broadcast(np.float32(1), (2,)).weak_type


def test_broadcast_shapes() -> None:
    assert lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert lax.broadcast_shapes((0, 1), (1, 3)) == (0, 3)
    assert lax.broadcast_shapes() == ()
    with pytest.raises(ShapeError, match=r"\(2,\), \(3,\) do not broadcast together"):
        lax.broadcast_shapes((2,), (3,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.broadcast_in_dim(X, (2, 4), (0, 1)),
            ShapeError,
            r"f32\[2,3\] does not broadcast to \(2, 4\).*length 3 would have to ",
        ),
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0,)), ShapeError, "needs 2"),
        (lambda: lax.broadcast_in_dim(X, (2, 3), (0, 5)), AxisError, "out of range"),
        (lambda: lax.broadcast(X, (-1,)), ShapeError, "must not be negative"),
        (lambda: lax.broadcast_to_rank(X, 1), ShapeError, "more axes than rank 1"),
        (
            lambda: lax.reshape(X, (4,)),
            ShapeError,
            r"cannot reshape f32\[2,3\] to \(4,\): that is 4 elements instead of 6",
        ),
        (lambda: lax.reshape(X, (-1,)), ShapeError, "fxflow.numpy.reshape infers -1"),
        (lambda: lax.reshape(X, (6,), (0, 0)), AxisError, "repeated axis"),
        (lambda: lax.squeeze(X, (0,)), ShapeError, "axis 0 of f32.* has length 2"),
        (lambda: lax.expand_dims(X, (0, 0)), AxisError, "repeated axis"),
        (lambda: lax.collapse(X, 1, 0), AxisError, "lies before start_dimension"),
        (lambda: lax.transpose(X, (0,)), AxisError, "must hold each axis of f32"),
        (lambda: lax.transpose(X, (0, 2)), AxisError, "permutation 2 is out of range"),
        (lambda: lax.rev(X, (2,)), AxisError, "rev: dimensions 2 is out of range"),
        (lambda: lax.tile(X, (2,)), ShapeError, "one number for each axis of f32"),
    ],
)
def test_shapes_and_axes_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x = keys(2, 3)
    w = words(x)
    cases = [
        (lax.reshape(x, (3, 2)), w.reshape(3, 2, 2)),
        (lax.transpose(x, (1, 0)), w.transpose(1, 0, 2)),
        (lax.rev(x, (-1,)), w[:, ::-1]),
        (lax.broadcast(x, (2,)), np.stack([w, w])),
        (lax.squeeze(lax.expand_dims(x, (0,)), (0,)), w),
        (lax.tile(x, (1, 2)), np.tile(w, (1, 2, 1))),
    ]
    for got, expected in cases:
        assert typeof(got).dtype == x.dtype
        np.testing.assert_array_equal(words(got), expected)
    with pytest.raises(ShapeError, match=r"cannot reshape key<fry>\[2,3\]"):
        lax.reshape(x, (5,))


def test_broadcast_like() -> None:
    x = np.arange(3, dtype="i4")
    out = lax.broadcast_like(x[:, None], np.zeros((2, 3, 4)))
    np.testing.assert_array_equal(out, np.broadcast_to(x[:, None], (2, 3, 4)))
    assert out.dtype == np.int32
    with pytest.raises(ShapeError, match="has more axes"):
        lax.broadcast_like(np.zeros((1, 3)), x)
    with pytest.raises(ShapeError, match="does not broadcast"):
        lax.broadcast_like(x, np.zeros(4))


def test_axes_become_axes_in_any_order() -> None:
    np.testing.assert_array_equal(lax.broadcast_in_dim(X, (3, 2), (1, 0)), X.T)
    want = np.broadcast_to(X.T[:, None, :], (3, 4, 2))
    np.testing.assert_array_equal(lax.broadcast_in_dim(X, (3, 4, 2), (2, 0)), want)
    np.testing.assert_array_equal(
        lax.broadcast_in_dim(X[:1], (3, 2), (1, 0)), np.repeat(X[:1].T, 2, 1)
    )
    slope = fxflow.grad(
        lambda x: (lax.broadcast_in_dim(x, (3, 4, 2), (2, 0)) * want).sum()
    )(X)
    np.testing.assert_array_equal(slope, 4 * X)
    many = keys(2, 3)
    turned = lax.broadcast_in_dim(many, (3, 2), (1, 0))
    np.testing.assert_array_equal(words(turned), words(many).swapaxes(0, 1))
    with pytest.raises(ShapeError):
        lax.broadcast_in_dim(X, (2, 3), (1, 0))
    with pytest.raises(AxisError, match="repeated axis"):
        lax.broadcast_in_dim(X, (2, 3), (1, 1))
