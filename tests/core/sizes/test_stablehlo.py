"""Programs with open sizes."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax
from fxflow.core.sizes.stablehlo import opened
from fxflow.errors import CompileError, ExportError


def lowered(function, *specs):
    scope = export.SymbolicScope()
    structs = [
        fxflow.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), "float32")
        for s in specs
    ]
    return fxflow.jit(function).lower(*structs)


@pytest.mark.parametrize(
    ("function", "specs", "operation"),
    [
        (
            lambda x: fnp.broadcast_to(x, (2, *x.shape)),
            ["b"],
            "dynamic_broadcast_in_dim",
        ),
        (lambda x: x.reshape(-1), ["b, 3"], "dynamic_reshape"),
        (lambda x: fnp.arange(x.shape[0]), ["b"], "dynamic_iota"),
        (lambda x: x[1:], ["b"], "real_dynamic_slice"),
        (lambda x: lax.dynamic_slice(x, (1, 0), (x.shape[0], 2)), ["b, 3"], "clamp"),
        (lambda x, y: fnp.pad(x, (0, y.shape[0])), ["b", "t"], "dynamic_pad"),
        (lambda x, i: x[i.astype(int)], ["4, b", "t"], "dynamic_gather"),
        (
            lambda x, w: lax.conv_general_dilated(x, w, (2,), "SAME"),
            ["1, 1, b + 4", "1, 1, 3"],
            "dynamic_conv",
        ),
        (lambda x: x + x.shape[0], ["b"], "get_dimension_size"),
        (
            lambda x: fnp.linalg.eigh(x)[0],
            ["b, 3, 3"],
            "custom_call @lapack_ssyevd_ffi",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_open_sizes_become_dynamic_operations(function, specs, operation):
    text = lowered(function, *specs).as_text()
    assert f"stablehlo.{operation}" in text
    assert "tensor<?" in text or "x?" in text
    assert text.isascii()


def test_private_functions_take_the_names():
    inner = fxflow.jit(lambda x: fnp.ones((x.shape[0], x.shape[0])))
    text = lowered(lambda x: inner(x) + inner(x[:, 0]), "b, 2*b").as_text()
    assert 'tensor<i32> {jax.global_constant = "b"}' in text
    assert "func.call @" in text


def test_what_is_known_stays():
    text = "module @m {\nfunc.func public @main() -> () {\nreturn\n}\n}\n"
    assert opened(text, [], None) == text


def test_refusals_name_the_operation_and_the_size():
    with pytest.raises(ExportError, match=r"fft has no form for the symbolic size 2"):
        lowered(lambda x: abs(fnp.fft.fft(x)), "2*b")
    with pytest.raises(ExportError, match="no argument says what b, t is"):
        lowered(lambda x: x + 1, "b*t")


def test_an_open_program_is_not_compiled():
    with pytest.raises(CompileError, match=r"cannot be compiled for f32\[b\]"):
        lowered(lambda x: x, "b").compile()
