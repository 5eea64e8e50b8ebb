"""Precision and dtype of products."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow._config import config
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, DtypeError

X, Y = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 5), "f4")


def precision_of(**options):
    avals = [Aval(v.shape, v.dtype) for v in (X, Y)]
    graph, _ = trace_flat(lambda x, y: [lax.dot(x, y, **options)], avals)
    return graph.nodes[0].params["precision"]


def test_precision() -> None:
    high, low = lax.Precision.HIGHEST, lax.Precision.DEFAULT
    assert precision_of() is None
    assert precision_of(precision="float32") == (high, high)
    assert precision_of(precision=(high, None)) == (high, low)
    algorithm = lax.DotAlgorithmPreset.TF32_TF32_F32
    assert precision_of(precision="TF32_TF32_F32") is algorithm
    with config.override(default_matmul_precision="highest"):
        assert precision_of() == (high, high)
        assert precision_of(precision="default") == (low, low)


def test_algorithms() -> None:
    def text(x, **options):
        return fxflow.jit(lambda x: lax.dot(x, x.T, **options)).lower(x).as_text()

    own = lax.DotAlgorithm("f4", "float32", np.float32)
    assert own == lax.DotAlgorithm(*[np.dtype("f4")] * 3)
    assert text(X, precision=own) == text(X, precision="F32_F32_F32")
    assert "lhs_precision_type = f32" in text(X, precision=own)
    np.testing.assert_allclose(
        fxflow.jit(lambda x: lax.dot(x, x.T, precision=own))(X), X @ X.T, rtol=1e-6
    )
    small = fnp.ones((2, 2), fnp.float8_e4m3fn)
    options = {"precision": "ANY_F8_ANY_F8_F32_FAST_ACCUM"}
    assert "rhs_precision_type = f8E4M3FN, accumulation_type = f32" in (
        text(small, preferred_element_type="f4", **options)
    )
    with pytest.raises(DtypeError, match="is for floats of 8 bits"):
        text(X, **options)


def test_operands_accumulate_in_the_preferred_dtype() -> None:
    x = np.full((1, 300), 127, "i1")
    out = lax.dot(x, x.T.copy(), preferred_element_type="int32")
    assert int(np.asarray(out)[0, 0]) == 300 * 127 * 127


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.dot(X, Y, preferred_element_type="int32"),
            DtypeError,
            "preferred_element_type i32 does not hold products",
        ),
        (
            lambda: lax.dot(X, Y.astype("i4")),
            DtypeError,
            "operands must have one dtype",
        ),
        (lambda: lax.dot(X, Y, precision="exact"), ArgumentError, "unknown precision"),
        (lambda: lax.dot(X, Y, precision=(None,) * 3), ArgumentError, "or a pair"),
    ],
)
def test_invalid_precisions_and_element_types_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
