"""Filters: encode gradients with a code of `compression`, or select entries to send.

A filter is a pair of pure functions: the worker encodes one server's part of a
gradient, and the server decodes it. Both are compiled with the surrounding code. What
is not sent is added to the next gradient (*error feedback*), so the sum of what arrives
differs from the sum of the gradients only by the loss of one step.

    exchange = by_group({"*/b": "f32", "embedding": top_k(0.01)}, "int8")
    server = parameter_server(loss, optimizer, consistency=ssp(4), exchange=exchange)

Arrays that are not real floating point, or that a code would not make smaller (such as
short biases), are sent unchanged.
"""

from __future__ import annotations

import fnmatch
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.distributed.compression import Code, code_of_step, lost
from fxflow.errors import ArgumentError
from fxflow.transforms.inspection import eval_shape

#: The rows that `Cutter` appends to the name of a piece.
_ROWS = re.compile(r"\[\d{12}:\d{12}\]$")


class Filter(NamedTuple):
    """Encodes gradients, by the names of their parameters.

    Attributes:
      name: its name with arguments, for reports.
      init: `init(gradient) -> residual`: zeros, before the first gradient.
      encode: `encode(gradient, residual) -> (coded, residual)`; `coded` is a pytree of
        arrays whose shapes depend only on those of the gradient.
      decode: `decode(coded, like) -> gradient`, in the shapes and dtypes of `like`.
      check: `check(names)` raises an ArgumentError if the filter does not fit these
        parameters.
      chosen: `chosen(name)` returns the filter of one parameter; None: this one.
    """

    name: str
    init: Callable[[Mapping[str, Any]], Any]
    encode: Callable[[Mapping[str, Any], Any], tuple[Any, Any]]
    decode: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    check: Callable[[Sequence[str]], None] = lambda names: None
    chosen: Callable[[str], Filter] | None = None

    def of(self, name: str) -> Filter:
        """Returns the filter of one parameter: this one, or that of its group."""
        return self if self.chosen is None else self.chosen(name).of(name)


def filter_of(
    exchange: str | Code | Filter, what: str = "parameter_server: exchange"
) -> Filter:
    """Returns the filter that an argument `exchange` names.

    Args:
      exchange: "f32", "bf16", "f16", "int8", "one_bit", a `Code` that rounds to
        nearest, or a filter.
      what: name of the argument, for error messages.

    Raises:
      ArgumentError: it is not one of these.
    """
    if isinstance(exchange, Filter):
        return exchange
    code = code_of_step(what, exchange, " or a Filter")
    if code is None:
        return Filter(
            "f32",
            lambda gradient: {},
            lambda gradient, residual: (dict(gradient), residual),
            lambda sent, like: dict(sent),
        )
    return _of_arrays(
        code.name,
        lambda x, gradient: _packed(code, x),
        lambda sent, n: _unpacked(code, sent, n),
    )


def pull_filter_of(pull: str) -> Filter:
    """Returns the filter that an argument `pull` names; it encodes parameters.

    There is no error feedback: each pull encodes the server's current parameters.

    Args:
      pull: "f32", "bf16" or "f16".

    Raises:
      ArgumentError: it is not one of these.
    """
    if pull not in ("f32", "bf16", "f16"):
        raise ArgumentError(
            f"parameter_server: pull must be 'f32', 'bf16' or 'f16', got {pull!r}"
        )
    return filter_of(pull)


def coded_types(code: Filter, like: Mapping[str, Any]) -> tuple[list[Aval], Any]:
    """Returns the types of the arrays that a filter sends, and their structure.

    Args:
      code: the filter.
      like: a gradient, or `ShapeDtypeStruct`s.
    """

    def encode(gradient: Any) -> Any:
        return code.encode(gradient, code.init(gradient))[0]

    sent = eval_shape(encode, dict(like))
    leaves, treedef = tree.flatten(sent)
    return [Aval(leaf.shape, leaf.dtype) for leaf in leaves], treedef


