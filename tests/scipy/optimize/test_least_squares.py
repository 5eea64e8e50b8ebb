"""Least squares and fits: certified results, SciPy's, derivatives, bad arguments."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import optimize
from fxflow.scipy.optimize import curve_fit, least_squares, lsq_linear, nnls

RNG = np.random.default_rng(0)
# Misra1a, of NIST's Statistical Reference Datasets, with its certified results.
MISRA_X = np.array(
    [77.6, 114.9, 141.1, 190.8, 239.9, 289, 332.8, 378.4, 434.8, 477.3, 536.8, 593.1]
    + [689.1, 760]
)
MISRA_Y = np.array(
    [10.07, 14.73, 17.94, 23.93, 29.61, 35.18, 40.02, 44.82, 50.76, 55.05, 61.01, 66.4]
    + [75.47, 81.78]
)
MISRA = [2.3894212918e2, 5.5015643181e-4]
MISRA_DEVIATIONS = [2.7070075241, 7.2668688436e-6]


def saturation(x: Any, a: Any, b: Any) -> Any:
    return a * (1 - fnp.exp(-b * x))


def valley(x: Any) -> Any:
    return fnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def test_certified_parameters_and_deviations() -> None:
    with fxflow.config.override(x64=True):
        run = fxflow.jit(lambda p: curve_fit(saturation, MISRA_X, MISRA_Y, p))
        for start in ([500.0, 1e-4], [250.0, 5e-4]):
            found, covariance = run(np.array(start))
            np.testing.assert_allclose(found, MISRA, rtol=1e-7)
            deviations = np.sqrt(np.diag(np.asarray(covariance)))
            np.testing.assert_allclose(deviations, MISRA_DEVIATIONS, rtol=1e-6)


# -- the data of other certified fits, each with a start and its result ----------------

# BoxBOD: two exponentials that SciPy's start may miss; of higher difficulty.
BOXBOD = (
    np.array([1.0, 2, 3, 5, 7, 10]),
    np.array([109.0, 149, 149, 191, 213, 224]),
    [100.0, 0.75],
    [2.1380940889e2, 5.4723748542e-1],
)
# Rat42: a logistic curve.
RAT42 = (
    np.array([9.0, 14, 21, 28, 42, 57, 63, 70, 79]),
    np.array([8.93, 10.8, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08]),
    [100.0, 1.0, 0.1],
    [7.2462237576e1, 2.6180768402, 6.7359200066e-2],
)


@pytest.mark.slow
def test_certified_parameters_of_other_curves() -> None:
    logistic = lambda x, a, b, c: a / (1 + fnp.exp(b - c * x))
    with fxflow.config.override(x64=True):
        for f, data in ((saturation, BOXBOD), (logistic, RAT42)):
            x, y, start, want = data
            found, _ = curve_fit(f, x, y, start, ftol=1e-15)
            np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_robust_losses_match_scipy(loss: str) -> None:
    t = np.linspace(0, 10, 20)
    y = 2 * np.exp(-t / 2) + 0.1 * np.cos(7 * t)
    y[3] += 3

    def residuals(p: Any, exp: Any = fnp.exp) -> Any:
        return p[0] * exp(-p[1] * t) - y

    with fxflow.config.override(x64=True):
        start = np.array([1.8, 0.4])
        given: dict[str, Any] = {"loss": loss, "f_scale": 0.1}
        found = least_squares(residuals, start, **given)
        want = scipy.optimize.least_squares(residuals, start, args=(np.exp,), **given)
        np.testing.assert_allclose(found.x, want.x, rtol=1e-3)
        np.testing.assert_allclose(found.cost, want.cost, rtol=1e-6)
        assert bool(found.success) and "Converged" in found.message


@pytest.mark.slow
def test_a_loss_of_the_user_and_scales() -> None:
    with fxflow.config.override(x64=True):

        def squares(z: Any) -> Any:
            return fnp.stack([z, fnp.ones_like(z), fnp.zeros_like(z)])

        start = np.array([-1.2, 1.0])
        for given in ({"loss": squares}, {"x_scale": [1.0, 2.0]}, {"method": "lm"}):
            found = least_squares(valley, start, **given)
            np.testing.assert_allclose(found.x, [1, 1], atol=1e-6)


@pytest.mark.slow
def test_bounds_match_scipy_and_are_marked() -> None:
    with fxflow.config.override(x64=True):
        start, bounds = np.array([-2.0, 2.0]), ([-3, 1.5], [3.0, 3.0])
        found = least_squares(valley, start, bounds=bounds)
        want = scipy.optimize.least_squares(
            lambda x: np.asarray(valley(x)), start, bounds=bounds
        )
        np.testing.assert_allclose(found.x, want.x, atol=1e-5)
        assert found.active_mask.tolist() == [0, -1]
        few = least_squares(valley, start, max_nfev=2)
        assert int(few.status) == 0 and not few.success


@pytest.mark.slow
def test_covariances_match_scipy() -> None:
    x = np.linspace(0, 1, 7)
    y = 1 + 2 * x + 0.1 * np.cos(9 * x)
    line = lambda x, a, b: a * x + b
    matrix = np.diag(x + 1) + 0.2
    with fxflow.config.override(x64=True):
        for sigma in (None, x + 1, matrix):
            for absolute in (False, True):
                given: dict[str, Any] = {"sigma": sigma, "absolute_sigma": absolute}
                ours = curve_fit(line, x, y, **given)
                theirs = scipy.optimize.curve_fit(line, x, y, **given)
                for a, b in zip(ours, theirs, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.slow
def test_derivatives_of_a_fit_and_many_fits_at_once() -> None:
    with fxflow.config.override(x64=True):

        def fitted(scale: Any) -> Any:
            found, covariance = curve_fit(
                saturation, MISRA_X, scale * MISRA_Y, np.array(MISRA)
            )
            return fnp.stack([found[0], covariance[0, 0]])

        # The parameter is proportional to the data, its variance to the square.
        want = [MISRA[0], 2 * MISRA_DEVIATIONS[0] ** 2]
        slope = fxflow.jit(fxflow.jacrev(fitted))(1.0)
        np.testing.assert_allclose(slope, want, rtol=1e-6)
        many = fxflow.vmap(fitted)(np.array([1.0, 2.0]))
        np.testing.assert_allclose(many[1], fitted(2.0), rtol=1e-6)


@pytest.mark.slow
def test_parameters_that_the_data_does_not_determine() -> None:
    x = np.ones(5, "f")
    _, covariance = curve_fit(lambda x, a, b: a * x + b * x, x, x)
    assert np.isinf(np.asarray(covariance)).all()
    lost, _ = curve_fit(lambda x, a: a * x, x, x * np.nan, check_finite=False)
    assert np.isnan(np.asarray(lost)).all()


def test_linear_problems_match_scipy_and_have_derivatives() -> None:
    A, b = RNG.normal(size=(8, 5)), RNG.normal(size=8)
    with fxflow.config.override(x64=True):
        ours, theirs = nnls(A, b), scipy.optimize.nnls(A, b)
        for a, w in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, w, atol=1e-9)
        found = lsq_linear(A, b, (-0.1, 0.3))
        want = scipy.optimize.lsq_linear(A, b, (-0.1, 0.3))
        np.testing.assert_allclose(found.x, want.x, atol=1e-8)
        free = np.asarray(ours[0]) > 0
        slope = fxflow.grad(lambda b: nnls(A, b)[0].sum())(fnp.array(b))
        np.testing.assert_allclose(slope, np.linalg.pinv(A[:, free]).sum(0), atol=1e-8)


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = np.ones(2)
    for wrong in (
        {"method": "newton"},
        {"loss": "l1"},
        {"method": "lm", "bounds": (0.0, 2.0)},
        {"method": "lm", "loss": "huber"},
        {"bounds": 3.0},
        {"bounds": (2.0, 1.0)},
        {"jac": "exact"},
        {"x_scale": "auto"},
    ):
        with pytest.raises(ArgumentError):
            least_squares(valley, x, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="at least as many"):
        least_squares(lambda x: x[:1], x, method="lm")
    with pytest.raises(ShapeError, match="must return float"):
        least_squares(lambda x: fnp.ones((2, 2)), x)
    with pytest.raises(ArgumentError, match="pass p0"):
        curve_fit(lambda x, *p: x, x, x)
    with pytest.raises(ArgumentError, match="at least one parameter"):
        curve_fit(lambda x: x, x, x)
    with pytest.raises(ShapeError, match="as ydata has"):
        curve_fit(lambda x, a: a, x, x)
    with pytest.raises(ShapeError, match="sigma must be"):
        curve_fit(lambda x, a: a * x, x, x, sigma=np.ones(3))
    with pytest.raises(DtypeError, match="must be real"):
        curve_fit(lambda x, a: a * x, x, x * 1j)
    with pytest.raises(ShapeError, match=r"A must be float\[m, n\]"):
        nnls(x, x)
    with pytest.raises(ArgumentError, match="bvls"):
        lsq_linear(np.ones((2, 2)), x, method="lm")


# -- unknowns that are not negative ----------------------------------------------------


@pytest.mark.parametrize("shape", [(8, 5), (12, 12), (30, 7), (5, 8), (4, 1)])
def test_nnls_of_many_problems_is_that_of_scipy(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(shape))
    A, b = rng.normal(size=(40, *shape)), rng.normal(size=(40, shape[0]))
    with fxflow.config.override(x64=True):
        x, norm = fxflow.jit(fxflow.vmap(optimize.nnls))(A, b)
    want = [scipy.optimize.nnls(*pair) for pair in zip(A, b, strict=True)]
    np.testing.assert_allclose(norm, [w[1] for w in want], 1e-9, 1e-9)
    assert np.min(x) >= 0
    if shape[0] >= shape[1]:
        np.testing.assert_allclose(x, [w[0] for w in want], 1e-8, 1e-10)


def test_nnls_of_columns_that_depend_or_differ_in_size() -> None:
    rng = np.random.default_rng(3)
    A, b = rng.normal(size=(8, 5)), rng.normal(size=8)
    want, norm = scipy.optimize.nnls(A, b)
    with fxflow.config.override(x64=True):
        for scale in (1e-30, 1e30, np.array([1e-10, 1, 1e5, 1e10, 1])):
            got = optimize.nnls(A * scale, b)[0] * scale
            np.testing.assert_allclose(got, want, 1e-10, 1e-12)
        double = np.concatenate([A, A[:, ::-1]], 1)
        assert float(optimize.nnls(double, b)[1]) == pytest.approx(norm)
        # The normal equations of this matrix have a condition of 1e16.
        ill, y = np.vander(np.linspace(0, 1, 30), 12), np.exp(np.linspace(0, 1, 30))
        assert float(optimize.nnls(ill, y)[1]) < 1e-7


def test_nnls_of_nothing_and_of_nan() -> None:
    x, norm = optimize.nnls(np.zeros((3, 2)), np.ones(3))
    np.testing.assert_array_equal(x, 0)
    assert float(norm) == pytest.approx(3**0.5)
    assert optimize.nnls(np.zeros((3, 0)), np.ones(3))[0].shape == (0,)
    assert np.isnan(np.asarray(optimize.nnls(np.full((2, 1), np.nan), [1, 1])[0])).all()


def test_nnls_has_derivatives() -> None:
    rng = np.random.default_rng(4)
    A, b, move = rng.normal(size=(8, 5)), rng.normal(size=8), rng.normal(size=(8, 5))
    theirs = lambda t: scipy.optimize.nnls(A + t * move, b)[0].sum()
    with fxflow.config.override(x64=True):
        ours = lambda t: fnp.sum(optimize.nnls(A + t * move, b)[0])
        h = 1e-6
        want = (theirs(h) - theirs(-h)) / (2 * h)
        assert float(fxflow.grad(ours)(0.0)) == pytest.approx(want, rel=1e-6)


# -- what data may be ------------------------------------------------------------------

X, Y = np.linspace(0, 1, 7), np.array([1.0, 1.3, 1.9, 2.1, 2.2, 2.9, 3.1])


def line(x: Any, a: Any, b: Any) -> Any:
    return a * x + b


def test_curve_fit_takes_lists() -> None:
    found, covariance = optimize.curve_fit(line, list(X), list(Y), sigma=[2.0] * 7)
    want = scipy.optimize.curve_fit(line, X, Y, sigma=[2.0] * 7)
    np.testing.assert_allclose(found, want[0], 1e-5)
    np.testing.assert_allclose(covariance, want[1], 1e-4)
    np.testing.assert_allclose(optimize.nnls([[1, 0], [1, 1]], [2, 1])[0], [1.5, 0])
    got = optimize.lsq_linear([[1, 0], [1, 1]], [2, 1], bounds=([0, 0], [1.2, 1])).x
    np.testing.assert_allclose(got, [1.2, 0], 1e-5, 1e-6)


@pytest.mark.parametrize("sigma", [None, np.linspace(1, 2, 7), np.diag(X + 1) + 0.1])
def test_curve_fit_leaves_out_nan(sigma: Any) -> None:
    """As SciPy, and compiled, where SciPy's shapes would depend on the values."""
    x, y = X.copy(), Y.copy()
    x[1], y[4] = np.nan, np.nan
    want = scipy.optimize.curve_fit(line, x, y, sigma=sigma, nan_policy="omit")
    with fxflow.config.override(x64=True):
        fit = lambda x, y: optimize.curve_fit(
            line, x, y, sigma=sigma, nan_policy="omit"
        )
        for run in (fit, fxflow.jit(fit)):
            found, covariance = run(x, y)
            np.testing.assert_allclose(found, want[0], 1e-6)
            np.testing.assert_allclose(covariance, want[1], 1e-6)
        slope = fxflow.grad(lambda y: fnp.sum(fit(x, y)[0]))(y)
        assert np.isfinite(np.asarray(slope)).all()
        assert np.asarray(slope)[4] == 0


