"""Comparing a function with NumPy's, eagerly and compiled."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fxflow
import fxflow.numpy as fnp

quick = settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

TOLERANCE = {
    "bfloat16": 2e-2,
    "float16": 2e-3,
    "float32": 2e-5,
    "complex64": 5e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
}


def same(want: Any, got: Any, tol: float | None = None) -> bool:
    """Whether results agree in structure, shape, kind of dtype and values."""
    if isinstance(want, tuple | list):
        return len(want) == len(got) and all(
            same(w, g, tol) for w, g in zip(want, got, strict=True)
        )
    w, g = np.asarray(want), np.asarray(got)
    if w.shape != g.shape or fnp.iscomplexobj(w) != fnp.iscomplexobj(g):
        return False
    if tol is None:
        tol = TOLERANCE.get(g.dtype.name, 0.0)
    wide = np.complex128 if np.iscomplexobj(g) else np.float64
    return np.allclose(
        w.astype(wide), g.astype(wide), rtol=tol, atol=tol, equal_nan=True
    )


def check(
    name: str,
    *args: Any,
    tol: float | None = None,
    compiled: bool = True,
    **kwargs: Any,
) -> None:
    """Asserts that `fnp.name` gives what `np.name` gives, eagerly and under jit."""
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*args, **kwargs)
    function: Callable[..., Any] = getattr(fnp, name)
    got = function(*args, **kwargs)
    assert same(want, got, tol), f"{name}{args}{kwargs}: {want} != {got}"
    if not compiled:
        return
    places = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def of_arrays(*arrays: Any) -> Any:
        given = list(args)
        for i, array in zip(places, arrays, strict=True):
            given[i] = array
        return function(*given, **kwargs)

    traced = fxflow.jit(of_arrays)(*(args[i] for i in places))
    assert same(want, traced, tol), f"jit {name}{args}{kwargs}: {want} != {traced}"


SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


@st.composite
def arrays(draw: Any, dtype: Any = np.float32, shape: Any = SHAPES) -> Any:
    """NumPy arrays of plain numbers; subnormal ones are left out, as XLA drops them."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        elements: Any = st.floats(
            -1e3, 1e3, width=32, allow_subnormal=False, allow_nan=False
        ).map(lambda v: float(kind.type(v)))
    elif kind.kind == "c":
        elements = st.complex_numbers(max_magnitude=100, allow_subnormal=False)
    elif kind.kind == "b":
        elements = st.booleans()
    else:
        limits = np.iinfo(kind)
        elements = st.integers(max(limits.min, -100), min(limits.max, 100))
    return draw(hnp.arrays(kind, shape, elements=elements))


BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# Numbers of each kind, the special ones among them.
FLOATS = np.array([0.0, -0.0, 0.5, 1.5, -2.5, 2.7, np.inf, -np.inf, np.nan], np.float32)
INTEGERS = np.array([-17, 0, 25, 35, 140], np.int32)
COMPLEX = np.array([1.5 - 2.5j, -1 + 0j, 0.25 + 3j], np.complex64)
