"""Digital filters run over signals: recursions, sections, forward and backward."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.signal._extensions import extended
from fxflow.scipy.signal._recursions import (
    Coefficients,
    cascade,
    known,
    moving_sum,
    numbers,
    recursion,
)

_PADTYPES = ("odd", "even", "constant")


# -- coefficients ----------------------------------------------------------------------


def _vectors(name: str, b: Array, a: Array) -> tuple[Array, Array]:
    """Returns coefficients as vectors."""
    both = []
    for what, values in (("b", b), ("a", a)):
        values = fnp.atleast_1d(values)
        if values.aval.ndim != 1 or not values.aval.size:
            raise ShapeError(
                f"{name}: {what} must be a vector of coefficients, got {values.aval}"
            )
        both.append(values)
    return both[0], both[1]


def _normalized(b: Array, a: Array) -> tuple[Array, Array]:
    """Returns coefficients of one length, the first one of `a` being 1."""
    longest = max(b.aval.size, a.aval.size)
    lead = a[0]
    both = [fnp.pad(v / lead, (0, longest - v.aval.size)) for v in (b, a)]
    return both[0], both[1]


def _require_lead(name: str, a: Any) -> None:
    values = known(a, name)
    if values is not None and values.size and values.ravel()[0] == 0:
        raise ArgumentError(f"{name}: a[0] must not be 0, got a = {values.tolist()}")


def _sections(name: str, sos: Array) -> Array:
    if sos.aval.ndim != 2 or sos.aval.shape[1] != 6 or not sos.aval.shape[0]:
        raise ShapeError(f"{name}: sos must be float[sections, 6], got {sos.aval}")
    return sos


def _require_sections(name: str, sos: Any) -> None:
    values = known(sos, name)
    if values is not None and values.ndim == 2 and values.shape[1] == 6:
        lead = values[:, 3]
        if not (lead == 1).all():
            raise ArgumentError(
                f"{name}: sos[:, 3], the first coefficient of each denominator, must "
                f"be 1, got {lead.tolist()}"
            )


def _filtered(b: Array, a: Array, x: Array, z: Array) -> tuple[Array, Array]:
    """Filters along the last axis, with coefficients as they were given."""
    feedback = a.aval.size > 1
    b, a = _normalized(b, a)
    if b.aval.size == 1:
        return b[0] * x, z
    return recursion(b, a, x, z) if feedback else moving_sum(b, x, z)


# -- filters ---------------------------------------------------------------------------

_docs = shared("""
    Args:
      b: float or complex array-like[m]: the numerator's coefficients.
      a: float or complex array-like[n]: the denominator's; a[0] is not 0.
      sos: float array-like[sections, 6]: for each section the numerator's and the
        denominator's three coefficients; sos[:, 3] is 1.
      x: array-like[...]: the signal.
      axis: the axis of time.
      padtype: how the signal is continued at both ends: "odd", turned around the end
        point; "even", mirrored; "constant", the end point; None: not at all.
      padlen: by how many points.

    Returns:
      Float or complex array of the shape of `x`.

    Raises:
      ArgumentError: the first coefficient of a denominator is 0 (or for sections not
        1), or there is no such `padtype` or `method`.
      ShapeError: an argument has another shape than the ones above.
      AxisError: an axis is out of range.

    Source: `scipy.signal.{name}`; integers become floats.
