"""Each known fault of XLA occurs without its workaround, and not with it."""

import functools
import importlib.metadata
import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fxflow.devices import compile as compiling
from fxflow.devices import faults
from fxflow.devices.buffers import Placement
from tests.devices import programs

ROOT = Path(__file__).parent.parent.parent

#: What a program is compiled with by default, of what YNNPACK can do.
DEFAULT = {"xla_cpu_experimental_ynn_fusion_type": (
    "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION,"
    "LIBRARY_FUSION_TYPE_REDUCE"
)}  # fmt: skip

#: For each fault a program that defines `right`. Faults that options cure compile with
#: `options`; others call `xla(text, *arguments)`, which compiles StableHLO as it is, if
#: `cured` is False.
PROGRAMS = {
    "sums": """
        matrix, x = np.eye(3, dtype="f4"), np.zeros((40000, 3), "f4")
        x[:, 0] = np.arange(40000)
        out = jit(lambda x: fnp.sum((matrix @ x.T) ** 2, 0))(x)
        right = np.array_equal(out, x[:, 0] ** 2)
    """,
    "sums of many axes": """
        few, many = np.ones((10, 4, 6), "f4"), np.ones((10, 4, 6, 9, 9, 9, 9, 9), "f4")
        out = jit(lambda a, b: fnp.sum(a[(..., *[None] * 5)] * b, axis=2))(few, many)
        right = bool(fnp.all(out == 6))
    """,
    "extrema beside NaN": """
        x = np.zeros((70, 70), "f4")
        x[1, 1] = np.nan
        if cured:
            extrema = lambda x: (x.max(0)[1], x.min(1)[1], x.max(), x.min())
            right = all(map(np.isnan, jit(extrema)(x)))
            right &= jit(lambda x: fnp.argmax(x.reshape(-1)))(x) == 71
        else:
            out = xla('''
                %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
                %0 = stablehlo.reduce(%a init: %1) applies stablehlo.maximum
                  across dimensions = [0] : (tensor<70x70xf32>, tensor<f32>)
                  -> tensor<70xf32>
                ''', (70,), "f4", x)
            right = np.isnan(out[1])
        right = bool(right)
    """,
    "cropped and padded convolutions": """
        image = np.arange(720, dtype="f4").reshape(1, 15, 6, 8)
        kernel = np.eye(8, dtype="f4").reshape(1, 1, 8, 8)
        if cured:
            pads, names = ((0, 0), (-5, 1)), ("NHWC", "HWIO", "NHWC")
            out = jit(lambda x, k: lax.conv_general_dilated(
                x, k, (1, 1), pads, dimension_numbers=names
            ))(image, kernel)
        else:
            out = xla('''
                %0 = stablehlo.convolution(%a, %b)
                  dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
                  window = {pad = [[0, 0], [-5, 1]]}
                  {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
                  : (tensor<1x15x6x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x15x2x8xf32>
                ''', (1, 15, 2, 8), "f4", image, kernel)
        want = np.concatenate([image[:, :, 5:], np.zeros((1, 15, 1, 8))], 2)
        right = np.array_equal(out, want)
    """,
    "squares of integers": """
        x = np.arange(-128, 128).astype("i1")
        if cured:
            out = jit(lambda x: (x * x < 0, abs(x * x), abs(x) // 2, x**4 % 4))(x)
            y = x * x
            want = y < 0, abs(y), abs(x) // 2, y * y % 4
            right = all(map(np.array_equal, out, want))
        else:
            out = xla('''
                %1 = stablehlo.multiply %a, %a : tensor<256xi8>
                %0 = stablehlo.abs %1 : tensor<256xi8>
                ''', (256,), "i1", x)
            right = np.array_equal(out, abs(x * x))
    """,
    "squares that are NaN": """
        x = np.array([np.nan, 2, -1], "f4")
        if cured:
            out = jit(lambda x: (x * x >= 0, 0 <= abs(x), fnp.maximum(x, 0) >= 0))(x)
        else:
            out = [xla('''
                %1 = stablehlo.multiply %a, %a : tensor<3xf32>
                %2 = stablehlo.constant dense<0.0> : tensor<3xf32>
                %0 = stablehlo.compare GE, %1, %2, FLOAT
                  : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
                ''', (3,), "bool", x)]
        right = all(np.array_equal(v, [False, True, True]) for v in out)
    """,
    "sums with constants": """
        x = np.array([0.3, 7.7, -2.6], "f4")
        if cured:
            out = jit(lambda x: x + 12582912.0 - 12582912.0)(x)
            right = np.array_equal(jit(lambda x: x * 1e30 * 1e30)(x * 0), x * 0)
        else:
            out, right = xla('''
                %1 = stablehlo.constant dense<12582912.0> : tensor<3xf32>
                %2 = stablehlo.add %a, %1 : tensor<3xf32>
                %3 = stablehlo.constant dense<12582912.0> : tensor<3xf32>
                %0 = stablehlo.subtract %2, %3 : tensor<3xf32>
                ''', (3,), "f4", x), True
        right = right and np.array_equal(out, np.round(x))
    """,
    "inverses": """
        x = np.array([-2, 100, 300], "f4")
        if cured:
            out = jit(lambda x: fnp.log(x**0.5))(x)
            large = jit(lambda x: (fnp.log(fnp.exp(x)), fnp.log2(fnp.exp2(x))))(x[2:])
            right = all(np.isinf(v[0]) for v in large)
            right &= np.isinf(jit(lambda x: fnp.sqrt(x * x))(x * 1e36)).all()
            right &= np.isnan(jit(lambda x: fnp.exp(x) / fnp.exp(x))(x)[1:]).all()
        else:
            out, right = xla('''
                %1 = stablehlo.constant dense<0.5> : tensor<3xf32>
                %2 = stablehlo.power %a, %1 : tensor<3xf32>
                %0 = stablehlo.log %2 : tensor<3xf32>
                ''', (3,), "f4", x), True
        right = bool(right) and np.isnan(out[0]) and np.isfinite(out[1])
    """,
    "zero by itself": """
        x = np.arange(4).astype("i1")
        if cured:
            out = jit(lambda x: lax.div(y := x.astype("u1").astype("i1"), y))(x)
        else:
            out = xla('''
                %1 = stablehlo.convert %a : (tensor<4xi8>) -> tensor<4xui8>
                %2 = stablehlo.convert %1 : (tensor<4xui8>) -> tensor<4xi8>
                %0 = stablehlo.divide %2, %2 : tensor<4xi8>
                ''', (4,), "i1", x)
        right = np.array_equal(out, [-1, 1, 1, 1])
    """,
    "slices of slices": """
        x, inner, outer = np.arange(9, dtype="f4"), np.array(1), np.array(12)
        inner, outer = inner.astype("i4"), outer.astype("i4")
        if cured:
            def twice(x, i, o):
                return lax.dynamic_slice(lax.dynamic_slice(x, [i], [6]), [o], [4])
            out = jit(twice)(x, inner, outer)
        else:
            out = xla('''
                %1 = stablehlo.dynamic_slice %a, %b, sizes = [6]
                  : (tensor<9xf32>, tensor<i32>) -> tensor<6xf32>
                %0 = stablehlo.dynamic_slice %1, %c, sizes = [4]
                  : (tensor<6xf32>, tensor<i32>) -> tensor<4xf32>
                ''', (4,), "f4", x, inner, outer)
        right = np.array_equal(out, x[3:7])
    """,
    "shifted updates": """
        x = np.arange(128, dtype="i4").reshape(8, 16)
        want = x + 1
        want[1:] = x[:-1] + 1
        if cured:
            def shifted(x):
                x = x + 1
                return x.at[1:].set(x[:-1]).reshape((1, 8, 16))
            out = jit(shifted)(x)
        else:
            out = xla('''
                %1 = stablehlo.constant dense<1> : tensor<8x16xi32>
                %2 = stablehlo.add %a, %1 : tensor<8x16xi32>
                %3 = stablehlo.slice %2 [0:7, 0:16]
                  : (tensor<8x16xi32>) -> tensor<7x16xi32>
                %4 = stablehlo.constant dense<1> : tensor<i32>
                %5 = stablehlo.constant dense<0> : tensor<i32>
                %6 = stablehlo.dynamic_update_slice %2, %3, %4, %5
                  : (tensor<8x16xi32>, tensor<7x16xi32>, tensor<i32>, tensor<i32>)
                  -> tensor<8x16xi32>
                %0 = stablehlo.reshape %6 : (tensor<8x16xi32>) -> tensor<1x8x16xi32>
                ''', (1, 8, 16), "i4", x)
        right = np.array_equal(out[0], want)
    """,
    "exponentials of NaN": '''
        x, below = np.zeros(64, "f4"), np.array(-1, "f4")
        if cured:
            outs = [
                jit(lambda x, s: f(fnp.where(s > 0, x, fnp.nan)))(x.astype(t), below)
                for f in (
                    fnp.exp, fnp.expm1, fnp.sinh, fnp.cosh, lax.logistic, lax.erfc
                )
                for t in ("f4", "f2", fnp.bfloat16)
            ]
            # LLVM specializes the function for the call with NaN.
            inner = jit(fnp.exp)
            def twice(x, s):
                return inner(x), inner(fnp.where(s > 0, x, fnp.nan))
            outs.append(jit(twice)(x, below)[1])
        else:
            text = """
                %1 = stablehlo.constant dense<0.0> : tensor<f32>
                %2 = stablehlo.compare GT, %b, %1, FLOAT
                  : (tensor<f32>, tensor<f32>) -> tensor<i1>
                %3 = stablehlo.constant dense<0x7FC00000> : tensor<64xf32>
                %4 = stablehlo.select %2, %a, %3 : tensor<i1>, tensor<64xf32>
                %0 = stablehlo.exponential %4 : tensor<64xf32>
                """
            # The arbitrary value in its place may be NaN by chance.
            outs = [xla(text, (64,), "f4", x, below) for _ in range(20)]
        right = all(np.isnan(np.asarray(v, "f4")).all() for v in outs)
    ''',
}

