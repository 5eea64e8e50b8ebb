"""Transforms of symmetric signals along several axes, against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.fft

import fxflow
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.scipy import fft

RNG = np.random.default_rng(27)
X = RNG.normal(size=(2, 4, 5))
RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


@RUNS
@pytest.mark.parametrize("norm", [None, "backward", "ortho", "forward"])
def test_agree_with_scipy(norm: str | None, run: Any) -> None:
    given: list[dict[str, Any]] = [{}, {"s": (3, 6)}, {"axes": (0, 1)}, {"s": (4, 4)}]
    with fxflow.config.override(x64=True):
        for name in ("hfft2", "hfftn", "ihfft2", "ihfftn"):
            x = X if name.startswith("i") else X + 1j * X[::-1, :, ::-1]
            for options in given:
                got = run(
                    lambda x, o=options, n=name: getattr(fft, n)(x, norm=norm, **o)
                )
                want = getattr(scipy.fft, name)(x, norm=norm, **options)
                np.testing.assert_allclose(got(x), want, 1e-12, 1e-12, err_msg=name)


def test_one_axis_is_the_transform_of_one_axis() -> None:
    x = X[0].astype(np.float32)
    np.testing.assert_array_equal(fft.hfftn(x, axes=-1), fft.hfft(x))
    np.testing.assert_array_equal(fft.ihfftn(x, axes=(-1,)), fft.ihfft(x))
    assert fft.hfftn(x).dtype == np.float32
    assert fft.ihfftn(x).dtype == np.complex64


def test_derivatives_are_linear_maps() -> None:
    with fxflow.config.override(x64=True):
        for name in ("hfft2", "ihfft2"):
            f = getattr(fft, name)
            _, moved = fxflow.jvp(f, (X,), (X**2,))
            np.testing.assert_allclose(moved, f(X**2), 1e-12, 1e-12)
            size = fxflow.grad(lambda x, f=f: (abs(f(x, norm="ortho")) ** 2).sum())
            step = 1e-6 * RNG.normal(size=X.shape)
            ahead, back = (
                (abs(np.asarray(f(X + d, norm="ortho"))) ** 2).sum()
                for d in (step, -step)
            )
            slope = (np.asarray(size(X)) * step).sum()
            np.testing.assert_allclose(slope, (ahead - back) / 2, 1e-5)


def test_wrong_arguments() -> None:
    with pytest.raises(DtypeError, match=r"ihfft2: .*c"):
        fft.ihfft2(X * 1j)
    with pytest.raises(ArgumentError, match="norm"):
        fft.hfftn(X, norm="both")
    with pytest.raises(ArgumentError, match="hfft2: plan must be None, got 3"):
        fft.hfft2(X, plan=3)
    with pytest.raises(AxisError):
        fft.hfft2(X, axes=(0, 3))
    with pytest.raises(ShapeError):
        fft.hfft2(np.zeros((0, 3)))
