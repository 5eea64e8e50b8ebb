"""Diagonals and triangles."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import check, same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
V = np.arange(1, 4, dtype=np.int32)


@pytest.mark.parametrize("k", (-4, -1, 0, 2, 5))
def test_diagonals(k: int) -> None:
    for name in ("tril", "triu"):
        check(name, X, k)
        check(name, CUBE, k, compiled=False)
    check("diag", X, k)
    check("diag", V, k)
    check("diagflat", X, k, compiled=False)
    check("diagonal", CUBE, k, 1, 2)
    check("diagonal", CUBE, k, -1, 0, compiled=False)
    for name in ("eye", "tri"):
        check(name, 3, 4, k)
        assert same(
            getattr(np, name)(3, 2, k),
            fxflow.jit(lambda name=name: getattr(fnp, name)(3, 2, k))(),
        )
    for name in ("tril_indices", "triu_indices"):
        check(name, 3, k, 4, compiled=False)
        check(f"{name}_from", X, k, compiled=False)


def test_small_ones() -> None:
    check("identity", 3)
    check("diag_indices", 3)
    check("diag_indices_from", np.zeros((2, 2, 2)), compiled=False)
    check("diag", np.zeros(0, np.float32), 2, compiled=False)
    assert same(np.mask_indices(3, np.triu, 1), fnp.mask_indices(3, fnp.triu, 1))
    assert fnp.eye(2, dtype="int8").dtype == np.int8
    assert same(np.eye(3, k=1), fxflow.jit(lambda k: fnp.eye(3, k=k))(1))


@pytest.mark.parametrize("increasing", (True, False))
def test_vander(increasing: bool) -> None:
    for n in (None, 0, 2, 5):
        check("vander", V, n, increasing=increasing, compiled=False)


def test_gradient_of_the_diagonal() -> None:
    pull = fxflow.vjp(fnp.diagonal, fnp.zeros((2, 3)))[1]
    assert same([[1, 0, 0], [0, 2, 0]], pull(fnp.asarray([1.0, 2.0]))[0])
    pull = fxflow.vjp(fnp.diag, fnp.zeros(2))[1]
    assert pull(fnp.asarray([[1.0, 2.0], [3.0, 4.0]]))[0].tolist() == [1, 4]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: fnp.eye(-1), ShapeError, "eye: N must not be negative"),
        (lambda: fnp.eye(2.5), ArgumentError, "eye: N must be an integer"),
        (
            lambda: fnp.tril(V),
            ShapeError,
            r"tril: needs two axes or more, got i32\[3\]",
        ),
        (lambda: fnp.diag(CUBE), ShapeError, "diag: takes arrays of one axis or two"),
        (lambda: fnp.diagonal(V), ShapeError, "diagonal: needs two axes"),
        (lambda: fnp.diagonal(X, 0, 1, 1), AxisError, "must differ"),
        (lambda: fnp.diag_indices_from(X), ShapeError, "all of one length"),
        (lambda: fnp.tril_indices_from(V), ShapeError, "takes arrays of two axes"),
        (lambda: fnp.vander(X), ShapeError, "vander: takes arrays of one axis"),
    ],
)
def test_invalid_lengths_and_axes_are_refused(
    call: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()


def test_trace() -> None:
    check("trace", X, tol=1e-5)
    check("trace", CUBE.astype(np.float32), offset=1, axis1=2, axis2=0, tol=1e-5)
    assert fnp.trace(np.eye(3, dtype=np.int8)).dtype == np.int32
    assert same(3.0, fnp.asarray(np.eye(3)).trace())
