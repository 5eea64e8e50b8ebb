"""C libraries give XLA's results: built, linked and run, also for ARM64."""

import importlib.util
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, lax
from fxflow.core import tree
from fxflow.export.c_libraries import CLibrary
from tests.export.models import NETS, Net

needs_iree = pytest.mark.skipif(
    importlib.util.find_spec("iree") is None, reason="pip install fxflow[iree]"
)
#: What runs programs for ARM64 here: Debian has it by two names.
QEMU = next(
    filter(shutil.which, ("qemu-aarch64", "qemu-aarch64-static")), "qemu-aarch64"
)
#: Target -> a compiler for it, and what runs its programs here.
MACHINES = {
    "x86-64": ("gcc", []),
    "arm64-linux": ("aarch64-linux-gnu-gcc", [QEMU, "-L", "/usr/aarch64-linux-gnu"]),
}


def build(made: CLibrary, compiler: str, sizes: tuple[list[int], list[int]]) -> Path:
    """Builds a program that reads arguments, calls the function, writes results."""
    name = made.header.stem
    arrays, reads, writes, given = [], [], [], []
    for i, size in enumerate(sizes[0]):
        arrays.append(f"static char in{i}[{size}];")
        reads.append(f"if (fread(in{i}, 1, {size}, stdin) != {size}) return 100;")
        given.append(f"(const void *)in{i}")
    for i, size in enumerate(sizes[1]):
        arrays.append(f"static char out{i}[{size}];")
        writes.append(f"if (fwrite(out{i}, 1, {size}, stdout) != {size}) return 101;")
        given.append(f"(void *)out{i}")
    main = f"""\
#include <stdio.h>
#include "{name}.h"
{" ".join(arrays)}
static char workspace[{name.upper()}_WORKSPACE];
int main(void) {{
  {chr(10).join(reads)}
  const int failed = {name}({", ".join([*given, "workspace"])});
  if (failed) return 1;
  {chr(10).join(writes)}
  return 0;
}}
"""
    folder = made.header.parent
    (folder / "main.c").write_text(main)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror"]
    files = ["main.c", made.source.name, made.object.name, "-lm", "-o", "program"]
    subprocess.run([compiler, *flags, *files], cwd=folder, check=True, timeout=120)
    return folder / "program"


def check(net: Net, folder: Path, target: str, quantize: Any, atol: float) -> CLibrary:
    apply, params, inputs = net
    compiler, runner = MACHINES[target]
    for tool in (compiler, *runner[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    lowered = fxflow.jit(lambda *xs: apply(params, *xs)).lower(*inputs)
    made = export.c_library(
        lowered, folder / "made", name="net", target=target, quantize=quantize
    )
    given = [np.asarray(x) for x in tree.leaves(inputs)]
    want = [np.asarray(x) for x in tree.leaves(apply(params, *inputs))]
    sizes = [x.nbytes for x in given], [x.nbytes for x in want]
    program = build(made, compiler, sizes)
    ran = subprocess.run(
        [*runner, str(program)],
        input=b"".join(x.tobytes() for x in given),
        capture_output=True,
        check=True,
        timeout=120,
    )
    at = 0
    for x in want:
        got = np.frombuffer(ran.stdout, x.dtype, x.size, at).reshape(x.shape)
        np.testing.assert_allclose(got, x, rtol=1e-5, atol=atol)
        at += x.nbytes
    assert at == len(ran.stdout)
    return made


@needs_iree
@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("name", NETS)
def test_programs_give_xlas_answers(name: str, target: str, tmp_path: Path) -> None:
    if target == "x86-64" and not _is_x86():
        pytest.skip("another machine")
    made = check(NETS[name](), tmp_path, target, None, 1e-5)
    assert "NET_WORKSPACE" in made.header.read_text()


def _is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


@needs_iree
@pytest.mark.skipif(not _is_x86(), reason="another machine")
def test_quantized_weights_are_smaller(tmp_path: Path) -> None:
    whole = check(NETS["mnist"](), tmp_path / "a", "x86-64", None, 1e-5)
    small = check(NETS["mnist"](), tmp_path / "b", "x86-64", "int8", 0.1)
    sizes = [(made.header.parent / "program").stat().st_size for made in (whole, small)]
    assert sizes[1] < 0.4 * sizes[0]


@needs_iree
def test_bools_float16_and_passed_inputs(tmp_path: Path) -> None:
    def apply(_: None, x: Any, flags: Any, half: Any) -> Any:
        return {"x": x, "sum": fnp.where(flags, x + 1, 7), "half": half * 2}

    inputs = fnp.arange(-2, 2), fnp.array([True, False] * 2), fnp.ones(3, fnp.float16)
    target = "x86-64" if _is_x86() else "arm64-linux"
    made = check(Net(apply, None, inputs), tmp_path, target, None, 0)
    header = made.header.read_text()
    assert "const int32_t *xs_0, const uint8_t *xs_1, const uint16_t *xs_2" in header


@needs_iree
def test_loops_are_refused(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c.sum() < 100, lambda c: c @ c, x)

    with pytest.raises(errors.CompileError, match="move the loop out"):
        export.c_library(fxflow.jit(f).lower(2 * fnp.eye(3)), tmp_path)


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    lowered = fxflow.jit(fnp.sin).lower(fnp.ones(3))
    with pytest.raises(errors.ArgumentError, match="not a C identifier"):
        export.c_library(lowered, tmp_path, name="my-net")
    with pytest.raises(errors.ArgumentError, match="use iree for 'vulkan'"):
        export.c_library(lowered, tmp_path, target="vulkan")
    with pytest.raises(errors.ArgumentError, match="c_library: unknown target"):
        export.c_library(lowered, tmp_path, target="toaster")
