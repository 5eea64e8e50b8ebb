"""Scaled dot-product attention."""

from __future__ import annotations

import importlib
import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, Shape, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.runtime.library import library
from fxflow.devices import buffers
from fxflow.devices.clients import device_count
from fxflow.devices.native import vector_lanes
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.kernels import native
from fxflow.nn.fused_attention import Fused, check, fused_attention
from fxflow.nn.normalization import logsumexp, softmax

_NAME = "dot_product_attention"


@library("scale", "is_causal", "local_window_size", "implementation", "return_residual")
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: Any = None,
    key_value_seq_lengths: Any = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any:
    r"""Attends: :math:`\mathrm{softmax}(s\, Q K^T + B)\, V`, for each head.

    Shapes: B batch, T query positions, S key positions, N query heads, K key heads (K
    divides N: each key head serves N / K neighbouring query heads), H features.

    Args:
      query: float[B, T, N, H], or without B.
      key: float[B, S, K, H], or without B.
      value: float[B, S, K, H], or without B.
      bias: float, broadcast against [B, N, T, S]: added to the scaled products.
      mask: bool, broadcast against [B, N, T, S]: False where nothing is to be seen.
      scale: s; None means 1 / √H.
      is_causal: whether a position sees only itself and earlier ones.
      query_seq_lengths: int[B]: results beyond them are 0.
      key_value_seq_lengths: int[B]: keys beyond them are not seen.
      local_window_size: how many positions before and after itself a position sees; an
        integer or a pair.
      implementation: `"xla"`: operations on all products at once. `"kernel"`: fxflow's
        own kernels (extra `kernels`), which keep no products, so that memory grows with
        T + S and not with T · S, on CPUs; float64 and other platforms take the
        operations of `"xla"`. `"cudnn"`: NVIDIA's fused kernels, which keep none
        either: for float16 and bfloat16, H a multiple of 8 and at most 256, and no
        window that reaches beyond the position itself (but `is_causal`). None:
        `"kernel"` if the only device is a CPU and that is faster, else `"xla"`.
      return_residual: whether to return the logarithms of the softmax's sums as well.

    Returns:
      Array of the shape and dtype of `query`; with `return_residual` a pair of it and
      one of shape [B, T, N] and the same dtype.

    Raises:
      ArgumentError: another implementation; one that does not take such arguments, or
        is not for this platform; a negative window.
      DtypeError: the dtypes differ or are not float; the mask is not bool.
      ShapeError: the shapes are incompatible.

    Special cases:
      A position that sees nothing gets the mean of the values (as all products are
      equally small), or 0 if it lies beyond its `query_seq_lengths`. A bias of -inf is
      as False in the mask.

    Example:
      >>> x = fnp.ones((2, 5, 4, 8))
      >>> nn.dot_product_attention(x, x, x, is_causal=True).shape
      (2, 5, 4, 8)

    With `"kernel"` the gradient of query, key and value is a kernel as well; the
    derivative with respect to `bias`, forward mode and second derivatives take the
    operations of `"xla"`. With `"cudnn"` the logarithms have no derivative, and of a
    program for several devices each computes all: it belongs under `shard_map`.

    Source: Vaswani et al. 2017; shared key heads: Ainslie et al. 2023. Products of
    16-bit floats are added, and the softmax is taken, in float32.
    """
    if implementation not in (None, "xla", "kernel", "cudnn"):
        raise ArgumentError(
            f'{_NAME}: implementation must be None, "xla", "kernel" or "cudnn", got '
            f"{implementation!r}"
        )
    shape = _check_types(query, key, value)
    if len(shape) == 3:
        query, key, value = (fnp.expand_dims(x, 0) for x in (query, key, value))
    if scale is None:
        scale = 1 / math.sqrt(shape[-1] or 1)
    options = _Options(
        bias,
        mask,
        scale,
        is_causal,
        _window(local_window_size),
        (query_seq_lengths, key_value_seq_lengths),
        return_residual,
    )
    if implementation == "cudnn":
        check(query)
        out, sums = _fused(query, key, value, options)
    elif implementation == "kernel" or (
        implementation is None and _prefers_kernels(query, key)
    ):
        out, sums = _by_kernels(query, key, value, options)
    else:
        out, sums = _attend(query, key, value, options)
    out = fnp.reshape(out, shape)
    if sums is None:
        return out
    dtype = typeof(query).dtype
    return out, lax.convert_element_type(fnp.reshape(sums, shape[:-1]), dtype)


class _Options(NamedTuple):
    """What is computed of query, key and value: see `dot_product_attention`.

    Attributes:
      window: how many positions before and after itself a position sees; None: all.
      lengths: of the queries and of the keys.
      with_sums: whether the logarithms of the sums are wanted.
    """

    bias: Any
    mask: Any
    scale: float
    is_causal: bool
    window: tuple[int, int] | None
    lengths: tuple[Any, Any]
    with_sums: bool


