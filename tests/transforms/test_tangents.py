"""What users may give as tangents and cotangents."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jvp, linear_transpose, linearize, vjp
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.primitive import Zero
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.transforms.tangents import checked_cotangent, checked_tangent

F16 = Aval((), np.dtype(np.float16))
F32 = Aval((2,), np.dtype(np.float32))
C64 = Aval((), np.dtype(np.complex64))
I32 = Aval((), np.dtype(np.int32))


def test_what_fits_is_given_back():
    x = fnp.ones(2)
    assert checked_tangent(x, F32, "t") is x
    assert checked_tangent(1.0, F16, "t").dtype == np.float16
    assert checked_tangent(1.0, C64, "t").dtype == np.complex64
    zero = checked_tangent(Zero(F32), F32, "t")
    assert type(zero) is Zero and zero.aval == F32
    none = checked_tangent(np.zeros((), dtypes.float0), I32, "t")
    assert type(none) is Zero and none.aval.dtype == dtypes.float0


@pytest.mark.parametrize(
    ("value", "aval", "error", "words"),
    [
        (1, F16, DtypeError, r"f16\[\].*got i32.*1\.0 for 1"),
        (True, F16, DtypeError, "got bool"),
        (1j, F16, DtypeError, "tangents of real values are real"),
        (np.float32(1), F16, DtypeError, "astype"),
        (np.ones(3, np.float32), F32, ShapeError, r"f32\[2\].*got f32\[3\]"),
        (0, I32, DtypeError, "the tangent of an integer has dtype float0"),
        (0.0, I32, DtypeError, "float0"),
        ("one", F16, ArgumentError, "not an array"),
    ],
)
def test_tangents_that_do_not_fit_are_refused(value, aval, error, words):
    with pytest.raises(error, match=words):
        checked_tangent(value, aval, "a tangent")


def test_integers_for_cotangents_of_integers():
    _, back = vjp(lambda x: (x * 2.0, 3, fnp.array([True])), 2.0)
    none = np.zeros((), fxflow.float0)
    for ct in (0, 5, np.int8(0), none):
        assert float(back((1.0, ct, np.array([False])))[0]) == 2.0
    with pytest.raises(DtypeError, match="the tangent of an integer has dtype float0"):
        back((1.0, 0.0, np.array([False])))
    with pytest.raises(ShapeError):
        back((1.0, 0, False))
    assert type(checked_tangent(0, I32, "t", integers=True)) is Zero


def test_cotangents_of_linear_functions():
    assert checked_cotangent(3, I32, "ct").dtype == np.int32
    given = np.int32(3)
    assert checked_cotangent(given, I32, "ct") is given
    assert checked_cotangent(1.0, F16, "ct").dtype == np.float16
    for value, error in [
        (3.0, DtypeError),
        (np.int8(3), DtypeError),
        (np.ones(2, "i4"), ShapeError),
        ("one", ArgumentError),
    ]:
        with pytest.raises(error):
            checked_cotangent(value, I32, "ct")


def test_backward_passes_may_return_any_number():
    assert checked_tangent(0, F16, "t", numbers=True).dtype == np.float16
    assert type(checked_tangent(0, I32, "t", numbers=True)) is Zero
    with pytest.raises(DtypeError):
        checked_tangent(1j, F16, "t", numbers=True)


def test_transforms_refuse_integers_for_floats():
    for call in (
        lambda: jvp(fnp.sin, (1.0,), (1,)),
        lambda: vjp(fnp.sin, 1.0)[1](1),
        lambda: linearize(fnp.sin, 1.0)[1](1),
        lambda: linear_transpose(lambda x: 2 * x, 1.0)(1),
        lambda: jvp(lambda n: n * 2, (1,), (1,)),
    ):
        with pytest.raises(DtypeError, match="got i32"):
            call()
    y, dy = jvp(lambda n: n * 2, (3,), (np.zeros((), fxflow.float0),))
    assert int(y) == 6 and dy.dtype == fxflow.float0

    @fxflow.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, ct: (2,))
    assert float(grad(f)(1.0)) == 2.0


def test_tangents_of_64_bits() -> None:
    x = fnp.asarray(2.0, "float64")
    for tangent in (0.1, np.float64(0.1), fnp.float64(0.1)):
        assert jvp(lambda x: x, (x,), (tangent,))[1] == fnp.float64(0.1)
        assert vjp(lambda x: x, x)[1](tangent)[0] == fnp.float64(0.1)


def test_messages_name_what_does_not_fit():
    def f(p, x):
        return {"out": p["w"] * x, "x": x}

    p, wrong = {"w": fnp.ones(2)}, {"w": fnp.ones(3)}
    with pytest.raises(ShapeError, match=r"tangent of argument p\['w'\] of f must be"):
        jvp(f, (p, 1.0), (wrong, 1.0))
    with pytest.raises(ShapeError, match="tangent of argument x of f must be"):
        linearize(f, p, 1.0)[1](p, fnp.ones(2))
    with pytest.raises(ShapeError, match=r"cotangent of result\['out'\] of f must be"):
        vjp(f, p, 1.0)[1]({"out": 1.0, "x": 1.0})
    with pytest.raises(ShapeError, match="cotangent of the result of sin must be"):
        vjp(fnp.sin, 1.0)[1](fnp.ones(2))
