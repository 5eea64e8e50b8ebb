"""Attention in blocks of queries and keys: no array of all their products.

The forward kernel walks over blocks of keys for each block of queries, and keeps the
largest product and the sum of each row so far. The kernel of the gradient computes the
products of a block again, once for the cotangents of all three arrays.

Source: T. Dao, FlashAttention-2, 2023.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.primitive import Zero
from fxflow.kernels.body import cdiv, dot, ds, program_id
from fxflow.kernels.notation import kernel, like
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jvp import jvp
from fxflow.transforms.linear_call import linear_call
from fxflow.transforms.vjp import vjp

_WIDE = dtypes.float32
#: Queries of a program and keys of a step, forward.
_ROWS, _KEYS = 128, 128
#: Keys of a program and queries of a step, backward.
_KEYS_BACK, _ROWS_BACK = 128, 64


class Hidden(NamedTuple):
    """What restricts which keys a query sees; arrays of them are in a `Parts`.

    Attributes:
      is_causal: whether a position sees only itself and earlier ones.
      window: how many positions before and after itself it sees; None: all.
      lowest: the logit of a key that is not seen.
    """

    is_causal: bool
    window: tuple[int, int] | None
    lowest: float


class Parts(NamedTuple):
    """Arrays besides query, key and value, each in a tuple of one or none.

    Attributes:
      mask: bool, broadcasts to [B, K, G, T, S]: which keys a query sees.
      queries: int32[B]: the number of queries of a sequence.
      keys: int32[B]: the number of keys of a sequence.
    """

    mask: tuple[Any, ...]
    queries: tuple[Any, ...]
    keys: tuple[Any, ...]


#: Takes query, key, a tuple of the bias and the parts; returns float32[B, K, G, T, S].
Logits = Callable[[Any, Any, Any, Parts], Any]


def attention(
    query: Any,
    key: Any,
    value: Any,
    bias: tuple[Any, ...],
    parts: Parts,
    *,
    scale: float,
    hidden: Hidden,
    logits: Logits,
) -> tuple[Array, Array]:
    """Attends by kernels.

    Where a kernel is not compiled, and for derivatives of derivatives and in forward
    mode, all products are computed at once, from `logits`.

    Args:
      query: float[B, T, K, G, H]: K key heads, each for G query heads.
      key: float[B, S, K, H].
      value: float[B, S, K, H].
      bias: float, broadcasts to [B, K, G, T, S], in a tuple of one or none.
      parts: the other arrays.
      scale: of the products.
      hidden: which keys a query sees.
      logits: computes the products with scale and bias, `hidden.lowest` where a key is
        not seen.

    Returns:
      float[B, T, K, G, H] of the dtype of `value`, and the logarithms of the sums,
      float32[B, K, G, T].
    """
    found = _Attention(scale, hidden, logits)
    out, top, total = found.attend(query, key, value, bias, parts)
    return out, fnp.add(top, fnp.log(total))


class _Attention:
    """Attention with its derivatives.

    Results are the output, and the largest logit and the sum of each row.
    """

    def __init__(self, scale: float, hidden: Hidden, logits: Logits) -> None:
        self._scale, self._hidden, self._logits = scale, hidden, logits
        # Called by their own rules: derivatives of derivatives use the rules again.
        self.attend = custom_jvp(self._values)
        self.attend.defjvp(self._tangents, symbolic_zeros=True)
        self._slopes = custom_jvp(self._slopes_by_kernel)
        self._slopes.defjvp(self._tangents_of_slopes)

    # -- on whole arrays ---------------------------------------------------------------

    def _plain(self, q: Any, k: Any, v: Any, bias: Any, parts: Parts) -> Any:
        """Returns what `attend` does, with all products at once."""
        x = self._logits(q, k, bias, parts)
        top = fnp.max(x, -1)
        e = fnp.exp(fnp.subtract(x, fnp.expand_dims(top, -1)))
        total = fnp.sum(e, -1)
        weights = fnp.divide(e, fnp.expand_dims(total, -1)).astype(typeof(v).dtype)
        # [B, K, G, T, S] · [B, S, K, H] → [B, K, G, T, H]
        mixed = lax.dot_general(weights, v, (((4,), (1,)), ((0, 1), (0, 2))))
        out = fnp.transpose(mixed, (0, 3, 1, 2, 4))
        if parts.queries:
            inside = _rows_inside(parts, typeof(q).shape[1])
            out = fnp.where(fnp.reshape(inside, (*inside.shape, 1, 1, 1)), out, 0)
        return out, top, total

    def _plain_slopes(
        self,
        q: Any,
        k: Any,
        v: Any,
        slope: Any,
        top: Any,
        total: Any,
        delta: Any,
        bias: Any,
        parts: Parts,
    ) -> Any:
        """Returns what the kernel of the gradient does."""
        x, back = vjp(lambda q, k: self._logits(q, k, bias, parts), q, k)
        p = fnp.exp(fnp.subtract(x, fnp.expand_dims(top, -1)))
        p = fnp.divide(p, fnp.expand_dims(total, -1))
        if parts.queries:
            inside = _rows_inside(parts, typeof(q).shape[1])
            p = fnp.where(fnp.reshape(inside, (len(p), 1, 1, -1, 1)), p, 0)
        wide = slope.astype(_WIDE)
        # [B, T, K, G, H] · [B, S, K, H] → [B, K, T, G, S]
        dp = lax.dot_general(wide, v.astype(_WIDE), (((4,), (3,)), ((0, 2), (0, 2))))
        dp = fnp.transpose(dp, (0, 1, 3, 2, 4))
        dx = fnp.multiply(p, fnp.subtract(dp, fnp.expand_dims(delta, -1)))
        dq, dk = back(dx)
        # [B, K, G, T, S] · [B, T, K, G, H] → [B, K, S, H]
        dv = lax.dot_general(p, wide, (((2, 3), (3, 1)), ((0, 1), (0, 2))))
        return dk, fnp.transpose(dv, (0, 2, 1, 3)).astype(typeof(v).dtype), dq

    # -- derivatives -------------------------------------------------------------------

    def _tangents(self, primals: Any, tangents: Any) -> Any:
        q, k, v, bias, parts = primals
        outs = self.attend(*primals)
        plain = self._plain
        moving = tuple(instantiate(t) for t in tangents[:3])

        def forwards(fixed: Any, moving: Any) -> Any:
            *given, bias, parts, _ = fixed
            of = lambda q, k, v: plain(q, k, v, bias, parts)
            return jvp(of, tuple(given), moving)[1]

        def backwards(fixed: Any, cotangents: Any) -> Any:
            q, k, v, bias, parts, (out, top, total) = fixed
            slope, _, of_total = cotangents
            # What `top` contributes beside `total` cancels in the logarithm of the sum.
            product = fnp.multiply(slope.astype(_WIDE), out.astype(_WIDE))
            delta = fnp.transpose(fnp.sum(product, -1), (0, 2, 3, 1))
            delta = fnp.subtract(delta, fnp.multiply(of_total, total))
            dk, dv, dq = self._slopes(q, k, v, slope, top, total, delta, bias, parts)
            return dq, dk, dv

        given: Any = (q, k, v, bias, parts, outs)
        found = linear_call(forwards, backwards, given, moving)
        for one, tangent in zip(bias, tangents[3], strict=True):
            if type(tangent) is not Zero:
                of = lambda b: plain(q, k, v, (b,), parts)
                more = jvp(of, (one,), (tangent,))[1]
                found = tuple(map(fnp.add, found, more))
        return outs, found

    def _tangents_of_slopes(self, primals: Any, tangents: Any) -> Any:
        *given, parts = primals

        plain: Callable[..., Any] = self._plain_slopes

        def of(*given: Any) -> Any:
            return plain(*given, parts)

        tangent = jvp(of, tuple(given), tuple(tangents[:-1]))[1]
        return self._slopes(*primals), tangent

    # -- kernels -----------------------------------------------------------------------

    def _values(self, q: Any, k: Any, v: Any, bias: Any, parts: Parts) -> Any:
        """Runs the forward kernel."""
        axes = _Axes(q, k, "t:rows", "s", "g:1")
        sums = like(q, _WIDE, shape=axes.rows_shape())

        def plain(q: Any, k: Any, v: Any, *given: Any) -> Any:
            return self._plain(q, k, v, *_put_back(bias, parts, given))

        run = kernel(
            f"{axes.inputs(bias, parts)} -> {axes.q}, {axes.rows}, {axes.rows}",
            out=lambda *given: (like(q, typeof(v).dtype), sums, sums),
            reference=plain,
            name="attention",
            platforms=("cpu",),
        )(functools.partial(self._forward, bias, parts))
        return run(q, k, v, *tree.leaves((bias, parts)), rows=_ROWS)

    def _forward(
        self,
        bias: Any,
        parts: Parts,
        q: Any,
        k: Any,
        v: Any,
        *refs: Any,
        rows: int,
    ) -> None:
        """The body of the forward kernel: a block of queries."""
        *others, out_of, top_of, total_of = refs
        hidden = self._hidden
        shown = _Shown(hidden, *_put_back(bias, parts, others))
        # Queries are columns: a step packs nothing, and rows of sums are vectors.
        x = fnp.multiply(q[0, :, 0, 0].astype(_WIDE), self._scale).T
        features, rows = x.shape
        span = k.shape[1]
        keys = min(_KEYS, span)
        first = program_id(1) * rows
        row = first + lax.broadcasted_iota(dtypes.int32, (1, rows), 1)

        def step(j: Any, carry: Any) -> Any:
            top, total, acc = carry
            at = ds(j * keys, keys)
            column = j * keys + lax.broadcasted_iota(dtypes.int32, (keys, 1), 0)
            s = dot(k[0, at, 0].astype(_WIDE), x)
            s, _ = shown.logits(s, row, column, slice(None), at, transposed=True)
            if span % keys:
                s = fnp.where(fnp.less(column, span), s, -fnp.inf)
            new = fnp.maximum(top, fnp.max(s, 0, keepdims=True))
            p, old = fnp.exp(s - new), fnp.exp(top - new)
            acc = acc * old + dot(v[0, at, 0].astype(_WIDE).T, p)
            return new, total * old + fnp.sum(p, 0, keepdims=True), acc

        zeros = fnp.zeros((1, rows), _WIDE)
        start = zeros - fnp.inf, zeros, fnp.zeros((features, rows), _WIDE)
        bounds = shown.blocks_of_keys(first, rows, keys, span)
        top, total, acc = shown.loop(bounds, step, start, row)
        out = acc / total
        for count in shown.queries:
            inside = fnp.less(row, count)
            out, top = fnp.where(inside, out, 0), fnp.where(inside, top, hidden.lowest)
            total = fnp.where(inside, total, 1)
        out_of[0, :, 0, 0] = out.T.astype(out_of.dtype)
        top_of[0, 0, 0] = top[0]
        total_of[0, 0, 0] = total[0]

    def _slopes_by_kernel(
        self,
        q: Any,
        k: Any,
        v: Any,
        slope: Any,
        top: Any,
        total: Any,
        delta: Any,
        bias: Any,
        parts: Parts,
    ) -> Any:
        """Runs the kernel of the gradient; returns those of key, value and query."""
        share = typeof(q).shape[3]
        axes = _Axes(q, k, "t", "s:keys", "g:1" if share > 1 else "g")

        def plain(
            q: Any, k: Any, v: Any, slope: Any, top: Any, total: Any, delta: Any,
            *given: Any,
        ) -> Any:  # fmt: skip
            rest = _put_back(bias, parts, given)
            return self._plain_slopes(q, k, v, slope, top, total, delta, *rest)

        run = kernel(
            f"{axes.q}, {axes.k}, {axes.k}, {axes.q}, {axes.rows}, {axes.rows}, "
            f"{axes.rows}{axes.others(bias, parts)} -> {axes.k}, {axes.k}, {axes.q}",
            out=lambda *given: (like(k), like(v), like(q)),
            sums="s g" if share > 1 else "s",
            reference=plain,
            name="attention_gradient",
            platforms=("cpu",),
        )(functools.partial(self._backward, bias, parts, typeof(k).shape[1]))
        others = tree.leaves((bias, parts))
        return run(q, k, v, slope, top, total, delta, *others, keys=_KEYS_BACK)

    def _backward(
        self,
        bias: Any,
        parts: Parts,
        span: int,
        q: Any,
        k: Any,
        v: Any,
        slope: Any,
        top: Any,
        total: Any,
        delta: Any,
        *refs: Any,
        keys: int,
    ) -> None:
        """The body of the gradient's kernel: a block of keys, and all queries."""
        *others, dk_of, dv_of, dq_of = refs
        scale = self._scale
        shown = _Shown(self._hidden, *_put_back(bias, parts, others))
        scaled = fnp.multiply(k[0, :, 0].astype(_WIDE), scale)
        values = v[0, :, 0].astype(_WIDE)
        keys, features = scaled.shape
        length = q.shape[1]
        rows = min(_ROWS_BACK, length)
        first = program_id(1) * keys
        column = first + lax.broadcasted_iota(dtypes.int32, (1, keys), 1)

        def step(i: Any, carry: Any) -> Any:
            dk, dv = carry
            at = ds(i * rows, rows)
            row = i * rows + lax.broadcasted_iota(dtypes.int32, (rows, 1), 0)
            x = q[0, at, 0, 0].astype(_WIDE)
            up = slope[0, at, 0, 0].astype(_WIDE)
            s = dot(x, scaled.T)
            s, seen = shown.logits(s, row, column, at, slice(None))
            if span % keys:
                s = fnp.where(fnp.less(column, span), s, -fnp.inf)
            # Rows past the end have no sum.
            inside = fnp.less(row, shown.most_queries(length))
            part = fnp.where(inside, 1 / total[0, 0, 0, at][:, None], 0)
            p = fnp.exp(s - top[0, 0, 0, at][:, None]) * part
            ds_ = p * (dot(up, values.T) - delta[0, 0, 0, at][:, None])
            if seen is not None:
                ds_ = fnp.where(seen, ds_, 0)
            dq_of[0, at, 0, 0] += dot(ds_, scaled).astype(dq_of.dtype)
            return dk + dot(ds_.T, x), dv + dot(p.T, up)

        zeros = fnp.zeros((keys, features), _WIDE)
        bounds = shown.blocks_of_queries(first, keys, rows, length, top)
        dk, dv = lax.fori_loop(*bounds, step, (zeros, zeros))
        dk_of[0, :, 0] = (dk * scale).astype(dk_of.dtype)
        dv_of[0, :, 0] = dv.astype(dv_of.dtype)


