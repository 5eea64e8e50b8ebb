"""Systems as matrices: between state spaces, polynomials, roots, and sampled systems.

A state space is x' = A x + B u, y = C x + D u, with n states, p inputs and q outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.linalg import block_diag, expm
from fxflow.scipy.signal._recursions import Coefficients, known, numbers
from fxflow.scipy.signal.band_changes import normalize
from fxflow.scipy.signal.transfer_functions import polynomial, tf2zpk, zpk2tf
from fxflow.transforms.custom_jvp import custom_jvp

Matrices = tuple[Array, Array, Array, Array]

_docs = shared("""
    Args:
      A: float or complex array-like[n, n].
      B: float or complex array-like[n, p].
      C: float or complex array-like[q, n].
      D: float or complex array-like[q, p].
      num: float or complex array-like[m] or [q, m]: numerators, the highest power
        first.
      den: float or complex array-like[k]: the denominator.
      z: float or complex array-like[m]: zeros.
      p: float or complex array-like[n]: poles.
      k: number: the gain.
      input: the index of the input.

    Raises:
      ShapeError: the shapes are incompatible.
      ...

    Source: `scipy.signal.{name}`.
""")


def _dot(a: Array, b: Array) -> Array:
    return fnp.matmul(a, b, precision="highest")


# -- matrices --------------------------------------------------------------------------


@_docs
def abcd_normalize(
    A: Coefficients | None = None,
    B: Coefficients | None = None,
    C: Coefficients | None = None,
    D: Coefficients | None = None,
) -> Matrices:
    """Returns the four matrices of a state space, zeros for those that are missing.

    Returns:
      Arrays[n, n], [n, p], [q, n] and [q, p] of one dtype.

    Raises:
      ArgumentError: so many matrices are missing that n, p or q is not known.

    Example:
      >>> abcd_normalize([[1.0, 2.0], [3.0, 4.0]], [[-1.0], [5.0]], [[4.0, 5.0]])[3]
      Array([[0.]], dtype=float32)
    """
    name = "abcd_normalize"
    for missing, letters, what in (
        (A is None and B is None and C is None, "A, B and C", "n"),
        (B is None and D is None, "B and D", "p"),
        (C is None and D is None, "C and D", "q"),
    ):
        if missing:
            raise ArgumentError(
                f"{name}: without {letters} the dimension {what} is not known"
            )
    given = {k: v for k, v in zip("ABCD", (A, B, C, D), strict=True) if v is not None}
    values = promote_inexact(name, *map(numbers, given.values()))
    dtype = values[0].dtype
    found = dict(zip(given, values, strict=True))
    parts: list[Array | None] = []
    for letter in "ABCD":
        matrix = fnp.atleast_2d(found[letter]) if letter in found else None
        if matrix is not None and matrix.ndim != 2:
            raise ShapeError(f"{name}: {letter} must be a matrix, got {matrix.aval}")
        parts.append(matrix if matrix is not None and matrix.size else None)

    def size(*places: tuple[int, int]) -> int:
        for index, axis in places:
            matrix = parts[index]
            if matrix is not None:
                return int(matrix.shape[axis])
        return 0

    n, p, q = size((0, 0), (1, 0), (2, 1)), size((1, 1), (3, 1)), size((2, 0), (3, 0))
    shapes = ((n, n), (n, p), (q, n), (q, p))
    out = []
    for letter, matrix, shape in zip("ABCD", parts, shapes, strict=True):
        if matrix is None:
            matrix = fnp.zeros(shape, dtype)
        elif matrix.shape != shape:
            raise ShapeError(
                f"{name}: {letter} must have the shape {shape}, got {matrix.aval}"
            )
        out.append(matrix)
    return out[0], out[1], out[2], out[3]


# -- polynomials -----------------------------------------------------------------------


@_docs
def tf2ss(num: Coefficients, den: Coefficients) -> Matrices:
    """Returns the state space of a ratio of polynomials, in controller form.

    Returns:
      Arrays[k - 1, k - 1], [k - 1, 1], [q, k - 1] and [q, 1].

    Raises:
      ArgumentError: a numerator has a higher degree than the denominator, or that is 0.

    Example:
      >>> tf2ss([1.0, 3.0, 3.0], [1.0, 2.0, 1.0])[0]
      Array([[-2., -1.],
             [ 1.,  0.]], dtype=float32)
    """
    rows, under = normalize(num, den)
    rows = fnp.atleast_2d(rows)
    excess, k = under.size - rows.shape[1], under.size
    if excess < 0:
        raise ArgumentError(
            "tf2ss: a numerator must not have more coefficients than the denominator, "
            f"got {rows.shape[1]} and {k}"
        )
    rows = fnp.pad(rows, ((0, 0), (excess, 0)))
    q, dtype = rows.shape[0], rows.dtype
    D = rows[:, :1]
    if k == 1:
        zeros = [fnp.zeros(shape, dtype) for shape in ((1, 1), (1, 1), (q, 1))]
        return zeros[0], zeros[1], zeros[2], D
    A = fnp.concatenate([-under[None, 1:], fnp.eye(k - 2, k - 1, dtype=dtype)], 0)
    B = fnp.eye(k - 1, 1, dtype=dtype)
    return A, B, rows[:, 1:] - D * under[1:], D


@custom_jvp
def _characteristic(a: Array) -> Array:
    """Returns the coefficients of det(s I - a), the highest power first."""
    if not a.shape[0]:
        return fnp.ones(1, a.dtype)
    found = polynomial(fnp.linalg.eigvals(a))
    return found if dtypes.is_complex(a.dtype) else fnp.real(found)


@_characteristic.defjvp
def _(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The slopes are polynomials of `a`, also where eigenvalues are equal.

    d det(s I - a) = -tr(adj(s I - a) da), and the adjugate's coefficients are those of
    Horner's rule for the polynomial, with a in place of s.
    """
    (a,), (da,) = primals, tangents
    c = _characteristic(a)
    eye = fnp.eye(a.shape[0], dtype=a.dtype)
    part, slopes = eye, [fnp.zeros_like(c[0])]
    for k in range(1, a.shape[0] + 1):
        slopes.append(-fnp.sum(part.T * da))
        part = _dot(a, part) + c[k] * eye
    return c, fnp.stack(slopes)


