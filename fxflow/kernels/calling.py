"""`call`: the general form of a kernel, with a grid and index maps."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import AbstractRef, Aval, as_array, dtypes, typeof
from fxflow.core.arrays.array import is_arraylike, like_type, not_an_array
from fxflow.core.boundary import boundary
from fxflow.core.ir.discharge import REFS
from fxflow.core.ir.graph import Graph, Var
from fxflow.core.ir.higher_order import split_at
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.source import describe, located, name_of
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from fxflow.kernels.body import in_program
from fxflow.kernels.signatures import counted, reference_names, require_takes
from fxflow.lax.kernels.blocks import ARBITRARY, ID, KINDS, PARALLEL, Block
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.params import PLATFORMS, KernelParams
from fxflow.lax.kernels.uses import uses_of

IndexMap = Callable[..., Any]


@dataclass(frozen=True)
class BlockSpec:
    """Which block of an array a program gets.

    Attributes:
      shape: shape of the block, a length for each axis of the array; None for an axis
        of length 1 that the program does not see. Left out, the block is the array.
      index_map: from the ids of a program to the index of its block, in units of
        blocks: a tuple of one integer for each axis. Left out, it is the first block.
    """

    shape: tuple[int | None, ...] | None = None
    index_map: IndexMap | None = None


@boundary
def call(
    body: Callable[..., None],
    out: Any,
    *,
    grid: int | Sequence[int] = (),
    in_specs: Sequence[BlockSpec] | None = None,
    out_specs: Any = None,
    scratch: Sequence[Any] = (),
    aliases: Mapping[int, int] | None = None,
    kinds: Sequence[str] | None = None,
    reference: Callable[..., Any] | None = None,
    name: str | None = None,
    platforms: Sequence[str] = PLATFORMS,
) -> Callable[..., Any]:
    """Runs a function on blocks of arrays, once for each point of a grid.

    The body gets references: to the blocks of the operands, which it reads, to those of
    the results, which it writes, and to scratch. It may call any function of arrays,
    and read arrays that it captures. Blocks that reach over the end of an array read
    zeros there, and what is written there is dropped.

    Args:
      body: `body(*inputs, *results, *scratch)`; returns nothing.
      out: type of the result (anything with a shape and a dtype), or a sequence of
        types.
      grid: the number of programs along each axis; programs run in row-major order if
        any axis is "arbitrary".
      in_specs: blocks of the operands; None: whole arrays.
      out_specs: blocks of the results, in the structure of `out`; None: whole arrays.
      scratch: types of arrays that belong to a program, or, along "arbitrary" axes, to
        all programs together.
      aliases: number of an operand → number of the result that starts with its
        contents.
      kinds: of each axis of the grid: "parallel": programs are independent, and write
        to distinct blocks; "arbitrary": they run in order, and see what the ones before
        wrote; "sum": results whose blocks do not depend on the axis are sums over it.
        None: parallel where all results depend on the axis, else arbitrary.
      reference: a function of the same arguments that gives the right results, which
        may be slow. `check` compares with it. It runs in place of the kernel where no
        compiler knows an operation of the body, and it is differentiated where the
        gradient is not a kernel: programs in order, or an index map.
      name: in messages and profiles; None: the body's.
      platforms: "cpu", "gpu", or both: where the kernel is compiled. Elsewhere, the
        reference runs, or the operations on whole arrays.

    Returns:
      A function of the operands that returns the results, in the structure of `out`.

    Raises:
      ArgumentError: an argument is not what is described here, or programs would write
        to one block at the same time.
      ShapeError, DtypeError: from the function: operands do not fit.

    Example:
      >>> def double(x, y):
      ...     y[...] = 2 * x[...]
      >>> rows = BlockSpec((2, 3), lambda i: (i, 0))
      >>> x = fnp.ones((5, 3))
      >>> call(double, x, grid=3, in_specs=[rows], out_specs=rows)(x).shape
      (5, 3)

    Source: Pallas's `pallas_call`.
    """
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not all(isinstance(n, int) and n >= 0 for n in sizes):
        raise ArgumentError(
            f"kernels.call: grid must be of ints that are not negative, got {grid!r}"
        )
    is_one = not isinstance(out, Sequence) or isinstance(out, str)
    outs = tuple(type_of(o, "kernels.call: out") for o in ([out] if is_one else out))
    specs = _out_specs(out_specs, is_one, len(outs))
    called = name or name_of(body)
    temporary = tuple(type_of(s, "kernels.call: scratch") for s in scratch)
    pairs = tuple(sorted((aliases or {}).items()))
    wanted = None if kinds is None else tuple(kinds)
    _check_kinds(wanted, sizes)
    where = compiled_platforms(called, platforms)

    @functools.wraps(body)
    def run(*operands: Any) -> Any:
        arrays = [operand(called, i, x) for i, x in enumerate(operands)]
        given = [BlockSpec()] * len(arrays) if in_specs is None else list(in_specs)
        if len(given) != len(arrays):
            raise ArgumentError(
                f"{called}: {len(arrays)} operands were given, but in_specs has "
                f"{len(given)} blocks"
            )
        avals = [typeof(x) for x in arrays]
        names = [f"operand {i}" for i in range(len(avals))]
        names += [f"result {i}" for i in range(len(outs))]
        blocks = [
            block_of(f"{called}: {name}", spec, aval, len(sizes))
            for name, spec, aval in zip(
                names, [*given, *specs], [*avals, *outs], strict=True
            )
        ]
        params = kernel_params(
            body, called, avals, outs, sizes, blocks, temporary, pairs, wanted
        )
        params = require_written(params, called, body)
        if reference is not None:
            params = with_reference(params, called, reference, avals)
        params = params.only_on(where)
        results = KernelCall.bind(*params.consts, *arrays, **vars(params.params))
        return results[0] if is_one else type_like(out, results)

    # Its parameters are the operands alone, not those of the body.
    del run.__wrapped__
    run.reference = reference  # type: ignore[attr-defined]
    return run


def type_like(out: Any, results: Sequence[Any]) -> Any:
    """Returns results as a tuple, or as a list if their types were in one."""
    return list(results) if isinstance(out, list) else tuple(results)


def type_of(value: Any, what: str = "kernels: a result") -> Aval:
    """Returns the type of a result or scratch.

    Args:
      value: anything with a shape and a dtype.
      what: it is the type of, in messages.

    Raises:
      ArgumentError: it has none.
      DtypeError: it is one of keys.
    """
    if not (is_arraylike(value) or hasattr(value, "dtype")):
        raise ArgumentError(
            f"{what} needs a type, something with a shape and a dtype such as "
            f"kernels.like(x), got {value!r}"
        )
    aval = like_type(value)
    if dtypes.is_key(aval.dtype):
        raise DtypeError(f"kernels: keys have no blocks, got {aval}")
    return Aval(aval.shape, aval.dtype)


def operand(called: str, number: int, x: Any) -> Any:
    """Returns an operand of a kernel as an array.

    Args:
      called: the kernel.
      number: of the operand.
      x: what was passed.

    Raises:
      ArgumentError: it is a reference, or not an array.
      DtypeError: it is an array of keys.
    """
    if type(x) in REFS:
        raise ArgumentError(
            f"{called}: operand {number} is a reference {x.aval}: pass its contents, "
            "ref[...], and write the result back"
        )
    if not is_arraylike(x):
        raise not_an_array(x, f"{called}: operand {number} is")
    x = as_array(x)
    if dtypes.is_key(x.dtype):
        raise DtypeError(
            f"{called}: operand {number} is {typeof(x)}: pass random.key_data(key)"
        )
    return x


def _out_specs(given: Any, is_one: bool, count: int) -> list[BlockSpec]:
    if given is None:
        return [BlockSpec()] * count
    specs = [given] if is_one and isinstance(given, BlockSpec) else list(given)
    if len(specs) != count:
        raise ArgumentError(
            f"kernels.call: {count} results, but out_specs has {len(specs)} blocks"
        )
    return specs


def _check_kinds(kinds: Sequence[str] | None, grid: Sequence[int]) -> None:
    if kinds is None:
        return
    if len(kinds) != len(grid) or not set(kinds) <= set(KINDS):
        raise ArgumentError(
            f"kernels.call: kinds must have one of {', '.join(map(repr, KINDS))} for "
            f"each of the {len(grid)} axes of the grid, got {tuple(kinds)!r}"
        )


# -- blocks ----------------------------------------------------------------------------


def block_of(called: str, spec: BlockSpec, aval: Aval, num_ids: int) -> Block:
    """Returns the block that a spec describes.

    Args:
      called: the kernel.
      spec: of the block.
      aval: type of the array.
      num_ids: the number of axes of the grid.

    Raises:
      ArgumentError, ShapeError: the spec does not fit the array.
    """
    if not isinstance(spec, BlockSpec):
        raise ArgumentError(
            f"{called}: a block is a BlockSpec, got {spec!r}; BlockSpec() is the whole "
            "array"
        )
    shape = aval.shape if spec.shape is None else tuple(spec.shape)
    if len(shape) != aval.ndim or not all(
        n is None or (isinstance(n, int) and n > 0) or n == aval.shape[i]
        for i, n in enumerate(shape)
    ):
        raise ShapeError(
            f"{called}: the block {shape} does not fit {aval}, which has {aval.ndim} "
            f"{'axis' if aval.ndim == 1 else 'axes'}: give a positive length for each "
            "axis, or None for one of length 1 that the program does not see"
        )
    if spec.index_map is None:
        return Block(shape, (None,) * len(shape))
    return Block(shape, _index(called, spec.index_map, num_ids, len(shape)))


def _index(called: str, index_map: IndexMap, num_ids: int, ndim: int) -> Any:
    """Returns which axes of the grid count blocks, or the graph of an index map."""
    try:
        inspect.signature(index_map).bind(*range(num_ids))
    except TypeError:
        raise ArgumentError(
            f"{called}: the index map {getattr(index_map, '__name__', index_map)} must "
            f"take {num_ids} ids, one for each axis of the grid"
        ) from None

    def run(*ids: Any) -> list[Any]:
        found = index_map(*ids)
        found = found if isinstance(found, tuple | list) else (found,)
        if len(found) != ndim:
            raise ArgumentError(
                f"{called}: an index map must return {ndim} integers, one for each "
                f"axis of the array, got {len(found)}"
            )
        for i in found:
            if (
                not is_arraylike(i)
                or typeof(i).ndim
                or not dtypes.is_integer(typeof(i).dtype)
            ):
                got = typeof(i) if is_arraylike(i) else repr(i)
                raise ArgumentError(
                    f"{called}: an index map must return integers, got {got}"
                )
        # A number as such is a constant of the graph; its conversion would not be.
        arrays = [
            as_array(np.int32(i) if isinstance(i, int | np.integer) else i)
            for i in found
        ]
        return [x.astype(np.int32) for x in arrays]

    graph, consts = trace_flat(run, [ID] * num_ids, name=f"index_map of {called}")
    if consts:
        raise ArgumentError(
            f"{called}: an index map must not capture arrays, got "
            f"{typeof(consts[0])}: pass it as an operand"
        )
    position = {var: i for i, var in enumerate(graph.inputs)}
    axes = [_axis(atom, position) for atom in graph.outputs]
    return graph if -1 in axes else tuple(axes)


def _axis(atom: Any, position: Mapping[Any, int]) -> int | None:
    """Returns the axis of the grid that an index is, None for 0, -1 for others."""
    value = getattr(atom, "value", None)
    if value is not None:
        return None if value == 0 else -1
    return position.get(atom, -1)


# -- the body --------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedKernel:
    """A kernel for operands of given types.

    Attributes:
      params: of the primitive.
      consts: captured arrays, its first operands.
    """

    params: KernelParams
    consts: list[Any]

    def only_on(self, platforms: tuple[str, ...]) -> TracedKernel:
        """Returns the kernel, compiled on some platforms alone."""
        if platforms == self.params.platforms:
            return self
        return TracedKernel(self.params.replace(platforms=platforms), self.consts)


def compiled_platforms(called: str, platforms: Sequence[str]) -> tuple[str, ...]:
    """Returns the platforms on which a kernel is compiled.

    Args:
      called: the name of the kernel.
      platforms: as the user wrote them.

    Raises:
      ArgumentError: there is no compiler of kernels for one.
    """
    if isinstance(platforms, str) or not set(platforms) <= set(PLATFORMS):
        raise ArgumentError(
            f"{called}: platforms is a sequence of {' and '.join(PLATFORMS)}, got "
            f"{platforms!r}"
        )
    return tuple(p for p in PLATFORMS if p in platforms)


def kernel_params(
    body: Callable[..., None],
    called: str,
    avals: Sequence[Aval],
    outs: Sequence[Aval],
    grid: tuple[int, ...],
    blocks: Sequence[Block],
    scratch: Sequence[Aval],
    aliases: tuple[tuple[int, int], ...],
    kinds: tuple[str, ...] | None,
) -> TracedKernel:
    """Traces the body of a kernel.

    Args:
      body: see `call`.
      called: its name.
      avals: types of the operands.
      outs: types of the results.
      grid: the number of programs along each axis.
      blocks: of operands and results.
      scratch: types of the scratch.
      aliases: see `call`.
      kinds: see `call`.

    Raises:
      ArgumentError: the body returns something, or programs would write to one block.
    """
    out_blocks = blocks[len(avals) :]
    wanted = kinds or _kinds(grid, out_blocks)
    _check_aliases(called, aliases, avals, outs)
    _check_races(called, grid, wanted, out_blocks)
    types = [
        a.update(shape=b.seen) for a, b in zip((*avals, *outs), blocks, strict=True)
    ]
    refs = [AbstractRef(Aval(a.shape, a.dtype)) for a in (*types, *scratch)]
    num_ids = len(grid)

    given_in_words = functools.partial(
        counted, operand=len(avals), result=len(outs), scratch=len(scratch)
    )

    def traced(*values: Any) -> None:
        ids, given = split_at(values, num_ids)
        require_takes(called, "the body", body, len(given), given_in_words())
        with in_program(ids, grid), _hinting():
            returned: Any = body(*given)  # type: ignore[func-returns-value]
        if returned is not None:
            raise ArgumentError(
                f"{called}: the body of a kernel writes its results to references and "
                f"returns nothing, got {type(returned).__name__}"
            )

    leaves = [ID] * num_ids + refs
    in_tree = tree.structure(tuple(range(len(leaves))))
    labels = lambda: [
        *(f"program_id({g})" for g in range(num_ids)),
        *reference_names(body, len(avals), len(outs), len(scratch)),
    ]
    found = trace_body(traced, in_tree, leaves, name=called, labels=labels)
    consts = found.consts
    for const in consts:
        if type(const) in REFS:
            raise ArgumentError(
                f"{called}: the body captures a reference {const.aval}: pass its "
                "contents as an operand"
            )
    inputs = found.graph.inputs
    count = len(consts)
    graph = _reordered(found.graph, count, num_ids)
    captured = [Block(v.aval.shape, (None,) * v.aval.ndim) for v in inputs[:count]]
    all_blocks = (*captured, *blocks)
    shifted = tuple((i + count, out) for i, out in aliases)
    params = KernelParams(graph, grid, wanted, all_blocks, tuple(outs), shifted)
    return TracedKernel(params, consts)


def require_written(
    traced: TracedKernel, called: str, body: Callable[..., None]
) -> TracedKernel:
    """Returns a kernel; checks that it writes its results, and nothing else.

    Args:
      traced: the kernel.
      called: its name.
      body: of it.

    Raises:
      ArgumentError: the body writes to an operand, or never to a result.
    """
    params, count = traced.params, len(traced.consts)
    key = ("writes its results", count, params.num_inputs, params.aliases)
    params.graph.remembered(key, lambda: _require_written(params, count, called, body))
    return traced


def _require_written(
    params: KernelParams, count: int, called: str, body: Callable[..., None]
) -> bool:
    _, operands, results, scratch = params.split(uses_of(params.graph))
    operands = operands[count:]
    keeps = params.keeps_contents()
    wrong = [use.writes > 0 for use in operands]
    wrong += [
        not (use.writes or kept) for use, kept in zip(results, keeps, strict=True)
    ]
    if True not in wrong:
        return True
    position = wrong.index(True)
    name = reference_names(body, len(operands), len(results), len(scratch))[position]
    name = f"{name}, {params.graph.in_avals[len(params.grid) + count + position]}"
    if position < len(operands):
        write: Any = operands[position].first_write
        raise ArgumentError(
            f"{called}: the body writes to {name}, at {describe(write.source)}, but "
            "operands are read-only: write to a result, or to a copy "
            "(fxflow.new_ref(ref[...]))"
        )
    raise ArgumentError(
        f"{called}: the body never writes to {name}: {located(body)} must write it "
        "with ref[...] = value (ref = value only renames it)"
    )


@contextmanager
def _hinting() -> Iterator[None]:
    """Says which functions take the place of Python's `if` and `for` in a body."""
    try:
        yield
    except TracerBoolConversionError as error:
        error.args = (
            f"{error} In the body of a kernel, @kernels.when(condition) runs a "
            "function where the condition holds.",
        )
        raise
    except TracerIntegerConversionError as error:
        error.args = (
            f"{error} In the body of a kernel, @kernels.loop(start, stop) runs a "
            "function for each integer of a range, and ref[kernels.ds(start, size)] "
            "is a part of a reference.",
        )
        raise


