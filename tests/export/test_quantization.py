"""Int8 weights differ by at most half of their channel's scale."""

import hypothesis
import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export
from fxflow.export.quantization import written_as_int8


@hypothesis.given(
    arrays.arrays(
        np.float32,
        arrays.array_shapes(min_dims=2, max_dims=4, max_side=5),
        elements=st.floats(-1e6, 1e6, width=32).map(
            lambda x: x if abs(x) > 1e-6 else 0
        ),
    )
)
@hypothesis.settings(max_examples=30, deadline=None)
def test_weights_differ_by_at_most_half_a_scale(w: np.ndarray) -> None:
    q = export.quantize(w)
    axes = tuple(range(w.ndim - 1))
    steps = np.abs(w).max(axes) / 127
    back = np.asarray(export.dequantize(q))
    assert q.values.dtype == np.int8 and q.scales.shape == w.shape[-1:]
    assert np.all(np.abs(back - w) <= steps * 0.5001 + 1e-12)
    assert np.abs(np.asarray(q.values).astype(int)).max() <= 127


def test_float64_weights_are_quantized() -> None:
    w = fnp.array([[1e300, 0.2], [3e299, 0.1]], "float64")
    back = np.asarray(export.dequantize(export.quantize({"w": w}))["w"])
    assert back.dtype == np.float64
    np.testing.assert_allclose(back, w, rtol=2e-2)


def test_only_weights_are_quantized() -> None:
    params = {
        "w": fnp.ones((2, 3), fnp.bfloat16),
        "b": fnp.ones(3),
        "n": fnp.ones((2, 2), int),
    }
    q = export.quantize(params)
    assert q["b"] is params["b"] and q["n"] is params["n"]
    back = export.dequantize(q)
    assert back["w"].dtype == fnp.bfloat16
    assert np.all(np.asarray(back["w"]) == 1)
    traced = fxflow.jit(lambda p: export.dequantize(export.quantize(p)))(params)
    assert np.all(np.asarray(traced["w"]) == 1)


def test_strings_and_complex_weights_are_refused() -> None:
    with pytest.raises(errors.ArgumentError, match="str is not an array"):
        export.quantize({"w": "a"})
    with pytest.raises(errors.DtypeError, match="weights must be real"):
        export.quantize(fnp.ones((2, 2), fnp.complex64))


def test_quantized_weights_in_stablehlo() -> None:
    assert written_as_int8("%c0", np.ones(3, np.float32), "tensor<3xf32>") is None
    lines = written_as_int8("%c0", np.ones((2, 3), np.float32), "tensor<2x3xf32>")
    assert (
        lines and lines[0].endswith("tensor<2x3xi8>") and lines[-1].startswith("%c0 =")
    )
