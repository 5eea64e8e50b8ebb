"""Constants that a transpose would drop are found."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax, linear_transpose, sparse
from fxflow.errors import NotDifferentiableError

V = np.array([1.0, 2.0, 3.0], np.float32)
MASK = np.array([True, False, True])
TWO = fnp.asarray(V)

LINEAR = {
    "zero added": lambda x: 2 * x + 0,
    "zero returned": lambda x: (x, fnp.zeros(2)),
    "padded with zeros": lambda x: fnp.pad(x, 2),
    "masked": lambda x: fnp.where(MASK, x, 0),
    "put into zeros": lambda x: fnp.zeros(5).at[1:4].set(x),
    "put over ones": lambda x: fnp.ones(3).at[0:3].set(x),
    "times a constant": lambda x: x * V / (1 + V),
    "product": lambda x: np.ones((2, 3), np.float32) @ x,
    "picked": lambda x: x[np.array([2, 0])],
    "loop": lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x),
    "call": lambda x: jit(lambda y: y * 3)(x),
    "checkpoint": lambda x: fxflow.checkpoint(lambda y: y * 3)(x),
}
AFFINE = {
    "constant added": (lambda x: 2 * x + 1, "add"),
    "constant returned": (lambda x: (x, 3.0), "returns a constant"),
    "closure": (lambda x: x - TWO, "sub"),
    "padded with ones": (lambda x: fnp.pad(x, 2, constant_values=1), "pad"),
    "masked": (lambda x: fnp.where(MASK, x, 2), "select_n"),
    "put into ones": (lambda x: fnp.ones(5).at[1:4].set(x), "dynamic_update_slice"),
    "loop": (lambda x: lax.scan(lambda c, v: (c + v, c), 1.0, x), "scan"),
    "in a loop": (lambda x: lax.scan(lambda c, v: (c + v + 1, c), 0.0, x), "scan"),
    "call": (lambda x: jit(lambda y: y * 3 + 1)(x), "add"),
    "checkpoint": (lambda x: fxflow.checkpoint(lambda y: y * 3 + 1)(x), "add"),
}


@pytest.mark.parametrize("name", LINEAR)
def test_transposes_agree_with_vjp(name):
    function = LINEAR[name]
    back = linear_transpose(function, V)
    y, pull = fxflow.vjp(function, V)
    ones = fxflow.tree.map(fnp.ones_like, y)
    np.testing.assert_allclose(back(ones)[0], pull(ones)[0], rtol=1e-6)


@pytest.mark.parametrize("name", AFFINE)
def test_affine(name):
    function, words = AFFINE[name]
    with pytest.raises(NotDifferentiableError, match=f"not linear: (it )?{words}"):
        linear_transpose(function, V)
    with pytest.raises(NotDifferentiableError, match=words):
        jit(lambda v: linear_transpose(function, v)(function(v)))(V)


def test_traced_constants_are_taken_to_be_right():
    got = jit(lambda c: linear_transpose(lambda x: x * c, 1.0)(2.0)[0])(3.0)
    assert float(got) == 6.0
    back = jit(lambda c: linear_transpose(lambda x: c.at[0].set(x), 1.0)(V)[0])
    assert float(back(np.zeros(3, np.float32))) == 1.0


def test_types_are_enough():
    struct = fxflow.ShapeDtypeStruct((2,), np.float32)
    assert linear_transpose(lambda x: x * 2, struct)(fnp.ones(2))[0].tolist() == [2, 2]


def test_operands_of_64_bits_stay_so() -> None:
    matrix = sparse.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]]), dtype="float64")
    vector = fnp.ones(2, "float64")
    (found,) = linear_transpose(lambda x: matrix @ x, vector)(vector)
    np.testing.assert_array_equal(found, [3.0, 2.0])
