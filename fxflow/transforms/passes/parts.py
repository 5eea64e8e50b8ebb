"""Products in parts: of a concatenation, or with a result that is split at once.

`concat(x, h) @ w` is `x @ w[:n] + h @ w[n:]`, and the pieces of `c @ w.T` are products
of `c` with pieces of `w`. As many numbers are multiplied, but each part can be computed
where it is cheapest: in a loop over time that of `x` before it (`loops`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.ir.graph import Node
from fxflow.lax.concatenation import Concatenate
from fxflow.lax.dot import DotGeneral, free_axes
from fxflow.lax.elementwise import Add
from fxflow.transforms.passes.rewriting import made

#: Given a product, one of its operands, sizes and an axis: nodes that cut the operand,
#: and the names of the pieces.
Cut = Callable[[Node, Any, tuple[int, ...], int], tuple[list[Node], Sequence[Any]]]


def contracted_parts(product: Node, side: int, joined: Node) -> Sequence[Any] | None:
    """Returns the parts of a concatenation that a product sums over, or None.

    Args:
      product: a `dot_general`.
      side: which of its operands `joined` makes.
      joined: any node.
    """
    if joined.primitive.name != Concatenate.name:
        return None
    contracted, batch = product.params["dimension_numbers"]
    if batch[0] or joined.params["dimension"] not in contracted[side]:
        return None
    return joined.inputs


def sum_of_products(
    product: Node, side: int, joined: Node, kinds: Sequence[Any], cut: Cut
) -> list[Node]:
    """Returns nodes that multiply parts of a concatenation and add the products.

    Args:
      product: of which `contracted_parts` knows the parts.
      side: which of its operands `joined` makes.
      joined: the concatenation.
      kinds: of each part; neighbours of one kind stay together.
      cut: cuts the other operand.

    Returns:
      The nodes; the last makes what `product` made.
    """
    contracted, _ = product.params["dimension_numbers"]
    axis = joined.params["dimension"]
    across = contracted[1 - side][contracted[side].index(axis)]
    groups = _neighbours(joined.inputs, kinds)
    sizes = tuple(sum(a.aval.shape[axis] for a in group) for group in groups)
    nodes, pieces = cut(product, product.inputs[1 - side], sizes, across)
    total = None
    for group, piece in zip(groups, pieces, strict=True):
        part = group[0]
        if len(group) > 1:
            nodes.append(made(joined, Concatenate, group, joined.params))
            part = nodes[-1].outputs[0]
        operands = [part, piece] if side == 0 else [piece, part]
        nodes.append(made(product, DotGeneral, operands, product.params))
        if total is not None:
            nodes.append(made(product, Add, [total, nodes[-1].outputs[0]], {}))
        total = nodes[-1].outputs[0]
    nodes[-1] = nodes[-1].replace(outputs=product.outputs)
    return nodes


def split_axis(product: Node, side: int, split: Node) -> int | None:
    """Returns the axis of an operand along which a product's result is split, or None.

    Args:
      product: a `dot_general`.
      side: the operand that is asked about.
      split: what reads the result.
    """
    contracted, batch = product.params["dimension_numbers"]
    if batch[0]:
        return None
    free = [
        free_axes(a.aval.ndim, taken)
        for a, taken in zip(product.inputs, contracted, strict=True)
    ]
    place = split.params["axis"] - (len(free[0]) if side == 1 else 0)
    return free[side][place] if 0 <= place < len(free[side]) else None


def products_of_pieces(
    product: Node, side: int, split: Node, kinds: Sequence[Any], cut: Cut
) -> list[Node]:
    """Returns nodes that make the pieces of a product by products with pieces.

    Args:
      product: whose result only `split` reads.
      side: the operand for which `split_axis` is not None.
      split: makes the pieces.
      kinds: of each piece; neighbours of one kind stay together.
      cut: cuts that operand.
    """
    axis = split_axis(product, side, split)
    assert axis is not None
    pairs = list(zip(split.outputs, split.params["sizes"], strict=True))
    groups = _neighbours(pairs, kinds)
    sizes = tuple(sum(size for _, size in group) for group in groups)
    nodes, pieces = cut(product, product.inputs[side], sizes, axis)
    for group, piece in zip(groups, pieces, strict=True):
        operands = list(product.inputs)
        operands[side] = piece
        part = made(product, DotGeneral, operands, product.params)
        outputs = [var for var, _ in group]
        if len(group) == 1:
            nodes.append(part.replace(outputs=outputs))
            continue
        params = split.params | {"sizes": tuple(size for _, size in group)}
        split = split.replace(inputs=part.outputs, outputs=outputs, params=params)
        nodes += [part, split]
    return nodes


def _neighbours(values: Sequence[Any], kinds: Sequence[Any]) -> list[list[Any]]:
    """Returns the values in groups: neighbours of one kind."""
    pairs = itertools.groupby(zip(values, kinds, strict=True), lambda pair: pair[1])
    return [[value for value, _ in group] for _, group in pairs]
