"""Softmax, log-sum-exp, standardization."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow import nn
from fxflow.errors import ArgumentError, AxisError, DtypeError
from tests.nn import golden

_RNG = np.random.default_rng(0)
# The inputs of the golden values, after those of attention.
for _shape in ((2, 3, 4, 5), (2, 6, 2, 5), (2, 6, 2, 5), (1, 4, 3, 6)):
    _RNG.normal(size=_shape)
_RNG.random((2, 1, 3, 6))
Y = _RNG.normal(size=(3, 4)).astype(np.float32)
W = _RNG.random((3, 4)) < 0.6

CASES = {
    "softmax": lambda: nn.softmax(Y),
    "softmax_0": lambda: nn.softmax(Y, 0),
    "softmax_all": lambda: nn.softmax(Y, (0, 1)),
    "softmax_where": lambda: nn.softmax(Y, where=W),
    "log_softmax": lambda: nn.log_softmax(Y),
    "log_softmax_where": lambda: nn.log_softmax(Y, where=W),
    "logsumexp": lambda: nn.logsumexp(Y, 1),
    "logsumexp_all": lambda: nn.logsumexp(Y),
    "logsumexp_b": lambda: nn.logsumexp(Y, 0, b=np.abs(Y)),
    "logsumexp_where": lambda: nn.logsumexp(Y, 1, where=W, keepdims=True),
    "logmeanexp": lambda: nn.logmeanexp(Y, 1),
    "logmeanexp_where": lambda: nn.logmeanexp(Y, 1, where=W),
    "standardize": lambda: nn.standardize(Y),
    "standardize_where": lambda: nn.standardize(Y, where=W),
    "standardize_stable": lambda: nn.standardize(Y, 0, algorithm="stable"),
    "standardize_given": lambda: nn.standardize(Y, mean=1.0, variance=4.0),
}


@pytest.mark.parametrize("name", CASES)
def test_as_jax(name: str) -> None:
    golden.near(CASES[name](), golden.array(name))


def test_signs_as_jax() -> None:
    size, sign = nn.logsumexp(Y, 1, b=Y, return_sign=True)
    golden.near(np.stack([size, sign]), golden.array("logsumexp_sign"))


@pytest.mark.parametrize("axis", [0, -1, None, (0, 1)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_as_scipy(axis: object, scale: float) -> None:
    x = (scale * Y).astype(np.float32)
    want = x.astype(np.float64)
    options = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(
        nn.softmax(x, axis), scipy.special.softmax(want, axis), **options
    )
    np.testing.assert_allclose(
        nn.log_softmax(x, axis), scipy.special.log_softmax(want, axis), **options
    )
    for keepdims in (False, True):
        np.testing.assert_allclose(
            nn.logsumexp(x, axis, keepdims=keepdims),
            scipy.special.logsumexp(want, axis, keepdims=keepdims),
            **options,
        )


def test_special_cases() -> None:
    none = np.zeros((2, 3), bool)
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(nn.softmax(x, where=none), np.zeros((2, 3)))
    assert float(nn.logsumexp(np.full(3, -np.inf, np.float32))) == -math.inf
    assert float(nn.logsumexp(np.array([np.inf, 0.0]))) == math.inf
    assert math.isnan(float(nn.logsumexp(np.zeros(2), b=np.array([1.0, -2.0]))))
    ignored = nn.logsumexp(np.array([1e9, 0.0]), b=np.array([0.0, 1.0]))
    assert float(ignored) == 0.0
    value = np.array([1 + 2j, 0.5 - 1j], np.complex64)
    want = np.log(np.exp(value).sum())
    np.testing.assert_allclose(nn.logsumexp(value), want, rtol=1e-6)
    parts = np.exp(value) / np.exp(value).sum()
    for f in (nn.softmax, fxflow.jit(nn.softmax)):
        np.testing.assert_allclose(f(value), parts, rtol=1e-5)
    np.testing.assert_allclose(np.exp(nn.log_softmax(value)), parts, rtol=1e-5)
    half = nn.softmax(value, where=np.array([True, False]))
    np.testing.assert_allclose(half, [1, 0], rtol=1e-6)


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_slopes_by_differences(function: object) -> None:
    weights = np.arange(12).reshape(3, 4) / 7
    x = fxflow.numpy.asarray(Y, "float64")

    def loss(x: object) -> object:
        out = function(x, 1)
        return (out * (weights if out.ndim == 2 else weights[:, 0])).sum()

    slope = np.asarray(fxflow.grad(loss)(x))
    step = 1e-6
    for i, j in ((0, 0), (1, 3), (2, 2)):
        moved = np.zeros((3, 4))
        moved[i, j] = step
        moved = fxflow.numpy.asarray(moved, "float64")
        want = (float(loss(x + moved)) - float(loss(x - moved))) / (2 * step)
        np.testing.assert_allclose(slope[i, j], want, rtol=1e-6, atol=1e-8)


def test_slope_is_finite_where_masked() -> None:
    x = np.array([1.0, -np.inf, 2.0], np.float32)
    where = np.array([True, False, True])
    for function in (nn.softmax, nn.logsumexp):
        slope = fxflow.grad(lambda x: function(x, -1, where=where).max())(x)  # noqa: B023
        assert np.isfinite(np.asarray(slope)).all()


def test_slopes_of_what_does_not_count() -> None:
    """It may be so large that its exponential has no slope."""
    x = np.float32([0, 0, 100, 1000])
    counts = x < 50
    factors = counts.astype(np.float32)
    want = [0.5, 0.5, 0, 0]
    masked = lambda x: nn.logsumexp(x, where=counts)
    weighted = lambda x: nn.logsumexp(x, b=factors)
    for f in (masked, weighted):
        for run in (f, fxflow.jit(f)):
            assert fxflow.grad(run)(x).tolist() == want
            assert fxflow.jacfwd(run)(x).tolist() == want
        bend = np.zeros((4, 4), np.float32)
        bend[:2, :2] = [[0.25, -0.25], [-0.25, 0.25]]
        assert fxflow.hessian(f)(x).tolist() == bend.tolist()
    by_factor = fxflow.grad(lambda b: nn.logsumexp(np.float32([0, 3]), b=b))
    np.testing.assert_allclose(by_factor(np.float32([1, 0])), [1, np.exp(3)], 1e-6)
    none = np.zeros(4, bool)
    for f in (nn.softmax, nn.logsumexp):
        assert fxflow.grad(lambda x, f=f: f(x, where=none).sum())(x).tolist() == [0] * 4
    finite = lambda x: fnp.where(counts, nn.log_softmax(x, where=counts), 0).sum()
    assert fxflow.grad(finite)(x).tolist() == [0] * 4


RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


@RUNS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_slopes_of_an_element_that_takes_all(dtype: str, run: Any) -> None:
    """1 less its probability cancels; what it gives, the others get."""
    with fxflow.config.override(x64=True):
        x = np.array([[9, 0, -1], [40, 0, -3]], fnp.dtype(dtype))
        with np.errstate(under="ignore"):
            p = scipy.special.softmax(x.astype("f8"), -1)
        rest = np.array([r - np.diag(np.diag(r)) for r in -p[:, :, None] * p[:, None]])
        slope = rest - np.stack([np.diag(r.sum(1)) for r in rest])
        info = fnp.finfo(dtype)
        close = {"rtol": 20 * float(info.eps), "atol": 4 * float(info.tiny)}
        for jacobian in (fxflow.jacfwd, fxflow.jacrev):
            first = run(fxflow.vmap(jacobian(nn.softmax)))(x)
            np.testing.assert_allclose(np.asarray(first).astype("f8"), slope, **close)
            # The logarithm's slope by another element is the same number again.
            first = np.asarray(run(fxflow.vmap(jacobian(nn.log_softmax)))(x))
            want = slope[:, 0] / p[:, :1]
            np.testing.assert_allclose(first[:, 0].astype("f8"), want, **close)
            second = run(fxflow.vmap(jacobian(jacobian(nn.logsumexp))))(x)
            np.testing.assert_allclose(np.asarray(second).astype("f8"), slope, **close)


@RUNS
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bits_are_taken_in_32(dtype: str, run: Any) -> None:
    zeros = np.zeros(70_000, fnp.dtype(dtype))
    ulp = float(fnp.finfo(dtype).eps)
    for f, want in (
        (nn.softmax, 1 / 70_000),
        (nn.log_softmax, -math.log(70_000)),
        (nn.logsumexp, math.log(70_000)),
        (nn.logmeanexp, 0),
        (lambda x: nn.logsumexp(x, b=np.ones((), x.dtype)), math.log(70_000)),
    ):
        out = run(f)(zeros)
        assert out.dtype == zeros.dtype
        np.testing.assert_allclose(np.asarray(out).astype("f8"), want, ulp, 1e-4)
    # A square of 300 has no float16.
    far = np.array([-300, 300, 300, -300], zeros.dtype)
    out = np.asarray(run(nn.standardize)(far)).astype("f8")
    np.testing.assert_allclose(out, [-1, 1, 1, -1], 2 * ulp)


def test_standardize_moments() -> None:
    out = np.asarray(nn.standardize(Y, (0, 1), epsilon=0.0))
    np.testing.assert_allclose([out.mean(), out.var()], [0, 1], atol=1e-6)
    far = Y + np.float32(1000)
    stable = np.asarray(nn.standardize(far, algorithm="stable"))
    np.testing.assert_allclose(stable, nn.standardize(Y), atol=1e-3)


def test_invalid_dtypes_axes_and_algorithms_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"softmax: takes numbers, got key<fry>\[\]"):
        nn.softmax(fxflow.random.key(0))
    with pytest.raises(DtypeError, match=r"takes real numbers, got c64\[2\]"):
        nn.standardize(np.ones(2, np.complex64))
    with pytest.raises(AxisError):
        nn.softmax(Y, 2)
    with pytest.raises(ArgumentError, match=r"log_softmax: x is .* of type list"):
        nn.log_softmax([1.0])
    with pytest.raises(ArgumentError, match='algorithm must be "fast" or "stable"'):
        nn.standardize(Y, algorithm="slow")


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
def test_an_axis_that_is_not_there(function):
    with pytest.raises(AxisError, match=rf"^{function.__name__}: axis 3 is out of"):
        function(Y, axis=3)


def test_log_softmax_and_its_gradient_share_their_powers() -> None:
    def cost(x):
        return -fnp.sum(nn.log_softmax(x)[:, 0])

    text = (
        fxflow.jit(fxflow.value_and_grad(cost)).lower(np.ones((4, 3), "f4")).as_text()
    )
    assert text.count("stablehlo.exponential ") == 1
    assert text.count("applies stablehlo.maximum") == 1


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.logsumexp])
def test_numpys_arrays_under_an_overridden_option(function: Any) -> None:
    x = np.array([[1.0, 2.0, 3.0]], np.float32)
    expected = function(fnp.asarray(x))
    with fxflow.config.override(x64=True):
        np.testing.assert_array_equal(function(x), expected)
