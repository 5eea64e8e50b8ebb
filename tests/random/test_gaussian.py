"""Normal numbers and what is made of them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import config, random
from fxflow.errors import DtypeError, ShapeError
from tests.random import golden

KEY = random.key(5)
COUNT = 2000


@pytest.mark.parametrize("eager", ["auto", "xla"])
@pytest.mark.parametrize("name", ["normal", "normal_f64"])
def test_normal_as_jax(name: str, eager: str) -> None:
    with config.override(eager=eager):
        golden.check(name, ulps=2)


@pytest.mark.parametrize(
    "name",
    golden.names(
        "normal",
        "truncated_normal",
        "lognormal",
        "maxwell",
        "double_sided_maxwell",
        "wald",
    ),
)
def test_as_jax(name: str) -> None:
    golden.check(name, ulps=16 if name == "wald" else 4)


def _double_sided(x: Any) -> Any:
    half = scipy.stats.maxwell().cdf(np.abs(x)) / 2
    return 0.5 + np.sign(x) * half


CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "normal": (lambda: random.normal(KEY, (COUNT,)), scipy.stats.norm.cdf),
    "truncated": (
        lambda: random.truncated_normal(KEY, -0.5, 2.0, (COUNT,)),
        scipy.stats.truncnorm(-0.5, 2.0).cdf,
    ),
    "lognormal": (
        lambda: random.lognormal(KEY, 0.7, (COUNT,)),
        scipy.stats.lognorm(0.7).cdf,
    ),
    "maxwell": (lambda: random.maxwell(KEY, (COUNT,)), scipy.stats.maxwell.cdf),
    "double_sided_maxwell": (
        lambda: (random.double_sided_maxwell(KEY, 1.0, 2.0, (COUNT,)) - 1.0) / 2.0,
        _double_sided,
    ),
    "wald": (
        lambda: random.wald(KEY, 2.0, (COUNT,)),
        scipy.stats.invgauss(2.0, scale=1.0).cdf,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_distribution(name: str) -> None:
    draw, distribution = CASES[name]
    drawn = np.asarray(draw())
    assert drawn.dtype == np.float32
    assert scipy.stats.kstest(drawn, distribution).pvalue > 1e-3


def test_complex_normal() -> None:
    drawn = np.asarray(random.normal(KEY, (4000,), "complex64"))
    assert abs(drawn.mean()) < 0.06
    assert abs((np.abs(drawn) ** 2).mean() - 1) < 0.06
    for part in (drawn.real, drawn.imag):
        scaled = part * math.sqrt(2)
        assert scipy.stats.kstest(scaled, scipy.stats.norm.cdf).pvalue > 1e-3
    with pytest.raises(DtypeError, match="normal: dtype must be a float or complex"):
        random.normal(KEY, (), "int32")


def test_truncated_normal_stays_inside() -> None:
    low, high = np.float32(0.5), np.nextafter(np.float32(0.5), np.float32(9)) + 1e-6
    drawn = np.asarray(random.truncated_normal(KEY, low, np.float32(high), (500,)))
    assert (drawn > low).all()
    assert (drawn < high).all()
    far = np.asarray(random.truncated_normal(KEY, 6.0, 7.0, (50,)))
    assert (far >= 6).all()
    with pytest.raises(ShapeError, match="truncated_normal: parameters of shapes"):
        random.truncated_normal(KEY, np.zeros(3), 1.0, (2,))


def test_draws_are_independent() -> None:
    first, second = (np.asarray(random.normal(k, (3000,))) for k in random.split(KEY))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 3)
    drawn = fxflow.jit(fxflow.vmap(lambda k: random.normal(k, (4,))))(keys)
    for i in range(3):
        np.testing.assert_allclose(drawn[i], random.normal(keys[i], (4,)), rtol=1e-6)


def test_slope_of_a_reparametrised_number() -> None:
    def loss(mean: Any, deviation: Any) -> Any:
        return (mean + deviation * random.normal(KEY, (6,))).sum()

    slopes = fxflow.grad(loss, argnums=(0, 1))(1.0, 2.0)
    want = [6.0, float(np.asarray(random.normal(KEY, (6,))).sum())]
    np.testing.assert_allclose(slopes, want, rtol=1e-5)


def test_slope_in_a_bound() -> None:
    draw = lambda high: random.truncated_normal(KEY, -1.0, high, ())
    step = 1e-2
    want = (draw(1.0 + step) - draw(1.0 - step)) / (2 * step)
    np.testing.assert_allclose(fxflow.grad(draw)(1.0), want, rtol=1e-2)
