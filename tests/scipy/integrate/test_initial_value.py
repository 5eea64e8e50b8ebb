"""Initial value problems beside SciPy's, closed forms and finite differences."""

import functools
import math
from typing import Any

import numpy as np
import pytest
import scipy.integrate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, CheckError, DtypeError, ShapeError, TreeError
from fxflow.scipy import integrate
from fxflow.scipy.integrate import odeint, solve_ivp

METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF")
TIMES = np.linspace(0.0, 4.0, 9)
START = np.array([2.0, 0.5])
TIGHT = {"rtol": 1e-6, "atol": 1e-9}


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


def prey(t: Any, y: Any, rate: Any = 1.3) -> Any:
    return [rate * y[0] * (1 - y[1]), y[1] * (y[0] - 1.0)]


def prey_slopes(t: Any, y: Any) -> Any:
    return [[1.3 * (1 - y[1]), -1.3 * y[0]], [y[1], y[0] - 1.0]]


def beside_scipy(
    method: str, fun: Any, jac: Any, span: Any, y0: Any, **kept: Any
) -> None:
    """Compares steps, states and numbers of calls with SciPy's."""
    if method in ("Radau", "BDF"):
        kept["jac"] = jac
    expected = want.solve_ivp(fun, span, y0, method=method, **kept)
    got = solve_ivp(fun, span, y0, method, max_steps=512, **kept)
    n = expected.t.size
    assert got.num_steps == n - 1 and got.success and got.status == 0
    np.testing.assert_allclose(got.t[:n], expected.t, 1e-6)
    np.testing.assert_allclose(got.t[n:], expected.t[-1])
    np.testing.assert_allclose(got.y[:, :n], expected.y, 1e-6, 1e-12)
    np.testing.assert_allclose(got.y[:, -1], expected.y[:, -1], 1e-6, 1e-12)
    counts = [int(v) for v in (got.nfev, got.njev, got.nlu)]
    assert counts == [expected.nfev, expected.njev, expected.nlu]