class _Shown:
    """Which keys the queries of a program see.

    Attributes:
      queries: the number of queries of the sequence, in a list of one or none.
    """

    def __init__(self, hidden: Hidden, bias: Any, parts: Parts) -> None:
        self._hidden, self._bias, self._mask = hidden, bias, parts.mask
        self.queries = [ref[0] for ref in parts.queries]
        self._keys = [ref[0] for ref in parts.keys]

    def logits(
        self,
        s: Any,
        row: Any,
        column: Any,
        rows_at: Any,
        keys_at: Any,
        *,
        transposed: bool = False,
    ) -> tuple[Any, Any]:
        """Returns products with the bias, but for keys that are not seen.

        Args:
          s: float32[rows, keys], or transposed.
          row: numbers of the queries; broadcasts to `s`.
          column: numbers of the keys; broadcasts to `s`.
          rows_at: the part of the axis of queries in the bias and the mask.
          keys_at: that of the axis of keys.
          transposed: whether the first axis of `s` is that of the keys.

        Returns:
          The logits, and which are seen: bool, or None for all.
        """

        def part(ref: Any) -> Any:
            *_, rows, keys = ref.shape
            i, j = (slice(None) if n == 1 else at
                    for n, at in ((rows, rows_at), (keys, keys_at)))  # fmt: skip
            found = ref[0, 0, 0, i, j]
            return found.T if transposed else found

        tests = []
        for ref in self._bias:
            bias = part(ref).astype(_WIDE)
            s = s + bias
            tests.append(fnp.not_equal(bias, -fnp.inf))
        tests += [part(ref) for ref in self._mask]
        if self._hidden.is_causal:
            tests.append(fnp.less_equal(column, row))
        if self._hidden.window is not None:
            before, after = self._hidden.window
            tests.append(fnp.greater_equal(column, row - before))
            tests.append(fnp.less_equal(column, row + after))
        tests += [fnp.less(column, count) for count in self._keys]
        tests += [fnp.less(row, count) for count in self.queries]
        if not tests:
            return s, None
        seen = functools.reduce(fnp.logical_and, tests)
        return fnp.where(seen, s, self._hidden.lowest), seen

    def most_queries(self, length: int) -> Any:
        """Returns the number of queries of the sequence, at most that of the array."""
        most: Any = length
        for count in self.queries:
            most = fnp.minimum(count, most)
        return most

    def blocks_of_keys(
        self, first: Any, rows: int, keys: int, span: int
    ) -> tuple[Any, Any, int]:
        """Returns the blocks that queries may see: the first one, the end, the number.

        Args:
          first: the number of the first query.
          rows: the number of queries.
          keys: the length of a block.
          span: the number of keys.
        """
        start: Any = 0
        count = cdiv(span, keys)
        end: Any = count
        before, after = self._reach()
        if after is not None:
            end = fnp.minimum(end, lax.div(first + (rows - 1 + after), keys) + 1)
        if before is not None:
            start = lax.div(fnp.maximum(first - before, 0), keys)
        for n in self._keys:
            end = fnp.minimum(end, lax.div(fnp.maximum(n, 0) + (keys - 1), keys))
        return fnp.minimum(start, end) if before is not None else start, end, count

    def blocks_of_queries(
        self, first: Any, keys: int, rows: int, length: int, top: Any
    ) -> tuple[Any, Any]:
        """Returns the blocks that may see keys: the first one, and the end.

        Args:
          first: the number of the first key.
          keys: the number of keys.
          rows: the length of a block.
          length: the number of queries.
          top: the largest logit of each query.
        """
        start: Any = 0
        count = cdiv(length, rows)
        end: Any = count
        before, after = self._reach()
        if after is not None:
            start = lax.div(fnp.maximum(first - after, 0), rows)
        if before is not None:
            end = fnp.minimum(end, lax.div(first + (keys - 1 + before), rows) + 1)
        for n in self._keys:
            end = fnp.where(fnp.less(first, n), end, 0)
        if self._may_be_blind():
            row = lax.broadcasted_iota(dtypes.int32, (length,), 0)
            blind = self._blind(top[0, 0, 0], row)
            start, end = fnp.where(blind, 0, start), fnp.where(blind, count, end)
        for n in self.queries:
            end = fnp.minimum(end, lax.div(fnp.maximum(n, 0) + (rows - 1), rows))
        return start, end

    def loop(
        self,
        bounds: tuple[Any, Any, int],
        step: Callable[[Any, Any], Any],
        carry: Any,
        row: Any,
    ) -> Any:
        """Runs a step for each block of keys that is seen, or for all of them.

        A query that sees nothing has the mean of all values: then the other blocks
        follow.

        Args:
          bounds: what `blocks_of_keys` returns.
          step: of the number of a block and the carry, which begins with the largest
            logits.
          carry: at the start.
          row: numbers of the queries.
        """
        start, end, count = bounds
        if not self._may_be_blind() or (type(start) is int and type(end) is int):
            return lax.fori_loop(start, end, step, carry)

        def phase(i: Any, carry: Any) -> Any:
            blind = self._blind(carry[0], row)
            last = fnp.where(fnp.equal(i, 1), start, count)
            first = fnp.where(fnp.equal(i, 1), 0, end)
            last = fnp.where(blind, last, first)
            first = fnp.where(fnp.equal(i, 0), start, first)
            last = fnp.where(fnp.equal(i, 0), end, last)
            return lax.fori_loop(first, last, step, carry)

        return lax.fori_loop(0, 3, phase, carry)

    def _reach(self) -> tuple[int | None, int | None]:
        """Returns how many positions before and after itself a query sees."""
        before, after = self._hidden.window or (None, None)
        return before, 0 if self._hidden.is_causal else after

    def _may_be_blind(self) -> bool:
        """Returns whether a query may see nothing."""
        # A causal query sees the first key.
        return bool(
            self._bias or self._mask or self._keys or self._hidden.window is not None
        )

    def _blind(self, top: Any, row: Any) -> Any:
        """Returns whether one of the queries of the sequence sees nothing."""
        found = fnp.less_equal(top, self._hidden.lowest)
        for count in self.queries:
            found = fnp.logical_and(found, fnp.less(row, count))
        return fnp.any(found)


