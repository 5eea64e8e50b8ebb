"""How gradients travel: pure functions of a gradient and of what was lost before.

A filter codes one server's part of a gradient, and the server decodes it; both are
compiled with what surrounds them. What the code loses goes into the next gradient
(*error feedback*): the sum of what arrives is the sum of what was meant, but for what
the last step lost.

    exchange = by_group({"*/b": exact(), "embedding": top_k(0.01)}, int8())
    server = parameter_server(loss, optimizer, consistency=ssp(4), exchange=exchange)

Arrays that are not real floating point, and those that a code would not make smaller
(a bias of a few numbers), travel as they are.
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
from fxflow.distributed import compression
from fxflow.distributed.compression import BLOCK, Code, as_code
from fxflow.errors import ArgumentError
from fxflow.transforms.inspection import eval_shape

#: What a piece's name has that its tensor's has not: the rows, as a `Cutter` says them.
_ROWS = re.compile(r"\[\d{12}:\d{12}\]$")
_NO_KEY = (
    "parameter_server: stochastic rounding needs a PRNG key, which a step has none of: "
    "round to nearest (error feedback corrects it in the next step)"
)


class Filter(NamedTuple):
    """A code for gradients by the names of their parameters.

    Attributes:
      name: with its arguments; for people and reports.
      init: `init(gradient) -> residual`: what was lost before the first one.
      encode: `encode(gradient, residual) -> (coded, residual)`; `coded` is a pytree of
        arrays whose shapes depend on those of the gradient alone.
      decode: `decode(coded, like) -> gradient`, in the shapes and dtypes of `like`.
      check: `check(names)` raises an ArgumentError if these parameters are not what the
        filter was made for.
      chosen: where parameters have different filters, `chosen(name)` is that of one.
    """

    name: str
    init: Callable[[Mapping[str, Any]], Any]
    encode: Callable[[Mapping[str, Any], Any], tuple[Any, Any]]
    decode: Callable[[Any, Mapping[str, Any]], dict[str, Any]]
    check: Callable[[Sequence[str]], None] = lambda names: None
    chosen: Callable[[str], Filter] | None = None

    def of(self, name: str) -> Filter:
        """Returns the filter that codes a parameter: this one, or one of its own."""
        return self if self.chosen is None else self.chosen(name).of(name)


def filter_of(exchange: str | Code | Filter) -> Filter:
    """Returns the filter of an argument `exchange`.

    Args:
      exchange: "f32", "bf16", "f16", "int8", a `Code` that rounds to nearest, or a
        filter.

    Raises:
      ArgumentError: it is none of these.
    """
    if isinstance(exchange, Filter):
        return exchange
    if exchange == "f32":
        return exact()
    if not isinstance(exchange, Code) and exchange not in ("bf16", "f16", "int8"):
        raise ArgumentError(
            "parameter_server: exchange must be 'f32', 'bf16', 'f16', 'int8', a "
            f"compression.Code or a filter, got {exchange!r}"
        )
    return coded(as_code(exchange))


def pull_filter_of(pull: str) -> Filter:
    """Returns the filter of an argument `pull`: of parameters on the way to workers.

    Nothing is remembered of what it loses: each pull is of what the server has.

    Args:
      pull: "f32", "bf16" or "f16".

    Raises:
      ArgumentError: it is none of these.
    """
    if pull not in ("f32", "bf16", "f16"):
        raise ArgumentError(
            f"parameter_server: pull must be 'f32', 'bf16' or 'f16', got {pull!r}"
        )
    return filter_of(pull)


def coded_types(code: Filter, like: Mapping[str, Any]) -> tuple[list[Aval], Any]:
    """Returns the types of what a filter sends, and their structure.

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
    """Returns how many bytes of what a filter sends are whose, by names of filters.

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


def exact() -> Filter:
    """Returns the filter that sends gradients as they are."""
    return Filter(
        "exact()",
        lambda gradient: {},
        lambda gradient, residual: (dict(gradient), residual),
        lambda sent, like: dict(sent),
    )


def float16() -> Filter:
    """Returns the filter that sends IEEE's 16 bits: a half.

    Numbers beyond 65504 arrive as that, and the rest in the next steps.
    """
    return coded(compression.f16())


def bfloat16() -> Filter:
    """Returns the filter that sends the upper 16 bits: a half."""
    return coded(compression.bf16())


def int8(block_size: int = BLOCK) -> Filter:
    """Returns the filter that sends 8 bits and a scale for each block: a quarter.

    Args:
      block_size: how many numbers share a scale.

    Raises:
      ArgumentError: `block_size` is not positive.
    """
    return coded(compression.int8(block_size))


def one_bit(block_size: int = BLOCK) -> Filter:
    """Returns the filter that sends signs and two means for each block: a 25th.

    Args:
      block_size: how many numbers share the means; a multiple of 8.

    Raises:
      ArgumentError: `block_size` is not a positive multiple of 8.

    Reference: Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent".
    """
    return coded(compression.one_bit(block_size))


def coded(code: Code) -> Filter:
    """Returns the filter that sends a code of `distributed.compression`.

    Args:
      code: `compression.bf16()`, `compression.int8()`, ... that rounds to nearest.

    Raises:
      ArgumentError: it rounds at random, which needs a key; a step has none.
    """
    if code.stochastic:
        raise ArgumentError(_NO_KEY)
    return _of_arrays(
        code.name,
        lambda x, gradient: _packed(code, x),
        lambda sent, n: _unpacked(code, sent, n),
    )


def top_k(share: float, *, values: str | Code = "f32") -> Filter:
    """Returns the filter that sends the largest entries of each array, and where.

    Entries that are not sent wait in the residual until they are among the largest.

    Args:
      share: of the entries that are sent, over 0 and up to 1; at least one of each
        array.
      values: how the entries travel: "f32", "bf16", "f16", "int8" or a `Code`.

    Raises:
      ArgumentError: `share` is not such a number; `values` is none of these.

    Reference: Aji, Heafield 2017, "Sparse communication for distributed gradient
    descent"; Stich, Cordonnier, Jaggi 2018, "Sparsified SGD with memory".
    """
    _require_share("top_k", share)
    code = _values_of("top_k", values)
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
    """Returns the filter that sends blocks only once enough has come together in them.

    A block is significant if one of its accumulated entries is at least the threshold.
    The largest significant blocks are sent, all others wait in the residual. A program
    has static shapes, so a push has room for a share of the blocks, and takes that
    share of the bytes whether there are so many or fewer. What it guarantees: entries
    of blocks that never arrive are below the threshold each, unless more blocks than
    there is room for are significant at every step.

    Args:
      threshold: 0 or more; in the unit of the gradient, or relative.
      share: of the blocks for which there is room, over 0 and up to 1.
      relative: whether the threshold is in units of the root mean square of the
        step's gradient of the array. (Not of the parameter: a gradient is no change of
        it before the server's optimizer has seen it.)
      block_size: how many neighbours are one block: the length of a row, for a table.
      values: how the entries travel: "f32", "bf16", "f16", "int8" or a `Code`.

    Raises:
      ArgumentError: an argument is none of those above.

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
    code = _values_of("significance", values)
    name = (
        f"significance({threshold:g}, {share:g}, relative={relative}, "
        f"block_size={block_size}, values={code.name if code else 'f32'})"
    )
    return _largest(name, share, block_size, threshold, relative, code)


