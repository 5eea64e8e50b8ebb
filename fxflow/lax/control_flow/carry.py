"""What loops and branches share: checked leaves, and types that must agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, promotion, typeof
from fxflow.core.arrays.array import is_arraylike, not_an_array
from fxflow.core.ir.primitive import table
from fxflow.core.ir.references import Ref
from fxflow.core.spmd.varying import cast, divided_as
from fxflow.core.tree.paths import describe, difference
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    ShapeError,
    ShardingTypeError,
    TreeError,
)


def leaves_of(value: Any, what: str, *, refs: bool = False) -> tuple[list[Any], Any]:
    """Returns the leaves of a pytree of arrays, and its structure.

    Args:
      value: the pytree.
      what: its name, for messages, as in `scan: init`.
      refs: whether a leaf may be a reference.

    Raises:
      ArgumentError: a leaf is not an array.
    """
    leaves, treedef = tree.flatten(value)
    for i, leaf in enumerate(leaves):
        if not is_arraylike(leaf):
            if isinstance(leaf, Ref) and refs:
                continue
            # Not before there is a mistake: paths cost more than leaves.
            path = tree.keystr(tree.leaves_with_path(value)[i][0])
            if isinstance(leaf, Ref):
                raise ArgumentError(
                    f"{what}{path} is a reference {leaf.aval}, which is not carried "
                    "along: capture it in the function, or carry its contents, "
                    "ref[...]"
                )
            raise not_an_array(leaf, f"{what}{path} is")
    return leaves, treedef


def paths_of(treedef: Any) -> list[str]:
    """Returns the key path of each leaf of a structure as text."""
    dummy = treedef.unflatten(range(treedef.num_leaves))
    return [tree.keystr(path) for path, _ in tree.leaves_with_path(dummy)]


def require_structure(
    expected: Any, given: Any, leaves: Sequence[Any], message: str
) -> None:
    """Checks that two structures are equal.

    Args:
      expected: a structure.
      given: a structure.
      leaves: those of the second, for the description.
      message: begins the text of the error; what differs and where is appended.

    Raises:
      TreeError: they differ.
    """
    if expected != given:
        tree_given = given.unflatten(leaves)
        where = difference(expected, tree_given)
        if where is None and tree.treedef_is_leaf(expected):
            where = f"expected one array, got {describe(tree_given)}"
        elif where is None:
            where = (
                f"expected {tree.written(expected)}, got {tree.written(given)}, each * "
                "an array"
            )
        raise TreeError(f"{message} {where}")


def promoted(ins: Sequence[Aval], outs: Sequence[Aval]) -> list[Aval]:
    """Returns types for a carry whose weak parts yield to what the body returns.

    Its parts differ along the axes along which what is returned differs, and what is
    not divided is divided as what is returned.

    Args:
      ins: types it has.
      outs: types the body returns.
    """
    result = []
    for a, out in zip(ins, outs, strict=True):
        aval = a
        if a.weak_type and (a.dtype != out.dtype or not out.weak_type):
            try:
                dtype, weak = promotion.lub((a.dtype, out.dtype), (True, out.weak_type))
            except DtypeError:
                # `require_carry` says it in words.
                pass
            else:
                aval = a.update(dtype=dtype, weak_type=weak)
        if a.layout is None and out.layout is not None:
            aval = aval.update(layout=out.layout)
        result.append(aval.update(vma=a.vma | out.vma) if out.vma else aval)
    return result


def require_carry(
    name: str, treedef: Any, ins: Sequence[Aval], outs: Sequence[Aval]
) -> None:
    """Checks that a body returns a carry of the types it takes.

    Args:
      name: of the operation.
      treedef: structure of the carry.
      ins: types of its leaves.
      outs: types the body returns.

    Raises:
      ShapeError, DtypeError: a leaf's type changes; names each one.
    """
    wrong = []
    kind: type[Exception] = DtypeError
    for i, (a, out) in enumerate(zip(ins, outs, strict=True)):
        if a is out:
            continue
        path = paths_of(treedef)[i]
        if a.shape != out.shape or a.dtype != out.dtype:
            wrong.append(f"carry{path} comes in as {a} and is returned as {out}")
            if a.shape != out.shape:
                kind = ShapeError
        elif a.layout != out.layout:
            raise ShardingTypeError(
                f"{name}: the body must return a carry that is divided as it comes in, "
                f"but carry{path} comes in as {a} and is returned as {out}: reshard it "
                "(fxflow.sharding.reshard)"
            )
    if wrong:
        fix = (
            "reshape it, or start with the shape the body returns"
            if kind is ShapeError
            else "convert it with .astype(...), or start with the dtype it returns"
        )
        raise kind(
            f"{name}: the body must return a carry of the type it takes, but "
            f"{'; '.join(wrong)}: {fix}"
        )


def as_type(value: Any, aval: Aval) -> Any:
    """Returns `value` converted to a dtype and weakness (its shape is right).

    It differs along the type's axes, and is divided as the type says, too.
    """
    have = typeof(value)
    if have is aval:
        return value
    if not dtypes.is_key(aval.dtype) and (
        have.dtype != aval.dtype or have.weak_type != aval.weak_type
    ):
        value = table["convert_element_type"].bind(
            value, new_dtype=aval.dtype, weak_type=aval.weak_type
        )
    if have.layout != aval.layout:
        value = divided_as(value, aval)
    return cast(value, aval.vma) if aval.vma else value