class _Axes:
    """The axes of the arrays in a kernel's notation.

    Attributes:
      q: of query, output and their cotangents.
      k: of key and value.
      rows: of what each query has for each head.
    """

    def __init__(self, q: Any, k: Any, t: str, s: str, g: str) -> None:
        batch, length, groups, share, _ = typeof(q).shape
        self._full = batch, groups, share, length, typeof(k).shape[1]
        self._names = "b:1", "k:1", g, t, s
        self.q, self.k = f"b:1 {t} k:1 {g} h", f"b:1 {s} k:1 h"
        self.rows = f"b:1 k:1 {g} {t}"

    def rows_shape(self) -> tuple[int, ...]:
        """Returns the lengths of `rows`."""
        return self._full[:4]

    def inputs(self, bias: Any, parts: Parts) -> str:
        """Returns the axes of query, key, value and the others."""
        return f"{self.q}, {self.k}, {self.k}{self.others(bias, parts)}"

    def others(self, bias: Any, parts: Parts) -> str:
        """Returns the axes of the bias and the parts, with a comma before each."""
        full = [self._spread(x) for x in (*bias, *parts.mask)]
        return "".join(f", {x}" for x in [*full, *["b:1"] * len(parts[1] + parts[2])])

    def _spread(self, x: Any) -> str:
        """Returns the axes of an array that broadcasts against all products."""
        of = zip(typeof(x).shape, self._full, self._names, strict=True)
        return " ".join(
            name if n == m else f"one{i}" for i, (n, m, name) in enumerate(of)
        )


def _put_back(bias: Any, parts: Parts, given: Sequence[Any]) -> tuple[Any, Parts]:
    """Returns a bias and parts whose arrays are others, in order."""
    found: tuple[Any, Parts] = tree.structure((bias, parts)).unflatten(given)
    return found


def _rows_inside(parts: Parts, length: int) -> Any:
    """Returns bool[B, T]: which queries a sequence has."""
    (count,) = parts.queries
    row = lax.broadcasted_iota(dtypes.int32, (*typeof(count).shape, length), 1)
    return fnp.less(row, fnp.expand_dims(count, 1))
