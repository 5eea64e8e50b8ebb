"""Sums of exponentials against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import AxisError
from fxflow.scipy import special
from tests.numpy.oracle import same
from tests.scipy.special.suite import RNG


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


@pytest.mark.parametrize("name", ("softmax", "log_softmax"))
def test_complex_softmax(name: str) -> None:
    z = (RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))).astype("complex64")
    expected = getattr(scipy.special, name)(z, axis=1)
    function = getattr(special, name)
    for run in (function, fxflow.jit(function, static_argnames="axis")):
        np.testing.assert_allclose(run(z, axis=1), expected, rtol=1e-4)