def test_curve_fit_refuses_data_that_is_not_finite() -> None:
    bad = np.where(X == 0.5, np.nan, Y)
    with pytest.raises(ArgumentError, match="ydata must be finite"):
        optimize.curve_fit(line, X, bad)
    with pytest.raises(ArgumentError, match="xdata must be finite"):
        optimize.curve_fit(line, bad, Y)
    with pytest.raises(ArgumentError, match="ydata must be without nan"):
        optimize.curve_fit(line, X, bad, nan_policy="raise")
    with pytest.raises(ArgumentError, match="nan_policy must be"):
        optimize.curve_fit(line, X, Y, nan_policy="drop")
    with pytest.raises(ShapeError, match="ydata must have elements"):
        optimize.curve_fit(line, [], [])
    found, _ = optimize.curve_fit(line, X, bad, check_finite=False)
    assert np.isnan(np.asarray(found)).all()


def test_starts_outside_the_bounds_are_refused() -> None:
    with pytest.raises(ArgumentError, match="p0 must be within the bounds"):
        optimize.curve_fit(line, X, Y, p0=[5, 5], bounds=(0, 3))
    with pytest.raises(ArgumentError, match="x0 must be within the bounds"):
        optimize.least_squares(lambda x: x, [5.0], bounds=(0, 3))
    # A traced one is moved.
    run = fxflow.jit(lambda x: optimize.least_squares(lambda x: x, x, bounds=(0, 3)).x)
    np.testing.assert_allclose(run(np.array([5.0])), 0, atol=1e-5)


