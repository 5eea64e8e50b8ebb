"""Activation functions.

Their derivatives at kinks are those of the side where the function is flat: 0 for
`relu` at 0. This comes from how they are written, as a choice between expressions, not
from rules of their own, so they cost nothing extra to trace.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike


def _inexact(name: str, x: Any) -> Any:
    """Returns `x` as an array of floats (or complex numbers)."""
    if not is_arraylike(x):
        raise not_an_array(x, f"{name}: x is")
    aval = typeof(x)
    if dtypes.is_key(aval.dtype):
        raise DtypeError(f"{name}: takes numbers, got {aval}")
    if dtypes.is_inexact(aval.dtype):
        return x
    return lax.convert_element_type(x, dtypes.to_inexact(aval.dtype))


@library()
def identity(x: ArrayLike) -> Array:
    """Returns `x`.

    Args:
      x: array of any dtype.

    Returns:
      The same values as an array.

    Raises:
      ArgumentError: `x` is not an array.

    Example:
      >>> float(nn.identity(2.0))
      2.0
    """
    if not is_arraylike(x):
        raise not_an_array(x, "identity: x is")
    return fnp.asarray(x)


_activation_docs = shared("""
    Args:
      x: real array.
      alpha: number or array that broadcasts against `x`.

    Returns:
      Array of the shape of `x`, of its float dtype.
