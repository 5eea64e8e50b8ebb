"""Reports on SciPy that a library with its interface could share."""

from __future__ import annotations

import math

import numpy as np

import fxflow.numpy as fnp
from fxflow.scipy import linalg, ndimage, signal, stats
from fxflow.scipy.interpolate import RegularGridInterpolator
from fxflow.scipy.sparse.linalg import bicgstab, cg, gmres
from tests.reports.modes import check_both

NAN = math.nan


def test_solvers_keep_an_exact_start() -> None:
    """A first guess without a residual is the solution, not NaN (scipy#19948)."""
    b = fnp.array([-1.0, 2.0])
    for solve in (gmres, cg, bicgstab):
        ask = lambda b, solve=solve: solve(lambda x: x, b, x0=b)[0]
        check_both(ask, [-1, 2], b)
        check_both(lambda b, solve=solve: solve(lambda x: 2 * x, b)[0], [0, 0], 0 * b)


def test_interpolation_at_nan_is_nan() -> None:
    """Not the last value, by any method (scipy#6624)."""
    for method in ("linear", "nearest"):

        def ask(x: fnp.ndarray, method: str = method) -> fnp.ndarray:
            grid = (fnp.array([1.0, 2.0, 3.0]),)
            values = fnp.array([10.0, 20.0, 30.0])
            return RegularGridInterpolator(grid, values, method, False, -999.0)(x)

        check_both(ask, [10, -999, NAN], fnp.array([[1.0], [0.0], [NAN]]))


def test_interpolation_at_a_point_is_its_value() -> None:
    """A neighbour of weight 0 that is NaN has no part in it (scipy#19277)."""

    def ask(x: fnp.ndarray) -> fnp.ndarray:
        grid = (fnp.array([0.0, 1.0, 2.0]),)
        return RegularGridInterpolator(grid, fnp.array([0.0, 1.0, NAN]))(x)

    check_both(ask, [1, 0.5, NAN], fnp.array([[1.0], [0.5], [1.5]]))


def test_wrapped_coordinates_have_the_period_of_the_array() -> None:
    """Four elements come back after four, not after three (scipy#2640)."""
    at = np.arange(-4.0, 8.0)
    ask = lambda x: ndimage.map_coordinates(x, [at], 1, mode="wrap")
    check_both(ask, [0, 1, 2, 3] * 3, fnp.arange(4.0))


def test_the_root_of_a_complex_block_matrix_squares_to_it() -> None:
    """An isolated diagonal element beside a complex block (scipy#23278)."""
    a = np.array([[1, 0, 0], [0, 1, -1j], [0, 1j, 2]], np.complex64)

    def squared(a: fnp.ndarray) -> fnp.ndarray:
        root = linalg.sqrtm(a)
        return root @ root

    check_both(squared, a, fnp.array(a), atol=1e-5)


def test_fftconvolve_of_the_same_size_keeps_broadcast_axes() -> None:
    """One signal by seven filters gives seven signals (scipy#21876)."""
    x = np.arange(20, dtype=np.float32).reshape(1, 20)
    k = np.arange(21, dtype=np.float32).reshape(7, 3)
    right = np.stack([np.convolve(x[0], row, "same") for row in k])
    ask = lambda x, k: signal.fftconvolve(x, k, mode="same", axes=1)
    check_both(ask, right, x, k, rtol=1e-4, atol=1e-2)


def test_a_sure_geometric_trial_succeeds_at_once() -> None:
    """The logarithm of the mass of 1 at p = 1 is 0 (scipy#4310)."""
    check_both(lambda k: stats.geom.logpmf(k, 1.0), [0, -math.inf], fnp.array([1, 2]))