def _attend(
    query: Any, key: Any, value: Any, options: _Options
) -> tuple[Array, Array | None]:
    """Returns the result, [B, T, N, H], and the logarithms of the sums, [B, T, N]."""
    shape = typeof(query).shape
    query, bias, mask, lengths = _split(query, key, options)
    logits = _logits(query, key, bias, mask, lengths, options)
    weights = lax.convert_element_type(softmax(logits), typeof(value).dtype)
    # [B, K, G, T, S] · [B, S, K, H] → [B, K, G, T, H]
    mixed = lax.dot_general(weights, value, (((4,), (1,)), ((0, 1), (0, 2))))
    mixed = fnp.transpose(mixed, (0, 3, 1, 2, 4))
    if lengths[0] is not None:
        batch, length, *_ = shape
        inside = _inside(lengths[0], length)
        mixed = fnp.where(fnp.reshape(inside, (batch, length, 1, 1, 1)), mixed, 0)
    out = fnp.reshape(mixed, shape)
    if not options.with_sums:
        return out, None
    return out, _with_heads(logsumexp(logits, -1), shape)


def _with_heads(sums: Any, shape: Shape) -> Array:
    """Returns [B, T, N] of [B, K, G, T]."""
    return fnp.reshape(fnp.transpose(sums, (0, 3, 1, 2)), shape[:-1])


