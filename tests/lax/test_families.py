"""What families of operations share: dtypes, constants, rules derived from tables."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, vmap
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Zero, table
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError, ShapeError
from fxflow.lax import AccuracyMode, Tolerance, families
from fxflow.lax.families import Elementwise, kind, must_repeat

F32 = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("dtype", "letter"),
    [
        ("bool", "b"),
        ("int8", "i"),
        ("uint64", "u"),
        ("float16", "f"),
        ("bfloat16", "f"),
        ("float8_e4m3fn", "f"),
        ("complex64", "c"),
        ("int4", "i"),
    ],
)
def test_dtypes_have_one_letter_kinds(dtype, letter):
    assert kind(fxflow.ShapeDtypeStruct((), dtype).dtype) == letter


def test_kinds_overlap_as_their_names_say():
    assert families.NUMERIC | {"b"} == families.ANY
    assert families.FLOAT | families.COMPLEX == families.INEXACT
    assert families.INTEGER | families.FLOAT == families.REAL


def test_an_invalid_dtype_is_refused():
    with pytest.raises(DtypeError, match=r"sin.*i32\[3\]"):
        lax.sin(fnp.arange(3))
    with pytest.raises(DtypeError, match=r"bool\[2\]"):
        lax.neg(fnp.array([True, False]))


def test_operands_of_different_types():
    add = table["add"]
    with pytest.raises(DtypeError, match=r"one dtype, got f32\[3\], i32\[3\].*astype"):
        add.abstract(Aval((3,), F32), Aval((3,), np.dtype("i4")))
    with pytest.raises(ShapeError, match=r"one shape, got f32\[3\], f32\[4\]"):
        add.abstract(Aval((3,), F32), Aval((4,), F32))


def test_0d_operands_stand_for_all_places():
    add = table["add"]
    vector, scalar = Aval((3,), F32), Aval((), F32, True)
    assert add.abstract(vector, scalar) is vector
    assert add.abstract(scalar, vector) is vector
    assert add.abstract(scalar, scalar) is scalar
    x = fnp.ones(3)
    assert add.bind(x, 2.0).tolist() == [3.0] * 3


def test_results_are_weak_if_all_operands_are():
    add = table["add"]
    weak, strong = Aval((), F32, True), Aval((), F32)
    assert add.abstract(weak, strong) is strong
    assert add.abstract(weak, weak) is weak


def test_which_operands_must_be_repeated():
    assert not must_repeat(2.0)
    assert not must_repeat(fnp.array(2.0))
    assert must_repeat(fnp.ones(2))
    seen = []
    fxflow.jit(lambda x: seen.append(must_repeat(x)))(1.0)
    assert seen == [True]


def test_unmapped_operands():
    rows = fnp.arange(6.0).reshape(3, 2)
    out = vmap(lambda r, s: lax.add(r, s), (0, None))(rows, fnp.ones(2))
    assert out.tolist() == (rows + 1).tolist()
    graph = fxflow.make_graph(vmap(lambda r: lax.mul(r, 2.0)))(rows)
    assert [n.primitive.name for n in graph.nodes] == ["mul"]


def test_tangents_of_a_table():
    x, y = fnp.array([2.0, 3.0]), fnp.array([5.0, 7.0])
    t = fnp.array([1.0, 10.0])
    zero = Zero(x.aval)
    for name, tangents, expected in (
        ("add", (t, zero), [1.0, 10.0]),
        ("add", (t, t), [2.0, 20.0]),
        ("sub", (zero, t), [-1.0, -10.0]),
        ("mul", (t, zero), [5.0, 70.0]),
        ("mul", (t, t), [7.0, 100.0]),
    ):
        _, tangent = table[name].jvp((x, y), tangents)
        assert tangent.tolist() == expected, name


def test_flat_places_have_a_zero_tangent():
    out, tangent = table["sign"].jvp((fnp.array([2.0]),), (fnp.array([1.0]),))
    assert out.tolist() == [1.0]
    assert type(tangent) is Zero or tangent.tolist() == [0.0]


def test_linear_operations_apply_to_tangents():
    x = fnp.arange(6.0).reshape(2, 3)
    rev = table["rev"]
    out, tangent = rev.jvp((x,), (x * 2,), dimensions=(1,))
    assert tangent.tolist() == (out * 2).tolist()


def test_products_are_linear_in_each_operand_alone():
    dims = (((0,), (0,)), ((), ()))
    graph = fxflow.make_graph(lambda x: lax.dot_general(x, x, dims))(fnp.ones(3))
    (node,) = graph.nodes
    var = Var(Aval((3,), F32))
    with pytest.raises(NotDifferentiableError, match="not linear"):
        node.primitive.transpose(1.0, var, var, **node.params)
    y = fnp.array([1.0, 2.0, 3.0])
    left, none = node.primitive.transpose(fnp.array(2.0), var, y, **node.params)
    assert left.tolist() == [2.0, 4.0, 6.0] and none is None
    none, right = node.primitive.transpose(fnp.array(2.0), y, var, **node.params)
    assert right.tolist() == [2.0, 4.0, 6.0] and none is None


def test_numpy_function_itself_is_called_where_nothing_is_added():
    assert table["neg"].host_function() is np.negative
    elementwise = [p for p in table.values() if isinstance(p, Elementwise)]
    assert len(elementwise) > 40


# -- accuracy --------------------------------------------------------------------------

NAMES = [
    *("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt"),
    *("sin", "sqrt", "tan", "tanh"),
]
X = np.array([0.1, 0.5, 1.0], "f4")


@pytest.mark.parametrize("accuracy", [AccuracyMode.HIGHEST, Tolerance(1e-6, ulps=4)])
def test_values_and_derivatives(accuracy: AccuracyMode | Tolerance) -> None:
    """All of them in one program; the derivative is that of the function."""

    def total(x, accuracy=None):
        return sum(getattr(lax, name)(x, accuracy=accuracy).sum() for name in NAMES)

    both = fxflow.value_and_grad(total)
    for call in (both, fxflow.jit(both, static_argnums=1)):
        got, slope = call(X, accuracy)
        want, expected = both(X)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_allclose(slope, expected, rtol=1e-5)
    rows = fxflow.vmap(lambda x: lax.exp(x, accuracy=accuracy))(X)
    np.testing.assert_allclose(rows, np.exp(X), rtol=1e-6)


def test_programs() -> None:
    def text(accuracy):
        return fxflow.jit(lambda x: lax.sin(x, accuracy=accuracy)).lower(X).as_text()

    assert "result_accuracy_mode<HIGHEST>" in text(AccuracyMode.HIGHEST)
    tolerance = text(Tolerance(rtol=1e-3, ulps=2))
    assert "rtol = 1.0" in tolerance and "ulps = 2, mode" in tolerance
    assert "result_accuracy" not in text(None) + text(AccuracyMode.DEFAULT)


def test_invalid_accuracies_and_tolerances_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"exp: accuracy must be a lax\.Tolerance"):
        lax.exp(X, accuracy="highest")
    with pytest.raises(ArgumentError, match="give one of"):
        Tolerance()
    for wrong in ({"atol": -1}, {"ulps": 1.5}, {"rtol": "x"}, {"atol": float("nan")}):
        with pytest.raises(ArgumentError, match="must be numbers from 0 on"):
            Tolerance(**wrong)
