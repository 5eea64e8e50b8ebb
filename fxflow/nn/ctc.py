"""The loss of connectionist temporal classification, and the forward probabilities."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.lax.gradient_control import stop_gradient
from fxflow.nn._layers import array, floats, shaped
from fxflow.nn.normalization import log_softmax
from fxflow.numpy._operands import ArrayLike


def ctc_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    logit_mask: ArrayLike | None = None,
    label_mask: ArrayLike | None = None,
    blank_id: int = 0,
) -> Array:
    r"""Returns the negative logarithm of the probability of a sequence of labels.

    A step says a class or nothing (the blank); repetitions without a blank between them
    are one label. The probability is the sum of those of all ways to say the labels.

    Args:
      logits: float[..., time, classes], not normalised.
      labels: int[..., labels], none of them the blank.
      logit_mask: bool[..., time]: False where a sequence has no step; None: all are.
      label_mask: bool[..., labels]: False behind the last label; None: all are labels.
      blank_id: the class that is the blank.

    Returns:
      float[...], one for each sequence: of the dtype of the logits, but float32 for
      those of 16 bits.

    Raises:
      ArgumentError: an argument is not an array, or there is no such class as the
        blank.
      DtypeError: an argument is of another kind.
      ShapeError: the shapes are incompatible.

    Special cases:
      Labels that do not fit into the steps give inf, with slope 0. A sequence without
      labels is all blanks; one without steps and labels gives 0. A label that is not
      a class gives nan.

    Example:
      >>> logits = fnp.zeros((4, 3))  # all of 3⁴ paths are equally likely
      >>> round(float(81 * fnp.exp(-nn.ctc_loss(logits, np.array([1, 2])))), 3)
      15.0

    Source: Graves et al. 2006; the forward recursion, in logarithms.
    """
    every = _forward("ctc_loss", logits, labels, logit_mask, label_mask, blank_id)
    return every[0]


def ctc_loss_with_forward_probs(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    logit_mask: ArrayLike | None = None,
    label_mask: ArrayLike | None = None,
    blank_id: int = 0,
) -> tuple[Array, Array, Array]:
    """Returns `ctc_loss` and the probabilities of the forward recursion behind it.

    Args:
      logits: float[..., time, classes], not normalised.
      labels: int[..., labels], none of them the blank.
      logit_mask: bool[..., time]: False where a sequence has no step; None: all are.
      label_mask: bool[..., labels]: False behind the last label; None: all are labels.
      blank_id: the class that is the blank.

    Returns:
      The loss, float[...]; float[time, ..., labels + 1]: after each step, the
      logarithm of the probability of having said the first `n` labels and a blank
      then; float[time, ..., labels]: of having just said label `n`. What cannot be is
      -inf. A step that a sequence does not have repeats the one before. (In optax the
      last row of the first array holds the ways that end with label `n` as well.)

    Raises:
      ArgumentError: an argument is not an array, or there is no such class as the
        blank.
      DtypeError: an argument is of another kind.
      ShapeError: the shapes are incompatible.

    Example:
      >>> logits = fnp.zeros((2, 3))  # of 3² paths
      >>> _, blank, label = nn.ctc_loss_with_forward_probs(logits, np.array([1]))
      >>> print(fnp.round(9 * fnp.exp(blank[-1])), fnp.round(9 * fnp.exp(label[-1])))
      [1. 1.] [2.]

    Source: Graves et al. 2006; the forward recursion, in logarithms.
    """
    name = "ctc_loss_with_forward_probs"
    loss, ways = _forward(name, logits, labels, logit_mask, label_mask, blank_id)
    return loss, ways[..., 0::2], ways[..., 1::2]


def _forward(
    name: str,
    logits: Any,
    labels: Any,
    logit_mask: Any,
    label_mask: Any,
    blank_id: int,
) -> tuple[Array, Array]:
    """Returns the loss, and the logarithms of all ways to each symbol at each step."""
    floats(name, "logits", logits, "time", "classes")
    *batch, time, classes = typeof(logits).shape
    aval = typeof(array(name, "labels", labels, "integers"))
    if aval.ndim != len(batch) + 1 or aval.shape[:-1] != tuple(batch):
        listed = ", ".join(map(str, (*batch, "labels")))
        raise ShapeError(f"{name}: labels must be int[{listed}], got {aval}")
    blank = integer(name, "blank_id", blank_id)
    if not 0 <= blank < classes:
        raise ArgumentError(
            f"{name}: blank_id must be one of {classes} classes, got {blank}"
        )
    count = aval.shape[-1]
    lengths: Any = fnp.full(tuple(batch), count, "int32")
    if label_mask is not None:
        shaped(name, "label_mask", label_mask, (*batch, count), "bools")
        lengths = fnp.sum(label_mask, -1, dtype="int32")
    if logit_mask is not None:
        shaped(name, "logit_mask", logit_mask, (*batch, time), "bools")
        logit_mask = fnp.moveaxis(fnp.expand_dims(logit_mask, -1), -2, 0)

    if dtypes.bits(typeof(logits).dtype) < 32:
        logits = lax.convert_element_type(logits, "float32")
    log_p = log_softmax(logits)
    dtype = typeof(log_p).dtype
    # Blanks around the labels: _ a _ b _. From each symbol one goes to itself, to the
    # next, and past a blank between two different labels.
    padded = fnp.full((*batch, count, 2), blank, aval.dtype)
    padded = padded.at[..., 0].set(labels)
    edge = fnp.full((*batch, 1), blank, aval.dtype)
    symbols = fnp.concatenate([edge, fnp.reshape(padded, (*batch, 2 * count))], axis=-1)
    size = 2 * count + 1
    odd = fnp.equal(fnp.remainder(fnp.arange(size), 2), 1)
    skips = fnp.logical_and(odd, fnp.not_equal(symbols, _later(symbols, 2, blank)))
    said = fnp.take_along_axis(log_p, fnp.expand_dims(symbols, -2), axis=-1)

    def step(ways: Any, slices: Any) -> Any:
        here, taken = slices
        past = fnp.where(skips, _later(ways, 2, -math.inf), -math.inf)
        new = fnp.add(_log_sum(ways, _later(ways, 1, -math.inf), past), here)
        new = new if taken is None else fnp.where(taken, new, ways)
        return new, new

    # Before the first step one stands at the first blank, having said nothing.
    start = fnp.full((*batch, size), -math.inf, dtype).at[..., 0].set(0)
    ways, every = lax.scan(step, start, (fnp.moveaxis(said, -2, 0), logit_mask))
    # One ends with the last label, or the blank behind it.
    ends = fnp.expand_dims(2 * lengths, -1)
    places = fnp.arange(size, dtype="int32")
    is_end = fnp.logical_or(fnp.equal(places, ends), fnp.equal(places, ends - 1))
    last = fnp.where(is_end, ways, -math.inf)
    return fnp.negative(_log_sum(*fnp.moveaxis(last, -1, 0))), every


def _later(x: Any, by: int, fill: Any) -> Any:
    """Moves elements towards the end of the last axis."""
    head = fnp.full((*typeof(x).shape[:-1], by), fill, typeof(x).dtype)
    both = fnp.concatenate([head, x], axis=-1)
    return both[..., : typeof(x).shape[-1]]


def _log_sum(*parts: Any) -> Any:
    """Returns the logarithm of a sum of exponentials; no slope where all are -inf."""
    top = parts[0]
    for part in parts[1:]:
        top = fnp.maximum(top, part)
    top = stop_gradient(top)
    is_none = fnp.equal(top, -math.inf)
    top = fnp.where(is_none, 0, top)
    total = sum(fnp.exp(fnp.subtract(part, top)) for part in parts)
    total = fnp.where(is_none, 1, total)
    return fnp.where(is_none, -math.inf, fnp.add(fnp.log(total), top))
