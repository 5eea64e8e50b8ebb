"""How gradients travel: pure functions of a gradient and of what was lost before.

A filter codes one server's part of a gradient, and the server decodes it; both are
compiled with what surrounds them. What the code loses goes into the next gradient
(*error feedback*), so that losses do not add up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, typeof
from fxflow.distributed.compression import Code, as_code
from fxflow.errors import ArgumentError


class Filter(NamedTuple):
    """A code for lists of gradients.

    Attributes:
      name: with its arguments; for people and reports.
      init: `init(gradient) -> residual`: what was lost before the first one.
      encode: `encode(gradient, residual) -> (coded, residual)`; `coded` is a pytree of
        arrays whose shapes depend on those of the gradient alone.
      decode: `decode(coded, like) -> gradient`, in the shapes and dtypes of `like`.
    """

    name: str
    init: Callable[[Sequence[Any]], Any]
    encode: Callable[[Sequence[Any], Any], tuple[Any, Any]]
    decode: Callable[[Any, Sequence[Any]], list[Any]]


def exact() -> Filter:
    """Returns the filter that sends gradients as they are."""
    return Filter(
        "exact()",
        lambda gradient: (),
        lambda gradient, residual: (list(gradient), residual),
        lambda coded, like: list(coded),
    )


def filter_of(exchange: str | Code | Filter) -> Filter:
    """Returns the filter of an argument `exchange`.

    Args:
      exchange: "f32", "bf16", "int8", a `Code` that rounds to nearest, or a filter.

    Raises:
      ArgumentError: it is none of these.
    """
    if isinstance(exchange, Filter):
        return exchange
    if exchange == "f32":
        return exact()
    if not isinstance(exchange, Code) and exchange not in ("bf16", "int8"):
        raise ArgumentError(
            "parameter_server: exchange must be 'f32', 'bf16', 'int8', a "
            f"compression.Code or a filter, got {exchange!r}"
        )
    return coded(as_code(exchange))


def coded(code: Code) -> Filter:
    """Returns the filter that sends a code of `distributed.compression`.

    What a step's code loses is added to the next step's gradient. Arrays that are not
    real floating point are sent as they are.

    Args:
      code: `compression.bf16()`, `compression.int8()`, ... that rounds to nearest.

    Raises:
      ArgumentError: it rounds at random, which needs a key; a step has none.
    """
    if code.stochastic:
        raise ArgumentError(
            "parameter_server: stochastic rounding needs a PRNG key, which a step has "
            "none of: round to nearest (error feedback corrects it in the next step)"
        )

    def blocks(x: Any) -> Any:
        flat = fnp.reshape(x.astype(dtypes.float32), (-1,))
        padded = fnp.pad(flat, (0, -typeof(flat).size % code.block_size))
        return fnp.reshape(padded, (-1, code.block_size))

    def unpacked(packed: Any, like: Any) -> Any:
        aval = typeof(like)
        flat = fnp.reshape(code.decode(packed), (-1,))[: aval.size]
        return fnp.reshape(flat, aval.shape).astype(aval.dtype)

    def init(gradient: Sequence[Any]) -> list[Any]:
        return [
            fnp.zeros(typeof(g).shape, dtypes.float32) if _is_coded(g) else None
            for g in gradient
        ]

    def encode(gradient: Sequence[Any], residual: Any) -> tuple[Any, Any]:
        sent: list[Any] = []
        kept: list[Any] = []
        for g, rest in zip(gradient, residual, strict=True):
            if rest is None:
                sent.append(g)
                kept.append(None)
                continue
            full = g.astype(dtypes.float32) + rest
            packed = code.encode(blocks(full), None)
            lost = full - unpacked(packed, full)
            sent.append(packed)
            # One bad gradient must not spoil all that follow.
            kept.append(fnp.where(fnp.isfinite(lost), lost, 0))
        return sent, kept

    def decode(sent: Any, like: Sequence[Any]) -> list[Any]:
        return [
            unpacked(packed, x) if _is_coded(x) else packed
            for packed, x in zip(sent, like, strict=True)
        ]

    return Filter(f"coded({code.block_size})", init, encode, decode)


def _is_coded(x: Any) -> bool:
    aval = typeof(x)
    return bool(dtypes.is_floating(aval.dtype) and aval.size)
