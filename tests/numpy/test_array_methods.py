"""Operators, methods and properties of arrays and tracers."""

import operator
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.core.interpreters import batching, jvp, linearize
from fxflow.core.ir import staging
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy.array_methods import METHODS, PROPERTIES
from tests.numpy.oracle import same

X = np.array([[3.5, -1.0], [2.0, 4.0]], np.float32)
I = np.array([[3, -1], [2, 4]], np.int32)  # noqa: E741
FLOATS = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.eq, operator.ne, operator.lt, operator.le, operator.gt),
    *(operator.ge, divmod),
)
BITS = (operator.and_, operator.or_, operator.xor)


@pytest.mark.parametrize("op", FLOATS, ids=lambda f: f.__name__)
def test_operators(op: Any) -> None:
    x = fnp.asarray(X)
    for left, right in ((x, x.T), (x, 2.0), (2.0, x), (x, X.T), (X, x.T), (x, I)):
        want = op(np.asarray(left), np.asarray(right))
        assert same(want, op(left, right))
    assert same(op(X, X.T), fxflow.jit(lambda a: op(a, a.T))(X))
    assert same(op(2.0, X), fxflow.jit(lambda a: op(2.0, a))(X))
    assert same(op(X.T, X), fxflow.jit(lambda a: op(X.T, a))(X))


@pytest.mark.parametrize("op", BITS, ids=lambda f: f.__name__)
def test_operators_of_integers(op: Any) -> None:
    x = fnp.asarray(I)
    for left, right in ((x, 6), (6, x), (x, I.T), (I.T, x)):
        assert same(op(np.asarray(left), np.asarray(right)), op(left, right))


def test_unary_operators_and_shifts() -> None:
    x = fnp.asarray(I)
    assert same(-I, -x) and same(+I, +x) and same(abs(I), abs(x)) and same(~I, ~x)
    assert same(I << 2, x << 2) and same(I >> 1, x >> 1)
    assert same(1 << abs(I), 1 << abs(x))
    assert same(2.0**X, 2.0 ** fnp.asarray(X))


def test_numpy_on_the_left_gives_arrays() -> None:
    x = fnp.ones(2)
    for left in (np.ones(2), np.float32(2), np.float64(2), np.int64(1)):
        assert type(left * x) is Array
        assert type(left < x) is Array
    out = fxflow.jit(lambda a: np.ones(2) * a)(x)
    assert out.tolist() == [1, 1]


def test_augmented_assignment_makes_a_new_array() -> None:
    x = y = fnp.ones(2)
    y += 1
    assert x.tolist() == [1, 1] and y.tolist() == [2, 2]


@pytest.mark.parametrize("op", (operator.add, operator.eq, operator.pow))
def test_lists_are_refused(op: Any) -> None:
    for left, right in ((fnp.ones(2), [1, 2]), ((1, 2), fnp.ones(2))):
        with pytest.raises(ArgumentError, match="is not an array: convert it with"):
            op(left, right)


def test_what_other_objects_make_of_operators() -> None:
    class Friend:
        def __radd__(self, other: Any) -> str:
            return "friend"

    assert fnp.ones(2) + Friend() == "friend"
    with pytest.raises(TypeError):
        fnp.ones(2) + object()
    assert (fnp.ones(2) == "text") is False and fnp.ones(2) != None  # noqa: E711


def test_iteration() -> None:
    x = fnp.asarray(X)
    assert [row.tolist() for row in x] == X.tolist()
    a, b = fxflow.jit(lambda v: tuple(v))(X)
    assert same(X[0], a) and same(X[1], b)
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(x[0, 0])
    assert 2.0 in x and 7.0 not in x


def test_arrays_do_not_change() -> None:
    x = fnp.ones(2)
    with pytest.raises(TypeError, match=r"use x = x.at\[i\].set\(v\)"):
        x[0] = 1
    with pytest.raises(TypeError, match="immutable"):
        del x[0]


def test_rounding_without_digits_makes_floats_integers() -> None:
    ints = round(fnp.array([1.5, 2.5, -0.6, np.inf, np.nan]))
    assert same(np.array([2, 2, -1, 2**31 - 1, 0], np.int32), ints)
    wide = round(fnp.array(1e12, np.float64))
    assert wide.dtype == np.int64 and wide == 10**12
    for kept in (fnp.array(3, "int8"), fnp.array(True), fnp.array(1.6 + 1j)):
        assert round(kept).dtype == kept.dtype


def test_methods_agree_with_numpy() -> None:
    x = fnp.asarray(X)
    assert same(X.clip(0, 3), x.clip(0, 3))
    assert same(X.round(), x.round()) and same(X.round(), round(x, 0))
    assert same(X.take([0, 3]), x.take(np.array([0, 3])))
    assert same(X.repeat(2, 1), x.repeat(2, 1)) and same(X.diagonal(), x.diagonal())
    assert same(X.compress([True, False], 0), x.compress([True, False], 0))
    assert same(X.conj(), x.conj()) and same(X.nonzero(), x.nonzero())
    assert same(X.swapaxes(0, 1), x.swapaxes(0, 1))
    assert same(X.real, x.real) and same(X.imag, x.imag) and same(X.ravel(), x.flat)
    assert x.to_device(fxflow.devices()[0]).device == fxflow.devices()[0]
    assert x.__array_namespace__() is fnp
    assert I.tolist() == fnp.asarray(X).astype(int).tolist()


def test_tracers_have_the_same() -> None:
    def everything(x: Any) -> Any:
        shapes = [x.T, x.mT, x.reshape(4), x.reshape(-1, 1), x.ravel(), x.squeeze()]
        return shapes, x.astype("int32"), x.at[0].set(1.0), x.clip(max=1), x.real

    fxflow.jit(everything)(X)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(("float32", "int32"), ("float32", "int8"), ("int8", "float32")),
        *(("float32", "complex64"), ("complex64", "float32"), ("complex64", "int16")),
        *(("bool", "int8"), ("uint8", "uint8"), ("float64", "uint32")),
    ],
)
def test_view(before: str, after: str) -> None:
    x = np.arange(16).reshape(2, 8).astype(before)
    assert same(x.view(after), fnp.asarray(x, before).view(after))


def test_views_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="must divide by 4"):
        fnp.zeros(3, "int8").view("float32")
    with pytest.raises(DtypeError, match="bools have 8 bits"):
        fnp.zeros(3, bool).view("float32")
    with pytest.raises(ShapeError, match="0-d array keeps its bits"):
        fnp.zeros((), "float32").view("int8")
    with pytest.raises(ShapeError, match="no pairs"):
        fnp.zeros(3).view("complex64")


def test_what_is_installed_is_described() -> None:
    for name in (*METHODS, *PROPERTIES):
        value = getattr(Array, name)
        if not name.startswith("__"):
            assert value.__doc__, name


def test_every_method_is_that_of_traced_arrays_too():
    """A tracer's own slots may not have the name of a method."""
    for module in (batching, jvp, linearize, staging):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Array):
                slots = {n for c in kind.__mro__ for n in getattr(c, "__slots__", ())}
                assert not slots & {*METHODS, *PROPERTIES}
    x = np.arange(9.0, dtype=np.float32).reshape(3, 3)
    want = x.trace() + x.var()

    def both(v):
        return v.trace() + v.var()

    assert fxflow.jit(both)(x) == want
    assert fxflow.value_and_grad(both)(x)[0] == want
    assert fxflow.jvp(both, (x,), (x,))[0] == want
    assert (fxflow.vmap(both)(np.stack([x, x])) == want).all()
