"""Designs of recursive filters beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

BANDS: list[tuple[str, Any]] = [
    ("low", 0.3),
    ("highpass", 0.4),
    ("bandpass", [0.2, 0.5]),
    ("bandstop", [0.2, 0.6]),
]
FAMILIES: dict[str, tuple[float, ...]] = {
    "butter": (),
    "cheby1": (1.0,),
    "cheby2": (40.0,),
    "ellip": (1.0, 40.0),
    "bessel": (),
}


def response(sos: Any) -> Any:
    return want.freqz_sos(np.asarray(sos), 64)[1]


#: The others take seconds each, by the number of their programs.
FIRST = [
    f if f == "butter" else pytest.param(f, marks=pytest.mark.slow) for f in FAMILIES
]


@pytest.mark.parametrize("family", FAMILIES)
def test_designs_agree_with_scipy(family: str) -> None:
    ours, theirs = getattr(signal, family), getattr(want, family)
    with fxflow.config.override(x64=True):
        for n in (1, 2, 5):
            for btype, edges in BANDS:
                for analog in (False, True):
                    for output in ("ba", "sos"):
                        args = (n, *FAMILIES[family], edges, btype, analog, output)
                        got, expected = ours(*args), theirs(*args)
                        if output == "sos":
                            got, expected = (got,), (expected,)
                        for one, other in zip(got, expected, strict=True):
                            assert one.shape == other.shape
                            np.testing.assert_allclose(one, other, 1e-6, 1e-8)


@pytest.mark.parametrize("family", FIRST)
def test_traced_edges_give_the_same_filter(family: str) -> None:
    for btype, edges in BANDS:

        def designs(w: Any, btype: str = btype) -> Any:
            args = (3, *FAMILIES[family], w, btype)
            make = getattr(signal, family)
            return (*make(*args), make(*args, output="sos"))

        with fxflow.config.override(x64=True):
            w = np.asarray(edges)
            *got, sos = fxflow.jit(designs)(w)
            *expected, other = designs(w)
            np.testing.assert_allclose(response(sos), response(other), 1e-6, 1e-8)
            for one, two in zip(got, expected, strict=True):
                np.testing.assert_allclose(one, two, 1e-6, 1e-9)


def test_a_design_is_differentiated_by_its_edge() -> None:
    x = np.random.default_rng(0).normal(size=50)

    def energy(w: Any) -> Any:
        sos = signal.butter(4, w, output="sos")
        return (fnp.asarray(signal.sosfilt(sos, x)) ** 2).sum()

    with fxflow.config.override(x64=True):
        w, h = np.float64(0.3), 1e-6
        difference = (energy(w + h) - energy(w - h)) / (2 * h)
        np.testing.assert_allclose(fxflow.grad(energy)(w), difference, 1e-6)
        rows = fxflow.vmap(lambda w: signal.butter(2, w)[0])(np.array([0.2, 0.3]))
        np.testing.assert_allclose(rows[1], want.butter(2, 0.3)[0], 1e-9)


@pytest.mark.parametrize("norm", ["phase", "delay", "mag"])
def test_bessel_filters_of_each_norm(norm: Any) -> None:
    with fxflow.config.override(x64=True):
        for n in (1, 5, 20, 34):
            got = signal.bessel(n, 1.0, analog=True, output="zpk", norm=norm)
            expected = want.bessel(n, 1.0, analog=True, output="zpk", norm=norm)
            order = [np.lexsort((p.real, p.imag)) for p in map(np.asarray, (got[1],))]
            other = expected[1][np.lexsort((expected[1].real, expected[1].imag))]
            np.testing.assert_allclose(np.asarray(got[1])[order[0]], other, 1e-10)
            np.testing.assert_allclose(got[2], expected[2], 1e-9)


def test_filters_of_one_frequency_and_orders() -> None:
    with fxflow.config.override(x64=True):
        for args in ((0.3, 10.0), (60.0, 30.0, 500.0)):
            for name in ("iirnotch", "iirpeak"):
                got = getattr(signal, name)(*args)
                for one, other in zip(got, getattr(want, name)(*args), strict=True):
                    np.testing.assert_allclose(one, other, 1e-10, 1e-14)
        for order in ((0.2, 0.3, 3.0, 40.0), (0.5, 0.3, 1.0, 60.0)):
            number, edge = signal.buttord(*order)
            assert number == want.buttord(*order)[0]
            np.testing.assert_allclose(edge, want.buttord(*order)[1])
        rate = signal.butter(3, 20.0, fs=100.0)[0]
        np.testing.assert_allclose(rate, want.butter(3, 20.0, fs=100.0)[0])


def test_bad_designs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Wn must lie between 0 and 1"):
        signal.butter(3, 1.5)
    with pytest.raises(ArgumentError, match="ascend"):
        signal.butter(3, [0.5, 0.2], "bandpass")
    with pytest.raises(ShapeError, match="two edges"):
        signal.butter(3, 0.5, "bandpass")
    with pytest.raises(ArgumentError, match="btype"):
        signal.butter(3, 0.5, "sideways")
    with pytest.raises(ArgumentError, match="output"):
        signal.butter(3, 0.5, output="abc")
    with pytest.raises(ArgumentError, match="fs"):
        signal.butter(3, 0.5, analog=True, fs=2.0)
    with pytest.raises(ArgumentError, match="rp must be positive"):
        signal.cheby1(3, -1.0, 0.5)
    with pytest.raises(ArgumentError, match="above rp"):
        signal.ellip(3, 40.0, 1.0, 0.5)
    with pytest.raises(ArgumentError, match="norm"):
        signal.bessel(3, 0.5, norm="size")
    with pytest.raises(ArgumentError, match="at most 150"):
        signal.bessel(2**62, 0.5)
    with pytest.raises(ArgumentError, match="rs must be positive and below"):
        signal.cheby2(3, float("inf"), 0.5)
    with pytest.raises(ArgumentError, match="w0"):
        signal.iirnotch(1.5, 10.0)
    with pytest.raises(ArgumentError, match="differ"):
        signal.buttord(0.3, 0.3, 1.0, 40.0)
    with pytest.raises(ArgumentError, match="N must be at least 1"):
        signal.butter(0, fnp.float32(0.3))


def test_combs_and_ears_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for ftype in ("notch", "peak"):
            for zero in (False, True):
                got = signal.iircomb(25.0, 8.0, ftype, 200.0, pass_zero=zero)
                expected = want.iircomb(25.0, 8.0, ftype, 200.0, pass_zero=zero)
                for one, other in zip(got, expected, strict=True):
                    np.testing.assert_allclose(one, other, 1e-12, 1e-14)
        for args in (
            (440.0, "iir", None, None, 16000.0),
            (0.3, "iir"),
            (440.0, "fir", None, None, 16000.0),
            (440.0, "fir", 24, 40, 8000.0),
            (0.3, "fir", 1, 9),
        ):
            got, expected = signal.gammatone(*args), want.gammatone(*args)
            for one, other in zip(got, expected, strict=True):
                np.testing.assert_allclose(one, other, 1e-8, 1e-30)
        slope = fxflow.grad(lambda f: signal.gammatone(f, "iir", fs=16e3)[1][1])(440.0)
        ends = [want.gammatone(440 + h, "iir", fs=16e3)[1][1] for h in (-1e-3, 1e-3)]
        assert float(slope) == pytest.approx((ends[1] - ends[0]) / 2e-3, 1e-6)
        jitted = fxflow.jit(lambda q: signal.iircomb(0.5, q)[0])
        np.testing.assert_allclose(jitted(3.0), want.iircomb(0.5, 3.0)[0], 1e-12)
    refused: list[tuple[Any, str]] = [
        (lambda: signal.iircomb(0.3, 5.0), "part of fs"),
        (lambda: signal.iircomb(2.0, 5.0), "w0 must lie"),
        (lambda: signal.iircomb(0.5, 5.0, "no"), "ftype"),
        (lambda: signal.gammatone(2.0, "iir"), "freq must lie"),
        (lambda: signal.gammatone(0.5, "no"), "ftype"),
        (lambda: signal.gammatone(0.5, "fir", 25), "order"),
        (lambda: signal.gammatone(0.5, "iir", 4), "neither"),
    ]
    for call, words in refused:
        with pytest.raises(ArgumentError, match=words):
            call()
