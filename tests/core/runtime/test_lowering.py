"""StableHLO text: constants exact, functions shared, scopes named, growth linear."""

from __future__ import annotations

import itertools
import sys

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, io_callback, jit, lax, named_scope
from fxflow.core.arrays.array import Array, host_of
from fxflow.core.arrays.aval import Aval, type_on
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.eager import graph_plan
from fxflow.core.runtime.execute import compile_graph
from fxflow.core.runtime.lowering import Context, Module, dense, lower_graph, number
from fxflow.devices import buffers, mlir
from fxflow.devices.compile import compile as compile_text

F32 = np.dtype(np.float32)


def lowered(function, *avals, platform="cpu"):
    graph, _ = trace_flat(function, avals)
    text, module = lower_graph(graph, name="main", platform=platform)
    mlir.parse(text)
    return text, module


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, bool, "true"),
        (False, bool, "false"),
        (-3, np.int32, "-3"),
        (2**64 - 1, np.uint64, "18446744073709551615"),
        (1.0, np.float32, "1.0"),
        (0.1, np.float64, "0.1"),
        (np.float32(0.1), np.float32, "0.10000000149011612"),
        (-0.0, np.float32, "-0.0"),
        (1e30, np.float32, "1.0e+30"),
        (1.5e-7, np.float64, "1.5e-07"),
        (np.inf, np.float32, "0x7F800000"),
        (-np.inf, np.float64, "0xFFF0000000000000"),
        (np.nan, np.float16, "0x7E00"),
        (np.inf, ml_dtypes.bfloat16, "0x7F80"),
        (1 + 2j, np.complex64, "(1.0, 2.0)"),
    ],
)
def test_numbers_are_written_exactly(value, dtype, text):
    assert number(value, np.dtype(dtype)) == text


def test_dense():
    assert dense(np.float32(2.0), F32) == "dense<2.0>"
    assert dense(np.zeros((0, 3), np.float32), F32) == "dense<>"
    assert dense(np.eye(2, dtype=np.int32), np.dtype("i4")) == "dense<[[1, 0], [0, 1]]>"
    many = np.arange(17, dtype=np.int8)
    assert dense(many, many.dtype) == f'dense<"0x{many.tobytes().hex().upper()}">'
    flags = np.ones(20, bool)
    assert dense(flags, flags.dtype).startswith("dense<[true, true")


CONSTANTS = [
    np.float32([0.1, np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38]),
    np.float64([0.1, 5e-324, np.pi, np.inf]),
    np.arange(100, dtype=np.float32) / 7,
    np.array([True, False] * 12),
    np.array([2**63 - 1, -(2**63)], np.int64),
    np.arange(40, dtype=np.uint8).reshape(5, 8),
    (np.arange(40) - 3j).astype(np.complex64),
    np.array([0.1, np.nan, 448], ml_dtypes.bfloat16),
    np.arange(20).astype(ml_dtypes.bfloat16),
    np.arange(-8, 8).astype(ml_dtypes.int4),
    np.arange(18).astype(ml_dtypes.float8_e4m3fn),
    np.zeros((2, 0, 3), np.float16),
]


@pytest.mark.parametrize("value", CONSTANTS, ids=lambda v: f"{v.dtype}{v.shape}")
def test_constants_arrive_bit_by_bit(value):
    """As the text of a constant, through the compiler, and back."""
    module = Module("cpu")
    ctx = Context(module, [0])
    name = ctx.constant(value)
    aval = Aval(value.shape, value.dtype)
    body = "\n".join(ctx.lines)
    text = (
        f"module @m {{\nfunc.func public @main() -> ({aval.mlir}) {{\n{body}\n"
        f"return {name} : {aval.mlir}\n}}\n}}\n"
    )
    mlir.parse(text)
    executable = compile_text(text, buffers.default_placement(), name="m")
    array_type = type_on(aval)
    (raw,) = executable.launch([]).consume_with_handlers([array_type.handler])
    back = host_of(Array(raw, array_type))
    assert back.dtype == value.dtype and back.shape == value.shape
    assert back.tobytes() == value.tobytes()


def test_numbers_beside_arrays_are_constants_of_their_shape():
    def f(x):
        return x * 2.5 + 1.0, fnp.zeros((3,))

    text = fxflow.jit(f).lower(np.ones(3, "f4")).as_text()
    assert "dense<2.5> : tensor<3xf32>" in text and "dense<0.0> : tensor<3xf32>" in text
    assert "stablehlo.broadcast_in_dim" not in text


def test_a_function_is_written_once():
    inner = jit(lambda x: lax.sin(x))
    text, _ = lowered(lambda x: [inner(inner(inner(x)))], Aval((3,), F32))
    assert text.count("stablehlo.sine") == 1
    assert text.count("func.call @") == 3
    assert text.count("func.func private") == 1


