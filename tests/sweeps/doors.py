"""Doors: what takes an array and gives it back, by storing, sending or referring."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, flatten_util, lax, serve, train
from fxflow.core.arrays import dtypes
from fxflow.distributed import (
    elastic,
    multihost,
    program_text,
    serialization,
    snapshots,
)
from fxflow.serve.protocol import tensors
from fxflow.serve.signatures import (
    DATATYPES,
    ModelSignature,
    TensorSpec,
    from_bytes,
    to_bytes,
)

Door = Callable[[Any], Any]
DTYPES = [d for d in dtypes.ALL if not dtypes.is_key(d)]

#: Numbers that fewer bits do not hold, by kind of dtype.
_NUMBERS: list[tuple[Callable[[Any], bool], list[Any]]] = [
    (dtypes.is_bool, [True, False, True, True, False, False]),
    (dtypes.is_signed, [-1, 0, 1, -2, 1, -2]),
    (dtypes.is_unsigned, [1, 0, 3, 2, 1, 0]),
    (dtypes.is_floating, [0.1, -0.0, 1.5, -3.7, 0.25, 1.1]),
    (dtypes.is_complex, [0.1 + 0.3j, -1j, 1.5, -3.7 + 1e-3j, 0.25, 1.1j]),
]
_FAR: dict[str, Any] = {
    "int64": 2**40 + 1,
    "uint64": 2**63 + 1,
    "float64": 1e300,
    "complex128": 1e300 - 0.1j,
}


def values(dtype: Any) -> np.ndarray[Any, Any]:
    """An array of shape (2, 3) that changes if any bit is lost."""
    numbers = list(next(n for is_kind, n in _NUMBERS if is_kind(dtype)))
    if str(dtype) in _FAR:
        numbers[2] = _FAR[str(dtype)]
    with np.errstate(all="ignore"):
        return np.array(numbers).astype(dtype).reshape(2, 3)


def check(got: Any, host: np.ndarray[Any, Any]) -> None:
    """The same dtype, shape and bits."""
    found = np.asarray(got)
    assert (found.dtype, found.shape) == (host.dtype, host.shape)
    assert found.tobytes() == host.tobytes()


# -- arrays through doors --------------------------------------------------------------


def saved(x: Any) -> Any:
    file = io.BytesIO()
    fnp.save(file, x)
    file.seek(0)
    return fnp.load(file)


def saved_with_others(x: Any) -> Any:
    file = io.BytesIO()
    fnp.savez(file, a=x)
    file.seek(0)
    found = fnp.load(file)["a"]
    return found.view(x.dtype) if x.dtype == dtypes.bfloat16 else found


def checkpointed(like: Callable[[Any], Any], **options: Any) -> Door:
    def through(x: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            train.checkpoint.save(folder, {"x": x})
            found = train.checkpoint.restore(folder, {"x": like(x)}, **options)["x"]
            return np.array(found)

    return through


def unlike(**options: Any) -> Door:
    def through(x: Any) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            train.checkpoint.save(folder, {"x": x})
            return np.array(train.checkpoint.restore(folder, **options)["x"])

    return through


def of_several_processes(x: Any) -> Any:
    """As zarr arrays, which object stores and several processes have."""
    pytest.importorskip("tensorstore", reason="pip install 'fxflow[checkpoint]'")
    with tempfile.TemporaryDirectory() as folder:
        where = {"driver": "file", "path": f"{folder}/"}
        train.checkpoint.save(where, {"x": x})
        return train.checkpoint.restore(where, {"x": x})["x"]


def resumed(x: Any) -> Any:
    """The state of a loop that is begun again."""
    with tempfile.TemporaryDirectory() as folder:
        for steps in (1, 2):
            with train.checkpoint.Checkpointer(folder) as checkpointer:
                outcome = train.loop.run(
                    lambda state, batch: (state, None),
                    x if steps == 1 else fnp.zeros_like(x),
                    [0, 1],
                    num_steps=steps,
                    checkpointer=checkpointer,
                )
    return outcome.state


def exported(x: Any) -> Any:
    made = export.export(fxflow.jit(lambda y: y))(x)
    return export.deserialize(made.serialize()).call(x)


def exported_constant(x: Any) -> Any:
    made = export.export(fxflow.jit(lambda: fnp.reshape(x, (3, 2))))()
    return fnp.reshape(export.deserialize(made.serialize()).call(), (2, 3))


def exported_parameters(x: Any) -> Any:
    made = export.export(fxflow.jit(lambda p, y: (p["w"], y)))({"w": x}, x)
    with tempfile.TemporaryDirectory() as folder:
        export.save(f"{folder}/f.fx", made, params={"w": x})
        bundle = export.load(f"{folder}/f.fx")
    check(bundle.params["w"], np.asarray(x))
    first, second = bundle.call(np.asarray(x))
    check(first, np.asarray(x))
    return second


def ahead_of_time(x: Any) -> Any:
    return fxflow.jit(lambda y: y).lower(x).compile()(np.asarray(x))


def sent(x: Any) -> Any:
    host = serialization.to_host(x)
    found, _ = serialization.decode(serialization.encode([host]))
    return serialization.from_host(found[0])


def snapshot(x: Any) -> Any:
    taken = snapshots.StateSnapshot([x])
    return taken.piece(0, [[0, 2], [0, 3]]).data


def sent_as_program(x: Any) -> Any:
    """A program with a constant, as a parameter server's workers send it."""
    text, _ = program_text.write(lambda y: (y, x), x, name="f", platform="cpu")
    given, constant = program_text.Runner(text)([np.asarray(x)])
    check(constant, np.asarray(x))
    return given


