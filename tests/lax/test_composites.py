"""`composite`: what is written, what compilers make of it, attributes."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax

named = lax.composite(lambda x, **_: fnp.sin(x) * 2, "test.doubled", version=3)


def text(**attributes):
    return fxflow.jit(lambda x: named(x, **attributes)).lower(1.0).as_text()


def test_the_program_names_it():
    assert (
        'stablehlo.composite "test.doubled" %a0 {decomposition = @test_doubled, '
        "version = 3 : i32}"
    ) in text()
    np.testing.assert_allclose(fxflow.jit(named)(1.0), 2 * np.sin(1.0), rtol=1e-6)
    np.testing.assert_allclose(named(1.0), 2 * np.sin(1.0), rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (3, "3 : i64"),
        (2.5, "2.5 : f64"),
        (np.float32(3), "3.0 : f32"),
        (True, "true"),
        ('a"b', r'"a\"b"'),
        ((1, "x"), '[1 : i64, "x"]'),
        ({"b": 1, "a": False}, "{a = false, b = 1 : i64}"),
        (np.arange(3), "dense<[0, 1, 2]> : tensor<3xi64>"),
    ],
)
def test_attributes_are_written_as_mlir(value, written):
    assert f"composite_attributes = {{key = {written}}}" in text(key=value)
    lowered = fxflow.jit(lambda x: named(x, key=value)).lower(1.0)
    assert "stablehlo.composite" in str(lowered.compiler_ir())


def test_attributes_that_cannot_be_written():
    assert "composite_attributes" not in text(key=None)
    for wrong in (object(), [lambda: 1], fnp.ones(2)):
        with pytest.raises(TypeError, match="attribute key must be a number"):
            named(1.0, key=wrong)
    with pytest.raises(TypeError, match="name must be a string"):
        lax.composite(fnp.sin, 3)
    with pytest.raises(TypeError, match="decomposition"):
        lax.composite(3, "three")


def test_several_results_and_what_is_captured():
    scale = fnp.arange(3.0)
    both = lax.composite(lambda x, y: {"a": x * scale, "b": (y, x)}, "test.both")
    out = fxflow.jit(both)(fnp.ones(3), 2.0)
    assert out["a"].tolist() == [0, 1, 2] and float(out["b"][0]) == 2.0


def test_transformed_it_is_the_function():
    np.testing.assert_allclose(fxflow.grad(named)(1.0), 2 * np.cos(1.0), rtol=1e-6)
    batched = fxflow.jit(fxflow.vmap(named)).lower(fnp.ones(3)).as_text()
    assert "composite" not in batched.replace("jit_doubled", "")


def test_with_ordered_effects():
    seen = []

    def loud(x):
        fxflow.debug.callback(lambda v: seen.append(float(v)), x, ordered=True)
        return x + 1

    assert float(fxflow.jit(lax.composite(loud, "test.loud"))(1.0)) == 2.0
    fxflow.effects_barrier()
    assert seen == [1.0]
