"""`einsum`: sums of products, written in labels of axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, typeof
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import int_tuple
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import DTypeLike, array_of, convert, no_out, promote_dtypes
from fxflow.numpy.contraction import Labels, ordered, preferred_dtype, product, summed
from fxflow.numpy.diagonals import diagonal


def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Sums products over labelled axes (Einstein summation).

    `einsum("ij,jk->ik", a, b)` multiplies matrices: axes of one label are multiplied
    index by index, labels that the result does not have are summed over. `...` stands
    for any axes, which broadcast. Without `->` the result has the labels that come
    once, in alphabetical order.

    Args:
      subscripts: labels of the axes of each operand, and of the result. Or, in the
        other form, `einsum(a, [0, 1], b, [1, 2], [0, 2])`, the first operand; labels
        are integers or strings there.
      *operands: array-likes.
      out: not supported: arrays are immutable.
      optimize: in which order three and more operands are multiplied: "auto",
        "optimal", "greedy", …, a path from `einsum_path`, True, or False for the order
        given.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array with the axes of the result's labels, of the common dtype.

    Raises:
      ArgumentError: the labels are not of that form, or do not go with the operands.
      ShapeError: axes of one label have different lengths, neither of which is 1.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> einsum("ij,j->i", np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)
      >>> einsum("ii", np.array([[1, 2], [3, 4]]))
      Array(5, dtype=int32)

      Attention: batch, heads and two positions at once.

      >>> q = k = fnp.ones((2, 5, 3, 4))
      >>> einsum("bqhd,bkhd->bhqk", q, k).shape
      (2, 3, 5, 5)

    Source: `numpy.einsum`; G. Smith and J. Gray, opt_einsum, 2018 (order of products).
    """
    no_out("einsum", out)
    given, inputs, result = _read(subscripts, operands)
    if isinstance(optimize, list | tuple):
        steps = [s for s in optimize if not isinstance(s, str)]
        optimize = tuple(int_tuple("einsum", "optimize", step) for step in steps)
    with open_layouts(out_sharding):
        found = _einsum(
            inputs, result, optimize, precision, preferred_element_type, *given
        )
    if out_sharding is not None:
        return laid_out("einsum", found, out_sharding)
    return found


def _read(
    subscripts: Any, operands: Sequence[Any]
) -> tuple[Sequence[Any], tuple[Labels, ...], Labels]:
    """Returns operands, the labels of each, and the labels of the result."""
    if isinstance(subscripts, str):
        shapes = tuple([typeof(array_of(a, "einsum")).ndim for a in operands])
        return operands, *_parsed(subscripts, shapes)
    mixed = [subscripts, *operands]
    lists: list[Any] = mixed[1::2]
    given = mixed[0 : 2 * len(lists) : 2]
    result = mixed[-1] if len(mixed) % 2 else None
    if not lists:
        raise ArgumentError(
            f"einsum: takes subscripts such as 'ij,jk->ik' first, got {subscripts!r}"
        )
    names = _names([*lists, result or ()])
    text = [_letters(labels, names) for labels in lists]
    line = ",".join(text) + ("" if result is None else "->" + _letters(result, names))
    shapes = tuple([typeof(array_of(a, "einsum")).ndim for a in given])
    return given, *_parsed(line, shapes)


def _names(lists: Sequence[Any]) -> dict[Any, int]:
    """Returns a number for each label, if some are longer words."""
    found = {n for labels in lists if isinstance(labels, list | tuple) for n in labels}
    if all(not isinstance(n, str) or len(n) == 1 for n in found):
        return {}
    return {n: i for i, n in enumerate(sorted(found - {Ellipsis}, key=str))}


def _letters(labels: Any, names: dict[Any, int]) -> str:
    """Returns a list of labels as subscripts, in which the order is kept."""
    out = []
    try:
        for n in labels:
            if n is Ellipsis:
                out.append("...")
            elif isinstance(n, str) and n not in names:
                out.append(n)
            else:
                number = names[n] if names else int(n)
                # Order matters for implicit results: capitals come before small ones.
                out.append(chr(65 + number) if number < 26 else chr(71 + number))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"einsum: labels must be sequences of integers or strings, got {labels!r}"
        ) from None
    return "".join(out)


