"""Normal distributions, compared with optax 0.2.8."""

import numpy as np
import pytest

import fxflow
from fxflow import optim
from fxflow.errors import ShapeError


def test_densities_match_optax() -> None:
    normal = optim.multi_normal(np.float32([1, 2]), np.float32([0, 0.5]))
    np.testing.assert_allclose(normal.log_prob(np.float32([0, 1])), -3.0218167, 1e-6)
    many = fxflow.jit(normal.log_prob)(np.ones((3, 2), np.float32))
    np.testing.assert_allclose(many, [-2.5218167] * 3, 1e-6)
    assert [p.tolist() for p in normal.params] == [[1, 2], [0, 0.5]]
    wide = optim.multi_normal(np.zeros(3, np.float32), 0.0)
    assert wide.log_prob(np.ones((2, 3), np.float32)).shape == (2,)


def test_samples_have_the_means_and_deviations() -> None:
    normal = optim.multi_normal(np.float32([1, 2]), np.float32(0.5))
    drawn = np.asarray(normal.sample((5000,), fxflow.random.key(0)))
    np.testing.assert_allclose(drawn.mean(0), [1, 2], atol=0.1)
    np.testing.assert_allclose(drawn.std(0), np.exp([0.5, 0.5]), rtol=0.05)
    slope = fxflow.grad(
        lambda s: optim.multi_normal(0.0, s).sample((), fxflow.random.key(0))
    )(0.0)
    assert np.isfinite(float(slope))


def test_shapes_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(ShapeError):
        optim.multi_normal(np.zeros(3), np.zeros(2))
