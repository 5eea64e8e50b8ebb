"""Losses of a linear layer's outputs, which are never all in memory.

The logits of a language model are tokens × words, larger than everything else. Here a
loop goes over blocks of classes: forward it keeps the largest logit of each example and
a sum of exponentials; the derivative's loop computes the logits of a block again.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.lax.gradient_control import stop_gradient
from fxflow.nn._layers import floats, shaped, weights
from fxflow.numpy._operands import ArrayLike
from fxflow.transforms.checkpoint import checkpoint
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.linear_call import linear_call

#: Logits of a block, and classes at the least: a few MB, which products of matrices
#: fill well (docs/design/0021-gallery.md).
_LOGITS, _CLASSES = 1 << 20, 512


def linear_cross_entropy(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    softcap: float | None = None,
    block: int | None = None,
) -> Array:
    r"""Returns cross entropies of a linear layer's outputs, without an array of these.

    .. math::
       -\log \frac{e^{s_y}}{\sum_k e^{s_k}}, \qquad s_k = x \cdot w_k + b_k

    It is `optim.losses.softmax_cross_entropy_with_integer_labels(x @ w.T + b, labels)`,
    and so are its derivatives, in the memory of a block of logits: a gradient takes
    four products of matrices in place of three. It is known as cut cross-entropy and as
    fused linear cross-entropy.

    Args:
      params: dict of `w: float[classes, features]`, such as the table of an embedding,
        and, if there is a bias, `b: float[classes]`.
      x: float[..., features], one vector for each example.
      labels: y: int[...], indices of classes.
      where: bool[...], the examples that count; the others have the loss 0 and no
        derivative, whatever their label.
      softcap: a bound c of the logits, which are then :math:`c \tanh(s / c)`.
      block: the number of classes whose logits are in memory at once; None: as many as
        make 2²⁰ logits, and 512 at the least.

    Returns:
      float[...], the loss of each example: float32 if `x` and the weights are 16-bit
      floats, which products accumulate.

    Raises:
      ArgumentError: the params are not a dict of the weights, the softcap is not
        positive, `block` is not a positive integer, or another argument is not an
        array.
      DtypeError: an argument has no floats, the labels are not integers, or `where` is
        not bool.
      ShapeError: the shapes are incompatible.

    Special cases:
      A label that is not a class gives nan.

    Example:
      >>> params = {"w": fnp.zeros((100, 3))}
      >>> nn.linear_cross_entropy(params, fnp.ones((2, 3)), np.array([3, 5])).tolist()
      [4.6051..., 4.6051...]

    Source: Wijmans et al. 2024, *Cut Your Losses in Large-Vocabulary Language Models*.
    """
    name = "linear_cross_entropy"
    axes = {"w": "classes features", "b": "classes"}
    if isinstance(params, Mapping) and "b" not in params:
        del axes["b"]
    w, *rest = weights(name, params, **axes)
    classes, features = typeof(w).shape
    floats(name, "x", x, "features")
    *batch, last = typeof(x).shape
    if last != features:
        raise ShapeError(
            f"{name}: x must be float[..., {features}], as w {typeof(w)} takes, got "
            f"{typeof(x)}"
        )
    shaped(name, "labels", labels, batch, "integers")
    if where is not None:
        shaped(name, "where", where, batch, "bools")
    if softcap is not None and not softcap > 0:
        raise ArgumentError(f"{name}: softcap must be positive, got {softcap!r}")
    count = math.prod(batch)
    if block is None:
        block = max(_CLASSES, _LOGITS // max(count, 1))
    block = natural(name, "block", block)
    dtype = fnp.result_type(x, w, *rest)
    x = fnp.reshape(lax.convert_element_type(x, dtype), (count, features))
    w = lax.convert_element_type(w, dtype)
    b = lax.convert_element_type(rest[0], dtype) if rest else None
    labels = fnp.reshape(labels, (count,))
    if where is not None:
        where = fnp.reshape(where, (count,))
        labels = fnp.where(where, labels, 0)
        x = fnp.where(where[:, None], x, 0)
    total = _log_sum(x, w, b, softcap, min(block, max(classes, 1)))
    loss = fnp.subtract(total, _logits_of(x, w, b, labels, softcap))
    if where is not None:
        loss = fnp.where(where, loss, 0)
    out: Array = fnp.reshape(loss, tuple(batch))
    return out


def _logits_of(x: Any, w: Any, b: Any, labels: Any, softcap: float | None) -> Any:
    """Returns the logit of one class for each example; nan if there is none."""

    def rows(table: Any) -> Any:
        found = table.at[labels].get(
            mode="fill", fill_value=math.nan, wrap_negative_indices=False
        )
        return _wide(found)

    s = fnp.sum(fnp.multiply(_wide(x), rows(w)), -1)
    return _capped(s if b is None else fnp.add(s, rows(b)), softcap)


def _wide(x: Any) -> Any:
    dtype = typeof(x).dtype
    return x if dtypes.bits(dtype) >= 32 else lax.convert_element_type(x, "float32")


def _capped(s: Any, softcap: float | None) -> Any:
    if softcap is None:
        return s
    return fnp.multiply(softcap, fnp.tanh(fnp.divide(s, softcap)))


# -- the logarithm of the sum of exponentials ------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(3, 4))
def _log_sum(x: Any, w: Any, b: Any, softcap: float | None, block: int) -> Any:
    dtype = typeof(_wide(x)).dtype
    rows = typeof(x).shape[0]

    def step(carry: Any, start: Any, length: int) -> Any:
        top, total = carry
        s = _capped(_logits(x, w, b, start, length), softcap)
        new = fnp.maximum(top, fnp.max(s, -1, initial=-math.inf))
        # Less than infinity: a sum of no exponentials is 0.
        safe = fnp.where(fnp.isfinite(new), new, 0)
        powers = fnp.sum(fnp.exp(fnp.subtract(s, safe[:, None])), -1)
        kept = fnp.where(fnp.isfinite(top), fnp.exp(fnp.subtract(top, safe)), 1)
        return new, fnp.add(fnp.multiply(total, kept), powers)

    carry = fnp.full((rows,), -math.inf, dtype), fnp.zeros((rows,), dtype)
    top, total = _over_blocks(step, carry, typeof(w).shape[0], block)
    safe = stop_gradient(fnp.where(fnp.isfinite(top), top, 0))
    return fnp.add(fnp.log(total), safe)


@_log_sum.defjvp
def _log_sum_rule(
    softcap: float | None, block: int, primals: Any, tangents: Any
) -> Any:
    x, w, b = primals
    out = _log_sum(x, w, b, softcap, block)
    classes = typeof(w).shape[0]

    def shares(given: Any, start: Any, length: int) -> Any:
        """Returns the derivatives of the result by the products of a block."""
        x, w, b, out = given
        s = _logits(x, w, b, start, length)
        capped = _capped(s, softcap)
        p = fnp.exp(fnp.subtract(capped, out[:, None]))
        if softcap is not None:
            p = fnp.multiply(p, 1 - fnp.square(fnp.divide(capped, softcap)))
        return p

    def forwards(given: Any, moving: Any) -> Any:
        x, w, _, out = given
        dx, dw, db = moving

        def step(total: Any, start: Any, length: int) -> Any:
            ds = fnp.add(
                _logits(dx, w, None, start, length), _logits(x, dw, db, start, length)
            )
            p = shares(given, start, length)
            return fnp.add(total, fnp.sum(fnp.multiply(p, ds), -1))

        return _over_blocks(step, fnp.zeros_like(out), classes, block)

    def backwards(given: Any, ct: Any) -> Any:
        x, w, b, _ = given

        def step(carry: Any, start: Any, length: int) -> Any:
            dx, dw, db = carry
            p = fnp.multiply(shares(given, start, length), ct[:, None])
            q = lax.convert_element_type(p, typeof(x).dtype)
            part = _part(w, start, length)
            dx = fnp.add(dx, fnp.matmul(q, part, preferred_element_type=dx.dtype))
            # [rows, length] · [rows, features] → [length, features]
            new = fnp.matmul(q.T, x, preferred_element_type=dx.dtype)
            dw = _with_part(dw, new, start)
            if db is not None:
                db = _with_part(db, fnp.sum(p, 0), start)
            return dx, dw, db

        start = (
            fnp.zeros(typeof(x).shape, ct.dtype),
            fnp.zeros_like(w),
            None if b is None else fnp.zeros_like(b),
        )
        dx, dw, db = _over_blocks(step, start, classes, block)
        return lax.convert_element_type(dx, typeof(x).dtype), dw, db

    return out, linear_call(forwards, backwards, (x, w, b, out), tuple(tangents))


def _logits(x: Any, w: Any, b: Any, start: Any, length: int) -> Any:
    """Returns the logits of a block of classes."""
    dtype = typeof(_wide(x)).dtype
    s = fnp.matmul(x, _part(w, start, length).T, preferred_element_type=dtype)
    return s if b is None else fnp.add(s, _part(b, start, length))


def _part(table: Any, start: Any, length: int) -> Any:
    return lax.dynamic_slice_in_dim(table, start, length, 0)


def _with_part(table: Any, part: Any, start: Any) -> Any:
    part = lax.convert_element_type(part, typeof(table).dtype)
    return lax.dynamic_update_slice_in_dim(table, part, start, 0)


def _over_blocks(
    step: Callable[[Any, Any, int], Any], carry: Any, classes: int, block: int
) -> Any:
    """Returns what a loop over blocks of classes carries to its end.

    What a step computes is not kept for a derivative of the loop.

    Args:
      step: of the carry, the first class of a block, and the number of its classes.
      carry: pytree of arrays.
      classes: their number.
      block: classes of a step; the last one may have fewer.
    """
    full, left = divmod(classes, block)
    if full == 1:
        carry = checkpoint(lambda c: step(c, 0, block))(carry)
    elif full:
        body = checkpoint(lambda c, i: step(c, fnp.multiply(i, block), block))
        ids = lax.iota("int32", full)
        carry, _ = lax.scan(lambda c, i: (body(c, i), None), carry, ids)
    if left:
        carry = checkpoint(lambda c: step(c, full * block, left))(carry)
    return carry
