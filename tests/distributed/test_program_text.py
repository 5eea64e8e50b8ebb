import re
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import random, tree
from fxflow.core.arrays import Aval, dtypes
from fxflow.devices import buffers
from fxflow.distributed.program_text import (
    ProgramText,
    Runner,
    adopted,
    require_harmless,
    type_of_text,
    type_text,
    write,
)
from fxflow.errors import DistributedError

CAPTURED = fnp.arange(3.0)


def of_many(params: dict, key: fxflow.Array) -> tuple:
    total = params["a"].sum() + (CAPTURED * params["b"]).sum()
    return {"sum": total, "q": fnp.linalg.qr(params["a"])[0]}, random.fold_in(key, 1)


def test_a_program_computes_what_its_function_computes() -> None:
    params = {"a": fnp.arange(4.0).reshape(2, 2), "b": fnp.ones(3)}
    key = random.key(0)
    program, treedef = write(of_many, params, key, name="of_many")
    # As it is sent: text, numbers and types.
    types = [type_of_text(type_text(aval)) for aval in program.inputs]
    program = ProgramText(
        program.name, str(program.text), program.constants, types, program.outputs
    )
    found = treedef.unflatten(Runner(program)(tree.leaves((params, key))))
    expected = of_many(params, key)
    for x, y in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        if dtypes.is_key(x.dtype):
            x, y = random.key_data(x), random.key_data(y)
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize("count", [3, 100_000])
def test_captured_arrays_are_part_of_the_program(count: int) -> None:
    captured = fnp.arange(float(count))
    program, _ = write(lambda x: x * captured, fnp.ones(count), name="times")
    # Small ones are in the text.
    assert len(program.constants) == (count > 3)
    (found,) = Runner(program)([2 * fnp.ones(count)])
    np.testing.assert_array_equal(found, 2 * np.arange(float(count)))


def test_digests_differ_if_and_only_if_programs_do() -> None:
    def scaled(by: float) -> ProgramText:
        factor = np.full(3, by, np.float32)
        return write(lambda x: x * factor, fnp.ones(3), name="scaled")[0]

    assert scaled(2.0).digest == scaled(2.0).digest
    assert scaled(2.0).digest != scaled(3.0).digest


def test_programs_do_not_reach_python() -> None:
    def callback(x: fxflow.Array) -> fxflow.Array:
        fxflow.debug.print("{}", x)
        return x

    with pytest.raises(DistributedError, match="'prints' calls 'xla_ffi_python"):
        write(callback, fnp.ones(2), name="prints")


@pytest.mark.parametrize(
    "call",
    [
        'stablehlo.custom_call @"foreign"(%a0)',
        '"stablehlo.custom_call"(%a0) {call_target_name = "foreign"}',
        "stablehlo.custom_call // a remark\n @foreign(%a0)",
        'stablehlo.custom_call @"fo\\72eign"(%a0)',
    ],
)
def test_received_text_may_not_make_other_calls(call: str) -> None:
    text = (
        "module @m {\nfunc.func public @main(%a0: tensor<f32>) -> tensor<f32> {\n"
        f"%0 = {call} : (tensor<f32>) -> tensor<f32>\n"
        "return %0 : tensor<f32>\n}\n}\n"
    )
    aval = Aval((), np.dtype(np.float32))
    with pytest.raises(DistributedError, match="calls 'foreign'"):
        Runner(ProgramText("sent", text, [], [aval], [aval]))


@pytest.mark.parametrize("bad", [["f32", [-1]], ["f32", [1.5]], ["nothing", []], 3])
def test_types_are_checked(bad: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        type_of_text(bad)


def test_only_read_only_memory_is_adopted() -> None:
    # 64-byte aligned, as `messages.decode` makes them; large enough to matter.
    memory = buffers.aligned_empty((40_000,), np.float32)
    memory[:] = 1
    copied = adopted(memory)
    memory.flags.writeable = False
    shared = adopted(memory)
    assert np.asarray(shared + 0)[0] == 1  # put it on the device
    memory.flags.writeable = True
    memory[:] = 2
    assert not np.shares_memory(np.asarray(copied), memory)
    np.testing.assert_array_equal(np.asarray(copied), 1)
    assert np.asarray(shared).ctypes.data == memory.ctypes.data
    assert adopted(shared) is shared and adopted(2.0).dtype == np.float32


def test_donated_inputs_are_overwritten_unless_numpy_sees_them() -> None:
    aval = Aval((100_000,), np.dtype(np.float32))
    program, _ = write(lambda p, g: p - g, aval, aval, name="update", donated=1)
    assert program.donated == 1
    runner = Runner(program)
    ones = np.ones(100_000, np.float32)
    # Take a result: an array made from a NumPy array may share NumPy's memory.
    (params,) = runner([fnp.array(2 * ones), fnp.array(ones)])
    place = params.unsafe_buffer_pointer()
    np.asarray(params)  # a view that only the array itself references
    (new,) = runner([params, fnp.array(ones)])
    assert new.unsafe_buffer_pointer() == place
    assert params.is_deleted()
    seen = np.asarray(new)
    (newer,) = runner([new, fnp.array(ones)])
    assert newer.unsafe_buffer_pointer() != place
    assert (seen == 0).all() and (np.asarray(newer) == -1).all()
    # The memory of an array of a message does not belong to the runtime.
    ones.flags.writeable = False
    (last,) = runner([ones, newer])
    assert (ones == 1).all() and (np.asarray(last) == 2).all()


def test_how_values_are_divided_over_devices_is_harmless() -> None:
    mesh = fxflow.Mesh(fxflow.local_devices()[:2], "x")
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))

    @fxflow.jit
    def f(x: Any) -> Any:
        def part(x: Any) -> Any:
            return fxflow.lax.psum(x, "x")

        x = fxflow.lax.with_sharding_constraint(fnp.sin(x), where)
        specs: Any = {"in_specs": fxflow.P("x"), "out_specs": fxflow.P()}
        return fxflow.shard_map(part, mesh=mesh, **specs)(x)

    text = f.lower(fxflow.device_put(fnp.ones(4), where)).as_text()
    assert "sdy.manual_computation" in text
    require_harmless(text, "f")
    call = "stablehlo.custom_call @foreign(%a0) : (tensor<4xf32>) -> tensor<4xf32>"
    calls = re.sub(r"stablehlo\.sine %a0 : tensor<4xf32>", call, text)
    with pytest.raises(DistributedError, match="calls 'foreign'"):
        require_harmless(calls, "f")