def survived(x: Any) -> Any:
    return elastic(lambda world, state, index: state, x, 1).state


def survived_and_placed(x: Any) -> Any:
    outcome = elastic(
        lambda world, state, index: state,
        x,
        1,
        place=lambda world, state: fxflow.device_put(state, fxflow.devices()[0]),
    )
    return outcome.state


def referred(x: Any) -> Any:
    ref = fxflow.new_ref(fnp.zeros_like(x))
    ref[...] = x
    return pickle.loads(pickle.dumps(copy.copy(ref)))[...]


def referred_in_parts(x: Any) -> Any:
    """Written with NumPy's data of the same dtype, element by element."""
    host = np.asarray(x)
    ref = fxflow.new_ref(fnp.zeros_like(x))
    ref[0] = host[0]
    for i in range(3):
        ref[1, i] = host[1, i]
    return ref[...]


def referred_in_a_program(x: Any) -> Any:
    @fxflow.jit
    def written() -> Any:
        ref = fxflow.new_ref(fnp.zeros_like(x))
        ref[0] = np.asarray(x)[0]
        ref.at[1].set(x[1])
        return ref[...]

    return written()


def called_back(x: Any) -> Any:
    seen = []

    def look(y: Any) -> Any:
        seen.append(np.asarray(y))
        return np.asarray(y)

    found = fxflow.jit(lambda y: fxflow.pure_callback(look, y, y))(x)
    found.block_until_ready()
    check(seen[-1], np.asarray(x))
    return found


def on_a_mesh(x: Any) -> Any:
    mesh = fxflow.make_mesh((2,), ("d",))
    where = fxflow.NamedSharding(mesh, fxflow.P("d"))
    host = np.asarray(x)
    made = fxflow.make_array_from_callback(
        host.shape, where, lambda index: host[index], dtype=host.dtype
    )
    check(made, host)
    local = fxflow.make_array_from_process_local_data(where, x)
    check(local, host)
    return fxflow.device_put(x, where)


def raveled(x: Any) -> Any:
    vector, unravel = flatten_util.ravel_pytree({"x": x})
    return unravel(vector)["x"]


def scanned(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry, row), x[0], x)[1]


def of_another_library(x: Any) -> Any:
    if x.dtype.isbuiltin == 1:  # NumPy's
        check(np.from_dlpack(x), np.asarray(x))
        return fnp.from_dlpack(np.asarray(x))
    return fnp.from_dlpack(x)


