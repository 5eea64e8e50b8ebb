"""Losses over a large vocabulary that look at a few classes only.

Their weights are rows, one for each class: `w: [classes, features]`, `b: [classes]`.
Both losses only gather rows of them; so a program that wants the gradient of these rows
alone, instead of one of the size of the vocabulary, gathers them itself:

    rows = fnp.concatenate([labels[:, 0], drawn.ids])
    few = {name: weight[rows] for name, weight in params.items()}
    n = len(labels)
    here = drawn._replace(ids=n + fnp.arange(len(drawn.ids)))
    loss = nn.nce_loss(few, x, fnp.arange(n)[:, None], here)

and adds updates of them with one `.at[rows].add(...)` for each weight.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.nn._layers import array, floats, shaped, weights
from fxflow.nn.activations import log_sigmoid
from fxflow.nn.candidates import Candidates
from fxflow.nn.normalization import log_softmax
from fxflow.numpy._operands import ArrayLike

_docs = shared("""
    Args:
      params: dict of `w: float[classes, features]` and `b: float[classes]`.
      x: float[..., features], one vector for each example.
      labels: int[..., labels], the true classes of each example: one, or as many for
        all, which then share the probability.
      candidates: what a sampler such as `log_uniform_candidates` drew for the labels.
      remove_accidental_hits: whether to leave out, for each example, drawn classes that
        are its labels.

    Returns:
      float[...], the loss of each example.

    Raises:
      ArgumentError: the params are not a dict of the weights, or another argument is
        not an array.
      DtypeError: an argument has no floats, or the labels are not integers.
      ShapeError: the shapes are incompatible.

    Special cases:
      A label that is not a class gives nan.
