"""Fourier transforms against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)
Z = (X + 1j * RNG.normal(size=X.shape)).astype(np.complex64)
NORMS = [None, "backward", "ortho", "forward"]


def check(name: str, x: Any, *options: dict[str, Any], **kwargs: Any) -> None:
    """As NumPy's, eagerly and compiled: once for each of the options beside others."""
    given = [{**kwargs, **one} for one in options or ({},)]
    function = getattr(fnp.fft, name)
    compiled = fxflow.jit(lambda x: [function(x, **one) for one in given])(x)
    for one, found in zip(given, compiled, strict=True):
        want = getattr(np.fft, name)(x, **one)
        assert same(want, function(x, **one), 1e-4), (name, one)
        assert same(want, found, 1e-4), (name, one)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_transforms_along_one_axis_agree_with_numpy(name: str, norm: Any) -> None:
    x = X if name in ("rfft", "ihfft") else Z
    cut = [{"axis": 1, "n": n} for n in (1, 3, 6, 7)]
    check(name, x, {}, {"axis": 0}, *cut, norm=norm)


def test_results_have_numpys_dtypes_of_32_bits() -> None:
    assert fnp.fft.fft(np.ones(3, np.float16)).dtype == np.complex64
    assert fnp.fft.fft(fnp.ones(3, fnp.float64)).dtype == np.complex128
    assert fnp.fft.irfft(np.ones(3, np.int32)).dtype == np.float32


def test_gradients_of_real_transforms_agree_with_formulas() -> None:
    x = X[0, 0]
    g = fxflow.grad(lambda x: fnp.abs(fnp.fft.rfft(x))[1] ** 2)(x)
    w = np.exp(-2j * np.pi * np.arange(5) / 5)
    want = 2 * (np.conj((w * x).sum()) * w).real
    assert same(want, g, 1e-4)
    g = fxflow.grad(lambda x: fnp.fft.irfft(fnp.fft.rfft(x), 5)[2])(x)
    assert same(np.eye(5)[2], g, 1e-5)
    got = fxflow.vmap(fnp.fft.fft2)(Z)
    assert same(np.fft.fft2(Z), got, 1e-4)


def test_invalid_dtypes_lengths_and_axes_are_refused() -> None:
    with pytest.raises(DtypeError, match="real"):
        fnp.fft.rfft(Z)
    with pytest.raises(ArgumentError, match="norm"):
        fnp.fft.fft(X, norm="both")
    with pytest.raises(ArgumentError, match="lengths"):
        fnp.fft.fftn(X, s=(2,), axes=(0, 1))
    with pytest.raises(ShapeError, match="point"):
        fnp.fft.fft(X, n=0)
    with pytest.raises(AxisError):
        fnp.fft.fft(X, axis=3)
    with pytest.raises(AxisError, match="repeated axis"):
        fnp.fft.fftn(X, axes=(0, 0))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_several_axes(name: str, norm: Any) -> None:
    x = X if name == "rfft" else Z
    for kwargs in (
        {},
        {"axes": (0, 2)},
        {"axes": (2, 0)},
        {"s": (6, 3, 2), "axes": (0, 1, 2)},
    ):
        check(name + "n", x, norm=norm, **kwargs)
    check(name + "2", x, norm=norm)
    check(name + "2", x, norm=norm, s=(2, 6), axes=(0, 1))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_more_than_three_axes(name: str) -> None:
    x = RNG.normal(size=(2, 3, 2, 3, 4)).astype(np.float32)
    check(name, x)
    check(name, x, axes=(4, 0, 2, 1))
