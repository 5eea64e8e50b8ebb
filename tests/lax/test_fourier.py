"""Fourier transforms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, ShapeError

X = np.arange(12, dtype="f4").reshape(3, 4)


@pytest.mark.parametrize("kind", ["rfft", "RFFT", "FftType.RFFT", 2, lax.FftType.RFFT])
def test_names_of_types(kind) -> None:
    got = np.asarray(lax.fft(X, kind, (4,)))
    assert got.dtype == np.complex64
    np.testing.assert_allclose(got, np.fft.rfft(X), rtol=1e-5)


def test_real_input_of_a_complex_transform() -> None:
    np.testing.assert_allclose(
        lax.fft(X, "FFT", (3, 4)), np.fft.fft2(X), rtol=1e-5, atol=1e-5
    )


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 9), st.integers(0, 99))
def test_there_and_back(length: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=length).astype("f4")
    half = lax.fft(x, "RFFT", (length,))
    np.testing.assert_allclose(lax.fft(half, "IRFFT", (length,)), x, atol=1e-5)
    whole = lax.fft(x, "FFT", (length,))
    np.testing.assert_allclose(lax.fft(whole, "IFFT", (length,)), x, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.fft(X, "DCT", (4,)), ArgumentError, "unknown type 'DCT'"),
        (lambda: lax.fft(X, 7, (4,)), ArgumentError, "unknown type 7"),
        (lambda: lax.fft(X * 1j, "RFFT", (4,)), DtypeError, "RFFT takes float32"),
        (lambda: lax.fft(X, "IRFFT", (6,)), DtypeError, "IRFFT takes complex64"),
        (
            lambda: lax.fft(X.astype("f2"), "RFFT", (4,)),
            DtypeError,
            "RFFT takes float32",
        ),
        (lambda: lax.fft(X, "RFFT", (5,)), ShapeError, r"last axes are \(5,\)"),
        (lambda: lax.fft(X, "RFFT", (2, 3, 4)), ShapeError, "at least 3 axes"),
        (
            lambda: lax.fft(np.ones((1,) * 4), "FFT", (1,) * 4),
            ArgumentError,
            "one to three axes",
        ),
    ],
)
def test_invalid_kinds_dtypes_and_lengths_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT"])
def test_no_axes(kind: str) -> None:
    got = np.asarray(lax.fft(X, kind, ()))
    np.testing.assert_array_equal(got, X)
    assert got.dtype == (np.float32 if kind == "RFFT" else np.complex64)
