"""Reductions and products, compiled and by NumPy, in a process that may crash.

Takes cases from standard input, a line each (`draw`), and prints for each the number of
elements that are wrong.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import ml_dtypes
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax

Case = dict[str, Any]

#: Around powers of two, and where XLA's kernels begin to use threads.
LARGE = [16383, 16384, 16385, 20000, 32767, 32768, 32769, 33000, 40000, 65537, 70000]
MIDDLE = [15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1025]
DTYPES = {
    "float32": 0.4,
    "float64": 0.2,
    "bfloat16": 0.1,
    "float16": 0.08,
    "int32": 0.08,
    "int8": 0.04,
    "complex64": 0.06,
    "complex128": 0.04,
}
BEFORE = ("plain", "product", "square", "sum of products", "broadcast", "matrix")
AFTER = ("plain", "scaled", "subtracted")
REDUCTIONS = (
    *("sum",) * 6,
    *("mean", "var", "prod", "max", "min", "argmax", "any", "all", "logsumexp"),
    *("cumsum", "cummax", "einsum", "matmul", "dot_general"),
)
MOST = 300_000


def draw(rng: np.random.Generator) -> Case:
    """Returns a case."""
    kind = rng.random()
    if kind < 0.4:
        sizes = rng.integers(1, 6, rng.integers(1, 4))
        # Many rows as often as all else.
        sizes[rng.choice([0, rng.integers(sizes.size)])] = rng.choice(LARGE)
    elif kind < 0.8:
        sizes = rng.choice([1, 1, 2, 3, 4, 8, 8, 9], rng.choice([5, 6, 7, 7, 8]))
    else:
        sizes = rng.choice([1, 2, 3, 5, 8, 9], rng.integers(1, 5))
        sizes[rng.integers(sizes.size)] = rng.choice(MIDDLE)
    while np.prod(sizes) > MOST:
        i = np.argsort(sizes)[-1 if kind >= 0.4 else max(-2, -sizes.size)]
        sizes[i] = max(1, sizes[i] // 2)
    count = 1 if rng.random() < 0.6 else rng.integers(1, sizes.size + 1)
    return {
        "sizes": sizes.tolist(),
        "axes": sorted(rng.choice(sizes.size, count, replace=False).tolist()),
        "dtype": str(rng.choice([*DTYPES], p=[*DTYPES.values()])),
        "before": str(rng.choice(BEFORE)),
        "reduction": str(rng.choice(REDUCTIONS)),
        "after": str(rng.choice(AFTER)),
        "order": rng.permutation(sizes.size).tolist() if rng.random() < 0.3 else None,
        "repeated": (rng.random(sizes.size) < 0.4).tolist(),
        "seed": int(rng.integers(1 << 30)),
    }


def dtype_of(case: Case) -> np.dtype:
    if case["dtype"] == "bfloat16":
        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(case["dtype"])


def operands(case: Case) -> list[np.ndarray]:
    """Returns arrays of small integers, whose sums are exact."""
    rng, dtype = np.random.default_rng(case["seed"]), dtype_of(case)
    shape = tuple(case["sizes"])
    other = shape
    if case["before"] == "broadcast":
        other = tuple(
            1 if r else n for n, r in zip(shape, case["repeated"], strict=True)
        )
    arrays = []
    for s in (shape, other):
        x = rng.integers(-3, 4, s)
        if case["reduction"] == "prod":
            x = rng.choice([1, 1, 1, -1], s)
        if dtype.kind == "c":
            x = x + 1j * (rng.integers(-3, 4, s) if case["reduction"] != "prod" else 0)
        arrays.append(x.astype(dtype))
    return arrays


def compute(case: Case, np_: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Returns the result, and what it must not differ from by more than digits of."""
    axes, before, reduction = tuple(case["axes"]), case["before"], case["reduction"]
    size = np_ is np
    if reduction in ("einsum", "matmul", "dot_general"):
        return product(case, np_, a, b), product(case, np_, abs(a), abs(b))
    if before in ("product", "broadcast"):
        e = a * b
    elif before == "square":
        e = a * a
    elif before == "sum of products":
        e = a * b + a
    elif before == "matrix" and a.shape[-1] <= 64:
        n = a.shape[-1]
        matrix = np.eye(n, dtype=a.dtype) + np.ones((), a.dtype)
        columns = np_.moveaxis(a, -1, 0)
        e = np_.tensordot(matrix if size else fnp.asarray(matrix), columns, axes=1)
        e = e * e
    else:
        e = a
    real = e.dtype.kind != "c"
    if not real and reduction in ("max", "min", "argmax", "logsumexp", "cummax", "var"):
        e, real = e.real, True
    if case["order"] is not None:
        e = np_.transpose(e, case["order"])
    scale = np_.sum(abs(e), axis=axes)
    if reduction in ("sum", "mean", "prod", "max", "min"):
        out = getattr(np_, reduction)(e, axis=axes)
    elif reduction in ("any", "all"):
        return getattr(np_, reduction)(e > 0 if real else e != 0, axis=axes), scale
    elif reduction == "var":
        out = np_.var(e, axis=axes)
        scale = np_.sum(abs(e) ** 2, axis=axes)
    elif reduction == "argmax":
        return np_.argmax(e, axis=axes[0]), np_.max(abs(e), axis=axes[0])
    elif reduction == "logsumexp":
        e = e if e.dtype.kind == "f" else e.astype(np.float64)
        largest = np_.max(e, axis=axes, keepdims=True)
        out = np_.log(np_.sum(np_.exp(e - largest), axis=axes))
        out = out + np_.max(e, axis=axes)
        scale = scale + 10
    elif reduction == "cumsum":
        return np_.cumsum(e, axis=axes[0]), np_.cumsum(abs(e), axis=axes[0])
    else:
        running = np.maximum.accumulate if size else lax.cummax
        out = running(e, axis=axes[0])
        return out, abs(out)
    if case["after"] == "scaled":
        out = out * 2 + 1
    elif case["after"] == "subtracted" and reduction == "sum":
        out = e - np_.expand_dims(out, axes)
        scale = np_.broadcast_to(np_.expand_dims(scale, axes), e.shape)
    return out, scale


