"""Primitives of clients: rules in JAX's tables, run by fxflow."""

import numpy as np
import pytest

import fxflow.compat.jax as jax
from fxflow import numpy as fnp
from fxflow.compat.jax.core import ShapedArray
from fxflow.compat.jax.extend.core import Primitive
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
