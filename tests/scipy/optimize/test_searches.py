"""Line searches beside SciPy's conditions."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize


def test_steps_satisfy_the_conditions_of_wolfe() -> None:
    rng = np.random.default_rng(3)
    slope = fxflow.grad(optimize.rosen)
    with fxflow.config.override(x64=True):
        run = fxflow.jit(lambda x, p: optimize.line_search(optimize.rosen, None, x, p))
        for _ in range(5):
            x = rng.normal(size=2)
            p = -np.asarray(slope(x))
            got = run(x, p)
            t, rate = float(got.alpha), float(p @ slope(x))
            new = x + t * p
            assert optimize.rosen(new) <= optimize.rosen(x) + 1e-4 * t * rate
            assert abs(slope(new) @ p) <= 0.9 * abs(rate)
            np.testing.assert_allclose(got.new_fval, optimize.rosen(new), 1e-9)
            np.testing.assert_allclose(got.new_slope, slope(new) @ p, 1e-7, 1e-9)
        uphill = run(x, -p)
        assert fnp.isnan(uphill.alpha) and uphill.fc <= 30
        short = optimize.line_search(
            lambda x: -x[0], lambda x: -fnp.ones(1), [0.0], [1.0], amax=0.3
        )
        assert fnp.isnan(short.alpha)


def test_a_condition_of_the_user_rejects_steps() -> None:
    # Every step size from 0.1 to 1 lessens x² and its slope from 1.
    search = lambda more: optimize.line_search(
        lambda x: (x**2).sum(), None, [1.0], [-1.0], c1=0.01, extra_condition=more
    )
    assert float(search(None).alpha) == 1
    short = search(lambda alpha, x, f, g: (x[0] > 0.25) & (g[0] == 2 * x[0]) & (f > 0))
    assert 0.1 <= float(short.alpha) < 0.75
    assert fnp.isnan(search(lambda *_: False).alpha)


def test_bad_searches_are_refused() -> None:
    with pytest.raises(ArgumentError, match="0 < c1 < c2 < 1"):
        optimize.line_search(optimize.rosen, None, [0.0, 1.0], [1.0, 0.0], c1=0.95)
    with pytest.raises(ShapeError, match="pk must be like xk"):
        optimize.line_search(optimize.rosen, None, [0.0, 1.0], [1.0])
