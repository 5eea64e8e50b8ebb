"""`jax.test_util`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import jvp as _jvp
from fxflow import vjp as _vjp
from fxflow.compat.jax._mirror import listen
from fxflow.core import tree
from fxflow.core.arrays import as_array

# Largest difference of a derivative to a finite difference, by the bits of a float.
_TOLERANCE = {16: 1e-2, 32: 2e-2, 64: 1e-5}
_EPS = {16: 1e-2, 32: 1e-2, 64: 1e-4}


def _leaves(args: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf) for leaf in tree.leaves(args)]


def _bits(args: Any) -> int:
    sizes = [8 * a.real.dtype.itemsize for a in _leaves(args) if a.dtype.kind in "fcV"]
    return min([*sizes, 64])


def _noise(args: Any, rng: np.random.Generator) -> Any:
    def one(leaf: Any) -> Any:
        array = np.asarray(leaf)
        values = rng.standard_normal(array.shape)
        if array.dtype.kind == "c":
            values = values + 1j * rng.standard_normal(array.shape)
        return values.astype(array.dtype)

    return tree.map(one, args)


def _inner(a: Any, b: Any) -> Any:
    return sum(
        np.sum(x.astype(complex) * y.astype(complex)).real
        for x, y in zip(_leaves(a), _leaves(b), strict=True)
    )


def _close(a: Any, b: Any, atol: float, rtol: float, message: str) -> None:
    for x, y in zip(_leaves(a), _leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=atol, rtol=rtol, err_msg=message)


def _limits(args: Any, atol: Any, rtol: Any, eps: Any) -> tuple[float, float, float]:
    bits = _bits(args)
    usual = _TOLERANCE[bits]
    return (
        usual if atol is None else atol,
        usual if rtol is None else rtol,
        _EPS[bits] if eps is None else eps,
    )


def _difference(f: Any, args: Any, tangents: Any, eps: float) -> Any:
    def moved(scale: float) -> Any:
        return f(
            *tree.map(lambda a, t: (a + scale * t).astype(t.dtype), args, tangents)
        )

    high, low = moved(eps / 2), moved(-eps / 2)
    return tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / eps, high, low)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares a derivative in forward mode with finite differences.

    Args:
      f: the function.
      f_jvp: `(args, tangents)` to the results and their tangents.
      args: where.
      atol: largest difference; None goes by the dtype.
      rtol: largest relative difference.
      eps: step.
      err_msg: begins the message.

    Raises:
      AssertionError: they differ.
    """
    atol, rtol, eps = _limits(args, atol, rtol, eps)
    args = tuple(tree.map(np.asarray, tuple(args)))
    tangents = _noise(args, np.random.default_rng(0))
    out, out_tangents = f_jvp(args, tangents)
    _close(out, f(*args), atol, rtol, f"{err_msg} JVP primal")
    expected = _difference(f, args, tangents, eps)
    _close(out_tangents, expected, atol, rtol, f"{err_msg} JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compares a derivative in reverse mode with finite differences.

    Args:
      f: the function.
      f_vjp: the arguments to the results and the pullback.
      args: where.
      atol: largest difference; None goes by the dtype.
      rtol: largest relative difference.
      eps: step.
      err_msg: begins the message.

    Raises:
      AssertionError: they differ.
    """
    atol, rtol, eps = _limits(args, atol, rtol, eps)
    args = tuple(tree.map(np.asarray, tuple(args)))
    rng = np.random.default_rng(0)
    tangents = _noise(args, rng)
    out, pullback = f_vjp(*args)
    _close(out, f(*args), atol, rtol, f"{err_msg} VJP primal")
    cotangents = _noise(out, rng)
    expected = _inner(_difference(f, args, tangents, eps), cotangents)
    found = _inner(tangents, pullback(cotangents))
    np.testing.assert_allclose(
        found, expected, atol=atol, rtol=rtol, err_msg=f"{err_msg} VJP cotangent"
    )


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compares derivatives of a function with finite differences.

    Args:
      f: the function.
      args: where.
      order: up to which.
      modes: `"fwd"`, `"rev"`, or both.
      atol: largest difference; None goes by the dtype.
      rtol: largest relative difference.
      eps: step.

    Raises:
      AssertionError: they differ.
      ValueError: a mode has another name.
    """
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes are 'fwd' and 'rev', got {modes!r}")
    # Python numbers have the dtype that they get here.
    args = tuple(tree.map(as_array, tuple(args)))
    limits = {"atol": atol, "rtol": rtol, "eps": eps}

    def check(g: Any, values: tuple[Any, ...], left: int, path: str) -> None:
        if "fwd" in modes:
            name = f"{path}fwd "
            check_jvp(
                g,
                lambda p, t: _jvp(g, tuple(p), tuple(t)),
                values,
                err_msg=name,
                **limits,
            )
            if left > 1:
                tangents = _noise(values, np.random.default_rng(left))
                check(lambda *v: _jvp(g, v, tuple(tangents))[1], values, left - 1, name)
        if "rev" in modes:
            name = f"{path}rev "
            check_vjp(g, lambda *v: _vjp(g, *v), values, err_msg=name, **limits)
            if left > 1:
                out = g(*values)
                cotangents = _noise(out, np.random.default_rng(left))
                check(lambda *v: _vjp(g, *v)[1](cotangents), values, left - 1, name)

    check(f, args, order, "")


__all__ = ["check_grads", "check_jvp", "check_vjp"]

listen(globals())
