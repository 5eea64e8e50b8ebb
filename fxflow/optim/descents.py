"""Gradient descent: plain, with momentum, signs, root mean squares or noise.

All descend along the gradient; `learning_rate` is a number or a schedule (a function of
the number of updates so far).
"""

from __future__ import annotations

from typing import Any

from fxflow.core.docs import shared
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Scalar,
    ScalarOrSchedule,
    identity,
    wide_chain,
)
from fxflow.optim.masking import masked
from fxflow.optim.moments import (
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
)
from fxflow.optim.scaling import (
    add_decayed_weights,
    add_noise,
    scale_by_learning_rate,
    scale_by_sign,
    scale_by_trust_ratio,
)
from fxflow.optim.traces import scale_by_lion, trace

_descent_docs = shared("""
    Args:
      learning_rate: η.
      eps: ε.
      nesterov: whether to use Nesterov momentum.
      accumulator_dtype: dtype of m; None means that of the parameters, but at least
        float32.
      decay: β.

    Returns:
      A transformation.
""")


@_descent_docs
def sgd(
    learning_rate: ScalarOrSchedule | None,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    r"""Makes stochastic gradient descent: :math:`p \leftarrow p - \eta g`.

    Args:
      learning_rate: η; None leaves scaling to a later transformation: updates are the
        gradients or their sums, with their sign.
      momentum: decay of the sum of gradients, which replaces g; None means no momentum.
      accumulator_dtype: dtype of the sum; None means that of the parameters, but at
        least float32.

    Example:
      >>> tx = optim.sgd(0.5)
      >>> tx.update(fnp.array([2.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-1.0]

    Reference: Robbins and Monro 1951; Sutskever, Martens, Dahl, Hinton 2013.
    """
    first = (
        identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    )
    return wide_chain(first, scale_by_learning_rate(learning_rate))


@_descent_docs
def momentum(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    r"""Makes gradient descent with momentum.

    .. math:: m \leftarrow g + \beta m, \quad p \leftarrow p - \eta m

    Example:
      >>> tx = optim.momentum(1.0, 0.5)
      >>> _, state = tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))
      >>> tx.update(fnp.ones(1), state)[0].tolist()
      [-1.5]

    Reference: Polyak 1964.
    """
    return sgd(learning_rate, decay, False, accumulator_dtype)


@_descent_docs
def nesterov(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    accumulator_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    r"""Makes gradient descent with Nesterov's momentum.

    .. math:: m \leftarrow g + \beta m, \quad p \leftarrow p - \eta (g + \beta m)

    Example:
      >>> tx = optim.nesterov(1.0, 0.5)
      >>> tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))[0].tolist()
      [-1.5]

    Reference: Nesterov 1983; Sutskever, Martens, Dahl, Hinton 2013.
    """
    return sgd(learning_rate, decay, True, accumulator_dtype)


@_descent_docs
def lars(
    learning_rate: ScalarOrSchedule,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Mask = True,
    trust_coefficient: Scalar = 0.001,
    eps: Scalar = 0.0,
    trust_ratio_mask: Mask = True,
    momentum: Scalar = 0.9,
    nesterov: bool = False,
) -> GradientTransformation:
    """Makes LARS, for large batches: momentum with steps scaled by each layer's norms.

    Args:
      weight_decay: λ.
      weight_decay_mask: which parameters decay; see `masked`.
      trust_coefficient: ratio of the norms of step and parameters.
      eps: added to the norm of the gradient.
      trust_ratio_mask: the parameters for which the step is scaled by the ratio.
      momentum: decay of the sum of steps.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.lars(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: You, Gitman, Ginsburg 2017, "Large batch training of convolutional
    networks".
    """
    return wide_chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(
            scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps),
            trust_ratio_mask,
        ),
        scale_by_learning_rate(learning_rate),
        trace(momentum, nesterov),
    )


@_descent_docs
def lion(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Mask = None,
) -> GradientTransformation:
    r"""Makes Lion: steps by the sign of an interpolated momentum.

    .. math:: p \leftarrow p - \eta (\operatorname{sign}((1-\beta_1) g + \beta_1 m) +
       \lambda p), \quad m \leftarrow (1-\beta_2) g + \beta_2 m

    Args:
      learning_rate: η: a third to a tenth of Adam's.
      b1: β₁.
      b2: β₂.
      mu_dtype: dtype of m; None means that of the parameters, but at least float32.
      weight_decay: λ: three to ten times AdamW's.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.lion(0.5, weight_decay=0.0)
      >>> params = fnp.zeros(2)
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(params), params)[0].tolist()
      [-0.5, 0.5]

    Reference: Chen et al. 2023, "Symbolic discovery of optimization algorithms".
    """
    return wide_chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@_descent_docs
def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformation:
    r"""Makes descent by signs: :math:`p \leftarrow p - \eta \operatorname{sign} g`.

    Example:
      >>> tx = optim.sign_sgd(0.5)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.5]

    Reference: Bernstein et al. 2018, "signSGD".
    """
    return wide_chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


@_descent_docs
def noisy_sgd(
    learning_rate: ScalarOrSchedule,
    eta: Scalar = 0.01,
    gamma: Scalar = 0.55,
    key: Any = None,
    *,
    seed: int | None = None,
) -> GradientTransformation:
    """Makes gradient descent with normal noise of decreasing variance.

    Args:
      learning_rate: factor of the steps.
      eta: the initial variance.
      gamma: exponent of its decrease.
      key: a random key.
      seed: seed of the key, in place of `key`.

    Raises:
      ArgumentError: neither or both of `key` and `seed` are given.

    Example:
      >>> tx = optim.noisy_sgd(0.5, seed=0)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Neelakantan et al. 2015, "Adding gradient noise improves learning".
    """
    return wide_chain(
        add_noise(eta, gamma, key, seed=seed), scale_by_learning_rate(learning_rate)
    )


@_descent_docs
def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Scalar = 0.1,
    eps: Scalar = 1e-7,
) -> GradientTransformation:
    r"""Makes AdaGrad, for sparse gradients.

    .. math:: s \leftarrow s + g^2, \quad p \leftarrow p - \eta g / \sqrt{s + \epsilon}

    Args:
      initial_accumulator_value: initial s.

    Example:
      >>> tx = optim.adagrad(1.0, 7.0, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.75]

    Reference: Duchi, Hazan, Singer 2011.
    """
    return wide_chain(
        scale_by_rss(initial_accumulator_value, eps),
        scale_by_learning_rate(learning_rate),
    )


