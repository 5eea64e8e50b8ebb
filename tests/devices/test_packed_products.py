"""The kernel's text: which tile fits which processor, and what LLVM makes of it."""

import pytest

from fxflow.devices import packed_products


def test_processors_without_a_kernel():
    assert packed_products.tile_for({"sse2": True}, "x86_64-unknown-linux-gnu") is None
    assert packed_products.tile_for({}, "riscv64-unknown-linux-gnu") is None


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
    tile = packed_products.tile_for(features, triple)
    assert tile is not None
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)
    module = llvm.parse_assembly(packed_products.ir(tile))
    module.verify()
    text = machine.emit_assembly(module)
    # The sums stay in registers: a tile's loop does not touch the stack.
    name = f"tile{tile.rows}"
    start = text.index(f"{name}:")
    body = text[start : text.index("ret", start)]
    loop = body[: body.rindex("vfmadd" if "x86" in triple else "fmla")]
    loop = loop[loop.rindex("BB") :]
    assert "(%rsp)" not in loop
    assert "[sp" not in loop
