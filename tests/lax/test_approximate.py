"""Approximate extrema: exact on this device, of the lengths that a TPU gives."""

import numpy as np
import pytest
from jaxlib import _jax

from fxflow import lax
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.approximate import folded_length

RNG = np.random.default_rng(0)
X = RNG.permutation(40).reshape(4, 10).astype("f4")


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_values_and_indices_agree_with_argsort(axis: int) -> None:
    order = np.argsort(X, axis)
    few, most = np.take(order, [0, 1], axis), np.take(order, [-1, -2], axis)
    values, places = lax.approx_max_k(X, 2, axis)
    np.testing.assert_array_equal(places, most)
    np.testing.assert_array_equal(values, np.take_along_axis(X, most, axis))
    values, places = lax.approx_min_k(X, 2, axis)
    np.testing.assert_array_equal(places, few)
    np.testing.assert_array_equal(values, np.take_along_axis(X, few, axis))
    assert places.dtype == np.int32


@pytest.mark.parametrize("override", [-1, 10**7])
@pytest.mark.parametrize("recall", [0.1, 0.5, 0.95, 0.999, 1.0])
def test_lengths_are_those_of_xla(recall: float, override: int) -> None:
    size_of = _jax.approx_top_k_reduction_output_size
    for size in (1, 10, 128, 129, 1000, 1024, 1025, 5000, 123456, 10**6):
        for k in {1, 2, 7, 50, 300, size}:
            for rank in (1, 2, 3):
                if k <= size:
                    expected, _ = size_of(size, rank, k, recall, False, override)
                    found = folded_length(size, rank, k, recall, override)
                    assert found == expected, (size, rank, k)


def test_unaggregated_results_contain_the_best() -> None:
    # 256 is what JAX gives for this shape.
    x = RNG.permutation(3000).reshape(2, 1500).astype("f4")
    values, places = lax.approx_max_k(x, 3, aggregate_to_topk=False)
    assert values.shape == places.shape == (2, 256)
    best = np.sort(x, 1)[:, ::-1][:, :3]
    np.testing.assert_array_equal(np.sort(values, 1)[:, ::-1][:, :3], best)
    np.testing.assert_array_equal(np.take_along_axis(x, np.asarray(places), 1), values)
    assert lax.approx_max_k(X, 3, aggregate_to_topk=False)[0].shape == (4, 10)
    whole = lax.approx_max_k(
        x, 3, aggregate_to_topk=False, reduction_input_size_override=10**6
    )
    assert whole[0].shape == (2, 128)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.approx_max_k(X, 0), ShapeError, "k must be from 1 to the length"),
        (lambda: lax.approx_min_k(X, 11), ShapeError, "approx_min_k: k must be from 1"),
        (lambda: lax.approx_max_k(X, 1, 2), AxisError, "reduction_dimension 2 is out"),
        (
            lambda: lax.approx_max_k(X, 1, recall_target=0),
            ArgumentError,
            "share above 0",
        ),
        (
            lambda: lax.approx_max_k(X, 1, recall_target=1.5),
            ArgumentError,
            "got 1.5",
        ),
        (
            lambda: lax.approx_max_k(X, 1, reduction_input_size_override=3),
            ArgumentError,
            "so at least 10",
        ),
        (lambda: lax.approx_max_k(X.astype("i4"), 1), DtypeError, r"got i32\[4,10\]"),
    ],
)
def test_invalid_k_axes_and_recall_targets_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