PRELUDE = """
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow import lax
from fxflow.devices import buffers, compile as compiling

fxflow.config.cache = False

def jit(function):
    return fxflow.jit(function, compiler_options=options)

def xla(body, shape, dtype, *arguments):
    def tensor(shape, dtype):
        name = np.dtype(dtype).name.replace("uint", "ui").replace("int", "i")
        name = {"bool": "i1"}.get(name, name.replace("float", "f"))
        return f"tensor<{''.join(f'{n}x' for n in shape)}{name}>"

    names = ", ".join(
        f"%{n}: {tensor(x.shape, x.dtype)}"
        for n, x in zip("abcdef", arguments)
    )
    result = tensor(shape, dtype)
    text = (
        f"func.func @main({names}) -> {result} {{\\n{body}\\nreturn %0 : {result}\\n}}"
    )
    place = buffers.default_placement()
    handler = buffers.result_handler(
        buffers.BufferType(shape, np.dtype(dtype)), place, False
    )
    given = [
        buffers.put_copy(buffers.BufferType(x.shape, x.dtype), x, place)
        for x in arguments
    ]
    (out,) = compiling.compile(text, place, options=options).execute(given, [handler])
    return buffers.to_host(out)
"""


def prelude(options: object, cured: bool) -> str:
    return f"options, cured = {options!r}, {cured!r}\n{PRELUDE}"