def as_onnx(x: Any) -> Any:
    made = export.onnx(fxflow.jit(lambda y: (y, lax.rev(x, (0,)))).lower(x))
    given, constant = made(np.asarray(x))
    check(lax.rev(constant, (0,)), np.asarray(x))
    return given


def as_iree(x: Any) -> Any:
    pytest.importorskip("iree.compiler", reason="pip install 'fxflow[iree]'")
    made = export.iree(fxflow.jit(lambda y: (lax.rev(y, (0,)), x)).lower(x))
    given, constant = made(np.asarray(x))
    check(constant, np.asarray(x))
    return lax.rev(given, (0,))


# -- requests --------------------------------------------------------------------------

SHORT = {
    str(dtype): short
    for short, dtype in DATATYPES.values()
    if dtype != np.dtype(object)
}


def signature_of(x: Any) -> ModelSignature:
    spec = TensorSpec.parse("x", f"{SHORT[str(x.dtype)]}[batch,3]")
    return ModelSignature((spec,), (dataclasses.replace(spec, name="y"),), batched=True)


def served(x: Any) -> Any:
    signature = signature_of(x)
    model = serve.Model(lambda x: x, inputs={"x": str(signature.inputs[0])})
    assert model.prepare(max_batch=2).outputs[0].dtype == x.dtype
    return model.run([np.asarray(x)], 2)[0]


def served_from_files(x: Any) -> Any:
    """Programs for batches of two sizes."""
    with tempfile.TemporaryDirectory() as folder:
        for rows in (2, 4):
            like = fxflow.ShapeDtypeStruct((rows, 3), x.dtype)
            both = fxflow.jit(lambda p, y: (y, fnp.broadcast_to(p, y.shape)))
            made = export.export(both)(x[0], like)
            export.save(f"{folder}/m-{rows}.fx", made, params=x[0])
        model = serve.load_model(f"{folder}/m-*.fx")
        model.prepare(4)
    given, parameters = model.run([np.asarray(x)], 2)
    check(parameters[1], np.asarray(x[0]))
    return given


def sent_as_json(x: Any) -> Any:
    signature = signature_of(x)
    data = tensors.to_json(signature.inputs[0], np.asarray(x))
    tensor = {"name": "x", "datatype": signature.inputs[0].datatype, "shape": [2, 3]}
    body = json.dumps({"inputs": [tensor | {"data": data}]}).encode()
    request = tensors.parse_infer(body, None, signature)
    answer, _ = tensors.write_infer(
        request, {"y": request.inputs["x"]}, signature, "m", "1"
    )
    (output,) = json.loads(answer)["outputs"]
    datatype = signature.inputs[0].datatype
    return tensors.from_json("y", output["data"], datatype, (2, 3))


def sent_as_bytes(x: Any) -> Any:
    signature = signature_of(x)
    datatype = signature.inputs[0].datatype
    data = to_bytes(np.asarray(x))
    more = {"parameters": {"binary_data_size": len(data)}}
    tensor = {"name": "x", "datatype": datatype, "shape": [2, 3], **more}
    asked = {"binary_data_output": True}
    head = json.dumps({"inputs": [tensor], "parameters": asked}).encode()
    request = tensors.parse_infer(head + data, len(head), signature)
    answer, split = tensors.write_infer(
        request, {"y": request.inputs["x"]}, signature, "m", "1"
    )
    return from_bytes(answer[split:], datatype, (2, 3))


