"""GaLore, compared with optax; its subspaces."""

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import low_rank
from tests.optim import suite

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("name", suite.runs(low_rank))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
def test_steps_compile_and_keep_types() -> None:
    suite.compiles_and_keeps_types(optim.contrib.galore(0.1, 2))


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_updates_are_projections(shape: tuple[int, int]) -> None:
    g = RNG.normal(size=shape).astype("f")
    tx = optim.contrib.scale_by_galore(2, 2, 0.5, optim.identity())
    state = tx.init(g)
    first, state = tx.update(g, state)
    u, s, vh = np.linalg.svd(g, full_matrices=False)
    np.testing.assert_allclose(first, 0.5 * (u[:, :2] * s[:2]) @ vh[:2], atol=1e-5)
    # The second update is in the same subspace, the third in a new one.
    other = RNG.normal(size=shape).astype("f")
    second, state = tx.update(other, state)
    basis = np.asarray(state.projector)
    tall = shape[0] >= shape[1]
    want = basis @ basis.T @ other if tall else other @ basis @ basis.T
    np.testing.assert_allclose(second, 0.5 * want, atol=1e-5)
    third, state = tx.update(other, state)
    u, s, vh = np.linalg.svd(other, full_matrices=False)
    np.testing.assert_allclose(third, 0.5 * (u[:, :2] * s[:2]) @ vh[:2], atol=1e-5)


def test_dimension_numbers_determine_matrices() -> None:
    numbers = optim.contrib.GaLoreDimensionNumbers
    params = {"k": fnp.ones((2, 3, 4)), "b": fnp.ones(3), "w": fnp.ones((4, 3))}
    given = {"k": numbers((0, 1), 2), "b": None, "w": None}
    for form in (given, lambda params: given):
        tx = optim.contrib.scale_by_galore(2, weight_dimension_numbers=form)
        state = tx.init(params)
        shapes = {k: v.shape for k, v in state.base_optimizer_state.mu.items()}
        assert shapes == {"k": (2, 4), "b": (3,), "w": (4, 3)}
        assert state.projector["k"].shape == (6, 2)
        updates, _ = tx.update(params, state)
        assert {k: v.shape for k, v in updates.items()} == {
            k: v.shape for k, v in params.items()
        }
    with pytest.raises(ArgumentError, match=r"each axis of f32\[2,3,4\] must be"):
        low = optim.contrib.scale_by_galore(2, weight_dimension_numbers=numbers(1, 2))
        low.init(params["k"])
    with pytest.raises(ArgumentError, match=r"an axis .* occurs twice"):
        low = optim.contrib.scale_by_galore(2, weight_dimension_numbers=numbers(1, 1))
        low.init(params["w"])


def test_ranks_and_gaps_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ArgumentError, match="rank must be positive, got 0"):
        optim.contrib.galore(0.1, 0)
    with pytest.raises(ArgumentError, match="update_proj_gap must be positive, got -1"):
        optim.contrib.scale_by_galore(2, -1)