CRASHES = "sums of many axes"


@functools.cache
def right_without_cure() -> dict[str, bool]:
    """Returns which programs have the right values without workarounds."""
    code = prelude(DEFAULT, False)
    for name in sorted(PROGRAMS, key=lambda name: name == CRASHES):
        program = textwrap.dedent(PROGRAMS[name])
        code += f"{program}\nprint({name!r}, bool(right), sep='=', flush=True)\n"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        out = done.stdout
        assert done.returncode <= 0, done.stderr
    except subprocess.TimeoutExpired as error:
        # Some processors crash, others never finish.
        out = (error.stdout or b"").decode()
    found = {CRASHES: False}
    for line in out.splitlines():
        name, _, right = line.partition("=")
        found[name] = right == "True"
    return found


def test_each_fault_has_a_program():
    slow = {f.name for f in faults.FAULTS if not f.always}
    assert PROGRAMS.keys() == {f.name for f in faults.FAULTS} - slow
    for fault in faults.FAULTS:
        assert bool(fault.options) != bool(fault.lowered), fault.name
        assert not fault.lowered or (ROOT / fault.lowered).exists()


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_right(name: str):
    code = prelude(None, True) + textwrap.dedent(PROGRAMS[name])
    found: dict[str, object] = {}
    exec(code.replace("fxflow.config.cache = False", ""), found)
    assert found["right"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="seen on x86-64 alone")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fault_is_present_in_the_versions_of_the_table(name: str):
    if name == "exponentials of NaN" and faults.version() >= (0, 11):
        pytest.skip("the values are what a register holds, which may be NaN")
    assert right_without_cure()[name] == (faults.present(name, "cpu") is None)


