"""`make_jaxpr`: jaxprs that are walked, printed, changed and evaluated."""

import numpy as np
import pytest

import fxflow.compat.jax as jax
from fxflow import numpy as fnp
from fxflow.compat.jax import core, lax
from fxflow.compat.jax.extend import core as extend
from fxflow.compat.jax.extend import source_info_util
from fxflow.compat.jax.interpreters.partial_eval import dce_jaxpr_consts


def program(x, ys):
    def body(carry, y):
        return carry + fnp.sin(y), carry * 2

    last, all_ = lax.scan(body, x, ys)
    last = lax.cond(last > 0, jax.jit(lambda v: v + 1), lambda v: -v, last)
    return lax.while_loop(lambda v: v < 10, lambda v: v * 2, last), all_


ARGS = (fnp.float32(1.0), fnp.arange(3.0))


def test_evaluates_to_what_the_function_gives():
    closed = jax.make_jaxpr(program)(*ARGS)
    outs = core.eval_jaxpr(closed.jaxpr, closed.consts, *ARGS)
    for out, expected in zip(outs, program(*ARGS), strict=True):
        np.testing.assert_array_equal(out, expected)
    jitted = jax.jit(core.jaxpr_as_fun(closed))(*ARGS)
    np.testing.assert_array_equal(jitted[1], outs[1])


def test_walks_like_one_of_jax():
    closed, shapes = jax.make_jaxpr(program, return_shape=True)(*ARGS)
    assert isinstance(closed, core.ClosedJaxpr)
    assert [s.shape for s in shapes] == [(), (3,)]
    assert [a.shape for a in closed.in_avals] == [(), (3,)]
    by_name = {eqn.primitive.name: eqn for eqn in closed.eqns}
    assert {"scan", "cond", "while"} <= set(by_name)
    assert by_name["scan"].primitive is lax.scan_p
    assert by_name["scan"].primitive is extend.primitives.scan_p
    scan = by_name["scan"].params
    assert scan["num_carry"] == 1 and isinstance(scan["jaxpr"], core.ClosedJaxpr)
    assert len(by_name["cond"].params["branches"]) == 2
    names = {e.primitive.name for sub in core.subjaxprs(closed.jaxpr) for e in sub.eqns}
    assert {"sin", "jit", "neg"} <= names
    literals = [v for e in closed.eqns for v in e.invars if isinstance(v, core.Literal)]
    assert literals and np.shape(literals[0].val) == ()


def test_prints_like_one_of_jax():
    assert str(jax.make_jaxpr(lambda x: fnp.sin(x) * 2)(1.0)) == (
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = mul b 2.0:f32[] in (c,) }"
    )
    text = str(jax.make_jaxpr(program)(*ARGS))
    assert "scan[" in text and "branches=(" in text and "cond_jaxpr={ lambda" in text


def test_constants_and_changed_programs():
    table = fnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x: fnp.cos(x + table))(fnp.ones(3))
    assert len(closed.consts) == len(closed.jaxpr.constvars) == 1
    sines = [
        e.replace(primitive=lax.sin_p) if e.primitive is lax.cos_p else e
        for e in closed.eqns
    ]
    changed = closed.replace(jaxpr=closed.jaxpr.replace(eqns=sines))
    (out,) = core.jaxpr_as_fun(changed)(fnp.ones(3))
    np.testing.assert_allclose(out, np.sin(1 + np.arange(3.0)), rtol=1e-6)
    core.check_jaxpr(changed.jaxpr)


def test_arrays_of_one_number_are_constants():
    number = fnp.float32(2.0) + 0
    closed = jax.make_jaxpr(lambda x: x * number + 1.0)(1.0)
    assert closed.consts == [number]
    assert str(closed.eqns[1].invars[1]) == "Literal(1.0)"


def test_a_changed_program_inside_another():
    closed = jax.make_jaxpr(jax.jit(lambda x: fnp.cos(x)))(1.0)
    (call,) = closed.eqns
    inner = call.params["jaxpr"]
    eqns = [e.replace(primitive=lax.sin_p) for e in inner.eqns]
    inner = inner.replace(jaxpr=inner.jaxpr.replace(eqns=eqns))
    (out,) = call.primitive.bind(fnp.float32(2.0), **{**call.params, "jaxpr": inner})
    np.testing.assert_allclose(out, np.sin(2.0), rtol=1e-6)


def test_named_axes():
    closed = jax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert [e.primitive.name for e in closed.eqns] == ["psum"]


