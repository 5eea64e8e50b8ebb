"""Linear systems as objects."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(7)
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 1))
C, D = RNG.normal(size=(1, 3)), RNG.normal(size=(1, 1))
FORMS: list[Any] = [
    ([1.0, 2.0], [2.0, 3.0, 5.0]),
    ([-1.0], [-2.0, -3.0], 2.0),
    (A, B, C, D),
]


def close(one: Any, other: Any) -> None:
    one, other = np.atleast_1d(one), np.atleast_1d(other)
    assert one.shape == other.shape
    if np.iscomplexobj(other) and other.ndim == 1:
        one, other = np.sort_complex(one), np.sort_complex(other)
    np.testing.assert_allclose(one, other, 1e-8, 1e-9)


def test_forms_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for system in FORMS:
            for ours, theirs in (
                (signal.lti(*system), want.lti(*system)),
                (signal.dlti(*system, dt=0.5), want.dlti(*system, dt=0.5)),
            ):
                assert ours.dt == theirs.dt
                close(ours.poles, theirs.poles)
                close(ours.zeros, theirs.zeros)
                for attribute in ("num", "den"):
                    got = getattr(ours.to_tf(), attribute)
                    close(np.squeeze(got), getattr(theirs.to_tf(), attribute).squeeze())
                close(ours.to_zpk().gain, theirs.to_zpk().gain)
                for letter in "ABCD":
                    got = getattr(ours.to_ss(), letter)
                    close(got, getattr(theirs.to_ss(), letter))
            sampled = signal.lti(*system).to_discrete(0.1, "bilinear")
            theirs = want.lti(*system).to_discrete(0.1, "bilinear")
            close(sampled.poles, theirs.poles)
            assert sampled.dt == theirs.dt
            same = type(ours)(ours)
            assert same.dt == 0.5 and type(same) is type(ours)


def test_systems_go_through_transforms() -> None:
    with fxflow.config.override(x64=True):
        system = signal.StateSpace(A - 3 * np.eye(3), B, C, D)
        times = np.linspace(0, 2, 9)

        def end(s: Any) -> Any:
            return s.step(T=times)[1][-1]

        np.testing.assert_allclose(fxflow.jit(end)(system), end(system), 1e-9)
        slope = fxflow.grad(end)(system)
        assert isinstance(slope, signal.StateSpace)
        way = RNG.normal(size=(3, 3))
        ends = [
            float(end(signal.StateSpace(system.A + h * way, B, C, D)))
            for h in (-1e-5, 1e-5)
        ]
        rise = (ends[1] - ends[0]) / 2e-5
        assert float((slope.A * way).sum()) == pytest.approx(rise, 1e-6)
        batch = fxflow.vmap(
            lambda g: signal.TransferFunction(g * np.ones(1), [1.0, 2.0])
        )
        many = batch(fnp.arange(1.0, 4.0))
        assert many.num.shape == (3, 1)
        ends = fxflow.vmap(end)(many)
        np.testing.assert_allclose(ends, ends[0] * np.arange(1.0, 4.0), 1e-9)
        # The poles of a polynomial move with its coefficients: p² = -c.
        pole = fxflow.grad(
            lambda c: abs(signal.lti([1.0], fnp.stack([1.0, 0.0, c])).poles[0])
        )
        assert float(pole(4.0)) == pytest.approx(0.25)


def test_state_spaces_add_and_multiply() -> None:
    with fxflow.config.override(x64=True):
        one, other = signal.StateSpace(A, B, C, D), signal.StateSpace(A.T, B, C, D)
        theirs, second = want.StateSpace(A, B, C, D), want.StateSpace(A.T, B, C, D)
        pairs: list[tuple[Any, Any]] = [
            (one + other, theirs + second),
            (one - other, theirs - second),
            (one * other, theirs * second),
            (2 * one, 2 * theirs),
            (one * 3.0, theirs * 3.0),
            (one / 4.0, theirs / 4.0),
            (one + 1.5, theirs + 1.5),
            (1.5 - one, 1.5 - theirs),
        ]
        for got, expected in pairs:
            for letter in "ABCD":
                close(getattr(got, letter), getattr(expected, letter))
        with pytest.raises(ArgumentError, match="one dt"):
            one + signal.StateSpace(A, B, C, D, dt=0.1)
        with pytest.raises(ShapeError, match="do not fit"):
            one * signal.StateSpace(A, B, np.ones((2, 3)), np.ones((2, 1)))


def test_bad_objects_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.lti([1.0]), "got 1 values"),
        (ArgumentError, lambda: signal.StateSpace(A, B), "4 arrays"),
        (ArgumentError, lambda: signal.dlti([1.0], [1.0, 2.0], dt=-1.0), "dt must"),
        (ArgumentError, lambda: signal.dlti([1.0], [1.0], dt=None), "dt must"),
        (ArgumentError, lambda: signal.TransferFunction([1.0], [0.0]), "not 0"),
        (ShapeError, lambda: signal.ZerosPolesGain(A, [1.0], 1.0), "zeros must"),
        (
            ArgumentError,
            lambda: signal.dlti([1.0], [1.0, 2.0]).to_discrete(0.1),
            "is sampled",
        ),
        (
            ConcretizationError,
            lambda: fxflow.jit(lambda dt: signal.lti(A, B, C, D).to_discrete(dt).A)(
                0.1
            ),
            "cont2discrete",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
