"""Drawing classes to train against: the few that stand for a large vocabulary.

A sampler draws classes for a whole batch and says, for them and for the labels, how
often it expected to draw them, which the losses of `sampled_losses.py` correct for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.nn._layers import array, floats
from fxflow.numpy._operands import ArrayLike


class Candidates(NamedTuple):
    """Classes drawn for a batch.

    Attributes:
      ids: int32[count], the classes that were drawn.
      log_expected: float32[count], logarithms of how often they were expected.
      true_log_expected: float32[..., labels], the same of the labels.
      hits: bool[..., count], which of the drawn classes are labels of an example.
    """

    ids: Array
    log_expected: Array
    true_log_expected: Array
    hits: Array


_docs = shared("""
    Args:
      key: one key.
      labels: int[..., labels], the true classes of each example of the batch.
      count: how many classes to draw.
      unique: whether to draw until there are as many different ones.

    Returns:
      `Candidates`. A class of probability p is expected n p times in n draws or, if
      `unique`, :math:`1 - (1 - p)^t` times, t being how many draws it took.

    Raises:
      ArgumentError: `key` is not a key, or there are fewer classes than are to be
        drawn.
      DtypeError: the labels are not integers.
      ShapeError: the labels have no axis.
""")


def _drawn(
    name: str,
    key: Any,
    labels: Any,
    count: Any,
    classes: int,
    unique: bool,
    draw: Callable[[Any, int], Any],
    log_probability: Callable[[Any], Any],
) -> Candidates:
    """Draws candidates.

    Args:
      name: of the function, for messages.
      key: one key.
      labels: of the batch.
      count: how many to draw.
      classes: the number of them.
      unique: whether they must differ.
      draw: `draw(key, n) -> ids`.
      log_probability: of ids.
    """
    count = natural(name, "count", count)
    if typeof(array(name, "labels", labels, "integers")).ndim < 1:
        raise ShapeError(
            f"{name}: labels must be int[..., labels], got {typeof(labels)}"
        )
    if unique and count > classes:
        raise ArgumentError(
            f"{name}: cannot draw {count} different ones of {classes} classes"
        )
    ids, tries = _unique(draw, key, count, classes) if unique else (draw(key, count), 0)

    def log_expected(ids: Any) -> Any:
        log_p = log_probability(ids)
        if not unique:
            return fnp.add(log_p, math.log(count))
        log_none = fnp.multiply(tries, fnp.log1p(fnp.negative(fnp.exp(log_p))))
        return fnp.log(fnp.negative(fnp.expm1(log_none)))

    same = fnp.equal(fnp.expand_dims(labels, -1), ids)
    return Candidates(ids, log_expected(ids), log_expected(labels), fnp.any(same, -2))


def _unique(
    draw: Callable[[Any, int], Any], key: Any, count: int, classes: int
) -> tuple[Any, Any]:
    """Returns the first different classes of a sequence of draws.

    Returns:
      The ids, and how many draws it took.
    """
    none = fnp.full(classes, dtypes.iinfo("int32").max, "int32")

    def unfinished(carry: Any) -> Any:
        return fnp.less(carry[2], count)

    def block(carry: Any) -> Any:
        turn, first, found, ids, tries = carry
        drawn = draw(random.fold_in(key, turn), count)
        places = fnp.add(fnp.multiply(turn, count), fnp.arange(count, dtype="int32"))
        first = first.at[drawn].min(places)
        is_new = fnp.equal(first[drawn], places)
        rank = fnp.add(found, fnp.cumsum(is_new, dtype="int32"))
        # What is not a new class, or one too many, is written past the end: nowhere.
        slots = fnp.where(is_new, fnp.subtract(rank, 1), count)
        ids = ids.at[slots].set(drawn, mode="drop")
        last = fnp.logical_and(is_new, fnp.equal(rank, count))
        tries = fnp.maximum(tries, fnp.max(fnp.where(last, fnp.add(places, 1), 0)))
        return fnp.add(turn, 1), first, rank[-1], ids, tries

    zero = fnp.zeros((), "int32")
    start = zero, none, zero, fnp.zeros(count, "int32"), zero
    _, _, _, ids, tries = lax.while_loop(unfinished, block, start)
    return ids, tries.astype("float32")


@_docs
def uniform_candidates(
    key: ArrayLike, labels: ArrayLike, count: int, classes: int, *, unique: bool = True
) -> Candidates:
    """Draws classes that are all equally likely.

    Args:
      classes: the number of them.

    Example:
      >>> drawn = nn.uniform_candidates(random.key(0), np.array([[3], [5]]), 4, 100)
      >>> drawn.ids.shape, drawn.true_log_expected.shape, drawn.hits.shape
      ((4,), (2, 1), (2, 4))
    """
    classes = natural("uniform_candidates", "classes", classes)
    return _drawn(
        "uniform_candidates",
        key,
        labels,
        count,
        classes,
        unique,
        lambda key, n: random.randint(key, (n,), 0, classes, "int32"),
        lambda ids: fnp.full(typeof(ids).shape, -math.log(classes), "float32"),
    )


@_docs
def log_uniform_candidates(
    key: ArrayLike, labels: ArrayLike, count: int, classes: int, *, unique: bool = True
) -> Candidates:
    r"""Draws classes by Zipf's law: class k with :math:`\log(1+1/(k+1))/\log(n+1)`.

    Classes must be sorted, the most frequent one first, as words of a vocabulary are.

    Args:
      classes: n, how many there are.

    Example:
      >>> labels = np.array([[3], [5]])
      >>> drawn = nn.log_uniform_candidates(random.key(0), labels, 4, 100)
      >>> len(set(drawn.ids.tolist()))
      4

    Source: TensorFlow's `log_uniform_candidate_sampler`.
    """
    classes = natural("log_uniform_candidates", "classes", classes)
    span = math.log(classes + 1)

    def draw(key: Any, n: int) -> Any:
        # [1, classes + 1) on a logarithmic scale; rounding may reach its end.
        drawn = fnp.exp(fnp.multiply(random.uniform(key, (n,)), span))
        return fnp.clip(drawn.astype("int32") - 1, 0, classes - 1)

    def log_probability(ids: Any) -> Any:
        ids = fnp.asarray(ids).astype("float32")
        share = fnp.log1p(fnp.divide(1.0, fnp.add(ids, 1)))
        return fnp.log(fnp.divide(share, span))

    return _drawn(
        "log_uniform_candidates",
        key,
        labels,
        count,
        classes,
        unique,
        draw,
        log_probability,
    )


@_docs
def unigram_candidates(
    key: ArrayLike,
    labels: ArrayLike,
    count: int,
    weights: ArrayLike,
    *,
    unique: bool = True,
) -> Candidates:
    """Draws classes in proportion to weights, such as how often each was seen.

    Args:
      weights: float[classes], not negative. Counts to the power of 0.75 are those of
        word2vec. Learned ones begin with ones, and count what comes by:
        `weights.at[labels].add(1)`.

    Raises:
      DtypeError: the labels are not integers, or the weights are not floats.

    Special cases:
      If `unique`, and fewer classes than `count` have a weight, it does not end. For a
      label without weight, which is never expected, `sampled_softmax_loss` is nan.

    Example:
      >>> weights = fnp.array([0.0, 1.0, 2.0, 0.0])
      >>> drawn = nn.unigram_candidates(random.key(0), np.array([[3]]), 2, weights)
      >>> sorted(drawn.ids.tolist())
      [1, 2]

    Source: TensorFlow's `fixed_unigram_candidate_sampler` and
    `learned_unigram_candidate_sampler`; the power: Mikolov et al. 2013.
    """
    name = "unigram_candidates"
    aval = typeof(floats(name, "weights", weights))
    if aval.ndim != 1 or not aval.size:
        raise ShapeError(f"{name}: weights must be float[classes], got {aval}")
    sums = fnp.cumsum(lax.convert_element_type(weights, "float32"))
    total = sums[-1]

    def draw(key: Any, n: int) -> Any:
        # Below the total, so that no class without a weight follows the last one.
        drawn = fnp.multiply(random.uniform(key, (n,)), total)
        drawn = fnp.minimum(drawn, fnp.nextafter(total, fnp.zeros_like(total)))
        return fnp.searchsorted(sums, drawn, side="right").astype("int32")

    def log_probability(ids: Any) -> Any:
        chosen = fnp.asarray(weights)[ids].astype("float32")
        return fnp.log(fnp.divide(chosen, total))

    return _drawn(
        name, key, labels, count, aval.shape[0], unique, draw, log_probability
    )