""")


def _logits(
    name: str, params: Any, x: Any, labels: Any, candidates: Any, remove: bool
) -> tuple[Any, Any]:
    """Returns logits of the labels, and of the candidates, less what is expected."""
    w, b = weights(name, params, w="classes features", b="classes")
    features = typeof(w).shape[1]
    floats(name, "x", x, "features")
    if typeof(x).shape[-1] != features:
        raise ShapeError(
            f"{name}: x must be float[..., {features}], as w {typeof(w)} takes, got "
            f"{typeof(x)}"
        )
    batch = typeof(x).shape[:-1]
    aval = typeof(array(name, "labels", labels, "integers"))
    if aval.shape[:-1] != batch or aval.ndim != len(batch) + 1 or not aval.shape[-1]:
        listed = ", ".join(map(str, (*batch, "labels")))
        raise ShapeError(f"{name}: labels must be int[{listed}], got {aval}")
    if not isinstance(candidates, Candidates):
        raise ArgumentError(
            f"{name}: candidates must be what a sampler such as "
            f"nn.log_uniform_candidates returns, got {type(candidates).__name__}"
        )
    ids, expected, true_expected, hits = candidates
    array(name, "candidates.ids", ids, "integers")
    count = typeof(ids).shape
    shaped(name, "candidates.log_expected", expected, count, "floats")
    shaped(name, "candidates.true_log_expected", true_expected, aval.shape, "floats")
    shaped(name, "candidates.hits", hits, (*batch, *count), "bools")
    # [..., features] · [..., labels, features] → [..., labels]
    true = fnp.einsum("...f,...lf->...l", x, _rows(w, labels))
    true = fnp.subtract(fnp.add(true, _rows(b, labels)), true_expected)
    drawn = fnp.add(fnp.matmul(x, fnp.transpose(_rows(w, ids))), _rows(b, ids))
    drawn = fnp.subtract(drawn, expected)
    if remove:
        drawn = fnp.where(hits, -math.inf, drawn)
    return true, drawn


def _rows(table: Any, ids: Any) -> Any:
    """Returns rows; nan for those that there are not."""
    return fnp.asarray(table).at[ids].get(mode="fill", fill_value=math.nan)


@_docs
def nce_loss(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    labels: ArrayLike,
    candidates: Candidates,
    *,
    remove_accidental_hits: bool = False,
) -> Array:
    r"""Returns the loss of noise-contrastive estimation: data or noise, for each class.

    .. math::
       -\tfrac1T \sum_{t} \log \sigma(s_t) - (1 - \tfrac1T) \sum_t \log\sigma(-s_t)
       - \sum_{c} \log \sigma(-s_c), \qquad s_k = x \cdot w_k + b_k - \log E_k

    over T labels t and the candidates c; E is how often each was expected.

    Example:
      >>> params = {"w": fnp.zeros((100, 3)), "b": fnp.zeros(100)}
      >>> labels = np.array([[3], [5]])
      >>> drawn = nn.log_uniform_candidates(random.key(0), labels, 4, 100)
      >>> nn.nce_loss(params, fnp.ones((2, 3)), labels, drawn).shape
      (2,)

    Source: Gutmann and Hyvärinen 2010; Mnih and Teh 2012; TensorFlow's `nce_loss`.
    """
    true, drawn = _logits(
        "nce_loss", params, x, labels, candidates, remove_accidental_hits
    )
    share = 1 / typeof(true).shape[-1]
    yes = fnp.sum(fnp.multiply(share, log_sigmoid(true)), -1)
    no = fnp.sum(_log_not(drawn), -1)
    if share < 1:
        others = fnp.sum(log_sigmoid(fnp.negative(true)), -1)
        no = fnp.add(no, fnp.multiply(1 - share, others))
    out: Array = fnp.negative(fnp.add(yes, no))
    return out


def _log_not(logits: Any) -> Any:
    """Returns log σ(-x); 0, with slope 0, where x is -inf."""
    taken = fnp.not_equal(logits, -math.inf)
    safe = fnp.where(taken, logits, 0)
    return fnp.where(taken, log_sigmoid(fnp.negative(safe)), 0)


@_docs
def sampled_softmax_loss(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    labels: ArrayLike,
    candidates: Candidates,
    *,
    remove_accidental_hits: bool = True,
) -> Array:
    r"""Returns the cross entropy of a softmax over the labels and the candidates.

    .. math::
       -\tfrac1T \sum_t \log \frac{e^{s_t}}{\sum_{k \in t, c} e^{s_k}},
       \qquad s_k = x \cdot w_k + b_k - \log E_k

    It is for training; perplexities are those of the whole softmax.

    Example:
      >>> params = {"w": fnp.zeros((100, 3)), "b": fnp.zeros(100)}
      >>> labels = np.array([[3], [5]])
      >>> drawn = nn.log_uniform_candidates(random.key(0), labels, 4, 100)
      >>> nn.sampled_softmax_loss(params, fnp.ones((2, 3)), labels, drawn).shape
      (2,)

    Source: Jean et al. 2015; TensorFlow's `sampled_softmax_loss`.
    """
    true, drawn = _logits(
        "sampled_softmax_loss", params, x, labels, candidates, remove_accidental_hits
    )
    both = fnp.concatenate([true, drawn], axis=-1)
    chosen = log_softmax(both)[..., : typeof(true).shape[-1]]
    out: Array = fnp.negative(fnp.mean(chosen, -1))
    return out


def in_batch_softmax_loss(
    queries: ArrayLike,
    items: ArrayLike,
    *,
    ids: ArrayLike | None = None,
    log_expected: ArrayLike | None = None,
) -> Array:
    r"""Returns the cross entropy of a softmax over the items of the batch.

    .. math::
       -\log \frac{e^{s_{ii}}}{\sum_j e^{s_{ij}}}, \qquad
       s_{ij} = q_i \cdot v_j - \log E_j

    Item i is the right one for query i, and the others are its negatives: it trains two
    towers, without the vectors of all items. Frequent items are negatives more often,
    which E corrects for: how often each was expected in a batch.

    Args:
      queries: float[batch, features]. Divide them by a temperature, if any.
      items: float[m, features], with m ≥ batch: those of the queries in their order,
        followed by other negatives, if any.
      ids: int[m], which items these are: one that is the right one of a query is not
        its negative, too. None: all differ.
      log_expected: float[m], logarithms of how often each item is expected, up to a
        constant, such as those of its share of the examples; None: equally often.

    Returns:
      float[batch], the loss of each query.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: queries, items or `log_expected` are not floats, or the ids not
        integers.
      ShapeError: the shapes are incompatible.

    Special cases:
      A batch of one query, without other items, gives 0.

    Example:
      >>> towers = fnp.eye(3) * 5
      >>> nn.in_batch_softmax_loss(towers, fnp.eye(3))
      Array([0.0133859, 0.0133859, 0.0133859], dtype=float32)

    Source: Yi et al. 2019, "Sampling-bias-corrected neural modeling for large corpus
    item recommendations"; more items: Yang et al. 2020, "Mixed negative sampling for
    learning two-tower neural networks in recommendations".
    """
    name = "in_batch_softmax_loss"
    one = typeof(floats(name, "queries", queries, "batch", "features"))
    other = typeof(floats(name, "items", items, "m", "features"))
    if (
        not one.ndim == other.ndim == 2
        or one.shape[1] != other.shape[1]
        or one.shape[0] > other.shape[0]
    ):
        raise ShapeError(
            f"{name}: queries must be float[batch, features] and items float[m, "
            f"features] with m >= batch, got {one} and {other}"
        )
    batch, m = one.shape[0], other.shape[0]
    logits = fnp.matmul(queries, fnp.transpose(items))
    if log_expected is not None:
        shaped(name, "log_expected", log_expected, (m,), "floats")
        logits = fnp.subtract(logits, fnp.expand_dims(log_expected, 0))
    if ids is not None:
        shaped(name, "ids", ids, (m,), "integers")
        own = fnp.expand_dims(fnp.asarray(ids)[:batch], 1)
        hits = fnp.equal(own, fnp.expand_dims(ids, 0))
        hits = fnp.logical_and(hits, fnp.logical_not(fnp.eye(batch, m, dtype=bool)))
        logits = fnp.where(hits, -math.inf, logits)
    out: Array = fnp.negative(fnp.diagonal(log_softmax(logits)))
    return out
