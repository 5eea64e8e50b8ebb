"""trace, lower, compile."""

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, jit, lax, random
from fxflow.errors import ArgumentError
from fxflow.stages import ArgInfo


def fun(x, y):
    return fnp.dot(x, y) + 1


def test_the_whole_way():
    x, y = fnp.ones((2, 3)), fnp.ones((3, 4))
    traced = jit(fun).trace(x, y)
    assert traced.out_info == ShapeDtypeStruct((2, 4), "float32")
    assert "dot_general" in str(traced.graph)
    lowered = traced.lower()
    assert "stablehlo.dot_general" in lowered.as_text()
    assert lowered.cost_analysis()["flops"] > 0
    compiled = lowered.compile()
    assert (compiled(x, y) == fun(x, y)).all()
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis()["output_size_in_bytes"] == 32


def test_without_arrays():
    struct = ShapeDtypeStruct((3,), "bfloat16")
    assert jit(lambda x: x * 2).eval_shape(struct) == struct
    compiled = jit(lambda x: x * 2).lower(struct).compile()
    assert compiled(fnp.ones(3, "bfloat16")).tolist() == [2.0, 2.0, 2.0]


def test_the_compiled_call_has_no_static_arguments():
    compiled = jit(lambda x, n: x * n, static_argnums=1).lower(1.0, 3).compile()
    assert float(compiled(2.0)) == 6.0


def test_other_platforms_need_no_device():
    for platform in ("gpu", "tpu"):
        text = (
            jit(fun)
            .trace(fnp.ones((2, 3)), fnp.ones((3, 4)))
            .lower(platforms=(platform,))
            .as_text()
        )
        assert "stablehlo" in text


def test_compiler_options():
    lowered = jit(lambda x: x + 1).lower(1.0)
    assert float(lowered.compile({"xla_cpu_enable_fast_math": True})(1.0)) == 2.0
    with pytest.raises(RuntimeError, match="no_such_option"):
        lowered.compile({"no_such_option": True})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c(fnp.ones(4)), r"compiled for f32\[3\].*got f32\[4\]"),
        (lambda c: c({"a": fnp.ones(3)}), "structure"),
        (lambda c: c("a"), "not an array"),
        (lambda c: jit(lambda x: c(x))(fnp.ones(3)), "takes concrete arrays"),
    ],
)
def test_errors_of_compiled_calls(call, words):
    compiled = jit(lambda x: x + 1).lower(fnp.ones(3)).compile()
    with pytest.raises(TypeError, match=words):
        call(compiled)


def test_errors_of_lowering():
    with pytest.raises(TypeError, match="one platform"):
        jit(fun).trace(fnp.ones((2, 2)), fnp.ones((2, 2))).lower(platforms=("a", "b"))
    with pytest.raises(TypeError, match="unknown platform 'abacus'"):
        jit(fun).trace(fnp.ones((2, 2)), fnp.ones((2, 2))).lower(platforms=("abacus",))
    with pytest.raises(TypeError, match="dialect"):
        jit(lambda x: x).lower(1.0).as_text("mhlo")
    captured = []

    def outer(w):
        captured.append(jit(lambda x: x * w).trace(1.0))
        return w

    with pytest.raises(TypeError, match="captures a traced value"):
        fxflow.grad(lambda w: outer(w) * captured[0].lower().compile()(1.0))(2.0)


def test_where_arguments_and_results_are():
    mesh = fxflow.make_mesh((4,), ("x",))
    parted = fxflow.NamedSharding(mesh, fxflow.P("x"))
    x = ShapeDtypeStruct((8, 3), "float32", sharding=parted)
    unused = ShapeDtypeStruct((2,), "float32")
    compiled = jit(lambda x, y, *, w: {"sum": x * w}).lower(x, unused, w=x).compile()
    assert compiled.input_shardings == ((parted, None), {"w": parted})
    assert compiled.output_shardings == {"sum": parted}
    alone = jit(fnp.sin).lower(unused).compile()
    assert alone.output_shardings.device_set == {fxflow.devices()[0]}


def test_what_each_stage_knows_of_the_arguments():
    f = jit(lambda x, y: (x["a"] * y, y), donate_argnums=0)
    traced = f.trace({"a": fnp.ones(3)}, 2)
    lowered = traced.lower()
    a, y = ArgInfo((3,), np.dtype("f4"), True), ArgInfo((), np.dtype("i4"), False)
    for stage in (traced, lowered, lowered.compile()):
        assert stage.args_info == (({"a": a}, y), {})
        assert stage.donate_argnums == (0,)
        assert list(map(str, stage.in_avals)) == ["f32[3]", "i32[]~"]
    assert list(map(str, traced.out_avals)) == ["f32[3]", "i32[]~"]


