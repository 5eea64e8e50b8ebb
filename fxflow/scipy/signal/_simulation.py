"""Linear systems run over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.linalg import expm
from fxflow.scipy.signal._recursions import known, numbers
from fxflow.scipy.signal.state_spaces import Matrices

# -- operands --------------------------------------------------------------------------


def require_one(name: str, what: str, count: int) -> None:
    """Raises an error unless a system has one input, or output."""
    if count != 1:
        raise ShapeError(f"{name}: a system must have one {what}, got {count}")


def require_parts(name: str, system: Any) -> None:
    """Raises an error if a state space has no input or no output."""
    if not system.B.shape[1] or not system.C.shape[0]:
        raise ShapeError(f"{name}: the system has no input, or no output")


def require_even(name: str, times: Array) -> None:
    """Raises an error unless times are evenly spaced, as far as is known."""
    host = known(times, name)
    if host is None:
        return
    if host[0] < 0:
        raise ArgumentError(
            f"{name}: the first time must not be negative, got {host[0]}"
        )
    steps = np.diff(host)
    # The times themselves are rounded.
    near = 1e-8 + 8 * np.finfo(host.dtype).eps * np.abs(host).max()
    if steps.size and not np.allclose(steps, steps[0], 1e-5, near):
        raise ArgumentError(f"{name}: times must be evenly spaced, got {host.tolist()}")


def inputs(name: str, u: Any, count: int | None, p: int) -> Array:
    """Returns inputs as array[t, p]."""
    (rows,) = promote_inexact(name, numbers(u))
    rows = fnp.atleast_1d(rows)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or rows.shape[1] != p or count not in (None, rows.shape[0]):
        times = "times" if count is None else count
        raise ShapeError(f"{name}: U must be array[{times}, {p}], got {rows.aval}")
    return rows


def state(name: str, x0: Any, system: Any) -> Array:
    """Returns the state that a state space begins in."""
    k = system.A.shape[0]
    if x0 is None:
        return fnp.zeros(k, system.A.dtype)
    (start,) = promote_inexact(name, numbers(x0))
    start = fnp.atleast_1d(start)
    if start.shape != (k,):
        raise ShapeError(f"{name}: X0 must be a state of {k} numbers, got {start.aval}")
    return start


# -- runs ------------------------------------------------------------------------------


def _dot(a: Array, b: Array) -> Array:
    return fnp.matmul(a, b, precision="highest")


#: Steps of a block: their states are one product of matrices.
_BLOCK = 16


def _states(a: Array, start: Array, added: Array) -> Array:
    """Returns the states x[0] = start, x[i + 1] = a x[i] + added[i], array[n + 1, k].

    A block of steps from rest is one product with the powers of `a`; only the states at
    the ends of blocks are left to a loop.
    """
    steps, k = added.shape
    length = max(1, min(_BLOCK, steps))
    count = -(-steps // length)
    added = fnp.pad(added, ((0, count * length - steps), (0, 0)))
    blocks = fnp.reshape(added, (count, length, k))
    powers = [fnp.eye(k, dtype=a.dtype)]
    for _ in range(length):
        powers.append(_dot(a, powers[-1]))
    onward = fnp.stack(powers[1:])
    # a^(i - j) for j ≤ i, else 0.
    table = fnp.stack([*powers[:-1], fnp.zeros_like(a)])
    at = np.arange(length)[:, None] - np.arange(length)
    rows = fnp.swapaxes(table[np.where(at >= 0, at, length)], 1, 2)
    from_rest = fnp.reshape(rows, (length * k, length * k))
    rest = _dot(fnp.reshape(blocks, (count, length * k)), from_rest.T)
    rest = fnp.reshape(rest, (count, length, k))

    def walk(x: Array, last: Array) -> tuple[Array, Array]:
        return _dot(onward[-1], x) + last, x

    _, starts = lax.scan(walk, start, rest[:, -1])
    moved = _dot(starts, fnp.reshape(onward, (length * k, k)).T)
    out = fnp.reshape(rest + fnp.reshape(moved, rest.shape), (count * length, k))
    return fnp.concatenate([start[None], out[:steps]], 0)


@library("linear")
def continuous(
    matrices: Matrices, u: Array | None, t: Array, x0: Array, linear: bool
) -> tuple[Array, Array]:
    """Runs a continuous system over evenly spaced times.

    Args:
      matrices: A, B, C and D of one dtype.
      u: inputs[n, p], or None.
      t: times[n], the first one not negative.
      x0: the state[k] at time 0.
      linear: whether inputs are linear between the times, or constant.

    Returns:
      The outputs, array[n, q], and the states, array[n, k].
    """
    a, b, c, d = matrices
    k, p = b.shape
    start = _dot(expm(a * t[0]), x0)
    count = t.shape[0]
    if count == 1:
        x = start[None]
    else:
        dt = t[1] - t[0]
        if u is None:
            added = fnp.zeros((count - 1, k), a.dtype)
            x = _states(expm(a * dt), start, added)
        else:
            # The exponential of [[A, B, 0], [0, 0, I], [0, 0, 0]] integrates inputs.
            top = fnp.concatenate([a * dt, b * dt, fnp.zeros((k, p), a.dtype)], 1)
            eye = fnp.eye(p, k + 2 * p, k + p, dtype=a.dtype)
            whole = expm(fnp.concatenate([top, eye, fnp.zeros_like(eye)], 0))
            held, risen = whole[:k, k : k + p], whole[:k, k + p :]
            if linear:
                added = _dot(u[:-1], (held - risen).T) + _dot(u[1:], risen.T)
            else:
                added = _dot(u[:-1], held.T)
            x = _states(whole[:k, :k], start, added)
    y = _dot(x, c.T)
    return (y if u is None else y + _dot(u, d.T)), x


@library()
def discrete(matrices: Matrices, u: Array, x0: Array) -> tuple[Array, Array]:
    """Runs a sampled system.

    Args:
      matrices: A, B, C and D of one dtype.
      u: inputs[n, p].
      x0: the state[k] before.

    Returns:
      The outputs, array[n, q], and the states, array[n, k].
    """
    a, b, c, d = matrices
    x = _states(a, x0, _dot(u[:-1], b.T)) if u.shape[0] > 1 else x0[None]
    return _dot(x, c.T) + _dot(u, d.T), x
