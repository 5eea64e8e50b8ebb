"""Filters moved to other bands beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

CHANGES = {
    "lp2lp": (2.0,),
    "lp2hp": (2.0,),
    "lp2bp": (2.0, 0.7),
    "lp2bs": (2.0, 0.7),
    "bilinear": (3.0,),
}


def close(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        one, other = np.atleast_1d(one), np.atleast_1d(other)
        assert one.shape == other.shape
        if np.iscomplexobj(other):
            one, other = np.sort_complex(one.round(9)), np.sort_complex(other.round(9))
        np.testing.assert_allclose(one, other, 1e-7, 1e-7)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_agree_with_scipy(name: str) -> None:
    roots = want.cheb2ap(5, 40.0)
    b, a = map(np.real, want.zpk2tf(*roots))
    by = CHANGES[name]
    with fxflow.config.override(x64=True):
        for given in (roots, want.ellipap(4, 1.0, 40.0)):
            got = getattr(signal, name + "_zpk")(*given, *by)
            close(got, getattr(want, name + "_zpk")(*given, *by))
        for pair in ((b, a), ([1.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [1.0, 2.0])):
            close(getattr(signal, name)(*pair, *by), getattr(want, name)(*pair, *by))
        slope = fxflow.grad(
            lambda w: getattr(signal, name)([1.0, 3.0], [1.0, 2.0, 3.0], w)[1][-1]
        )
        near = [
            getattr(want, name)([1.0, 3.0], [1.0, 2.0, 3.0], w)[1][-1]
            for w in (2 - 1e-5, 2 + 1e-5)
        ]
        np.testing.assert_allclose(slope(2.0), (near[1] - near[0]) / 2e-5, 1e-6, 1e-6)


def test_prototypes_agree_with_scipy() -> None:
    ripples: dict[str, tuple[Any, ...]] = {
        "buttap": (),
        "cheb1ap": (1.0,),
        "cheb2ap": (40.0,),
        "ellipap": (1.0, 40.0),
        "besselap": ("mag",),
    }
    with fxflow.config.override(x64=True):
        for name, by in ripples.items():
            for order in (0, 1, 2, 5):
                close(
                    getattr(signal, name)(order, *by), getattr(want, name)(order, *by)
                )


@pytest.mark.parametrize("name", ["lp2bp_zpk", "lp2bs_zpk"])
def test_one_order_of_roots(name: str) -> None:
    roots = (np.array([-0.45, 0.3]), np.array([-0.4, 0.3]), 1.5)
    function = getattr(signal, name)
    for call in (function, fxflow.jit(function)):
        for got, other in zip(
            call(*roots, 4.0, 2.0), function(*roots, 4.0, 2.0), strict=True
        ):
            np.testing.assert_allclose(got, other, 1e-5)
    first = getattr(want, name)(*roots, 4.0, 2.0)[1]
    np.testing.assert_allclose(function(*roots, 4.0, 2.0)[1][:1], first[:1], 1e-5)


def test_leading_zeros_are_left_out() -> None:
    got = signal.normalize([[0, 0, 1], [0, 1, 2.0]], [0, 2, 3.0])
    close(got, ([[0, 0.5], [0.5, 1]], [1, 1.5]))
    b, a = fxflow.jit(signal.normalize)(fnp.array([1.0, 2.0]), fnp.array([2.0, 4.0]))
    close((b, a), ([0.5, 1.0], [1.0, 2.0]))


def test_bad_filters_are_refused() -> None:
    with pytest.raises(ArgumentError, match="more zeros than poles"):
        signal.lp2lp_zpk([1.0, 2.0], [1.0], 1.0)
    with pytest.raises(ShapeError, match="z must be a vector"):
        signal.lp2hp_zpk([[1.0]], [1.0], 1.0)
    with pytest.raises(ShapeError, match="b must be a vector"):
        signal.lp2bp([[1.0]], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="not 0"):
        signal.normalize([1.0], [0.0, 0.0])
    with pytest.raises(ArgumentError, match="rs must be above rp"):
        signal.ellipap(3, 40.0, 1.0)
    with pytest.raises(ArgumentError, match="rp must be positive"):
        signal.cheb1ap(3, -1.0)
    with pytest.raises(ArgumentError, match="norm"):
        signal.besselap(3, "other")
