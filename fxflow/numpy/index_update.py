"""`x.at[index]`: arrays with some elements replaced.

Slices and integers write one block with `dynamic_update_slice`; arrays become one
`scatter`, whose updates have the shape of `x[index]`. A boolean mask with a value that
does not depend on where it is true is a `where`: so it may be traced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, Shape, as_array, dtypes, typeof
from fxflow.core.arrays.promotion import lub
from fxflow.core.boundary import boundary, guard_methods
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.trace import Tracer, under
from fxflow.core.runtime.eager import interpreter, open_layouts
from fxflow.core.runtime.library import library
from fxflow.core.sizes import Size, is_symbolic, to_array
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, DtypeError, OutOfRangeError, ShapeError
from fxflow.lax.gather_scatter.dimension_numbers import GatherScatterMode
from fxflow.lax.transfer import laid_out
from fxflow.numpy import arithmetic, index_plans, index_reading
from fxflow.numpy._operands import array_of, beside, convert
from fxflow.numpy.comparisons import truth
from fxflow.numpy.creation import astype_array
from fxflow.numpy.selection import choose_between

#: Their names in `lax`, which imports some of them when first used.
_SCATTERS = {
    "set": "scatter",
    "add": "scatter_add",
    "subtract": "scatter_sub",
    "multiply": "scatter_mul",
    "min": "scatter_min",
    "max": "scatter_max",
}
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": arithmetic.add.function,
    "subtract": arithmetic.subtract.function,
    "multiply": arithmetic.multiply.function,
    "min": arithmetic.minimum.function,
    "max": arithmetic.maximum.function,
}


@guard_methods
class At:
    """What `x.at` is: index it, then say what to do there.

    Example:
      >>> from fxflow.numpy import zeros
      >>> zeros(3).at[1].set(5)
      Array([0., 5., 0.], dtype=float32)
    """

    __slots__ = ("array",)

    array: Any

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> IndexedArray:
        return IndexedArray(self.array, index)

    @boundary
    def __setitem__(self, index: Any, values: Any) -> None:
        raise TypeError(
            f"arrays are immutable, {typeof(self.array)} included: instead of "
            "x.at[i] = v use x = x.at[i].set(v)"
        )

    def __call__(self, *index: Any) -> Any:
        """Refuses: the index stands in brackets."""
        listed = ", ".join(map(repr, index))
        raise TypeError(
            f"x.at takes its index in brackets: write x.at[{listed}] for x.at({listed})"
        )

    def __repr__(self) -> str:
        return f"At({self.array!r})"


_update_docs = shared("""
    Args:
      values: array-like that broadcasts to the shape of `x[index]`.
      **options: see the class.

    Returns:
      Array of the type of `x`.
