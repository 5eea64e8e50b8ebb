"""Integrals over several variables, by integrals of integrals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.integrate.quadrature import quad

_OPTIONS = {"epsabs", "epsrel", "limit", "points"}


def _bound(value: Any, *at: Any) -> Any:
    """Returns a bound that may be a function of other variables."""
    return value(*at) if callable(value) else value


def nquad(
    func: Callable[..., Any],
    ranges: Sequence[Any],
    args: Any = None,
    opts: Any = None,
    full_output: bool = False,
) -> Any:
    """Integrates a function of several variables.

    Each integral is that of `quad`, and has its derivatives: by bounds, by `args` and
    by what functions close over. The calls of all levels multiply.

    Args:
      func: called as `func(x0, …, xn, *args)`; returns a real number.
      ranges: for each variable its two bounds, the first one integrated first; or a
        function of the later variables and `args` that returns them. Infinite bounds
        are numbers, or are returned as numbers.
      args: a tuple of extra arguments.
      opts: options of `quad`, `epsabs`, `epsrel`, `limit` and `points`: a dict for all
        variables, a dict for each, or a function of the later variables that returns
        one.
      full_output: whether to return the number of calls too.

    Returns:
      The integral and an estimate of its error, that of the outermost integral. With
      `full_output` also a dict with `neval`, the calls of the outermost search.

    Raises:
      ArgumentError: there are no ranges, a range is not a pair, there are not as many
        options as ranges, or an option is unknown.

    Example:
      >>> value, _ = nquad(lambda x, y: x * y, [lambda y: (0.0, y), (0.0, 2.0)])
      >>> round(float(value), 4)
      2.0

    Source: `scipy.integrate.nquad`.
    """
    depth = len(ranges)
    if not depth:
        raise ArgumentError("nquad: ranges must have a range for each variable")
    more = () if args is None else tuple(args) if isinstance(args, tuple) else (args,)
    options = [opts] * depth if opts is None or isinstance(opts, dict) else list(opts)
    if len(options) != depth:
        raise ArgumentError(
            f"nquad: opts must be a dict or have one for each of {depth} ranges, got "
            f"{len(options)}"
        )

    def integral(level: int, later: tuple[Any, ...], full: bool = False) -> Any:
        pair = tuple(_bound(ranges[level], *later, *more))
        if len(pair) != 2:
            raise ArgumentError(f"nquad: range {level} must be two bounds, got {pair}")
        own = dict(_bound(options[level], *later, *more) or {})
        if set(own) - _OPTIONS:
            raise ArgumentError(
                f"nquad: options are {', '.join(sorted(_OPTIONS))}, got "
                f"{', '.join(sorted(set(own) - _OPTIONS))}"
            )

        def inner(x: Array) -> Any:
            if not level:
                return func(x, *later, *more)
            return integral(level - 1, (x, *later))[0]

        return quad(inner, *pair, full_output=full, **own)

    found = integral(depth - 1, (), full_output)
    if not full_output:
        return found
    return found[0], found[1], {"neval": found[2]["neval"]}


def dblquad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    gfun: Any,
    hfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Array, Array]:
    """Integrates func(y, x) over x from a to b and y from gfun(x) to hfun(x).

    Args:
      func: called as `func(y, x, *args)`.
      a: the least x.
      b: the greatest x.
      gfun: the least y: a number or a function of x.
      hfun: the greatest y, likewise.
      args: extra arguments of `func`.
      epsabs: absolute tolerance of each integral.
      epsrel: relative tolerance.

    Returns:
      The integral and an estimate of its error.

    Example:
      >>> value, _ = dblquad(lambda y, x: x * y, 0.0, 2.0, 0.0, lambda x: x)
      >>> round(float(value), 4)
      2.0

    Source: `scipy.integrate.dblquad`.
    """

    def inner(x: Any, *_: Any) -> tuple[Any, Any]:
        return _bound(gfun, x), _bound(hfun, x)

    opts = {"epsabs": epsabs, "epsrel": epsrel}
    out: tuple[Array, Array] = nquad(func, [inner, (a, b)], args, opts)
    return out


def tplquad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Array, Array]:
    """Integrates func(z, y, x) over x, y and z.

    Args:
      func: called as `func(z, y, x, *args)`.
      a: the least x.
      b: the greatest x.
      gfun: the least y: a number or a function of x.
      hfun: the greatest y, likewise.
      qfun: the least z: a number or a function of x and y.
      rfun: the greatest z, likewise.
      args: extra arguments of `func`.
      epsabs: absolute tolerance of each integral.
      epsrel: relative tolerance.

    Returns:
      The integral and an estimate of its error.

    Example:
      >>> value, _ = tplquad(lambda z, y, x: z, 0.0, 1.0, 0.0, 1.0, 0.0, 2.0)
      >>> round(float(value), 4)
      2.0

    Source: `scipy.integrate.tplquad`.
    """

    def innermost(y: Any, x: Any, *_: Any) -> tuple[Any, Any]:
        return _bound(qfun, x, y), _bound(rfun, x, y)

    def inner(x: Any, *_: Any) -> tuple[Any, Any]:
        return _bound(gfun, x), _bound(hfun, x)

    opts = {"epsabs": epsabs, "epsrel": epsrel}
    out: tuple[Array, Array] = nquad(func, [innermost, inner, (a, b)], args, opts)
    return out
