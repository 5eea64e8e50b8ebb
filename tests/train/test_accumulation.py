"""Accumulated gradients equal those of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.train import accumulate_gradients

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
PARAMS = {"w": fnp.ones(3), "b": fnp.zeros(())}


def loss(params: Any, batch: Any) -> Any:
    predicted = batch["x"] @ params["w"] + params["b"]
    return fnp.mean((predicted - batch["y"]) ** 2)


def loss_and_mean(params: Any, batch: Any) -> Any:
    return loss(params, batch), {"mean": fnp.mean(batch["x"])}


BATCH = {"x": X, "y": X.sum(1)}


@pytest.mark.parametrize("parts", [1, 2, 12])
@pytest.mark.parametrize("has_aux", [False, True])
def test_results_equal_those_of_the_whole_batch(parts: int, has_aux: bool) -> None:
    function = loss_and_mean if has_aux else loss
    expected = fxflow.value_and_grad(function, has_aux=has_aux)(PARAMS, BATCH)
    in_parts = fxflow.jit(accumulate_gradients(function, parts, has_aux=has_aux))
    found = in_parts(PARAMS, BATCH)
    assert fxflow.tree.structure(found) == fxflow.tree.structure(expected)
    for a, b in zip(fxflow.tree.leaves(found), fxflow.tree.leaves(expected)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_accumulation_needs_less_memory() -> None:
    def wide(params: Any, x: Any) -> Any:
        return fnp.mean(fnp.sin(fnp.tanh(x @ params) @ params.T) ** 2)

    sizes = []
    for parts in (1, 16):
        step = fxflow.jit(accumulate_gradients(wide, parts))
        compiled = step.lower(fnp.ones((64, 256)), fnp.ones((512, 64))).compile()
        sizes.append(compiled.memory_analysis()["temp_size_in_bytes"])
    assert sizes[1] < sizes[0] / 3


def test_parts_must_be_equal() -> None:
    with pytest.raises(ShapeError, match=r"f32\[12,3\] .* into 5 equal parts"):
        accumulate_gradients(loss, 5)(PARAMS, BATCH)
    with pytest.raises(ArgumentError, match="microbatches must be at least 1"):
        accumulate_gradients(loss, 0)
