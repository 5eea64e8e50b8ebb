"""Functions of float32 in compiled kernels: against NumPy's float64, and its zeros,
infinities and NaN."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.lax.kernels.llvm_functions import FUNCTIONS, helpers
from fxflow.lax.kernels.native import why_not
from tests.lax.kernels.samples import params_of

pytest.importorskip("llvmlite")

#: Name → the function in NumPy.
REFERENCES: dict[str, Any] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt,
    "cos": np.cos, "cosh": np.cosh, "exp2": np.exp2, "expm1": np.expm1,
    "log1p": np.log1p, "pow": np.power, "sin": np.sin, "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0,
           -3.0, 2.5, -2.5, 1e-30, -1e-30, 3e38, -3e38, 16777216.0, 16777217.5,
           1 + 2**-23, 1 - 2**-24, 89.0, -89.0, 129.0, -152.0]  # fmt: skip


def numbers(count: int) -> Any:
    """Numbers of all exponents and signs, and as many from -4 to 4."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, count, np.uint64).astype(np.uint32)
    wide = bits.view(np.float32)
    # XLA's threads take denormal numbers for zeros.
    wide = np.where((np.abs(wide) < 2e-38) | np.isnan(wide), 1, wide)
    return np.concatenate([wide, rng.uniform(-4, 4, count).astype(np.float32)])


def computed(name: str, *args: Any) -> Any:
    """The results of a function in a compiled kernel."""
    function = getattr(lax, name)

    def body(*refs: Any) -> None:
        refs[-1][...] = function(*(x[...] for x in refs[:-1]))

    arrays = [fnp.asarray(x) for x in args]
    f = kernels.call(body, arrays[0], name=name)
    assert why_not(params_of(f, *arrays), [x.aval for x in arrays]) == ""
    return np.asarray(f(*arrays))


def operands(name: str, numbers: Any) -> list[Any]:
    """One operand, or two in all pairs if there are few numbers."""
    if name not in ("atan2", "pow"):
        return [numbers]
    if len(numbers) > 100:
        rng = np.random.default_rng(1)
        # Powers in the range of float32, those near 1, and negative ones.
        near = 1 + rng.uniform(-0.01, 0.01, 1000)
        x = np.concatenate([numbers, near, -np.arange(1, 1001) / 100])
        y = np.concatenate(
            [rng.permutation(numbers), rng.uniform(-5e3, 5e3, 1000), np.arange(1000)]
        )
        return [x.astype(np.float32), y.astype(np.float32)]
    return [x.ravel() for x in np.meshgrid(numbers, numbers)]


@pytest.mark.parametrize("name", REFERENCES)
def test_functions_are_within_one_unit(name: str) -> None:
    args = operands(name, numbers(20_000))
    found = computed(name, *args)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](*(x.astype(np.float64) for x in args))
        rounded = exact.astype(np.float32)
    # Results below the least normal number may be zeros.
    usual = np.isfinite(rounded) & (np.abs(rounded) > 2e-38)
    assert usual.mean() > 0.3
    error = np.abs(found[usual].astype(np.float64) - exact[usual])
    assert (error / np.spacing(np.abs(rounded[usual]))).max() < 0.6
    others = ~np.isfinite(rounded)
    np.testing.assert_array_equal(found[others], rounded[others])


@pytest.mark.parametrize("name", REFERENCES)
def test_special_values_are_numpys(name: str) -> None:
    args = operands(name, np.array(SPECIAL, np.float32))
    found = computed(name, *args)
    with np.errstate(all="ignore"):
        exact = REFERENCES[name](*(x.astype(np.float64) for x in args))
        expected = exact.astype(np.float32)
    expected = np.where(np.abs(expected) < 2e-38, np.copysign(0, expected), expected)
    np.testing.assert_allclose(found, expected, 1.2e-7, 0, err_msg=str(args))
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


@pytest.mark.parametrize("name", ["atan", "asinh", "expm1", "log1p", "sin", "tan"])
def test_denormal_arguments_are_their_own_results(name: str) -> None:
    x = np.array([1e-39, -1e-40], np.float32)
    np.testing.assert_array_equal(computed(name, x), x)


def test_loops_around_functions_are_vectorized() -> None:
    from llvmlite import binding as llvm

    from fxflow.devices.native import _compiler, optimize

    compiler = _compiler()
    assert compiler is not None
    names = [f"fx_{name}" for name in FUNCTIONS]
    scalars = []
    for name in names:
        given = "%a, float %b" if name in ("fx_atan2", "fx_pow") else "%a"
        text = f"""{helpers([name])}
define void @many(ptr noalias %x, ptr noalias %y) {{
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%n, %head]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %a = load float, ptr %p
  %b = load float, ptr %q
  %c = call float @{name}(float {given})
  store float %c, ptr %q
  %n = add nuw nsw i64 %i, 1
  %end = icmp eq i64 %n, 1024
  br i1 %end, label %out, label %head
out:
  ret void
}}
"""
        module = llvm.parse_assembly(text)
        optimize(module, compiler.machine)
        if " x float>, ptr" not in str(module):
            scalars.append(name)
    assert scalars == []


def test_helpers_bring_what_they_call() -> None:
    text = helpers(["fx_tanh", "pow"])
    assert "define internal float @fx_exp(float %x0) alwaysinline" in text
    assert "declare float @llvm.fma.f32(float, float, float)" in text
    assert "declare double @pow(double, double)" in text
