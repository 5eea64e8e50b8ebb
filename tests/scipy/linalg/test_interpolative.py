"""Interpolative decompositions."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg.interpolative as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.linalg import interpolative

RNG = np.random.default_rng(0)
LOW = RNG.normal(size=(9, 3)) @ RNG.normal(size=(3, 7))
BOTH = [LOW, LOW + 1j * (RNG.normal(size=(9, 2)) @ RNG.normal(size=(2, 7)))]


@pytest.mark.parametrize("a", BOTH, ids=["real", "complex"])
def test_columns_make_the_matrix(a: np.ndarray) -> None:
    with fxflow.config.override(x64=True):
        rank = 3 if not np.iscomplexobj(a) else 5
        k, idx, proj = interpolative.interp_decomp(a, 1e-9)
        assert k == rank == interpolative.estimate_rank(a, 1e-9)
        assert k == want.interp_decomp(a, 1e-9)[0]
        same = interpolative.interp_decomp(a, rank)
        np.testing.assert_array_equal(same[0], idx)
        columns = interpolative.reconstruct_skel_matrix(a, k, idx)
        np.testing.assert_array_equal(columns, a[:, np.asarray(idx)[:k]])
        made = interpolative.reconstruct_matrix_from_id(columns, idx, proj)
        np.testing.assert_allclose(made, a, 1e-9, 1e-10)
        theirs = want.reconstruct_interp_matrix(np.asarray(idx), np.asarray(proj))
        ours = interpolative.reconstruct_interp_matrix(idx, proj)
        np.testing.assert_allclose(ours, theirs)
        expected = np.linalg.svd(a)[1][:k]
        for u, s, v in (
            interpolative.id_to_svd(columns, idx, proj),
            interpolative.svd(a, 1e-9),
            interpolative.svd(a, k),
        ):
            np.testing.assert_allclose(s, expected)
            np.testing.assert_allclose((u * s) @ np.conj(v).T, a, 1e-9, 1e-10)
        norm = interpolative.estimate_spectral_norm(a, 60)
        np.testing.assert_allclose(norm, expected[0], 1e-5)
        apart = interpolative.estimate_spectral_norm_diff(a, 2 * a, 60)
        np.testing.assert_allclose(apart, expected[0], 1e-5)


def test_coefficients_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        run = lambda a: (interpolative.interp_decomp(a, 2)[1] ** 2).sum()
        way = RNG.normal(size=LOW.shape)
        ends = [float(run(LOW + e * way)) for e in (1e-6, -1e-6)]
        slope = fxflow.jit(fxflow.grad(run))(LOW)
        rise = (ends[0] - ends[1]) / 2e-6
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)


def test_bad_arguments_are_refused() -> None:
    i = interpolative
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: i.interp_decomp(LOW[0], 1), "matrix"),
        (ArgumentError, lambda: i.interp_decomp(LOW, 8), "at most 7"),
        (ArgumentError, lambda: i.svd(LOW, 0), "eps_or_k"),
        (ArgumentError, lambda: i.estimate_rank(LOW, 2.0), "eps"),
        (ConcretizationError, lambda: fxflow.jit(lambda a: i.svd(a, 0.1))(LOW), "rank"),
        (ShapeError, lambda: i.reconstruct_interp_matrix([1, 0], LOW), "order"),
        (ShapeError, lambda: i.id_to_svd(LOW, [0, 1], [[2.0]]), "1 columns"),
        (ShapeError, lambda: i.estimate_spectral_norm_diff(LOW, LOW.T), "differ"),
        (ArgumentError, lambda: i.estimate_spectral_norm(LOW, 0), "its"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
