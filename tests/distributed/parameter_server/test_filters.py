import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
from fxflow.distributed.compression import bf16, int8
from fxflow.distributed.parameter_server.filters import Filter, coded, exact, filter_of

SHAPES = [(), (3,), (0, 2), (5, 70)]


def gradient(seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape).astype(np.float32) for shape in SHAPES]


def sent(code: Filter, steps: int) -> tuple[list, list]:
    """Sums of what was to be sent, and of what arrived."""
    residual = code.init(gradient(0))
    totals = [np.zeros(shape) for shape in SHAPES]
    arrived = [np.zeros(shape) for shape in SHAPES]
    for step in range(steps):
        given = gradient(step)
        packed, residual = fxflow.jit(code.encode)(given, residual)
        found = fxflow.jit(code.decode)(packed, given)
        for i, (g, f) in enumerate(zip(given, found, strict=True)):
            assert f.shape == g.shape
            assert f.dtype == g.dtype
            totals[i] += g
            arrived[i] += np.asarray(f)
    return totals, arrived


def test_exact_is_exact() -> None:
    for total, found in zip(*sent(exact(), 3), strict=True):
        np.testing.assert_array_equal(total, found)


@pytest.mark.parametrize(("code", "error"), [(bf16(), 0.02), (int8(), 0.05)])
def test_losses_do_not_add_up(code: object, error: float) -> None:
    once = sent(coded(code), 1)
    often = sent(coded(code), 60)
    for total, found in zip(*often, strict=True):
        np.testing.assert_allclose(total, found, atol=error)
    assert any((a != b).any() for a, b in zip(*once, strict=True))


@given(st.floats(allow_nan=True, allow_infinity=True, width=32))
def test_one_bad_gradient_does_not_spoil_the_next(bad: float) -> None:
    code = coded(int8(4))
    x = [np.array([1.0, bad], np.float32)]
    _, residual = code.encode(x, code.init(x))
    assert np.isfinite(np.asarray(residual[0])).all()


def test_integers_travel_as_they_are() -> None:
    code = coded(int8())
    x = [np.arange(3, dtype=np.int32)]
    packed, residual = code.encode(x, code.init(x))
    np.testing.assert_array_equal(code.decode(packed, x)[0], x[0])
    assert residual == [None]


def test_names() -> None:
    assert filter_of("f32").name == "exact()"
    assert filter_of(exact()).name == "exact()"
    assert filter_of("int8").name == filter_of(int8()).name