def sent_as_message(x: Any) -> Any:
    """gRPC: raw, and in the field of its datatype where there is one."""
    rpc = pytest.importorskip("fxflow.serve.protocol.rpc")
    pytest.importorskip("grpc", reason="pip install 'fxflow[serve]'")
    known = rpc.classes()
    signature = signature_of(x)
    host, datatype = np.asarray(x), signature.inputs[0].datatype
    tensor = {"name": "x", "datatype": datatype, "shape": [2, 3]}
    if field := rpc._CONTENTS.get(datatype):
        typed = {**tensor, "contents": {field: host.ravel().tolist()}}
        request = known["ModelInferRequest"](inputs=[typed])
        check(rpc.inputs_of(request, signature)[0]["x"], host)
    raw = known["ModelInferRequest"](
        inputs=[tensor], raw_input_contents=[to_bytes(host)]
    )
    found, _ = rpc.inputs_of(
        known["ModelInferRequest"].FromString(raw.SerializeToString()), signature
    )
    return found["x"]


SERVED: dict[str, Door] = {
    "model": served,
    "files": served_from_files,
    "json": sent_as_json,
    "bytes": sent_as_bytes,
    "grpc": sent_as_message,
}

ARRAY_DOORS: dict[str, Door] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deepcopy": copy.deepcopy,
    "device_put": fxflow.device_put,
    "device_get": fxflow.device_get,
    "mesh": on_a_mesh,
    "asarray": lambda x: fnp.asarray(np.asarray(x), x.dtype),
    "jit": lambda x: fxflow.jit(lambda y: y)(x),
    "closure": lambda x: fxflow.jit(lambda: fnp.reshape(x, (2, 3)))(),
    "vmap": fxflow.vmap(lambda x: x),
    "scan": scanned,
    "compiled": ahead_of_time,
    "ravel_pytree": raveled,
    "ref": referred,
    "ref.parts": referred_in_parts,
    "ref.jit": referred_in_a_program,
    "callback": called_back,
    "save": saved,
    "savez": saved_with_others,
    "checkpoint": unlike(),
    "checkpoint.mmap": unlike(mmap=True),
    "checkpoint.like": checkpointed(lambda x: x),
    "checkpoint.host": checkpointed(np.asarray),
    "checkpoint.struct": checkpointed(
        lambda x: fxflow.ShapeDtypeStruct(x.shape, x.dtype)
    ),
    "checkpoint.device": checkpointed(
        lambda x: fxflow.device_put(x, fxflow.devices()[0])
    ),
    "checkpoint.mesh": checkpointed(on_a_mesh),
    "checkpoint.zarr": of_several_processes,
    "loop": resumed,
    "export": exported,
    "export.constant": exported_constant,
    "export.params": exported_parameters,
    "allgather": lambda x: multihost.process_allgather(x)[0],
    "broadcast": multihost.broadcast_one_to_all,
    "message": sent,
    "snapshot": snapshot,
    "program": sent_as_program,
    "elastic": survived,
    "elastic.place": survived_and_placed,
    "dlpack": of_another_library,
    "onnx": as_onnx,
}


# -- NumPy's arrays of any layout ------------------------------------------------------


