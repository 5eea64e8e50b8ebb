"""Muon, compared with optax; its matrices."""

import numpy as np
import pytest

from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import orthogonal
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(orthogonal))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.contrib.muon(0.1)])
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_steps_are_nearly_orthogonal() -> None:
    g = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    tx = optim.contrib.scale_by_muon(ns_steps=8)
    u, _ = tx.update(g, tx.init(g))
    values = np.linalg.svd(np.asarray(u), compute_uv=False)
    assert ((values > 0.6) & (values < 1.3)).all()


@pytest.mark.parametrize("tall", [False, True])
def test_norms_of_preconditioning(tall: bool) -> None:
    g = np.random.default_rng(0).normal(size=(2, 3, 5)).astype(np.float32)
    rows = np.abs(g @ g.swapaxes(1, 2)).sum(-1, keepdims=True) ** 0.5
    spectral = np.linalg.norm(g, 2, axis=(1, 2), keepdims=True)
    for name, length in (("aol", rows), ("spectral", spectral)):
        x = g.swapaxes(1, 2) if tall else g
        want = (g / length).swapaxes(1, 2) if tall else g / length
        tx = optim.contrib.scale_by_muon(
            (1.0, 0.0, 0.0),
            nesterov=False,
            preconditioning=name,
            weight_dimension_numbers=optim.contrib.MuonDimensionNumbers(1, 2),
        )
        have, _ = tx.update(x, tx.init(x))
        np.testing.assert_allclose(have, want, rtol=1e-5)
        assert np.linalg.norm(want, 2, axis=(1, 2)).max() < 1 + 1e-5


def test_a_kernel_is_a_matrix_by_its_dimension_numbers() -> None:
    numbers = optim.contrib.MuonDimensionNumbers(reduction_axis=(0, 1), output_axis=-1)
    g = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    kernel = optim.contrib.scale_by_muon(weight_dimension_numbers=numbers)
    matrix = optim.contrib.scale_by_muon()
    flat = g.reshape(6, 4)
    want, _ = matrix.update(flat, matrix.init(flat))
    have, _ = kernel.update(g, kernel.init(g))
    np.testing.assert_allclose(np.reshape(have, (6, 4)), want, rtol=1e-5)
    whole = optim.contrib.muon(
        0.1, muon_weight_dimension_numbers={"k": numbers, "b": None}
    )
    params = {"k": g, "b": np.ones(3, np.float32)}
    updates, _ = whole.update(params, whole.init(params), params)
    np.testing.assert_allclose(updates["k"], -0.1 * np.asarray(have), rtol=1e-4)
    same = optim.contrib.MuonDimensionNumbers(0, 0)
    with pytest.raises(ArgumentError, match="occurs twice"):
        optim.contrib.scale_by_muon(weight_dimension_numbers=same).update(
            flat, matrix.init(flat)
        )


def test_unknown_preconditioning_and_coefficients_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be one of frobenius, "):
        optim.contrib.scale_by_muon(preconditioning="none")
    with pytest.raises(ArgumentError, match="one of standard, dion, got 'other'"):
        optim.contrib.muon(0.1, "other")
    with pytest.raises(ArgumentError, match="3 numbers, or 3 for each of ns_steps=5"):
        optim.contrib.scale_by_muon(ns_coeffs=(1.0, 2.0))
