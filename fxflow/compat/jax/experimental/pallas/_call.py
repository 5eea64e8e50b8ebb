"""`pallas_call` on `fxflow.kernels`: blocks, references, the order of programs.

An axis of the grid is parallel if every result counts its blocks along it and no
scratch is kept; else programs run in order, as all do on a TPU. Blocks that an index
map computes from prefetched scalars, or that start anywhere, are parts of the whole
array, which the program takes itself.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.compat.jax.experimental.pallas._memory import (
    MemoryRef,
    SemaphoreType,
    _Space,
    allocate,
    memory_type,
)
from fxflow.compat.jax.experimental.pallas._specs import (
    Blocked,
    BlockSpec,
    BoundedSlice,
    Element,
    GridSpec,
    Indirect,
    Squeezed,
    no_block_spec,
)
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.ref_index import Slice
from fxflow.core.ir.trace import named_axes
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError
from fxflow.kernels.body import in_program
from fxflow.kernels.calling import block_of, kernel_params, operand, type_of
from fxflow.lax.kernels.blocks import ARBITRARY, PARALLEL, Block
from fxflow.lax.kernels.call import KernelCall


class _UsesScalars(Exception):
    """An index map reads a prefetched scalar."""


class _Unread:
    """Stands for a prefetched scalar where an index map does without."""

    def __getattr__(self, name: str) -> Any:
        raise _UsesScalars

    def __getitem__(self, index: Any) -> Any:
        raise _UsesScalars


@dataclass(frozen=True)
class Part:
    """The block of an array, as Pallas describes it.

    Attributes:
      what: the array, in messages: `args[0]`.
      dims: a `BlockDim` for each axis; None: the whole array.
      index_map: see `BlockSpec`; None: the first block.
    """

    what: str
    dims: tuple[Any, ...] | None
    index_map: Callable[..., Any] | None

    @classmethod
    def of(cls, what: str, spec: Any, shape: Sequence[int]) -> Part:
        """Returns the block that a spec describes.

        Args:
          what: the array, in messages.
          spec: a `BlockSpec`, a memory space, or nothing.
          shape: shape of the array.
        """
        if spec is None or spec is no_block_spec or isinstance(spec, _Space):
            return cls(what, None, None)
        if not isinstance(spec, BlockSpec):
            raise ArgumentError(f"{what}: expected a BlockSpec, got {spec!r}")
        if spec.block_shape is None:
            return cls(what, None, None)
        given = spec.block_shape
        dims = tuple(map(_dim, (given,) if isinstance(given, int) else given))
        if len(dims) != len(shape):
            raise ValueError(
                f"Block shape for {what} (= {tuple(given)}) must have the same number "
                f"of dimensions as the array shape {tuple(shape)}."
            )
        return cls(what, dims, spec.index_map)

    @property
    def is_counted(self) -> bool:
        """Whether the index map counts blocks of all axes."""
        return self.dims is None or all(
            isinstance(d, Blocked | Squeezed) for d in self.dims
        )

    @property
    def paddings(self) -> tuple[tuple[int, int], ...] | None:
        """What axes are padded by; None: none is."""
        found = tuple(getattr(d, "padding", (0, 0)) for d in self.dims or ())
        return found if any(map(any, found)) else None

    def index(self, ids: Sequence[Any], scalars: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the index of a program's block.

        Args:
          ids: of the program.
          scalars: references to prefetched scalars.

        Raises:
          ValueError: the index map does not return what it should.
        """
        assert self.dims is not None
        if self.index_map is None:
            return (0,) * len(self.dims)
        found = self.index_map(*ids, *scalars)
        found = tuple(found) if isinstance(found, tuple | list) else (found,)
        where = f"Index map function {_described(self.index_map)} for {self.what}"
        if len(found) != len(self.dims):
            raise ValueError(
                f"{where} must return {len(self.dims)} values to match "
                f"block_shape={self.dims}. Currently returning {len(found)} values."
            )
        for i, (x, dim) in enumerate(zip(found, self.dims, strict=True)):
            if isinstance(dim, BoundedSlice):
                if type(x) is not Slice:
                    raise ValueError(
                        f"{where} must return a slice, pl.ds(start, size), for the "
                        f"BoundedSlice of axis {i}, got {x!r}"
                    )
                continue
            kind = typeof(x)
            if kind.ndim or not dtypes.is_integer(kind.dtype):
                raise ValueError(
                    f"{where} must return integer scalars. Output[{i}] has type "
                    f"{kind.dtype}{list(kind.shape)}"
                )
        return found

    def view(self, ref: Any, ids: Sequence[Any], scalars: Sequence[Any]) -> Any:
        """Returns a program's block as a part of a reference to the whole array."""
        if self.dims is None:
            return ref
        items: list[Any] = []
        for dim, i in zip(self.dims, self.index(ids, scalars), strict=True):
            if isinstance(dim, Squeezed):
                items.append(i)
            elif isinstance(dim, BoundedSlice):
                items.append(Slice(i.start, dim.block_size))
            elif isinstance(dim, Element):
                items.append(Slice(i, dim.block_size))
            else:
                items.append(Slice(i * dim.block_size, dim.block_size))
        return ref.at[tuple(items)] if items else ref

    def block(self, name: str, aval: Aval, num_ids: int, scalars: Any) -> Any:
        """Returns the block in terms of `fxflow.kernels`; None: it has to be a view."""
        if self.dims is None:
            return block_of(name, kernels.BlockSpec(), aval, num_ids)
        if not self.is_counted:
            return None
        unread = scalars.unflatten([_Unread()] * scalars.num_leaves)
        shape = tuple(
            None if isinstance(d, Squeezed) else d.block_size for d in self.dims
        )

        def index_map(*ids: Any) -> Any:
            return self.index(ids, unread)

        # The number of ids is checked where the index map is called.
        try:
            return block_of(name, kernels.BlockSpec(shape, index_map), aval, num_ids)
        except _UsesScalars:
            return None
        except ArgumentError as error:
            if "must not capture" not in str(error):
                raise
            raise ValueError(
                f"Index map function {_described(self.index_map)} for {self.what} must "
                f"not capture constants: {error}"
            ) from None