def test_steps_are_those_of_scipy() -> None:
    beside_scipy("RK45", prey, None, (0, 4), START, **TIGHT)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_steps_of_each_method_are_those_of_scipy(method: str) -> None:
    beside_scipy(method, prey, prey_slopes, (0, 4), START, rtol=1e-4, atol=1e-7)
    beside_scipy(
        *(method, prey, prey_slopes, (1, -1), START),
        first_step=0.01,
        max_step=0.1,
        rtol=1e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_dense_output_of_each_method(method: str) -> None:
    options = {"rtol": 1e-4, "atol": 1e-7, "method": method}
    for span in ((0, 4), (4, 0)):
        at = TIMES if span[0] == 0 else TIMES[::-1]
        jac = {"jac": prey_slopes} if method in ("Radau", "BDF") else {}
        expected = want.solve_ivp(
            prey, span, START, t_eval=at, dense_output=True, **options, **jac
        )
        got = solve_ivp(
            prey, span, START, t_eval=at, dense_output=True, max_steps=512, **options
        )
        assert got.sol is not None and got.y.shape == (2, 9)
        np.testing.assert_allclose(got.y, expected.y, 1e-5, 1e-9)
        beyond = np.array([-0.1, 0.3, 2.2, 4.1])
        np.testing.assert_allclose(got.sol(beyond), expected.sol(beyond), 1e-4, 1e-7)
        np.testing.assert_allclose(got.sol(1.5), expected.sol(1.5), 1e-5, 1e-9)
        assert got.sol.t_min == 0 and got.sol.t_max == 4


def end_of(method: str, adjoint: str, rate: Any, y0: Any, first: Any, last: Any) -> Any:
    times = fnp.stack([fnp.asarray(last)]) if adjoint == "continuous" else None
    found = solve_ivp(
        lambda t, y: [rate * y[0] * (1 - y[1]) + 0.1 * t, y[1] * (y[0] - 1.0)],
        *((first, last), y0, method, times),
        max_steps=256,
        adjoint=adjoint,
        rtol=1e-7,
        atol=1e-9,
    )
    return found.y[0, -1]


def check_derivatives(method: str, adjoint: str, tolerance: float) -> None:
    f = fxflow.jit(functools.partial(end_of, method, adjoint))
    at = (1.3, START, 0.1, 1.0)
    slopes = fxflow.jit(fxflow.grad(f, (0, 1, 2, 3)))(*at)
    h = 1e-4

    def moved(i: int, sign: int) -> Any:
        change = np.array([h, 0]) if i == 1 else h
        return f(*at[:i], at[i] + sign * change, *at[i + 1 :])

    differences = [(moved(i, 1) - moved(i, -1)) / (2 * h) for i in range(4)]
    got = [slopes[0], slopes[1][0], slopes[2], slopes[3]]
    np.testing.assert_allclose(got, differences, tolerance)


def test_derivatives_by_all_that_is_given() -> None:
    check_derivatives("RK23", "discrete", 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
@pytest.mark.parametrize("method", METHODS[1:])
def test_derivatives_of_each_method(method: str, adjoint: str) -> None:
    check_derivatives(method, adjoint, 3e-4 if method == "BDF" else 2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF"])
def test_second_derivatives_and_forward_mode(method: str) -> None:
    def f(rate: Any) -> Any:
        return end_of(method, "discrete", rate, START, 0.0, 1.0)

    slope = fxflow.jit(fxflow.grad(f))
    second = fxflow.jit(fxflow.hessian(f))(1.3)
    tolerance = 1e-2 if method == "BDF" else 1e-4
    np.testing.assert_allclose(second, (slope(1.301) - slope(1.299)) / 2e-3, tolerance)
    np.testing.assert_allclose(fxflow.jvp(f, (1.3,), (1.0,))[1], slope(1.3), 1e-9)


@pytest.mark.slow
def test_second_derivative_of_the_continuous_adjoint() -> None:
    def f(k: Any) -> Any:
        found = solve_ivp(
            lambda t, y: -k * y, (0.0, 1.0), np.ones(1), t_eval=np.array([0.5, 1.0]),
            adjoint="continuous", rtol=1e-8, atol=1e-10,
        )  # fmt: skip
        return found.y[0, -1]

    second = fxflow.grad(fxflow.grad(f))(0.7)
    np.testing.assert_allclose(second, math.exp(-0.7), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_each_problem_of_a_batch_has_its_own_steps(method: str) -> None:
    rates, starts = np.array([0.5, 1.3, 3.0]), np.stack([START, START / 2, START * 2])

    def solve(rate: Any, y0: Any) -> Any:
        return solve_ivp(
            prey, (0.0, 4.0), y0, method, args=(rate,), max_steps=256, **TIGHT
        )

    many = fxflow.jit(fxflow.vmap(solve))(rates, starts)
    for i in range(3):
        one = solve(rates[i], starts[i])
        assert many.num_steps[i] == one.num_steps and many.nfev[i] == one.nfev
        np.testing.assert_allclose(many.t[i], one.t, 1e-9)
        np.testing.assert_allclose(many.y[i], one.y, 1e-8)
    assert len(set(many.num_steps.tolist())) == 3

    def last(rate: Any, y0: Any) -> Any:
        return solve(rate, y0).y[0, -1]

    slopes = fxflow.jit(fxflow.vmap(fxflow.grad(last)))(rates, starts)
    each = [fxflow.grad(last)(rates[i], starts[i]) for i in range(3)]
    np.testing.assert_allclose(slopes, each, 1e-6)


# -- events ----------------------------------------------------------------------------


def ground(t: Any, y: Any, *args: Any) -> Any:
    return y[0]


def apex(t: Any, y: Any, *args: Any) -> Any:
    return y[1]


def with_attributes(function: Any, **attributes: Any) -> Any:
    def event(*args: Any) -> Any:
        return function(*args)

    vars(event).update(attributes)
    return event


LANDS = with_attributes(ground, terminal=True, direction=-1)


def flight(gravity: Any, speed: Any, **options: Any) -> Any:
    return solve_ivp(
        lambda t, y: [y[1], -gravity],
        *((0.0, 50.0), fnp.stack([0.0, speed])),
        **{"events": (LANDS, apex), "max_steps": 16, "max_events": 2, **options},
    )


@pytest.mark.slow
def test_a_terminal_event_ends_the_solution() -> None:
    got = flight(9.8, 10.0)
    assert got.status == 1 and got.num_events.tolist() == [1, 1]
    assert got.message == "A termination event occurred."
    lands, top = got.t_events
    np.testing.assert_allclose(lands, [20 / 9.8, np.nan], 1e-12)
    np.testing.assert_allclose(top, [10 / 9.8, np.nan], 1e-12)
    np.testing.assert_allclose(got.y_events[0][0], [0, -10], atol=1e-9)
    np.testing.assert_allclose(got.t[-1], 20 / 9.8)
    np.testing.assert_allclose(got.y[:, -1], [0, -10], atol=1e-9)

    def time(gravity: Any, speed: Any) -> Any:
        return flight(gravity, speed).t_events[0][0]

    slopes = fxflow.grad(time, (0, 1))(9.8, 10.0)
    np.testing.assert_allclose(slopes, [-20 / 9.8**2, 2 / 9.8], 1e-9)


@pytest.mark.slow
def test_second_derivative_of_the_time_of_an_event() -> None:
    second = fxflow.hessian(lambda g: flight(g, 10.0).t_events[0][0])(9.8)
    np.testing.assert_allclose(second, 40 / 9.8**3, 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_events_agree_with_scipy(method: str) -> None:
    def swing(t: Any, y: Any) -> Any:
        return [y[1], -y[0]]

    for events in (
        [ground, with_attributes(ground, direction=1)],
        [with_attributes(ground, direction=-1.0), apex],
        [with_attributes(ground, terminal=3), apex],
        [with_attributes(apex, terminal=2, direction=-1), ground],
        [with_attributes(lambda t, y: t - 2, terminal=True), apex],
    ):
        options: dict[str, Any] = {"events": events, "rtol": 1e-5, "atol": 1e-8}
        if method in ("Radau", "BDF"):
            options["jac"] = np.array([[0.0, 1.0], [-1.0, 0.0]])
        expected = want.solve_ivp(swing, (0.3, 20), [1.0, 0.2], method, **options)
        got = solve_ivp(
            *(swing, (0.3, 20.0), [1.0, 0.2], method, TIMES + 0.3),
            max_steps=512,
            **options,
        )
        assert got.status == expected.status
        for found, times, n in zip(got.t_events, expected.t_events, got.num_events):
            assert n == times.size and np.all(np.isnan(found[times.size :]))
            np.testing.assert_allclose(found[: times.size], times, 1e-4)
        late = expected.t[-1] < TIMES + 0.3
        np.testing.assert_array_equal(np.isnan(got.y[0]), late)


@pytest.mark.slow
def test_more_events_than_there_is_room_for_are_counted() -> None:
    def swing(t: Any, y: Any) -> Any:
        return [y[1], -y[0]]

    got = solve_ivp(
        *(swing, (0.0, 20.0), [1.0, 0.0], "DOP853"),
        events=ground,
        max_events=2,
        max_steps=64,
    )
    assert got.num_events.tolist() == [6] and got.t_events[0].shape == (2,)


# -- results ---------------------------------------------------------------------------


def test_no_room_for_steps_and_failures_are_said() -> None:
    short = solve_ivp(prey, (0.0, 40.0), START, t_eval=TIMES * 10, max_steps=8)
    assert short.status == -2 and not short.success and short.num_steps == 8
    assert "max_steps" in short.message
    assert np.isfinite(short.y[0, 0]) and np.isnan(short.y[0, -1])
    burst = solve_ivp(lambda t, y: y**2, (0.0, 2.0), [1.0], max_steps=512)
    assert burst.status == -1 and abs(burst.t[-1] - 1) < 1e-2
    error, _ = fxflow.checkify.checkify(
        lambda: solve_ivp(prey, (0.0, 40.0), START, max_steps=8).y
    )()
    with pytest.raises(CheckError, match="the end was not reached"):
        error.throw()


@pytest.mark.slow
def test_no_interval() -> None:
    got = solve_ivp(
        prey, (1.0, 1.0), START, t_eval=np.ones(1), dense_output=True, max_steps=4
    )
    assert got.status == 0 and got.num_steps == 0 and got.sol is not None
    np.testing.assert_array_equal(got.y[:, 0], START)
    np.testing.assert_array_equal(got.sol(1.0), START)


@pytest.mark.slow
def test_states_may_be_pytrees_complex_or_single() -> None:
    def slope(t: Any, y: Any, k: Any) -> Any:
        return {"x": y["v"], "v": -k["k"] * y["x"]}

    y0 = {"x": np.ones((2, 1)), "v": np.zeros((2, 1))}
    got = solve_ivp(
        slope, (0.0, 1.0), y0, t_eval=[0.5, 1.0], args=({"k": 4.0},), **TIGHT
    )
    assert got.y["x"].shape == (2, 1, 2)
    np.testing.assert_allclose(got.y["x"][1, 0], np.cos([1.0, 2.0]), 1e-5)
    for method in ("RK45", "BDF"):
        turned = solve_ivp(
            lambda t, y: 1j * y, (0.0, 1.0), np.array([1 + 0j]), method, **TIGHT
        )
        np.testing.assert_allclose(turned.y[0, -1], np.exp(1j), 1e-4)
    for adjoint in ("discrete", "continuous"):

        def real(w: Any, adjoint: str = adjoint) -> Any:
            found = solve_ivp(
                lambda t, y: 1j * w * y, (0.0, 1.0), np.array([1 + 0j]), t_eval=[1.0],
                adjoint=adjoint, **TIGHT,
            )  # fmt: skip
            return fnp.real(found.y[0, -1])

        np.testing.assert_allclose(fxflow.grad(real)(0.8), -math.sin(0.8), 1e-5)
    with pytest.raises(DtypeError, match="Radau"):
        solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), np.array([1 + 0j]), "Radau")
    for method in METHODS:
        single = solve_ivp(
            *(lambda t, y: -y, (0.0, 1.0), np.ones(2, np.float32), method), max_steps=64
        )
        assert single.y.dtype == np.float32 and single.status == 0
        np.testing.assert_allclose(single.y[:, -1], math.exp(-1), 5e-3)


def test_odeint_has_the_signature_of_scipy() -> None:
    def slope(y: Any, t: Any, k: Any) -> Any:
        return [y[1], -k * y[0]]

    got, info = odeint(
        *(slope, [1.0, 0.0], TIMES, (4.0,)), full_output=True, mxstep=512, method="RK45"
    )
    np.testing.assert_allclose(
        got, want.odeint(slope, [1.0, 0.0], TIMES, (4.0,)), atol=1e-6
    )
    assert info["status"] == 0 and info["nst"] > 20
    with pytest.raises(ArgumentError, match="tcrit"):
        odeint(slope, [1.0, 0.0], TIMES, (4.0,), tcrit=[1.0])


@pytest.mark.slow
def test_odeint_of_a_stiff_problem() -> None:
    def slope(y: Any, t: Any) -> Any:
        return [-1e4 * (y[0] - math.cos(0.5)) + y[1], -y[1]]

    def jac(y: Any, t: Any) -> Any:
        return np.array([[-1e4, 0.0], [1.0, -1.0]])

    got = odeint(slope, [0.0, 1.0], TIMES, Dfun=jac, col_deriv=True)
    expected = want.odeint(slope, [0.0, 1.0], TIMES)
    np.testing.assert_allclose(got, expected, 1e-5, 1e-7)


def test_bad_arguments_are_refused() -> None:
    good: Any = (prey, (0.0, 1.0), START)
    for message, changed in (
        ('method must be one of .*in place of "LSODA"', {"method": "LSODA"}),
        ("method must be one of", {"method": "Euler"}),
        ("adjoint must be", {"adjoint": "both"}),
        ("needs|give t_eval", {"adjoint": "continuous"}),
        ("max_steps must be at least 1", {"max_steps": 0}),
        ("rtol must be", {"rtol": -1.0}),
        ("first_step must be positive", {"first_step": 0.0}),
        ("max_step must be positive", {"max_step": -1.0}),
        ("t_eval must be within t_span", {"t_eval": [2.0]}),
        ("t_eval must be in the order", {"t_eval": [0.5, 0.1]}),
        ("args must be a tuple", {"args": 1.3}),
        ("an event must be a function", {"events": [3]}),
        ("terminal", {"events": with_attributes(ground, terminal=-1)}),
    ):
        with pytest.raises(ArgumentError, match=message):
            solve_ivp(*good, **changed)
    with pytest.raises(ArgumentError, match="y0 must be finite"):
        solve_ivp(prey, (0.0, 1.0), np.array([1.0, np.nan]))
    with pytest.raises(ArgumentError, match="t_span must be two times"):
        solve_ivp(prey, (0.0, 1.0, 2.0), START)
    with pytest.raises(ShapeError, match=r"fun must return what y0 is, f64\[2\]"):
        solve_ivp(lambda t, y: y[:1], (0.0, 1.0), START)
    with pytest.raises(DtypeError, match="y0 must be complex"):
        solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), START)
    with pytest.raises(TreeError, match="structure of y0"):
        solve_ivp(lambda t, y: {"b": y["a"]}, (0.0, 1.0), {"a": START})
    with pytest.raises(ShapeError, match="atol must be a number or"):
        solve_ivp(*good, atol=np.ones(3))
    with pytest.raises(ShapeError, match="an event must return a number"):
        solve_ivp(*good, events=lambda t, y: y)
    with pytest.raises(ShapeError, match="jac must be or return"):
        solve_ivp(*good, "BDF", jac=np.eye(3))
    assert integrate.OdeResult._fields[:2] == ("t", "y")
