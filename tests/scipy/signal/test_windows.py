"""Windows beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

from fxflow.errors import ArgumentError
from fxflow.scipy.signal import _windows as windows
from fxflow.scipy.signal import get_window

SHAPED: list[Any] = [
    8.6,
    ("kaiser", 3),
    ("gaussian", 3.0),
    ("general_gaussian", 1.5, 4.0),
    ("general_cosine", (0.5, 0.3, 0.2)),
    ("general_hamming", 0.6),
    ("tukey", 0.3),
    ("tukey", 0.0),
    ("tukey", 1.0),
    ("exponential", None, 3.0),
    ("taylor", 5, 40.0),
    "hann_symmetric",
    ("tukey_periodic", 0.3),
]


@pytest.mark.parametrize("window", [*windows._PLAIN, *windows._ALSO, *SHAPED])
def test_windows_agree_with_scipy(window: Any) -> None:
    if isinstance(window, str) and windows._ALSO.get(window) in ("kaiser", "gaussian"):
        window = (window, 2.0)
    for n in (1, 2, 3, 8, 33):
        got = windows.window_of("f", window, n)
        expected = scipy.signal.get_window(window, n)
        np.testing.assert_allclose(got, expected, 1e-12, 1e-13)


@pytest.mark.parametrize(
    "window", ["house", "kaiser", ("hann", 3), ("gaussian", 1, 2), ()]
)
def test_unknown_windows_and_parameters_are_refused(window: Any) -> None:
    with pytest.raises((ArgumentError, ValueError)):
        windows.window_of("f", window, 4)


@pytest.mark.parametrize(
    "window", [("chebwin", 60.0), ("dpss", 2.0), ("chebwin", 45.0)]
)
def test_windows_of_spectra_and_filters_agree_with_scipy(window: Any) -> None:
    for n, periodic in itertools.product((8, 9, 33), (True, False)):
        got = get_window(window, n, periodic)
        expected = scipy.signal.get_window(window, n, periodic)
        np.testing.assert_allclose(got, expected, 2e-6)
    with pytest.raises(ArgumentError, match="Nx must be at least 1"):
        get_window(window, 0)
