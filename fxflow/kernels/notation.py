"""`kernel`: a kernel whose grid, blocks and sums follow from one line of axes."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Array, Aval, typeof
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.core.boundary import boundary
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.calling import (
    TracedKernel,
    compiled_platforms,
    kernel_params,
    operand,
    require_written,
    type_like,
    type_of,
    with_reference,
)
from fxflow.kernels.signatures import counted, require_takes
from fxflow.kernels.tuning import choice_for, defaults
from fxflow.lax.kernels.blocks import ARBITRARY, PARALLEL, SUM, Block
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.params import PLATFORMS

_AXIS = re.compile(r"([A-Za-z_]\w*)(?::(\d+|\w+))?")


class Axis(NamedTuple):
    """An axis in the notation.

    Attributes:
      name: of the axis.
      length: length of its blocks; a name stands for a keyword argument; None: it is
        whole.
    """

    name: str
    length: int | str | None


class Notation(NamedTuple):
    """What a line such as `"i:8 v, i:8 -> i:8"` says.

    Attributes:
      inputs: axes of each operand.
      outputs: axes of each result.
    """

    inputs: tuple[tuple[Axis, ...], ...]
    outputs: tuple[tuple[Axis, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Notation:
        """Reads the notation.

        Raises:
          ArgumentError: it is malformed, or gives an axis blocks of two lengths.
        """
        if not isinstance(text, str) or text.count("->") != 1:
            raise ArgumentError(
                f"kernel: the notation is like 'i:8 v, i:8 -> i:8', got {text!r}"
            )
        sides = [
            tuple(cls._array(text, part) for part in side.split(","))
            for side in text.split("->")
        ]
        found = cls(*sides)
        lengths: dict[str, Any] = {}
        for axis in (a for array in (*found.inputs, *found.outputs) for a in array):
            known = lengths.setdefault(axis.name, axis.length)
            if known != axis.length:
                raise ArgumentError(
                    f"kernel: {text!r} gives the axis {axis.name} blocks of {known} "
                    f"and of {axis.length}: write one length everywhere"
                )
        return found

    @staticmethod
    def _array(text: str, part: str) -> tuple[Axis, ...]:
        axes = []
        for word in part.split():
            match = _AXIS.fullmatch(word)
            if match is None or match[2] == "0":
                raise ArgumentError(
                    f"kernel: {word!r} in {text!r} is not an axis: write 'i' for a "
                    "whole axis, 'i:8' for blocks of 8"
                )
            length: Any = match[2]
            axes.append(
                Axis(match[1], int(length) if length and length.isdigit() else length)
            )
        names = [a.name for a in axes]
        if len(set(names)) != len(names):
            raise ArgumentError(f"kernel: {part.strip()!r} names an axis twice")
        return tuple(axes)

    def axes(self) -> list[Axis]:
        """The axes of the grid: those of results first, in order."""
        found: dict[str, Axis] = {}
        for array in (*self.outputs, *self.inputs):
            for axis in array:
                if axis.length is not None:
                    found.setdefault(axis.name, axis)
        return list(found.values())


@boundary
def kernel(
    notation: str,
    *,
    out: Callable[..., Any],
    sums: str = "",
    in_order: str = "",
    scratch: Callable[..., Any] | None = None,
    reference: Callable[..., Any] | None = None,
    name: str | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> Callable[[Callable[..., None]], Callable[..., Any]]:
    """Makes a kernel of a function on blocks; a decorator.

    The notation names the axes of each operand, and behind the arrow those of each
    result. `i:8` is an axis in blocks of 8: an axis of the grid of programs. `v` is a
    whole axis. Arrays whose axes have one name have one length there.

    The body gets references to blocks of the operands and of the results, all with all
    of their axes. Blocks that reach over the end of an array read zeros there, and what
    is written there is dropped. Keyword-only arguments of the body, of `out` and of
    `scratch` are static: hashable values that callers of the kernel pass.

    Args:
      notation: see above.
      out: `out(*operands)` returns the type of the result or a tuple of types
        (anything with a shape and a dtype: see `like`).
      sums: names of axes, separated by spaces: results that lack one of these are the
        sums over it of what the programs write, which starts at zero.
      in_order: names of axes along which programs run in order; results that lack one
        of these, and scratch, keep what the program before wrote.
      scratch: as `out`, types of arrays that the body gets last.
      reference: a function of the same arguments that gives the right results, which
        may be slow. `check` compares with it. It runs in place of the kernel where no
        compiler knows an operation of the body, and it is differentiated where the
        gradient is not a kernel: programs in order, or an index map.
        It takes the keyword arguments that it names. The kernel's attribute
        `reference`.
      name: in messages and profiles; None: the function's.
      platforms: "cpu", "gpu", or both: where the kernel is compiled. Elsewhere, the
        reference runs, or the operations on whole arrays.

    Returns:
      The decorator. The kernel is a function of arrays, which has all transformations.

    Raises:
      ArgumentError: the notation is malformed; programs would write to one block; an
        unknown platform; from the kernel: operands or keyword arguments are not what
        the notation says.
      ShapeError: from the kernel: axes of one name have several lengths.

    Example:
      >>> @kernel("i:8 v -> i:8", out=lambda x: like(x, shape=x.shape[:1]))
      ... def lengths(x, y):
      ...     y[...] = fnp.sqrt(fnp.sum(x[...] ** 2, axis=1))
      >>> lengths(fnp.ones((20, 4))).shape
      (20,)
      >>> fxflow.grad(lambda x: fnp.sum(lengths(x)))(fnp.ones((3, 4)))[0]
      Array([0.5, 0.5, 0.5, 0.5], dtype=float32)
    """
    read = Notation.parse(notation)
    axes = read.axes()
    kinds = _kinds(notation, axes, read, sums.split(), in_order.split())
    where = compiled_platforms("kernel", platforms)

    def decorate(body: Callable[..., None]) -> Callable[..., Any]:
        called = name or name_of(body)
        made = _Kernel(notation, read, kinds, called, body, out, scratch, reference)
        made.platforms = where

        @functools.wraps(body)
        def run(*operands: Any, **static: Any) -> Any:
            return made.call(operands, static)

        # Its parameters are the operands alone, not those of the body.
        del run.__wrapped__
        run.reference = reference  # type: ignore[attr-defined]
        return run

    return decorate


class _Kernel:
    """A kernel that `kernel` has made; see there."""

    platforms: tuple[str, ...]

    def __init__(
        self,
        notation: str,
        read: Notation,
        kinds: tuple[str, ...],
        called: str,
        body: Callable[..., None],
        out: Callable[..., Any],
        scratch: Callable[..., Any] | None,
        reference: Callable[..., Any] | None,
    ) -> None:
        self._notation, self._read, self._kinds = notation, read, kinds
        self._called, self._axes = called, read.axes()
        self._body = body
        self._functions = {"body": body, "out": out, "scratch": scratch or _nothing}
        self._takes = {key: _static(f) for key, f in self._functions.items()}
        takes = self._takes
        self._reference = reference
        self._reference_takes = _static(reference) if reference else {}
        self._defaults = {**takes["scratch"], **takes["out"], **takes["body"]}
        count = len(read.inputs)
        given = f"{counted(operand=count)} of {notation!r}"
        for what, function in (
            ("out", out), ("scratch", scratch), ("reference", reference)
        ):  # fmt: skip
            if function is not None:
                require_takes(called, what, function, count, given)
        for name, default in self._reference_takes.items():
            if name not in self._defaults and default is inspect.Parameter.empty:
                raise ArgumentError(
                    f"{called}: reference takes the keyword argument {name}, which is "
                    "not one of the kernel's: "
                    f"{', '.join(self._defaults) or 'it has none'}"
                )

    def call(self, operands: Sequence[Any], static: Mapping[str, Any]) -> Any:
        """Runs the kernel.

        Args:
          operands: arrays.
          static: keyword arguments of the body, of `out` and of `scratch`.
        """
        called, read = self._called, self._read
        values, open_ = defaults(self._static_values(static))
        if len(operands) != len(read.inputs):
            raise ArgumentError(
                f"{called}: {len(operands)} operands were given, but "
                f"{self._notation!r} has {len(read.inputs)}"
            )
        arrays = [operand(called, i, x) for i, x in enumerate(operands)]
        traced, result = self._traced(arrays, values)
        if open_:
            given = [*(typeof(c) for c in traced.consts), *map(typeof, arrays)]
            choice = choice_for(
                traced.params,
                given,
                open_,
                arrays,
                lambda *xs: self.call(xs, static),
            )
            if any(values[name] != value for name, value in choice.items()):
                traced, result = self._traced(arrays, {**values, **choice})
        found = KernelCall.bind(*traced.consts, *arrays, **vars(traced.params))
        if isinstance(result, tuple | list):
            return type_like(result, found)
        return found[0]

    def _traced(
        self, arrays: Sequence[Any], values: Mapping[str, Any]
    ) -> tuple[TracedKernel, Any]:
        """Returns the kernel for some operands, and what `out` returned."""
        called, read = self._called, self._read
        result = self._function("out", values)(*arrays)
        is_one = not isinstance(result, tuple | list)
        outs = [type_of(o, f"{called}: out") for o in ([result] if is_one else result)]
        if len(outs) != len(read.outputs):
            raise ArgumentError(
                f"{called}: out returned {len(outs)} types, but {self._notation!r} has "
                f"{len(read.outputs)} results"
            )
        scratch = self._function("scratch", values)(*arrays)
        if not isinstance(scratch, tuple | list):
            scratch = (scratch,)
        avals = [typeof(x) for x in arrays]
        grid, blocks = self._divided([*avals, *outs], values)
        traced = kernel_params(
            self._function("body", values),
            called,
            avals,
            outs,
            grid,
            blocks,
            [type_of(s, f"{called}: scratch") for s in scratch],
            (),
            self._kinds,
        )
        traced = require_written(traced, called, self._body)
        if self._reference is not None:
            given = {k: values[k] for k in self._reference_takes if k in values}
            function = self._reference
            if given:
                function = functools.partial(function, **given)
            traced = with_reference(traced, called, function, avals)
        return traced.only_on(self.platforms), result

    def _static_values(self, static: Mapping[str, Any]) -> dict[str, Any]:
        """Returns all keyword arguments.

        Raises:
          ArgumentError: one is unknown, or missing.
        """
        values = {**self._defaults, **static}
        if unknown := static.keys() - self._defaults.keys():
            raise ArgumentError(
                f"{self._called}: unknown arguments {', '.join(sorted(unknown))}; the "
                f"kernel's keyword arguments: {', '.join(self._defaults) or 'none'} "
                "(those of the body, out and scratch that stand behind a *)"
            )
        missing = [k for k, v in values.items() if v is inspect.Parameter.empty]
        if missing:
            raise ArgumentError(
                f"{self._called}: the argument {missing[0]} has no default: pass it"
            )
        return values

    def _function(self, key: str, values: Mapping[str, Any]) -> Callable[..., Any]:
        """Returns the body, `out` or `scratch` with its keyword arguments."""
        function, takes = self._functions[key], self._takes[key]
        if not takes:
            return function
        return functools.partial(function, **{name: values[name] for name in takes})

    def _divided(
        self, avals: Sequence[Aval], values: Mapping[str, Any]
    ) -> tuple[tuple[int, ...], list[Block]]:
        """Returns the grid and the blocks of operands and results."""
        read, axes = self._read, self._axes
        lengths = _lengths(self._called, self._notation, read, avals)
        block = {
            a.name: _block_length(self._called, a, lengths[a.name], values)
            for a in axes
        }
        grid = tuple(-(-lengths[a.name] // block[a.name]) for a in axes)
        number = {a.name: i for i, a in enumerate(axes)}
        blocks = [
            Block(
                tuple(block.get(a.name, lengths[a.name]) for a in array),
                tuple(number.get(a.name) for a in array),
            )
            for array in (*read.inputs, *read.outputs)
        ]
        return grid, blocks


def _nothing(*operands: Any) -> tuple[()]:
    return ()


def like(
    x: Any, dtype: Any = None, *, shape: Sequence[int] | None = None
) -> ShapeDtypeStruct:
    """Returns the type of an array with another dtype or shape.

    Args:
      x: an array, or anything with a shape and a dtype.
      dtype: None: that of `x`.
      shape: None: that of `x`.

    Returns:
      The type.

    Example:
      >>> like(fnp.ones(3), "int32")
      ShapeDtypeStruct(i32[3])
    """
    aval = typeof(x) if isinstance(x, Array) else x
    return ShapeDtypeStruct(
        tuple(aval.shape if shape is None else shape),
        aval.dtype if dtype is None else dtype,
    )


def _kinds(
    notation: str,
    axes: Sequence[Axis],
    read: Notation,
    sums: Sequence[str],
    in_order: Sequence[str],
) -> tuple[str, ...]:
    """Returns the kind of each axis of the grid."""
    known = {a.name for a in axes}
    for name in (*sums, *in_order):
        if name not in known:
            raise ArgumentError(
                f"kernel: {name!r} is not an axis in blocks of {notation!r}"
            )
    if both := set(sums) & set(in_order):
        raise ArgumentError(
            f"kernel: the axis {min(both)} cannot be summed and in order"
        )
    kinds = []
    for axis in axes:
        kind = SUM if axis.name in sums else PARALLEL
        kind = ARBITRARY if axis.name in in_order else kind
        lacking = [
            array for array in read.outputs if axis.name not in {a.name for a in array}
        ]
        if kind == PARALLEL and lacking:
            raise ArgumentError(
                f"kernel: {notation!r}: a result lacks the axis {axis.name}, whose "
                f"programs would all write to it: add sums={axis.name!r}, or "
                f"in_order={axis.name!r}"
            )
        kinds.append(kind)
    return tuple(kinds)


def _static(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the keyword-only arguments of a function with their defaults."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _lengths(
    called: str, notation: str, read: Notation, avals: Sequence[Aval]
) -> dict[str, int]:
    """Returns the length of each axis."""
    lengths: dict[str, int] = {}
    where: dict[str, Aval] = {}
    for array, aval in zip((*read.inputs, *read.outputs), avals, strict=True):
        if len(array) != aval.ndim:
            names = " ".join(a.name for a in array)
            raise ShapeError(
                f"{called}: {aval} has {aval.ndim} "
                f"{'axis' if aval.ndim == 1 else 'axes'}, but {notation!r} names "
                f"{len(array)} ({names})"
            )
        for axis, n in zip(array, aval.shape, strict=True):
            if lengths.setdefault(axis.name, n) != n:
                raise ShapeError(
                    f"{called}: the axis {axis.name} of {notation!r} has the length "
                    f"{lengths[axis.name]} in {where[axis.name]}, but {n} in {aval}"
                )
            where.setdefault(axis.name, aval)
    return lengths


def _block_length(
    called: str, axis: Axis, length: int, static: Mapping[str, Any]
) -> int:
    """Returns the length of the blocks of an axis, at most that of the axis."""
    size: Any = axis.length
    if isinstance(size, str):
        if size not in static:
            raise ArgumentError(
                f"{called}: the blocks of the axis {axis.name} have the length {size}, "
                "which is not a keyword argument of the kernel"
            )
        size = static[size]
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ArgumentError(
            f"{called}: {axis.length}, the length of the blocks of the axis "
            f"{axis.name}, must be a positive int, got {size!r}"
        )
    return max(min(size, length), 1)