@_descent_docs
def rmsprop(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    centered: bool = False,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    bias_correction: bool = False,
) -> GradientTransformation:
    r"""Makes RMSProp.

    .. math:: v \leftarrow (1-\beta) g^2 + \beta v, \quad
       p \leftarrow p - \eta g / \sqrt{v + \epsilon}

    Args:
      decay: β.
      initial_scale: initial v.
      eps_in_sqrt: whether ε is added under the square root (as above) or to it.
      centered: whether to subtract the square of the mean gradient from v.
      momentum: decay of the sum of steps; None means no momentum.
      nesterov: whether to use Nesterov momentum.
      bias_correction: whether to correct the bias of v.

    Example:
      >>> tx = optim.rmsprop(1.0, 0.75, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-2.0]

    Reference: Tieleman and Hinton 2012; Graves 2013 (centered).
    """
    by = scale_by_stddev if centered else scale_by_rms
    return wide_chain(
        by(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        # As in optax, momentum sums steps that are already scaled.
        identity() if momentum is None else trace(momentum, nesterov),
    )


@_descent_docs
def adadelta(
    learning_rate: ScalarOrSchedule | None = None,
    rho: Scalar = 0.9,
    eps: Scalar = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Mask = None,
) -> GradientTransformation:
    """Makes AdaDelta, which adapts its step size.

    Args:
      learning_rate: factor of the steps; None means 1. (With None, optax 0.2.8 ascends
        along the gradient.)
      rho: decay of the moments.
      eps: added under the square roots.
      weight_decay: λ, added to the gradients.
      weight_decay_mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.adadelta()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Zeiler 2012.
    """
    return wide_chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(1.0 if learning_rate is None else learning_rate),
    )