def bytes_by_filter(code: Filter, like: Mapping[str, Any]) -> dict[str, int]:
    """Returns the number of bytes that each filter sends, by its name.

    Args:
      code: the filter.
      like: a gradient, or `ShapeDtypeStruct`s.
    """
    parts: dict[str, tuple[Filter, dict[str, Any]]] = {}
    for name, value in like.items():
        own = code.of(name)
        parts.setdefault(own.name, (own, {}))[1][name] = value
    return {
        name: sum(a.size * a.dtype.itemsize for a in coded_types(own, part)[0])
        for name, (own, part) in parts.items()
    }


# -- filters ---------------------------------------------------------------------------


def top_k(share: float, *, values: str | Code = "f32") -> Filter:
    """Returns a filter that sends the largest entries of each array, with positions.

    Other entries accumulate in the residual until they are among the largest.

    Args:
      share: fraction of the entries to send, in (0, 1]; at least one of each array.
      values: code of the entries: "f32", "bf16", "f16", "int8", "one_bit" or a `Code`.

    Raises:
      ArgumentError: `share` is not in (0, 1], or `values` is not one of these.

    Reference: Aji, Heafield 2017, "Sparse communication for distributed gradient
    descent"; Stich, Cordonnier, Jaggi 2018, "Sparsified SGD with memory".
    """
    _require_share("top_k", share)
    code = code_of_step("top_k: values", values)
    name = f"top_k({share:g}, values={code.name if code else 'f32'})"
    return _largest(name, share, 1, 0.0, False, code)


def significance(
    threshold: float,
    share: float = 0.25,
    *,
    relative: bool = False,
    block_size: int = 64,
    values: str | Code = "f32",
) -> Filter:
    """Returns a filter that sends blocks once they have accumulated enough.

    A block is significant if the magnitude of one of its accumulated entries reaches
    the threshold. The largest significant blocks are sent; the others stay in the
    residual. Programs have static shapes, so a push has room for a fixed share of the
    blocks, and takes that many bytes even if fewer are significant. Guarantee: the
    entries of blocks that are never sent are below the threshold, unless more blocks
    are significant at every step than there is room for.

    Args:
      threshold: at least 0; in the unit of the gradient, or relative.
      share: fraction of the blocks for which there is room, in (0, 1].
      relative: whether the threshold is in units of the root mean square of the
        step's gradient of the array. (Not of the parameter: a gradient does not change
        it before the server's optimizer has seen it.)
      block_size: number of adjacent entries in a block; for a table, the length of a
        row.
      values: code of the entries: "f32", "bf16", "f16", "int8", "one_bit" or a `Code`.

    Raises:
      ArgumentError: an argument is not among those above.

    Reference: Hsieh et al. 2017, "Gaia: geo-distributed machine learning approaching
    LAN speeds"; Li et al. 2014, "Scaling distributed machine learning with the
    parameter server".
    """
    _require_share("significance", share)
    if not (isinstance(threshold, int | float) and 0 <= threshold < math.inf):
        raise ArgumentError(
            f"significance: threshold must be a number, 0 or more, got {threshold!r}"
        )
    if not isinstance(block_size, int) or block_size < 1:
        raise ArgumentError(
            f"significance: block_size must be at least 1, got {block_size!r}"
        )
    code = code_of_step("significance: values", values)
    name = (
        f"significance({threshold:g}, {share:g}, relative={relative}, "
        f"block_size={block_size}, values={code.name if code else 'f32'})"
    )
    return _largest(name, share, block_size, threshold, relative, code)


