"""Products of arrays."""

import numpy as np
import pytest

from fxflow import lax
from fxflow._config import config
from fxflow.core.aval import Aval
from fxflow.core.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.core.staging import trace_flat

X, Y = np.arange(12, dtype="f4").reshape(3, 4), np.ones((4, 5), "f4")


def precision_of(**options):
    avals = [Aval(v.shape, v.dtype) for v in (X, Y)]
    graph, _ = trace_flat(lambda x, y: [lax.dot(x, y, **options)], avals)
    return graph.nodes[0].params["precision"]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.dot(X, Y), X @ Y),
        (lambda: lax.dot(X, Y[:, 0]), X @ Y[:, 0]),
        (lambda: lax.dot(X[0], X[1]), X[0] @ X[1]),
        (lambda: lax.dot(X, X, dimension_numbers=(((1,), (-1,)), ((), ()))), X @ X.T),
        (lambda: lax.batch_matmul(X[None], Y[None]), (X @ Y)[None]),
        (lambda: lax.dot_general(X, X, (((), ()), ((0, 1), (0, 1)))), X * X),
    ],
)
def test_values(got, expected: np.ndarray) -> None:
    np.testing.assert_allclose(got(), expected, rtol=1e-6)


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


def test_operands_accumulate_in_the_preferred_dtype() -> None:
    x = np.full((1, 300), 127, "i1")
    out = lax.dot(x, x.T.copy(), preferred_element_type="int32")
    assert int(np.asarray(out)[0, 0]) == 300 * 127 * 127


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.dot(X, X),
            ShapeError,
            r"dot: contracting dimensions differ: lhs f32\[3,4\] axis 1 is 4, rhs "
            r"f32\[3,4\] axis 0 is 3",
        ),
        (lambda: lax.dot(X, Y[None]), ShapeError, "dot: takes vectors and matrices"),
        (lambda: lax.dot(1.0, Y), ShapeError, "dot: takes vectors and matrices"),
        (
            lambda: lax.dot(X, Y.astype("i4")),
            DtypeError,
            "operands must have one dtype",
        ),
        (
            lambda: lax.dot(X, Y, preferred_element_type="int32"),
            DtypeError,
            "preferred_element_type i32 does not hold products",
        ),
        (lambda: lax.batch_matmul(X, Y[None]), ShapeError, "one number of axes"),
        (
            lambda: lax.dot_general(X, Y, (((1,), (0,)), ((0,), (1,)))),
            ShapeError,
            r"batch dimensions differ: lhs f32\[3,4\] axis 0 is 3",
        ),
        (
            lambda: lax.dot_general(X, Y, (((1,), ()), ((), ()))),
            ShapeError,
            "as many contracting axes",
        ),
        (
            lambda: lax.dot_general(X, X, (((1, 1), (1, 0)), ((), ()))),
            AxisError,
            "named twice",
        ),
        (
            lambda: lax.dot_general(X, Y, (((2,), (0,)), ((), ()))),
            AxisError,
            "2 is out of range",
        ),
        (
            lambda: lax.dot_general(X, Y, (1, 0)),
            ArgumentError,
            "dimension_numbers must",
        ),
        (lambda: lax.dot(X, Y, precision="exact"), ArgumentError, "unknown precision"),
        (lambda: lax.dot(X, Y, precision=(None,) * 3), ArgumentError, "or a pair"),
    ],
)
def test_errors(call, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
