"""Ways to lay the operands of a call over devices, and to run it so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fxflow
from fxflow import NamedSharding, P, lax
from fxflow.core.arrays import dtypes
from tests.sweeps.catalogue import Call

Run = Callable[[], Any]
Entries = Callable[[tuple[int, ...]], tuple[Any, ...]]


def _parts(length: int) -> int:
    """In how many equal parts, 8 at most, an axis can be divided."""
    return max(n for n in range(1, 9) if length % n == 0) if length else 1


def _put(call: Call, arrays: Sequence[Any], mesh: Any, entries: Entries) -> list[Any]:
    """The operands, laid out where that is possible, else copied to all devices."""
    array_type = []
    for array in arrays:
        spec = P(*entries(array.shape))
        where = NamedSharding(mesh, spec)
        try:
            where.shard_shape(array.shape)
        except ValueError:
            where = NamedSharding(mesh, P())
        array_type.append(fxflow.device_put(array, where))
    return array_type


def _first_axis(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return ("x",) + (None,) * (len(shape) - 1) if shape else ()


def _last_axis(shape: tuple[int, ...]) -> tuple[Any, ...]:
    return (None,) * (len(shape) - 1) + ("x",) if shape else ()


def _two_axes(shape: tuple[int, ...]) -> tuple[Any, ...]:
    if len(shape) < 2:
        return (("y", "x"),) if shape else ()
    return ("y", *[None] * (len(shape) - 2), "x")


def _row(lengths: Sequence[int]) -> Any:
    """A mesh of one axis that divides as many of the lengths as any."""
    best = max(range(2, 9), key=lambda n: (sum(k % n == 0 for k in lengths), n))
    return fxflow.make_mesh((best,), ("x",))


def _shapes(arrays: Sequence[Any]) -> list[tuple[int, ...]]:
    return [a.shape for a in arrays if a.ndim]


def first(call: Call, arrays: Sequence[Any]) -> Run:
    """The first axes are divided, and specs end in None."""
    mesh = _row([s[0] for s in _shapes(arrays)])
    array_type = _put(call, arrays, mesh, _first_axis)
    return lambda: call.run(*array_type)


def last(call: Call, arrays: Sequence[Any]) -> Run:
    """The last axes are divided."""
    mesh = _row([s[-1] for s in _shapes(arrays)])
    array_type = _put(call, arrays, mesh, _last_axis)
    return lambda: call.run(*array_type)


def two(call: Call, arrays: Sequence[Any]) -> Run:
    """First and last axes are divided over two axes of the mesh, vectors over both."""
    widest = max(_shapes(arrays), key=len, default=(1,))
    y = min(_parts(widest[0]), 4)
    x = max(n for n in range(1, 8 // y + 1) if widest[-1] % n == 0)
    mesh = fxflow.make_mesh((y, x), ("y", "x"))
    array_type = _put(call, arrays, mesh, _two_axes)
    return lambda: call.run(*array_type)


def copied(call: Call, arrays: Sequence[Any]) -> Run:
    """Each device has a copy of the first operand; the others are anywhere."""
    mesh = fxflow.make_mesh((4,), ("x",))
    one, *others = arrays
    array_type = [fxflow.device_put(one, NamedSharding(mesh, P())), *others]
    return lambda: call.run(*array_type)


def uneven(call: Call, arrays: Sequence[Any]) -> Run:
    """Constraints divide first and last axes, whatever their lengths are."""
    mesh = fxflow.make_mesh((3, 2), ("y", "x"))

    def constrained(*arrays: Any) -> Any:
        return call.run(
            *(
                lax.with_sharding_constraint(
                    a, NamedSharding(mesh, P(*_two_axes(a.shape)))
                )
                for a in arrays
            )
        )

    compiled = fxflow.jit(constrained)
    return lambda: compiled(*arrays)


def manual(call: Call, arrays: Sequence[Any]) -> Run:
    """Inside a `shard_map` over one axis of a mesh; the other one divides operands."""
    parts = max(n for n in (1, 2, 3, 4) if all(s[-1] % n == 0 for s in _shapes(arrays)))
    mesh = fxflow.make_mesh((2, parts), ("y", "x"))
    array_type = _put(call, arrays, mesh, _last_axis)
    inside = fxflow.shard_map(
        lambda *arrays: call.run(*arrays),
        mesh=mesh,
        in_specs=P(),
        out_specs=P(),
        axis_names={"y"},
        check=False,
    )
    return lambda: inside(*array_type)


def compiled(layout: Callable[[Call, Sequence[Any]], Run]) -> Any:
    """The same layout with the call inside `jit`."""

    def run(call: Call, arrays: Sequence[Any]) -> Run:
        inside = _Jitted(call)
        return layout(inside, arrays)

    return run


class _Jitted:
    """A call whose operands are arguments of a jitted function."""

    def __init__(self, call: Call) -> None:
        self.run = fxflow.jit(call.run)


#: By name; those with `inside` trace the operands.
LAYOUTS: dict[str, Callable[[Any, Sequence[Any]], Run]] = {
    "first": first,
    "last": last,
    "two": two,
    "copied": copied,
    "first inside": compiled(first),
    "last inside": compiled(last),
    "two inside": compiled(two),
    "uneven inside": uneven,
    "manual inside": manual,
}


def applies(name: str, call: Call) -> bool:
    """Whether a call can be run so."""
    if not call.operands or (name.endswith("inside") and not call.traceable):
        return False
    return name == "copied" or any(o.shape for o in call.operands)


def difference(got: Any, want: Any, call: Call) -> str:
    """Says where results differ, "" if they do not."""
    results, expected = fxflow.tree.leaves(got), fxflow.tree.leaves(want)
    if len(results) != len(expected):
        return f"{len(results)} results, expected {len(expected)}"
    for i, (g, w) in enumerate(zip(results, expected)):
        if not isinstance(w, fxflow.Array | np.ndarray | np.generic):
            if not bool(np.all(g == w)):  # a shape, a dtype, a text
                return f"result {i}: {g}, expected {w}"
            continue
        if dtypes.is_key(getattr(w, "dtype", None)):
            g, w = fxflow.random.key_data(g), fxflow.random.key_data(w)
        g, w = np.asarray(g), np.asarray(w)
        if g.shape != w.shape or g.dtype != w.dtype:
            return f"result {i}: {g.dtype}{g.shape}, expected {w.dtype}{w.shape}"
        if call.random:
            continue
        wide = complex if w.dtype.kind == "c" else float
        tolerance = {"rtol": 2e-4, "atol": 2e-4, "equal_nan": True}
        if not np.allclose(g.astype(wide), w.astype(wide), **tolerance):
            return f"result {i}: {g!r}, expected {w!r}"
    return ""
