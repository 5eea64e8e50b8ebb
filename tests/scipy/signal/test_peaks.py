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


MANY: list[dict[str, Any]] = [
    {"height": (-1, 2), "threshold": (0.1, 3), "plateau_size": 1},
    {"distance": 5, "prominence": 0.3, "width": (1, 9), "rel_height": 0.8},
    {"width": (None, None), "wlen": 7, "distance": 2.5},
    {"prominence": (0.2, None), "plateau_size": (None, 2), "height": -0.5},
]


@pytest.mark.parametrize("conditions", MANY)
def test_peaks_of_a_batch_agree_with_scipy(conditions: dict[str, Any]) -> None:
    rows = RNG.normal(size=(60, 41))
    # Equal heights, whose order under a distance is that of SciPy's sort; and no order.
    flat = RNG.integers(0, 4, (40, 41)) + RNG.random((40, 1))
    rows = rows if "distance" in conditions else np.concatenate([rows, flat])
    rows[5, 7], rows[6, [0, 9, 30]], rows[7, 12], rows[8, 3] = np.nan, np.nan, 9e9, -9e9
    rows[9], rows[10] = np.sort(rows[9]), np.sort(rows[10])[::-1]
    run = lambda x: signal.find_peaks(x, **conditions, size=12)
    with fxflow.config.override(x64=True):
        peaks, found = fxflow.jit(fxflow.vmap(run))(rows)
    for i, row in enumerate(rows):
        expected, theirs = want.find_peaks(row, **conditions)
        expected, count = expected[:12], min(len(expected), 12)
        np.testing.assert_array_equal(peaks[i, :count], expected)
        assert (peaks[i, count:] == -1).all()
        assert set(found) == set(theirs)
        for key, value in theirs.items():
            np.testing.assert_allclose(
                found[key][i, :count], value[:12], 1e-12, 1e-12, err_msg=key
            )


def test_properties_of_peaks_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        x = RNG.normal(size=40)

        def run(x: Any, share: Any = 0.6) -> Any:
            found = signal.find_peaks(x, width=0.5, rel_height=share, size=10)[1]
            return (found["widths"] ** 2 + found["prominences"]).sum()

        way = RNG.normal(size=40)
        rise = float(run(x + 1e-6 * way) - run(x - 1e-6 * way)) / 2e-6
        slope, by_share = fxflow.jit(fxflow.grad(run, (0, 1)))(x, 0.6)
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)
        rise = float(run(x, 0.6 + 1e-7) - run(x, 0.6 - 1e-7)) / 2e-7
        assert float(by_share) == pytest.approx(rise, 1e-5)


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