@_docs
def ss2tf(
    A: Coefficients,
    B: Coefficients,
    C: Coefficients,
    D: Coefficients,
    input: int = 0,
) -> tuple[Array, Array]:
    """Returns the numerators and the denominator of a state space.

    It is differentiable by the matrices, also where eigenvalues are equal.

    Returns:
      Array[q, n + 1] and array[n + 1], the highest power first.

    Raises:
      ArgumentError: there is no such input.

    Example:
      >>> ss2tf([[-2.0, -1.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 2.0]], [[1.0]])[0]
      Array([[1.       , 3.0000002, 3.0000005]], dtype=float32)
    """
    A, B, C, D = abcd_normalize(A, B, C, D)
    at = integer("ss2tf", "input", input)
    if not -B.shape[1] <= at < B.shape[1]:
        raise ArgumentError(
            f"ss2tf: input must be one of {B.shape[1]} inputs, got {input}"
        )
    B, D = B[:, at, None], D[:, at]
    den = _characteristic(A)
    rows = [
        _characteristic(A - _dot(B, C[i : i + 1])) + (D[i] - 1) * den
        for i in range(C.shape[0])
    ]
    return fnp.stack(rows) if rows else fnp.zeros((0, den.size), den.dtype), den


@_docs
def zpk2ss(z: Coefficients, p: Coefficients, k: ArrayLike) -> Matrices:
    """Returns the state space of zeros, poles and a gain, in controller form.

    Returns:
      Arrays[n, n], [n, 1], [1, n] and [1, 1].

    Raises:
      ArgumentError: there are more zeros than poles.

    Example:
      >>> zpk2ss([], [-2.0], 3.0)[2]
      Array([[3.]], dtype=float32)
    """
    return tf2ss(*zpk2tf(z, p, k))


@_docs
def ss2zpk(
    A: Coefficients,
    B: Coefficients,
    C: Coefficients,
    D: Coefficients,
    input: int = 0,
) -> tuple[Array, Array, Array]:
    """Returns the zeros, poles and gain of a state space with one output.

    Returns:
      Complex arrays and the gain, 0-d.

    Raises:
      ArgumentError: there is no such input.

    Special cases:
      Where matrices are traced, there are n zeros, n - 1 if `D` is known to be 0; a
      system with fewer has nan among them.

    Example:
      >>> ss2zpk([[-2.0]], [[1.0]], [[3.0]], [[0.0]])[1].real
      Array([-2.], dtype=float32)
    """
    num, den = ss2tf(A, B, C, D, input)
    if num.shape[0] != 1:
        raise ShapeError(f"ss2zpk: a system must have one output, got {num.shape[0]}")
    direct = known(numbers(D), "ss2zpk")
    if direct is not None and not np.any(direct) and num.shape[1] > 1:
        num = num[:, 1:]
    return tf2zpk(*normalize(num[0], den))


# -- sampled systems -------------------------------------------------------------------

