"""Sizes as values."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from fxflow.errors import ConcretizationError
from fxflow.lax.dimension_size import DimensionSize, array_of


def test_the_value_is_that_of_the_call():
    shape = export.symbolic_shape("b, 2*t")

    def f(x):
        rows, columns = x.shape
        return (
            x.sum() / rows,
            columns // 2 + fnp.int32(1),
            fnp.array(x.shape),
            1.5 * rows,
        )

    exported = export.export(fxflow.jit(f))(fxflow.ShapeDtypeStruct(shape, "float32"))
    mean, half, both, scaled = exported.call(np.ones((3, 8), "f4"))
    assert (float(mean), int(half), both.tolist()) == (8.0, 5, [3, 8])
    assert float(scaled) == 4.5
    assert mean.dtype == scaled.dtype == np.float32


def test_it_yields_in_promotion():
    (b,) = export.symbolic_shape("b")
    out = fxflow.eval_shape(lambda x: x * b, fxflow.ShapeDtypeStruct((2,), "bfloat16"))
    assert str(out) == "ShapeDtypeStruct(bf16[2])"


def test_there_is_no_value_outside():
    (b,) = export.symbolic_shape("b")
    with pytest.raises(ConcretizationError, match="the size b is known only when"):
        array_of(b)
    assert int(DimensionSize.bind(size=4)) == 4
