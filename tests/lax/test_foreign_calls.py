"""The text of a foreign call; calls of kernels are in `tests/test_ffi.py`."""

import numpy as np
import pytest

import fxflow
from fxflow.errors import ArgumentError
from fxflow.lax.foreign_calls import attribute_text, attributes_text, ffi_call

OUT = fxflow.ShapeDtypeStruct((2, 3), "float32")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (3, "3 : i64"),
        (2.5, "2.5 : f64"),
        (np.float32(1.5), "1.5 : f32"),
        (np.uint8(7), "7 : ui8"),
        (np.array(3.0), "3.0 : f64"),
        ('a"\n\\é', '"a\\22\\0A\\5C\\C3\\A9"'),
        ((1, 2), "dense<[1, 2]> : tensor<2xi64>"),
        ([1, 2.5], "dense<[1.0, 2.5]> : tensor<2xf64>"),
        (np.array([True, False]), "dense<[true, false]> : tensor<2xi1>"),
        ({"b": 1, "a": "x"}, '{"a" = "x", "b" = 1 : i64}'),
    ],
)
def test_attributes_are_written_as_mlir(value: object, text: str) -> None:
    assert attribute_text("a", value) == text


def test_names_of_attributes() -> None:
    with pytest.raises(ArgumentError, match="names of attributes are strings, got 1"):
        attributes_text({1: 2})  # type: ignore[dict-item]


def test_a_foreign_call_is_written_with_layouts_and_aliases() -> None:
    call = ffi_call(
        "my kernel", [OUT, OUT], input_layouts=[(1, 0)], input_output_aliases={0: 1}
    )
    text = fxflow.jit(lambda x: call(x, n=1)).lower(OUT).as_text()
    assert '@"my kernel"(%a0) {api_version = 4 : i32, has_side_effect = false' in text
    assert 'backend_config = {"n" = 1 : i64}' in text
    assert "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]" in text
    assert "output_tuple_indices = [1], operand_index = 0" in text
    old = ffi_call("k", OUT, custom_call_api_version=2, legacy_backend_config="how")
    text = fxflow.jit(old).lower(OUT).as_text()
    assert "api_version = 2 : i32" in text and 'backend_config = "how"' in text
    graph = fxflow.make_graph(lambda x: call(x, n=1))(OUT)
    assert 'ffi_call[target=my kernel, config={"n" = 1 : i64}] a' in str(graph)