def by_group(
    groups: Mapping[str | Callable[[str], bool], Filter], default: Filter | None = None
) -> Filter:
    """Returns the filter that sends each parameter by the filter of its group.

    Args:
      groups: from a pattern of the shell (``"*/b"``, ``"embedding*"``) or a predicate
        on a parameter's name, such as ``layers/0/w``, to a filter. The first that fits
        a parameter is taken.
      default: of parameters that none fits; None: `exact()`.

    Raises:
      ArgumentError: a key is no pattern or predicate, or a value no filter; when it is
        used, a group is empty.

    Example:
      >>> by_group({"*/b": exact(), "embedding": top_k(0.01)}, int8()).name
      "by_group({'*/b': exact(), 'embedding': top_k(0.01, values=f32)}, int8(256))"
    """
    rest = exact() if default is None else default
    codes = [*groups.values(), rest]
    for key, code in [*groups.items(), ("default", rest)]:
        if not isinstance(key, str) and not callable(key):
            raise ArgumentError(
                "by_group: a group is a pattern or a predicate on a parameter's name, "
                f"got {key!r}"
            )
        if not isinstance(code, Filter):
            raise ArgumentError(f"by_group: {key!r} has {code!r}, which is no filter")

    def group_of(piece: str) -> int:
        name = _ROWS.sub("", piece)
        for i, key in enumerate(groups):
            if fnmatch.fnmatchcase(name, key) if isinstance(key, str) else key(name):
                return i
        return len(groups)

    def parted(values: Mapping[str, Any]) -> list[tuple[Filter, dict[str, Any]]]:
        parts: list[dict[str, Any]] = [{} for _ in codes]
        for name, value in values.items():
            parts[group_of(name)][name] = value
        return list(zip(codes, parts, strict=True))

    def init(gradient: Mapping[str, Any]) -> list[Any]:
        return [code.init(part) for code, part in parted(gradient)]

    def encode(gradient: Mapping[str, Any], residual: Any) -> tuple[Any, Any]:
        found = [
            code.encode(part, rest)
            for (code, part), rest in zip(parted(gradient), residual, strict=True)
        ]
        return [sent for sent, _ in found], [rest for _, rest in found]

    def decode(sent: Any, like: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (code, part), values in zip(parted(like), sent, strict=True):
            found.update(code.decode(values, part))
        return {name: found[name] for name in like}

    def check(names: Sequence[str]) -> None:
        parts = parted(dict.fromkeys(names))
        for key, (code, part) in zip([*groups, None], parts, strict=True):
            if part:
                code.check(list(part))
            elif key is not None:
                raise ArgumentError(
                    f"by_group: {key!r} fits no parameter, or only those of groups "
                    f"before it; there is {', '.join(map(repr, names))}"
                )

    said = ", ".join(
        f"{getattr(key, '__qualname__', repr(key))}: {code.name}"
        for key, code in groups.items()
    )
    name = f"by_group({{{said}}}, {rest.name})"
    return Filter(name, init, encode, decode, check, lambda n: codes[group_of(n)])


# -- one array -------------------------------------------------------------------------


def _of_arrays(
    name: str,
    pack: Callable[[Any, Any], tuple[Any, ...]],
    unpack: Callable[[tuple[Any, ...], int], Any],
) -> Filter:
    """Returns the filter that codes each array by itself, with error feedback.

    Args:
      name: of the filter.
      pack: `(f32[n], f32[n]) -> tuple of arrays`, of what is to arrive, the residual
        included, and of this step's gradient alone.
      unpack: the way back, told n.
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
                # As it arrives, in the gradient's own dtype.
                lost = full - unpacked(sent[n], g).astype(_wide(g))
                # One bad gradient must not spoil all that follow.
                kept[n] = fnp.where(fnp.isfinite(lost), lost, 0)
        return sent, kept

    def decode(sent: Any, like: Mapping[str, Any]) -> dict[str, Any]:
        return {
            n: unpacked(sent[n], x) if is_coded(x) else sent[n][0]
            for n, x in like.items()
        }

    return Filter(name, init, encode, decode)


def _wide(x: Any) -> Any:
    """Returns the dtype in which losses are remembered."""
    return fnp.promote_types(typeof(x).dtype, dtypes.float32)


def _flat(x: Any) -> Any:
    return fnp.reshape(x, (-1,)).astype(dtypes.float32)


def _in_rows(flat: Any, width: int) -> Any:
    padded = fnp.pad(flat, (0, -typeof(flat).size % width))
    return fnp.reshape(padded, (-1, width))


def _packed(code: Code, flat: Any) -> tuple[Any, ...]:
    """Codes `f32[n]` in blocks of one size, as even as may be."""
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
    """Returns the filter that sends a share of the blocks: those with the largest."""

    def pack(flat: Any, gradient: Any) -> tuple[Any, ...]:
        rows = _in_rows(flat, min(block_size, typeof(flat).size))
        count = typeof(rows).shape[0]
        largest = fnp.max(fnp.abs(rows), axis=-1)
        # Nan is to arrive, not to wait.
        largest = fnp.where(fnp.isfinite(largest), largest, fnp.inf)
        largest, where = lax.top_k(largest, math.ceil(share * count))
        chosen = rows[where]
        if threshold:
            unit = fnp.sqrt(fnp.mean(gradient**2)) if relative else 1.0
            # Not `largest >= ...`: a unit that is nan lets everything through.
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
            f"{caller}: share must be a number over 0 and up to 1, got {share!r}"
        )


def _values_of(caller: str, values: Any) -> Code | None:
    if values == "f32":
        return None
    if not isinstance(values, Code) and values not in ("bf16", "f16", "int8"):
        raise ArgumentError(
            f"{caller}: values must be 'f32', 'bf16', 'f16', 'int8' or a "
            f"compression.Code, got {values!r}"
        )
    code = as_code(values)
    if code.stochastic:
        raise ArgumentError(_NO_KEY)
    return code