def with_reference(
    traced: TracedKernel,
    called: str,
    reference: Callable[..., Any],
    avals: Sequence[Aval],
) -> TracedKernel:
    """Returns a kernel with a reference.

    Args:
      traced: the kernel.
      called: its name.
      reference: a function of the operands; see `call`.
      avals: types of the operands.

    Raises:
      ArgumentError: the reference does not return what the kernel does.
    """
    params, count = traced.params, len(traced.consts)
    wanted = [(a.shape, a.dtype) for a in params.outs]

    def run(*operands: Any) -> list[Any]:
        words = counted(operand=len(operands))
        require_takes(called, "reference", reference, len(operands), words)
        outs = [as_array(x) for x in tree.leaves(reference(*operands))]
        if [(x.shape, x.dtype) for x in outs] != wanted:
            raise ArgumentError(
                f"{called}: the reference returns "
                f"{', '.join(str(typeof(x)) for x in outs) or 'nothing'}, but the "
                f"kernel {', '.join(map(str, params.outs))}: return the same types"
            )
        return [x.astype(x.dtype) for x in outs]

    leaves = [Aval(a.shape, a.dtype) for a in avals]
    in_tree = tree.structure(tuple(range(len(leaves))))
    found = trace_body(run, in_tree, leaves, name=f"reference of {called}")
    extra, num_ids = len(found.consts), len(params.grid)
    own, operands = split_at(found.graph.inputs, extra)
    # The body does not use what the reference captures, and the other way around.
    ids, rest = split_at(params.graph.inputs, num_ids)
    given = rest[:count]
    whole = tuple(Block(v.aval.shape, (None,) * v.aval.ndim) for v in own)
    graph, after = params.graph, found.graph
    if extra:
        unused = [Var(Aval(v.aval.shape, v.aval.dtype)) for v in own]
        graph = graph.replace(inputs=[*ids, *unused, *rest])
    if count:
        types = [getattr(v.aval, "inner_aval", v.aval) for v in given]
        after = after.replace(inputs=[*own, *(Var(a) for a in types), *operands])
    new = params.replace(
        graph=graph,
        blocks=(*whole, *params.blocks),
        aliases=tuple((i + extra, out) for i, out in params.aliases),
        reference=after,
    )
    return TracedKernel(new, [*found.consts, *traced.consts])


