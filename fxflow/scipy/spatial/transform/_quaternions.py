"""Unit quaternions [..., x, y, z, w] and what rotations are written as besides.

All functions act on the last axis or two, and have derivatives of any order at the
identity: what divides 0 by 0 there is a series near it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.numpy.selection import choose_between


def _safe(condition: Any, x: Any, value: float) -> Any:
    """Returns `x` where a condition holds, a harmless value elsewhere."""
    return choose_between(condition, x, fnp.full_like(x, value))


def _polynomial(x: Any, *coefficients: float) -> Any:
    """Returns c₀ + c₁ x + c₂ x² + …."""
    out = fnp.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


def _square(v: Any) -> Any:
    return fnp.sum(v * v, -1, keepdims=True)


def normalized(q: Any) -> Any:
    """Returns vectors of length 1; nan of 0."""
    return q / fnp.sqrt(_square(q))


def product(p: Any, q: Any) -> Any:
    """Returns the quaternion of `q` first, then `p`."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = a * v + b * u + fnp.cross(u, v)
    return fnp.concatenate([vector, a * b - fnp.sum(u * v, -1, keepdims=True)], -1)


def inverse(q: Any) -> Any:
    """Returns the quaternion of the rotation back."""
    return q * np.array([-1, -1, -1, 1], q.dtype)


def positive(q: Any) -> Any:
    """Returns that one of `q` and `-q` whose w is not negative."""
    return choose_between(q[..., 3:] < 0, -q, q)


def canonical(q: Any) -> Any:
    """Returns that one of `q` and `-q` whose last part that is not 0 is positive.

    After w come x, y and z, as SciPy has it.
    """
    x, y, z, w = (q[..., i : i + 1] for i in range(4))
    down = (x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))
    return choose_between((w < 0) | ((w == 0) & down), -q, q)


def of_vector(v: Any) -> Any:
    """Returns the quaternion of an axis times an angle."""
    square = _square(v)
    near = square < 1e-2
    low = _safe(near, square, 0)
    high = fnp.sqrt(_safe(~near, square, 1))
    # sin(a / 2) / a and cos(a / 2) in powers of a².
    sine = _polynomial(low, 1 / 2, -1 / 48, 1 / 3840, -1 / 645120)
    cosine = _polynomial(low, 1, -1 / 8, 1 / 384, -1 / 46080, 1 / 10321920)
    sine = choose_between(near, sine, fnp.sin(high / 2) / high)
    cosine = choose_between(near, cosine, fnp.cos(high / 2))
    return fnp.concatenate([v * sine, cosine], -1)


def to_vector(q: Any) -> Any:
    """Returns an axis times an angle of at most π."""
    q = positive(q)
    v, w = q[..., :3], q[..., 3:]
    square = _square(v)
    near = square < 1e-3 * w * w
    ratio = _safe(near, square, 0) / _safe(near, w * w, 1)
    # 2 atan(t) / t in powers of t².
    series = _polynomial(ratio, *(2 * (-1) ** k / (2 * k + 1) for k in range(6)))
    length = fnp.sqrt(_safe(~near, square, 1))
    far = 2 * fnp.arctan2(length, _safe(~near, w, 0)) / length
    return v * choose_between(near, series / _safe(near, w, 1), far)


def of_mrp(m: Any) -> Any:
    """Returns the quaternion of modified Rodrigues parameters."""
    square = _square(m)
    return fnp.concatenate([2 * m, 1 - square], -1) / (1 + square)


def to_mrp(q: Any) -> Any:
    """Returns modified Rodrigues parameters."""
    q = positive(q)
    return q[..., :3] / (1 + q[..., 3:])


def of_matrix(m: Any) -> Any:
    """Returns the quaternion of orthogonal matrices."""

    def entry(i: int, j: int) -> Any:
        return m[..., i, j]

    trace = entry(0, 0) + entry(1, 1) + entry(2, 2)
    # Four multiples of it: of the longest one the least digits are lost.
    rows = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        row = [0, 0, 0, entry(k, j) - entry(j, k)]
        row[i] = 1 - trace + 2 * entry(i, i)
        row[j], row[k] = entry(j, i) + entry(i, j), entry(k, i) + entry(i, k)
        rows.append(fnp.stack(row, -1))
    cross = [entry((i + 2) % 3, (i + 1) % 3) for i in range(3)]
    cross = [c - entry((i + 1) % 3, (i + 2) % 3) for i, c in enumerate(cross)]
    rows.append(fnp.stack([*cross, 1 + trace], -1))
    sizes = fnp.stack([entry(0, 0), entry(1, 1), entry(2, 2), trace], -1)
    best = fnp.argmax(sizes, -1)[..., None]
    out = rows[3]
    for i in range(3):
        out = choose_between(best == i, rows[i], out)
    return normalized(out)