def _dim(given: Any) -> Any:
    if given is None or isinstance(given, Squeezed):
        return Squeezed()
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return Blocked(int(given))
    if isinstance(given, Indirect):
        raise NotImplementedError(
            "pl.Indirect gathers on a SparseCore: read rows of a whole reference, "
            "ref[indices] (docs/compat.md)"
        )
    if isinstance(given, Blocked | Element | BoundedSlice):
        return given
    raise ArgumentError(
        "BlockSpec: an axis of block_shape must be an int, None or a BlockDim, "
        f"got {given!r}"
    )


def _described(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", repr(function))
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name


# -- the call --------------------------------------------------------------------------


def pallas_call(
    kernel: Callable[..., None],
    out_shape: Any,
    *,
    grid_spec: Any = None,
    grid: Any = (),
    in_specs: Any = no_block_spec,
    out_specs: Any = no_block_spec,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = False,
    name: str | None = None,
    compiler_params: Any = None,
    cost_estimate: Any = None,
    backend: Any = None,
    metadata: Any = None,
) -> Callable[..., Any]:
    """Runs a kernel on blocks of arrays, once for each point of a grid.

    Args:
      kernel: `kernel(*inputs, *results, *scratch)` of references; returns None.
      out_shape: types of the results, a pytree.
      grid_spec: grid, blocks and scratch together.
      grid: the number of programs along each axis, or its name and the number; numbers
        may be traced.
      in_specs: blocks of the operands.
      out_specs: blocks of the results.
      scratch_shapes: types of scratch; a dict: keyword arguments of the kernel.
      input_output_aliases: number of an operand → number of the result that starts with
        its contents.
      compiler_params: their `dimension_semantics` says which axes are parallel.
      name: in messages and profiles.
      debug, interpret, cost_estimate, backend, metadata: have no effect: a kernel is
        compiled wherever it can be.

    Returns:
      A function of the operands.

    Raises:
      ArgumentError, ValueError: arguments do not fit each other.
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    elif grid not in ((), None):
        raise ValueError(
            f"If `grid_spec` is specified, then `grid` must be `()`. It is {grid}"
        )
    specs = grid_spec.in_specs
    if specs is not no_block_spec and not isinstance(specs, tuple | list):
        raise ValueError(f"`in_specs` must be a tuple or a list. Found: {specs}")
    if isinstance(out_shape, list):
        out_shape = tuple(out_shape)
    call = _Call(
        kernel,
        name or name_of(kernel),
        out_shape,
        grid_spec,
        dict(input_output_aliases or {}),
        compiler_params,
    )

    @functools.wraps(kernel, updated=())
    def run(*args: Any) -> Any:
        return call.run(args)

    return run


class _Call:
    """A call of `pallas_call`; see there."""

    def __init__(
        self,
        kernel: Callable[..., None],
        name: str,
        out_shape: Any,
        spec: Any,
        aliases: dict[int, int],
        options: Any,
    ) -> None:
        self._kernel, self._name, self._spec = kernel, name, spec
        self._aliases, self._options = aliases, options
        leaves, self._out_tree = tree.flatten(out_shape)
        self._outs = [type_of(x) for x in leaves]
        self._is_one = not isinstance(out_shape, tuple)
        self._bodies: dict[Any, Callable[..., None]] = {}
        scratch = spec.scratch_shapes
        self._named = isinstance(scratch, Mapping)
        if not self._named and not isinstance(scratch, tuple | list):
            scratch = (scratch,)
        leaves, self._scratch_tree = tree.flatten(scratch, is_leaf=_is_memory)
        self._scratch = [type_of(memory_type(x)) for x in leaves]
        given = spec.grid
        sizes = (given,) if not isinstance(given, tuple | list) else tuple(given)
        pairs = [n if _is_named(n) else (None, n) for n in sizes]
        self._grid = tuple(n for _, n in pairs)
        self._axes = [(name, n) for name, n in pairs if name is not None]

    def run(self, args: Sequence[Any]) -> Any:
        """Runs the kernel on operands."""
        leaves, in_tree = tree.flatten(tuple(args))
        arrays = [operand(self._name, i, x) for i, x in enumerate(leaves)]
        scalars = tree.structure(tuple(args[: self._spec.num_scalar_prefetch]))
        avals = [typeof(x) for x in arrays]
        parts = self._parts(args, avals, scalars)
        self._check_aliases(avals)
        for part in parts[len(arrays) :]:
            _require_written(part)
        for i, part in enumerate(parts):
            paddings = part.paddings
            if paddings and i < len(arrays):
                arrays[i] = fnp.pad(arrays[i], paddings)
        avals = [typeof(x) for x in arrays]
        outs = [
            _padded(a, p.paddings)
            for a, p in zip(self._outs, parts[len(arrays) :], strict=True)
        ]
        grid = tuple(_size(n) for n in self._grid)
        if all(isinstance(n, int) for n in grid):
            results = self._on_grid(arrays, avals, outs, grid, parts, in_tree, scalars)
        else:
            results = self._in_loop(arrays, avals, outs, grid, parts, in_tree, scalars)
        results = [
            _cropped(x, p.paddings)
            for x, p in zip(results, parts[len(arrays) :], strict=True)
        ]
        return self._out_tree.unflatten(results)

    # -- arguments ---------------------------------------------------------------------

    def _parts(
        self, args: Sequence[Any], avals: Sequence[Aval], scalars: Any
    ) -> list[Part]:
        """Returns the blocks of operands and results."""
        first = self._spec.num_scalar_prefetch
        specs = [None] * scalars.num_leaves
        specs += _matched(
            "in_specs", "inputs", self._spec.in_specs, tuple(args[first:])
        )
        out_tree = self._out_tree.unflatten(self._outs)
        given = self._spec.out_specs
        if isinstance(given, list):
            given = tuple(given)
        elif not self._is_one and isinstance(given, BlockSpec) and len(self._outs) == 1:
            given = (given,)
        specs += _matched("out_specs", "out_shape", given, out_tree)
        names = [f"args{p}" for p in _paths(tuple(args))]
        names += [f"outputs{p}" for p in _paths(out_tree)]
        return [
            Part.of(what, spec, aval.shape)
            for what, spec, aval in zip(
                names, specs, [*avals, *self._outs], strict=True
            )
        ]

    def _check_aliases(self, avals: Sequence[Aval]) -> None:
        for i, out in self._aliases.items():
            pair = f"input_output_aliases contains the mapping '{i}:{out}'"
            if not 0 <= i < len(avals):
                raise ValueError(
                    f"{pair} with input index {i} outside the range [0, {len(avals)})"
                )
            if not 0 <= out < len(self._outs):
                raise ValueError(
                    f"{pair} with output index {out} outside the range "
                    f"[0, {len(self._outs)})"
                )
            a, b = avals[i], self._outs[out]
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                raise ValueError(
                    f"{pair} referring to input[{i}] with abstract value "
                    f"{_text(a)} and to output[{out}] with a different abstract value "
                    f"{_text(b)}."
                )

    # -- ways to run it ----------------------------------------------------------------

    def _on_grid(
        self,
        arrays: Sequence[Any],
        avals: Sequence[Aval],
        outs: Sequence[Aval],
        grid: tuple[int, ...],
        parts: Sequence[Part],
        in_tree: Any,
        scalars: Any,
    ) -> Sequence[Any]:
        """Runs the kernel as a `kernel_call` with its grid."""
        count = len(arrays)
        found = [
            part.block(self._name, aval, len(grid), scalars)
            for part, aval in zip(parts, [*avals, *outs], strict=True)
        ]
        views = tuple(block is None for block in found)
        blocks = [
            Block(aval.shape, (None,) * aval.ndim) if block is None else block
            for block, aval in zip(found, [*avals, *outs], strict=True)
        ]
        kinds = self._kinds(grid, blocks[count:], outs)
        key = (in_tree, tuple(avals), views, tuple(parts))
        body = self._bodies.get(key)
        if body is None:
            body = self._body(in_tree, parts, views, scalars, grid, count)
            self._bodies[key] = body
        return self._bind(body, arrays, avals, outs, grid, blocks, kinds)

    def _in_loop(
        self,
        arrays: Sequence[Any],
        avals: Sequence[Aval],
        outs: Sequence[Aval],
        grid: tuple[Any, ...],
        parts: Sequence[Part],
        in_tree: Any,
        scalars: Any,
    ) -> Sequence[Any]:
        """Runs a kernel whose grid is computed: one program with a loop."""
        traced = [n for n in grid if not isinstance(n, int)]
        count, extra = len(arrays), len(traced)
        inner = self._body(in_tree, parts, (True,) * len(parts), scalars, grid, count)

        def body(*refs: Any) -> None:
            rest = iter(refs[:extra])
            sizes = [n if isinstance(n, int) else next(rest)[...] for n in grid]
            each_program(sizes, lambda: inner(*refs[extra:]))

        numbers = [fnp.asarray(n, np.int32) for n in traced]
        types = [*(typeof(n) for n in numbers), *avals]
        blocks = [Block(a.shape, (None,) * len(a.shape)) for a in (*types, *outs)]
        return self._bind(
            body, [*numbers, *arrays], types, outs, (), blocks, (), shift=extra
        )

    def _bind(
        self,
        body: Callable[..., None],
        arrays: Sequence[Any],
        avals: Sequence[Aval],
        outs: Sequence[Aval],
        grid: tuple[int, ...],
        blocks: Sequence[Block],
        kinds: tuple[str, ...],
        shift: int = 0,
    ) -> Sequence[Any]:
        aliases = tuple(sorted((i + shift, out) for i, out in self._aliases.items()))
        found = kernel_params(
            body, self._name, avals, outs, grid, blocks, self._scratch, aliases, kinds
        )
        results: Sequence[Any] = KernelCall.bind(
            *found.consts, *arrays, **vars(found.params)
        )
        return results

    def _kinds(
        self, grid: Sequence[int], out_blocks: Sequence[Block], outs: Sequence[Aval]
    ) -> tuple[str, ...]:
        """Returns which axes of the grid are parallel."""
        said = getattr(self._options, "dimension_semantics", None) or ()
        if said and len(said) != len(grid):
            raise ValueError(
                f"dimension_semantics={tuple(said)} must have an entry for each of the "
                f"{len(grid)} axes of the grid"
            )
        kinds = []
        for g in range(len(grid)):
            counted = bool(outs) and all(
                b.axes is not None and g in b.axes for b in out_blocks
            )
            word = str(getattr(said[g], "value", said[g])) if said else ""
            free = word.endswith("parallel") if said else not self._scratch
            kinds.append(PARALLEL if counted and free else ARBITRARY)
        return tuple(kinds)

    def _body(
        self,
        in_tree: Any,
        parts: Sequence[Part],
        views: Sequence[bool],
        scalars: Any,
        grid: Sequence[Any],
        count: int,
    ) -> Callable[..., None]:
        """Returns the kernel as a function of flat references."""
        whole = {
            i: count + out
            for i, out in self._aliases.items()
            if parts[i].dims is None and parts[count + out].dims is None
        }

        def body(*refs: Any) -> None:
            given = list(refs[: len(parts)])
            # An operand and a result in one memory are one reference.
            given = [given[whole.get(i, i)] for i in range(len(parts))]
            ids = [kernels.program_id(g) for g in range(len(grid))]
            read = scalars.unflatten(given[: scalars.num_leaves])
            seen = [
                part.view(ref, ids, read) if is_view else ref
                for part, ref, is_view in zip(parts, given, views, strict=True)
            ]
            args = in_tree.unflatten(seen[:count])
            outs = self._out_tree.unflatten(seen[count:])
            outs = (outs,) if self._is_one else outs
            scratch = self._scratch_tree.unflatten(list(refs[len(parts) :]))
            named = scratch if self._named else {}
            rest = () if self._named else scratch
            with named_axes(self._axes):
                returned: Any = self._kernel(*args, *outs, *rest, **named)
            if returned is not None:
                raise ValueError(
                    f"The kernel function {_described(self._kernel)} "
                    f"should return None. It returns {returned!r}"
                )

        return body


def each_program(sizes: Sequence[Any], program: Callable[[], None]) -> None:
    """Calls a function in a loop for each point of a grid, in row-major order.

    Args:
      sizes: of the axes, which may be traced.
      program: called where `program_id` gives the point.
    """
    total: Any = math.prod(n for n in sizes if isinstance(n, int))
    for n in sizes:
        total = total if isinstance(n, int) else total * n

    def step(number: Any, carry: Any) -> Any:
        ids: list[Any] = []
        for n in reversed(sizes):
            ids.insert(0, fnp.asarray(lax.rem(number, fnp.asarray(n, np.int32))))
            number = lax.div(number, fnp.asarray(n, np.int32))
        with in_program(ids, sizes):
            program()
        return carry

    if not sizes:
        with in_program((), ()):
            program()
        return
    lax.fori_loop(np.int32(0), fnp.asarray(total, np.int32), step, None)


def _require_written(part: Part) -> None:
    if any(isinstance(d, BoundedSlice) for d in part.dims or ()):
        raise NotImplementedError(
            f"{part.what}: a result cannot have a BoundedSlice: a slice shorter than "
            "block_size would be written whole; write a part of a whole reference, "
            "BlockSpec(memory_space=pl.ANY)"
        )


def _is_named(n: Any) -> bool:
    """Returns whether a size of a grid has a name: `("i", 4)`."""
    return isinstance(n, tuple) and len(n) == 2


def _is_memory(x: Any) -> bool:
    return isinstance(x, MemoryRef | SemaphoreType)


def _is_spec(x: Any) -> bool:
    return x is None or x is no_block_spec or isinstance(x, BlockSpec | _Space)


def _matched(what: str, to: str, specs: Any, values: Any) -> list[Any]:
    """Returns the spec of each leaf of a pytree.

    Raises:
      ValueError: the trees differ.
    """
    count = len(tree.leaves(values))
    if specs is no_block_spec or (specs is None and what == "out_specs"):
        return [None] * count
    if isinstance(specs, list):
        specs = tuple(specs)
    found, structure = tree.flatten(specs, is_leaf=_is_spec)
    leaves, wanted = tree.flatten(values, is_leaf=lambda x: x is None)
    if structure != wanted:
        _mismatch(what, to, specs, values)
    return [s for s, x in zip(found, leaves, strict=True) if x is not None]


def _mismatch(what: str, to: str, specs: Any, values: Any) -> None:
    lines = list(_differences(what, to, specs, values, ""))
    shown = "\n".join(f"    * {line}" for line in lines)
    raise ValueError(
        f"Pytree for `{what}` and {f'`{to}`' if to == 'out_shape' else to} do not "
        f"match. There are {len(lines)} mismatches, including:\n{shown}"
    )


def _differences(what: str, to: str, spec: Any, value: Any, path: str) -> Any:
    name = f"`{to}`" if to == "out_shape" else to
    where = f" at {path}" if path else ""
    node, other_node = (isinstance(x, tuple | list | dict) for x in (spec, value))
    if not node and not other_node:
        return
    if not node:
        yield f"{where}, `{what}` is a pytree leaf but {name} is a {type(value)}"
    elif not other_node:
        yield f"{where}, `{what}` is a {type(spec)} but {name} is a pytree leaf"
    elif type(spec) is not type(value) or len(spec) != len(value):
        kinds = [f"{type(x).__name__} of length {len(x)}" for x in (spec, value)]
        yield f"{where}, `{what}` is a {kinds[0]} but {name} is a {kinds[1]}"
    else:
        keys = sorted(spec) if isinstance(spec, dict) else range(len(spec))
        for key in keys:
            other = value[key] if not isinstance(value, dict) else value.get(key)
            yield from _differences(what, to, spec[key], other, f"{path}[{key!r}]")


def _paths(values: Any) -> list[str]:
    """Returns where each leaf of a pytree is: `[0]['a']`."""
    pairs, _ = tree.flatten_with_path(values)
    return [tree.keystr(path) for path, _ in pairs]


def _size(n: Any) -> Any:
    """Returns a size of the grid: an int, or a traced integer."""
    if isinstance(n, int | np.integer) and not isinstance(n, bool):
        return int(n)
    if isinstance(n, Array | np.ndarray) and dtypes.is_integer(typeof(n).dtype):
        return n
    raise ArgumentError(f"pallas_call: grid must be of integers, got {n!r}")


def _text(aval: Aval) -> str:
    return f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def _padded(aval: Aval, paddings: Any) -> Aval:
    if not paddings:
        return aval
    shape = [n + sum(p) for n, p in zip(aval.shape, paddings, strict=True)]
    return Aval(tuple(shape), aval.dtype)


def _cropped(x: Any, paddings: Any) -> Any:
    if not paddings:
        return x
    return x[
        tuple(slice(a, n - b) for n, (a, b) in zip(x.shape, paddings, strict=True))
    ]


def run_scoped(
    function: Callable[..., Any],
    *types: Any,
    collective_axes: Any = (),
    **named: Any,
) -> Any:
    """Calls a function with new references.

    Args:
      function: of references.
      *types: of the references, pytrees.
      collective_axes: has no effect.
      **named: types of those that are passed by name.

    Returns:
      What the function returns.
    """
    args = tree.map(allocate, types, is_leaf=_is_memory)
    return function(*args, **tree.map(allocate, named, is_leaf=_is_memory))
