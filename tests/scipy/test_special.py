"""Special functions against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.core.errors import ArgumentError, AxisError, DtypeError
from fxflow.scipy import special
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = np.linspace(-4, 4, 33).astype(np.float32) + np.float32(0.01)
P = np.linspace(0.05, 6, 20).astype(np.float32)
U = np.linspace(0.01, 0.99, 25).astype(np.float32)
EDGES = np.array([-np.inf, -2.0, -0.0, 0.0, 1.0, np.inf, np.nan], np.float32)

ONE: dict[str, Any] = {
    "gammaln": X, "gammasgn": X, "gamma": X, "digamma": X, "erf": X, "erfc": X,
    "erfinv": U, "ndtr": X, "log_ndtr": X * 10, "ndtri": U, "expit": X, "logit": U,
    "log_expit": X * 20, "entr": P, "i0": X, "i0e": X, "i1": X, "i1e": X,
    "factorial": P,
}  # fmt: skip
TWO: dict[str, Any] = {
    "beta": (P, P[:, None]), "betaln": (P, P[:, None]), "xlogy": (P - P[0], P[:, None]),
    "xlog1py": (P - P[0], U[:, None]), "rel_entr": (P, U[:, None]),
    "kl_div": (P, U[:, None]), "gammainc": (P, P[:, None]),
    "gammaincc": (P, P[:, None]),
    "poch": (P, P[:, None]), "zeta": (P + 1.5, P[:, None]),
    "polygamma": (np.arange(4), P[:, None]),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name: str) -> None:
    function, want = getattr(special, name), getattr(scipy.special, name)
    x = ONE[name]
    assert same(want(x.astype(np.float64)), function(x), 3e-4)
    assert same(want(x.astype(np.float64)), fxflow.jit(function)(x), 3e-4)
    wide = fnp.asarray(x, fnp.float64)
    assert function(wide).dtype == np.float64
    assert same(want(x.astype(np.float64)), function(wide), 1e-6)
    h = 1e-5
    x64 = x.astype(np.float64)
    slope = (want(x64 + h) - want(x64 - h)) / (2 * h)
    if name not in ("gammasgn",):
        got = fxflow.vmap(fxflow.grad(function))(x)
        scale = np.maximum(1, np.abs(slope))
        assert same(slope / scale, np.asarray(got) / scale, 5e-3)
    with pytest.raises(DtypeError):
        function(x * 1j)


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    function, want = getattr(special, name), getattr(scipy.special, name)
    x, y = TWO[name]
    expected = want(x if x.dtype.kind == "i" else x.astype(np.float64), y.astype(float))
    scale = np.maximum(1, np.abs(expected))
    assert same(expected / scale, np.asarray(function(x, y)) / scale, 1e-3)
    assert same(expected / scale, np.asarray(fxflow.jit(function)(x, y)) / scale, 1e-3)


@pytest.mark.parametrize(
    "name",
    ["gammasgn", "erf", "erfc", "ndtr", "log_ndtr", "ndtri", "expit", "logit", "entr"],
)
def test_edges(name: str) -> None:
    with np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(EDGES)
    got = getattr(special, name)(EDGES)
    assert same(want, got, 1e-5), (name, want, got)


def test_tails() -> None:
    p = np.array([1e-30, 1e-10, 1e-5], np.float32)
    assert same(scipy.special.ndtri(p), special.ndtri(p), 1e-5)
    x = np.array([-100.0, -20.0, -10.5, 9.0], np.float32)
    assert same(
        scipy.special.log_ndtr(x) / x, np.asarray(special.log_ndtr(x)) / x, 1e-5
    )
    g = fxflow.vmap(fxflow.grad(special.log_ndtr))(x)
    assert np.isfinite(np.asarray(g)).all()


def test_others() -> None:
    got = special.betainc(P, np.float32(2.0), np.float32(0.3))
    assert same(scipy.special.betainc(P, 2.0, 0.3), got, 1e-4)
    got = special.multigammaln(P + 2, 3)
    assert same(scipy.special.multigammaln(P + 2, 3), got, 1e-4)
    assert same(scipy.special.zeta(3.0), special.zeta(3.0), 1e-5)
    with pytest.raises(ArgumentError):
        special.multigammaln(P, 1.5)  # type: ignore[arg-type]


def test_logsumexp() -> None:
    a = RNG.normal(size=(3, 4)).astype(np.float32) * 100
    b = RNG.normal(size=(3, 4)).astype(np.float32)
    b[0, 0] = 0
    for axis in (None, 0, (0, 1)):
        want = scipy.special.logsumexp(a, axis=axis)
        assert same(want, special.logsumexp(a, axis=axis), 1e-4)
        want = scipy.special.logsumexp(a, axis=axis, b=np.abs(b), keepdims=True)
        got = special.logsumexp(a, axis=axis, b=np.abs(b), keepdims=True)
        assert same(want, got, 1e-4)
        want = scipy.special.logsumexp(a, axis=axis, b=b, return_sign=True)
        assert same(want, special.logsumexp(a, axis=axis, b=b, return_sign=True), 1e-4)
    mask = np.array([True, False, True, True])
    want = scipy.special.logsumexp(a[:, mask], axis=1)
    assert same(want, special.logsumexp(a, axis=1, where=mask), 1e-4)
    assert float(special.logsumexp(np.full(3, -np.inf))) == -np.inf
    assert float(special.logsumexp(np.array([np.inf, 0.0]))) == np.inf
    assert float(special.logsumexp(np.zeros(0))) == -np.inf
    z = (b + 1j * b.T.reshape(3, 4)).astype(np.complex64)
    assert same(scipy.special.logsumexp(z), special.logsumexp(z), 1e-4)
    g = fxflow.grad(special.logsumexp)(a)
    assert same(scipy.special.softmax(a), g, 1e-5)


def test_softmax() -> None:
    a = RNG.normal(size=(3, 4)).astype(np.float32) * 100
    for axis in (None, 0, -1):
        assert same(scipy.special.softmax(a, axis), special.softmax(a, axis), 1e-5)
        want = scipy.special.log_softmax(a, axis)
        assert same(want, special.log_softmax(a, axis), 1e-5)
    with pytest.raises(AxisError):
        special.softmax(a, 2)
