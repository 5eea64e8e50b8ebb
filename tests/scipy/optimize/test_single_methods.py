"""SciPy's functions of one method: results beside SciPy's, arguments, derivatives."""

import inspect
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import optimize


def bowl(x: Any, a: float = 1.0) -> Any:
    return (x[0] - a) ** 2 + 2 * (x[1] + 0.5) ** 2 + (x[0] * x[1]) ** 2


def slope(x: Any, a: float = 1.0) -> Any:
    more = 2 * x[0] * x[1] ** 2, 2 * x[0] ** 2 * x[1]
    return [2 * (x[0] - a) + more[0], 4 * (x[1] + 0.5) + more[1]]


START = [0.3, 0.2]
NEAR = {"atol": 2e-4, "rtol": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        *(("fmin", 2e-4), ("fmin_powell", 2e-3), ("fmin_bfgs", 1e-5)),
        *(("fmin_cg", 1e-5), ("fmin_ncg", 1e-4)),
    ],
)
def test_minimizers_find_what_scipy_finds(name: str, tolerance: float) -> None:
    given = [slope] if name == "fmin_ncg" else []
    want = getattr(scipy.optimize, name)(bowl, START, *given, args=(1.5,), disp=False)
    with fxflow.config.override(x64=True):
        found, whole = getattr(optimize, name)(
            bowl, START, args=(1.5,), disp=False, full_output=True
        )
        np.testing.assert_allclose(found, want, atol=tolerance)
        np.testing.assert_allclose(whole.fun, bowl(want, 1.5), atol=1e-6)
        assert bool(whole.success)


@pytest.mark.slow
def test_bounds_and_constraints_are_those_of_scipy() -> None:
    box = [(0.0, 0.6), (-0.2, 1.0)]
    both = lambda x: (bowl(x), fnp.stack(slope(x)))
    with fxflow.config.override(x64=True):
        want, value, _ = scipy.optimize.fmin_l_bfgs_b(bowl, START, slope, bounds=box)
        for given in ((bowl, START, None, (), True), (both, START)):
            x, least, whole = optimize.fmin_l_bfgs_b(*given, bounds=box)
            np.testing.assert_allclose(x, want, **NEAR)
            np.testing.assert_allclose(least, value, **NEAR)
            assert bool(whole.success)
        x, calls, status = optimize.fmin_tnc(bowl, START, approx_grad=True, bounds=box)
        np.testing.assert_allclose(x, want, **NEAR)
        assert int(calls) > 0 and int(status) == 0
        line = lambda x: x[0] + x[1] - 1
        want = scipy.optimize.fmin_slsqp(bowl, START, eqcons=[line], disp=False)
        rows = {"f_eqcons": lambda x: fnp.stack([line(x)])}
        for given in ({"eqcons": [line]}, rows):
            x = optimize.fmin_slsqp(bowl, START, **given, disp=0)
            np.testing.assert_allclose(x, want, **NEAR)


@pytest.mark.slow
def test_functions_of_one_number() -> None:
    wave = lambda x, a: (x - a) ** 2 - fnp.cos(x)
    same = lambda x, a: (x - a) ** 2 - np.cos(x)
    with fxflow.config.override(x64=True):
        for name in ("brent", "golden"):
            want = getattr(scipy.optimize, name)(same, (0.7,))
            found = getattr(optimize, name)(wave, 0.7)
            np.testing.assert_allclose(found, want, atol=1e-7)
        want = scipy.optimize.fminbound(same, 0.5, 2.0, (0.7,))
        found, whole = optimize.fminbound(wave, 0.5, 2.0, (0.7,), full_output=True)
        np.testing.assert_allclose(found, want, atol=1e-4)
        assert bool(whole.success)
        change = fxflow.grad(lambda a: optimize.brent(wave, (a,)))(0.7)
        at = float(optimize.brent(wave, (0.7,)))
        np.testing.assert_allclose(change, 2 / (2 + np.cos(at)), rtol=1e-6)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="bounds must be"):
        optimize.fmin_l_bfgs_b(bowl, START, approx_grad=True, bounds=[(0, 1)])


def test_arguments_are_in_the_order_of_scipy() -> None:
    skipped = {"kw"}
    for name in (
        *("fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg"),
        *("fmin_powell", "fmin_slsqp", "fmin_tnc", "fminbound", "brent", "golden"),
        *("anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing"),
        *("linearmixing", "newton_krylov"),
    ):
        want = inspect.signature(getattr(scipy.optimize, name)).parameters
        ours = inspect.signature(getattr(optimize, name)).parameters
        assert [k for k in want if k not in skipped] == list(ours), name


@pytest.mark.slow
def test_options_that_scipy_has() -> None:
    with fxflow.config.override(x64=True):
        point, points = optimize.fmin_bfgs(bowl, START, retall=True)
        _, want = scipy.optimize.fmin_bfgs(bowl, START, retall=True, disp=False)
        np.testing.assert_allclose(points[0], want[0])
        np.testing.assert_allclose(points[-1], point)
        with pytest.raises(ConcretizationError, match="fmin_bfgs: retall=True"):
            fxflow.jit(lambda x: optimize.fmin_bfgs(bowl, x, retall=True))(
                fnp.asarray(START)
            )
        inverse = np.diag([0.4, 0.2])
        few, whole = optimize.fmin_bfgs(
            bowl, START, hess_inv0=inverse, xrtol=1e-2, full_output=True
        )
        assert int(whole.status) == 0
        np.testing.assert_allclose(few, point, atol=1e-2)
        turned = optimize.fmin_powell(bowl, START, direc=[[1.0, 1.0], [1.0, -1.0]])
        np.testing.assert_allclose(turned, point, atol=1e-3)
        with pytest.raises(ShapeError, match=r"direc must be float\[2, 2\]"):
            optimize.fmin_powell(bowl, START, direc=[1.0])
        with pytest.raises(ArgumentError, match="0 < c1 < c2 < 1"):
            optimize.fmin_cg(bowl, START, c1=0.9)


def test_cobyla_takes_one_function_or_several() -> None:
    with pytest.raises(ArgumentError, match="fmin_cobyla: cons must be a function"):
        optimize.fmin_cobyla(bowl, START, [1.0])
