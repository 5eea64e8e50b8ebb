"""The kernel's text: the tiles of processors, and LLVM's machine code."""

import re
from pathlib import Path

import pytest

from fxflow.devices import contractions
from fxflow.devices.ffi import include_dir
from fxflow.devices.pool import frame


def test_processors_without_a_kernel():
    assert contractions.tile_for({"sse2": True}, "x86_64-unknown-linux-gnu") is None
    assert contractions.tile_for({}, "riscv64-unknown-linux-gnu") is None


@pytest.mark.parametrize(
    ("triple", "cpu", "features"),
    [
        ("x86_64-unknown-linux-gnu", "znver4", {"avx512f": True}),
        ("x86_64-unknown-linux-gnu", "haswell", {"avx2": True, "fma": True}),
        ("aarch64-unknown-linux-gnu", "cortex-a72", {}),
        ("arm64-apple-darwin23", "apple-m1", {}),
    ],
)
def test_machine_code_for_other_processors(triple, cpu, features):
    llvm = pytest.importorskip("llvmlite.binding")
    tile = contractions.tile_for(features, triple)
    assert tile is not None
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)
    module = llvm.parse_assembly(contractions.ir(tile))
    module.verify()
    text = machine.emit_assembly(module)
    # The sums stay in registers: a tile's loop does not touch the stack.
    name = f"wide{tile.rows}"
    start = text.index(f"{name}:")
    body = text[start : text.index("ret", start)]
    loop = body[: body.rindex("vfmadd" if "x86" in triple else "fmla")]
    loop = loop[loop.rindex("BB") :]
    assert "(%rsp)" not in loop
    assert "[sp" not in loop


def test_offsets_are_those_of_the_header():
    header = Path(include_dir(), "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    api = header[header.index("struct XLA_FFI_Api {") :].partition("};")[0]
    functions = re.findall(r"FIELD\(XLA_FFI_(\w+)\)", api)
    text = contractions.ir(contractions.Tile(6, 8, 2))
    used = re.findall(r"getelementptr i8, ptr %api, i64 (\d+)", text)
    # After size, extensions, version (24 bytes) and XLA's own functions.
    places = {48 + 8 * i: name for i, name in enumerate(functions)}
    places[32] = "version"
    assert [places[int(offset)] for offset in used] == [
        "Error_Destroy",
        "ThreadPool_NumThreads",
        "version",
        "ThreadPool_Schedule",
    ]
    assert "XLA_FFI_API_MAJOR 0" in header
    used = re.findall(r"getelementptr i8, ptr %api, i64 (\d+)", frame("k", 2, 3, 2, 64))
    assert {places[int(offset)] for offset in used} == {
        "Error_Create",
        "Error_Destroy",
        "ThreadPool_NumThreads",
        "ThreadPool_Schedule",
        "version",
    }


def test_the_config_lists_the_contractions_fields():
    tile = contractions.Tile(8, 16, 2)
    contraction = contractions.Contraction(
        (contractions.LoopAxis(100, 64),),
        (contractions.LoopAxis(64, 1, 32),),
        40,
        panel=2048,
    )
    text = contraction.config(tile)
    numbers = [int(n) for n in text.partition(": ")[2].rstrip(">}").split(",")]
    told = dict(zip(contractions._FIELDS, numbers, strict=True))
    assert told["panels"] == 2 and told["rows"] == 100 and told["columns"] == 40
    assert told["blocks"] * told["block"] >= 100 > (told["blocks"] - 1) * told["block"]
    assert told["tasks"] == told["panels"] * told["blocks"]
    assert (told["m2"], told["m3"], told["ma3"]) == (1, 100, 64)
    assert (told["k1"], told["k2"], told["ka2"], told["kb2"]) == (1, 64, 1, 32)
    assert told["threads"] <= 1  # too little work for a second one