@functools.lru_cache(1024)
def _parsed(text: str, ndims: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    """Returns the labels of each operand and of the result; `...` written out."""
    line = text.replace(" ", "")
    head, arrow, tail = line.partition("->")
    parts = head.split(",")
    if len(parts) != len(ndims):
        raise ArgumentError(
            f"einsum: subscripts {text!r} are of {len(parts)} operands, got "
            f"{len(ndims)}"
        )
    wide = 0
    inputs: list[Labels] = []
    for part, ndim in zip(parts, ndims, strict=True):
        before, dots, after = part.partition("...")
        _check_labels(text, before + after)
        extra = ndim - len(before) - len(after)
        if extra < 0 or (extra and not dots):
            raise ArgumentError(
                f"einsum: subscripts {part!r} are of "
                f"{len(before) + len(after)}{' or more' if dots else ''} axes, the "
                f"operand has {ndim}"
            )
        wide = max(wide, extra)
        # Axes of "..." are numbered from the last, -1, so they broadcast.
        inputs.append((*before, *range(-extra, 0), *after))
    if arrow:
        before, dots, after = tail.partition("...")
        _check_labels(text, before + after)
        if len(set(before + after)) != len(before + after):
            raise ArgumentError(
                f"einsum: a label comes twice in the result of {text!r}"
            )
        known = set(head)
        for n in before + after:
            if n not in known:
                raise ArgumentError(
                    f"einsum: label {n!r} of the result of {text!r} is of no operand"
                )
        middle = range(-wide, 0) if dots else ()
        if wide and not dots:
            raise ArgumentError(
                f"einsum: axes of '...' are not in the result of {text!r}: write "
                "'...' there, or sum over them first"
            )
        return tuple(inputs), (*before, *middle, *after)
    # Without an arrow: the labels that come once, in alphabetical order.
    once = sorted(n for n in set(head) - {",", "."} if head.count(n) == 1)
    return tuple(inputs), (*range(-wide, 0), *once)


def _check_labels(text: str, labels: str) -> None:
    for n in labels:
        if not n.isalpha():
            raise ArgumentError(f"einsum: labels are letters, got {n!r} in {text!r}")


@library("inputs", "result", "optimize", "precision", "preferred_element_type")
def _einsum(
    inputs: tuple[Labels, ...],
    result: Labels,
    optimize: Any,
    precision: Any,
    preferred_element_type: Any,
    *operands: Any,
) -> Array:
    arrays = promote_dtypes("einsum", *operands)
    preferred = preferred_dtype(preferred_element_type)
    sizes = _sizes(inputs, arrays)
    todo = [
        _cleaned(x, labels, sizes) for x, labels in zip(arrays, inputs, strict=True)
    ]
    for step in _path(todo, result, optimize, sizes):
        chosen = [todo[i] for i in step]
        todo = [t for i, t in enumerate(todo) if i not in step]
        x, xs = chosen[0]
        for position, (y, ys) in enumerate(chosen[1:], 2):
            later = [t[1] for t in (*todo, *chosen[position:])]
            needed = set(result).union(*later)
            # The order of the result first: the last product need not be transposed.
            rest = sorted(needed - set(result), key=str)
            keep = (*result, *rest)
            x, xs = product(x, xs, y, ys, keep, precision, preferred)
        todo.append((x, xs))
    x, xs = todo[0]
    x, xs = summed(x, xs, set(xs) - set(result))
    out: Array = ordered(x, xs, tuple([n for n in result if n in xs]))
    if preferred is not None:
        out = convert(out, preferred)
    if len(xs) != len(result):
        # Axes of length 1 that were cut off.
        dims = tuple([i for i, n in enumerate(result) if n in xs])
        shape = tuple([sizes[n] for n in result])
        out = lax.broadcast_in_dim(out, shape, dims)
    return out


def _sizes(inputs: tuple[Labels, ...], arrays: Sequence[Any]) -> dict[Any, int]:
    sizes: dict[Any, int] = {}
    owner: dict[Any, int] = {}  # the operand that gave the length
    for i, (x, labels) in enumerate(zip(arrays, inputs, strict=True)):
        own: dict[Any, int] = {}
        for n, length in zip(labels, x.aval.shape, strict=True):
            if own.setdefault(n, length) != length:
                raise ShapeError(
                    f"einsum: label {n!r} takes a diagonal of {x.aval}, whose axes "
                    f"have lengths {own[n]} and {length}"
                )
            known = sizes.setdefault(n, length)
            if known == 1 or n not in owner:
                sizes[n], owner[n] = length, i
            elif length not in (1, known):
                what = f"label {n!r}" if isinstance(n, str) else "axes of '...'"
                raise ShapeError(
                    f"einsum: {what} has length {known} in operand {owner[n]} "
                    f"({arrays[owner[n]].aval}), but {length} in operand {i} ({x.aval})"
                )
    return sizes


def _cleaned(x: Any, labels: Labels, sizes: dict[Any, int]) -> tuple[Any, Labels]:
    """Returns an operand with each label once, and without lengths 1 that broadcast."""
    shape = x.aval.shape
    ones = tuple([i for i, n in enumerate(labels) if shape[i] == 1 != sizes[n]])
    if ones:
        x = lax.squeeze(x, ones)
        labels = tuple([n for i, n in enumerate(labels) if i not in ones])
    while len(set(labels)) != len(labels):
        twice = next(n for n in labels if labels.count(n) > 1)
        i = labels.index(twice)
        j = labels.index(twice, i + 1)
        x = diagonal(x, 0, i, j)
        labels = (*(n for k, n in enumerate(labels) if k not in (i, j)), twice)
    return x, labels


def _path(
    todo: Sequence[tuple[Any, Labels]], result: Labels, optimize: Any, sizes: Any
) -> Sequence[tuple[int, ...]]:
    """Returns which operands to multiply in each step; results go to the end."""
    count = len(todo)
    if count == 1:
        return ()
    if count == 2:
        return ((0, 1),)
    if isinstance(optimize, tuple):
        return optimize
    if optimize is False:
        # In the order given: what comes out is put to the end, and taken first.
        return ((0, 1), *((count - 2 - i, 0) for i in range(count - 2)))
    inputs = tuple([labels for _, labels in todo])
    kept = {n for _, labels in todo for n in labels}
    wanted = tuple([n for n in result if n in kept])
    lengths = tuple(sorted(((n, sizes[n]) for n in kept), key=str))
    return _best_path(inputs, wanted, lengths, "auto" if optimize is True else optimize)


@functools.lru_cache(1024)
def _best_path(
    inputs: tuple[Labels, ...], result: Labels, lengths: Any, optimize: Any
) -> tuple[tuple[int, ...], ...]:
    # Imported late: it is needed for three operands and more only.
    from opt_einsum import contract_path, get_symbol

    names = {n: get_symbol(i) for i, (n, _) in enumerate(lengths)}
    sizes = dict(lengths)
    text = ",".join("".join(names[n] for n in labels) for labels in inputs)
    text += "->" + "".join(names[n] for n in result)
    shapes = [tuple(sizes[n] for n in labels) for labels in inputs]
    path, _ = contract_path(text, *shapes, shapes=True, optimize=optimize)
    return tuple(tuple(step) for step in path)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[Any], str]:
    """Returns in which order `einsum` multiplies its operands.

    Args:
      subscripts: as for `einsum`.
      *operands: array-likes.
      optimize: how to look for the order, as for `einsum`.

    Returns:
      The path, to be passed to `einsum` as `optimize`, and a report in words.

    Raises:
      ArgumentError: the labels are not of the form `einsum` takes.
      ShapeError: a label stands for different lengths.

    Example:
      >>> a, b, c = np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 5))
      >>> einsum_path("ij,jk,kl->il", a, b, c)[0]
      ['einsum_path', (0, 1), (0, 1)]

    Source: `numpy.einsum_path`.
    """
    from opt_einsum import contract_path

    given, inputs, result = _read(subscripts, operands)
    names: dict[Any, str] = {}
    for labels in (*inputs, result):
        for n in labels:
            names.setdefault(n, n if isinstance(n, str) else "")
    # For axes of "...": letters beyond ASCII, as opt_einsum takes them.
    free = (c for c in map(chr, range(192, 1024)) if c not in names)
    for n, name in names.items():
        names[n] = name or next(free)
    text = ",".join("".join(names[n] for n in labels) for labels in inputs)
    text += "->" + "".join(names[n] for n in result)
    if optimize is True:
        optimize = "auto"
    arrays = [array_of(a, "einsum_path") for a in given]
    _sizes(inputs, arrays)
    shapes = [a.aval.shape for a in arrays]
    path, report = contract_path(text, *shapes, shapes=True, optimize=optimize)
    return ["einsum_path", *path], str(report)