def test_compiler_ir():
    lowered = jit(fun).lower(fnp.ones((2, 3)), fnp.ones((3, 4)))
    module = lowered.compiler_ir()
    assert "stablehlo.dot_general" in str(module)
    assert module.operation.name == "builtin.module"
    assert len(list(module.body)) == 1
    assert str(lowered.compiler_ir("stablehlo")) == str(module)
    assert "dot(" in lowered.compiler_ir("hlo").as_hlo_text()
    with pytest.raises(TypeError, match="'stablehlo' or 'hlo', got 'mhlo'"):
        lowered.compiler_ir("mhlo")


# -- captured arrays -------------------------------------------------------------------


def test_small_captured_arrays_are_part_of_the_program() -> None:
    small, large = fnp.arange(3.0), fnp.ones(2000)
    keys = random.split(random.key(0))
    committed = fxflow.device_put(small, fxflow.devices()[0])

    def f(x):
        kept = random.normal(keys[0], ()) + large.sum() + committed.sum()
        return lax.cond(x > 0, lambda: small * x, lambda: small), kept

    lowered = fxflow.jit(f).lower(2.0)
    assert len(lowered.constants) == 3  # a key, a large one, one put on a device
    compiled = lowered.compile()
    for x in (2.0, -2.0):
        for out, want in zip(compiled(x), f(x), strict=True):
            np.testing.assert_allclose(np.asarray(out), np.asarray(want), 1e-6)


@pytest.mark.parametrize("dtype", ["bool", "int4", "int8", "bfloat16", "complex64"])
def test_captured_dtypes(dtype: str) -> None:
    for shape in ((3,), (0, 2), (5, 7)):
        const = fnp.asarray(np.arange(math.prod(shape)).reshape(shape) % 2, dtype)
        out = fxflow.jit(lambda x, const=const: (const, x))(1.0)[0]
        assert out.aval == const.aval
        np.testing.assert_array_equal(np.asarray(out), np.asarray(const))


def test_cost_before_compiling():
    x = np.ones((8, 8), np.float32)

    def cost(f):
        return fxflow.jit(f).lower(x).cost_analysis()["flops"]

    def power(x, length):
        return lax.scan(lambda c, _: (c @ x, None), x, None, length=length)[0]

    once = 2 * 8**3
    assert cost(lambda x: x @ x) == once
    assert cost(lambda x: fxflow.jit(lambda y: y @ y)(x)) == once
    assert cost(lambda x: power(x, 5)) == 5 * once
    assert cost(
        lambda x: lax.scan(lambda c, _: (power(c, 2), None), x, None, 3)[0]
    ) == (6 * once)
    which = cost(lambda x: lax.cond(x[0, 0] > 0, lambda: x @ x @ x, lambda: x + 1))
    assert 2 * once <= which < 2.1 * once
    until = cost(lambda x: lax.while_loop(lambda c: c[0, 0] > 0, lambda c: c @ x, x))
    assert once <= until < 1.1 * once


def test_text_of_a_lowered_program():
    lowered = jit(fnp.sin).lower(fnp.ones(3))
    assert 'loc("' in lowered.as_text()
    plain = lowered.as_text(debug_info=False)
    assert "stablehlo.sine" in plain and "loc(" not in plain
    assert "sine" in lowered.as_text("hlo") and "HloModule" in lowered.as_text("hlo")


def test_lowering_after_a_call_knows_where_references_are():
    mesh = fxflow.make_mesh((2,), ("x",))
    split = fxflow.NamedSharding(mesh, fxflow.P("x"))
    ref = fxflow.new_ref(fxflow.device_put(fnp.arange(4.0), split))

    def double(ref):
        ref[...] = ref[...] * 2
        return ref[...].sum()

    jitted = jit(double)
    before = jitted.lower(ref).compile().input_shardings
    jitted(ref)
    after = jitted.lower(ref).compile().input_shardings
    assert fxflow.tree.leaves(before) == fxflow.tree.leaves(after) == [split]


def test_a_trace_does_not_change():
    # Copies with other values keep nothing that was computed from the former ones.
    traced = jit(lambda x: x).trace(1.0)
    with pytest.raises(AttributeError):
        traced.donated = (True,)


def test_a_stage_that_outlives_its_function_names_arguments():
    compiled = jit(lambda named: named["w"].sum()).lower({"w": fnp.ones(3)}).compile()
    with pytest.raises(ArgumentError, match=r"argument named\['w'\], got f32\[2\]"):
        compiled({"w": fnp.ones(2)})
