"""`check`: finds mistakes in kernels that a single run does not show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.core.ir.graph import Node
from fxflow.core.ir.higher_order import run_host, watch
from fxflow.core.source import describe
from fxflow.errors import KernelError
from fxflow.lax.kernels.blocks import ARBITRARY, PARALLEL
from fxflow.lax.kernels.host import Ids, Run, checking, overlap
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.uses import uses_of
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.inspection import make_graph
from fxflow.transforms.jit import jit

#: Findings of one kind that are listed for a kernel.
_LISTED = 3


def check(
    function: Callable[..., Any],
    *args: Any,
    reference: Callable[..., Any] | None = None,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    seed: int = 0,
) -> Any:
    """Runs a function that calls kernels, and looks for mistakes in them.

    The kernels are run program by program with NumPy: slowly, so use small arrays. It
    finds

    - elements that two parallel programs write;
    - elements that no program writes, and results that depend on memory that no program
      has written;
    - indices outside of a block, and blocks outside of an array;
    - results that depend on the order of parallel programs;
    - results that differ from those of the compiled kernel, or of a reference.

    Args:
      function: a kernel, or a function that calls kernels.
      *args: its arguments: pytrees of arrays.
      reference: a function of the same arguments that gives the right results; None:
        each kernel, and each derivative of one, is compared with the reference that it
        has, if any, or with the derivative of that.
      rtol, atol: tolerances for the last point, and for sums in another order.
      seed: seed of the other order of programs.

    Returns:
      The function's results.

    Raises:
      KernelError: what was found, with the programs and the lines.

    Example:
      >>> from fxflow import kernels
      >>> def double(x, y):
      ...     y[0] = 2 * x[0]
      >>> f = kernels.call(double, fnp.ones(2))
      >>> kernels.check(f, fnp.ones(2))
      Traceback (most recent call last):
        ...
      fxflow.errors.KernelError: double: no program writes 1 of 2 elements of result...
    """
    traced = make_graph(lambda *given: tree.leaves(function(*given)))(*args)
    graph = inlined(traced.graph, CALLS)
    operands = [np.asarray(c) for c in traced.consts]
    operands += [np.asarray(x) for x in tree.leaves(args)]
    findings = Findings(rtol, atol, seed, own_reference=reference is None)
    with _checked(findings):
        values = run_host(graph, operands)
    results = function(*args)
    if not findings.messages:
        findings.compare(values, tree.leaves(jit(function)(*args)), "compiled kernel")
        if reference is not None:
            expected = tree.leaves(reference(*args))
            findings.compare(values, expected, "reference")
    if findings.messages:
        raise KernelError("\n".join(findings.messages))
    return results


@contextmanager
def _checked(findings: Findings) -> Iterator[None]:
    before, checking.kernel = checking.kernel, findings.kernel
    try:
        yield
    finally:
        checking.kernel = before


class Findings:
    """What is wrong with the kernels of a function.

    Args:
      rtol, atol, seed: see `check`.
      own_reference: whether kernels are compared with the references that they have.

    Attributes:
      messages: one for each finding.
    """

    def __init__(
        self, rtol: float, atol: float, seed: int, *, own_reference: bool = True
    ) -> None:
        self._own_reference = own_reference
        self.messages: list[str] = []
        self._rtol, self._atol, self._seed = rtol, atol, seed
        self._counts: dict[tuple[str, str], int] = {}

    def add(self, kernel: str, kind: str, text: str) -> None:
        """Adds a finding, unless its kernel has some of that kind already."""
        count = self._counts.get((kernel, kind), 0)
        self._counts[kernel, kind] = count + 1
        if count < _LISTED:
            self.messages.append(f"{kernel}: {text}")

    def compare(
        self, ours: Sequence[Any], theirs: Sequence[Any], what: str, prefix: str = ""
    ) -> None:
        """Compares results with those of another way to compute them."""
        if len(ours) != len(theirs):
            self.messages.append(
                f"the {what} gives {len(theirs)} results, the kernel {len(ours)}"
            )
            return
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            x, y = np.asarray(a), np.asarray(b)
            if x.shape != y.shape:
                self.messages.append(
                    f"result {i} has the shape {x.shape}, but that of the {what} "
                    f"{y.shape}"
                )
            elif not self._close(x, y).all():
                at = _first(~self._close(x, y))
                self.messages.append(
                    f"{prefix}element {at} of result {i} is {x[at]}, but that of "
                    f"the {what} is {y[at]}"
                )

    def _close(self, x: Any, y: Any) -> Any:
        return near(x, y, self._rtol, self._atol)

    # -- one kernel --------------------------------------------------------------------

    def kernel(self, params: KernelParams, operands: Sequence[Any]) -> list[Any]:
        """Runs a kernel; adds what is wrong with it."""
        name, found = params.graph.name, len(self.messages)
        self._blocks(name, params, operands)
        runs = [Run(params, operands, _poison(k)) for k in (0, 1)]
        owners = [np.full(a.shape, -1, np.int32) for a in params.outs]
        programs = list(np.ndindex(params.grid))
        outside = _Outside(self, name)
        for number, ids in enumerate(programs):
            before, after = [], []
            for k, run in enumerate(runs):
                blocks = _forgotten(params, run, owners, programs, ids, _poison(k))
                before.append(blocks)
                if k:
                    after.append(run.compute(ids, blocks))
                    continue
                with outside.watching(ids):
                    after.append(run.compute(ids, blocks))
            changed = [
                _differs(b0, a0) | _differs(b1, a1)
                for b0, a0, b1, a1 in zip(
                    before[0], after[0], before[1], after[1], strict=True
                )
            ]
            for run, results in zip(runs, after, strict=True):
                kept = [
                    np.where(c, a, b)
                    for c, a, b in zip(changed, results, run.blocks(ids), strict=True)
                ]
                run.store(ids, kept)
            self._races(name, params, owners, programs, number, changed)
        self._unwritten(name, params, runs, owners)
        self._orders(name, params, operands, programs, runs[0].results)
        compared = self._own_reference and len(self.messages) == found
        if compared and params.reference is not None:
            expected = run_host(params.reference, operands)
            self.compare(runs[0].results, expected, "reference", f"{name}: ")
        return runs[0].results

    def _blocks(self, name: str, params: KernelParams, operands: Sequence[Any]) -> None:
        """Looks for blocks outside of their arrays."""
        arrays = [
            *((f"operand {i}", np.shape(x)) for i, x in enumerate(operands)),
            *((f"result {i}", a.shape) for i, a in enumerate(params.outs)),
        ]
        for (what, shape), block in zip(arrays, params.blocks, strict=True):
            for ids in np.ndindex(params.grid):
                starts = block.starts(ids)
                if any(
                    not 0 <= s < max(n, 1) for s, n in zip(starts, shape, strict=True)
                ):
                    self.add(
                        name,
                        "block",
                        f"the block of program {ids} starts at {starts} of {what}, "
                        f"which has the shape {shape}",
                    )

    def _races(
        self,
        name: str,
        params: KernelParams,
        owners: Sequence[Any],
        programs: Sequence[Ids],
        number: int,
        changed: Sequence[Any],
    ) -> None:
        """Notes which elements a program has written, and which others had."""
        ids = programs[number]
        sums = params.sums()
        for i, (owner, written) in enumerate(zip(owners, changed, strict=True)):
            block = params.out_blocks[i]
            there, here = overlap(owner.shape, block, ids)
            mask = np.asarray(written).reshape(block.lengths)[here]
            known = owner[(*there, ...)]
            for other in np.unique(known[mask & (known >= 0)]):
                if not sums[i] and _parallel(params, programs[other], ids):
                    at = _first(mask & (known == other))
                    element = tuple(s.start + k for s, k in zip(there, at, strict=True))
                    self.add(
                        name,
                        "race",
                        f"programs {programs[other]} and {ids}, which are parallel, "
                        f"write element {element} of result {i} "
                        f"({_line(params, i)})",
                    )
            known[mask] = number

    def _unwritten(
        self,
        name: str,
        params: KernelParams,
        runs: Sequence[Run],
        owners: Sequence[Any],
    ) -> None:
        """Looks for elements that no program wrote."""
        sums, keeps = params.sums(), params.keeps_contents()
        for i, owner in enumerate(owners):
            one, other = (run.results[i] for run in runs)
            missing = owner < 0
            if missing.any() and not sums[i] and not keeps[i]:
                self.add(
                    name,
                    "unwritten",
                    f"no program writes {int(missing.sum())} of {missing.size} "
                    f"elements of result {i}, such as {_first(missing)} "
                    f"({_line(params, i)})",
                )
            strange = _differs(one, other) & ~missing
            if strange.any():
                self.add(
                    name,
                    "uninitialized",
                    f"element {_first(strange)} of result {i} depends on a result or "
                    f"scratch that no program had written ({_line(params, i)})",
                )

    def _orders(
        self,
        name: str,
        params: KernelParams,
        operands: Sequence[Any],
        programs: Sequence[Ids],
        results: Sequence[Any],
    ) -> None:
        """Runs parallel programs in other orders, and compares the results."""
        rows: dict[Ids, list[Ids]] = {}
        for ids in programs:
            row = tuple(
                i for i, k in zip(ids, params.kinds, strict=True) if k != ARBITRARY
            )
            rows.setdefault(row, []).append(ids)
        shuffled = list(rows.values())
        random.Random(self._seed).shuffle(shuffled)
        for order in (list(reversed(rows.values())), shuffled):
            run = Run(params, operands, _poison(0))
            again = run.all(ids for row in order for ids in row)
            for i, (x, y) in enumerate(zip(results, again, strict=True)):
                sums = params.sums()[i]
                wrong = ~self._close(x, y) if sums else _differs(x, y)
                if wrong.any():
                    self.add(
                        name,
                        "order",
                        f"element {_first(wrong)} of result {i} depends on the order "
                        f"of parallel programs ({_line(params, i)})",
                    )
                    return


class _Outside:
    """Looks for indices outside of arrays while a program runs."""

    def __init__(self, findings: Findings, name: str) -> None:
        self._findings, self._name = findings, name
        self._ids: Ids = ()

    @contextmanager
    def watching(self, ids: Ids) -> Iterator[None]:
        """Looks at the operations of a program."""
        self._ids, before, watch.see = ids, watch.see, self.see
        try:
            yield
        finally:
            watch.see = before

    def see(self, node: Node, operands: list[Any]) -> None:
        """Adds a finding if an index of the operation is outside of its array."""
        bounds = _bounds(node, operands)
        if bounds is None:
            return
        axes, indices, most = bounds
        for axis, index, end in zip(axes, indices, most, strict=True):
            wrong = (index < 0) | (index > end)
            if np.any(wrong):
                value = np.asarray(index)[np.asarray(wrong)].flat[0]
                length = np.shape(operands[0])[axis]
                self._findings.add(
                    self._name,
                    "outside",
                    f"program {self._ids} uses the index {value} on axis {axis}, which "
                    f"has the length {length}, of {typeof(operands[0])} "
                    f"({describe(node.source)})",
                )


def _bounds(node: Node, operands: list[Any]) -> Any:
    """Returns the axes, indices and largest indices of a read or write, or None."""
    name, params = node.primitive.name, node.params
    shape = np.shape(operands[0]) if operands else ()
    if name in ("dynamic_slice", "dynamic_update_slice"):
        slices = name == "dynamic_slice"
        sizes = params["slice_sizes"] if slices else np.shape(operands[1])
        starts = operands[1 if slices else 2 :]
        ends = [n - k for n, k in zip(shape, sizes, strict=True)]
        return range(len(shape)), starts, ends
    numbers: Any = params.get("dimension_numbers")
    if name == "gather" and str(params["mode"].name) in ("PROMISE_IN_BOUNDS", "CLIP"):
        axes = numbers.start_index_map
        ends = [shape[d] - params["slice_sizes"][d] for d in axes]
    elif name.startswith("scatter") and hasattr(numbers, "inserted_window_dims"):
        axes = numbers.scatter_dims_to_operand_dims
        windows = iter(np.shape(operands[2])[d] for d in numbers.update_window_dims)
        held = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
        sizes = [1 if d in held else next(windows) for d in range(len(shape))]
        ends = [shape[d] - sizes[d] for d in axes]
    else:
        return None
    return axes, [operands[1][..., k] for k in range(len(axes))], ends


# -- elements --------------------------------------------------------------------------


def _poison(number: int) -> Callable[[Aval, tuple[int, ...]], Any]:
    """Returns what fills memory that no program has written."""

    def filled(aval: Aval, shape: tuple[int, ...]) -> Any:
        kind = aval.dtype
        if dtypes.is_bool(kind):
            return np.full(shape, bool(number), kind)
        if dtypes.is_integer(kind):
            most = int(dtypes.iinfo(kind).max)
            return np.full(shape, (91 % most, 57 % most)[number], kind)
        return np.full(shape, (np.nan, 13.25)[number]).astype(kind)

    return filled


def near(x: Any, y: Any, rtol: float, atol: float) -> Any:
    """Returns where two arrays agree: integers exactly, NaN with NaN.

    Args:
      x, y: NumPy arrays of one shape.
      rtol, atol: tolerances, at least what the dtype can hold.
    """
    if not dtypes.is_inexact(x.dtype):
        return np.asarray(x == y)
    kind = np.complex128 if x.dtype.kind == "c" else np.float64
    # Half precision does not hold as many digits as the tolerances ask for.
    eps = float(dtypes.finfo(x.dtype).eps)
    if x.dtype.itemsize < 4:
        atol = max(atol, 8 * eps)
    x, y, rtol = x.astype(kind), y.astype(kind), max(rtol, 8 * eps)
    return np.asarray(np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True))


def _differs(x: Any, y: Any) -> Any:
    """Returns where two arrays differ; NaN is like NaN."""
    x, y = np.asarray(x), np.asarray(y)
    same = x == y
    if x.dtype.kind not in "biu":
        same = same | ((x != x) & (y != y))
    return ~np.asarray(same)


def _forgotten(
    params: KernelParams,
    run: Run,
    owners: Sequence[Any],
    programs: Sequence[Ids],
    ids: Ids,
    filled: Callable[[Aval, tuple[int, ...]], Any],
) -> list[Any]:
    """Returns a program's blocks without what parallel programs wrote to them."""
    blocks = run.blocks(ids)
    for i, (owner, block) in enumerate(zip(owners, params.out_blocks, strict=True)):
        if params.sums()[i]:
            continue
        there, here = overlap(owner.shape, block, ids)
        others = [
            k
            for k in np.unique(owner[there])
            if k >= 0 and _parallel(params, programs[k], ids)
        ]
        if others:
            mask = np.zeros(block.lengths, bool)
            mask[here] = np.isin(owner[there], others)
            poison = filled(params.outs[i], block.seen)
            blocks[i] = np.where(mask.reshape(block.seen), poison, blocks[i])
    return blocks


def _parallel(params: KernelParams, one: Ids, other: Ids) -> bool:
    """Returns whether two programs are independent of each other."""
    return any(
        a != b and kind == PARALLEL
        for a, b, kind in zip(one, other, params.kinds, strict=True)
    )


def _first(mask: Any) -> tuple[int, ...]:
    """Returns the index of the first element that is True."""
    return tuple(int(i) for i in np.argwhere(np.atleast_1d(mask))[0])[: np.ndim(mask)]


def _line(params: KernelParams, result: int) -> str:
    """Returns the line that writes to a result."""
    _, _, uses, _ = params.split(uses_of(params.graph))
    found = uses[result].first_write
    return describe(found.source) if found else "nothing writes to it"
