"""Shardings in types: how the results of each kind of operation are divided.

The axes of a mesh that are `AxisType.Explicit` belong to types: `f32[8@x,2]` is divided
over the axis `x` along its first axis. Where the operands' types do not say how a
result is divided, the user has to (`out_sharding=`, `reshard`, `auto_axes`).

A family of primitives names its rule in one line, `layout = layouts.elementwise`, say;
all rules are here. A rule gets the operands' types, the results' and the parameters,
and returns for each axis of the result the mesh axes that divide it, () for none (of
several results a list of these). An operand that is not divided goes with any other.
Operations without a rule ask for operands that are not divided.

A type says what its values are outside of programs: within one, the partitioner follows
the constraints, and has a free hand in between.

A sum over devices can be put off: `f32[8,4]{U:x}` is *unreduced* over `x`, that is,
within a program each device along `x` may hold a part of the sum that the array is.
Only what is linear takes it (`sums`, a second rule of few families); `reshard` ends it.
The cotangent of an unreduced array is whole on all devices along `x`: *reduced*,
`{R:x}`; that of a reduced one is unreduced. Whatever types say, the array is the sum:
parts are added up before an operation that does not take them, and where a program
ends, since code that reads a buffer does not know of them (`partition.constrained`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Aval, dtypes
from fxflow.devices.meshes import Layout
from fxflow.errors import ShardingTypeError

Entries = tuple[tuple[Any, ...], ...]
Avals = Sequence[Aval]
#: For each result, the axes over which it is unreduced, and those over which it is
#: reduced.
Sums = list[tuple[frozenset[Any], frozenset[Any]]]

NO_SUMS: tuple[frozenset[Any], frozenset[Any]] = (frozenset(), frozenset())

_HELP = (
    "reshard an operand first (fxflow.sharding.reshard(x, P(...))), or leave the "
    "operation to the compiler (fxflow.sharding.auto_axes(f, out_sharding=P(...)))"
)


def typed(
    primitive: Any, avals: Avals, params: dict[str, Any], out: Any, *, is_open: bool
) -> Any:
    """Returns the type of a result, or of several, as it is divided.

    Args:
      primitive: the operation.
      avals: types of the operands.
      params: its parameters.
      out: what `abstract` says.
      is_open: whether types leave open how results are divided.

    Raises:
      ShardingTypeError: the operands do not go together, or do not say how the result
        is divided.
    """
    divided = [a.layout for a in avals if a.layout is not None]
    if not divided and not primitive.names_layout:
        return out
    outs: list[Aval] = list(out) if primitive.multi else [out]
    found: list[Layout | None] = [None] * len(outs)
    if not is_open:
        own = primitive.own_layout(params, outs)
        if own is not None:
            found = [own.checked(o.shape, primitive.name) for o in outs]
        elif divided:
            mesh, *others = dict.fromkeys(layout.mesh for layout in divided)
            if others:
                raise ShardingTypeError(
                    f"{primitive.name}: operands are divided over different meshes: "
                    f"{mesh} and {others[0]}"
                )
            given = primitive.layout(avals, outs, params)
            each = given if primitive.multi else [given]
            sums = [NO_SUMS] * len(outs)
            if any(layout.sums for layout in divided):
                sums = primitive.sums(avals, outs)
            found = [
                Layout(mesh, e, *s).checked(o.shape, _operation(primitive, avals))
                for e, s, o in zip(each, sums, outs, strict=True)
            ]
    outs = [
        o if o.layout == f else o.update(layout=f)
        for o, f in zip(outs, found, strict=True)
    ]
    return outs if primitive.multi else outs[0]


def _operation(primitive: Any, avals: Avals) -> str:
    return f"{primitive.name} of {', '.join(map(str, avals))}"


def entries(aval: Aval) -> Entries:
    """Returns the mesh axes that divide each axis of a type."""
    return ((),) * aval.ndim if aval.layout is None else aval.layout.entries


def _error(primitive: Any, avals: Avals, why: str, hint: str = _HELP) -> Exception:
    return ShardingTypeError(f"{_operation(primitive, avals)}: {why}: {hint}")


def _joined(primitive: Any, avals: Avals, rows: Sequence[Entries]) -> Entries:
    """Returns how results are divided whose axes are those of the operands."""
    result = []
    for axis, given in enumerate(zip(*rows, strict=True)):
        names = {entry for entry in given if entry}
        if len(names) > 1:
            one, other = sorted(names, key=str)[:2]
            raise _error(
                primitive,
                avals,
                f"operands are divided differently along axis {axis}: over "
                f"{_names(one)} and over {_names(other)}",
                "reshard one of them (fxflow.sharding.reshard(x, P(...)))",
            )
        result.append(names.pop() if names else ())
    return tuple(result)


def _names(entry: tuple[Any, ...]) -> str:
    return repr(entry[0]) if len(entry) == 1 else repr(entry)


# -- rules -----------------------------------------------------------------------------


def refused(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """No rule: operands must not be divided."""
    raise _error(self, avals, "no rule says how the result is divided")


def nothing(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """Results that are not divided, whatever the operands are."""
    empty = [((),) * o.ndim for o in outs]
    return empty if self.multi else empty[0]


def elementwise(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """As the operands, which agree; 0-d ones are constants."""
    ndim = outs[0].ndim
    rows = [entries(a) for a in avals if a.ndim == ndim]
    found = _joined(self, avals, rows)
    return [found] * len(outs) if self.multi else found


def each_its_own(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """Each result as its operand."""
    return [entries(a) for a in avals]


def reduction(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """What is left of the operand; along divided axes the devices combine."""
    gone = params["axes"] if "axes" in params else (params["axis"],)
    rows = [entries(a) for a in avals if a.ndim]
    joined = _joined(self, avals, rows)
    found = tuple(e for i, e in enumerate(joined) if i not in gone)
    return [found] * len(outs) if self.multi else found


def along(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """As the operands, which are whole along the axis that is worked along."""
    axis = next(params[k] for k in ("axis", "dimension") if k in params)
    return _along(self, avals, outs, (axis,))


def along_last(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """As the operand, which is whole along its last axis."""
    return _along(self, avals, outs, (avals[0].ndim - 1,))


def _along(self: Any, avals: Avals, outs: Avals, axes: Sequence[int]) -> Any:
    found = _joined(self, avals, [entries(a) for a in avals if a.ndim])
    for axis in axes:
        if found[axis]:
            raise _error(self, avals, f"the operand is divided along axis {axis}")
    return [found] * len(outs) if self.multi else found


def permuted(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """The operand's axes in another order."""
    given = entries(avals[0])
    return tuple(given[i] for i in params["permutation"])


