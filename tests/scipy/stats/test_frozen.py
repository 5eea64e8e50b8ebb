"""Distributions with their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("expon", (), {"scale": 3.0}),
        pytest.param("poisson", (3.0,), {"loc": 1.0}, marks=pytest.mark.slow),
    ],
)
def test_methods_are_those_of_scipy(name: str, args: Any, kwargs: Any) -> None:
    ours = getattr(stats, name)(*args, **kwargs)
    want = getattr(scipy.stats, name)(*args, **kwargs)
    x = np.array([0.0, 1.0, 2.5, 4.0])
    density = "pmf" if name == "poisson" else "pdf"
    calls: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(
            (density, f"log{density}", "cdf", "sf", "logcdf", "logsf"), (x,)
        ),
        **dict.fromkeys(("ppf", "isf", "interval"), (np.array([0.1, 0.7]),)),
        **dict.fromkeys(("mean", "var", "std", "median", "support", "stats"), ()),
        "moment": (2,),
    }
    with fxflow.config.override(x64=True):
        for method, given in calls.items():
            found = np.asarray(getattr(ours, method)(*given))
            expected = np.asarray(getattr(want, method)(*given))
            np.testing.assert_allclose(found, expected, 1e-9, err_msg=method)
        found = ours.expect(lambda x: x * x, lb=1.0, conditional=True)
        expected = want.expect(lambda x: x * x, lb=1.0, conditional=True)
        np.testing.assert_allclose(found, expected, 1e-7)


def test_it_passes_through_transformations() -> None:
    law = stats.lomax(np.array([1.0, 2.0], np.float32), scale=2.0)
    assert repr(stats.norm(0, 2)) == "norm(loc=0.0, scale=2.0)"
    leaves, structure = fxflow.tree.flatten(law)
    assert (
        len(leaves) == 3 and fxflow.tree.unflatten(structure, leaves).dist is law.dist
    )
    want = scipy.stats.lomax([1.0, 2.0], scale=2.0).logpdf(1.5)
    found = fxflow.jit(lambda law, x: law.logpdf(x))(law, 1.5)
    np.testing.assert_allclose(found, want, 1e-5)
    each = fxflow.vmap(lambda a: stats.lomax(a, 0.0, 2.0).logpdf(1.5))(law.args[0])
    np.testing.assert_allclose(each, want, 1e-5)
    slope = fxflow.grad(lambda law: law.logpdf(1.5))(stats.norm(1.0, 2.0))
    np.testing.assert_allclose([float(v) for v in slope.args], [0.125, -0.46875], 1e-5)
    key = fxflow.random.key(0)
    assert law.rvs(key).shape == (2,) and law.rvs(key, (3, 2)).shape == (3, 2)
    np.testing.assert_array_equal(law.rvs(key), stats.lomax.rvs(key, *law.args))


def test_wrong_parameters_are_named() -> None:
    with pytest.raises(TypeError, match=r"gamma\(a, loc=0, scale=1\): missing.*'a'"):
        stats.gamma()
    with pytest.raises(TypeError, match="unexpected keyword argument 'sigma'"):
        stats.norm(sigma=2)
    with pytest.raises(ArgumentError, match=r"norm: loc is .*list"):
        stats.norm([1.0])
    with pytest.raises(ShapeError, match="norm"):
        stats.norm(np.zeros(2), np.ones(3))
    with pytest.raises(ArgumentError, match="poisson has no pdf"):
        stats.poisson(2.0).pdf(1.0)
