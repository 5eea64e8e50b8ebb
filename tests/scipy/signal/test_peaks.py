"""Peaks beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
CONDITIONS: list[dict[str, Any]] = [
    {},
    {"height": 0.5},
    {"height": (0, 2), "threshold": 0.2},
    {"distance": 4},
    {"prominence": 0.5, "wlen": 8},
    {"width": 1.5, "rel_height": 0.7},
    {"prominence": (None, 3), "width": (0, 4), "distance": 3},
    {"plateau_size": (1, 2), "wlen": 5, "prominence": 0},
]


def test_peaks_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for k in range(4):
            n = int(RNG.integers(3, 80))
            x = RNG.normal(size=n) if k % 2 else RNG.integers(0, 5, n).astype(float)
            for s in CONDITIONS:
                if "distance" in s and not k % 2:
                    continue  # equal heights: SciPy's order is that of its sort
                got, found = signal.find_peaks(x, **s)
                expected, theirs = want.find_peaks(x, **s)
                np.testing.assert_array_equal(got, expected)
                assert set(found) == set(theirs)
                for key, value in theirs.items():
                    np.testing.assert_allclose(
                        found[key], value, 1e-12, 1e-12, err_msg=key
                    )


def test_peaks_of_a_known_number_compile() -> None:
    x = RNG.normal(size=60).astype(np.float32)
    for s in (CONDITIONS[3], CONDITIONS[6]):
        expected, theirs = want.find_peaks(x, **s)
        got, found = fxflow.jit(lambda x, s=s: signal.find_peaks(x, **s, size=30))(x)
        count = len(expected)
        np.testing.assert_array_equal(got[:count], expected)
        assert (got[count:] == -1).all()
        for key, value in theirs.items():
            np.testing.assert_allclose(found[key][:count], value, 1e-5, 1e-5)
    rows, _ = fxflow.vmap(lambda x: signal.find_peaks(x, size=9))(x.reshape(3, 20))
    for row, part in zip(rows, x.reshape(3, 20), strict=True):
        expected = want.find_peaks(part)[0]
        np.testing.assert_array_equal(row[: len(expected)], expected)


def test_prominences_and_widths_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        x = RNG.normal(size=40)
        at = want.find_peaks(x)[0]
        for run in (
            lambda x: (signal.peak_prominences(x, at)[0] ** 2).sum(),
            lambda x: (signal.peak_widths(x, at, 0.6)[0] ** 2).sum(),
        ):
            way = RNG.normal(size=40)
            rise = float(run(x + 1e-6 * way) - run(x - 1e-6 * way)) / 2e-6
            slope = fxflow.grad(run)(x)
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)


def test_extrema_agree_with_scipy() -> None:
    x = RNG.normal(size=(20, 6))
    for order, mode, axis in ((1, "clip", 0), (2, "wrap", 1)):
        for name in ("argrelmax", "argrelmin"):
            got = getattr(signal, name)(x, axis, order, mode)
            expected = getattr(want, name)(x, axis, order, mode)
            np.testing.assert_array_equal(got, expected)
    flat = np.array([1, 2, 2, 1])
    got = signal.argrelextrema(flat, fnp.greater_equal)
    np.testing.assert_array_equal(got, want.argrelextrema(flat, np.greater_equal))


def test_bad_peaks_are_refused() -> None:
    x = RNG.normal(size=9)
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: signal.find_peaks(np.ones((2, 3))), "vector"),
        (ArgumentError, lambda: signal.find_peaks(x, distance=0), "distance"),
        (ArgumentError, lambda: signal.find_peaks(x, height=np.ones(9)), "pair"),
        (ArgumentError, lambda: signal.find_peaks(x, prominence=1, wlen=1), "wlen"),
        (ArgumentError, lambda: signal.peak_widths(x, np.array([1]), -1), "rel_height"),
        (ArgumentError, lambda: signal.peak_prominences(x, x), "integers"),
        (ArgumentError, lambda: signal.argrelmax(x, mode="no"), "mode"),
        (ConcretizationError, lambda: fxflow.jit(signal.find_peaks)(x), "give size"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    peaks, found = signal.find_peaks(np.zeros(0), height=0, width=0)
    assert peaks.shape == (0,) and found["widths"].shape == (0,)
