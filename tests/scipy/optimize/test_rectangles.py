"""`direct` beside SciPy's, its options, and its derivative."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize import Bounds, direct


def tang(x: Any, a: float = 5.0) -> Any:
    """Styblinski's and Tang's function: four minima in the plane."""
    return 0.5 * (x**4 - 16 * x**2 + a * x).sum()


BOX = [(-4.0, 4.0), (-4.5, 3.5)]


@pytest.mark.slow
@pytest.mark.parametrize("biased", [True, False])
def test_the_point_is_the_one_that_scipy_finds(biased: bool) -> None:
    options = {"locally_biased": biased, "len_tol": 1e-3}
    want = scipy.optimize.direct(tang, BOX, **options)
    # As many calls as there may be: SciPy's point, to the last digit.
    long = scipy.optimize.direct(tang, BOX, locally_biased=biased)
    run = lambda a, **options: direct(tang, BOX, args=(a,), **options)
    with fxflow.config.override(x64=True):
        found = fxflow.jit(lambda a: run(a, **options))(5.0)
        assert int(found.status) == 0 and bool(found.success)
        np.testing.assert_allclose(found.x, want.x, atol=5e-3)
        np.testing.assert_allclose(found.fun, want.fun, rtol=1e-4)
        last = run(5.0, locally_biased=biased)
        assert int(last.status) == long.status == 1
        np.testing.assert_allclose(last.x, long.x, rtol=1e-12)
        # 2 x³ - 16 x + a / 2 = 0: the derivative by a is -1 / (12 x² - 32).
        slope = fxflow.jacfwd(lambda a: run(a, **options).x)(5.0)
        x = np.asarray(found.x)
        np.testing.assert_allclose(slope, -0.5 / (6 * x**2 - 16), rtol=1e-6)


@pytest.mark.slow
def test_limits_and_a_known_value_end_it() -> None:
    def run(shift: Any, **options: Any) -> Any:
        return direct(
            lambda x: tang(x - shift), Bounds([-4.0, -4.5], [4.0, 3.5]), **options
        )

    few = run(0.0, maxfun=60)
    assert int(few.status) == 1 and 50 <= int(few.nfev) <= 64
    once = run(0.0, maxiter=1)
    assert int(once.nit) == 1 and int(once.nfev) == 5 and not bool(once.success)
    known = run(0.0, f_min=-78.3, f_min_rtol=1e-2)
    assert int(known.status) == 0
    assert float(known.fun) < -78.3 * 0.99 and int(known.nfev) < 150
    # Many at once are what each is alone.
    shifts = fnp.array([0.0, 0.2, 0.4])
    many = fxflow.jit(fxflow.vmap(lambda s: run(s, len_tol=1e-2)))(shifts)
    for i, shift in enumerate(shifts):
        alone = run(shift, len_tol=1e-2)
        np.testing.assert_allclose(many.x[i], alone.x, atol=1e-6)
        assert int(many.nfev[i]) == int(alone.nfev)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"direct: len_tol must be in \[0.0, 1.0\]"):
        direct(tang, BOX, len_tol=-1.0)
    with pytest.raises(ArgumentError, match="direct: bounds must be finite"):
        direct(tang, [(0.0, None)])
    with pytest.raises(ArgumentError, match="maxfun"):
        direct(tang, BOX, maxfun=0)