""")


def _in_place(sign: str, method: str) -> Callable[[IndexedArray, Any], Any]:
    """Returns the operator method that refuses `x.at[i] += v` or its like."""

    def refuse(self: IndexedArray, values: Any) -> Any:
        raise TypeError(
            f"arrays are immutable, {typeof(self.array)} included: instead of "
            f"x.at[i] {sign} v use x = x.at[i].{method}(v)"
        )

    return boundary(refuse)


@guard_methods
class IndexedArray:
    """The elements of an array that an index names, to be replaced or read.

    All methods take

    - `mode`: what happens at integers that are out of range: for updates "drop" (the
      default: nothing), "clip" (the nearest element), or "promise_in_bounds"; for `get`
      "promise_in_bounds" (the default), "clip" or "fill". Where no mode is named, a
      Python integer out of range is an error: it is known to be a mistake;
    - `indices_are_sorted`, `unique_indices`: promises which make it faster;
    - `wrap_negative_indices`: whether negative integers count from the end;
    - `out_sharding`: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
      result is laid out.
    """

    __slots__ = ("array", "index")

    array: Any
    index: Any

    def __init__(self, array: Any, index: Any) -> None:
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"IndexedArray({self.array!r}, {self.index!r})"

    __iadd__: Any = _in_place("+=", "add")
    __isub__: Any = _in_place("-=", "subtract")
    __imul__: Any = _in_place("*=", "multiply")
    __itruediv__: Any = _in_place("/=", "divide")
    __ipow__: Any = _in_place("**=", "power")

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
        fill_value: Any = None,
        wrap_negative_indices: bool = True,
        out_sharding: Any = None,
    ) -> Array:
        """Returns the elements; see the class for the options.

        Args:
          indices_are_sorted: a promise.
          unique_indices: a promise.
          mode: what indices that are out of range give.
          fill_value: for mode "fill" (default: nan, or the extreme integer).
          wrap_negative_indices: whether negative ones count from the end.
          out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how
            the result is laid out.

        Returns:
          Array, as `x[index]`.

        Raises:
          PlacementError: the result cannot be laid out as `out_sharding` specifies.
        """
        static, arrays = index_plans.read(self.index)
        with open_layouts(out_sharding):
            out = _get(
                self.array,
                arrays,
                static,
                mode,
                fill_value,
                unique_indices,
                indices_are_sorted,
                wrap_negative_indices,
            )
        return out if out_sharding is None else laid_out("at.get", out, out_sharding)

    @_update_docs
    def set(self, values: Any, **options: Any) -> Array:
        """Returns the array with the elements replaced."""
        return self._update("set", values, options)

    @_update_docs
    def add(self, values: Any, **options: Any) -> Array:
        """Returns the array with values added; elements named twice get both."""
        return self._update("add", values, options)

    @_update_docs
    def subtract(self, values: Any, **options: Any) -> Array:
        """Returns the array with values subtracted."""
        return self._update("subtract", values, options)

    @_update_docs
    def multiply(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements multiplied by values."""
        return self._update("multiply", values, options)

    @_update_docs
    def mul(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements multiplied by values; as `multiply`."""
        return self._update("multiply", values, options)

    @_update_docs
    def divide(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements divided by values.

        Returns:
          Array of the type of `x / x`: integers become floats.
        """
        x = array_of(self.array, "at.divide")
        factors = self._products(x, values, options, dtypes.to_inexact)
        quotients = arithmetic.divide(x, factors)
        return convert(quotients, dtypes.to_inexact(x.aval.dtype))

    @_update_docs
    def power(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements raised to powers."""
        x = array_of(self.array, "at.power")
        dtype = x.aval.dtype
        exponents = self._products(x, values, options)
        powers = convert(arithmetic.power(x, exponents), dtype)
        if _survives(dtype, exponents.aval.dtype):
            return powers
        return choose_between(self._marks(x, options), powers, x)

    @_update_docs
    def min(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements that are larger than the values replaced."""
        return self._update("min", values, options)

    @_update_docs
    def max(self, values: Any, **options: Any) -> Array:
        """Returns the array with elements that are smaller than the values replaced."""
        return self._update("max", values, options)

    def apply(self, ufunc: Callable[[Any], Any], **options: Any) -> Array:
        """Returns the array with a function applied to the elements.

        Args:
          ufunc: an elementwise function. Where an index names an element several times,
            it is applied as often, as by `numpy.ufunc.at`.
          **options: see the class.

        Returns:
          Array of the type of `x`. Traced index arrays without the promise
          `unique_indices=True` make a loop whose length is not known: it has forward
          derivatives only.
        """
        x = array_of(self.array, "at.apply")
        dtype, weak = x.aval.dtype, x.aval.weak_type

        def changed(x: Any, chosen: Any) -> Array:
            new = astype_array(array_of(ufunc(x), "at.apply"), dtype)
            return convert(choose_between(chosen, new, x), dtype, weak)

        static, arrays = index_plans.read(self.index, "at.apply")
        counter = IndexedArray(np.zeros(x.aval.shape, np.int32), self.index)
        if index_plans.ARRAY not in static or options.get("unique_indices"):
            return changed(x, lax.gt(counter._update("set", 1, options), 0))
        # An element that is named k times is changed k times.
        most: Any
        if any(isinstance(a, Tracer) for a in arrays):
            times = counter._update("add", 1, options)
            most = lax.reduce_max(times, tuple(range(x.aval.ndim)))
        else:
            times = under(interpreter(), counter._update, "add", 1, options)
            most = int(np.asarray(times).max(initial=0))
            if most <= 1:
                return changed(x, lax.gt(times, 0))
        out: Array = lax.fori_loop(
            0, most, lambda i, x: changed(x, lax.gt(times, i)), x
        )
        return out

    def _products(
        self,
        x: Any,
        values: Any,
        options: dict[str, Any],
        related: Callable[[Any], Any] = lambda dtype: dtype,
    ) -> Any:
        """Returns the product of the values for each element of `x`, 1 for none."""
        given = beside("at", values, x)
        dtype = related(_joint_dtype("multiply", x, given))
        ones = lax.full(x.aval.shape, 1, dtype)
        return IndexedArray(ones, self.index)._update("multiply", given, options)

    def _marks(self, x: Any, options: dict[str, Any]) -> Any:
        """Returns for each element of `x` whether the index names it."""
        nowhere = lax.full(x.aval.shape, False)
        return IndexedArray(nowhere, self.index)._update("set", True, options)

    def _update(self, kind: str, values: Any, options: dict[str, Any]) -> Array:
        options = dict(options)
        name = f"at.{kind}"
        mode = options.pop("mode", None)
        unique = options.pop("unique_indices", False)
        sorted_ = options.pop("indices_are_sorted", False)
        wrap = options.pop("wrap_negative_indices", True)
        out_sharding = options.pop("out_sharding", None)
        if options:
            raise ArgumentError(f"{name}: unknown arguments {', '.join(options)}")
        values = beside(name, values, self.array)
        index = self.index
        mask = index[0] if type(index) is tuple and len(index) == 1 else index
        if (
            isinstance(mask, Array | np.ndarray)
            and mask.size
            and mask.ndim
            and mask.dtype == np.bool_
            and values.aval.ndim <= max(0, np.ndim(self.array) - mask.ndim)
        ):
            with open_layouts(out_sharding):
                out = _masked(self.array, mask, values, kind)
        else:
            static, arrays = index_plans.read(index, name)
            with open_layouts(out_sharding):
                out = _updated(
                    self.array,
                    arrays,
                    values,
                    static,
                    kind,
                    mode,
                    unique,
                    sorted_,
                    wrap,
                )
        return out if out_sharding is None else laid_out(name, out, out_sharding)


@library("static", "mode", "fill_value", "unique", "sorted_", "wrap")
def _get(
    x: Any,
    arrays: Any,
    static: Any,
    mode: Any,
    fill_value: Any,
    unique: bool,
    sorted_: bool,
    wrap: bool,
) -> Array:
    x = array_of(x, "at.get")
    return index_reading.get(x, arrays, static, mode, fill_value, unique, sorted_, wrap)


def _joint_dtype(kind: str, x: Any, values: Any) -> Any:
    """Returns the dtype in which elements and values are combined.

    What comes out goes back into the array's dtype: `int32` elements times 1.5 are
    multiplied as floats.

    Raises:
      DtypeError: going back would lose an imaginary part, or keys are combined.
    """
    name = f"at.{kind}"
    own, given = x.aval, values.aval
    if given.dtype == own.dtype:
        return own.dtype
    if dtypes.is_key(own.dtype) or dtypes.is_key(given.dtype):
        raise DtypeError(f"{name}: {given} does not go into {own}")
    if dtypes.is_complex(given.dtype) and not dtypes.is_complex(own.dtype):
        raise DtypeError(
            f"{name}: complex values {given} do not go into {own}: take .real, or "
            "convert the array with .astype(...)"
        )
    if kind == "set":
        return own.dtype
    return lub((own.dtype, given.dtype), (own.weak_type, given.weak_type))[0]


def _survives(dtype: Any, joint: Any) -> bool:
    """Returns whether all values of a dtype come back from another one unchanged."""
    if not (dtypes.is_integer(dtype) and dtypes.is_inexact(joint)):
        return True
    digits = dtypes.bits(dtype) - dtypes.is_signed(dtype)
    return bool(digits <= dtypes.finfo(joint).nmant + 1)


@library()
def _masked(x: Any, mask: Any, values: Any, kind: str) -> Array:
    """Returns `x` changed where a mask is true, by the same values each time."""
    name = f"at.{kind}"
    x = array_of(x, name)
    mask = truth(name, mask)
    shape = x.aval.shape
    if mask.aval.shape != shape[: mask.aval.ndim]:
        raise OutOfRangeError(
            f"{name}: a boolean mask {mask.aval} does not fit {x.aval}: its shape "
            "must be "
            "that of the leading axes"
        )
    values = convert(values, _joint_dtype(kind, x, values))
    _check_values(name, x, values, shape[mask.aval.ndim :])
    wide = lax.broadcast_in_dim(mask, shape, tuple(range(mask.aval.ndim)))
    return choose_between(wide, _combined(kind, x, values), x)


def _combined(kind: str, old: Any, values: Any) -> Any:
    """Returns new elements of the dtype of the old ones."""
    new = _COMBINE[kind](convert(old, values.aval.dtype), values)
    return convert(new, old.aval.dtype)


def _check_values(name: str, x: Any, values: Any, shape: Shape) -> None:
    given = values.aval.shape
    extra = max(len(given) - len(shape), 0)  # in front, of length 1
    pairs = zip(given[::-1], shape[::-1], strict=False)
    if any(n != 1 for n in given[:extra]) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(
            f"{name}: values {values.aval} do not broadcast to the shape {shape} that "
            f"the index names in {x.aval}"
        )


_INSIDE = (GatherScatterMode.CLIP, GatherScatterMode.PROMISE_IN_BOUNDS)


@library("static", "mode", "unique", "sorted_", "wrap")
def _updated(
    x: Any,
    arrays: Any,
    values: Any,
    static: Any,
    kind: str,
    mode: Any,
    unique: bool,
    sorted_: bool,
    wrap: bool,
) -> Array:
    """Returns `x` with the elements that an index names changed."""
    name = f"at.{kind}"
    x = array_of(x, name)
    values = convert(values, _joint_dtype(kind, x, values))
    mode = index_reading.mode_of(mode)
    plan = index_plans.plan_of(static, x.aval, name, mode, wrap)
    if plan.outside:
        middle = index_reading.index_shape(arrays, plan, name)
        _check_values(name, x, values, index_reading.result_shape(plan, middle))
        unchanged: Array = x
        return unchanged
    picked = [d for d, a in enumerate(plan.axes) if a.kind in ("array", "scalar")]
    strided = any(a.is_strided for a in plan.axes)
    inside = mode in _INSIDE and not plan.advanced
    if not strided and (not picked or inside):
        return _write_block(x, arrays, values, plan, kind, name, wrap)
    return _scattered(
        x, arrays, values, plan, kind, name, (mode, unique, sorted_, wrap)
    )


def _write_block(
    x: Array, arrays: Any, values: Any, plan: Any, kind: str, name: str, wrap: bool
) -> Array:
    """Changes one block of neighbours, which is read and written back."""
    sizes = tuple(a.length if a.kind == "slice" else 1 for a in plan.axes)
    shape = tuple(1 if d == -1 else plan.axes[d].length for d in plan.layout)
    _check_values(name, x, values, shape)
    if not all(sizes):
        return x
    values = _squeezed_to(values, shape)
    # Everything is replaced: x is not read at all.
    if sizes == x.aval.shape and kind == "set":
        whole = _to_axes(repeated(values, shape), sizes)
        layout = x.aval.layout
        if layout is not None and whole.aval.layout is None:
            whole = laid_out(name, whole, NamedSharding(layout.mesh, layout.spec))
        return convert(whole, x.aval.dtype, x.aval.weak_type)
    starts: list[Any] = []
    for axis, length in zip(plan.axes, plan.shape, strict=True):
        if axis.kind == "scalar":
            starts.append(index_reading.index_operand(arrays[axis.array], length, wrap))
        else:
            starts.append(axis.start if axis.length or axis.kind == "int" else 0)
    if any(not isinstance(s, int) for s in starts):
        starts = [_as_int32(s) for s in starts]
    new = repeated(values, shape)
    if kind != "set":
        old = lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        new = _combined(kind, lax.reshape(old, shape), new)
    new = _to_axes(new, sizes)
    out = lax.dynamic_update_slice(x, new, starts, allow_negative_indices=False)
    return convert(out, x.aval.dtype, x.aval.weak_type)


def _as_int32(x: Any) -> Any:
    if isinstance(x, int):
        return as_array(np.int32(x))
    start = to_array(x) if isinstance(x, Size) else x
    return start if start.aval.dtype == dtypes.int32 else convert(start, dtypes.int32)


def _along(axis: index_plans.IndexedAxis) -> Any:
    """Returns the indices that a slice stands for."""
    if is_symbolic((axis.start, axis.length)):
        return lax.iota(dtypes.int32, axis.length) * axis.step + axis.start
    indices = axis.start + axis.step * np.arange(axis.length, dtype=np.int32)
    return as_array(indices.astype(np.int32))


def _to_axes(x: Array, sizes: Shape) -> Array:
    return x if x.aval.shape == sizes else lax.reshape(x, sizes)


def _squeezed_to(values: Any, shape: Shape) -> Any:
    """Drops leading axes of length 1 that are too many."""
    extra = values.aval.ndim - len(shape)
    return lax.reshape(values, values.aval.shape[extra:]) if extra > 0 else values


def _scatter(vectors: Any, kind: str, x: Any, updates: Any, **options: Any) -> Any:
    scatter = getattr(lax, _SCATTERS[kind])
    return scatter(x, vectors, updates, **options)


def _scattered(
    x: Array,
    arrays: Any,
    values: Any,
    plan: Any,
    kind: str,
    name: str,
    options: tuple[Any, bool, bool, bool],
) -> Array:
    """Changes elements at computed indices.

    Each array is a column of the index vectors, and so is each slice with a step; a
    slice without one is a window, which starts at the first element that the slice
    names.
    """
    mode, unique, sorted_, wrap = options
    original = x.aval.shape
    if plan.shape != original:
        x = lax.reshape(x, plan.shape)
    values_at = index_reading.array_values(arrays, plan, wrap)
    middle = (
        index_reading.joint_index_shape(
            [v.aval.shape for v in values_at.values()], name
        )
        if values_at
        else ()
    )
    layout = plan.layout if plan.advanced else (*plan.layout, index_plans.ADVANCED)
    # Axes of the result without the new ones: where each comes from.
    shape: list[int] = []
    batch: list[int] = []  # axes of the result that index vectors run along
    at_arrays: list[int] = []
    at_slices: dict[int, int] = {}
    window: list[int] = []
    full: list[int] = []
    for d in layout:
        if d == index_plans.ADVANCED:
            at_arrays = list(range(len(shape), len(shape) + len(middle)))
            batch += at_arrays
            shape += middle
            full += middle
            continue
        if d == -1:
            full.append(1)
            continue
        axis = plan.axes[d]
        if axis.is_strided:
            at_slices[d] = len(shape)
            batch.append(len(shape))
        else:
            window.append(len(shape))
        shape.append(axis.length)
        full.append(axis.length)
    _check_values(name, x, values, tuple(full))
    values = _squeezed_to(values, tuple(full))
    updates = _to_axes(repeated(values, tuple(full)), tuple(shape))
    joint = updates.aval.dtype
    if not updates.aval.size:
        return x if plan.shape == original else lax.reshape(x, original)
    batch_shape = tuple(shape[b] for b in batch)
    columns: list[Any] = []
    component_axes: list[int] = []
    inserted: list[int] = []
    dims: tuple[int, ...]
    for d, axis in enumerate(plan.axes):
        if axis.kind == "slice":
            if d in at_slices:
                column = _along(axis)
                dims = (batch.index(at_slices[d]),)
                inserted.append(d)
            elif axis.start or axis.length != plan.shape[d]:
                column, dims = _as_int32(axis.start), ()
            else:
                continue
        else:
            column = values_at[d]
            lead = len(middle) - column.aval.ndim
            dims = tuple(batch.index(b) for b in at_arrays[lead:])
            inserted.append(d)
        columns.append(lax.broadcast_in_dim(column, batch_shape, dims))
        component_axes.append(d)
    scatter = functools.partial(
        _scatter,
        index_reading.stack_columns(columns, batch_shape),
        dimension_numbers=lax.ScatterDimensionNumbers(
            update_window_dims=tuple(window),
            inserted_window_dims=tuple(sorted(inserted)),
            scatter_dims_to_operand_dims=tuple(component_axes),
        ),
        indices_are_sorted=sorted_,
        # Slices and integers name no element twice.
        unique_indices=unique or not any(a.kind == "array" for a in plan.axes),
        mode=mode,
    )
    dtype = x.aval.dtype
    out = scatter(kind, x if joint == dtype else convert(x, joint), updates)
    if joint != dtype:
        out = convert(out, dtype, x.aval.weak_type)
        if not _survives(dtype, joint):
            # What no index names stays as it is.
            named = lax.full(updates.aval.shape, True)
            marks = lax.full(x.aval.shape, False)
            out = choose_between(scatter("set", marks, named), out, x)
    return out if plan.shape == original else lax.reshape(out, original)