def _split(query: Any, key: Any, options: _Options) -> tuple[Any, Any, Any, Any]:
    """Returns query, bias, mask and lengths, with an axis of the heads of a key head.

    Returns:
      float[B, T, K, G, H]; two arrays that broadcast to [B, K, G, T, S], or None; two
      of integers[B], or None.
    """
    batch, length, heads, features = typeof(query).shape
    _, span, groups, _ = typeof(key).shape
    full = (batch, heads, length, span)
    bias, mask, lengths = options.bias, options.mask, options.lengths
    if mask is not None:
        mask = _grouped(_checked_mask(mask, full), groups)
    if bias is not None:
        wide = _wide(typeof(query).dtype)
        bias = lax.convert_element_type(_of_rank_4("bias", bias, full), wide)
        bias = _grouped(bias, groups)
    for name, given in zip(_LENGTHS, lengths, strict=True):
        if given is not None:
            _check_lengths(name, given, batch)
    query = fnp.reshape(query, (batch, length, groups, heads // groups, features))
    return query, bias, mask, lengths


def _wide(dtype: Any) -> Any:
    """Returns the dtype in which products are added."""
    return dtype if dtypes.bits(dtype) >= 32 else dtypes.float32


def _logits(
    query: Any, key: Any, bias: Any, mask: Any, lengths: Any, options: _Options
) -> Any:
    """Returns the products of what `_split` returns, [B, K, G, T, S]."""
    wide = _wide(typeof(query).dtype)
    batch, length, groups, share, _ = typeof(query).shape
    span = typeof(key).shape[1]
    # [B, T, K, G, H] · [B, S, K, H] → [B, K, T, G, S]
    products = lax.dot_general(
        query, key, (((4,), (3,)), ((0, 2), (0, 2))), preferred_element_type=wide
    )
    logits = fnp.multiply(fnp.transpose(products, (0, 1, 3, 2, 4)), options.scale)
    seen = _visible(mask, lengths[1], length, span, options)
    if bias is not None:
        logits = fnp.add(logits, bias)
        # A bias of -inf is a mask: a row of nothing else must not become nan.
        there = fnp.not_equal(bias, -math.inf)
        seen = there if seen is None else fnp.logical_and(seen, there)
    if lengths[0] is not None:
        rows = fnp.reshape(_inside(lengths[0], length), (batch, 1, 1, length, 1))
        seen = rows if seen is None else fnp.logical_and(seen, rows)
    if seen is None:
        return logits
    # Not -inf: a row that sees nothing must not become nan.
    seen = fnp.broadcast_to(seen, (batch, groups, share, length, span))
    return fnp.where(seen, logits, _lowest(wide))


# -- by kernels of fxflow --------------------------------------------------------------

#: Products of queries and keys in all, and queries, from which the kernels are faster.
_PRODUCTS, _QUERIES = 2**17, 16


def _prefers_kernels(query: Any, key: Any) -> bool:
    """Returns whether the kernels are there, and faster than XLA's operations."""
    if not _has_known_sizes(query, key):
        return False
    batch, length, heads, _ = typeof(query).shape
    products = batch * heads * length * typeof(key).shape[1]
    return (
        length >= _QUERIES
        and products >= _PRODUCTS
        and dtypes.bits(typeof(query).dtype) <= 32
        and buffers.default_placement().platform == "cpu"
        # The program may be divided over several devices, operation by operation.
        and device_count() == 1
        and native.is_enabled()
        and vector_lanes() > 0
    )


def _has_known_sizes(query: Any, key: Any) -> bool:
    """Returns whether no length is symbolic."""
    return all(type(n) is int for x in (query, key) for n in typeof(x).shape)


def _by_kernels(
    query: Any, key: Any, value: Any, options: _Options
) -> tuple[Array, Array | None]:
    """Returns what `_attend` does, without an array of all products."""
    shape = typeof(query).shape
    if not _has_known_sizes(query, key) or 0 in (*shape, *typeof(key).shape):
        return _attend(query, key, value, options)
    # Not before it is needed: importing `fxflow.nn` loads no kernels.
    gallery: Any = importlib.import_module("fxflow.kernels.gallery.attention")

    query, bias, mask, (queries, keys) = _split(query, key, options)
    parts = gallery.Parts(*(
        tuple(lax.convert_element_type(x, dtype) for x in (given,) if x is not None)
        for given, dtype in (
            (mask, dtypes.bool_), (queries, dtypes.int32), (keys, dtypes.int32)
        )
    ))  # fmt: skip

    def logits(query: Any, key: Any, bias: Any, parts: Any) -> Any:
        bias, mask, queries, keys = (x[0] if x else None for x in (bias, *parts))
        return _logits(query, key, bias, mask, (queries, keys), options)

    lowest = _lowest(_wide(typeof(query).dtype))
    out, sums = gallery.attention(
        *(query, key, value, () if bias is None else (bias,), parts),
        scale=options.scale,
        hidden=gallery.Hidden(options.is_causal, options.window, lowest),
        logits=logits,
    )
    out = fnp.reshape(out, shape)
    return out, _with_heads(sums, shape) if options.with_sums else None


# -- by kernels of cuDNN ---------------------------------------------------------------


def _fused(
    query: Any, key: Any, value: Any, options: _Options
) -> tuple[Array, Array | None]:
    """Returns what `_attend` does, by kernels that know biases but no masks."""
    bias, mask, scale, is_causal, window, lengths, with_sums = options
    batch, length, heads, _ = typeof(query).shape
    span = typeof(key).shape[1]
    full = (batch, heads, length, span)
    if 0 in full or length == span == 1:  # cuDNN refuses both
        return _attend(query, key, value, options)
    seen = 0
    if window is not None:
        before, after = window
        if after and not is_causal:
            raise ArgumentError(
                f'{_NAME}: with implementation="cudnn" a window ends at the position '
                f"itself, (n, 0), got local_window_size {window}"
            )
        is_causal, seen = True, before + 1
    dtype = typeof(query).dtype
    if bias is not None:
        bias = lax.convert_element_type(_of_rank_4("bias", bias, full), dtype)
        bias = fnp.where(fnp.equal(bias, -math.inf), _lowest(dtype), bias)
    if mask is not None:
        mask = _checked_mask(mask, full)
        bias = fnp.where(mask, 0 if bias is None else bias, _lowest(dtype))
        bias = lax.convert_element_type(bias, dtype)
    if bias is not None:
        bias = fnp.broadcast_to(bias, (*typeof(bias).shape[:2], length, span))
    inside, counts = None, None
    if any(given is not None for given in lengths):
        for name, given in zip(_LENGTHS, lengths, strict=True):
            if given is not None:
                _check_lengths(name, given, batch)
        if lengths[0] is not None:
            inside = _inside(lengths[0], length)
        counts = [
            fnp.full(batch, whole, dtypes.int32)
            if given is None
            else lax.convert_element_type(given, dtypes.int32)
            for given, whole in zip(lengths, (length, span), strict=True)
        ]

    def plain(q: Any, k: Any, v: Any, bias: Any, counts: Any) -> Any:
        # The mask is in the bias.
        both = tuple(counts) or (None, None)
        alike = options._replace(
            bias=bias[0], mask=None, is_causal=is_causal, lengths=both, with_sums=False
        )
        return _attend(q, k, v, alike)[0]

    out, sums = fused_attention(
        *(query, key, value, bias, counts, Fused(scale, is_causal, seen), plain),
        with_sums=with_sums,
    )
    if inside is not None:
        out = fnp.where(fnp.reshape(inside, (batch, length, 1, 1)), out, 0)
        if sums is not None:
            sums = fnp.where(fnp.expand_dims(inside, 2), sums, 0)
    return out, sums


def _lowest(dtype: Any) -> float:
    """Returns what stands for a product that is not seen."""
    return -0.7 * float(dtypes.finfo(dtype).max)


def _check_types(query: Any, key: Any, value: Any) -> Shape:
    """Checks the three arrays; returns the shape of the query."""
    given = {"query": query, "key": key, "value": value}
    for name, x in given.items():
        if not is_arraylike(x):
            raise not_an_array(x, f"{_NAME}: {name} is")
    avals = {name: typeof(x) for name, x in given.items()}
    listed = ", ".join(f"{name} {aval}" for name, aval in avals.items())
    q, k, v = avals.values()
    if not dtypes.is_floating(q.dtype) or q.dtype != k.dtype or q.dtype != v.dtype:
        raise DtypeError(f"{_NAME}: expected one float dtype, got {listed}")
    if q.ndim not in (3, 4) or q.ndim != k.ndim or k.shape != v.shape:
        raise ShapeError(
            f"{_NAME}: expected query [B, T, N, H] and key and value [B, S, K, H] (or "
            f"all without B), got {listed}"
        )
    if q.shape[:-3] != k.shape[:-3] or q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{_NAME}: B and H of query and key differ: got {listed}")
    heads, groups = q.shape[-2], k.shape[-2]
    if not groups or heads % groups:
        raise ShapeError(
            f"{_NAME}: {groups} key heads do not divide {heads} query heads: "
            f"got {listed}"
        )
    return q.shape


def _of_rank_4(name: str, x: Any, full: Shape) -> Any:
    """Returns an array that broadcasts against [B, N, T, S], of the same rank."""
    if not is_arraylike(x):
        raise not_an_array(x, f"{_NAME}: {name} is")
    aval = typeof(x)
    if aval.ndim > 4 or any(
        n not in (1, m) for n, m in zip(aval.shape[::-1], full[::-1], strict=False)
    ):
        raise ShapeError(
            f"{_NAME}: {name} must broadcast against [B, N, T, S] = {full}, got {aval}"
        )
    return fnp.reshape(x, (1,) * (4 - aval.ndim) + aval.shape)


def _grouped(x: Any, groups: int) -> Any:
    """Splits the axis of heads of [B, N, T, S] into key heads and heads of each."""
    batch, heads, length, span = typeof(x).shape
    split = (1, 1) if heads == 1 else (groups, heads // groups)
    return fnp.reshape(x, (batch, *split, length, span))


_LENGTHS = "query_seq_lengths", "key_value_seq_lengths"


def _check_lengths(name: str, lengths: Any, batch: int) -> None:
    """Raises an error if these are not the lengths of the sequences."""
    if not is_arraylike(lengths):
        raise not_an_array(lengths, f"{_NAME}: {name} is")
    aval = typeof(lengths)
    if aval.shape != (batch,) or not dtypes.is_integer(aval.dtype):
        raise ShapeError(
            f"{_NAME}: {name} must be integers of shape ({batch},), got {aval}"
        )


def _inside(lengths: Any, size: int) -> Any:
    """Returns the padding mask, bool[B, n]: which positions a sequence has."""
    aval = typeof(lengths)
    positions = lax.broadcasted_iota(aval.dtype, (*aval.shape, size), 1)
    return fnp.less(positions, fnp.expand_dims(lengths, 1))


def _window(given: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Returns how many positions before and after itself one sees; None: all."""
    if given is None:
        return None
    before, after = (given, given) if isinstance(given, int) else given
    if before < 0 or after < 0:
        raise ArgumentError(
            f"{_NAME}: local_window_size must not be negative, got {given}"
        )
    return before, after


def _checked_mask(mask: Any, full: Shape) -> Any:
    """Returns the mask with four axes."""
    mask = _of_rank_4("mask", mask, full)
    if not dtypes.is_bool(typeof(mask).dtype):
        raise DtypeError(f"{_NAME}: the mask must be bool, got {typeof(mask)}")
    return mask


def _visible(mask: Any, count: Any, length: int, span: int, options: _Options) -> Any:
    """Returns what is seen: bool, against [B, K, G, T, S]; None means everything."""
    seen: list[Any] = []
    if mask is not None:
        seen.append(mask)
    if options.is_causal or options.window is not None:
        rows = lax.broadcasted_iota(dtypes.int32, (length, span), 0)
        columns = lax.broadcasted_iota(dtypes.int32, (length, span), 1)
        if options.is_causal:
            seen.append(fnp.less_equal(columns, rows))
        if options.window is not None:
            before, after = options.window
            distance = fnp.subtract(columns, rows)
            seen.append(fnp.greater_equal(distance, -before))
            seen.append(fnp.less_equal(distance, after))
    if count is not None:
        inside = _inside(count, span)
        seen.append(fnp.reshape(inside, (*typeof(count).shape, 1, 1, 1, span)))
    if not seen:
        return None
    out = seen[0]
    for more in seen[1:]:
        out = fnp.logical_and(out, more)
    return out
