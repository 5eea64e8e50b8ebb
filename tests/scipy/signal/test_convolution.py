"""Convolutions and correlations beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ConcretizationError, ShapeError
from fxflow.scipy import signal
from fxflow.scipy.signal.convolution import _fast_length

RNG = np.random.default_rng(0)
MODES = ["full", "same", "valid"]
SHAPES = [
    ((7,), (3,)),
    ((3,), (6,)),
    ((5, 4), (2, 3)),
    ((2, 3, 4), (2, 2, 1)),
    ((), ()),
]


def drawn(shape: Any, mixed: bool) -> Any:
    out = RNG.normal(size=shape)
    return out + 1j * RNG.normal(size=shape) if mixed else out


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_any_number_of_axes(name: str, mode: str, mixed: bool) -> None:
    ours, theirs = getattr(signal, name), getattr(want, name)
    with fxflow.config.override(x64=True):
        for first, second in SHAPES:
            x, y = drawn(first, mixed), drawn(second, mixed)
            expected = theirs(x, y, mode, "direct")
            if mode == "same":  # of SciPy's direct and "fft" methods for a longer in2
                expected = theirs(x, y, mode, "fft") if first else expected
            for method in ("auto", "direct", "fft"):
                got = ours(x, y, mode, method)
                np.testing.assert_allclose(got, expected, 1e-10, 1e-12)
            jitted = fxflow.jit(lambda x, y: ours(x, y, mode))
            np.testing.assert_allclose(jitted(x, y), expected, 1e-10, 1e-12)


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["convolve2d", "correlate2d"])
def test_two_axes(name: str, mode: str, boundary: str) -> None:
    ours, theirs = getattr(signal, name), getattr(want, name)
    with fxflow.config.override(x64=True):
        for shape in [(2, 2), (3, 2), (1, 4)]:
            x, y = drawn((5, 6), True), drawn(shape, True)
            for value in (0, 1.5):
                got = ours(x, y, mode, boundary, value)
                expected = theirs(x, y, mode, boundary, value)
                np.testing.assert_allclose(got, expected, 1e-10, 1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_by_spectra_along_axes(mode: str) -> None:
    with fxflow.config.override(x64=True):
        for axes in (None, 0, [1], (0, 1)):
            x, y = drawn((5, 4), False), drawn((2, 1) if axes == 0 else (1, 3), False)
            got = signal.fftconvolve(x, y, mode, axes)
            expected = want.fftconvolve(x, y, mode, axes)
            np.testing.assert_allclose(got, expected, 1e-10, 1e-12)


def test_dtypes_and_emptiness() -> None:
    i = np.arange(4, dtype=np.int32)
    for name in ("convolve", "correlate", "fftconvolve"):
        function = getattr(signal, name)
        assert function(i, i).dtype == np.float32  # as in JAX
        half = i.astype(np.float16)
        assert function(half, half).dtype == np.float16
        for a, b in [((0,), (3,)), ((3,), (0,)), ((0,), (0,))]:
            for mode in MODES:
                assert function(np.zeros(a), np.zeros(b), mode).shape == (0,)
        assert function(np.zeros((2, 0)), np.zeros((2, 3))).shape == (3, 0)
    assert signal.convolve2d(np.zeros((2, 0)), np.zeros((2, 3))).shape == (3, 0)


def test_derivatives_and_batches() -> None:
    with fxflow.config.override(x64=True):
        x, y = drawn((3, 6), False), drawn((4,), False)
        each = fxflow.vmap(lambda x: signal.convolve(x, y, "same"))(x)
        np.testing.assert_allclose(each[1], want.convolve(x[1], y, "same"))
        for function in (signal.convolve, signal.fftconvolve, signal.correlate):
            # Linear in both: the derivative is the function of the tangent.
            rise = fxflow.jvp(lambda x: function(x, y), (x[0],), (x[1],))[1]  # noqa: B023
            np.testing.assert_allclose(rise, function(x[1], y))
            back = fxflow.vjp(lambda x: function(x, y), x[0])[1](rise)[0]  # noqa: B023
            np.testing.assert_allclose(
                (back * x[2]).sum(), (rise * function(x[2], y)).sum()
            )


def test_shapes_and_options_that_do_not_fit_are_refused() -> None:
    x, y = fnp.ones((2, 3)), fnp.ones((3, 2))
    with pytest.raises(ShapeError, match="number of axes"):
        signal.convolve(x, fnp.ones(3))
    with pytest.raises(ShapeError, match="at least as long"):
        signal.correlate(x, y, "valid")
    with pytest.raises(ArgumentError, match="mode"):
        signal.fftconvolve(x, y, "some")
    with pytest.raises(ArgumentError, match="method"):
        signal.convolve(x, y, method="slow")
    with pytest.raises(ArgumentError, match="boundary"):
        signal.convolve2d(x, y, boundary="edge")
    with pytest.raises(ShapeError, match="two axes"):
        signal.correlate2d(fnp.ones(3), fnp.ones(3))
    with pytest.raises(ShapeError, match="axis 1"):
        signal.fftconvolve(x, y, axes=0)
    with pytest.raises(AxisError):
        signal.fftconvolve(x, y, axes=2)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(
    ("n", "m", "transformed"),
    [
        ((3000,), (2900,), True),
        ((2900,), (3000,), True),
        ((10_000,), (20,), False),
        ((60, 60), (59, 58), True),
        ((40, 50), (3, 3), False),
        ((16, 15, 14), (9, 9, 9), True),
    ],
)
def test_auto_takes_the_faster_method(
    mode: str, n: Any, m: Any, transformed: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s).astype(np.float32) for s in (n, m))
    small = mode == "valid"  # few sums, mostly
    for ours, theirs in (
        (signal.convolve, want.convolve),
        (signal.correlate, want.correlate),
    ):
        f = fxflow.jit(lambda x, y, ours=ours: ours(x, y, mode=mode))
        text = f.lower(x, y).as_text()
        assert small or ("fft" in text) == transformed
        expected = theirs(x.astype(float), y.astype(float), mode)
        scale = 1e-5 * np.abs(expected).max()
        np.testing.assert_allclose(ours(x, y, mode=mode), expected, 1e-4, scale)
    whole = (np.round(10 * v).astype(np.int32) for v in (x, y))
    text = fxflow.jit(lambda x, y: signal.convolve(x, y, mode)).lower(*whole).as_text()
    assert "fft" not in text


def test_lengths_of_transforms_have_small_factors() -> None:
    for n in [*range(1, 300), 1021, 4099, 65537]:
        length = _fast_length(n)
        assert length >= n
        assert length == scipy.fft.next_fast_len(length, real=True)
        assert length <= scipy.fft.next_fast_len(n, real=True)


def test_blocks_agree_with_scipy() -> None:
    rng = np.random.default_rng(21)
    with fxflow.config.override(x64=True):
        for n, m in (((200,), (5,)), ((5,), (200,)), ((3, 150), (2, 4)), ((40,), (9,))):
            x, y = rng.normal(size=n), rng.normal(size=m)
            for mode in ("full", "same", "valid"):
                if mode == "valid" and n[0] < m[0]:
                    continue
                got = signal.oaconvolve(x, y, mode)
                np.testing.assert_allclose(got, want.oaconvolve(x, y, mode), 1e-9, 1e-9)
        x, y = rng.normal(size=(3, 200)), rng.normal(size=(1, 6))
        got = fxflow.jit(lambda x, y: signal.oaconvolve(x, y, "same", -1))(x, y)
        np.testing.assert_allclose(got, want.oaconvolve(x, y, "same", -1), 1e-9, 1e-9)
        slope = fxflow.grad(lambda y: (signal.oaconvolve(x, y, axes=1) ** 2).sum())(y)
        by_whole = fxflow.grad(lambda y: (signal.fftconvolve(x, y, axes=1) ** 2).sum())
        np.testing.assert_allclose(slope, by_whole(y), 1e-9)


def test_lags_and_methods() -> None:
    for mode in ("full", "same", "valid"):
        for n, m in ((5, 3), (3, 5), (4, 4), (1, 6)):
            got = signal.correlation_lags(n, m, mode)
            np.testing.assert_array_equal(got, want.correlation_lags(n, m, mode))
    assert signal.choose_conv_method(np.ones(9), np.ones(3)) == "direct"
    assert signal.choose_conv_method(np.ones(30_000), np.ones(9_000)) == "fft"
    assert (
        signal.choose_conv_method(np.ones(30_000, int), np.ones(9_000, int)) == "direct"
    )
    best, times = signal.choose_conv_method(np.ones(9), np.ones(3), measure=True)
    assert times[best] == min(times.values()) and set(times) == {"fft", "direct"}
    with pytest.raises(ArgumentError, match="mode"):
        signal.correlation_lags(3, 3, "no")
    with pytest.raises(ConcretizationError, match="measure outside"):
        fxflow.jit(lambda x: signal.choose_conv_method(x, x, measure=True))(np.ones(3))
