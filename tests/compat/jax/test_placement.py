"""Devices that programs name inside of compiled functions."""

import numpy as np
import pytest

import fxflow.compat.jax as jax
from fxflow.compat.jax import numpy as jnp

DEVICES = jax.devices()
X = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)


def test_device_put_inside_jit_moves_what_follows():
    """jax#6040."""

    def add(a, b):
        return jax.device_put(a, DEVICES[1]) + jax.device_put(b, DEVICES[1])

    for args in ((X, X), (jax.device_put(X, DEVICES[2]), X)):
        for _ in range(2):  # and again, by the short path
            out = jax.jit(add)(*args)
            assert out.devices() == {DEVICES[1]}
            np.testing.assert_allclose(out, X + X)


def test_parts_before_and_after_run_where_their_operands_are():
    @jax.jit
    def f(x):
        y = jnp.sin(x)
        z = jax.device_put(jnp.cos(y), DEVICES[1]) * 2
        return y, z, jax.device_put(z, DEVICES[0]) + y

    y, z, w = f(X)
    assert [a.devices() for a in (y, z, w)] == [{DEVICES[i]} for i in (0, 1, 0)]
    np.testing.assert_allclose(w, 2 * np.cos(np.sin(X)) + np.sin(X), rtol=1e-6)


def test_the_gradient_goes_through_both_devices():
    def loss(x):
        y = jax.device_put(jnp.sin(x), DEVICES[1])
        return jnp.sum(y**2)

    np.testing.assert_allclose(
        jax.jit(jax.grad(loss))(X), np.sin(2 * X), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda d: jnp.zeros(3, device=d),
        lambda d: jnp.arange(3, device=d),
        lambda d: jnp.full((2,), 5.0, device=d),
        lambda d: jnp.asarray(X, device=d),
        lambda d: jnp.ones_like(X, device=d),
    ],
    ids=["zeros", "arange", "full", "asarray", "ones_like"],
)
def test_creation_functions_inside_jit_honour_their_device(make):
    """jax#26000."""
    x, made = jax.jit(lambda x: (x + 1, make(DEVICES[2])))(X)
    assert x.devices() == {DEVICES[0]} and made.devices() == {DEVICES[2]}
    np.testing.assert_array_equal(made, make(DEVICES[2]))


def test_an_inner_function_keeps_its_device():
    """jax#5188."""
    inner = jax.jit(jnp.sin, device=DEVICES[1])
    y, z = jax.jit(lambda x: (inner(x), jnp.cos(x)))(X)
    assert y.devices() == {DEVICES[1]} and z.devices() == {DEVICES[0]}
    np.testing.assert_allclose(y, np.sin(X), rtol=1e-6)


def test_donated_and_static_arguments():
    def f(x, n):
        return jax.device_put(x, DEVICES[1]) * n

    moved = jax.jit(f, static_argnums=1, donate_argnums=0)
    np.testing.assert_allclose(moved(jnp.asarray(X), 3), 3 * X)
    assert moved(jnp.asarray(X), 3).devices() == {DEVICES[1]}


def test_a_function_that_names_its_own_device_is_one_program():
    f = jax.jit(lambda x: jax.device_put(x, DEVICES[0]) + 1)
    assert f(X).devices() == {DEVICES[0]}
    (program,) = f._caches.compiled.values()
    assert type(program).__name__ == "Compiled"


def test_a_traced_value_has_no_device():
    with pytest.raises(AttributeError, match="a traced value has no device"):
        jax.jit(lambda x: jnp.zeros(2, device=x.device))(X)
    assert jax.jit(lambda x: x * hasattr(x, "device"))(1.0) == 0