def test_names_of_functions_do_not_clash():
    def main(x):
        return lax.sin(x)

    def other(x):
        return jit(main)(x)

    first, second = jit(main), jit(lambda x: lax.cos(x))
    second_named = jit(lambda x: lax.exp(x))
    text, _ = lowered(
        lambda x: [first(second(second_named(jit(other)(x))))], Aval((), F32)
    )
    assert text.count("func.func private") == 4
    assert text.count("public @main") == 1


def test_scopes_are_locations():
    def fun(x):
        with named_scope("layer"):
            return [lax.sin(x)]

    text, _ = lowered(fun, Aval((), F32))
    assert 'loc("main/layer/sin")' in text


def test_tokens_only_where_effects_are_ordered():
    plain, _ = lowered(lambda x: [lax.sin(x)], Aval((), F32))
    assert "token" not in plain

    def fun(x):
        io_callback(print, None, x, ordered=True)
        return [x]

    text, module = lowered(fun, Aval((), F32))
    assert text.count("create_token") == 1
    assert len(module.callbacks) == 1
    inner = jit(lambda x: fun(x)[0])
    text, _ = lowered(lambda x: [inner(inner(x))], Aval((), F32))
    assert "%token: !stablehlo.token" in text


def test_helpers_are_shared():
    module = Module("cpu")
    write = lambda name: f"func.func private @{name}() {{ return }}\n"
    assert module.helper("k", "lgamma", write) == "lgamma"
    assert module.helper("k", "lgamma", write) == "lgamma"
    assert module.helper("other", "lgamma", write) == "lgamma_1"
    assert len(module.functions) == 2
    assert module.unique("a b<c>") == "a_b_c_"
    assert module.unique("") == "f"


def test_compose_writes_a_function_of_arrays():
    module = Module("cpu")
    ctx = Context(module, [0])
    aval = Aval((2,), F32)
    table = fnp.array([1.0, 2.0])
    (name,) = ctx.compose(lambda x: lax.add(lax.sin(x), table), ["%a0"], [aval])
    assert name.startswith("%")
    text = "\n".join(ctx.lines)
    assert "stablehlo.sine" in text and "dense<[1.0, 2.0]>" in text


def test_regions():
    module = Module("cpu")
    ctx = Context(module, [0])
    scalar = Aval((), F32)
    text = ctx.region(
        [scalar, scalar],
        lambda inner, names: [
            inner.emit(f"stablehlo.add {names[0]}, {names[1]} : {scalar.mlir}")
        ],
        [scalar],
    )
    assert text.startswith("{\n^bb0(%b0: tensor<f32>, %b1: tensor<f32>):")
    assert text.endswith("stablehlo.return %2 : tensor<f32>\n}")


def test_no_arguments_and_no_results():
    text, _ = lowered(list)
    assert "func.func public @main() -> ()" in text
    graph, _ = trace_flat(lambda: [2.0], [])
    program = compile_graph(graph, [], name="two")
    assert float(program([])[0]) == 2.0


def test_keys_are_vectors():
    text = jit(lambda k: k).lower(fxflow.random.key(0)).as_text()
    assert "tensor<2xui32>" in text


@pytest.mark.parametrize("platform", ["cpu", "gpu", "tpu"])
def test_modules_are_written_for_each_platform(platform):
    text, module = lowered(
        lambda x: [lax.erf(x), lax.sort(x)], Aval((3,), F32), platform=platform
    )
    assert module.platform == platform
    assert "stablehlo.sort" in text


def chain(length):
    def fun(x):
        for _ in range(length):
            x = lax.sin(x)
        return [x]

    graph, _ = trace_flat(fun, [Aval((), F32)])
    calls = itertools.count()
    sys.setprofile(lambda *event: next(calls))
    try:
        lower_graph(graph, name="chain", platform="cpu")
    finally:
        sys.setprofile(None)
    return next(calls)


def test_lowering_grows_linearly():
    chain(100)
    assert chain(5000) < 11 * chain(500)


def test_the_text_does_not_depend_on_the_run():
    struct = ShapeDtypeStruct((3,), "float32")

    def make():
        def fun(x):
            return jit(lambda y: lax.sin(y))(x) + fnp.cos(x)

        return jit(fun).lower(struct).as_text()

    assert make() == make()


def test_host_and_xla_give_the_same():
    def fun(x, y):
        return [lax.add(lax.mul(x, y), lax.sin(x)), lax.gt(x, y), lax.neg(y)]

    value = np.linspace(-2, 2, 8, dtype=np.float32)
    x, y = fnp.asarray(value), fnp.asarray(value[::-1].copy())
    graph, _ = trace_flat(fun, [x.aval, y.aval])
    host = graph_plan(graph, [x._type, y._type], "f")(x, y)
    device = compile_graph(graph, [x._type, y._type], name="f")([x, y])
    for a, b in zip(host, device, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)
