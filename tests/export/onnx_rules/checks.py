"""Compares a model's results with fxflow's."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import export, tree
from fxflow.core.arrays import dtypes

pytest.importorskip("onnx", reason="pip install fxflow[onnx]")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

from onnx import checker


def check(function: Callable[..., Any], *args: Any, bind: bool = False) -> Any:
    """Compares a function's model, run by ONNX Runtime, with the jitted function.

    Args:
      function: to export.
      *args: of it.
      bind: whether the first one becomes the model's own.
    """
    jitted = fxflow.jit(function)
    made = export.onnx(jitted.trace(*args), params=args[0] if bind else None)
    checker.check_model(made.model, full_check=True)
    found, expected = made(*args[bind:]), jitted(*args)
    assert tree.structure(found) == tree.structure(expected)
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        compare(np.asarray(a), np.asarray(b))
    return made


def compare(found: np.ndarray, expected: np.ndarray) -> None:
    """Compares floats up to the order of summation, everything else exactly."""
    if not dtypes.is_floating(found.dtype):
        np.testing.assert_array_equal(found, expected)
        return
    a, b = found.astype(np.float64), expected.astype(np.float64)
    rtol = max(1e-5, 40 * float(dtypes.finfo(found.dtype).eps))
    finite = np.abs(b[np.isfinite(b)])
    atol = rtol * 0.1 * float(finite.max(initial=0))
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def kinds(made: Any) -> Counter:
    """Returns the number of nodes of each kind in a model."""
    return Counter(node.op_type for node in made.model.graph.node)
