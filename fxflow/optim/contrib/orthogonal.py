"""Muon: orthogonalized momentum, for the matrices of hidden layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.adams import adamw
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    safe_increment,
    stateless,
    wide_chain,
    zero_count,
)
from fxflow.optim.masking import multi_transform
from fxflow.optim.numerics import positive_root, quotient
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import bias_correction, update_moment, zeros_like

#: Jordan et al.: the quintic with the steepest slope at 0 that stays near 1.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)

#: Sets of coefficients by name; Dion's (Ahn et al. 2025) differ from step to step.
PRESETS: dict[str, Any] = {
    "standard": COEFFICIENTS,
    "dion": (
        (4.0848, -6.8946, 2.9270),
        (3.9505, -6.3029, 2.6377),
        (3.7418, -5.5913, 2.3037),
        (2.8769, -3.1427, 1.2046),
        (2.8366, -3.0525, 1.2012),
    ),
}
PRECONDITIONINGS = ("frobenius", "spectral", "aol", "schatten")


class MuonDimensionNumbers(NamedTuple):
    """The axes of a weight that are the rows and the columns of its matrices.

    Other axes are batch axes.

    Attributes:
      reduction_axis: the axis or axes of the inputs.
      output_axis: the axis or axes of the outputs.
    """

    reduction_axis: int | Sequence[int] = 0
    output_axis: int | Sequence[int] = 1


class MuonState(NamedTuple):
    """State of `scale_by_muon`: the count, momentum, and the coefficients."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates
    ns_coeffs: Array