def test_callbacks_see_each_iteration() -> None:
    seen: list[float] = []
    optimize.least_squares(
        lambda x: x - 2, [5.0], callback=lambda x: seen.append(float(x[0]))
    )
    fxflow.effects_barrier()
    assert seen and seen[-1] == pytest.approx(2, abs=1e-3)


def test_leastsq_has_the_covariance_of_scipy() -> None:
    t = np.linspace(0, 1, 8)
    y = 2 * np.exp(-3 * t) + 0.01 * np.cos(20 * t)
    model = lambda m: lambda p, t, y: p[0] * m.exp(-p[1] * t) - y
    with fxflow.config.override(x64=True):
        x, covariance, more, status = optimize.leastsq(
            model(fnp), [1.0, 1.0], (t, y), full_output=True
        )
        want = scipy.optimize.leastsq(model(np), [1.0, 1.0], (t, y), full_output=True)
        np.testing.assert_allclose(x, want[0], 1e-6)
        np.testing.assert_allclose(covariance, want[1], 1e-5)
        assert int(status) in (1, 2, 3, 4) and bool(more.success)
        columns = lambda p, t, y: fxflow.jacfwd(model(fnp))(p, t, y).T
        again, status = optimize.leastsq(
            model(fnp), [1.0, 1.0], (t, y), columns, col_deriv=True
        )
        np.testing.assert_allclose(again, x, 1e-7)
        scaled, _ = optimize.leastsq(model(fnp), [1.0, 1.0], (t, y), diag=[9.0, 0.1])
        np.testing.assert_allclose(scaled, x, 1e-6)
    with pytest.raises(ArgumentError, match="at least as"):
        optimize.leastsq(lambda x: x[:1], [1.0, 2.0])


def test_many_problems_without_bounds_under_jit() -> None:
    # The default bounds are known there, too.
    run = fxflow.jit(
        fxflow.vmap(lambda b: optimize.leastsq(lambda x: x**2 - b, [1.0])[0])
    )
    np.testing.assert_allclose(run(np.array([[4.0], [9.0]])), [[2], [3]], 1e-4)
    with pytest.raises(ArgumentError, match="takes no bounds"):
        fxflow.jit(
            lambda low: (
                least_squares(lambda x: x, [1.0], bounds=(low, 9), method="lm").x
            )
        )(0.0)