""")


@overload
def lfilter(
    b: Coefficients, a: Coefficients, x: ArrayLike, axis: int = -1, zi: None = None
) -> Array: ...
@overload
def lfilter(
    b: Coefficients, a: Coefficients, x: ArrayLike, axis: int = -1, *, zi: ArrayLike
) -> tuple[Array, Array]: ...
@overload
def lfilter(
    b: Coefficients, a: Coefficients, x: ArrayLike, axis: int, zi: ArrayLike
) -> tuple[Array, Array]: ...
@_docs
def lfilter(
    b: Coefficients,
    a: Coefficients,
    x: ArrayLike,
    axis: int = -1,
    zi: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Filters a signal by a ratio of two polynomials in the delay.

    a[0] y[n] = b[0] x[n] + b[1] x[n-1] + … - a[1] y[n-1] - …

    It is differentiable in `b`, `a`, `x` and `zi`, and runs in blocks: matrix products,
    and a short loop over the blocks.

    Args:
      zi: array-like, `x` with max(m, n) - 1 elements along `axis`: the state before;
        lengths of 1 broadcast.

    Returns:
      The filtered signal, a float or complex array of the shape of `x`; if `zi` is
      given, also the state after it, of the shape of `zi`.

    Example:
      >>> lfilter([1.0], [1.0, -0.5], np.array([1.0, 0.0, 0.0, 0.0]))
      Array([1.   , 0.5  , 0.25 , 0.125], dtype=float32)
    """
    b, a = numbers(b), numbers(a)
    _require_lead("lfilter", a)
    out, state = _lfilter(b, a, x, zi, axis)
    return out if zi is None else (out, state)


@library("axis")
def _lfilter(b: Any, a: Any, x: Any, zi: Any, axis: Any) -> tuple[Array, Array]:
    name = "lfilter"
    given = [b, a, x] if zi is None else [b, a, x, zi]
    b, a, x, *rest = promote_inexact(name, *given)
    b, a = _vectors(name, b, a)
    axis = canonical_axis(name, axis, x.aval.ndim)
    x = fnp.moveaxis(x, axis, -1)
    order = max(b.aval.size, a.aval.size) - 1
    shape = (*x.aval.shape[:-1], order)
    if rest:
        if rest[0].aval.ndim != x.aval.ndim:
            raise ShapeError(
                f"{name}: zi must have as many axes as x, {x.aval.ndim}, got "
                f"{rest[0].aval}"
            )
        z = _state(name, fnp.moveaxis(rest[0], axis, -1), shape)
    else:
        z = fnp.zeros(shape, x.aval.dtype)
    out, z = _filtered(b, a, x, z)
    return fnp.moveaxis(out, -1, axis), fnp.moveaxis(z, -1, axis)


def _state(name: str, z: Array, shape: tuple[int, ...]) -> Array:
    lengths = zip(z.aval.shape, shape, strict=True)
    last = z.aval.shape[-1] == shape[-1]
    if not last or any(n not in (1, m) for n, m in lengths):
        raise ShapeError(
            f"{name}: zi must have shape {shape} with the axis of time last, got "
            f"{z.aval}"
        )
    return fnp.broadcast_to(z, shape)


@_docs
def lfiltic(
    b: Coefficients, a: Coefficients, y: Coefficients, x: Coefficients | None = None
) -> Array:
    """Returns the state of `lfilter` that past outputs and inputs have left.

    Args:
      y: array-like[k]: y[-1], y[-2], …, the last one first.
      x: array-like[k]: x[-1], x[-2], … likewise; None is zeros.

    Returns:
      Array[max(m, n) - 1], `zi` of `lfilter`.

    Example:
      >>> lfiltic([1.0], [1.0, -0.5], [2.0])
      Array([1.], dtype=float32)
    """
    b, a, y = numbers(b), numbers(a), numbers(y)
    _require_lead("lfiltic", a)
    return _lfiltic(b, a, y, 0.0 if x is None else numbers(x))


@library()
def _lfiltic(b: Any, a: Any, y: Any, x: Any) -> Array:
    b, a, y, x = promote_inexact("lfiltic", b, a, y, x)
    b, a = _vectors("lfiltic", b, a)
    back, ahead = a.aval.size - 1, b.aval.size - 1
    b, a = _normalized(b, a)
    order = b.aval.size - 1
    state = fnp.zeros(order, b.aval.dtype)
    for coefficients, past, kept, sign in ((b, x, ahead, 1), (a, y, back, -1)):
        past = fnp.atleast_1d(past)
        if past.aval.ndim != 1:
            raise ShapeError(f"lfiltic: y and x must be vectors, got {past.aval}")
        past = fnp.pad(past[:kept], (0, order - min(kept, past.aval.size)))
        if order:
            # Element m is the sum of coefficients[m + 1 + k] past[k] over k.
            at = 1 + np.arange(order)[:, None] + np.arange(order)
            taken = fnp.where(at <= order, coefficients[np.minimum(at, order)], 0)
            state = state + sign * fnp.matmul(taken, past, precision="highest")
    return state