def _reordered(graph: Graph, count: int, num_ids: int) -> Graph:
    """Returns a graph whose ids come before what it captured."""
    if not count:
        return graph

    def derive() -> Graph:
        consts, ids, rest = split_at(graph.inputs, count, num_ids)
        return graph.replace(inputs=[*ids, *consts, *rest])

    return graph.remembered("ids first", derive)


def _kinds(grid: Sequence[int], out_blocks: Sequence[Block]) -> tuple[str, ...]:
    return tuple(
        PARALLEL if all(b.uses(g) for b in out_blocks) else ARBITRARY
        for g in range(len(grid))
    )


def _check_aliases(
    called: str,
    aliases: Sequence[tuple[int, int]],
    avals: Sequence[Aval],
    outs: Sequence[Aval],
) -> None:
    for i, out in aliases:
        if not (0 <= i < len(avals) and 0 <= out < len(outs)):
            raise ArgumentError(
                f"{called}: aliases has {i}: {out}, but the kernel has {len(avals)} "
                f"operands and {len(outs)} results"
            )
        if (avals[i].shape, avals[i].dtype) != (outs[out].shape, outs[out].dtype):
            raise ArgumentError(
                f"{called}: operand {i}, {avals[i]}, and result {out}, {outs[out]}, "
                "have different types, so one cannot take the other's place"
            )


def _check_races(
    called: str, grid: Sequence[int], kinds: Sequence[str], out_blocks: Sequence[Block]
) -> None:
    for g, (n, kind) in enumerate(zip(grid, kinds, strict=True)):
        for i, block in enumerate(out_blocks):
            if kind == PARALLEL and n > 1 and not block.uses(g):
                raise ArgumentError(
                    f"{called}: the {n} programs along axis {g} of the grid are "
                    f"parallel, but all write to one block of result {i}: make the "
                    'axis "sum" to add what they write, or "arbitrary" to run them in '
                    "order"
                )