_BILINEAR = {
    **dict.fromkeys(("bilinear", "tustin"), 0.5),
    **dict.fromkeys(("euler", "forward_diff"), 0.0),
    "backward_diff": 1.0,
}
_METHODS = ("gbt", *_BILINEAR, "zoh", "foh", "impulse")


def require_method(name: str, method: str, alpha: Any) -> None:
    """Raises an error unless a system can be sampled in this way."""
    if method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(f"{name}: method must be one of {listed}, got {method!r}")
    if method != "gbt":
        return
    if alpha is None:
        raise ArgumentError(f'{name}: method="gbt" needs alpha')
    host = known(alpha, name)
    if host is not None and not 0 <= float(host) <= 1:
        raise ArgumentError(f"{name}: alpha must lie between 0 and 1, got {alpha}")


def sampled(matrices: Matrices, dt: Any, method: str, alpha: Any) -> Matrices:
    """Returns the matrices of a system sampled every `dt`."""
    a, b, c, d = matrices
    n, m = b.shape
    dt = fnp.asarray(dt, dtypes.to_real(a.dtype))
    if method == "zoh":
        below = fnp.zeros((m, n + m), a.dtype)
        whole = expm(dt * fnp.concatenate([fnp.concatenate([a, b], 1), below], 0))
        return whole[:n, :n], whole[:n, n:], c, d
    if method == "foh":
        above = block_diag(fnp.concatenate([a, b], 1) * dt, fnp.eye(m, dtype=a.dtype))
        below = fnp.zeros((m, n + 2 * m), a.dtype)
        whole = expm(fnp.concatenate([above, below], 0))[:n]
        ad, near, far = whole[:, :n], whole[:, n : n + m], whole[:, n + m :]
        return ad, near - far + _dot(ad, far), c, d + _dot(c, far)
    if method == "impulse":
        ad = expm(a * dt)
        return ad, _dot(ad, b) * dt, c, _dot(c, b) * dt
    share = fnp.asarray(_BILINEAR.get(method, alpha), dt.dtype)
    eye = fnp.eye(n, dtype=a.dtype)
    implicit = eye - share * dt * a
    right = fnp.concatenate([eye + (1 - share) * dt * a, dt * b], 1)
    both = fnp.linalg.solve(implicit, right)
    cd = fnp.linalg.solve(implicit.T, c.T).T
    return both[:, :n], both[:, n:], cd, d + share * _dot(c, both[:, n:])


def cont2discrete(
    system: Any, dt: ArrayLike, method: str = "zoh", alpha: Any = None
) -> Any:
    """Returns a sampled system of a continuous one.

    Args:
      system: (num, den), (z, p, k), (A, B, C, D), or an object of `lti`.
      dt: the time between samples; of a tuple it may be traced.
      method: "zoh", the input is constant between samples; "foh", it is linear;
        "impulse", the responses to impulses are equal; "gbt", the generalized bilinear
        transform; "bilinear" or "tustin", with alpha = 0.5; "euler" or "forward_diff",
        with 0; "backward_diff", with 1.
      alpha: of "gbt", 0 … 1.

    Returns:
      A tuple of the same form with `dt` behind, or an object of `dlti`.

    Raises:
      ArgumentError: unknown method, `alpha` is missing or out of range, or "impulse" is
        asked for and `D` is not 0.
      ShapeError: the shapes are incompatible.

    Example:
      >>> cont2discrete(([1.0], [1.0, 1.0]), 0.5)[1].round(4)
      Array([ 1.    , -0.6065], dtype=float32)

    Source: `scipy.signal.cont2discrete`.
    """
    name = "cont2discrete"
    if hasattr(system, "to_discrete"):
        return system.to_discrete(dt, method, alpha)
    require_method(name, method, alpha)
    if not isinstance(system, tuple | list) or len(system) not in (2, 3, 4):
        raise ArgumentError(
            f"{name}: system must be (num, den), (z, p, k) or (A, B, C, D), got "
            f"{system!r}"
        )
    forms = {2: (tf2ss, ss2tf), 3: (zpk2ss, ss2zpk), 4: (abcd_normalize, None)}
    there, back = forms[len(system)]
    matrices = there(*system)  # type: ignore[operator]
    if method == "impulse":
        direct = known(matrices[3], name)
        if direct is not None and not np.allclose(direct, 0):
            raise ArgumentError(
                f'{name}: method="impulse" needs a system without D, got '
                f"D = {direct.tolist()}"
            )
    found = sampled(matrices, dt, method, alpha)
    out = found if back is None else back(*found)
    return (*out, dt)