def _steady(b: Array, a: Array) -> Array:
    """Returns the state in which a filter answers ones with equal numbers."""
    level = fnp.sum(b) / fnp.sum(a)
    return fnp.flip(fnp.cumsum(fnp.flip(b[1:] - a[1:] * level)))


@_docs
def lfilter_zi(b: Coefficients, a: Coefficients) -> Array:
    """Returns the state of `lfilter` that a signal of ones has left after a long time.

    Returns:
      Array[max(m, n) - 1]; infinite or nan if the filter has a pole at 1.

    Example:
      >>> lfilter_zi([1.0], [1.0, -0.5])
      Array([1.], dtype=float32)
    """
    b, a = numbers(b), numbers(a)
    values = known(a, "lfilter_zi")
    if values is not None and values.ndim == 1 and values.size:
        nonzero = np.flatnonzero(values)
        if not nonzero.size:
            raise ArgumentError("lfilter_zi: a must have a coefficient that is not 0")
        a = a[nonzero[0] :] if nonzero[0] else a  # type: ignore[index]
    return _lfilter_zi(b, a)


@library()
def _lfilter_zi(b: Any, a: Any) -> Array:
    b, a = promote_inexact("lfilter_zi", b, a)
    return _steady(*_normalized(*_vectors("lfilter_zi", b, a)))


@overload
def sosfilt(
    sos: Coefficients, x: ArrayLike, axis: int = -1, zi: None = None
) -> Array: ...
@overload
def sosfilt(
    sos: Coefficients, x: ArrayLike, axis: int = -1, *, zi: ArrayLike
) -> tuple[Array, Array]: ...
@overload
def sosfilt(
    sos: Coefficients, x: ArrayLike, axis: int, zi: ArrayLike
) -> tuple[Array, Array]: ...
@_docs
def sosfilt(
    sos: Coefficients, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None
) -> Array | tuple[Array, Array]:
    """Filters a signal by second-order sections, one after the other.

    Args:
      zi: array-like[sections, ...]: the states before, each `x` with 2 elements along
        `axis`.

    Returns:
      The filtered signal, a float or complex array of the shape of `x`; if `zi` is
      given, also the states after it, of the shape of `zi`.

    Example:
      >>> sosfilt([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]], np.array([1.0, 0.0, 0.0]))
      Array([1.  , 0.5 , 0.25], dtype=float32)
    """
    sos = numbers(sos)
    _require_sections("sosfilt", sos)
    out, state = _sosfilt(sos, x, zi, axis)
    return out if zi is None else (out, state)


@library("axis")
def _sosfilt(sos: Any, x: Any, zi: Any, axis: Any) -> tuple[Array, Array]:
    given = [sos, x] if zi is None else [sos, x, zi]
    sos, x, *rest = promote_inexact("sosfilt", *given)
    sos = _sections("sosfilt", sos)
    axis = canonical_axis("sosfilt", axis, x.aval.ndim)
    count = sos.aval.shape[0]
    x = fnp.moveaxis(x, axis, -1)
    shape = (count, *x.aval.shape[:-1], 2)
    z = fnp.zeros(shape, x.aval.dtype)
    if rest:
        if rest[0].aval.ndim == len(shape):
            z = fnp.moveaxis(rest[0], axis + 1, -1)
        if rest[0].aval.ndim != len(shape) or z.aval.shape != shape:
            raise ShapeError(
                f"sosfilt: zi must have shape {shape} with the axis of time last, got "
                f"{rest[0].aval}"
            )
    out, after = cascade(sos, x, z)
    return fnp.moveaxis(out, -1, axis), fnp.moveaxis(after, -1, axis + 1)


def _steady_sections(sos: Array) -> Array:
    level, states = fnp.ones((), sos.aval.dtype), []
    for section in sos:
        b, a = section[:3], section[3:]
        states.append(level * _steady(b, a))
        level = level * fnp.sum(b) / fnp.sum(a)
    return fnp.stack(states)


