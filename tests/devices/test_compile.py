from collections.abc import Callable

import numpy as np
import pytest

from fxflow.devices import buffers
from fxflow.devices import compile as compiling
from fxflow.devices._jaxlib import RuntimeFailure
from fxflow.devices.buffers import BufferType, Placement
from fxflow.errors import CompileError

from . import programs

Put = Callable[..., buffers.Buffer]
pytestmark = pytest.mark.usefixtures("no_cache")
F16 = BufferType((16,), np.dtype("f4"))


def test_compile_and_execute(place: Placement, put: Put) -> None:
    program = compiling.compile(programs.ADD, place, name="add")
    assert not program.from_cache
    assert repr(program) == "Executable(add on cpu:0)"
    handler = buffers.result_handler(F16, place, False)
    argument = put(np.arange(16), "f4")
    (result,) = program.execute([argument], [handler])
    np.testing.assert_array_equal(buffers.to_host(result), np.arange(16) * 2)
    (result,), token = program.execute_with_token([argument], [handler])
    token.block_until_ready()
    np.testing.assert_array_equal(buffers.to_host(result), np.arange(16) * 2)
    (raw,) = program.launch([argument]).consume_with_handlers([handler])
    assert raw.aval is F16


def test_bytecode_compiles(place: Placement) -> None:
    program = compiling.compile(programs.ADD.encode(), [place.device])
    assert program.devices == (place.device,)


def test_cost_and_memory_analyses(place: Placement) -> None:
    program = compiling.compile(programs.ADD, place)
    assert "add" in program.hlo_text()
    assert program.cost_analysis()["flops"] == 16
    memory = program.memory_analysis()
    assert memory["argument_size_in_bytes"] == 64
    assert memory["output_size_in_bytes"] == 64
    donating = programs.DONATE.replace("ATTRIBUTE", "tf.aliasing_output = 0 : i32")
    memory = compiling.compile(donating, place).memory_analysis()
    assert memory["alias_size_in_bytes"] == 64
    assert len(program.serialize()) > 100
    # If a device's default memory is host memory, all bytes count as the device's.
    assert memory["host_argument_size_in_bytes"] == 0


def test_results_have_memory_kinds(place: Placement) -> None:
    assert compiling.compile(programs.ADD, place).result_memory_kinds() == [None]
    there = programs.ADD.replace(
        "-> tensor<16xf32> {",
        '-> (tensor<16xf32> {mhlo.memory_kind = "pinned_host"}) {',
    )
    assert there != programs.ADD
    kinds = compiling.compile(there, place).result_memory_kinds()
    assert kinds == ["pinned_host"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("garbage", "'garbage' is unknown"),
        (programs.ADD.replace("stablehlo.add", "stablehlo.nonsense"), "nonsense"),
        (programs.ADD.replace("-> tensor<16xf32> {", "-> tensor<3xf32> {"), "type"),
    ],
)
def test_refused_programs(place: Placement, text: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        compiling.compile(text, place, name="mine")
    assert "XLA could not compile mine: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.module_text == text
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xla_no_such": 1}, "No such compile option: 'xla_no_such'"),
        ({"xla_cpu_enable_fast_math": "often"}, "not a valid bool"),
        ({"optimization_level": "high"}, "'optimization_level' cannot be 'high'"),
    ],
)
def test_refused_options(place: Placement, options: dict, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        compiling.compile(programs.ADD, place, options=options)


def test_options_reach_the_compiler(place: Placement) -> None:
    options = {"xla_backend_optimization_level": 0, "optimization_level": 1}
    built = compiling.build_options([place.device], options)
    assert built.env_option_overrides == [("xla_backend_optimization_level", 0)]
    assert built.executable_build_options.optimization_level == 1
    assert compiling.compile(programs.ADD, place, options=options).launch


def test_a_wrong_number_of_devices_is_refused(place: Placement) -> None:
    with pytest.raises(ValueError, match="2 replicas x 1 partitions need 2 devices"):
        compiling.compile(programs.ADD, place, num_replicas=2)


def test_invalid_arguments_are_refused(place: Placement, put: Put) -> None:
    program = compiling.compile(programs.ADD, place)
    handler = buffers.result_handler(F16, place, False)
    with pytest.raises(RuntimeFailure):
        program.execute([], [handler])


def test_partitions_and_replicas(run_python: Callable[..., str]) -> None:
    code = '''
import numpy as np
from fxflow.devices import clients
from fxflow.devices import compile as compiling
devices = clients.devices()
T = "tensor<8x8xf32>"
text = f"""module @m attributes {{mhlo.num_partitions = 2 : i32}} {{
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(
      %a: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
      %b: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {T} {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : ({T}, {T}) -> {T}
    return %0 : {T} }} }}"""
program = compiling.compile(text, devices, num_partitions=2, use_shardy=True)
assert "all-reduce" in program.hlo_text()
text = """module @m attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32> } }"""
program = compiling.compile(text, devices, num_replicas=2)
assert "all-reduce" in program.hlo_text()
print("fine")
'''
    out = run_python(code, FXFLOW_NUM_CPU_DEVICES="2")
    assert out == "fine\n"
