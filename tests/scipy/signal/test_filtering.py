"""Filters beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 70, 3))
FILTERS: list[tuple[Any, Any]] = [
    want.butter(4, 0.2),
    ([1.0, 2.0, 0.5], [1.0]),
    ([2.0], [4.0, 1.0]),
    ([3.0], [2.0]),
    ([1.0, 2.0, 3.0, 4.0], [2.0, 1j]),
]
SOS = want.butter(5, [0.1, 0.4], "bandpass", output="sos")


def close(got: Any, expected: Any, tolerance: float = 1e-10) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("b, a", FILTERS)
def test_filters_agree_with_scipy(b: Any, a: Any) -> None:
    order = max(len(b), len(a)) - 1
    with fxflow.config.override(x64=True):
        for axis in (0, 1, -1):
            close(signal.lfilter(b, a, X, axis), want.lfilter(b, a, X, axis))
        state = RNG.normal(size=(2, order, 1))
        got = signal.lfilter(b, a, X, 1, state)
        expected = want.lfilter(b, a, X, 1, np.broadcast_to(state, (2, order, 3)))
        close(got[0], expected[0])
        close(got[1], expected[1])
        if order:  # SciPy's takes no filter without a state
            close(signal.lfilter_zi(b, a), want.lfilter_zi(b, a))
        for y, x in (([1.0, 2.0], None), ([1.0], [2.0, 3.0, 4.0, 5.0, 6.0])):
            close(signal.lfiltic(b, a, y, x), want.lfiltic(b, a, y, x))
    single = signal.lfilter(b, a, X.astype(np.float32), 1)
    assert single.dtype == (np.complex64 if np.iscomplexobj(a) else np.float32)
    close(single, want.lfilter(b, a, X, 1), 1e-3)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 512, 1000])
def test_signals_of_any_length_are_cut_into_blocks(n: int) -> None:
    b, a = want.butter(3, 0.1)
    x = RNG.normal(size=n)
    with fxflow.config.override(x64=True):
        close(signal.lfilter(b, a, x), want.lfilter(b, a, x))
        close(signal.sosfilt(SOS, x), want.sosfilt(SOS, x))


def test_parts_of_a_signal_give_what_the_whole_gives() -> None:
    b, a = want.butter(3, 0.1)
    x = RNG.normal(size=100)
    with fxflow.config.override(x64=True):
        first, state = signal.lfilter(b, a, x[:37], zi=np.zeros(3))
        rest, _ = signal.lfilter(b, a, x[37:], zi=state)
        close(np.concatenate([first, rest]), signal.lfilter(b, a, x))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sections_agree_with_scipy(axis: int) -> None:
    states = RNG.normal(size=(len(SOS), *X.shape))
    states = np.take(states, [0, 0] if X.shape[axis] < 2 else [0, 1], axis % 3 + 1)
    with fxflow.config.override(x64=True):
        close(signal.sosfilt(SOS, X, axis), want.sosfilt(SOS, X, axis))
        got = signal.sosfilt(SOS, X, axis, states)
        expected = want.sosfilt(SOS, X, axis, states.copy())
        close(got[0], expected[0])
        close(got[1], expected[1])
        close(signal.sosfilt_zi(SOS), want.sosfilt_zi(SOS))


@pytest.mark.parametrize("padtype", ["odd", "even", "constant", None])
def test_both_directions_agree_with_scipy(padtype: str | None) -> None:
    with fxflow.config.override(x64=True):
        for padlen in (None, 0, 5):
            settings: dict[str, Any] = {"axis": 1, "padtype": padtype, "padlen": padlen}
            for b, a in FILTERS[:3]:
                got = signal.filtfilt(b, a, X, **settings)
                close(got, want.filtfilt(b, a, X, **settings))
            got = signal.filtfilt([3.0], [2.0], X, **settings)
            close(got, X * 2.25)
            got = signal.sosfiltfilt(SOS, X, **settings)
            close(got, want.sosfiltfilt(SOS, X, **settings))


@pytest.mark.parametrize("irlen", [None, 20, 60])
def test_gustafsson_agrees_with_scipy(irlen: int | None) -> None:
    settings: dict[str, Any] = {"axis": 1, "method": "gust", "irlen": irlen}
    with fxflow.config.override(x64=True):
        for b, a in FILTERS[:4]:
            got = signal.filtfilt(b, a, X, **settings)
            close(got, want.filtfilt(b, a, X, **settings), 1e-8)


def test_transforms_compose() -> None:
    b, a = (np.asarray(v) for v in want.butter(2, 0.3))
    x = X[0, :, 0]
    with fxflow.config.override(x64=True):
        each = fxflow.jit(fxflow.vmap(signal.lfilter, in_axes=(None, None, 0)))
        close(each(b, a, X[0].T), want.lfilter(b, a, X[0].T))
        filters = fxflow.vmap(signal.lfilter, in_axes=(0, 0, None))
        both = filters(np.stack([b, 2 * b]), np.stack([a, a]), x)
        close(both[1], 2 * want.lfilter(b, a, x))
        traced = fxflow.jit(signal.sosfiltfilt)(SOS, x)
        close(traced, signal.sosfiltfilt(SOS, x, padlen=33))

        def energy(b: Any, a: Any, x: Any) -> Any:
            return (signal.lfilter(b, a, x) ** 2).sum()

        slopes = fxflow.grad(energy, argnums=(0, 1, 2))(b, a, x)
        h = 1e-6
        for k, at in ((0, 1), (1, 0), (1, 2), (2, 5)):
            args = [b, a, x]
            up, down = (list(args) for _ in range(2))
            bump = h * (np.arange(args[k].size) == at)
            up[k], down[k] = args[k] + bump, args[k] - bump
            difference = (energy(*up) - energy(*down)) / (2 * h)
            np.testing.assert_allclose(slopes[k][at], difference, 1e-6)


def test_a_delay_is_learned() -> None:
    """The derivative by the coefficients finds the filter that made a signal."""
    x = RNG.normal(size=200)
    y = want.lfilter([0.5], [1.0, -0.5], x)

    def loss(p: Any) -> Any:
        a = fxflow.numpy.stack([fxflow.numpy.ones_like(p[1]), p[1]])
        return ((signal.lfilter(p[:1], a, x) - y) ** 2).mean()

    with fxflow.config.override(x64=True):
        p = fxflow.numpy.asarray(np.array([0.2, 0.0]))
        step = fxflow.jit(lambda p: p - 0.4 * fxflow.grad(loss)(p))
        for _ in range(200):
            p = step(p)
        close(p, [0.5, -0.5], 1e-6)


def test_empty_signals_and_small_dtypes() -> None:
    b, a = FILTERS[0]
    assert signal.lfilter(b, a, np.zeros((2, 0))).shape == (2, 0)
    assert signal.lfilter(b, a, np.zeros((0, 5))).shape == (0, 5)
    assert signal.sosfilt(SOS, np.zeros((0, 5))).shape == (0, 5)
    assert signal.lfilter([1.0], [1.0], np.arange(3)).dtype == np.float32
    half = np.ones(3, np.float16)
    assert signal.lfilter(half, half, half).dtype == np.float16


def test_bad_arguments_are_refused() -> None:
    b, a = FILTERS[0]
    with pytest.raises(ArgumentError, match=r"a\[0\] must not be 0"):
        signal.lfilter(b, [0.0, 1.0], X)
    with pytest.raises(ShapeError, match="b must be a vector"):
        signal.lfilter(np.ones((2, 2)), a, X)
    with pytest.raises(AxisError):
        signal.lfilter(b, a, 1.0)
    with pytest.raises(ShapeError, match="zi must have"):
        signal.lfilter(b, a, X, zi=np.ones(4))
    with pytest.raises(ShapeError, match="zi must have shape"):
        signal.lfilter(b, a, X[0, :, 0], zi=np.ones(5))
    with pytest.raises(ArgumentError, match="padtype"):
        signal.filtfilt(b, a, X, 1, "round")
    with pytest.raises(ShapeError, match="padlen = 15"):
        signal.filtfilt(b, a, X, 0)
    with pytest.raises(ArgumentError, match="method"):
        signal.filtfilt(b, a, X, method="best")
    with pytest.raises(ShapeError, match="sos must be"):
        signal.sosfilt(SOS[:, :5], X)
    with pytest.raises(ArgumentError, match="must be 1"):
        signal.sosfilt(2 * SOS, X)
    with pytest.raises(ShapeError, match="zi must have shape"):
        signal.sosfilt(SOS, X, zi=np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="not 0"):
        signal.lfilter_zi(b, [0.0, 0.0])


def test_many_sections_with_little_damping_stay_accurate() -> None:
    x = RNG.normal(size=4000)
    for sos in (
        want.butter(8, 0.02, output="sos"),
        want.ellip(8, 0.1, 80, [0.1, 0.12], "bandpass", output="sos"),
    ):
        expected = want.sosfilt(sos, x)
        with fxflow.config.override(x64=True):
            got = signal.sosfilt(sos, x)
        close(got / np.abs(expected).max(), expected / np.abs(expected).max(), 1e-10)


def test_sections_are_differentiable() -> None:
    # Traced: differences leave sections whose sos[:, 3] is not 1.
    x = RNG.normal(size=20)

    @fxflow.jit
    def energy(sos: Any, x: Any) -> Any:
        return (signal.sosfilt(sos, x) ** 2).sum() + signal.sosfiltfilt(sos, x)[3]

    with fxflow.config.override(x64=True):
        sos = want.butter(3, 0.3, output="sos")
        slopes = fxflow.jit(fxflow.grad(energy, (0, 1)))(sos, x)
        ways = RNG.normal(size=sos.shape), RNG.normal(size=x.shape)
        ways[0][:, 3] = 0
        ends = [energy(sos + h * ways[0], x + h * ways[1]) for h in (-1e-6, 1e-6)]
        along = sum((s * w).sum() for s, w in zip(slopes, ways, strict=True))
        np.testing.assert_allclose(along, (ends[1] - ends[0]) / 2e-6, 1e-6)
        forward = fxflow.jit(lambda *v: fxflow.jvp(energy, v, ways)[1])(sos, x)
        np.testing.assert_allclose(forward, along, 1e-9)
