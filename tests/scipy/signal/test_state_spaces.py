"""State spaces and sampled systems beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

pytestmark = pytest.mark.filterwarnings("ignore::scipy.signal.BadCoefficients")
RNG = np.random.default_rng(6)
A, B = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2))
C, D = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 2))
ONE = (A, B[:, :1], C[:1], np.zeros((1, 1)))


def close(got: Any, expected: Any, tol: float = 1e-9) -> None:
    for one, other in zip(got, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        if np.iscomplexobj(other) and np.ndim(other) == 1:
            one, other = np.sort_complex(one), np.sort_complex(other)
        np.testing.assert_allclose(one, other, tol, tol)


def test_forms_agree_with_scipy() -> None:
    num, den = RNG.normal(size=3), np.array([2.0, 1.0, 0.5, 0.25, 1.5])
    zpk = want.butter(4, 2.0, analog=True, output="zpk")
    with fxflow.config.override(x64=True):
        close(signal.tf2ss(num, den), want.tf2ss(num, den))
        close(signal.tf2ss([num, num + 1], den), want.tf2ss([num, num + 1], den))
        close(signal.tf2ss([2.0], [4.0]), want.tf2ss([2.0], [4.0]))
        close(signal.zpk2ss(*zpk), want.zpk2ss(*zpk))
        for which in (0, 1):
            got = signal.ss2tf(A, B, C, D, which)
            close(got, want.ss2tf(A, B, C, D, which))
            close(fxflow.jit(lambda a, i=which: signal.ss2tf(a, B, C, D, i))(A), got)
        close(signal.ss2zpk(*ONE), want.ss2zpk(*ONE))
        jitted = fxflow.jit(lambda a, b, c: signal.ss2zpk(a, b, c, np.zeros((1, 1))))
        close(jitted(*ONE[:3]), want.ss2zpk(*ONE))
        close(signal.abcd_normalize(A, D=D)[1:3], (np.zeros((4, 2)), np.zeros((3, 4))))
        close(signal.abcd_normalize(D=D, B=B)[2:], (np.zeros((3, 4)), D))


def test_characteristic_polynomials_have_derivatives_at_equal_eigenvalues() -> None:
    with fxflow.config.override(x64=True):
        jordan = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, 0.5]])
        b, c, d = np.ones((3, 1)), np.ones((1, 3)), np.zeros((1, 1))

        def at(a: Any) -> Any:
            num, den = signal.ss2tf(a, b, c, d)
            return (num**2).sum() + (den**3).sum()

        way = RNG.normal(size=(3, 3))
        h = 1e-4
        rise = float(at(jordan + h * way) - at(jordan - h * way)) / (2 * h)
        slope = fxflow.grad(at)(jordan)
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-6)
        bend = fxflow.grad(lambda a: (fxflow.grad(at)(a) * way).sum())(jordan)
        ends = [
            (np.asarray(fxflow.grad(at)(fnp.asarray(jordan + s * h * way))) * way).sum()
            for s in (-1, 1)
        ]
        want_bend = (ends[1] - ends[0]) / (2 * h)
        assert float((bend * way).sum()) == pytest.approx(want_bend, 1e-5)


def test_sampled_systems_agree_with_scipy() -> None:
    tf, zpk = ([1.0, 2.0], [1.0, 3.0, 5.0]), ([-1.0], [-2.0, -3.0], 2.0)
    strict = (A, B, C, np.zeros((3, 2)))
    ways: list[tuple[str, Any]] = [
        *((m, None) for m in ("zoh", "foh", "bilinear", "euler", "backward_diff")),
        ("gbt", 0.3),
        ("impulse", None),
    ]
    with fxflow.config.override(x64=True):
        for method, alpha in ways:
            for system in (tf, zpk, strict if method == "impulse" else (A, B, C, D)):
                got = signal.cont2discrete(system, 0.3, method, alpha)
                close(got, want.cont2discrete(system, 0.3, method, alpha), 1e-8)
        step = fxflow.jit(lambda dt: signal.cont2discrete((A, B, C, D), dt)[:4])
        close(step(0.3), want.cont2discrete((A, B, C, D), 0.3)[:4])
        # d exp(A dt) / d dt = A exp(A dt).
        _, slope = fxflow.jvp(
            lambda dt: signal.cont2discrete((A, B, C, D), dt)[0], (0.3,), (1.0,)
        )
        np.testing.assert_allclose(slope, A @ step(0.3)[0], 1e-9, 1e-9)


def test_bad_systems_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.tf2ss([1.0, 2.0], [1.0]), "denominator"),
        (ArgumentError, lambda: signal.ss2tf(A, B, C, D, 2), "input"),
        (ArgumentError, lambda: signal.abcd_normalize(A), "dimension p"),
        (ShapeError, lambda: signal.abcd_normalize(A, B[:3], C, D), "B must"),
        (ShapeError, lambda: signal.ss2zpk(A, B, C, D), "one output"),
        (ArgumentError, lambda: signal.cont2discrete((1,), 0.1), "system must"),
        (ArgumentError, lambda: signal.cont2discrete(ONE, 0.1, "no"), "method"),
        (ArgumentError, lambda: signal.cont2discrete(ONE, 0.1, "gbt"), "alpha"),
        (ArgumentError, lambda: signal.cont2discrete(ONE, 0.1, "gbt", 2.0), "alpha"),
        (
            ArgumentError,
            lambda: signal.cont2discrete((A, B, C, D), 0.1, "impulse"),
            "without D",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
