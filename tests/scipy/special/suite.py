"""Comparing special functions with SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from fxflow.scipy import special
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = np.linspace(-4, 4, 33).astype(np.float32) + np.float32(0.01)
P = np.linspace(0.05, 6, 20).astype(np.float32)
U = np.linspace(0.01, 0.99, 25).astype(np.float32)
EDGES = np.array([-np.inf, -2.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32)


def one_argument(name: str, x: Any) -> None:
    """Checks a function of one argument: values, dtypes, derivative."""
    function, want = getattr(special, name), getattr(scipy.special, name)
    assert same(want(x.astype(np.float64)), function(x), 3e-4)
    assert same(want(x.astype(np.float64)), fxflow.jit(function)(x), 3e-4)
    wide = fnp.asarray(x, fnp.float64)
    assert function(wide).dtype == np.float64
    assert same(want(x.astype(np.float64)), function(wide), 1e-6)
    h = 1e-5
    x64 = x.astype(np.float64)
    slope = (want(x64 + h) - want(x64 - h)) / (2 * h)
    if name not in ("gammasgn",):
        got = fxflow.vmap(fxflow.grad(function))(x)
        scale = np.maximum(1, np.abs(slope))
        assert same(slope / scale, np.asarray(got) / scale, 5e-3)
    if name != "expit":  # which takes complex numbers, unlike SciPy's
        with pytest.raises(DtypeError):
            function(x * 1j)


def two_arguments(name: str, x: Any, y: Any) -> None:
    """Checks the values of a function of two arguments."""
    function, want = getattr(special, name), getattr(scipy.special, name)
    expected = want(x if x.dtype.kind == "i" else x.astype(np.float64), y.astype(float))
    scale = np.maximum(1, np.abs(expected))
    assert same(expected / scale, np.asarray(function(x, y)) / scale, 1e-3)
    assert same(expected / scale, np.asarray(fxflow.jit(function)(x, y)) / scale, 1e-3)


def edges(name: str) -> None:
    """Checks zeros, infinities and nan."""
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(EDGES)
    got = getattr(special, name)(EDGES)
    assert same(want, got, 1e-5), (name, want, got)