def by_group(
    groups: Mapping[str | Callable[[str], bool], str | Code | Filter],
    default: str | Code | Filter = "f32",
) -> Filter:
    """Returns a filter that encodes each parameter with the filter of its group.

    Args:
      groups: maps a shell pattern (``"*/b"``, ``"embedding*"``) or a predicate on a
        parameter's name, such as ``layers/0/w``, to a code or filter. A parameter
        belongs to the first group that matches.
      default: code or filter for parameters that no group matches.

    Raises:
      ArgumentError: a key is neither a pattern nor a predicate, or a value is neither a
        code nor a filter; or, when the filter is used, a group is empty.

    Example:
      >>> by_group({"*/b": "f32", "embedding": top_k(0.01)}, "int8").name
      "by_group({'*/b': f32, 'embedding': top_k(0.01, values=f32)}, int8(256))"
    """
    for key in groups:
        if not isinstance(key, str) and not callable(key):
            raise ArgumentError(
                "by_group: a group is a pattern or a predicate on a parameter's name, "
                f"got {key!r}"
            )
    codes = [
        filter_of(code, f"by_group: {key!r}")
        for key, code in [*groups.items(), ("default", default)]
    ]

    def group_of(piece: str) -> int:
        name = _ROWS.sub("", piece)
        for i, key in enumerate(groups):
            if fnmatch.fnmatchcase(name, key) if isinstance(key, str) else key(name):
                return i
        return len(groups)

    def split(values: Mapping[str, Any]) -> list[tuple[Filter, dict[str, Any]]]:
        parts: list[dict[str, Any]] = [{} for _ in codes]
        for name, value in values.items():
            parts[group_of(name)][name] = value
        return list(zip(codes, parts, strict=True))

    def init(gradient: Mapping[str, Any]) -> list[Any]:
        return [code.init(part) for code, part in split(gradient)]

    def encode(gradient: Mapping[str, Any], residual: Any) -> tuple[Any, Any]:
        found = [
            code.encode(part, rest)
            for (code, part), rest in zip(split(gradient), residual, strict=True)
        ]
        return [sent for sent, _ in found], [rest for _, rest in found]

    def decode(sent: Any, like: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (code, part), values in zip(split(like), sent, strict=True):
            found.update(code.decode(values, part))
        return {name: found[name] for name in like}

    def check(names: Sequence[str]) -> None:
        parts = split(dict.fromkeys(names))
        for key, (code, part) in zip([*groups, None], parts, strict=True):
            if part:
                code.check(list(part))
            elif key is not None:
                raise ArgumentError(
                    f"by_group: {key!r} matches no parameter, or only those of earlier "
                    f"groups; parameters: {', '.join(map(repr, names))}"
                )

    named = ", ".join(
        f"{getattr(key, '__qualname__', repr(key))}: {code.name}"
        for key, code in zip(groups, codes, strict=False)
    )
    name = f"by_group({{{named}}}, {codes[-1].name})"
    return Filter(name, init, encode, decode, check, lambda n: codes[group_of(n)])


# -- one array -------------------------------------------------------------------------


def _of_arrays(
    name: str,
    pack: Callable[[Any, Any], tuple[Any, ...]],
    unpack: Callable[[tuple[Any, ...], int], Any],
) -> Filter:
    """Returns a filter that encodes each array separately, with error feedback.

    Args:
      name: name of the filter.
      pack: `(f32[n], f32[n]) -> tuple of arrays`: encodes the gradient plus the
        residual; the second argument is this step's gradient alone.
      unpack: the inverse, given n.
    """

    @functools.cache
    def bytes_of(size: int) -> int:
        flat = ShapeDtypeStruct((size,), dtypes.float32)
        packed = eval_shape(pack, flat, flat)
        return sum(math.prod(p.shape) * p.dtype.itemsize for p in packed)

    def is_coded(x: Any) -> bool:
        aval = typeof(x)
        if not dtypes.is_floating(aval.dtype) or not aval.size:
            return False
        return bool(bytes_of(aval.size) < aval.size * aval.dtype.itemsize)

    def unpacked(packed: tuple[Any, ...], like: Any) -> Any:
        aval = typeof(like)
        flat = unpack(packed, aval.size)
        return fnp.reshape(flat, aval.shape).astype(aval.dtype)

    def init(gradient: Mapping[str, Any]) -> dict[str, Any]:
        return {
            n: fnp.zeros(typeof(g).shape, _wide(g)) if is_coded(g) else None
            for n, g in gradient.items()
        }

    def encode(gradient: Mapping[str, Any], residual: Any) -> tuple[Any, Any]:
        sent: dict[str, Any] = {}
        kept: dict[str, Any] = {}
        for n, g in gradient.items():
            sent[n], kept[n] = (g,), None
            if is_coded(g):
                full = g.astype(_wide(g)) + residual[n]
                sent[n] = pack(_flat(full), _flat(g))
                # Compare with what the server decodes, in the gradient's own dtype.
                kept[n] = lost(full, unpacked(sent[n], g).astype(_wide(g)))
        return sent, kept

    def decode(sent: Any, like: Mapping[str, Any]) -> dict[str, Any]:
        return {
            n: unpacked(sent[n], x) if is_coded(x) else sent[n][0]
            for n, x in like.items()
        }

    return Filter(name, init, encode, decode)


def _wide(x: Any) -> Any:
    """Returns the dtype of an array's residual."""
    return fnp.promote_types(typeof(x).dtype, dtypes.float32)


def _flat(x: Any) -> Any:
    return fnp.reshape(x, (-1,)).astype(dtypes.float32)


def _in_rows(flat: Any, width: int) -> Any:
    padded = fnp.pad(flat, (0, -typeof(flat).size % width))
    return fnp.reshape(padded, (-1, width))


def _packed(code: Code, flat: Any) -> tuple[Any, ...]:
    """Encodes `f32[n]` in the fewest blocks, all of the same size."""
    size = typeof(flat).size
    blocks = -(-size // code.block_size)
    even = -(-size // blocks)
    width = min(code.block_size, even + -even % 8)
    return code.encode(_in_rows(flat, width), None)


def _unpacked(code: Code, packed: tuple[Any, ...], size: int) -> Any:
    return fnp.reshape(code.decode(packed), (-1,))[:size]


def _largest(
    name: str,
    share: float,
    block_size: int,
    threshold: float,
    relative: bool,
    code: Code | None,
) -> Filter:
    """Returns a filter that sends the share of the blocks with the largest entries."""

    def pack(flat: Any, gradient: Any) -> tuple[Any, ...]:
        rows = _in_rows(flat, min(block_size, typeof(flat).size))
        count = typeof(rows).shape[0]
        largest = fnp.max(fnp.abs(rows), axis=-1)
        # Send nan at once instead of accumulating it.
        largest = fnp.where(fnp.isfinite(largest), largest, fnp.inf)
        largest, where = lax.top_k(largest, math.ceil(share * count))
        chosen = rows[where]
        if threshold:
            unit = fnp.sqrt(fnp.mean(gradient**2)) if relative else 1.0
            # Not `largest >= ...`: a unit that is nan must select all blocks.
            small = fnp.expand_dims(largest < threshold * unit, -1)
            chosen = fnp.where(small, 0, chosen)
        where = where.astype(dtypes.uint16 if count <= 2**16 else dtypes.uint32)
        chosen = fnp.reshape(chosen, (-1,))
        return (where, *((chosen,) if code is None else _packed(code, chosen)))

    def unpack(packed: tuple[Any, ...], size: int) -> Any:
        where, *values = packed
        width = min(block_size, size)
        count = typeof(where).size
        if code is None:
            (chosen,) = values
        else:
            chosen = _unpacked(code, tuple(values), count * width)
        rows = fnp.zeros((-(-size // width), width), dtypes.float32)
        rows = rows.at[where].set(fnp.reshape(chosen, (count, width)))
        return fnp.reshape(rows, (-1,))[:size]

    return _of_arrays(name, pack, unpack)


def _require_share(caller: str, share: Any) -> None:
    if not (isinstance(share, int | float) and 0 < share <= 1):
        raise ArgumentError(
            f"{caller}: share must be a number above 0 and at most 1, got {share!r}"
        )
