"""`vectorize` and `frompyfunc`: functions of numbers made functions of arrays."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from fxflow import lax
from fxflow._config import config
from fxflow.core.arrays import Shape
from fxflow.core.boundary import boundary
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import array_of, check_ranks
from fxflow.numpy.creation import asarray
from fxflow.numpy.ufuncs import Binary, Unary, ufunc
from fxflow.transforms.vmap import vmap

Dims = tuple[str, ...]

# NumPy's grammar of generalised ufunc signatures.
_NAME = r"\w+"
_CORE = rf"\((?:{_NAME}(?:,{_NAME})*,?)?\)"
_SIGNATURE = re.compile(rf"^{_CORE}(?:,{_CORE})*->{_CORE}(?:,{_CORE})*$")


def parse_signature(signature: str) -> tuple[list[Dims], list[Dims]]:
    """Returns the names of the core axes of arguments and results.

    Args:
      signature: such as "(n,m),(m)->(n)".

    Raises:
      ArgumentError: it is not a signature.
    """
    compact = re.sub(r"\s+", "", signature)
    if not _SIGNATURE.match(compact):
        raise ArgumentError(
            f"vectorize: signature {signature!r} is not of the form '(n,m),(m)->(n)'"
        )

    def side(text: str) -> list[Dims]:
        return [tuple(re.findall(_NAME, core)) for core in re.findall(_CORE, text)]

    left, right = compact.split("->")
    return side(left), side(right)


def vectorize(
    pyfunc: Callable[..., Any],
    *,
    excluded: Collection[int | str] = frozenset(),
    signature: str | None = None,
) -> Callable[..., Any]:
    """Makes a function of arrays of a function of numbers, by `vmap`.

    Args:
      pyfunc: function of numbers, or of arrays as the signature says.
      excluded: positions and names of arguments that are passed as they are.
      signature: core axes, such as "(n,m),(m)->(n)"; None means no core axes.

    Returns:
      A function whose arguments are broadcast along all other axes.

    Raises:
      ArgumentError: `excluded` or `signature` is not of the right form.

    Example:
      >>> from fxflow.numpy import vdot  # doctest: +SKIP
      >>> vectorize(vdot, signature="(n),(n)->()")(a, b)  # doctest: +SKIP

    Source: `numpy.vectorize`.
    """
    for item in excluded:
        if not isinstance(item, int | str) or (isinstance(item, int) and item < 0):
            raise ArgumentError(
                f"vectorize: excluded must hold positions and names, got {item!r}"
            )
    parsed = None if signature is None else parse_signature(signature)

    @functools.wraps(
        pyfunc, assigned=("__module__", "__name__", "__qualname__", "__doc__")
    )
    @boundary
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        names = [n for n in kwargs if n not in excluded]
        at = [i for i in range(len(args)) if i not in excluded]
        arrays = [array_of(args[i], "vectorize") for i in at]
        arrays += [array_of(kwargs[n], "vectorize") for n in names]

        def of_arrays(*given: Any) -> Any:
            positional = list(args)
            for i, value in zip(at, given, strict=False):
                positional[i] = value
            named = dict(zip(names, given[len(at) :], strict=True))
            return pyfunc(*positional, **{**kwargs, **named})

        if parsed is None:
            return _mapped(of_arrays, arrays, [()] * len(arrays), None)
        if len(parsed[0]) != len(arrays):
            raise ArgumentError(
                f"vectorize: signature {signature!r} has {len(parsed[0])} arguments, "
                "got "
                f"{len(arrays)}"
            )
        return _mapped(of_arrays, arrays, *parsed)

    return vectorized


def _mapped(
    function: Callable[..., Any],
    arrays: Sequence[Any],
    cores: Sequence[Dims],
    results: Sequence[Dims] | None,
) -> Any:
    """Maps a function over all axes of its arguments that are not core axes."""
    sizes: dict[str, int] = {}
    loops: list[Shape] = []
    for array, core in zip(arrays, cores, strict=True):
        shape = array.aval.shape
        if len(shape) < len(core):
            raise ShapeError(
                f"vectorize: an argument needs the core axes ({','.join(core)}), got "
                f"{array.aval}"
            )
        split = len(shape) - len(core)
        loops.append(shape[:split])
        for name, n in zip(core, shape[split:], strict=True):
            _fix(sizes, name, n)
    ranks = {len(own) for own, a in zip(loops, arrays, strict=True) if a.aval.ndim}
    if len(ranks) > 1 and config.numpy_rank_promotion != "allow":
        check_ranks("vectorize", [a.aval for a in arrays])
    loop = lax.broadcast_shapes(*loops) if loops else ()
    # Axes of length 1 are cut off, and not mapped.
    kept: list[tuple[int, ...]] = []
    cut = []
    for array, own in zip(arrays, loops, strict=True):
        lead = len(loop) - len(own)
        keep = tuple(
            d + lead for d, n in enumerate(own) if not (n == 1 and loop[d + lead] != 1)
        )
        kept.append(keep)
        shape = tuple(own[d - lead] for d in keep) + array.aval.shape[len(own) :]
        cut.append(array if shape == array.aval.shape else lax.reshape(array, shape))

    def checked(*given: Any) -> Any:
        out = function(*given)
        if results is None:
            return tuple(map(asarray, out)) if isinstance(out, tuple) else asarray(out)
        outs = out if isinstance(out, tuple | list) else (out,)
        if len(outs) != len(results):
            raise ArgumentError(
                f"vectorize: the signature has {len(results)} results, the function "
                f"returned {len(outs)}"
            )
        found = []
        for value, core in zip(outs, results, strict=True):
            value = asarray(value)
            if value.ndim != len(core):
                raise ShapeError(
                    f"vectorize: a result needs the core axes ({','.join(core)}), the "
                    f"function returned {value.aval}"
                )
            for name, n in zip(core, value.shape, strict=True):
                _fix(sizes, name, n)
            found.append(value)
        return tuple(found) if len(found) > 1 else found[0]

    mapped: Callable[..., Any] = checked
    for d in reversed(range(len(loop))):
        axes = tuple(0 if d in keep else None for keep in kept)
        mapped = vmap(mapped, in_axes=axes, axis_size=loop[d])
    return mapped(*cut)


def _fix(sizes: dict[str, int], name: str, n: int) -> None:
    known = int(name) if name.isdigit() else sizes.setdefault(name, n)
    if known != n:
        raise ShapeError(
            f"vectorize: core axis {name!r} has lengths {known} and {n}; they must be "
            "equal"
        )


def frompyfunc(
    func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None
) -> ufunc[Any]:
    """Makes a ufunc of a function of numbers.

    Args:
      func: of `nin` 0-d arrays, returning `nout` (a tuple, if several); it is traced.
      nin: number of arguments.
      nout: number of results.
      identity: what leaves an element unchanged, for reductions of nothing.

    Returns:
      A ufunc; equal to every other one made of the same arguments.

    Raises:
      ArgumentError: a number is not positive.

    Example:
      >>> add3 = frompyfunc(lambda x, y: x + y + 3, 2, 1)
      >>> add3(asarray([1, 2]), 10)
      Array([14, 15], dtype=int32)

    Source: `numpy.frompyfunc`.
    """
    if not callable(func) or nin < 1 or nout < 1:
        raise ArgumentError(
            "frompyfunc: takes a function with at least one argument and one result, "
            "got "
            f"{func!r}, nin={nin}, nout={nout}"
        )
    name = getattr(func, "__name__", "function")
    kinds: dict[tuple[int, int], type[ufunc[Any]]] = {(1, 1): Unary, (2, 1): Binary}
    return kinds.get((nin, nout), ufunc)(
        vectorize(func),
        name=name,
        nin=nin,
        nout=nout,
        identity=identity,
        doc=func.__doc__ or "",
        key=(func, nin, nout, identity),
    )
