"""vjp, linearize, linear_transpose."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import jit, jvp, linear_transpose, linearize, vjp, vmap
from fxflow.errors import NotDifferentiableError


def fun(x, y):
    return {"a": fnp.sin(x) * y, "b": (x**2).sum()}


def test_is_the_transpose_of_jvp():
    rng = np.random.default_rng(0)
    x, y, dx, dy, ca = (rng.normal(size=3).astype("f4") for _ in range(5))
    cb = np.float32(0.7)
    out, back = vjp(fun, x, y)
    _, tangent = jvp(fun, (x, y), (dx, dy))
    gx, gy = back({"a": ca, "b": cb})
    left = float((tangent["a"] * ca).sum() + tangent["b"] * cb)
    right = float((gx * dx).sum() + (gy * dy).sum())
    assert left == pytest.approx(right, rel=1e-4)
    np.testing.assert_allclose(out["a"], np.sin(x) * y, rtol=1e-6)


def test_the_function_is_a_pytree_and_crosses_jit():
    @jit
    def forward(x):
        return vjp(fnp.sin, x)

    y, back = forward(fnp.array(0.5))
    assert float(y) == pytest.approx(np.sin(0.5))
    assert float(back(1.0)[0]) == pytest.approx(np.cos(0.5), rel=1e-6)
    assert float(jit(lambda b, c: b(c)[0])(back, 2.0)) == pytest.approx(2 * np.cos(0.5))


def test_is_called_many_times():
    _, back = vjp(lambda x: x**2, fnp.array([1.0, 2.0]))
    rows = vmap(back)(fnp.eye(2))[0]
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert back(fnp.ones(2))[0].tolist() == [2.0, 4.0]


def test_aux_and_integers():
    y, back, aux = vjp(lambda x, n: (x * 2.0, n), 3.0, 5, has_aux=True)
    assert float(y) == 6.0 and int(aux) == 5
    gx, gn = back(1.0)
    assert float(gx) == 2.0 and gn.dtype == np.dtype([("float0", "V")])


def test_linearize():
    x = fnp.array([1.0, 2.0])
    y, df = linearize(lambda v: v**3, x)
    assert y.tolist() == [1.0, 8.0]
    assert df(fnp.ones(2)).tolist() == [3.0, 12.0]
    assert jit(df)(2 * fnp.ones(2)).tolist() == [6.0, 24.0]
    _, df, aux = linearize(lambda v: (v * 2, v + 1), x, has_aux=True)
    assert df(x).tolist() == [2.0, 4.0] and aux.tolist() == [2.0, 3.0]


def test_linear_transpose():
    matrix = fnp.arange(6.0).reshape(2, 3)
    back = linear_transpose(lambda v: matrix @ v, fnp.zeros(3))
    np.testing.assert_allclose(back(fnp.array([1.0, 2.0]))[0], [6.0, 9.0, 12.0])
    with pytest.raises(TypeError, match="not linear"):
        linear_transpose(fnp.sin, 1.0)(1.0)


def test_linear_transpose_of_integers():
    x = np.arange(3)
    matrix = np.arange(6).reshape(2, 3)
    for fun, ct, expected in [
        (lambda x: 2 * x, [1, 2, 4], [2, 4, 8]),
        (lambda x: x.sum(), 3, [3, 3, 3]),
        (lambda x: matrix @ x, [1, 2], [6, 9, 12]),
        (lambda x: x[np.array([0, 2, 2])], [1, 2, 4], [1, 0, 6]),
        (lambda x: jit(lambda y: -y)(fnp.pad(x, 1)), [1, 2, 3, 4, 5], [-2, -3, -4]),
        (lambda x: (x, 2.0)[0], [1, 2, 3], [1, 2, 3]),
    ]:
        (got,) = linear_transpose(fun, x)(fnp.array(ct))
        assert got.tolist() == expected and got.dtype == np.int32
    for wrong in (lambda x: x + 1, lambda x: (x, 1), lambda x: x * x, lambda x: x // 2):
        with pytest.raises(NotDifferentiableError, match="not linear"):
            back = linear_transpose(wrong, 1)
            back(2)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: vjp(lambda x: x, 1.0)[1]((1.0, 2.0)), "structure"),
        (
            lambda: vjp(lambda x: x, fnp.ones(3))[1](fnp.ones(2)),
            r"f32\[3\].*got f32\[2\]",
        ),
        (lambda: vjp(lambda x: x, "a"), "not an array"),
        (lambda: linearize(lambda x: x, 1.0)[1](1.0, 2.0), "structure"),
        (lambda: jvp(lambda x: x, (1.0,), (fnp.ones(2),)), r"f32\[\].*got f32\[2\]"),
        (lambda: jvp(lambda x: x, 1.0, 1.0), "tuple or list"),
        (lambda: jvp(lambda x, y: x, (1.0, 2.0), (1.0,)), "differ in structure"),
    ],
)
def test_cotangents_and_tangents_that_do_not_fit_are_refused(call, words):
    with pytest.raises(TypeError, match=words):
        call()