def test_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    cured = f"{faults.PRODUCTS},{faults.CONVOLUTIONS}"
    for version, options in (
        ("0.10.2", {faults.FUSIONS: cured}),
        ("0.11.0", {faults.FUSIONS: cured}),
        ("0.11.0.dev20260601", {faults.FUSIONS: cured}),
        ("0.11.1", {}),
        ("0.12.0rc1", {}),
    ):
        monkeypatch.setattr(faults, "jaxlib_version", version)
        assert faults.options("cpu") == options
        assert faults.options("gpu") == faults.options("tpu") == {}
    assert faults.present("cropped and padded convolutions", "cpu")
    assert not faults.present("cropped and padded convolutions", "gpu")


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict]:
    """Returns a compiler's options for a jaxlib that has the faults."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(faults, "jaxlib_version", "0.10.2")
    build = compiling.build_options
    seen: list[dict] = []

    def watched(devices, options=None, **more):  # type: ignore[no-untyped-def]
        seen.append(dict(options or {}))
        return build(devices, options, **more)

    monkeypatch.setattr(compiling, "build_options", watched)

    def options(place: Placement, given: dict | None = None) -> dict:
        compiling.compile(programs.ADD, place, options=given)
        return seen.pop()

    return options


def test_every_program_gets_the_options(
    old: Callable[..., dict], place: Placement
) -> None:
    assert old(place) == faults.options("cpu") != {}
    other = {"xla_cpu_enable_fast_math": False}
    assert old(place, other) == {**faults.options("cpu"), **other}


def test_xla_flags_of_users_take_precedence(
    old: Callable[..., dict], place: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {faults.FUSIONS: "LIBRARY_FUSION_TYPE_REDUCE"}
    assert old(place, mine) == mine
    monkeypatch.setenv("XLA_FLAGS", f"--{faults.FUSIONS}=reduce")
    assert old(place) == {}


def test_options_against_faults_are_part_of_cache_keys(
    old: Callable[..., dict], place: Placement, cache_dir: Path
) -> None:
    uncured = {faults.FUSIONS: ""}
    first = compiling.compile(programs.ADD, place)
    other = compiling.compile(programs.ADD, place, options=uncured)
    again = compiling.compile(programs.ADD, place)
    cached = [p.from_cache for p in (first, other, again)]
    assert cached == [False, False, True]


def test_the_installed_version() -> None:
    numbers = re.findall(r"\d+", importlib.metadata.version("jaxlib"))[:3]
    assert faults.version() == tuple(map(int, numbers))
    assert np.all(np.array(faults.version()) >= 0)
