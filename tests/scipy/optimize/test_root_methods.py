"""SciPy's functions of one method for roots: results beside SciPy's, arguments."""

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import optimize


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing"),
        *("linearmixing", "newton_krylov"),
    ],
)
def test_roots_are_those_of_scipy(name: str) -> None:
    both = lambda x, cos: [cos(x[0]) - x[0], 0.5 * cos(x[1] + x[0]) - x[1]]
    want = getattr(scipy.optimize, name)(lambda x: both(x, np.cos), [0.5, 0.2])
    with fxflow.config.override(x64=True):
        find = getattr(optimize, name)
        found = find(lambda x: fnp.stack(both(x, fnp.cos)), [0.5, 0.2], f_tol=1e-9)
        np.testing.assert_allclose(found, want, atol=2e-5)
        few = find(lambda x: fnp.stack(both(x, fnp.cos)), [0.5, 0.2], 1)
        assert float(abs(few - found).max()) > 1e-6


@pytest.mark.slow
def test_tolerances_of_roots() -> None:
    wave = lambda x: fnp.cos(x) - x
    with fxflow.config.override(x64=True):
        rough = optimize.broyden1(wave, [0.5, 1.0], f_tol=1.0, x_tol=1e-2, alpha=0.5)
        fine = optimize.broyden1(wave, [0.5, 1.0], f_tol=1.0, f_rtol=1e-9)
        size = lambda x: float(abs(wave(x)).max())
        assert 1e-9 < size(rough) < 1e-2 and size(fine) < 1e-9
        other = optimize.anderson(
            wave, [0.5, 1.0], f_tol=1e-6, line_search=None, tol_norm=fnp.linalg.norm
        )
        assert size(other) < 1e-6
        assert (
            size(optimize.newton_krylov(wave, [0.5, 1.0], inner_M=-0.6 * np.eye(2)))
            < 1e-5
        )


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(
        ArgumentError, match='broyden1: line_search must be "armijo" or None'
    ):
        optimize.broyden1(lambda x: x, [1.0], line_search="wolfe")
    with pytest.raises(ArgumentError, match="newton_krylov: method must be"):
        optimize.newton_krylov(lambda x: x, [1.0], method="cg")
