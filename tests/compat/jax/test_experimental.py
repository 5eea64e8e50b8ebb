"""Modules of `jax.experimental`, with numbers that JAX 0.10.2 gives."""

import numpy as np
import pytest

from fxflow.compat import jax
from fxflow.compat.jax import numpy as jnp
from fxflow.compat.jax.experimental.compute_on import compute_on
from fxflow.compat.jax.experimental.custom_partitioning import custom_partitioning
from fxflow.compat.jax.experimental.jet import jet, jet2
from fxflow.compat.jax.experimental.rnn import (
    get_num_params_in_lstm,
    init_lstm_weight,
    lstm,
    swap_lstm_gates,
)

SIZES = (3, 4, 2, True)


def test_jet():
    _, found = jet(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],), ignored=True)
    assert [float(f) for f in found] == [12.0, 24.0, 42.0]
    _, found = jet2(lambda x: x**3, (2.0,), ([1.0, 1.0, 0.0],))
    assert [float(f) for f in found] == [12.0, 18.0, 13.0]


def test_lstm():
    assert get_num_params_in_lstm(*SIZES) == 736
    weights = init_lstm_weight(jax.random.key(0), *SIZES)
    np.testing.assert_allclose(weights[:2], [0.447667, 0.47857988], rtol=1e-6)
    zeros = jnp.zeros((4, 2, 4))
    lengths = jnp.array([5, 3])
    x = jnp.ones((2, 5, 3))
    y, h, c = lstm(x, zeros, zeros, weights, lengths, *SIZES[:3], 0.0, SIZES[3])
    assert y.shape == (2, 5, 8)
    assert h.shape == c.shape == (4, 2, 4)
    sums = [float(a.sum()) for a in (y, h, c)]
    np.testing.assert_allclose(sums, [4.080948, 2.273596, 4.5586004], rtol=1e-5)
    assert not np.any(y[1, 3:])
    with pytest.raises(NotImplementedError, match=r"dropout must be 0, got 0\.5"):
        lstm(x, zeros, zeros, weights, lengths, *SIZES[:3], 0.5, SIZES[3])


def test_lstm_gates():
    swapped = swap_lstm_gates(jnp.arange(736.0), *SIZES)
    assert swapped[:24].tolist() == list(range(24))
    assert swapped[24:48].tolist() == [*range(36, 48), *range(24, 36)]


def test_compute_on():
    with compute_on("device_host"):
        assert float(jnp.ones(()) * 2) == 2.0
    assert float(compute_on("gpu_stream:1")(jax.jit(lambda x: x + 1))(1.0)) == 2.0
    with pytest.raises(ValueError, match="'moon' is none of"), compute_on("moon"):
        pass


def test_custom_partitioning():
    @custom_partitioning
    def double(x):
        return x * 2

    double.def_partition(lambda *a: a, sharding_rule="i -> i")
    assert jax.jit(double)(jnp.ones(2)).tolist() == [2.0, 2.0]
    assert double.__name__ == "double"
