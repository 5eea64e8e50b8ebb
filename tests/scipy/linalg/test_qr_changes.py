"""Changed QR decompositions: their products, and SciPy's forms and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(10)
A = RNG.normal(size=(6, 4))


def check(name: str, mode: str, *args: Any, **options: Any) -> None:
    """Asserts that the factors are SciPy's, but for signs of rows of R."""
    q, r = scipy.linalg.qr(A, mode=mode)
    want_q, want_r = getattr(scipy.linalg, name)(q, r, *args, **options)
    with fxflow.config.override(x64=True):
        got_q, got_r = getattr(linalg, name)(q, r, *args, **options)
    assert got_q.shape == want_q.shape and got_r.shape == want_r.shape
    np.testing.assert_allclose(got_q @ got_r, want_q @ want_r, 1e-10, 1e-12)
    np.testing.assert_allclose(np.abs(got_r), np.abs(want_r), 1e-10, 1e-12)
    square = np.asarray(got_q).T @ np.asarray(got_q)
    np.testing.assert_allclose(square, np.eye(len(square)), atol=1e-12)


@pytest.mark.parametrize("mode", ["full", "economic"])
def test_changes(mode: str) -> None:
    check("qr_delete", mode, 1, 2, "row")
    check("qr_delete", mode, -1, which="col")
    check("qr_insert", mode, RNG.normal(size=4), 2, "row")
    check("qr_insert", mode, RNG.normal(size=(6, 1)), 4, "col")
    check("qr_update", mode, RNG.normal(size=6), RNG.normal(size=4))
    check("qr_update", mode, RNG.normal(size=(6, 2)), RNG.normal(size=(4, 2)))


def test_changes_have_derivatives() -> None:
    q, r = scipy.linalg.qr(A, mode="economic")
    with fxflow.config.override(x64=True):
        total = lambda t: fnp.sum(
            fnp.abs(linalg.qr_update(q, r, t * np.ones(6), np.ones(4))[1])
        )
        h = 1e-6
        want = (float(total(0.5 + h)) - float(total(0.5 - h))) / (2 * h)
        assert float(fxflow.grad(total)(0.5)) == pytest.approx(want, rel=1e-6)


def test_wrong_changes_are_refused() -> None:
    q, r = scipy.linalg.qr(A)
    with pytest.raises(ArgumentError, match="k must be a row below 6, got 6"):
        linalg.qr_delete(q, r, 6)
    with pytest.raises(ArgumentError, match=r"k \+ p must be at most 6"):
        linalg.qr_delete(q, r, 5, 2)
    with pytest.raises(ArgumentError, match='which must be "row" or "col"'):
        linalg.qr_insert(q, r, np.ones(4), 0, "column")
    with pytest.raises(ShapeError, match="does not fit as rows"):
        linalg.qr_insert(q, r, np.ones(3), 0)
    with pytest.raises(ShapeError, match="qr_update: u, "):
        linalg.qr_update(q, r, np.ones(5), np.ones(4))
    with pytest.raises(ShapeError, match="qr_delete: Q, "):
        linalg.qr_delete(q, r[:3], 0)
