"""Gradients, Jacobians, Hessians: values, structure and the errors users meet."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fxflow
import fxflow.numpy as fnp
from fxflow import float0, grad, hessian, jacfwd, jacrev, jit, value_and_grad, vmap


def numeric(f, x, eps=1e-6):
    x = np.asarray(x, np.float64)
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = eps
        with fxflow.config.override(x64=True):
            out[i] = (float(f(x + step)) - float(f(x - step))) / (2 * eps)
    return out


def f(x):
    return fnp.sum(fnp.sin(x) * fnp.exp(-(x**2)) + fnp.tanh(x))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(-2, 2), min_size=1, max_size=5))
def test_matches_finite_differences(values):
    x = np.array(values)
    with fxflow.config.override(x64=True):
        for g in (grad(f), jit(grad(f)), grad(jit(f)), jacfwd(f), jacrev(f)):
            np.testing.assert_allclose(g(x), numeric(f, x), rtol=1e-5, atol=1e-7)


def test_second_derivatives_agree_however_they_are_taken():
    x = fnp.array([0.3, -1.2, 2.0])
    expected = np.asarray(hessian(f)(x))
    for h in (
        jacfwd(jacfwd(f)),
        jacrev(jacfwd(f)),
        jacrev(jacrev(f)),
        jit(jacfwd(grad(f))),
        jacfwd(jit(grad(jit(f)))),
    ):
        np.testing.assert_allclose(h(x), expected, rtol=1e-5, atol=1e-6)
    assert np.allclose(expected, expected.T)


def test_third_derivative_of_a_cube():
    assert float(grad(grad(grad(lambda x: x**3)))(2.0)) == 6.0


def test_pytrees_argnums_and_aux():
    def loss(params, x, scale):
        y = params["w"] * x + params["b"]
        return fnp.sum(y**2) * scale, {"y": y}

    params = {"w": fnp.array([1.0, 2.0]), "b": fnp.array(0.5)}
    x = fnp.array([3.0, -1.0])
    (value, aux), (d_params, d_scale) = value_and_grad(
        loss, argnums=(0, 2), has_aux=True
    )(params, x, 2.0)
    y = np.array([3.5, -1.5])
    np.testing.assert_allclose(value, 2 * (y**2).sum())
    np.testing.assert_allclose(aux["y"], y)
    np.testing.assert_allclose(d_params["w"], 4 * y * np.array([3.0, -1.0]))
    np.testing.assert_allclose(d_params["b"], 4 * y.sum())
    np.testing.assert_allclose(d_scale, (y**2).sum())
    assert isinstance(grad(loss, argnums=-1, has_aux=True)(params, x, 2.0), tuple)


def test_keyword_arguments_are_constants():
    g = grad(lambda x, *, k: k * x**2)
    assert float(g(3.0, k=2.0)) == 12.0


def test_a_result_that_does_not_depend_on_the_argument_has_gradient_zero():
    assert float(grad(lambda x: fnp.array(3.0))(1.0)) == 0.0
    assert grad(lambda x: 2.0)(fnp.ones(3)).tolist() == [0.0, 0.0, 0.0]


def test_nested_differentiation_does_not_confuse_perturbations():
    # d/dx (x * d/dy (x + y)) = 1, not 2.
    outer = grad(lambda x: x * grad(lambda y: x + y)(1.0))
    assert float(outer(3.0)) == 1.0
    assert float(jit(outer)(3.0)) == 1.0


def test_closures_over_traced_values():
    def outer(w):
        inner = jit(lambda x: fnp.sum(w * x))
        return grad(inner)(fnp.ones(3)).sum() * w

    assert float(grad(outer)(2.0)) == pytest.approx(12.0)


def test_gradient_of_a_vmapped_function_and_vmap_of_a_gradient():
    x = fnp.linspace(-1.0, 1.0, 5)
    per_example = vmap(grad(lambda t: fnp.sin(t) * t))(x)
    summed = grad(lambda v: vmap(lambda t: fnp.sin(t) * t)(v).sum())(x)
    np.testing.assert_allclose(per_example, summed, rtol=1e-6)


def test_complex_and_holomorphic():
    z = fnp.array(1.0 + 2.0j)
    assert complex(grad(lambda z: z**3, holomorphic=True)(z)) == pytest.approx(
        3 * (1 + 2j) ** 2
    )
    # A real function of a complex argument: the conjugate of the steepest ascent.
    g = complex(grad(lambda z: fnp.abs(z) ** 2)(z))
    assert g == pytest.approx(2 - 4j)


def test_integer_arguments():
    g = grad(lambda n, x: x * 2.0, argnums=(0, 1), allow_int=True)(3, 1.0)
    assert g[0].dtype == float0
    assert float(g[1]) == 2.0
    assert g[0].shape == ()


def test_jacobian_structure():
    def fun(p):
        return {"s": p["a"].sum(), "v": p["a"] * p["b"]}

    p = {"a": fnp.ones(2), "b": fnp.array(3.0)}
    for jac in (jacfwd(fun)(p), jacrev(fun)(p)):
        assert jac["s"]["a"].tolist() == [1.0, 1.0]
        assert jac["v"]["a"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
        assert jac["v"]["b"].tolist() == [1.0, 1.0]
    two = jacrev(lambda x, y: x * y, argnums=(0, 1))(fnp.ones(2), fnp.full(2, 5.0))
    assert two[0].tolist() == [[5.0, 0.0], [0.0, 5.0]]
    assert two[1].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    h = hessian(lambda x, y: (x * y).sum(), argnums=(0, 1))(fnp.ones(1), fnp.ones(1))
    assert float(h[0][1][0, 0]) == 1.0 and float(h[0][0][0, 0]) == 0.0


def test_aux_may_hold_anything():
    marker = object()

    def f(x):
        return x * x, {"what": "text", "y": x + 1, "marker": marker}

    (value, aux), slope = value_and_grad(f, has_aux=True)(3.0)
    assert (value, aux["y"], slope) == (9.0, 4.0, 6.0)
    assert aux["what"] == "text" and aux["marker"] is marker
    assert fxflow.jvp(f, (3.0,), (1.0,), has_aux=True)[2]["what"] == "text"
    assert fxflow.vjp(f, 3.0, has_aux=True)[2]["y"] == 4.0
    assert fxflow.jit(lambda x: grad(f, has_aux=True)(x)[1]["y"])(3.0) == 4.0


def test_jacobians_with_aux():
    for jac in (jacfwd, jacrev):
        j, aux = jac(lambda x: (x**2, x + 1), has_aux=True)(fnp.array([1.0, 2.0]))
        assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
        assert aux.tolist() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: grad(lambda x: x)(fnp.ones(3)), TypeError, r"scalar.*f32\[3\]"),
        (lambda: grad(lambda x: x)(3), TypeError, r"argument x.*i32\[\]~.*allow_int"),
        (lambda: grad(lambda x: (x, x))(3.0), TypeError, "one scalar result.*has_aux"),
        (lambda: grad(lambda x: x, argnums=1)(3.0), TypeError, "argnums=1 is out of"),
        (lambda: grad(lambda x: x, argnums=(0, 0))(3.0), TypeError, "twice"),
        (lambda: grad(lambda x: x, argnums="x"), TypeError, "positions"),
        (lambda: grad(3.0), TypeError, "takes a function"),
        (lambda: grad(lambda x: x)("a"), TypeError, "argument x.*not an array"),
        (lambda: grad(lambda x: x["w"])({"w": "a"}), TypeError, r"x\['w'\]"),
        (lambda: grad(lambda x: x.sum())([1.0, None]), AttributeError, "sum"),
        (lambda: grad(lambda x: x * 1j)(1.0), TypeError, "real result.*holomorphic"),
        (
            lambda: grad(lambda x: x, holomorphic=True)(1.0),
            TypeError,
            "holomorphic=True needs a complex",
        ),
        (
            lambda: jacfwd(lambda x: x * x)(1j),
            TypeError,
            r"argument x of <lambda> at .* is c64\[\]~: .*holomorphic=True",
        ),
        (
            lambda: jacfwd(lambda x: abs(x), holomorphic=True)(1j),
            TypeError,
            "holomorphic=True needs a complex result",
        ),
        (lambda: grad(lambda x: x > 0)(1.0), TypeError, r"floating-point result.*bool"),
        (lambda: grad(lambda x: "a")(1.0), TypeError, "returned 'a'"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), TypeError, "pair"),
    ],
)
def test_invalid_functions_arguments_and_results_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


WEAK = {"a number": 1.5, "weak": fnp.asarray(1.5)}
STRONG = {"f32": np.float32(1.5), "bf16": fnp.asarray(1.5, "bfloat16")}


@pytest.mark.parametrize(
    "f", [lambda x: x, lambda x: 2.0 * x, lambda x: x**3, fnp.sin, fnp.asarray]
)
@pytest.mark.parametrize("x", (WEAK | STRONG).values(), ids=WEAK | STRONG)
def test_a_derivative_has_the_type_of_what_it_belongs_to(f, x) -> None:
    weak = fnp.asarray(x).weak_type
    dtype = fnp.asarray(x).dtype
    one = fnp.ones((), dtype)
    for found in (
        grad(f)(x),
        value_and_grad(f)(x)[1],
        jit(grad(f))(x),
        grad(grad(lambda x: f(x) * x))(x),
        jacrev(f)(x),
        jacfwd(f)(x),
        hessian(f)(x),
        fxflow.jvp(f, (x,), (one,))[1],
        fxflow.vjp(f, x)[1](one)[0],
        fxflow.linearize(f, x)[1](one),
    ):
        assert isinstance(found, fxflow.Array)
        assert (found.dtype, found.weak_type) == (dtype, weak)


def test_weak_by_the_argument_or_by_the_result() -> None:
    strong = np.float32(2)
    assert grad(lambda x: strong * x)(1.0).weak_type
    assert jacrev(lambda x: strong * x)(1.0).weak_type
    assert not jacfwd(lambda x: strong * x)(1.0).weak_type
    assert not fxflow.jvp(lambda x: strong * x, (1.0,), (1.0,))[1].weak_type
    rate = grad(lambda x: x * x)(1.0)
    assert (fnp.ones(2, "bfloat16") * rate).dtype == "bfloat16"
