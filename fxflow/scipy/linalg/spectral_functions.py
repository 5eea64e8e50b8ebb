"""Functions of Hermitian matrices, with derivatives at equal eigenvalues too.

The derivatives of eigenvectors do not exist there, and a function V f(w) Vᴴ cannot be
differentiated through `eigh`: how it answers to a change that splits equal eigenvalues
depends on the slope of f, which no derivative of V and w knows. The functions here
take divided differences of f instead, whose limits are derivatives of f.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.linalg._matrices import adjoint
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jvp import jvp
from fxflow.transforms.linear_call import linear_call
from fxflow.transforms.vmap import vmap

# The nodes of Gauss's rule of two points, on [-1, 1].
_NODE = 1 / math.sqrt(3)


# -- divided differences ---------------------------------------------------------------


def _divided(f: Callable[[Any], Any], points: tuple[Any, ...]) -> Any:
    """Returns the divided difference of a function at points that may be equal.

    Near each other, a quotient of differences has lost its digits, and the mean slope
    by Gaussian quadrature has all of them: it is taken where the two agree within the
    error of the quotient.
    """
    if len(points) == 1:
        return f(points[0])
    if len(points) > 2:
        # The difference of the outermost points has the smallest error.
        stacked = fnp.sort(fnp.stack(fnp.broadcast_arrays(*points)), axis=0)
        points = tuple(stacked)
    first, *between, last = points

    def inner(x: Any) -> Any:
        return _divided(f, (x, *between))

    # One evaluation for both ends, one for both nodes: programs stay small.
    gap = first - last
    mean, half = (first + last) * 0.5, gap * (0.5 * _NODE)
    nodes = fnp.stack([mean + half, mean - half])
    slopes = jvp(inner, (nodes,), (fnp.ones_like(nodes),))[1]
    limit = (slopes[0] + slopes[1]) * 0.5
    ends = inner(fnp.stack(fnp.broadcast_arrays(first, last)))
    a, b = ends[0], ends[1]
    safe = fnp.where(gap == 0, 1, gap)
    quotient = (a - b) / safe
    eps = float(fnp.finfo(gap.aval.dtype).eps)
    # Differences of higher order inherit the errors of those below.
    noise = 32 * (eps if len(points) == 2 else eps**0.8)
    noise = noise * (fnp.abs(a) + fnp.abs(b)) / fnp.abs(safe)
    near = (gap == 0) | (fnp.abs(quotient - limit) <= noise)
    return fnp.where(near, limit, quotient)


def _product(
    f: Callable[..., Any],
    w: Any,
    v: Any,
    moves: tuple[Any, ...],
    given: tuple[Any, ...],
) -> Any:
    """Returns V (Σ f[wᵢ, wₖ, …, wⱼ] Eᵢₖ … Eₗⱼ) Vᴴ for moves E in the eigenbasis."""

    def values(at: Any) -> Any:
        one = vmap(lambda x: f(x, *given))
        return fnp.reshape(one(fnp.ravel(at)), at.aval.shape)

    order = len(moves)
    if not order:
        y = values(w)
        return matmul(v * y[..., None, :], adjoint(v))
    points = tuple(
        fnp.expand_dims(w, [w.aval.ndim - 1 + i for i in range(order + 1) if i != k])
        for k in range(order + 1)
    )
    weights = _divided(values, points)
    letters = string.ascii_letters[: order + 1]
    pairs = ["..." + letters[i : i + 2] for i in range(order)]
    rule = ",".join([f"...{letters}", *pairs]) + f"->...{letters[0]}{letters[-1]}"
    turned = [matmul(adjoint(v), matmul(e, v)) for e in moves]
    return matmul(v, matmul(fnp.einsum(rule, weights, *turned), adjoint(v)))


# A product of n moves changes with the matrix by products of n + 1 moves, whose new one
# is the change, in each place. Its value depends on the eigenvalues and eigenvectors,
# its derivatives on the matrix itself.


def _evaluate(f: Any, w: Any, v: Any, x: Any, moves: Any, given: Any) -> Any:
    return _product(f, w, v, moves, given)


_matrix_function = custom_jvp(_evaluate, nondiff_argnums=(0,))


@_matrix_function.defjvp
def _rule(f: Any, primals: Any, tangents: Any) -> Any:
    w, v, x, moves, given = primals
    _, _, dx, dmoves, dgiven = tangents
    fixed = (w, v, x)
    out = _matrix_function(f, w, v, x, moves, given)
    parts = [
        _along(f, fixed, moves[:i], dx, moves[i:], given) for i in range(len(moves) + 1)
    ]
    parts += [
        _along(f, fixed, moves[:i], move, moves[i + 1 :], given)
        for i, move in enumerate(dmoves)
    ]
    if given:
        parts.append(_by_captured(f, fixed, moves, given, dgiven))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return out, total


# The transposes are given, as functions of the matrix: those that are found from the
# operations would be functions of its eigenvectors, which count as constants.


def _along(f: Any, fixed: Any, before: Any, move: Any, after: Any, given: Any) -> Any:
    """Returns the product, linear in one of the moves."""

    def forward(held: Any, move: Any) -> Any:
        (w, v, x), before, after, given = held
        return _matrix_function(f, w, v, x, (*before, move, *after), given)

    def backward(held: Any, cotangent: Any) -> Any:
        # The trace of a product does not change when its factors are rotated.
        (w, v, x), before, after, given = held
        moves = (*after, matrix_transpose(cotangent), *before)
        return matrix_transpose(_matrix_function(f, w, v, x, moves, given))

    return linear_call(forward, backward, (fixed, before, after, given), move)


def _by_captured(f: Any, fixed: Any, moves: Any, given: Any, dgiven: Any) -> Any:
    """Returns the derivative with respect to what the function captured."""
    count = len(given)

    def change(at: Any, *both: Any) -> Any:
        return jvp(lambda *c: f(at, *c), both[:count], both[count:])[1]

    def forward(held: Any, dgiven: Any) -> Any:
        (w, v, x), moves, given = held
        return _matrix_function(change, w, v, x, moves, (*given, *dgiven))

    def backward(held: Any, cotangent: Any) -> Any:
        zeros = tuple(fnp.zeros_like(c) for c in held[2])

        def entry(i: int, unit: Any) -> Any:
            moved = fnp.reshape(unit, zeros[i].aval.shape)
            slope = forward(held, (*zeros[:i], moved, *zeros[i + 1 :]))
            total = fnp.sum(cotangent * slope)
            real = not dtypes.is_complex(moved.aval.dtype)
            return convert(fnp.real(total) if real else total, moved.aval.dtype)

        out = []
        for i, zero in enumerate(zeros):
            units = fnp.eye(zero.size, dtype=zero.aval.dtype)
            rows = vmap(functools.partial(entry, i))(units)
            out.append(fnp.reshape(rows, zero.aval.shape))
        return tuple(out)

    return linear_call(forward, backward, (fixed, moves, given), tuple(dgiven))


def hermitian_function(f: Callable[[Any], Any], x: Any, name: str) -> Any:
    """Returns V f(w) Vᴴ of Hermitian matrices x = V w Vᴴ, differentiable to any order.

    Args:
      f: function of a real scalar; it may capture traced values.
      x: float or complex[..., n, n], Hermitian.
      name: the function that asks, for its errors.
    """
    real = dtypes.to_real(x.aval.dtype)

    def scalar(at: Any) -> Any:
        y = array_of(f(at), name)
        if y.aval.ndim:
            raise ShapeError(
                f"{name}: func must act element by element: it returned {y.aval} for a "
                "scalar"
            )
        return y if dtypes.is_complex(y.aval.dtype) else convert(y, real)

    start = lax.full((), 1, real)
    converted, given = closure_convert(scalar, start)
    out = eval_shape(converted, start, *given)
    if dtypes.is_complex(out.dtype):
        x = convert(x, dtypes.to_complex(real))
    v, w = lax.linalg.eigh(lax.stop_gradient(x))
    result: Any = _matrix_function(converted, w, v, x, (), tuple(given))
    return result


# -- public ----------------------------------------------------------------------------


@library("func")
def generalized_funm(A: ArrayLike, func: Callable[[Any], Any]) -> Array:
    """Returns U f(s) Vᴴ of the singular value decompositions A = U s Vᴴ.

    Args:
      A: array-like[..., m, n].
      func: function of a real scalar, called with non-negative values; it may capture
        traced values, also those to differentiate with respect to.

    Returns:
      Float or complex array[..., m, n].

    Raises:
      ShapeError: `A` is not a matrix, or `func` does not act element by element.

    Special cases:
      The derivatives, of any order, are right at equal singular values, unlike those
      of products of what `svd` returns. Zero ones have the derivatives of the odd
      continuation of `func`, whose value at 0 counts as 0.

    Example:
      >>> a = np.array([[0.0, -2.0], [3.0, 0.0]])
      >>> abs(generalized_funm(a, lambda s: s * s)).round(3)
      Array([[0., 4.],
             [9., 0.]], dtype=float32)

    Source: J. Hawkins and A. Ben-Israel, On generalized matrix functions, 1973.
    """
    x = matrix_of("generalized_funm", A)
    m = x.aval.shape[-2]
    if not x.aval.size:
        return x

    def odd(w: Any) -> Any:
        sign = fnp.where(w < 0, -1, 1)
        y = sign * array_of(func(sign * w), "generalized_funm")
        # At 0 the value is 0, and the slope that of the function, if it has one.
        at = w == 0
        y = y - fnp.where(at, lax.stop_gradient(y), 0)
        return fnp.where(at & fnp.isnan(y), 0, y)

    # The eigenvalues of this matrix are the singular values, with both signs.
    upper = fnp.concatenate([_square(x, m), x], axis=-1)
    lower = fnp.concatenate([adjoint(x), _square(x, x.aval.shape[-1])], axis=-1)
    whole = fnp.concatenate([upper, lower], axis=-2)
    out: Array = hermitian_function(odd, whole, "generalized_funm")
    return out[..., :m, m:]


def _square(x: Any, n: int) -> Any:
    return fnp.zeros((*x.aval.shape[:-2], n, n), x.aval.dtype)


@library("start", "stop")
def spectral_projector(A: ArrayLike, start: int, stop: int) -> Array:
    """Returns projectors on the eigenvectors of a range of eigenvalues.

    Args:
      A: array-like[..., n, n], of which the Hermitian part is taken.
      start: the number of the first eigenvalue, ascending from 0.
      stop: the number behind the last.

    Returns:
      Float or complex array[..., n, n], the sum of v vᴴ over the range.

    Raises:
      ShapeError: the matrices are not square.
      ArgumentError: the range is not within 0 and n.

    Special cases:
      The derivatives, of any order, are right for eigenvalues that are equal within
      the range or outside; nan throughout if one inside equals one outside, because
      the projector is not determined then.

    Example:
      >>> spectral_projector(np.diag(np.array([1.0, 3.0, 3.0])), 1, 3)
      Array([[0., 0., 0.],
             [0., 1., 0.],
             [0., 0., 1.]], dtype=float32)

    Source: T. Kato, Perturbation Theory for Linear Operators, 1966.
    """
    name = "spectral_projector"
    x = hermitian_part(matrix_of(name, A, square=True))
    n = x.aval.shape[-1]
    start, stop = (
        natural(name, what, value, 0)
        for what, value in (("start", start), ("stop", stop))
    )
    if not start <= stop <= n:
        raise ArgumentError(
            f"{name}: start {start} and stop {stop} must be a range within 0 and {n} "
            f"for {x.aval}"
        )
    out: Array = x
    if not x.aval.size:
        return out
    values = lax.linalg.eigh(lax.stop_gradient(x))[1]
    one = vmap(lambda x, w: _projector(x, w, start=start, stop=stop, name=name))
    flat = one(fnp.reshape(x, (-1, n, n)), fnp.reshape(values, (-1, n)))
    out = fnp.reshape(flat, x.aval.shape)
    return out


def _projector(x: Any, values: Any, *, start: int, stop: int, name: str) -> Any:
    n = values.aval.shape[-1]
    # The function is a step between the range and the rest, of slope 0.
    low = (values[start - 1] + values[start]) / 2 if 0 < start < n else -math.inf
    high = (values[stop - 1] + values[stop]) / 2 if 0 < stop < n else math.inf
    if start == stop or (start, stop) == (0, n):
        return x * 0 + (start < stop) * fnp.eye(n, dtype=x.aval.dtype)

    def inside(w: Any) -> Any:
        return convert((w > low) & (w < high), w.aval.dtype)

    out = hermitian_function(inside, x, name)
    eps = n * float(fnp.finfo(values.aval.dtype).eps)
    size = eps * fnp.max(fnp.abs(values))
    apart = fnp.ones((), bool)
    for edge in (start, stop):
        if 0 < edge < n:
            apart &= values[edge] - values[edge - 1] > size
    return out * fnp.where(apart, 1.0, math.nan)


def hermitian_part(x: Any) -> Any:
    """Returns the mean of matrices and their adjoints."""
    return (x + adjoint(x)) * 0.5
