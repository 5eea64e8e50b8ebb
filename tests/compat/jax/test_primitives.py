"""Primitives of clients: rules in JAX's tables, run by fxflow."""

import numpy as np
import pytest

import fxflow.compat.jax as jax
from fxflow import numpy as fnp
from fxflow.compat.jax import lax
from fxflow.compat.jax.core import ShapedArray
from fxflow.compat.jax.extend.core import CallPrimitive, Primitive, primitives
from fxflow.compat.jax.extend.linear_util import wrap_init
from fxflow.compat.jax.interpreters import ad, batching, mlir


def make_cube():
    cube = Primitive("cube")
    cube.def_impl(lambda x: x * x * x)
    cube.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))
    ad.defjvp(cube, lambda t, x: 3 * t * x * x)
    batching.defvectorized(cube)
    mlir.register_lowering(cube, mlir.lower_fun(lambda x: x**3, multiple_results=False))
    return cube


def test_all_rules_are_asked():
    cube = make_cube()
    x = fnp.array([1.0, 2.0])
    np.testing.assert_allclose(cube.bind(x), [1, 8])
    np.testing.assert_allclose(jax.jit(cube.bind)(x), [1, 8])
    np.testing.assert_allclose(jax.vmap(cube.bind)(x), [1, 8])
    np.testing.assert_allclose(jax.grad(cube.bind)(2.0), 12)
    np.testing.assert_allclose(jax.grad(jax.grad(cube.bind))(2.0), 12)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(cube.bind)))(x), [3, 12])
    (eqn,) = jax.make_jaxpr(cube.bind)(2.0).eqns
    assert eqn.primitive is cube


def test_linear_primitive_is_transposed():
    twice = Primitive("twice")
    twice.multiple_results = True
    twice.def_impl(lambda x, y: [2 * x, 2 * y])
    twice.def_abstract_eval(lambda x, y: [x, y])
    seen = []

    def transpose(cotangents, x, y):
        seen.append((ad.is_undefined_primal(x), ad.is_undefined_primal(y)))
        return [ad.instantiate_zeros(c) * 2 for c in cotangents]

    ad.primitive_transposes[twice] = transpose
    pull = jax.linear_transpose(lambda x, y: twice.bind(x, y), 1.0, 1.0)
    np.testing.assert_allclose(pull([3.0, 4.0]), [6, 8])
    assert seen == [(True, True)]


def test_missing_rules_say_so():
    bare = Primitive("bare")
    with pytest.raises(NotImplementedError, match="Abstract evaluation for 'bare'"):
        jax.make_jaxpr(bare.bind)(1.0)
    bare.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'bare'"):
        jax.jvp(bare.bind, (1.0,), (1.0,))
    with pytest.raises(NotImplementedError, match="Batching rule for 'bare'"):
        jax.vmap(bare.bind)(fnp.ones(2))
    mlir.register_lowering(bare, lambda ctx, x: x)
    with pytest.raises(NotImplementedError, match="lower_fun"):
        jax.jit(bare.bind)(1.0)


@pytest.mark.parametrize("name", [None, "i"])
def test_batching_rules_that_know_the_axis(name):
    twice = Primitive("twice")
    twice.def_impl(lambda x, axis_name: 2 * x)
    twice.def_abstract_eval(lambda x, axis_name: x)
    asked = []

    def by_axis(*given, axis_name):
        asked.append((*given[:3], given[4]))
        return twice.bind(given[3][0], axis_name=axis_name), given[4][0]

    def fancy(data, args, dims, axis_name):
        return by_axis(data.size, data.name, None, args, dims, axis_name=axis_name)

    mapped = jax.vmap(lambda x: twice.bind(x, axis_name=name), axis_name="i")
    batching.axis_primitive_batchers[twice] = by_axis
    assert mapped(fnp.arange(3)).tolist() == [0, 2, 4]
    batching.fancy_primitive_batchers[twice] = fancy
    assert mapped(fnp.arange(3)).tolist() == [0, 2, 4]
    # The name is that of an axis which the primitive works over.
    assert asked == [(3, name, None, (0,))] * 2


