"""Pytrees as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow.scipy.sparse.linalg import vectors

RNG = np.random.default_rng(0)


def wide(x: Any) -> Any:
    return fnp.asarray(x, "complex128" if np.iscomplexobj(x) else "float64")


def test_sums_and_products() -> None:
    a, b = wide([1 + 2j, 3]), wide([1j, 2])
    x, y = {"u": a, "v": b}, {"u": b, "v": a}
    want = np.vdot(a, b) + np.vdot(b, a)
    np.testing.assert_allclose(vectors.dot(x, y), want)
    np.testing.assert_allclose(vectors.square(x), 19.0)
    np.testing.assert_allclose(vectors.add(x, y)["u"], np.asarray(a) + np.asarray(b))
    np.testing.assert_allclose(vectors.minus(x, y)["v"], np.asarray(b) - np.asarray(a))
    np.testing.assert_allclose(
        vectors.plus(x, wide(2.0), y)["u"], np.asarray(a) + 2 * np.asarray(b)
    )
    assert vectors.quotient(wide(0.0), wide(0.0)) == 0


def test_one_vector() -> None:
    x = {"a": wide(RNG.normal(size=(2, 3))), "b": fnp.ones(2)}
    ravel, unravel, size, dtype = vectors.one_vector(x)
    assert size == 8 and dtype == np.float64
    back = unravel(2 * ravel(x))
    np.testing.assert_allclose(back["a"], 2 * np.asarray(x["a"]))
    assert back["b"].dtype == np.float32


def test_adjoint() -> None:
    A = wide(RNG.normal(size=(4, 4)) + 1j * RNG.normal(size=(4, 4)))
    y = wide(RNG.normal(size=4) + 1j)
    back = vectors.adjoint(lambda x: A @ x, y)
    np.testing.assert_allclose(back(y), np.conj(np.asarray(A)).T @ np.asarray(y))


def test_orthonormal() -> None:
    V = wide(np.linalg.qr(RNG.normal(size=(5, 3)))[0].T)
    w = wide(RNG.normal(size=5))
    q, h, size = vectors.orthonormal(V, w)
    np.testing.assert_allclose(np.asarray(V) @ np.asarray(q), 0, atol=1e-14)
    np.testing.assert_allclose(np.asarray(h) @ np.asarray(V) + size * q, w)
    q, _, size = vectors.orthonormal(V, V[0])
    assert size == 0 and not np.any(q)
