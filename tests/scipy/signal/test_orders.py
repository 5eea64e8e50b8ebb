"""Orders of filters beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

EDGES: list[tuple[Any, Any, bool]] = [
    (0.2, 0.3, False),
    (0.3, 0.2, False),
    ([0.2, 0.5], [0.1, 0.6], False),
    ([0.1, 0.6], [0.2, 0.5], False),
    ([10.0, 50.0], [3.0, 80.0], True),
    ([3.0, 80.0], [10.0, 50.0], True),
]


@pytest.mark.parametrize("wp, ws, analog", EDGES)
@pytest.mark.parametrize("name", ["buttord", "cheb1ord", "cheb2ord", "ellipord"])
def test_orders_agree_with_scipy(name: str, wp: Any, ws: Any, analog: bool) -> None:
    with fxflow.config.override(x64=True):
        for gpass, gstop in ((3, 40), (0.5, 60)):
            got = getattr(signal, name)(wp, ws, gpass, gstop, analog)
            expected = getattr(want, name)(wp, ws, gpass, gstop, analog)
            assert got[0] == expected[0]
            # SciPy's search for the edges of a bandstop stops at 1e-5.
            np.testing.assert_allclose(got[1], expected[1], 3e-5)


@pytest.mark.parametrize("ftype", ["butter", "cheby1", "cheby2", "ellip"])
def test_designs_agree_with_scipy(ftype: str) -> None:
    with fxflow.config.override(x64=True):
        got = signal.iirdesign(200, 300, 1, 40, ftype=ftype, output="sos", fs=2000)
        expected = want.iirdesign(200, 300, 1, 40, ftype=ftype, output="sos", fs=2000)
        response, other = (want.sosfreqz(np.asarray(s))[1] for s in (got, expected))
        np.testing.assert_allclose(response, other, 1e-6, 1e-9)
        arguments = (3, [0.2, 0.4], 1.0, 40.0)
        np.testing.assert_allclose(
            np.concatenate(signal.iirfilter(*arguments, ftype=ftype)),
            np.concatenate(want.iirfilter(*arguments, ftype=ftype)),
            1e-9,
            1e-12,
        )


def test_bad_edges_are_refused() -> None:
    with pytest.raises(ArgumentError, match="wp and ws must differ"):
        signal.buttord(0.2, 0.2, 3.0, 40.0)
    with pytest.raises(ArgumentError, match="inside"):
        signal.cheb1ord([0.1, 0.3], [0.2, 0.4], 3.0, 40.0)
    with pytest.raises(ArgumentError, match="as many edges"):
        signal.cheb2ord([0.1, 0.3], 0.2, 3.0, 40.0)
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        signal.ellipord(0.2, 1.2, 3.0, 40.0)
    with pytest.raises(ArgumentError, match="gstop must be positive and below"):
        signal.ellipord(0.2, 0.3, 3.0, float("inf"))
    with pytest.raises(ArgumentError, match="gstop must be above"):
        signal.iirdesign(0.2, 0.3, 40.0, 3.0)
    with pytest.raises(ArgumentError, match="ftype"):
        signal.iirdesign(0.2, 0.3, 3.0, 40.0, ftype="bessel")
    with pytest.raises(ArgumentError, match="needs rp"):
        signal.iirfilter(3, 0.2, btype="low", ftype="cheby1")
    with pytest.raises(ConcretizationError, match="outside of jit"):
        fxflow.jit(lambda w: signal.buttord(w, 0.3, 3.0, 40.0)[1])(0.2)


def test_bandstop_orders_agree_with_scipy() -> None:
    passb, stopb = np.array([1.0, 4.0]), np.array([1.9, 3.0])
    with fxflow.config.override(x64=True):
        for kind in ("butter", "cheby", "ellip"):
            for ind, edge in ((0, 1.2), (1, 3.5)):
                args = (edge, ind, passb, stopb, 1.0, 30.0, kind)
                got = signal.band_stop_obj(*args)
                assert float(got) == pytest.approx(want.band_stop_obj(*args), 1e-9)
    with pytest.raises(ArgumentError, match="type"):
        signal.band_stop_obj(1.0, 0, passb, stopb, 1.0, 30.0, "no")
    with pytest.raises(ArgumentError, match="ind"):
        signal.band_stop_obj(1.0, 2, passb, stopb, 1.0, 30.0, "butter")
    with pytest.raises(ShapeError, match="stopb"):
        signal.band_stop_obj(1.0, 0, passb, [1.0], 1.0, 30.0, "butter")