def broadcast(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """The operand's axes where they went; new ones are whole."""
    found: list[tuple[Any, ...]] = [()] * outs[0].ndim
    given = entries(avals[0])
    for i, to in enumerate(params["broadcast_dimensions"]):
        if avals[0].shape[i] == outs[0].shape[to]:
            found[to] = given[i]
    return tuple(found)


def partly(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """As the operand: slices, paddings; `Layout.checked` asks for equal parts."""
    return entries(avals[0])


def parts(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """Each as the operand."""
    return [entries(avals[0])] * len(outs)


def keys(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """As the operand, with or without axes at the end."""
    given, ndim = entries(avals[0]), outs[0].ndim
    if any(given[ndim:]):
        raise _error(self, avals, "an axis that goes is divided")
    return (*given, *[()] * (ndim - len(given)))[:ndim]


def scattered(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """The operand's axes that are written whole or go with the indices' own."""
    x, indices, updates = avals[:3]
    numbers = params["dimension_numbers"]
    window, batch = numbers.update_window_dims, numbers.operand_batching_dims
    rest = [i for i in range(updates.ndim) if i not in window]
    gone = {*numbers.inserted_window_dims, *batch}
    kept = [i for i in range(x.ndim) if i not in gone]
    left = [list(entries(a)) for a in (x, indices, updates)]
    found: list[tuple[Any, ...]] = [()] * x.ndim
    # Axes of the operand, of the indices and of the updates that go together.
    together = [
        (mine, theirs, rest[theirs])
        for mine, theirs in zip(batch, numbers.scatter_indices_batching_dims)
    ]
    together += [
        (mine, None, theirs)
        for mine, theirs in zip(kept, window, strict=True)
        if x.shape[mine] == updates.shape[theirs]
    ]
    for axes in together:
        pairs = [(row, i) for row, i in zip(left, axes, strict=True) if i is not None]
        (found[axes[0]],) = _joined(self, avals, [(row[i],) for row, i in pairs])
        for row, i in pairs:
            row[i] = ()
    if any(map(any, left)):
        raise _error(
            self,
            avals,
            "it is not clear how what is written is divided",
            "say it with x.at[...].set(..., out_sharding=P(...)), or reshard an "
            "operand (fxflow.sharding.reshard)",
        )
    return tuple(found)


def updated(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """As operand and update, which agree; a divided axis is updated whole."""
    x, update = avals[:2]
    found = _joined(self, avals[:2], [entries(x), entries(update)])
    for axis, entry in enumerate(found):
        if entry and x.shape[axis] != update.shape[axis]:
            raise _error(self, avals, f"part of the divided axis {axis} is updated")
    return found


def reshaped(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """The first part of a split axis is divided, and a merged axis as its first."""
    (aval, *_), shape = avals, outs[0].shape
    if 0 in shape:
        return ((),) * len(shape)
    old = [(n, e) for n, e in zip(aval.shape, entries(aval), strict=True) if n != 1]
    new = [(i, n) for i, n in enumerate(shape) if n != 1]
    found: list[tuple[Any, ...]] = [()] * len(shape)
    mesh = aval.layout.mesh  # type: ignore[union-attr]
    while old or new:
        # The fewest axes on both sides that have the same number of elements.
        mine, theirs = [old.pop(0)], [new.pop(0)]
        while True:
            have = math.prod(n for n, _ in mine)
            want = math.prod(n for _, n in theirs)
            if have == want:
                break
            if have < want:
                mine.append(old.pop(0))
            else:
                theirs.append(new.pop(0))
        names = [e for _, e in mine]
        divided = [i for i, e in enumerate(names) if e]
        if not divided:
            continue
        merged = tuple(name for e in names for name in e)
        first, length = theirs[0]
        fits = length % mesh.length(merged) == 0
        in_front = divided == list(range(len(divided)))
        if not in_front or not fits or (len(mine) > 1 and len(theirs) > 1):
            raise _error(
                self,
                avals,
                f"it is not clear how a result of shape {list(shape)} is divided",
                "say it, as in reshape(x, shape, out_sharding=P(...)), or reshard the "
                "operand (fxflow.sharding.reshard)",
            )
        found[first] = merged
    return tuple(found)


def product(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """Batch axes, then what is left of either side."""
    lhs, rhs = avals[:2]
    ((lc, rc), (lb, rb)) = params["dimension_numbers"]
    left, right = entries(lhs), entries(rhs)
    for i, j in zip(lc, rc, strict=True):
        if left[i] and right[j]:
            raise _error(
                self,
                avals,
                f"the contracted axes {i} and {j} are divided over "
                f"{_names(left[i])} and {_names(right[j])}, so it is not clear how the "
                "result is",
                "say it with out_sharding=P(...)",
            )
    batch = _joined(
        self, avals, [tuple(left[i] for i in lb), tuple(right[j] for j in rb)]
    )
    free_left = [e for i, e in enumerate(left) if i not in (*lc, *lb)]
    free_right = [e for j, e in enumerate(right) if j not in (*rc, *rb)]
    return (*batch, *free_left, *free_right)


def matrices(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """Along the batch axes; a matrix or a vector is whole."""
    batch = avals[0].ndim - 2
    if any(e for a in avals for e in entries(a)[batch:]):
        raise _error(self, avals, "a matrix is divided")
    found = _joined(self, avals, [entries(a)[:batch] for a in avals])
    each = [(*found, *[()] * (o.ndim - batch)) for o in outs]
    return each if self.multi else each[0]


def diagonals(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """Along the batch axes: diagonals are vectors, beside a matrix."""
    batch = avals[-1].ndim - 2
    if any(e for a in avals for e in entries(a)[batch:]):
        raise _error(self, avals, "a matrix is divided")
    return (*_joined(self, avals, [entries(a)[:batch] for a in avals]), (), ())


def windowed(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Any:
    """As the operands, which are whole along the axes that the window slides over."""
    window = params["window"]
    rows = [entries(a) for a in avals if a.ndim]
    found = _joined(self, avals, rows)
    for axis, entry in enumerate(found):
        if entry and (window.dimensions[axis], window.strides[axis]) != (1, 1):
            raise _error(self, avals, f"windows slide over the divided axis {axis}")
    return [found] * len(outs) if self.multi else found


def drawn(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """As the keys, whose words are whole, and what goes with them."""
    keys, *others = avals
    batch = keys.ndim - 1
    rows = [entries(a)[:batch] for a in (keys, *others)]
    found = _joined(self, avals, [r for r in rows if len(r) == batch])
    if entries(keys)[batch]:
        raise _error(self, avals, "the words of a key are divided")
    return (*found, *[()] * (outs[0].ndim - batch))


def convolution(
    self: Any, avals: Avals, outs: Avals, params: dict[str, Any]
) -> Entries:
    """Divided along the batch at most."""
    lhs, rhs = avals[:2]
    numbers = params["dimension_numbers"]
    batch, out_batch = numbers.lhs_spec[0], numbers.out_spec[0]
    given = entries(lhs)
    if any(entries(rhs)) or any(e for i, e in enumerate(given) if i != batch):
        raise _error(self, avals, "operands are divided along more than the batch")
    return tuple(given[batch] if i == out_batch else () for i in range(outs[0].ndim))


def gathered(self: Any, avals: Avals, outs: Avals, params: dict[str, Any]) -> Entries:
    """The operand's axes that are read whole or go with the indices' own."""
    x, indices = avals[:2]
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    given, of_indices = entries(x), list(entries(indices))
    ndim = outs[0].ndim
    rest = [i for i in range(ndim) if i not in numbers.offset_dims]
    found: list[tuple[Any, ...]] = [()] * ndim
    left = list(given)
    pairs = zip(
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
    )
    for mine, theirs in pairs:
        both = (given[mine],), (of_indices[theirs],)
        (found[rest[theirs]],) = _joined(self, avals, both)
        left[mine] = of_indices[theirs] = ()
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [i for i in range(x.ndim) if i not in dropped]
    for i, at in zip(kept, numbers.offset_dims, strict=True):
        if x.shape[i] == sizes[i]:
            found[at], left[i] = given[i], ()
    if any(of_indices) or any(left):
        raise _error(
            self,
            avals,
            "it is not clear how what is read is divided",
            "say it with x.at[...].get(out_sharding=P(...)), or reshard an operand "
            "(fxflow.sharding.reshard)",
        )
    return tuple(found)


# -- sums that are put off -------------------------------------------------------------


def whole(self: Any, avals: Avals, outs: Avals) -> Sums:
    """No operand may be unreduced; nothing is said of results."""
    _refuse_unreduced(self, avals, avals)
    return [NO_SUMS] * len(outs)


def own_sums(self: Any, avals: Avals, outs: Avals) -> Sums:
    """Each result as its operand."""
    layouts = [a.layout for a in avals]
    return [NO_SUMS if x is None else (x.unreduced, x.reduced) for x in layouts]


def kept(self: Any, avals: Avals, outs: Avals) -> Sums:
    """No operand may be unreduced; results are reduced as the operands are."""
    _refuse_unreduced(self, avals, avals)
    return [(frozenset(), _agreed(self, avals, "reduced"))] * len(outs)


def linear(self: Any, avals: Avals, outs: Avals) -> Sums:
    """Operands are unreduced alike, or none is; results are as they are."""
    unreduced = _agreed(self, avals, "unreduced")
    if not unreduced:
        return kept(self, avals, outs)
    for aval in avals:
        if aval.layout is None or aval.layout.unreduced != unreduced:
            raise _error(
                self,
                avals,
                f"one operand is unreduced over {_set(unreduced)}, and another one not",
                _SUM_UP,
            )
        # Rounding to integers, or to bool, is not linear.
        if _inexact(aval) != _inexact(outs[0]) or dtypes.is_bool(outs[0].dtype):
            _refuse_unreduced(self, avals, avals)
    return [(unreduced, frozenset())] * len(outs)


def scaled(self: Any, avals: Avals, outs: Avals) -> Sums:
    """Linear in the first operand, and multiplication in the second."""
    first, second = avals
    if self.name == "mul" and second.layout and second.layout.unreduced:
        first, second = second, first
    if first.layout is None or not first.layout.unreduced:
        return kept(self, avals, outs)
    _refuse_unreduced(self, avals, (second,))
    unreduced = first.layout.unreduced
    reduced = second.layout.reduced if second.layout else frozenset()
    if second.ndim and reduced != unreduced:
        raise _error(
            self,
            avals,
            f"one operand is unreduced over {_set(unreduced)}, so the other one has to "
            "be reduced over it, or a number",
            f"reshard that one (reduced={_set(unreduced)}), or sum up the first "
            "(fxflow.sharding.reshard)",
        )
    return [(unreduced, frozenset())] * len(outs)


def contracted(avals: Avals, left: Sequence[int], right: Sequence[int]) -> Any:
    """Returns the mesh axes over which a product is summed by types; None: none.

    Args:
      avals: types of both operands.
      left: contracted axes of the first.
      right: contracted axes of the second.
    """
    lhs, rhs = (a.layout for a in avals)
    if lhs is None or rhs is None or lhs.mesh.auto_axes:
        return None
    names = [lhs.entries[i] for i in left]
    if names != [rhs.entries[j] for j in right]:
        return None
    return frozenset(name for entry in names for name in entry) or None


_SUM_UP = (
    "sum up what is unreduced first (fxflow.sharding.reshard(x, P(...)) without "
    "unreduced=)"
)


def _refuse_unreduced(primitive: Any, avals: Avals, given: Avals) -> None:
    for aval in given:
        if aval.layout is not None and aval.layout.unreduced:
            raise _error(
                primitive,
                avals,
                f"an operand is unreduced over {_set(aval.layout.unreduced)}, and the "
                "operation on parts of a sum is not that on the sum",
                _SUM_UP,
            )


def _agreed(primitive: Any, avals: Avals, word: str) -> frozenset[Any]:
    found = {getattr(a.layout, word) for a in avals if a.layout is not None}
    found.discard(frozenset())
    if len(found) > 1:
        one, other = sorted(map(_set, found))[:2]
        raise _error(
            primitive,
            avals,
            f"one operand is {word} over {one} and another one over {other}",
            "reshard one of them (fxflow.sharding.reshard(x, P(...)))",
        )
    return found.pop() if found else frozenset()


def _inexact(aval: Aval) -> bool:
    return dtypes.is_inexact(aval.dtype)


def _set(names: frozenset[Any]) -> str:
    return "{" + ", ".join(sorted(map(repr, names))) + "}"
