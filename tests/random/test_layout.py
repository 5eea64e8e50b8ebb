"""`out_sharding`: each device makes its own part of the same numbers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fxflow
from fxflow import NamedSharding, P, make_mesh, random
from fxflow._config import config
from fxflow.core.ir.trace import Tracer
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError
from fxflow.lax.transfer import laid_out
from fxflow.random import _layout
from tests.layouts import MESH, on
from tests.sweeps.sampling import sample

KEY = random.key(7)
SHAPE = (8, 4)
VECTOR = np.linspace(0.5, 1.5, 4, dtype=np.float32)


SAMPLERS = {
    "ball": lambda **k: random.ball(KEY, 4, shape=(8,), **k),
    "bernoulli": lambda **k: random.bernoulli(KEY, 0.3, SHAPE, **k),
    "beta": lambda **k: random.beta(KEY, 2.0, VECTOR, SHAPE, **k),
    "binomial": lambda **k: random.binomial(KEY, 9, 0.3, SHAPE, **k),
    "bits": lambda **k: random.bits(KEY, SHAPE, "uint16", **k),
    "categorical": lambda **k: random.categorical(KEY, VECTOR, shape=SHAPE, **k),
    "cauchy": lambda **k: random.cauchy(KEY, SHAPE, **k),
    "chisquare": lambda **k: random.chisquare(KEY, 3.0, SHAPE, **k),
    "choice": lambda **k: random.choice(KEY, 5, SHAPE, **k),
    "dirichlet": lambda **k: random.dirichlet(KEY, VECTOR, (8,), **k),
    "double_sided_maxwell": lambda **k: random.double_sided_maxwell(
        KEY, 0.0, 1.0, SHAPE, **k
    ),
    "exponential": lambda **k: random.exponential(KEY, SHAPE, **k),
    "f": lambda **k: random.f(KEY, 2.0, 3.0, SHAPE, **k),
    "gamma": lambda **k: random.gamma(KEY, VECTOR, SHAPE, **k),
    "generalized_normal": lambda **k: random.generalized_normal(KEY, 1.5, SHAPE, **k),
    "geometric": lambda **k: random.geometric(KEY, 0.4, SHAPE, **k),
    "gumbel": lambda **k: random.gumbel(KEY, SHAPE, **k),
    "laplace": lambda **k: random.laplace(KEY, SHAPE, **k),
    "levy_stable": lambda **k: random.levy_stable(KEY, 1.5, 0.5, SHAPE, **k),
    "loggamma": lambda **k: random.loggamma(KEY, 2.0, SHAPE, **k),
    "logistic": lambda **k: random.logistic(KEY, SHAPE, **k),
    "lognormal": lambda **k: random.lognormal(KEY, 0.5, SHAPE, **k),
    "maxwell": lambda **k: random.maxwell(KEY, SHAPE, **k),
    "multinomial": lambda **k: random.multinomial(
        KEY, 6, np.full((8, 4), 0.25, np.float32), **k
    ),
    "multivariate_normal": lambda **k: random.multivariate_normal(
        KEY, VECTOR, np.eye(4, dtype=np.float32), (8,), **k
    ),
    "normal": lambda **k: random.normal(KEY, SHAPE, **k),
    "orthogonal": lambda **k: random.orthogonal(KEY, 8, m=4, **k),
    "pareto": lambda **k: random.pareto(KEY, 3.0, SHAPE, **k),
    "permutation": lambda **k: random.permutation(
        KEY, np.arange(32).reshape(SHAPE), **k
    ),
    "poisson": lambda **k: random.poisson(KEY, 2.5, SHAPE, **k),
    "rademacher": lambda **k: random.rademacher(KEY, SHAPE, **k),
    "randint": lambda **k: random.randint(KEY, SHAPE, -3, 9, **k),
    "rayleigh": lambda **k: random.rayleigh(KEY, 2.0, SHAPE, **k),
    "t": lambda **k: random.t(KEY, 3.0, SHAPE, **k),
    "triangular": lambda **k: random.triangular(KEY, 0.0, 1.0, 4.0, SHAPE, **k),
    "truncated_normal": lambda **k: random.truncated_normal(
        KEY, -1.0, VECTOR, SHAPE, **k
    ),
    "uniform": lambda **k: random.uniform(KEY, SHAPE, "float32", -1.0, 1.0, **k),
    "wald": lambda **k: random.wald(KEY, 2.0, SHAPE, **k),
    "weibull_min": lambda **k: random.weibull_min(KEY, 2.0, 3.0, SHAPE, **k),
}
KEYS = {"clone", "fold_in", "key", "key_data", "key_dtype", "key_impl", "split"}


def test_every_sampler_has_it():
    assert set(SAMPLERS) == set(random.__all__) - KEYS - {"wrap_key_data"}
    for name in SAMPLERS:
        parameter = inspect.signature(getattr(random, name)).parameters["out_sharding"]
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default is None


@pytest.mark.parametrize("name", sample([*SAMPLERS], 7, of="layouts"))
def test_the_same_numbers(name):
    draw = SAMPLERS[name]
    expected = draw()
    got = draw(out_sharding=on("x", "y"))
    assert got.sharding.is_equivalent_to(on("x", "y"), 2)
    assert got.aval == expected.aval
    if np.issubdtype(expected.dtype, np.floating):
        # Compiled or not, functions such as log differ in the last bits.
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)
    else:
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P("y", "x"), P(("x", "y")), P(None, "y")], ids=str
)
def test_any_layout(spec):
    got = random.normal(KEY, (16, 4), out_sharding=on(*spec))
    assert got.sharding.is_equivalent_to(on(*spec), 2)
    np.testing.assert_allclose(got, random.normal(KEY, (16, 4)), rtol=1e-6)


def test_samples_lie_on_the_given_device():
    got = random.randint(KEY, SHAPE, 0, 9, out_sharding=fxflow.devices()[3])
    assert got.devices() == {fxflow.devices()[3]}
    np.testing.assert_array_equal(got, random.randint(KEY, SHAPE, 0, 9))


def test_bounds_that_are_arrays():
    low = np.arange(4)
    got = random.randint(KEY, SHAPE, low, 9, out_sharding=on("x"))
    np.testing.assert_array_equal(got, random.randint(KEY, SHAPE, low, 9))


def test_each_device_makes_its_part_only(monkeypatch):
    def draw(key):
        return random.normal(key, (64, 6), out_sharding=on("x", "y"))

    text = fxflow.jit(draw).lower(KEY).compile().as_text()
    assert "f32[16,3]" in text
    assert "[64,6]" not in text
    assert "all-gather" not in text
    # Eagerly, this is a program, too: nothing but its last node lays anything out.
    seen = []

    def spy(name, value, where):
        seen.append(isinstance(value, Tracer))
        return laid_out(name, value, where)

    monkeypatch.setattr(_layout, "laid_out", spy)
    draw(KEY)
    assert seen == [True]


def test_programs_are_kept(monkeypatch):
    seen = []

    def spy(name, value, where):
        seen.append(value)
        return laid_out(name, value, where)

    monkeypatch.setattr(_layout, "laid_out", spy)
    for shape in ([8, 2], (8, 2), np.array([8, 2])):
        random.logistic(KEY, shape, out_sharding=on("x", "y"))
    assert len(seen) == 1


def test_a_spec_is_over_the_current_mesh():
    other = make_mesh((8,), ("x",))
    for mesh in (MESH, other):
        with fxflow.set_mesh(mesh):
            got = random.uniform(KEY, (8,), out_sharding=P("x"))
        assert got.sharding == NamedSharding(mesh, P("x"))
        np.testing.assert_array_equal(got, random.uniform(KEY, (8,)))


def test_under_a_trace():
    @fxflow.jit
    def f(key):
        return random.normal(key, SHAPE, out_sharding=on("x", "y")) * 2

    assert "device_put" in str(fxflow.make_graph(f)(KEY))
    got = f(KEY)
    assert got.sharding.is_equivalent_to(on("x", "y"), 2)
    np.testing.assert_allclose(got, random.normal(KEY, SHAPE) * 2, rtol=1e-6)


def test_without_jit():
    with config.override(disable_jit=True):
        got = random.normal(KEY, SHAPE, out_sharding=on("x"))
    assert got.sharding.is_equivalent_to(on("x"), 2)
    np.testing.assert_allclose(got, random.normal(KEY, SHAPE), rtol=1e-6)


def test_wide_numbers():
    with config.override(x64=True):
        got = random.normal(KEY, SHAPE, out_sharding=on("x"))
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, random.normal(KEY, SHAPE), rtol=1e-12)
    assert random.normal(KEY, SHAPE, out_sharding=on("x")).dtype == np.float32


def test_invalid_out_shardings_keys_and_shapes_are_refused():
    with pytest.raises(PlacementError, match="at least 2 axes"):
        random.normal(KEY, (8,), out_sharding=on("x", "y"))
    with pytest.raises(PlacementError):
        random.normal(KEY, (7, 3), out_sharding=on("x"))
    with pytest.raises(PlacementError, match="mesh"):
        random.normal(KEY, (8,), out_sharding=P("x"))
    with pytest.raises(ArgumentError, match="out_sharding: expected a Sharding"):
        random.normal(KEY, (8,), out_sharding=3)
    with pytest.raises(ArgumentError, match="expected a random key"):
        random.normal(3.0, (8,), out_sharding=on("x"))
    with pytest.raises(ArgumentError, match="shape must be a sequence of integers"):
        random.normal(KEY, ({},), out_sharding=on("x"))
    with pytest.raises(TypeError, match="shapes"):
        random.normal(KEY, shapes=(8,), out_sharding=on("x"))
