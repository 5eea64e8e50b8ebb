"""Portable artifacts, and changes of modules."""

import pytest

from fxflow.devices import portable

TEXT = """
module @jit_f {
  sdy.mesh @mesh = <["i"=2]>
  func.func public @main(
      %a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"i"}]>},
      %b: tensor<f32>) -> tensor<2xf32> {
    %0 = func.call @g(%a) : (tensor<2xf32>) -> tensor<2xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"i"}]> : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @g(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @elsewhere(%a) : (tensor<2xf32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""


@pytest.fixture
def module():
    return portable.read(portable.write(TEXT))


def test_a_portable_artifact_reads_back(module):
    assert portable.signature(module)[:2] == (
        ["tensor<2xf32>", "tensor<f32>"],
        ["tensor<2xf32>"],
    )
    assert portable.custom_calls(module) == {"elsewhere"}
    assert portable.has_layouts(module)
    assert portable.meshes(module) == {"mesh": {"i": 2}}
    assert "sdy.mesh @mesh" in portable.mesh_texts(module)[0]


def test_rename_changes_function_names(module):
    # `main` takes the old name of the other function.
    names = {"main": "g", "g": "g_1"}
    assert portable.rename(module, names.__getitem__, lambda name: "grid") == "g"
    main, other = portable.functions(module)
    assert main.startswith("func.func private @g(%arg0: tensor<2xf32>")
    assert "call @g_1(" in main and "<@grid, [{" in main
    assert other.startswith("func.func private @g_1(")


def test_strip_layouts_removes_shardings(module):
    portable.strip_layouts(module)
    assert "sdy" not in portable.text(module) and not portable.has_layouts(module)


def test_parts_of_arrays_have_no_meaning_on_one_device():
    text = """
    module {
      sdy.mesh @mesh = <["i"=1]>
      func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
        %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"i"}]>]
            out_shardings=[<@mesh, [{"i"}]>] manual_axes={"i"} (%b: tensor<2xf32>) {
          sdy.return %b : tensor<2xf32>
        } : (tensor<2xf32>) -> tensor<2xf32>
        return %0 : tensor<2xf32>
      }
    }"""
    with pytest.raises(ValueError, match="manual_computation has no meaning"):
        portable.strip_layouts(portable.parse(text))


def test_sizes_follow_from_those_of_the_arguments():
    text = """
    module {
      func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
        %0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<?xf32>
        %1 = func.call @f(%0) : (tensor<?xf32>) -> tensor<?xf32>
        %2 = stablehlo.convert %1 : (tensor<?xf32>) -> tensor<3xf32>
        return %2 : tensor<3xf32>
      }
      func.func private @f(%a: tensor<?xf32>) -> tensor<?xf32> {
        %0 = stablehlo.sine %a : tensor<?xf32>
        return %0 : tensor<?xf32>
      }
    }"""
    refined = portable.text(portable.refine(text, False))
    assert "tensor<3xf32>" in refined and "?" not in refined


def test_an_invalid_artifact_is_refused(capfd):
    for payload in (b"", b"module {}", b"ML\xefR", portable.write(TEXT)[:100]):
        with pytest.raises(ValueError):
            portable.read(payload)
    with pytest.raises(ValueError):
        portable.write("module { nonsense }")
    with pytest.raises(ValueError, match="no function main"):
        portable.signature(portable.parse("module {}"))
    # The reader's diagnostics are in the error, not on standard error.
    assert capfd.readouterr().err == ""
