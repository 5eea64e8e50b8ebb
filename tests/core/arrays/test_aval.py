"""Types: interning, text, parts, and `ShapeDtypeStruct`."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.export
import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct
from fxflow.core.arrays import AbstractRef, dtypes, type_on
from fxflow.core.arrays.aval import Aval, common_placement
from fxflow.devices import OutOfMemoryError, PlacementError, buffers, local_devices
from fxflow.errors import ArgumentError, ShapeError

F32 = np.dtype(np.float32)


def test_equal_types_are_one_object():
    assert Aval((3, 4), F32) is Aval((3, 4), F32)
    assert Aval((3, 4), F32) is not Aval((4, 3), F32)
    assert Aval((), F32) is not Aval((), F32, True)
    assert Aval((2,), F32) is not Aval((2,), np.dtype(np.int32))


def test_a_type_tells_along_which_axes_devices_differ():
    varying = Aval((3,), F32, True, frozenset({"y", "x"}))
    assert str(varying) == "f32[3]~{V:x,y}"
    assert varying is not Aval((3,), F32, True)
    assert varying.update(vma=frozenset()) is Aval((3,), F32, True)
    for kept in (varying.strong(), varying.tangent(), varying.update(shape=())):
        assert kept.vma == {"x", "y"}
    assert pickle.loads(pickle.dumps(varying)) is varying


def test_unused_types_are_forgotten():
    kept = Aval((123457, 3), F32)
    known = weakref.ref(kept)
    assert known() is Aval((123457, 3), F32)
    del kept
    gc.collect()
    assert known() is None


def test_threads_that_meet_a_type_at_once_get_one_object():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for n in range(300):
            together, found = threading.Barrier(4), []

            def meet(shape=(n, 78), together=together, found=found):
                together.wait()
                aval = Aval(shape, F32)
                found.append((aval, type_on(aval)))

            threads = [threading.Thread(target=meet) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len({id(a) for a, _ in found}) == len({id(t) for _, t in found}) == 1
    finally:
        sys.setswitchinterval(interval)


def test_interning_from_several_threads():
    found: list[set[int]] = []
    alive = []
    start = threading.Barrier(4)

    def work():
        start.wait()
        mine = [Aval((n, 77), F32) for n in range(300)]
        alive.append(mine)
        found.append({id(a) for a in mine})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for mine in alive:
        assert [a.shape[0] for a in mine] == list(range(300))
    # All threads made this type; the table holds one object for it.
    assert Aval((5, 77), F32) is Aval((5, 77), F32)


@pytest.mark.parametrize(
    ("aval", "text", "mlir"),
    [
        (Aval((3, 4), F32), "f32[3,4]", "tensor<3x4xf32>"),
        (Aval((), F32, True), "f32[]~", "tensor<f32>"),
        (Aval((0,), np.dtype(bool)), "bool[0]", "tensor<0xi1>"),
        (Aval((2,), np.dtype(ml_dtypes.bfloat16)), "bf16[2]", "tensor<2xbf16>"),
        (Aval((), np.dtype(np.uint8)), "u8[]", "tensor<ui8>"),
        (Aval((1,), np.dtype(np.complex64)), "c64[1]", "tensor<1xcomplex<f32>>"),
    ],
)
def test_types_print_as_text_and_mlir(aval, text, mlir):
    assert str(aval) == repr(aval) == text
    assert aval.mlir == mlir
    assert aval.mlir == mlir  # from the memo


def test_sizes_and_changes_of_a_type():
    aval = Aval((3, 4), F32, True)
    assert (aval.size, aval.nbytes, aval.ndim) == (12, 48, 2)
    assert aval.strong() is Aval((3, 4), F32)
    assert aval.strong().strong() is aval.strong()
    assert aval.update(shape=(2,)) is Aval((2,), F32, True)
    assert aval.update(dtype=np.dtype(np.int32)) is Aval((3, 4), np.dtype("i4"), True)
    assert aval.update(weak_type=False) is aval.strong()
    assert Aval((0, 4), F32).size == 0


def test_tangent_types():
    assert Aval((2,), F32, True).tangent() is Aval((2,), F32)
    assert Aval((2,), np.dtype(np.int32)).tangent().dtype == dtypes.float0


def test_keys_are_vectors_for_the_compiler():
    key = fxflow.random.key(0)
    aval = key.aval
    assert aval.shape == ()
    assert aval.physical is Aval((2,), np.dtype(np.uint32))
    assert aval.mlir == "tensor<2xui32>"
    plain = Aval((2,), F32)
    assert plain.physical is plain


def test_copies_are_the_same_object():
    aval = Aval((2, 3), F32, True)
    assert pickle.loads(pickle.dumps(aval)) is aval
    assert copy.deepcopy(aval) is aval


def test_shape_dtype_struct():
    struct = ShapeDtypeStruct([np.int64(3), 4], "float32")
    assert struct.shape == (3, 4) and type(struct.shape[0]) is int
    assert struct.dtype == np.float32
    assert (struct.ndim, struct.size, len(struct)) == (2, 12, 3)
    assert struct == ShapeDtypeStruct((3, 4), np.float32)
    assert hash(struct) == hash(ShapeDtypeStruct((3, 4), np.float32))
    assert struct != ShapeDtypeStruct((3, 4), np.int32)
    assert struct != "f32[3,4]"
    assert repr(struct) == "ShapeDtypeStruct(f32[3,4])"
    weak = struct.update(shape=(), weak_type=True)
    assert weak.weak_type and weak.shape == () and weak.dtype == np.float32
    assert struct.update(dtype="int8").dtype == np.int8
    with pytest.raises(TypeError, match="unsized"):
        len(weak)


def test_a_struct_of_an_invalid_dtype_is_refused():
    with pytest.raises(TypeError, match="floof"):
        ShapeDtypeStruct((), "floof")


@pytest.mark.parametrize("shape", [(2**62,), (2**40, 2**40), (2**63, 0)])
def test_what_cannot_be_addressed_is_refused(shape):
    with pytest.raises(ShapeError, match="larger than any memory"):
        Aval(shape, dtypes.float32)


def test_sizes_are_refused_before_xla_sees_them():
    with pytest.raises(ShapeError, match=r"^linspace: an array f64"):
        fnp.linspace(0, 1, 2**62)
    with pytest.raises(ShapeError, match=r"^histogram2d: an array"):
        fnp.histogram2d(fnp.ones(3), fnp.ones(3), bins=(2**62, 2**62))


def test_structs_with_shardings():
    mesh = fxflow.make_mesh((2,), ("x",))
    split = fxflow.NamedSharding(mesh, fxflow.P("x"))
    struct = ShapeDtypeStruct((4,), "float32", sharding=split)
    assert struct != ShapeDtypeStruct((4,), "float32")
    assert struct == ShapeDtypeStruct((4,), "float32", sharding=split)
    with pytest.raises(PlacementError, match="cannot be divided into 2"):
        ShapeDtypeStruct((5,), "float32", sharding=split)
    with pytest.raises(PlacementError, match="at least 1 axes"):
        struct.update(shape=())
    with pytest.raises(ArgumentError, match="must be a Sharding, got 'x'"):
        ShapeDtypeStruct((4,), "float32", sharding="x")


AVAL = Aval((2, 3), np.dtype(np.float32))


def test_interned():
    assert type_on(AVAL) is type_on(AVAL)
    assert type_on(AVAL) is type_on(AVAL, buffers.default_placement(), False)
    assert type_on(AVAL) is not type_on(AVAL, committed=True)
    assert type_on(AVAL) is not type_on(AVAL.update(weak_type=True))


def test_parts_of_a_type_at_a_placement():
    placement = buffers.placement(local_devices()[0])
    array_type = type_on(AVAL, placement, True)
    assert array_type.aval is AVAL
    assert array_type.placement is placement
    assert array_type.committed
    assert repr(array_type).startswith("f32[2,3]@")
    assert array_type.handler is array_type.handler


def test_more_than_the_machine_has_is_refused():
    with pytest.raises(MemoryError, match=r"^zeros: f32\[1099511627776\] takes"):
        fnp.zeros(2**40)
    with pytest.raises(OutOfMemoryError, match="takes"):
        fxflow.jit(lambda: fnp.zeros(2**40))()
    assert fxflow.eval_shape(lambda: fnp.zeros(2**40)).shape == (2**40,)


def test_a_struct_like_an_array() -> None:
    x = fnp.ones((4, 2), fnp.bfloat16)
    assert ShapeDtypeStruct.like(x) == ShapeDtypeStruct((4, 2), "bfloat16")
    assert ShapeDtypeStruct.like(fnp.asarray(1.0)).weak_type
    assert ShapeDtypeStruct.like(np.zeros(3, "i2")).dtype == "int16"
    placed = fxflow.device_put(x, local_devices()[0])
    assert ShapeDtypeStruct.like(placed).sharding == placed.sharding


def test_a_struct_divided_over_the_current_mesh() -> None:
    mesh = fxflow.make_mesh((2,), ("i",))
    with fxflow.set_mesh(mesh):
        struct = ShapeDtypeStruct((4, 2), "float32", sharding=fxflow.P("i"))
    assert struct.sharding == fxflow.NamedSharding(mesh, fxflow.P("i"))
    with pytest.raises(PlacementError, match="there is no current mesh"):
        ShapeDtypeStruct((4, 2), "float32", sharding=fxflow.P("i"))


def test_operations_run_on_the_device_that_an_argument_insists_on():
    aval = Aval((4, 2), F32)
    free, here = type_on(aval), type_on(aval, None, True)
    there = type_on(aval, buffers.placement(fxflow.devices()[5]), True)
    default = buffers.default_placement()
    assert common_placement([], "f") == (default, False)
    assert common_placement([free, free], "f") == (default, False)
    assert common_placement([free, here], "f") == (default, True)
    assert common_placement([free, there], "f") == (there.placement, True)
    with pytest.raises(
        ArgumentError,
        match=r"add: arguments are committed.*f32\[4,2\] to .*cpu:5.*device_put",
    ):
        common_placement([here, there], "add")


def test_types_know_whether_a_length_is_symbolic() -> None:
    (size,) = fxflow.export.symbolic_shape("b")
    assert Aval((size, 2), F32).is_symbolic
    assert not Aval((2, 2), F32).is_symbolic
    assert AbstractRef(Aval((size,), F32)).is_symbolic