def test_get_aval_gives_a_shaped_array():
    aval = core.get_aval(fnp.ones((2, 3)))
    assert isinstance(aval, core.ShapedArray) and isinstance(aval, core.AbstractValue)
    assert core.ShapedArray((2, 3), "float32") == aval
    assert not isinstance(3, core.ShapedArray)
    assert core.mapped_aval(2, 0, aval).shape == (3,)
    assert core.unmapped_aval(5, 1, aval).shape == (2, 5, 3)


def test_partial_evaluation():
    from fxflow.compat.jax.extend.linear_util import wrap_init
    from fxflow.compat.jax.interpreters.partial_eval import (
        PartialVal,
        trace_to_jaxpr_nounits,
    )

    fun = wrap_init(lambda x, y: [fnp.sin(x), x * y])
    known, unknown = PartialVal.known(fnp.float32(2.0)), core.get_aval(fnp.ones(3))
    jaxpr, outs, consts = trace_to_jaxpr_nounits(
        fun, [known, PartialVal.unknown(unknown)]
    )
    assert outs[0].is_known() and not outs[1].is_known()
    np.testing.assert_allclose(outs[0].get_known(), np.sin(2.0), rtol=1e-6)
    (out,) = core.eval_jaxpr(jaxpr, consts, fnp.ones(3))
    np.testing.assert_array_equal(out, 2 * np.ones(3))


@pytest.mark.parametrize("clean", [True, False])
def test_trace_state(clean):
    marks = []

    def f(x):
        marks.append((core.trace_state_clean(), core.get_opaque_trace_state()))
        return x

    (f if clean else jax.jit(f))(1.0)
    found, mark = marks[0]
    assert found is clean
    assert (mark == core.get_opaque_trace_state()) is clean


def test_interpreters_keep_lines_and_scopes():
    with jax.named_scope("inner"):
        closed = jax.make_jaxpr(lambda x: fnp.sin(x) * 2)(1.0)

    def interpret(x):
        values = {closed.jaxpr.invars[0]: x}
        with jax.named_scope("outer"):
            for eqn in closed.eqns:
                info = eqn.source_info
                stack = source_info_util.current_name_stack() + info.name_stack
                with source_info_util.user_context(info.traceback, name_stack=stack):
                    args = [values.get(v, getattr(v, "val", None)) for v in eqn.invars]
                    values[eqn.outvars[0]] = eqn.primitive.bind(*args, **eqn.params)
        return values[closed.jaxpr.outvars[0]]

    again = jax.make_jaxpr(interpret)(1.0)
    for eqn, old in zip(again.eqns, closed.eqns, strict=True):
        assert str(eqn.source_info.name_stack) == "outer/inner"
        assert repr(eqn.source_info) == source_info_util.summarize(old.source_info)
    with source_info_util.extend_name_stack("a") as stack:
        assert str(stack) == str(source_info_util.current_name_stack()) == "a"
        with source_info_util.reset_name_stack():
            assert len(source_info_util.current_name_stack()) == 0
    stack = (
        source_info_util.new_name_stack("a").extend("c").transform("jvp").extend("k")
    )
    assert str(stack) == "a/c/jvp(k)" and str(stack[2:]) == "jvp(k)"
    assert "test_jaxprs.py" in source_info_util.summarize(source_info_util.current())
    nowhere = source_info_util.new_source_info()
    assert nowhere.replace(name_stack=stack).name_stack is stack
    assert source_info_util.summarize(nowhere) == "unknown line"


def test_constants_that_are_not_needed_are_left_out():
    one, two = fnp.ones(3), fnp.ones(4)
    closed = jax.make_jaxpr(lambda x: (x + one, two * 2))(1.0)
    found, consts, inputs = dce_jaxpr_consts(closed.jaxpr, [True, False])
    assert (consts, inputs) == ([True, False], [True]) and len(found.constvars) == 1
    assert core.eval_jaxpr(found, [one], 1.0)[0].tolist() == [2, 2, 2]


def test_queries_of_the_current_trace():
    def asked(x):
        found.append(
            (
                extend.unsafe_am_i_under_a_jit_DO_NOT_USE(),
                extend.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                extend.nonempty_axis_env_DO_NOT_USE(),
            )
        )
        return x

    found = []
    asked(1.0)
    jax.jit(asked)(1.0)
    jax.vmap(asked)(fnp.ones(2))
    jax.jit(jax.vmap(asked, axis_name="i"))(fnp.ones(2))
    jax.grad(asked)(1.0)
    no = (False, False, False)
    assert found == [no, (True, False, False), (False, True, False), (True,) * 3, no]
    assert extend.gensym()(jax.typeof(1.0)).aval is jax.typeof(1.0)
    assert {np.float32, np.ndarray, jax.Array} <= extend.array_types
