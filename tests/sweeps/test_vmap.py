"""`vmap` of every public function, with every mapped axis, against a Python loop.

A case says which operands of a call are mapped, and along which axis of each. What does
not depend on mapped operands stays as it is: `out_axes=None` is refused unless all rows
are alike, and of what passes through control flow unchanged it has to be taken.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax, tree, vmap
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import as_array, is_arraylike
from fxflow.errors import ArgumentError, NotDifferentiableError
from tests.sweeps.catalogue import Call, catalogue
from tests.sweeps.sampling import sample

SIZE = 3
AXES = (0, 1, -1, None)


@dataclass(frozen=True)
class Case:
    """A call some of whose operands are mapped.

    Attributes:
      call: of the catalogue.
      in_axes: for each operand its mapped axis, or None.
    """

    call: Call
    in_axes: tuple[int | None, ...]

    def __str__(self) -> str:
        return f"{self.call}-{','.join(map(str, self.in_axes))}"

    def rows(self) -> list[list[Any]]:
        """Returns the arrays of each row; the same array where nothing is mapped."""
        drawn = [self.call.draw(seed=i) for i in range(SIZE)]
        return [
            [
                mine if axis is not None else first
                for mine, first, axis in zip(row, drawn[0], self.in_axes, strict=True)
            ]
            for row in drawn
        ]

    def stacked(self, rows: list[list[Any]]) -> list[Any]:
        """Returns the arrays to be mapped."""
        columns = zip(*rows, strict=True)
        return [
            column[0] if axis is None else np.stack(column, axis)
            for column, axis in zip(columns, self.in_axes, strict=True)
        ]


def _cases(call: Call) -> list[Case]:
    """Returns all choices of mapped axes, of calls of many operands the plainest."""
    operands = call.operands
    choices = []
    for operand in operands:
        fits = [a for a in AXES if a is None or -1 <= a <= len(operand.shape)]
        choices.append(fits if len(operands) <= 2 else [fits[0], fits[-2], None])
    found = itertools.product(*choices)
    return [Case(call, axes) for axes in found if any(a is not None for a in axes)]


#: Random draws with one key for all rows are other draws than those of each row.
CALLS = [c for c in catalogue() if c.traceable and c.operands and not c.random]
CASES = [case for call in CALLS for case in _cases(call)]
SMOOTH = [c for c in CALLS if c.differentiable and "f" in c.kinds]


def leaves_of(value: Any) -> list[Any] | None:
    """Returns the leaves of a result, or None if one is not an array."""
    leaves = tree.leaves(value)
    return leaves if all(map(is_arraylike, leaves)) else None


def host(value: Any) -> Any:
    """Returns an array for NumPy to compare; keys by their data."""
    if dtypes.is_key(getattr(value, "dtype", None)):
        value = fxflow.random.key_data(value)
    return np.asarray(value)


def require_same(got: Any, want: Any, tolerance: float = 2e-4) -> None:
    """Checks that two arrays are alike but for rounding."""
    got, want = host(got), host(want)
    assert got.shape == want.shape, f"shape {got.shape}, not {want.shape}"
    assert got.dtype == want.dtype, f"dtype {got.dtype}, not {want.dtype}"
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    wide = complex if want.dtype.kind == "c" else float
    np.testing.assert_allclose(
        got.astype(wide), want.astype(wide), rtol=tolerance, atol=tolerance
    )


def require_rows(got: Any, rows: list[Any], out_axes: Any) -> None:
    """Checks the results of a vectorized function against those of each row."""
    axes = tree.leaves(out_axes)
    for i, row in enumerate(rows):
        columns = zip(tree.leaves(got), tree.leaves(row), axes, strict=True)
        for whole, one, axis in columns:
            require_same(np.take(host(whole), i, axis), host(as_array(one)))


def out_axes_like(row: Any, wanted: int) -> Any:
    """Returns a mapped axis for each leaf of a result, 0 where there is no other."""
    return tree.map(lambda x: wanted if np.ndim(x) else 0, row)


# -- the catalogue ---------------------------------------------------------------------


@pytest.mark.parametrize("case", sample(CASES, 60, of="vmap"), ids=str)
def test_is_a_loop(case: Case) -> None:
    rows = case.rows()
    found = [case.call.run(*row) for row in rows]
    if leaves_of(found[0]) is None:
        return  # a dtype, say: nothing to map
    if len({tree.structure(f) for f in found}) > 1:
        return  # what the values decide, the shape of a result say
    given = case.stacked(rows)
    out_axes = out_axes_like(found[0], (0, 1, -1)[len(str(case)) % 3])
    got = vmap(case.call.run, case.in_axes, out_axes)(*given)
    assert tree.structure(got) == tree.structure(found[0])
    require_rows(got, found, out_axes)
    try:
        same = vmap(case.call.run, case.in_axes, out_axes=None)(*given)
    except ArgumentError as error:
        assert "depends on mapped arguments" in str(error)
        return
    for row in found:
        for a, b in zip(tree.leaves(same), tree.leaves(row), strict=True):
            require_same(a, as_array(b))


@pytest.mark.parametrize("case", sample(CASES, 12, of="vmap in jit"), ids=str)
def test_with_jit(case: Case) -> None:
    """Compiled as a whole, of a compiled function, and of a mapped one."""
    rows = case.rows()
    run = case.call.run
    found = [run(*row) for row in rows]
    if leaves_of(found[0]) is None:
        return
    given = case.stacked(rows)
    axes = out_axes_like(found[0], 0)
    require_rows(jit(vmap(run, case.in_axes))(*given), found, axes)
    require_rows(vmap(jit(run), case.in_axes)(*given), found, axes)
    behind = tuple(None if a is None else 0 for a in case.in_axes)
    twice = vmap(vmap(run, case.in_axes, out_axes=0), behind, out_axes=-1)
    both = [x if a is None else np.stack([x, x]) for x, a in zip(given, behind)]
    for leaf, want in zip(
        tree.leaves(twice(*both)), tree.leaves(vmap(run, case.in_axes)(*given))
    ):
        require_same(jit(lambda x: x[..., 1])(leaf), want)


def loss_of(call: Call) -> Callable[..., Any]:
    """Returns a number that depends on all results of a call."""

    def loss(*arrays: Any) -> Any:
        parts = [
            fnp.sum(fnp.real(x) * fnp.cos(fnp.arange(np.size(x)).reshape(np.shape(x))))
            for x in map(fnp.asarray, tree.leaves(call.run(*arrays)))
            if fnp.issubdtype(x.dtype, np.inexact)
        ]
        return sum(parts, fnp.float32(0.0))

    return loss


@pytest.mark.parametrize("call", sample(SMOOTH, 12, of="vmap of grad"), ids=str)
def test_gradients_agree_by_row_and_vmap(call: Call) -> None:
    """The gradients of the rows, by the two orders of `grad` and `vmap`."""
    positions = [
        i for i, o in enumerate(call.operands) if "f" in o.kinds and not o.dtype
    ]
    rows = [call.draw(np.float32, seed=i) for i in range(SIZE)]
    positions = [i for i in positions if rows[0][i].dtype == np.float32]
    if not positions:
        return
    loss = loss_of(call)
    slope = grad(loss, positions)
    try:
        found = [slope(*row) for row in rows]
    except NotDifferentiableError:
        return  # by one of the operands
    given = [np.stack(column) for column in zip(*rows, strict=True)]
    axes = out_axes_like(found[0], 0)
    require_rows(vmap(slope)(*given), found, axes)
    require_rows(jit(vmap(slope))(*given), found, axes)
    total = grad(lambda *arrays: vmap(loss)(*arrays).sum(), positions)
    require_rows(total(*given), found, axes)


# -- control flow ----------------------------------------------------------------------

Pair = Callable[[Any, Any], tuple[Any, Any]]


def doubled(x: Any, w: Any) -> tuple[Any, Any]:
    return 2.0 * x, w


def with_jvp(g: Pair) -> Pair:
    f = fxflow.custom_jvp(g)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents))
    return f


def with_vjp(g: Pair) -> Pair:
    f = fxflow.custom_vjp(g)
    f.defvjp(lambda *args: (g(*args), None), lambda _, cts: cts)
    return f


def through_root(g: Pair) -> Pair:
    def run(x: Any, w: Any) -> tuple[Any, Any]:
        root = lax.custom_root(lambda v: v - w, w, lambda f, v: w, lambda _, y: y)
        return g(x, root)

    return run


def along_axis(f: Pair) -> Pair:
    def run(x: Any, w: Any) -> tuple[Any, Any]:
        y, w = f(fnp.atleast_1d(x), w)
        return y.reshape(fnp.shape(x)), w

    return run


#: Each makes a function of a mapped `x` and an unmapped `w` that returns `w` as it is.
THROUGH: dict[str, Callable[[Pair], Pair]] = {
    "jit": jit,
    "checkpoint": fxflow.checkpoint,
    "cond": lambda g: lambda x, w: lax.cond(x.sum() < 3, g, doubled, x, w),
    "cond of w": lambda g: lambda x, w: lax.cond(w.sum() > 0, g, doubled, x, w),
    "switch": lambda g: (
        lambda x, w: lax.switch(
            fnp.int32(x.sum()), [g, doubled, lambda x, w: (x, w)], x, w
        )
    ),
    "while": lambda g: (
        lambda x, w: lax.while_loop(
            lambda c: (c[0] < 3) & (c[1].sum() < 9),
            lambda c: (c[0] + 1, *g(*c[1:])),
            (0, x, w),
        )[1:]
    ),
    "while of w": lambda g: (
        lambda x, w: lax.while_loop(
            lambda c: c[0] < w.sum(), lambda c: (c[0] + 1, *g(*c[1:])), (0, x, w)
        )[1:]
    ),
    "fori": lambda g: lambda x, w: lax.fori_loop(0, 2, lambda _, c: g(*c), (x, w)),
    "fori of a number": lambda g: (
        lambda x, w: lax.fori_loop(0, fnp.int32(x.sum()), lambda _, c: g(*c), (x, w))
    ),
    "scan": lambda g: (
        lambda x, w: lax.scan(lambda c, _: (g(*c), None), (x, w), length=2)[0]
    ),
    "scan of slices": lambda g: along_axis(
        lambda x, w: lax.scan(lambda c, v: (c, g(v, c)[0]), w, x)[::-1]
    ),
    "map": lambda g: along_axis(
        lambda x, w: (lax.map(lambda v: g(v, w)[0], x), g(x, w)[1])
    ),
    "associative_scan": lambda g: along_axis(
        lambda x, w: g(lax.associative_scan(fnp.add, x), w)
    ),
    "custom_jvp": with_jvp,
    "custom_vjp": with_vjp,
    "linear_solve": lambda g: (
        lambda x, w: g(
            *lax.custom_linear_solve(
                lambda v: (x * v[0], 2.0 * v[1]),
                (x, w),
                lambda _, b: (b[0] / x, b[1]),
            )
        )
    ),
    "root": through_root,
}


@pytest.mark.parametrize(
    ("outer", "inner"),
    sample(list(itertools.product(THROUGH, THROUGH)), 25, of="control flow"),
)
def test_what_passes_through_control_flow_is_not_mapped(outer: str, inner: str) -> None:
    fun = THROUGH[outer](THROUGH[inner](doubled))
    x = np.float32([[0.5, 0.25], [1.5, 0.5], [4.0, 1.0]])
    w = np.float32([0.5, 0.75])
    rows = [fun(row, w) for row in x]
    expected = np.stack([row[0] for row in rows])
    mapped = vmap(fun, in_axes=(0, None), out_axes=(0, None))
    nested = vmap(mapped, in_axes=(0, None), out_axes=(0, None))
    for run in (mapped, jit(mapped)):
        first, second = run(x, w)
        np.testing.assert_allclose(first, expected, rtol=1e-5)
        np.testing.assert_array_equal(second, w)
    first, second = nested(np.stack([x, x]), w)
    np.testing.assert_allclose(first[1], expected, rtol=1e-5)
    np.testing.assert_array_equal(second, w)
