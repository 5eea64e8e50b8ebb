"""Artifacts as records: written, read and refused."""

import contextlib
import random

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from fxflow.core.arrays import Aval, dtypes
from fxflow.errors import ExportError
from fxflow.export import flat, records
from tests.export.artifacts import GOLDEN, golden


@pytest.fixture(scope="module")
def exported():
    mesh = fxflow.make_mesh((2,), ("i",))
    where = fxflow.NamedSharding(mesh, fxflow.P(None, "i"))
    jitted = fxflow.jit(lambda x: {"y": x + 1}, in_shardings=where)
    check = export.DisabledSafetyCheck.custom_call("k")
    return export.export(jitted, disabled_checks=[check])(fnp.ones((3, 2)))


def same(a, b):
    mine, other = vars(a), vars(b)
    return all(
        mine[k] == other[k] for k in mine if k not in ("_get_vjp", "_vjp", "_function")
    )


def test_round_trip(exported):
    listed = [exported, exported.vjp()]
    found = records.decode(records.encode(listed))
    assert len(found) == 2
    assert all(same(b, a) for a, b in zip(listed, found, strict=True))
    assert found[0].nr_devices == 2
    assert found[0].in_layouts[0].spec == fxflow.P(None, "i")


def test_every_dtype_has_a_number():
    without = {"int2", "uint2"}
    for dtype in (*dtypes.ALL, *dtypes.KEYS, dtypes.float0):
        aval = Aval((2,), dtype)
        if dtype.name in without:
            with pytest.raises(ExportError, match="do not support"):
                records._aval_table(aval)
            continue
        table = flat.Buffer(flat.write({2: records._aval_table(aval)}, b"TEST")).root
        assert records._aval(table.table(2)) is aval


@pytest.mark.parametrize("name", sorted(p.stem for p in GOLDEN.glob("*.jax")))
def test_artifacts_of_jax_are_read_and_written_again(name):
    found = records.decode(golden(name))
    again = records.decode(records.encode(found))
    assert all(same(a, b) for a, b in zip(found, again, strict=True))


def test_damage_to_fxflows_artifacts_is_always_found(exported):
    whole = bytes(exported.serialize(vjp_order=1))
    rng = random.Random(3)
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        cut = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        if cut != whole:
            with pytest.raises(ExportError):
                records.decode(cut)


def test_damaged_jax_artifacts_give_an_error_or_a_record():
    whole = golden("waves")
    rng = random.Random(4)
    for _ in range(200):
        data = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(ExportError):
            records.decode(bytes(data))


def changed(exported, **fields):
    table = records._to_table(exported, None)
    table.update({int(k[1:]): v for k, v in fields.items()})
    return flat.write(table, b"\0\0\0\0")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"_0": flat.Number("uint16", 1)}, "serialization version 1"),
        ({"_0": flat.Number("uint16", 99)}, "serialization version 99"),
        ({"_14": flat.Number("uint16", 8)}, "calling convention is version 8"),
        ({"_14": flat.Number("uint16", 11)}, "calling convention is version 11"),
        ({"_2": None}, "structure is missing"),
        ({"_22": flat.Numbers("uint32", [7])}, "no type 7"),
        ({"_24": flat.Numbers("uint32", [7])}, "no layout 7"),
        ({"_24": flat.Numbers("uint32", [])}, "not every type has a layout"),
        ({"_15": flat.Numbers("uint16", [1])}, "kept arguments are invalid"),
        ({"_9": []}, "names no platform"),
        ({"_12": [{0: flat.Number("int8", 5)}]}, "unknown check, 5"),
        ({"_20": [{}]}, "layout is empty|not over|do not match|has no"),
        ({"_19": [{2: flat.Number("int8", 77)}]}, "unknown element type, 77"),
        ({"_19": [{0: flat.Number("int8", 1)}]}, "tokens"),
    ],
)
def test_malformed_records_are_refused(exported, fields, message):
    with pytest.raises(ExportError, match=message):
        records.decode(changed(exported, **fields))


def test_older_artifacts(exported):
    """Before April 2026 the format had no tables of repeated types and layouts."""
    fields = dict.fromkeys((f"_{i}" for i in range(19, 26)), None)
    (found,) = records.decode(changed(exported, **fields))
    assert same(found, exported)
    # Even older: 16 bits for the number of devices, and XLA's shardings.
    fields |= {"_18": None, "_6": flat.Number("int16", 2)}
    assert records.decode(changed(exported, **fields))[0].nr_devices == 2
    fields["_7"] = [{0: flat.Number("int8", 1), 1: b"proto"}]
    with pytest.raises(ExportError, match="older than January 2026"):
        records.decode(changed(exported, **fields))


def test_layouts_need_a_mesh_with_the_same_axes(exported):
    (layout,) = exported.in_layouts
    with pytest.raises(ExportError, match="exported for a mesh"):
        layout.on(fxflow.make_mesh((2,), ("j",)))