def _unaligned(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    data = np.frombuffer(b"x" + host.tobytes(), np.uint8)[1:]
    return data.view(host.dtype).reshape(host.shape)


def _read_only(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    host.flags.writeable = False
    return host


Layout = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
LAYOUTS: dict[str, Layout] = {
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "big-endian-0-d": lambda x: x[0, 0].astype(x.dtype.newbyteorder(">")),
    "big-endian-slice": lambda x: x.astype(x.dtype.newbyteorder(">"))[::-1, ::2].T,
    "fortran": np.asfortranarray,
    "reversed": lambda x: x[::-1, ::-1],
    "every-other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "repeated": lambda x: np.broadcast_to(x[0], (4, 3)),
    "read-only": _read_only,
    "unaligned": _unaligned,
    "empty": lambda x: x[:0],
    "empty-inside": lambda x: x[:, :0],
    "0-d": lambda x: x[1, 1].reshape(()),
    "scalar": lambda x: x[1, 1],
}


def given_back_by_a_callback(x: Any) -> Any:
    like = fxflow.ShapeDtypeStruct(x.shape, x.dtype)
    return fxflow.jit(lambda: fxflow.pure_callback(lambda: x, like))()


def ref_of(x: Any) -> Any:
    ref = fxflow.new_ref(fnp.zeros(x.shape, x.dtype))
    ref[...] = x
    return ref[...]


def compiled_for(x: Any) -> Any:
    like = fxflow.ShapeDtypeStruct(x.shape, x.dtype)
    return fxflow.jit(lambda y: y).lower(like).compile()(x)


def exported_for(x: Any) -> Any:
    like = fxflow.ShapeDtypeStruct(x.shape, x.dtype)
    made = export.export(fxflow.jit(lambda p, y: (p, y)))(like, like)
    with tempfile.TemporaryDirectory() as folder:
        export.save(f"{folder}/f.fx", made, params=x)
        bundle = export.load(f"{folder}/f.fx")
    parameters, given = bundle.call(x)
    check(parameters, native(x))
    return given


def assembled(x: Any) -> Any:
    where = fxflow.SingleDeviceSharding(fxflow.devices()[0])
    return fxflow.make_array_from_callback(
        x.shape, where, lambda index: x[index], dtype=x.dtype
    )


def batched(x: Any) -> Any:
    data = train.data.arrays(x[None])
    return next(iter(data.iterate()))


def served_as_it_is(x: Any) -> Any:
    short = SHORT[str(native(x).dtype)]
    model = serve.Model(
        lambda y: y,
        inputs={"x": f"{short}[{','.join(map(str, x.shape))}]"},
        batched=False,
        jit=False,
    )
    model.prepare(max_batch=1)
    datatype = model.prepare(max_batch=1).outputs[0].datatype
    return from_bytes(to_bytes(model.run([x], 1)[0]), datatype, x.shape)


def sent_host(x: Any) -> Any:
    found, _ = serialization.decode(serialization.encode([serialization.to_host(x)]))
    return found[0].data


#: Doors that keep 64 bits though the data are NumPy's: the dtype is said, or the data
#: stay in host memory.
HOST_DOORS: dict[str, Door] = {
    "asarray": lambda x: fnp.asarray(x, x.dtype),
    "array": lambda x: fnp.array(x, x.dtype),
    "from_dlpack": lambda x: fnp.from_dlpack(np.asarray(x)),
    "ref": ref_of,
    "callback": given_back_by_a_callback,
    "compiled": compiled_for,
    "export": exported_for,
    "from_callback": assembled,
    "checkpoint": unlike(),
    "checkpoint.mmap": unlike(mmap=True),
    "checkpoint.host": lambda x: checkpointed(lambda y: y)(x),
    "checkpoint.array": checkpointed(lambda x: fnp.zeros(x.shape, x.dtype)),
    "checkpoint.zarr": of_several_processes,
    "save": saved,
    "savez": saved_with_others,
    "allgather": lambda x: multihost.process_allgather(x)[0],
    "broadcast": multihost.broadcast_one_to_all,
    "message": sent_host,
    "served": served_as_it_is,
    "batches": batched,
}
#: Doors that make arrays of the default width, as `fnp.asarray` does.
DEFAULT_DOORS: dict[str, Door] = {
    "asarray": fnp.asarray,
    "device_put": fxflow.device_put,
    "jit": lambda x: fxflow.jit(lambda y: y)(x),
    "closure": lambda x: fxflow.jit(lambda: fnp.asarray(x))(),
    "vmap": lambda x: fxflow.vmap(lambda y: y)(x) if np.ndim(x) else fnp.asarray(x),
    "new_ref": lambda x: fxflow.new_ref(x)[...],
    "elastic": lambda x: elastic(lambda world, state, index: state, x, 1).state,
    "local_data": lambda x: fxflow.make_array_from_process_local_data(
        fxflow.SingleDeviceSharding(fxflow.devices()[0]), x
    ),
}


def native(x: Any) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x).astype(x.dtype.newbyteorder("=")).reshape(x.shape)


def check_host(got: Any, given: Any) -> None:
    """The same values; the dtype may be of the other byte order, as that of `like`."""
    found = np.asarray(got)
    check(found.astype(found.dtype.newbyteorder("=")), native(given))
