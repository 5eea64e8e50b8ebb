"""FlatBuffers: valid ones are read back, and damaged ones are refused."""

import random
import struct

import pytest

from fxflow.errors import ExportError
from fxflow.export import flat
from fxflow.export.flat import Number, Numbers

FIELDS = {
    0: Number("uint16", 40_000),
    1: "naïve",
    2: {0: Number("int8", -3), 1: Number("uint32", 2**32 - 1)},
    4: ["a", "", "bc"],
    5: [{0: "x"}, {}, {0: "y"}],
    7: Numbers("uint16", [1, 2, 65_535]),
    8: b"\0\1\2",
    9: None,
}


def test_round_trip():
    data = flat.write(FIELDS, b"TEST")
    assert data[4:8] == b"TEST"
    root = flat.Buffer(data).root
    assert root.number(0, "uint16") == 40_000
    assert root.string(1) == "naïve"
    inner = root.table(2)
    assert (inner.number(0, "int8"), inner.number(1, "uint32")) == (-3, 2**32 - 1)
    assert root.strings(4) == ("a", "", "bc")
    assert [t.string(0) for t in root.tables(5)] == ["x", "", "y"]
    assert root.numbers(7, "uint16") == (1, 2, 65_535)
    assert root.bytes(8) == b"\0\1\2"


def test_absent_fields():
    root = flat.Buffer(flat.write(FIELDS, b"TEST")).root
    for slot in (3, 9, 1000):
        assert not root.has(slot)
        assert root.number(slot, "int8", 7) == 7
        assert root.table(slot) is None
        assert root.bytes(slot) == b"" and root.string(slot) == ""
        assert root.strings(slot) == root.numbers(slot, "int8") == ()
        assert root.tables(slot) == []


def read_all(table, depth=0):
    """Reads all fields of a table as every type."""
    for slot in range(10):
        for kind in ("int8", "uint16", "uint32"):
            table.number(slot, kind)
        for read in (table.bytes, table.string, table.strings):
            read(slot)
        table.numbers(slot, "uint16")
        if depth < 2:
            for inner in (table.table(slot), *table.tables(slot)):
                if inner is not None:
                    read_all(inner, depth + 1)


def test_mutations_end_in_an_error_or_in_values():
    rng = random.Random(7)
    whole = flat.write(FIELDS, b"TEST")
    failed = 0
    for _ in range(300):
        data = bytearray(whole[: rng.randrange(len(whole) + 1)])
        for _ in range(rng.randrange(4)):
            if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            read_all(flat.Buffer(bytes(data)).root)
        except ExportError:
            failed += 1
    assert failed > 200


def test_a_table_that_is_referred_to_twice_is_refused():
    # Forty tables, each of which lists the next one twice: 2^40 paths.
    table = struct.pack("<HHH", 6, 8, 4) + bytes(2) + struct.pack("<iI", 8, 4)
    data = bytearray(struct.pack("<I", 12) + b"TEST")
    for i in range(40):
        last = i == 39
        node = table + struct.pack("<III", 0 if last else 2, 8 + 8, 4 + 8)
        data += node
    with pytest.raises(ExportError, match="twice"):
        descend(flat.Buffer(bytes(data)).root)


def descend(table):
    for inner in table.tables(0):
        descend(inner)