def product(case: Case, np_: Any, a: Any, b: Any) -> Any:
    """Returns a product that sums over axes."""
    axes, letters = case["axes"], range(a.ndim)
    b = np_.broadcast_to(b, a.shape)
    if case["reduction"] == "matmul":
        i = case["axes"][0]
        rows = np_.reshape(np_.moveaxis(a, i, -1), (-1, a.shape[i]))
        few = np_.reshape(np_.moveaxis(b, i, 0), (b.shape[i], -1))[:, :3]
        return np_.matmul(rows, few)
    kept = [i for i in letters if i not in axes]
    if case["reduction"] == "dot_general" and np_ is fnp:
        return lax.dot_general(a, b, ((axes, axes), (kept, kept)))
    return np_.einsum(a, list(letters), b, list(letters), kept)


def wrong(case: Case) -> int:
    """Returns how many elements differ from NumPy's."""
    dtype, arrays = dtype_of(case), operands(case)
    # Integers wrap.
    wide = {"c": np.complex128, "i": dtype}.get(dtype.kind, np.float64)
    want, scale = compute(case, np, *(x.astype(wide) for x in arrays))
    found = fxflow.jit(lambda a, b: compute(case, fnp, a, b)[0])(*arrays)
    got = np.asarray(found)
    if got.shape != want.shape:
        return max(want.size, 1)
    if dtype.kind == "i" and got.dtype.kind == "i":
        if case["reduction"] == "argmax":
            return int(np.sum(got != want))
        return int(np.sum(got != want.astype(got.dtype)))
    if got.dtype == bool or case["reduction"] == "argmax":
        return int(np.sum(got != want))
    digits = float(ml_dtypes.finfo(got.dtype).eps)
    least = float(ml_dtypes.finfo(got.dtype).max)
    tolerance = 32 * digits * (np.abs(scale) + np.abs(want) + 1)
    in_range = np.abs(want) + np.abs(scale) < least
    near = np.abs(got.astype(want.dtype) - want) <= tolerance
    return int(np.sum(in_range & ~near))


def main() -> None:
    fxflow.config.x64 = True
    np.seterr(all="ignore")
    for line in sys.stdin:
        print(wrong(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
