"""Windows beside SciPy's."""

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.signal

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy.signal import _windows, get_window, windows

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


@pytest.mark.parametrize("window", [*_windows._PLAIN, *_windows._ALSO, *SHAPED])
def test_windows_agree_with_scipy(window: Any) -> None:
    if isinstance(window, str) and _windows._ALSO.get(window) in ("kaiser", "gaussian"):
        window = (window, 2.0)
    for n in (1, 2, 3, 8, 33):
        got = _windows.window_of("f", window, n)
        expected = scipy.signal.get_window(window, n)
        np.testing.assert_allclose(got, expected, 1e-12, 1e-13)


@pytest.mark.parametrize(
    "window", ["house", "kaiser", ("hann", 3), ("gaussian", 1, 2), ()]
)
def test_unknown_windows_and_parameters_are_refused(window: Any) -> None:
    with pytest.raises((ArgumentError, ValueError)):
        _windows.window_of("f", window, 4)


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


PARAMETERS: dict[str, list[tuple[Any, ...]]] = {
    "kaiser": [(5.0,)],
    "gaussian": [(2.0,)],
    "general_gaussian": [(1.5, 3.0)],
    "general_hamming": [(0.6,)],
    "general_cosine": [([0.3, 0.4, 0.3],)],
    "chebwin": [(60.0,)],
    "tukey": [(0.0,), (0.3,), (1.0,)],
    "taylor": [(), (5, 40, False)],
    "dpss": [(2.5,)],
}
OWN = sorted(set(windows.__all__) - {"get_window", "kaiser_bessel_derived"})


@pytest.mark.parametrize("name", OWN)
def test_windows_by_their_names_agree_with_scipy(name: str) -> None:
    assert set(scipy.signal.windows.__all__) == set(windows.__all__)
    with fxflow.config.override(x64=True):
        for parameters in PARAMETERS.get(name, [()]):
            for n in (0, 1, 8, 51):
                for sym in (True, False):
                    got = getattr(windows, name)(n, *parameters, sym=sym)
                    expected = getattr(scipy.signal.windows, name)(
                        n, *parameters, sym=sym
                    )
                    assert got.shape == expected.shape
                    np.testing.assert_allclose(got, expected, 1e-9, 1e-11)


def test_sequences_and_derived_windows_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n, norm in itertools.product((8, 9), (2, "approximate", "subsample")):
            got = windows.dpss(n, 2.0, 3, norm=norm, return_ratios=True)
            expected = scipy.signal.windows.dpss(
                n, 2.0, 3, norm=norm, return_ratios=True
            )
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-9, 1e-11)
        np.testing.assert_allclose(
            windows.kaiser_bessel_derived(10, 3.0),
            scipy.signal.windows.kaiser_bessel_derived(10, 3.0),
            1e-12,
        )
    with pytest.raises(ArgumentError, match="even"):
        windows.kaiser_bessel_derived(5, 3.0)
    with pytest.raises(ArgumentError, match="NW must lie"):
        windows.dpss(8, 5.0)
    with pytest.raises(ArgumentError, match="center"):
        windows.exponential(8, 2.0)
