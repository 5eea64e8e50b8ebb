"""Comparing distributions with SciPy's: values, edges, derivatives, types."""

import importlib
import inspect
from typing import Any

import numpy as np
import scipy.stats

import fxflow

#: Ordinary and special values of the first argument.
X = np.array([-np.inf, -30, -1, 0, 0.2, 0.9, 1, 1.7, 3, 6, 25, np.inf, np.nan])
K = np.array([-2, 0, 1, 2, 7, 50, 0.5, np.inf, np.nan])
Q = np.array([-0.1, 0, 1e-9, 0.3, 0.5, 0.8, 1, 1.1, np.nan])
ENTROPY = np.array([0.0, 1e-3, 0.5, 3, 30, 39.9, 40.1, 500])


def check(
    name: str,
    *parameters: Any,
    discrete: bool = False,
    tol: float = 1e-9,
    x: Any = None,
    without: str = "",
    **skip: Any,
) -> None:
    """Checks all functions of a distribution on a grid, beside SciPy's.

    Args:
      name: of the distribution.
      *parameters: values of its own parameters.
      discrete: whether it is one of integers.
      x: in place of the usual values of the first argument.
      without: a function that is left out.
      tol: how far results may be apart.
      **skip: for a function, a mask of its grid where SciPy's is not to be met.
    """
    module = importlib.import_module(f"fxflow.scipy.stats.{name}")
    oracle = getattr(scipy.stats, name)
    names = [each for each in module.__all__ if each != without]
    with fxflow.config.override(x64=True):
        for each in names:
            function = getattr(module, each)
            grid = _grid(function, discrete, parameters, x)
            with np.errstate(all="ignore"):
                want = np.asarray(getattr(oracle, each)(*grid))
            got = np.asarray(function(*grid))
            met = ~skip[each](*grid) if each in skip else np.ones(got.shape, bool)
            np.testing.assert_allclose(got[met], want[met], tol, tol, err_msg=each)
        # The others are made of these.
        for each in {"logpdf", "cdf", "ppf"}.intersection(names):
            if not discrete:
                function = getattr(module, each)
                _check_slope(each, function, _grid(function, False, parameters, x))
    for each in names:
        function = getattr(module, each)
        grid = _grid(function, discrete, parameters, x)
        small = [fxflow.ShapeDtypeStruct(g.shape, np.float32) for g in grid]
        assert fxflow.eval_shape(function, *small).dtype == np.float32
        assert np.asarray(function(*(g.ravel()[0] for g in grid))).shape == ()


def _grid(function: Any, discrete: bool, parameters: Any, x: Any) -> list[Any]:
    names = list(inspect.signature(function).parameters)
    first = K if discrete else X if x is None else x
    values = [Q if function.__name__ in ("ppf", "isf") else first, *parameters]
    if "scale" in names:
        values += [np.array([0.7]), np.array([1.0, 2.5])]
    elif "loc" in names:
        values += [np.array([0.0, 1.0])]
    return np.meshgrid(*values, indexing="ij")


def _check_slope(each: str, function: Any, grid: Any) -> None:
    """Checks the derivative by the first argument beside differences."""
    flat = [g.ravel() for g in grid]
    flat = [f[np.isfinite(flat[0])] for f in flat]
    x, *rest = flat
    h = 1e-6 * np.maximum(1, abs(x))
    if each == "ppf":  # steep near 0
        h = np.minimum(h, 1e-3 * abs(x))

    @fxflow.jit
    def run(x: Any, *rest: Any) -> Any:
        return function(x, *rest), fxflow.grad(lambda x: function(x, *rest).sum())(x)

    (now, slope), (low, _), (high, _) = (
        [np.asarray(v) for v in run(x + d * h, *rest)] for d in (0, -1, 1)
    )
    with np.errstate(all="ignore"):
        rise, left, right = (high - low) / (2 * h), now - low, high - now
        # Not at a bend or a jump, where the two sides differ.
        smooth = np.isfinite(rise) & (abs(left - right) < 1e-6 * h + 1e-3 * abs(right))
    np.testing.assert_allclose(
        slope[smooth], rise[smooth], 5e-3, 1e-5, err_msg=f"derivative of {each}"
    )
    assert smooth.any()
    assert not np.isnan(slope[np.isfinite(now)]).any(), each
