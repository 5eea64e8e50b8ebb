"""Linear layers: dense, convolutional, and the lookup of embeddings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import int_tuple, integer, natural
from fxflow.nn import initializers
from fxflow.nn._layers import Params, array, drawn, floats, rank, weights
from fxflow.numpy._operands import ArrayLike, DTypeLike

Initializer = initializers.Initializer

_init_docs = shared("""
    Args:
      key: one key.
      inputs: number of input features.
      units: number of output features.
      bias: whether there is a bias; it begins with 0.
      w_init: initializer of `w`; None means `lecun_normal`.
      dtype: dtype of the weights; None means the default float.

    Raises:
      ArgumentError: a length is not a positive integer, or `key` is not a key.
""")

_layer_docs = shared("""
    Args:
      params: weights, as `{name}_init` makes them.

    Raises:
      ArgumentError: the params are not a dict of the weights, or `x` is not an array.
      DtypeError: an argument has no floats.
      ShapeError: the shapes are incompatible.
""")


def _made(
    name: str, key: Any, shape: Any, bias: bool, w_init: Any, dtype: Any
) -> Params:
    params = {"w": drawn(name, "w_init", w_init, key, shape, dtype)}
    if bias:
        params["b"] = initializers.zeros(None, shape[-1], dtype)
    return params


def _bias(params: Any) -> dict[str, str]:
    """Returns the axes of the bias, if there is one."""
    return {"b": "units"} if isinstance(params, Mapping) and "b" in params else {}


@_init_docs
def linear_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    *,
    bias: bool = True,
    w_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> Params:
    """Makes the weights of a dense layer.

    Returns:
      A dict of `w: [inputs, units]` and `b: [units]`.

    Example:
      >>> nn.linear_init(random.key(0), 3, 5)["w"].shape
      (3, 5)
    """
    sizes = [
        natural("linear_init", what, n)
        for what, n in (("inputs", inputs), ("units", units))
    ]
    return _made("linear_init", key, tuple(sizes), bias, w_init, dtype)


@_layer_docs
def linear(params: Mapping[str, ArrayLike], x: ArrayLike) -> Array:
    """Multiplies vectors by a matrix and adds a bias: `x @ w + b`.

    Args:
      x: float[..., inputs].

    Returns:
      float[..., units], of the dtype that `x` and the weights promote to.

    Example:
      >>> params = nn.linear_init(random.key(0), 3, 5)
      >>> nn.linear(params, fnp.ones((2, 3))).shape
      (2, 5)
    """
    w, *b = weights("linear", params, w="inputs units", **_bias(params))
    floats("linear", "x", x, "inputs")
    if typeof(x).shape[-1] != typeof(w).shape[0]:
        raise ShapeError(
            f"linear: x must be float[..., {typeof(w).shape[0]}], as w {typeof(w)} "
            f"takes, got {typeof(x)}"
        )
    product = fnp.matmul(x, w)
    return fnp.add(product, b[0]) if b else product


# -- convolutions ----------------------------------------------------------------------


@_init_docs
def conv_init(
    key: ArrayLike,
    inputs: int,
    units: int,
    window: Sequence[int],
    *,
    groups: int = 1,
    bias: bool = True,
    w_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> Params:
    """Makes the weights of a convolution.

    Args:
      inputs: number of features that come in.
      units: number of features that come out.
      window: its length along each spatial axis, one to three.
      groups: into how many groups features are divided that do not see each other;
        as many as `inputs` for a depthwise convolution.

    Returns:
      A dict of `w: [*window, inputs / groups, units]` and `b: [units]`.

    Raises:
      ArgumentError: the groups divide `inputs` or `units` with a remainder.

    Example:
      >>> nn.conv_init(random.key(0), 3, 8, (5, 5))["w"].shape
      (5, 5, 3, 8)
    """
    name = "conv_init"
    sizes = tuple(natural(name, "window", n) for n in int_tuple(name, "window", window))
    if not 1 <= len(sizes) <= 3:
        raise ArgumentError(f"{name}: window must be one to three lengths, got {sizes}")
    inputs, units = natural(name, "inputs", inputs), natural(name, "units", units)
    groups = natural(name, "groups", groups)
    if inputs % groups or units % groups:
        raise ArgumentError(
            f"{name}: {groups} groups do not divide {inputs} inputs and {units} units"
        )
    return _made(name, key, (*sizes, inputs // groups, units), bias, w_init, dtype)


@_layer_docs
def conv(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "SAME",
    dilation: Sequence[int] | None = None,
) -> Array:
    """Convolves images, sequences or volumes, whose features are the last axis.

    Args:
      x: float[batch, spatial axes, inputs], with as many spatial axes as the window.
        The number of groups follows from its inputs and the weights'.
      strides: steps of the window; None means 1.
      padding: `"SAME"`, `"VALID"`, `"SAME_LOWER"`, or a pair for each spatial axis.
      dilation: distance between neighbouring elements of the window; None means 1.

    Returns:
      float[batch, spatial axes, units], of the dtype that `x` and the weights promote
      to.

    Example:
      >>> params = nn.conv_init(random.key(0), 3, 8, (5, 5))
      >>> nn.conv(params, fnp.ones((2, 28, 28, 3)), strides=(2, 2)).shape
      (2, 14, 14, 8)

    Source: `lax.conv_general_dilated`.
    """
    spatial = "WHD"[: max(rank(params, "w", 3) - 2, 1)][::-1]
    axes = " ".join("window" + letter for letter in spatial)
    w, *b = weights("conv", params, w=f"{axes} inputs units", **_bias(params))
    floats("conv", "x", x)
    image, kernel = typeof(x), typeof(w)
    inputs = image.shape[-1] if image.ndim == kernel.ndim else 0
    # No inputs are one group of none.
    groups = inputs // kernel.shape[-2] if inputs and kernel.shape[-2] else 1
    if image.ndim != kernel.ndim or inputs != groups * kernel.shape[-2]:
        raise ShapeError(
            f"conv: x must be float[batch, {len(spatial)} spatial axes, inputs] with "
            f"a multiple of {kernel.shape[-2]} inputs, which w {kernel} takes, got "
            f"{image}: channels are the last axis"
        )
    per_axis = f"one for each of the {len(spatial)} spatial axes"
    for what, value in (("strides", strides), ("dilation", dilation)):
        if value is not None and not isinstance(value, tuple | list):
            raise ArgumentError(
                f"conv: {what} must be a sequence of integers, {per_axis}, got "
                f"{value!r}"
            )
    if not isinstance(padding, str | tuple | list):
        raise ArgumentError(
            f"conv: padding must be 'SAME', 'VALID' or a pair (low, high), {per_axis}, "
            f"got {padding!r}"
        )
    dtype = fnp.result_type(x, w, *b)
    x, w = (lax.convert_element_type(a, dtype) for a in (x, w))
    out = lax.conv_general_dilated(
        x,
        w,
        (1,) * len(spatial) if strides is None else strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=(f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
        feature_group_count=groups,
    )
    return fnp.add(out, b[0]) if b else out


# -- embeddings ------------------------------------------------------------------------


@_init_docs
def embedding_init(
    key: ArrayLike,
    vocabulary: int,
    features: int,
    *,
    w_init: Initializer | None = None,
    dtype: DTypeLike | None = None,
) -> Params:
    """Makes a table of vectors, one for each id.

    Args:
      vocabulary: the number of ids.
      features: length of a vector.
      w_init: initializer of `w`; None means normal numbers of variance 1 / features.

    Returns:
      A dict of `w: [vocabulary, features]`.

    Example:
      >>> nn.embedding_init(random.key(0), 1000, 16)["w"].shape
      (1000, 16)
    """
    rows = natural("embedding_init", "vocabulary", vocabulary)
    columns = natural("embedding_init", "features", features)
    draw = initializers.normal(1 / math.sqrt(columns)) if w_init is None else w_init
    return {"w": drawn("embedding_init", "w_init", draw, key, (rows, columns), dtype)}


@_layer_docs
def embedding(
    params: Mapping[str, ArrayLike], ids: ArrayLike, *, padding_id: int | None = None
) -> Array:
    """Looks up the vectors of ids.

    Args:
      ids: int[...].
      padding_id: one whose vector counts as 0 and does not learn; None: there is none.

    Returns:
      float[..., features].

    Raises:
      ArgumentError: the params are not a dict of the table, or the ids are not an
        array.
      DtypeError: the ids are not integers.

    Special cases:
      An id outside of the table gives nan. Negative ones count from the end.

    Example:
      >>> params = nn.embedding_init(random.key(0), 1000, 16)
      >>> nn.embedding(params, np.array([[3, 1, 4]])).shape
      (1, 3, 16)
    """
    (table,) = weights("embedding", params, w="vocabulary features")
    array("embedding", "ids", ids, "integers")
    rows: Any = fnp.asarray(table).at[ids].get(mode="fill", fill_value=math.nan)
    if padding_id is not None:
        padded = fnp.equal(ids, integer("embedding", "padding_id", padding_id))
        rows = fnp.where(fnp.expand_dims(padded, -1), 0, rows)
    out: Array = rows
    return out