def to_matrix(q: Any) -> Any:
    """Returns orthogonal matrices."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return fnp.stack([fnp.stack(row, -1) for row in rows], -2)


def of_angles(axes: str, angles: Any) -> Any:
    """Returns the quaternion of turns by angles[..., k] about axes.

    Args:
      axes: letters: "xyz" fixed in space, "XYZ" that turn along.
      angles: in radians.
    """
    half = angles / 2
    out = None
    for k, axis in enumerate(axes):
        sine, cosine = fnp.sin(half[..., k]), fnp.cos(half[..., k])
        parts = [fnp.zeros_like(sine)] * 3 + [cosine]
        parts["xyz".index(axis.lower())] = sine
        turn = fnp.stack(parts, -1)
        if out is None:
            out = turn
        else:
            out = product(turn, out) if axes.islower() else product(out, turn)
    return out


def to_angles(q: Any, axes: str) -> Any:
    """Returns three angles[..., 3], the middle one in a half turn.

    Where the first and the third axis coincide, the third angle is 0.

    Source: E. Bernardes and S. Viollet, Quaternion to Euler angles conversion, 2022.
    """
    fixed = axes.islower()
    i, j, k = ("xyz".index(a) for a in (axes if fixed else axes[::-1]).lower())
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    part = [q[..., n] for n in range(4)]
    if symmetric:
        a, b, c, d = part[3], part[i], part[j], part[k] * sign
    else:
        a, b = part[3] - part[j], part[i] + part[k] * sign
        c, d = part[j] + part[3], part[k] * sign - part[i]
    tiny = 1e-14 if dtypes.bits(q.aval.dtype) == 64 else 1e-12
    first, second = a * a + b * b, c * c + d * d
    low, high = second <= tiny * first, first <= tiny * second

    # Square roots of 0 have no derivative, nor have angles of (0, 0).
    def root(s: Any, at_0: Any) -> Any:
        return choose_between(at_0, 0 * s, fnp.sqrt(_safe(~at_0, s, 1)))

    middle = 2 * fnp.arctan2(root(second, low), root(first, high))
    total = fnp.arctan2(_safe(~high, b, 0), _safe(~high, a, 1))
    apart = fnp.arctan2(_safe(~low, d, 0), _safe(~low, c, 1))
    out = [total - apart, middle, total + apart][:: 1 if fixed else -1]
    lone = choose_between(low, 2 * total, (-2 if fixed else 2) * apart)
    out[0] = choose_between(low | high, lone, out[0])
    out[2] = choose_between(low | high, 0 * lone, out[2])
    if not symmetric:
        out[1] = middle - math.pi / 2
        third = 2 if fixed else 0
        out[third] = out[third] * sign
    angles = fnp.stack(out, -1)
    turned = fnp.where(angles < -math.pi, angles + 2 * math.pi, angles)
    return fnp.where(turned > math.pi, turned - 2 * math.pi, turned)


def angle(q: Any) -> Any:
    """Returns by how much is turned, [...], from 0 to π."""
    v, w = q[..., :3], fnp.abs(q[..., 3])
    square = fnp.sum(v * v, -1)
    still = square == 0
    length = choose_between(still, 0 * square, fnp.sqrt(_safe(~still, square, 1)))
    return 2 * fnp.arctan2(length, w)


#: Coefficients of (1 - (a / 2) cot(a / 2)) / a² in powers of a²: Bernoulli numbers.
_BERNOULLI = (
    *(1 / 12, 1 / 720, 1 / 30240, 1 / 1209600, 1 / 47900160, 691 / 1307674368000),
    *(1 / 74724249600, 3617 / 10670622842880000, 43867 / 5109094217170944000),
    *(174611 / 802857662698291200000, 77683 / 14101100039391805440000),
)


def screwed(v: Any, along: Any) -> Any:
    """Returns the way of a point that turns by `v` and moves `along` all the time.

    Both in one unit of time, while the direction turns with the point: V(v) · along,
    the translation of the matrix exponential.
    """
    square = _square(v)
    near = square < 1
    low = _safe(near, square, 0)
    high = fnp.sqrt(_safe(~near, square, 1))
    # (1 - cos a) / a² and (a - sin a) / a³.
    first = _polynomial(low, *((-1) ** k / math.factorial(2 * k + 2) for k in range(9)))
    second = _polynomial(
        low, *((-1) ** k / math.factorial(2 * k + 3) for k in range(9))
    )
    first = choose_between(near, first, (1 - fnp.cos(high)) / high**2)
    second = choose_between(near, second, (high - fnp.sin(high)) / high**3)
    turned = fnp.cross(v, along)
    return along + first * turned + second * fnp.cross(v, turned)


def unscrewed(v: Any, way: Any) -> Any:
    """Returns the movement whose way `screwed` returns."""
    square = _square(v)
    near = square < 1
    low = _safe(near, square, 0)
    high = fnp.sqrt(_safe(~near, square, 1))
    half = high / 2
    far = (1 - half * fnp.cos(half) / fnp.sin(half)) / high**2
    factor = choose_between(near, _polynomial(low, *_BERNOULLI), far)
    turned = fnp.cross(v, way)
    return way - turned / 2 + factor * fnp.cross(v, turned)


def between(a: Any, b: Any) -> Any:
    """Returns the quaternion of the shortest turn of the vector b onto a."""
    a, b = a / fnp.sqrt(_square(a)), b / fnp.sqrt(_square(b))
    cosine = fnp.sum(a * b, -1, keepdims=True)
    # Opposite vectors: any axis across them, as that of the least coordinate.
    least = fnp.abs(b) == fnp.min(fnp.abs(b), -1, keepdims=True)
    across = fnp.cross(b, least.astype(b.dtype))
    apart = cosine < -1 + 4 * float(dtypes.finfo(b.dtype).eps)
    turn = fnp.concatenate([fnp.cross(b, a), 1 + cosine], -1)
    half = fnp.concatenate([across, 0 * cosine], -1)
    return normalized(choose_between(apart, half, turn))


def aligned(a: Any, b: Any, w: Any) -> tuple[Any, Any, Any]:
    """Returns the quaternion that turns b onto a best, the error, the sensitivity.

    Source: W. Kabsch, A solution for the best rotation to relate two sets of vectors,
    1976; F. L. Markley and J. L. Crassidis, 2014, for the sensitivity.
    """
    table = (w[:, None] * a).T @ b
    u, s, vh = fnp.linalg.svd(table)
    turn = fnp.where(fnp.linalg.det(u) * fnp.linalg.det(vh) < 0, -1, 1).astype(s.dtype)
    signs = fnp.stack([fnp.ones_like(turn), fnp.ones_like(turn), turn])
    s = s * signs
    square = fnp.sum(w * fnp.sum(a * a + b * b, -1)) - 2 * fnp.sum(s)
    some = square > 0
    error = fnp.where(some, fnp.sqrt(_safe(some, square, 1)), 0)
    pairs = s * fnp.roll(s, 1)
    product = fnp.prod(s + fnp.roll(s, 1))
    size = fnp.sum(pairs) * fnp.eye(3, dtype=s.dtype) + table @ table.T
    sensitivity = fnp.mean(w) / product * size
    return of_matrix((u * signs) @ vh), error, sensitivity


def to_davenport(q: Any, axes: Any, extrinsic: bool) -> Any:
    """Returns angles[..., 3] about three axes, the second across both others.

    Where only the sum or the difference of the first and the last angle is known, the
    last one is 0.
    """
    first, second, third = axes if extrinsic else axes[::-1]
    cross = fnp.cross(first, second)
    sine = fnp.dot(fnp.cross(third, first), second)
    # The sign of a sine of 0 decides the range of the second angle.
    sine = fnp.where(fnp.abs(sine) < 8 * float(dtypes.finfo(q.dtype).eps), 0, sine)
    apart = -fnp.arctan2(sine, fnp.dot(first, third))
    # The third axis is the first one, turned about the second by `apart`, not
    # positive, so that the second angle begins at `apart`.
    sign = fnp.where(apart > 0, -1, 1).astype(q.dtype)
    apart, second, cross = apart * sign, second * sign, cross * sign
    back = [-second * fnp.sin(apart / 2), fnp.cos(apart / 2)[None]]
    moved = product(fnp.concatenate(back), q)
    v = moved[..., :3]
    a, b, c, d = moved[..., 3], v @ first, v @ second, v @ cross
    tiny = 1e-14 if dtypes.bits(q.aval.dtype) == 64 else 1e-12
    one, two = a * a + b * b, c * c + d * d
    low, high = two <= tiny * one, one <= tiny * two

    def root(s: Any, at_0: Any) -> Any:
        return choose_between(at_0, 0 * s, fnp.sqrt(_safe(~at_0, s, 1)))

    middle = 2 * fnp.arctan2(root(two, low), root(one, high))
    total = fnp.arctan2(_safe(~high, b, 0), _safe(~high, a, 1))
    turn = fnp.arctan2(_safe(~low, d, 0), _safe(~low, c, 1))
    out = [total - turn, (middle + apart) * sign, total + turn]
    if not extrinsic:
        out = out[::-1]
    lone = choose_between(low, 2 * total, (-2 if extrinsic else 2) * turn)
    out[0] = choose_between(low | high, lone, out[0])
    out[2] = choose_between(low | high, 0 * lone, out[2])
    angles = fnp.stack(out, -1)
    turned = fnp.where(angles < -math.pi, angles + 2 * math.pi, angles)
    return fnp.where(turned > math.pi, turned - 2 * math.pi, turned)