def test_primitives_that_fxflow_composes():
    x, one = fnp.ones((1, 2)), fnp.ones(2)
    assert lax.squeeze_p is primitives.squeeze_p and str(lax.squeeze_p) == "squeeze"
    assert lax.squeeze_p.bind(x, dimensions=(0,)).shape == (2,)
    assert lax.tile_p.bind(one, reps=(2,)).tolist() == [1, 1, 1, 1]
    assert lax.stack_p.bind(one, one, axis=1).shape == (2, 2)
    assert [v.tolist() for v in lax.unstack_p.bind(x, axis=1)] == [[1], [1]]
    assert lax.unstack_p.multiple_results and not lax.tile_p.multiple_results
    assert lax.mulhi_p.bind(fnp.int32(2**30), fnp.int32(8)) == 2
    (eqn,) = jax.make_jaxpr(lambda x: lax.squeeze_p.bind(x, dimensions=(0,)))(x).eqns
    assert eqn.primitive is lax.reshape_p
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    params = {"dimension_numbers": numbers, "update_jaxpr": None, "update_consts": ()}
    less = lax.scatter_sub_p.bind(one, fnp.array([1]), 3.0, **params)
    assert less.tolist() == [1, -2]
    assert ad.add_jaxvals_p.bind(1.0, 2.0) == 3
    assert not hasattr(lax, "no_such_p")


def test_comparisons_in_the_total_order():
    x = np.array([0.0, -0.0, np.nan, -np.nan, 1], "f")
    y = np.array([-0.0, 0.0, np.inf, -np.inf, 1], "f")
    for name, want in (("eq", "FFFFT"), ("le", "FTFTT"), ("lt", "FTFTF")):
        found = getattr(lax, f"{name}_to_p").bind(x, y)
        assert "".join("FT"[int(v)] for v in found) == want
    assert lax.lt_to_p.bind(np.int32([1, 2]), np.int32([2, 2])).tolist() == [
        True,
        False,
    ]


def test_primitives_of_linear_algebra_and_keys():
    eye = np.eye(2, dtype="f")
    product = lax.linalg.symmetric_product_p.bind(eye, eye, alpha=2.0, beta=1.0)
    np.testing.assert_allclose(np.asarray(product), 3 * eye)
    swapped = lax.linalg.lu_pivots_to_permutation_p.bind(
        np.ones(2, np.int32), permutation_size=2
    )
    assert swapped.tolist() == [1, 0]
    updated = lax.linalg.cholesky_update_p.bind(eye, np.array([0, 1], "f"))
    np.testing.assert_allclose(np.asarray(updated), [[1, 0], [0, np.sqrt(2)]], 1e-6)
    keys = primitives.random_seed_p.bind(fnp.arange(3), impl=None)
    assert keys.shape == (3,)
    assert (keys[2] == jax.random.key(2)).all()
    assert jax.random.random_gamma_p is primitives.random_gamma_p


def test_tokens_order_and_values_are_lifted():
    token = lax.after_all(lax.create_token(), lax.create_token())
    assert token.shape == (0,) and lax.after_all().shape == (0,)
    assert jax.jit(lambda t: lax.after_all(t))(token).shape == (0,)
    with pytest.raises(TypeError, match=r"after_all takes tokens, got f32\[\]"):
        lax.after_all(fnp.float32(1))
    assert lax.stage(1.0).weak_type
    assert jax.make_jaxpr(lax.stage)(1.0).eqns == []
    assert jax.jit(lambda: isinstance(lax.stage(1.0), jax.core.Tracer))()
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3]
    assert lax.shape_as_value(()).dtype == np.int32


def test_call_primitives_call():
    twice = CallPrimitive("twice")
    closed = jax.make_jaxpr(lambda x: x * 2)(1.0)
    (fun,), params = twice.get_bind_params({"call_jaxpr": closed, "name": "f"})
    assert params == {"name": "f"} and twice.bind(fun, 3.0, **params) == [6.0]
    assert twice.bind(wrap_init(lambda x: [x + 1]), 1.0) == [2.0]