def _axes(axis: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    return tuple(a % ndim for a in given)


def sides(
    name: str, x: Any, numbers: MuonDimensionNumbers
) -> tuple[tuple[int, ...], int, int]:
    """Returns the order of axes of stacked matrices, and their sizes.

    Args:
      name: name of the transformation, for messages.
      x: array.
      numbers: its axes of rows and columns.

    Returns:
      The axes (others, rows, columns), the number of rows and the number of columns.

    Raises:
      ArgumentError: an axis occurs twice.
    """
    aval = typeof(x)
    rows = _axes(numbers.reduction_axis, aval.ndim)
    columns = _axes(numbers.output_axis, aval.ndim)
    if len({*rows, *columns}) != len(rows) + len(columns):
        raise ArgumentError(f"{name}: an axis of {aval} occurs twice in {numbers}")
    others = tuple(i for i in range(aval.ndim) if i not in (*rows, *columns))
    inputs, outputs = (math.prod(aval.shape[i] for i in at) for at in (rows, columns))
    return (*others, *rows, *columns), inputs, outputs


def _transposed(x: Any) -> Any:
    return fnp.swapaxes(x, -1, -2)


def _frobenius(x: Any) -> Any:
    return positive_root(fnp.sum(fnp.square(x), (-2, -1), keepdims=True))


def _orthogonal(x: Any, coefficients: Any, steps: int, eps: Any, norm: str) -> Any:
    """Returns matrices with singular values near 1, by Newton-Schulz iteration."""
    tall = typeof(x).shape[-2] > typeof(x).shape[-1]
    x = _transposed(x) if tall else x
    if norm == "schatten":  # the 4-norm of the singular values
        length = positive_root(_frobenius(fnp.matmul(x, _transposed(x))))
    elif norm == "spectral":
        length = fnp.linalg.norm(x, 2, axis=(-2, -1), keepdims=True)
    elif norm == "aol":  # a norm for each row
        products = fnp.abs(fnp.matmul(x, _transposed(x)))
        length = positive_root(fnp.sum(products, -1, keepdims=True))
    else:
        length = _frobenius(x)
    x = quotient(x, fnp.add(length, eps))
    for i in range(steps):
        a, b, c = coefficients[i] if coefficients.ndim == 2 else coefficients
        square = fnp.matmul(x, _transposed(x))
        poly = fnp.add(
            fnp.multiply(b, square), fnp.multiply(c, fnp.matmul(square, square))
        )
        x = fnp.add(fnp.multiply(a, x), fnp.matmul(poly, x))
    return _transposed(x) if tall else x


def scale_by_muon(
    ns_coeffs: Any = COEFFICIENTS,
    ns_steps: int = 5,
    beta: Scalar = 0.95,
    eps: Scalar = 1e-8,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: str = "frobenius",
    weight_dimension_numbers: Any = None,
) -> GradientTransformation:
    r"""Makes the transformation of Muon: the orthogonal matrix nearest to the momentum.

    With :math:`A = X X^T` each of the steps is
    :math:`X \leftarrow a X + (b A + c A^2) X`.

    Args:
      ns_coeffs: a, b, c, for all steps or for each; or the name of a set, `"standard"`
        or `"dion"` (of 5 steps).
      ns_steps: number of steps.
      beta: decay of the momentum.
      eps: added to the norm by which the momentum is divided first.
      mu_dtype: dtype of the momentum; None means that of the parameters, but at least
        float32.
      nesterov: whether to use Nesterov momentum.
      adaptive: whether to scale updates by the inner product of the momentum and the
        orthogonal matrix.
      preconditioning: the norm: `"frobenius"`, `"schatten"` (the 4-norm), `"spectral"`
        (the largest singular value), or `"aol"`: a norm for each row (each column of a
        tall matrix), which also keeps singular values below 1.
      weight_dimension_numbers: a pytree (or a prefix of one) of `MuonDimensionNumbers`,
        or a function from parameters to such a pytree; None means two axes, inputs and
        outputs.

    Returns:
      A transformation of matrices.

    Raises:
      ArgumentError: the norm or the name of the coefficients is unknown, or the
        coefficients have another shape.

    Example:
      >>> tx = optim.contrib.scale_by_muon()
      >>> u, _ = tx.update(fnp.eye(3), tx.init(fnp.zeros((3, 3))))
      >>> 0.6 < float(u[0, 0]) < 1.3
      True

    Reference: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
    networks"; Bernstein and Newhouse 2024 (adaptive); Prach and Lampert 2022,
    "Almost-orthogonal layers for efficient general-purpose Lipschitz networks" (aol).
    """
    if preconditioning not in PRECONDITIONINGS:
        raise ArgumentError(
            "scale_by_muon: preconditioning must be one of "
            f"{', '.join(PRECONDITIONINGS)}, got {preconditioning!r}"
        )
    if isinstance(ns_coeffs, str) and ns_coeffs not in PRESETS:
        raise ArgumentError(
            "scale_by_muon: the name in ns_coeffs must be one of "
            f"{', '.join(PRESETS)}, got {ns_coeffs!r}"
        )
    values = PRESETS[ns_coeffs] if isinstance(ns_coeffs, str) else ns_coeffs
    coefficients = fnp.asarray(values, "float32")
    if coefficients.shape not in ((3,), (ns_steps, 3)):
        raise ArgumentError(
            "scale_by_muon: ns_coeffs must be 3 numbers, or 3 for each of "
            f"ns_steps={ns_steps}, got {typeof(coefficients)}"
        )

    def init(params: Params) -> MuonState:
        return MuonState(zero_count(), zeros_like(params, mu_dtype), coefficients)

    def update(
        updates: Updates, state: MuonState, params: Params | None = None
    ) -> tuple[Updates, MuonState]:
        count = safe_increment(state.count)
        mu = update_moment(updates, state.mu, beta, 1)
        if nesterov:
            later = bias_correction(mu, beta, safe_increment(count))
            now = bias_correction(updates, beta, count)
            mean = update_moment(now, later, beta, 1)
        else:
            mean = bias_correction(mu, beta, count)

        def one(numbers: MuonDimensionNumbers, m: Any) -> Any:
            order, inputs, outputs = sides("muon", m, numbers)
            moved = fnp.transpose(m, order)
            matrices = fnp.reshape(moved, (-1, inputs, outputs))
            x = _orthogonal(matrices, state.ns_coeffs, ns_steps, eps, preconditioning)
            if adaptive:
                x = fnp.multiply(
                    x, fnp.sum(fnp.multiply(x, matrices), (1, 2), keepdims=True)
                )
            back = tuple(sorted(range(len(order)), key=order.__getitem__))
            return fnp.transpose(fnp.reshape(x, typeof(moved).shape), back)

        out = _by_matrix(one, weight_dimension_numbers, mean)
        return out, MuonState(count, mu, state.ns_coeffs)

    return in_float32(GradientTransformation(init, update))


def _is_numbers(x: Any) -> bool:
    return x is None or isinstance(x, MuonDimensionNumbers)


def _by_matrix(f: Any, numbers: Any, values: Updates) -> Updates:
    """Applies `f` to the dimension numbers and the value of each array."""
    given = numbers(values) if callable(numbers) else numbers
    if given is None:
        return tree.map(lambda x: f(MuonDimensionNumbers(), x), values)
    return tree.map(
        lambda own, part: tree.map(lambda x: f(own, x), part),
        given,
        values,
        is_leaf=_is_numbers,
    )


def _scale_by_shape(
    numbers: Any, consistent_rms: Scalar | None
) -> GradientTransformation:
    """Makes a transformation that scales updates by their shape, or to a given RMS."""

    def one(own: MuonDimensionNumbers, x: Any) -> Any:
        _, inputs, outputs = sides("muon", x, own)
        if consistent_rms is None:
            factor: Any = math.sqrt(max(1, outputs / inputs))
        else:
            factor = fnp.multiply(consistent_rms, math.sqrt(max(inputs, outputs)))
        return fnp.multiply(factor, x)

    scaled = stateless(lambda updates, params: _by_matrix(one, numbers, updates))
    return in_float32(scaled)


def muon(
    learning_rate: ScalarOrSchedule,
    ns_coeffs: Any = COEFFICIENTS,
    ns_steps: int = 5,
    beta: Scalar = 0.95,
    eps: Scalar = 1e-8,
    weight_decay: Scalar = 0.0,
    weight_decay_mask: Mask = None,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
    adaptive: bool = False,
    preconditioning: str = "frobenius",
    adam_b1: Scalar = 0.9,
    adam_b2: Scalar = 0.999,
    adam_eps_root: Scalar = 0.0,
    adam_weight_decay: Scalar = 0.0,
    adam_learning_rate: ScalarOrSchedule | None = None,
    muon_weight_dimension_numbers: Any = None,
    consistent_rms: Scalar | None = None,
) -> GradientTransformationExtraArgs:
    """Makes Muon for matrices, and AdamW for all other parameters.

    Args:
      learning_rate: a number or a schedule.
      ns_coeffs: coefficients of the iteration; see `scale_by_muon`.
      ns_steps: number of steps of the iteration.
      beta: decay of the momentum.
      eps: added to norms, and to Adam's square roots.
      weight_decay: λ of matrices.
      weight_decay_mask: which matrices decay; see `masked`.
      mu_dtype: dtype of the momentum; None means that of the parameters, but at least
        float32.
      nesterov: whether to use Nesterov momentum, in Adam too.
      adaptive: whether to scale updates by the momentum; see `scale_by_muon`.
      preconditioning: norm of the iteration; see `scale_by_muon`.
      adam_b1: decay of Adam's first moments.
      adam_b2: decay of Adam's second moments.
      adam_eps_root: added under Adam's square roots.
      adam_weight_decay: λ of other parameters.
      adam_learning_rate: learning rate of other parameters; None means `learning_rate`.
      muon_weight_dimension_numbers: a pytree of `MuonDimensionNumbers`, with None for
        the parameters of Adam, or a function from parameters to such a pytree; None
        means that all arrays of two axes are matrices.
      consistent_rms: the root mean square of all updates, such as Adam's 0.2; None
        scales them by the root of the ratio of outputs to inputs, at least 1.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.muon(0.5)
      >>> params = {"w": fnp.ones((3, 2)), "b": fnp.ones(2)}
      >>> updates, _ = tx.update(params, tx.init(params), params)
      >>> updates["w"].shape
      (3, 2)

    Reference: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural
    networks"; Liu et al. 2025, "Muon is scalable for LLM training" (consistent_rms).
    """

    def numbers_of(params: Params) -> Any:
        given = muon_weight_dimension_numbers
        if given is not None:
            return given(params) if callable(given) else given
        return tree.map(
            lambda p: MuonDimensionNumbers() if typeof(p).ndim == 2 else None, params
        )

    def labels(params: Params) -> Any:
        return tree.map(
            lambda own: "adam" if own is None else "muon",
            numbers_of(params),
            is_leaf=_is_numbers,
        )

    # In its group each array has its own numbers, because masked ones are not leaves.
    matrices = None if muon_weight_dimension_numbers is None else numbers_of
    rate = learning_rate if adam_learning_rate is None else adam_learning_rate
    return multi_transform(
        {
            "muon": wide_chain(
                scale_by_muon(
                    ns_coeffs,
                    ns_steps,
                    beta,
                    eps,
                    mu_dtype,
                    nesterov=nesterov,
                    adaptive=adaptive,
                    preconditioning=preconditioning,
                    weight_dimension_numbers=matrices,
                ),
                _scale_by_shape(matrices, consistent_rms),
                add_decayed_weights(weight_decay, weight_decay_mask),
                scale_by_learning_rate(learning_rate),
            ),
            "adam": adamw(
                rate,
                adam_b1,
                adam_b2,
                eps,
                adam_eps_root,
                mu_dtype,
                adam_weight_decay,
                nesterov=nesterov,
            ),
        },
        labels,
    )
