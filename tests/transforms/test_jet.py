"""`jet` beside nested derivatives, and beside JAX's numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jet, lax, nn
from fxflow.errors import ArgumentError, NotDifferentiableError, ShapeError, TreeError

A = np.array([[0.5, -1.0, 0.2], [0.1, 0.3, 0.7], [-0.4, 0.6, 1.5]])
SPD = 5 * np.eye(3)
X = np.array([0.3, -0.7, 1.1])
SERIES = [
    np.array([1.0, 0.5, -0.25]),
    np.array([0.2, 0.0, 1.0]),
    np.array([-0.5, 0.3, 0.1]),
]


@pytest.fixture(autouse=True)
def wide():
    with fxflow.config.override(x64=True):
        yield


def nested(function, x, series):
    """The derivatives along the curve, each by `jvp` of the one before."""

    def along(t):
        powers = [t**k / math.factorial(k) for k in range(1, len(series) + 1)]
        return function(x + sum(p * s for p, s in zip(powers, series, strict=True)))

    def derived(g):
        return lambda t: fxflow.jvp(g, (t,), (fnp.ones_like(t),))[1]

    found = []
    for _ in series:
        along = derived(along)
        found.append(along(fnp.float64(0.0)))
    return found


@fxflow.custom_jvp
def with_rule(x):
    return fnp.sin(x) * x


@with_rule.defjvp
def _rule(primals, tangents):
    (x,), (t,) = primals, tangents
    return with_rule(x), t * (fnp.cos(x) * x + fnp.sin(x))


def looped(x):
    return lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, fnp.sin(c[1]) * x), (0, x)
    )[1]


def scanned(x):
    return lax.scan(lambda c, v: (c * v + fnp.sin(c), c * c), x[0], x)


FUNCTIONS = {
    "sin": fnp.sin,
    "tan": fnp.tan,
    "pow": lambda x: (2 + x * x) ** x,
    "cube": lambda x: x**3,
    "quotient": lambda x: fnp.exp(x) / (3 + x),
    "roots": lambda x: fnp.sqrt(2 + x * x) - fnp.cbrt(5 + x),
    "erf": lambda x: lax.erf_inv(0.9 * lax.erf(x)),
    "gamma": lambda x: lax.lgamma(2 + x * x) + lax.digamma(2 + x),
    "atan2": lambda x: fnp.arctan2(x, 1 + x * x),
    "complex": lambda x: fnp.abs(fnp.exp(1j * x) + x),
    "pieces": lambda x: fnp.where(x > 0, x * x, fnp.floor(x) * fnp.abs(x)) % 0.7,
    "product": lambda x: fnp.sin(x) @ A @ fnp.cos(x),
    "softmax": nn.softmax,
    "relu": nn.relu,
    "maximum": lambda x: fnp.max(x * x) + fnp.prod(x),
    "sort": lambda x: fnp.sort(fnp.sin(3 * x)),
    "top_k": lambda x: lax.top_k(fnp.sin(x), 2)[0],
    "cumsum": lambda x: fnp.cumsum(x * x) + lax.cummax(fnp.sin(x)),
    "cumprod": lambda x: fnp.cumprod(x) * lax.cumlogsumexp(x),
    "gather": lambda x: (x * x)[fnp.array([2, 0])],
    "scatter": lambda x: x.at[1].add(x[0] ** 2).at[0].multiply(x[2]),
    "inverse": lambda x: fnp.linalg.inv(fnp.outer(x, x) + SPD),
    "cholesky": lambda x: fnp.linalg.cholesky(fnp.outer(x, x) + SPD),
    "eigh": lambda x: fnp.linalg.eigh(A + A.T + fnp.diag(x))[0],
    "fft": lambda x: fnp.fft.fft(x * x).real,
    "convolve": lambda x: fnp.convolve(x, x * x),
    "scan": lambda x: scanned(x)[1],
    "while": looped,
    "cond": lambda x: lax.cond(x[0] > 0, fnp.sin, lambda y: y * y, x),
    "rows": lambda x: fxflow.vmap(
        lambda v: lax.cond(v > 0, fnp.sin, lambda u: u * u, v)
    )(x),
    "jit": fxflow.jit(lambda x: fnp.sin(x) * fnp.exp(x)),
    "checkpoint": fxflow.checkpoint(lambda x: fnp.sin(x) * fnp.exp(x)),
    "custom_jvp": with_rule,
    "grad": fxflow.grad(lambda x: fnp.sum(fnp.sin(x) * x)),
    "linear_solve": lambda x: lax.custom_linear_solve(
        lambda v: A @ v + 5 * v, x * x, lambda _, b: fnp.linalg.solve(A + SPD, b)
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_beside_nested_derivatives(name):
    function = FUNCTIONS[name]
    rng = np.random.default_rng(len(name) + sum(map(ord, name)))
    order = int(rng.integers(1, 6))
    series = [rng.normal(size=3) for _ in range(order)]
    # Nested derivatives of loops compile one program each: three orders serve.
    series = series[:3] if name in ("scan", "while", "jit") else series
    x = fnp.asarray(X)
    out, found = jet(function, (x,), (series,))
    np.testing.assert_allclose(out, function(x), rtol=1e-12)
    for got, want in zip(found, nested(function, x, series), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_series_of_numbers_agree_with_nested_derivatives(order):
    def function(x):
        return fnp.tanh(x) * fnp.log(2 + x * x)

    series = list(np.random.default_rng(order).normal(size=order))
    found = jet(function, (0.5,), (series,))[1]
    assert all(type(f.shape) is tuple and f.shape == () for f in found)
    np.testing.assert_allclose(found, nested(function, 0.5, series), rtol=1e-9)


# What JAX 0.10.2 gives.
JAX = {
    "exp": (
        fnp.exp,
        [
            [1.349858808, 0.248292652, -0.751041506],
            [1.619830569, 0.124146326, 3.1919264],
            [1.484844688, 0.211048754, -1.99964801],
        ],
    ),
    "tanh": (
        fnp.tanh,
        [
            [0.915136962, 0.317369795, -0.089800329],
            [-0.350154486, 0.191808078, 0.323258778],
            [-2.141783714, 0.205620912, 0.456876651],
        ],
    ),
    "mlp": (
        lambda x: fnp.tanh(A[:2] @ x) ** 2,
        [
            [-0.029743029, 0.057165984],
            [0.176819783, 0.550068868],
            [-0.28574634, 0.119086521],
        ],
    ),
    "softmax": (
        nn.softmax,
        [
            [0.229686493, 0.033309017, -0.26299551],
            [-0.029460952, -0.090216225, 0.119677178],
            [-0.36219887, -0.004497412, 0.366696281],
        ],
    ),
    "logsumexp": (nn.logsumexp, [0.174639876, 0.98708492, -0.585101451]),
}


@pytest.mark.parametrize("name", JAX)
def test_beside_jax(name):
    function, want = JAX[name]
    found = jet(function, (X,), (SERIES,))[1]
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got, expected, atol=2e-9)


def test_taylor_coefficients():
    _, found = jet(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],), factorial_scaled=False)
    assert [float(f) for f in found] == [12.0, 18.0, 13.0]
    _, found = jet(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],))
    assert [float(f) for f in found] == [12.0, 24.0, 42.0]


def test_pytrees():
    def function(p, y):
        return {"out": p["a"] * y, "same": y, "const": 1.0, "none": None}

    given = {"a": [1.0, 0.0]}
    out, found = jet(function, ({"a": 3.0}, fnp.ones(2)), (given, fnp.ones((2, 2))))
    assert out["none"] is found["none"] is None
    assert [f.tolist() for f in found["out"]] == [[4.0, 4.0], [5.0, 5.0]]
    assert [f.tolist() for f in found["same"]] == [[1.0, 1.0]] * 2
    assert [float(f) for f in found["const"]] == [0.0, 0.0]
    assert jet(lambda x: x, (3.0,), ([],)) == (3.0, [])


def test_integers_have_no_derivatives():
    out, found = jet(lambda n, x: (n * 2, x**n), (3, 2.0), ([0, 0], [1.0, 0.0]))
    assert int(out[0]) == 6
    assert all(f.dtype == fxflow.float0 for f in found[0])
    assert [float(f) for f in found[1]] == [12.0, 12.0]


def test_weak_types_and_small_dtypes():
    x = fnp.asarray(0.5, "bfloat16")
    _, found = jet(lambda x: fnp.exp(2 * x), (x,), ([1.0, 0.0],))
    assert {str(f.dtype) for f in found} == {"bfloat16"}
    _, found = jet(fnp.sin, (0.5,), ([1.0],))
    assert found[0].weak_type


def test_under_other_transforms():
    def second(x):
        return jet(fnp.sin, (x,), ([1.0, 0.0],))[1][1]

    np.testing.assert_allclose(fxflow.jit(second)(0.5), -np.sin(0.5))
    np.testing.assert_allclose(fxflow.grad(second)(0.5), -np.cos(0.5))
    np.testing.assert_allclose(fxflow.vmap(second)(X), -np.sin(X))
    np.testing.assert_allclose(fxflow.jvp(second, (0.5,), (2.0,))[1], -2 * np.cos(0.5))
    _, (first, last) = jet(second, (0.5,), ([1.0, 0.0],))
    np.testing.assert_allclose([first, last], [-np.cos(0.5), np.sin(0.5)])
    named = fxflow.vmap(
        lambda x: jet(lambda x: lax.psum(x * x, "i"), (x,), ([1.0, 0.0],))[1],
        axis_name="i",
    )(X)
    np.testing.assert_allclose(named[1], [6.0] * 3)


def test_a_rule_for_reverse_mode_is_not_used():
    f = fxflow.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (0.0 * g,))
    assert [float(t) for t in jet(f, (3.0,), ([1.0, 0.0],))[1]] == [6.0, 2.0]


def test_references_inside():
    def function(x):
        ref = fxflow.new_ref(x)
        ref[...] = ref[...] * x
        return ref[...] * x

    for f in (function, fxflow.jit(function)):
        assert [float(t) for t in jet(f, (2.0,), ([1.0, 0.0],))[1]] == [12.0, 12.0]


def test_series_and_functions_that_do_not_fit_are_refused():
    def f(x, y):
        return x * y

    with pytest.raises(ArgumentError, match="that of argument x is 2, that of y is 1"):
        jet(f, (1.0, 2.0), ([1.0, 0.0], [1.0]))
    with pytest.raises(ArgumentError, match="got 2 and 1"):
        jet(f, (1.0, 2.0), ([1.0],))
    with pytest.raises(ShapeError, match=r"derivative 2 of argument y of .*f64\[3\]"):
        jet(f, (X, X), ([X, X], [X, fnp.ones(2)]))
    with pytest.raises(ArgumentError, match=r"series of argument x .*got f64"):
        jet(f, (1.0, 2.0), (1.0, 1.0))
    with pytest.raises(ArgumentError, match="primals must be a tuple or list"):
        jet(f, 1.0, ([1.0],))
    with pytest.raises(TreeError, match="series of"):
        jet(lambda p: p["a"], ({"a": 1.0},), ([{"a": 1.0}],))
    with pytest.raises(ArgumentError, match=r"argument p of .* is 'a' of type"):
        jet(lambda p: p, ("a",), ([1.0],))
    with pytest.raises(ArgumentError, match="is a reference"):
        jet(lambda r: r[...], (fxflow.new_ref(1.0),), ([1.0],))
    with pytest.raises(ArgumentError, match="takes a function"):
        jet(1.0, (1.0,), ([1.0],))  # type: ignore[arg-type]
    out = fxflow.ShapeDtypeStruct((), "f8")
    with pytest.raises(NotDifferentiableError, match="python_callback"):
        jet(lambda x: fxflow.pure_callback(np.sin, out, x), (1.0,), ([1.0],))