""")


@library()
@_activation_docs
def relu(x: ArrayLike) -> Array:
    r"""Rectified linear unit: :math:`\max(x, 0)`.

    Returns:
      Array of the shape and dtype of `x`.

    Special cases:
      The derivative at 0 is 0. nan → nan.

    Example:
      >>> from fxflow import grad, nn
      >>> float(nn.relu(-1.0)), float(grad(nn.relu)(0.0))
      (0.0, 0.0)

    Source: Nair and Hinton 2010; derivative at 0: Bertoin et al. 2021.
    """
    return fnp.where(fnp.less_equal(x, 0), 0, x)


@library()
@_activation_docs
def relu6(x: ArrayLike) -> Array:
    r"""Rectified linear unit up to 6: :math:`\min(\max(x, 0), 6)`.

    Returns:
      Array of the shape of `x`.

    Special cases:
      The derivative at 0 and at 6 is 0. nan → nan.

    Example:
      >>> float(nn.relu6(8.0))
      6.0

    Source: Krizhevsky 2010.
    """
    below_six = fnp.where(fnp.greater_equal(x, 6.0), 6.0, x)
    return fnp.where(fnp.less_equal(x, 0.0), 0.0, below_six)


@library()
@_activation_docs
def sigmoid(x: ArrayLike) -> Array:
    r"""Logistic function: :math:`1 / (1 + e^{-x})`.

    Args:
      x: float or complex array; integers are converted.

    Example:
      >>> float(nn.sigmoid(0.0))
      0.5
    """
    return lax.logistic(_inexact("sigmoid", x))


@library()
@_activation_docs
def log_sigmoid(x: ArrayLike) -> Array:
    r"""Logarithm of the logistic function: :math:`-\log(1 + e^{-x})`.

    Example:
      >>> float(nn.log_sigmoid(-200.0))
      -200.0
    """
    return fnp.negative(softplus(fnp.negative(x)))


@library()
@_activation_docs
def softplus(x: ArrayLike) -> Array:
    r"""Smooth rectifier: :math:`\log(1 + e^x)`.

    Example:
      >>> float(nn.softplus(200.0))
      200.0

    Source: Dugas et al. 2001.
    """
    x = _inexact("softplus", x)
    below = fnp.less_equal(x, 0)
    # max(x, 0) + log(1 + exp(-|x|)), written so that slopes add up to ½ at 0.
    tail = fnp.log1p(fnp.exp(fnp.where(below, x, fnp.negative(x))))
    return fnp.add(fnp.where(below, 0, x), tail)


@library()
@_activation_docs
def sparse_plus(x: ArrayLike) -> Array:
    r"""Rectifier with a quadratic corner.

    .. math:: 0 \text{ if } x \le -1,\quad (x+1)^2/4 \text{ if } |x| < 1,\quad x
       \text{ if } x \ge 1

    Example:
      >>> float(nn.sparse_plus(0.0))
      0.25

    Source: Martins and Astudillo 2016.
    """
    corner = fnp.divide(fnp.square(fnp.add(x, 1.0)), 4.0)
    right = fnp.where(fnp.greater_equal(x, 1.0), x, corner)
    return fnp.where(fnp.less_equal(x, -1.0), 0.0, right)


@library()
@_activation_docs
def sparse_sigmoid(x: ArrayLike) -> Array:
    r"""Piecewise linear sigmoid, the derivative of `sparse_plus`.

    .. math:: \min(\max((x + 1) / 2, 0), 1)

    Example:
      >>> float(nn.sparse_sigmoid(0.5))
      0.75

    Source: Martins and Astudillo 2016.
    """
    return fnp.multiply(0.5, fnp.clip(fnp.add(x, 1.0), 0.0, 2.0))


@library()
@_activation_docs
def soft_sign(x: ArrayLike) -> Array:
    r"""Slow sigmoid: :math:`x / (1 + |x|)`.

    Example:
      >>> float(nn.soft_sign(1.0))
      0.5

    Source: Bergstra et al. 2009.
    """
    x = _inexact("soft_sign", x)
    size = fnp.abs(x)
    large = fnp.greater(size, 1)
    # Beyond 1 by the reciprocal: there the quotient's derivative would cancel.
    inverse = fnp.divide(1, fnp.where(large, x, 1))
    far = fnp.divide(fnp.sign(x), fnp.add(fnp.abs(inverse), 1))
    near = fnp.where(large, 0, x)
    return fnp.where(large, far, fnp.divide(near, fnp.add(fnp.abs(near), 1)))


@library()
@_activation_docs
def silu(x: ArrayLike) -> Array:
    r"""Sigmoid-weighted linear unit ("swish"): :math:`x / (1 + e^{-x})`.

    Example:
      >>> float(nn.silu(0.0))
      0.0

    Source: Elfwing, Uchibe, Doya 2018.
    """
    x = _inexact("silu", x)
    return fnp.multiply(x, lax.logistic(x))


@library()
@_activation_docs
def mish(x: ArrayLike) -> Array:
    r"""Mish: :math:`x \tanh(\log(1 + e^x))`.

    Example:
      >>> float(nn.mish(0.0))
      0.0

    Source: Misra 2019.
    """
    return fnp.multiply(x, fnp.tanh(softplus(x)))


@library()
@_activation_docs
def leaky_relu(x: ArrayLike, negative_slope: Any = 1e-2) -> Array:
    """Rectifier with a slope on both sides: `x`, or `negative_slope * x` below 0.

    Args:
      negative_slope: number or array that broadcasts against `x`.

    Example:
      >>> float(nn.leaky_relu(-2.0, 0.5))
      -1.0

    Source: Maas, Hannun, Ng 2013.
    """
    return fnp.where(fnp.greater_equal(x, 0), x, fnp.multiply(negative_slope, x))


@library()
@_activation_docs
def hard_tanh(x: ArrayLike) -> Array:
    """Piecewise linear tanh: `x` clipped to [-1, 1].

    Returns:
      Array of the shape and dtype of `x`.

    Special cases:
      The derivative at -1 and at 1 is 1.

    Example:
      >>> float(nn.hard_tanh(3.0))
      1.0

    Source: Collobert 2004.
    """
    if not dtypes.is_inexact(typeof(x).dtype):
        return fnp.clip(x, -1, 1)
    return fnp.where(fnp.greater(x, 1), 1, fnp.where(fnp.less(x, -1), -1, x))


@library()
@_activation_docs
def hard_sigmoid(x: ArrayLike) -> Array:
    """Piecewise linear sigmoid: `relu6(x + 3) / 6`.

    Example:
      >>> float(nn.hard_sigmoid(0.0))
      0.5

    Source: Howard et al. 2019.
    """
    return fnp.divide(relu6(fnp.add(x, 3.0)), 6.0)


@library()
@_activation_docs
def hard_silu(x: ArrayLike) -> Array:
    """Piecewise quadratic `silu`: `x * hard_sigmoid(x)`.

    Example:
      >>> float(nn.hard_silu(3.0))
      3.0

    Source: Howard et al. 2019.
    """
    return fnp.multiply(x, hard_sigmoid(x))


@library()
@_activation_docs
def elu(x: ArrayLike, alpha: Any = 1.0) -> Array:
    r"""Exponential linear unit: x, or :math:`\alpha (e^x - 1)` for x ≤ 0.

    Example:
      >>> float(nn.elu(-200.0, 2.0))
      -2.0

    Source: Clevert, Unterthiner, Hochreiter 2016.
    """
    positive = fnp.greater(x, 0)
    # Where x is positive, exp(x) might overflow and spoil the derivative.
    safe = fnp.where(positive, 0.0, x)
    return fnp.where(positive, x, fnp.multiply(alpha, fnp.expm1(safe)))


@library()
@_activation_docs
def celu(x: ArrayLike, alpha: Any = 1.0) -> Array:
    r"""Continuously differentiable ELU: x, or :math:`\alpha (e^{x/\alpha} - 1)`, x ≤ 0.

    Example:
      >>> float(nn.celu(-200.0, 2.0))
      -2.0

    Source: Barron 2017.
    """
    below = fnp.expm1(fnp.divide(fnp.minimum(x, 0.0), alpha))
    return fnp.add(fnp.maximum(x, 0.0), fnp.multiply(alpha, below))


@library()
@_activation_docs
def selu(x: ArrayLike) -> Array:
    r"""Self-normalising ELU: :math:`\lambda` times `elu(x, α)`.

    Example:
      >>> round(float(nn.selu(1.0)), 4)
      1.0507

    Source: Klambauer, Unterthiner, Mayr, Hochreiter 2017; λ and α are theirs: the fixed
    point of mean 0 and variance 1.
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return fnp.multiply(scale, elu(x, alpha))