@_docs
def sosfilt_zi(sos: Coefficients) -> Array:
    """Returns the states of `sosfilt` that a signal of ones has left after a long time.

    Returns:
      Array[sections, 2]; infinite or nan if the filter has a pole at 1.

    Example:
      >>> sosfilt_zi([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
      Array([[1., 0.]], dtype=float32)
    """
    sos = numbers(sos)
    _require_sections("sosfilt_zi", sos)
    return _sosfilt_zi(sos)


@library()
def _sosfilt_zi(sos: Any) -> Array:
    return _steady_sections(
        _sections("sosfilt_zi", promote_inexact("sosfilt_zi", sos)[0])
    )


# -- forward and backward --------------------------------------------------------------


def _padding(name: str, padtype: Any, padlen: Any, default: int, n: int) -> int:
    """Returns by how many points a signal of `n` points is continued."""
    if padtype is not None and padtype not in _PADTYPES:
        listed = ", ".join(f'"{p}"' for p in _PADTYPES)
        raise ArgumentError(
            f"{name}: padtype must be one of {listed} or None, got {padtype!r}"
        )
    if padtype is None:
        padlen = 0
    edge = default if padlen is None else natural(name, "padlen", padlen, 0)
    if n <= edge:
        raise ShapeError(
            f"{name}: x must have more than padlen = {edge} points along the axis of "
            f"time, got {n}"
        )
    return edge


