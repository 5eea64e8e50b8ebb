from collections.abc import Callable

import numpy as np
import pytest

from fxflow.devices import buffers, lapack
from fxflow.devices.buffers import BufferType, Placement
from fxflow.devices.compile import compile as compile_text


def test_a_program_calls_lapack(
    place: Placement, put: Callable[..., buffers.Buffer]
) -> None:
    lapack.ensure()
    lapack.ensure()
    matrix = "tensor<3x3xf32>"
    column_major = "dense<[0, 1]> : tensor<2xindex>"
    text = f"""module @m {{ func.func @main(%a: {matrix}) -> {matrix} {{
      %r:2 = stablehlo.custom_call @{lapack.target("potrf", np.dtype("f4"))}(%a) {{
        api_version = 4 : i32, backend_config = {{uplo = 76 : ui8}},
        operand_layouts = [{column_major}],
        result_layouts = [{column_major}, dense<[]> : tensor<0xindex>]
      }} : ({matrix}) -> ({matrix}, tensor<i32>)
      return %r#0 : {matrix} }} }}"""
    program = compile_text(text, place)
    handler = buffers.result_handler(BufferType((3, 3), np.dtype("f4")), place, False)
    a = np.array([[4, 2, 0], [2, 5, 1], [0, 1, 3]], "f4")
    factor = np.tril(buffers.to_host(program.execute([put(a)], [handler])[0]))
    np.testing.assert_allclose(factor @ factor.T, a, rtol=1e-6, atol=1e-6)


def test_targets() -> None:
    assert lapack.target("gesdd", "complex128") == "lapack_zgesdd_ffi"
    with pytest.raises(TypeError, match=r"geqrf takes float32, .*; got float16"):
        lapack.target("geqrf", np.dtype("f2"))