@library("approximate")
@_activation_docs
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    r"""Gaussian error linear unit: :math:`x \Phi(x)`.

    Args:
      approximate: whether to compute
        :math:`\tfrac x2 (1 + \tanh(\sqrt{2/\pi}(x + 0.044715 x^3)))`, which is cheaper.

    Example:
      >>> round(float(nn.gelu(1.0, approximate=False)), 4)
      0.8413

    Source: Hendrycks and Gimpel 2016.
    """
    x = _inexact("gelu", x)
    if approximate:
        # x σ(2u) is x (1 + tanh u) / 2 without the sum, which cancels far below 0.
        # Beyond 30 the logistic function is 0 or 1, and the cube might overflow.
        is_complex = dtypes.is_complex(typeof(x).dtype)
        near = x if is_complex else fnp.clip(x, -30.0, 30.0)
        cubic = fnp.multiply(0.044715, fnp.power(near, 3))
        inner = fnp.multiply(2 * math.sqrt(2 / math.pi), fnp.add(near, cubic))
        return fnp.multiply(x, lax.logistic(inner))
    tail = lax.erfc(fnp.multiply(fnp.negative(x), math.sqrt(0.5)))
    return fnp.multiply(fnp.multiply(0.5, x), tail)


@library("axis")
def glu(x: ArrayLike, axis: int = -1) -> Array:
    r"""Gated linear unit: the first half of `x` times the sigmoid of the second.

    Args:
      x: real array.
      axis: the axis to halve; its length must be even.

    Returns:
      Array of the shape of `x` with half the length along `axis`.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: its length is odd.

    Example:
      >>> nn.glu(fnp.ones((2, 6))).shape
      (2, 3)

    Source: Dauphin, Fan, Auli, Grangier 2017.
    """
    x = _inexact("glu", x)
    aval = typeof(x)
    if not -aval.ndim <= axis < aval.ndim:
        raise AxisError(f"glu: there is no axis {axis} in {aval}")
    axis %= aval.ndim
    half, odd = divmod(aval.shape[axis], 2)
    if odd:
        raise ShapeError(f"glu: axis {axis} of {aval} must have an even length")
    value, gate = lax.split(x, (half, half), axis)
    return fnp.multiply(value, lax.logistic(gate))


@library()
@_activation_docs
def squareplus(x: ArrayLike, b: Any = 4) -> Array:
    r"""Algebraic rectifier: :math:`(x + \sqrt{x^2 + b}) / 2`.

    Args:
      b: number or array that broadcasts against `x`: how round the corner is.

    Example:
      >>> float(nn.squareplus(0.0))
      1.0

    Source: Barron 2021.
    """
    x = _inexact("squareplus", x)
    if dtypes.is_complex(typeof(x).dtype):
        root = fnp.sqrt(fnp.add(fnp.square(x), b))
        return fnp.divide(fnp.add(x, root), 2)
    # The rectifier plus b / (2 (|x| + √(x² + b))): nothing cancels, and far from 0 the
    # root is |x| √(1 + b / x²), of numbers that do not overflow.
    size = fnp.abs(x)
    large = fnp.greater(size, 1)
    unit = fnp.where(large, size, 1)
    near = fnp.where(large, 1, size)
    part = fnp.divide(fnp.divide(b, unit), unit)
    root = fnp.multiply(unit, fnp.sqrt(fnp.add(fnp.square(near), part)))
    whole = fnp.add(size, root)
    whole = fnp.where(fnp.equal(whole, 0), 1, whole)
    rest = fnp.divide(fnp.multiply(0.5, b), whole)
    return fnp.add(fnp.where(fnp.less(x, 0), 0, x), rest)


@library()
@_activation_docs
def log1mexp(x: ArrayLike) -> Array:
    r"""Accurate :math:`\log(1 - e^{-x})` for x ≥ 0.

    Returns:
      Array of the shape of `x`, of its float dtype; nan for x < 0.

    Special cases:
      0 → -inf, with derivative inf.

    Example:
      >>> round(float(nn.log1mexp(1e-10)), 3)
      -23.026

    Source: Mächler 2012, "Accurately computing log(1 - exp(-|a|))".
    """
    x = _inexact("log1mexp", x)
    near = fnp.less(x, math.log(2))
    # The other branch's derivative must stay finite: 0 · inf would be nan.
    small = fnp.where(near, x, 1.0)
    large = fnp.where(near, 1.0, x)
    close = fnp.log(fnp.negative(fnp.expm1(fnp.negative(small))))
    far = fnp.log1p(fnp.negative(fnp.exp(fnp.negative(large))))
    return fnp.where(near, close, far)