@_docs
def filtfilt(
    b: Coefficients,
    a: Coefficients,
    x: ArrayLike,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Array:
    """Filters a signal forward and then backward, so that nothing is delayed.

    Args:
      padlen: by how many points; None is 3 max(m, n).
      method: "pad", the signal continued and each pass begun in its steady state;
        "gust", the initial states for which both orders of the passes agree best.
      irlen: for "gust": the length after which the filter's impulse response counts as
        0; None is the signal's length.

    Example:
      >>> y = filtfilt([0.5], [1.0, -0.5], np.ones(12, np.float32))
      >>> bool(fnp.allclose(y, 1))
      True

    Source: `scipy.signal.filtfilt`; integers become floats. F. Gustafsson, Determining
    the Initial States in Forward-Backward Filtering, 1996.
    """
    b, a = numbers(b), numbers(a)
    _require_lead("filtfilt", a)
    if method not in ("pad", "gust"):
        raise ArgumentError(f'filtfilt: method must be "pad" or "gust", got {method!r}')
    if method == "gust":
        return _gustafsson(b, a, x, axis, irlen)
    return _filtfilt(b, a, x, axis, padtype, padlen)


def _operands(
    name: str, b: Any, a: Any, x: Any, axis: Any
) -> tuple[Array, Array, Array, int, int]:
    """Returns coefficients, x with time last, the axis, and max(m, n)."""
    b, a, x = promote_inexact(name, b, a, x)
    b, a = _vectors(name, b, a)
    axis = canonical_axis(name, axis, x.aval.ndim)
    return b, a, fnp.moveaxis(x, axis, -1), axis, max(b.aval.size, a.aval.size)


@library("axis", "padtype", "padlen")
def _filtfilt(b: Any, a: Any, x: Any, axis: Any, padtype: Any, padlen: Any) -> Array:
    b, a, x, axis, taps = _operands("filtfilt", b, a, x, axis)
    n = x.aval.shape[-1]
    edge = _padding("filtfilt", padtype, padlen, 3 * taps, n)
    steady = _steady(*_normalized(b, a))
    out = extended("filtfilt", x, padtype, edge) if edge else x
    for _ in range(2):
        out = fnp.flip(_filtered(b, a, out, steady * out[..., :1])[0], -1)
    return fnp.moveaxis(out[..., edge : edge + n], -1, axis)


@library("axis", "irlen")
def _gustafsson(b: Any, a: Any, x: Any, axis: Any, irlen: Any) -> Array:
    b, a, x, axis, taps = _operands("filtfilt", b, a, x, axis)
    n, order = x.aval.shape[-1], taps - 1
    if not order:
        return fnp.moveaxis(x * (b[0] / a[0]) ** 2, -1, axis)
    if n <= order:
        raise ShapeError(
            f"filtfilt: x must have more points along the axis of time than the "
            f"filter's order, {order}, got {n}"
        )
    rest = fnp.zeros((*x.aval.shape[:-1], order), x.aval.dtype)
    m = n
    if irlen is not None and n > 2 * natural("filtfilt", "irlen", irlen):
        m = int(irlen)

    def run(signal: Array, state: Array) -> Array:
        return _filtered(b, a, signal, state)[0]

    # Rows: what each element of a state adds to the output, and that filtered backward.
    dtype = x.aval.dtype
    free = run(fnp.zeros((order, m), dtype), fnp.eye(order, dtype=dtype))
    turned = fnp.flip(free, -1)
    passed = run(turned, fnp.zeros((order, order), dtype))
    forward = fnp.flip(run(fnp.flip(run(x, rest), -1), rest), -1)
    backward = run(fnp.flip(run(fnp.flip(x, -1), rest), -1), rest)
    change = backward - forward
    first, last = fnp.flip(passed, -1) - free, turned - passed
    if m == n:
        matrix = fnp.concatenate([first, last], 0).T
    else:
        change = fnp.concatenate([change[..., :m], change[..., n - m :]], -1)
        zeros = fnp.zeros_like(first)
        rows = [fnp.concatenate(p, 1) for p in ((first, zeros), (zeros, last))]
        matrix = fnp.concatenate(rows, 0).T
    found = fnp.matmul(change, fnp.linalg.pinv(matrix).T, precision="highest")
    before = fnp.matmul(found[..., :order], fnp.flip(passed, -1), precision="highest")
    after = fnp.matmul(found[..., order:], turned, precision="highest")
    outer = [(0, 0)] * (x.aval.ndim - 1)
    out = forward + fnp.pad(before, [*outer, (0, n - m)])
    out = out + fnp.pad(after, [*outer, (n - m, 0)])
    return fnp.moveaxis(out, -1, axis)


@_docs
def sosfiltfilt(
    sos: Coefficients,
    x: ArrayLike,
    axis: int = -1,
    padtype: str | None = "odd",
    padlen: int | None = None,
) -> Array:
    """Filters a signal by sections forward and then backward.

    Args:
      padlen: by how many points; None is 3 (2 sections + 1 - k), where k is the number
        of zeros in sos[:, 2] or sos[:, 5], whichever has fewer; if `sos` is traced, k
        is 0.

    Example:
      >>> sos = [[0.5, 0.0, 0.0, 1.0, -0.5, 0.0]]
      >>> bool(fnp.allclose(sosfiltfilt(sos, np.ones(12, np.float32)), 1))
      True
    """
    sos = numbers(sos)
    _require_sections("sosfiltfilt", sos)
    values, zeros = known(sos, "sosfiltfilt"), 0
    if values is not None and values.ndim == 2 and values.shape[1] == 6:
        zeros = int(min((values[:, 2] == 0).sum(), (values[:, 5] == 0).sum()))
    return _sosfiltfilt(sos, x, axis, padtype, padlen, zeros)


@library("axis", "padtype", "padlen", "zeros")
def _sosfiltfilt(
    sos: Any, x: Any, axis: Any, padtype: Any, padlen: Any, zeros: int
) -> Array:
    sos, x = promote_inexact("sosfiltfilt", sos, x)
    sos = _sections("sosfiltfilt", sos)
    axis = canonical_axis("sosfiltfilt", axis, x.aval.ndim)
    x = fnp.moveaxis(x, axis, -1)
    n = x.aval.shape[-1]
    taps = 2 * sos.aval.shape[0] + 1 - zeros
    edge = _padding("sosfiltfilt", padtype, padlen, 3 * taps, n)
    steady = _steady_sections(sos)
    out = extended("sosfiltfilt", x, padtype, edge) if edge else x
    for _ in range(2):
        states = fnp.stack([z * out[..., :1] for z in steady])
        out = fnp.flip(cascade(sos, out, states)[0], -1)
    return fnp.moveaxis(out[..., edge : edge + n], -1, axis)
