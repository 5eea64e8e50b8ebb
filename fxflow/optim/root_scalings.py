"""Optimizers that divide by the root of squares: AdaGrad, RMSProp, AdaDelta.

All go down the gradient; `learning_rate` is a number or a schedule (a function of the
number of updates so far).
"""

from __future__ import annotations

from fxflow.core.docs import shared
from fxflow.optim.averages import trace
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Scalar,
    ScalarOrSchedule,
    chain,
    identity,
)
from fxflow.optim.scaling import (
    add_decayed_weights,
    scale_by_learning_rate,
)
from fxflow.optim.squares import (
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
)

_root_docs = shared("""
    Args:
      learning_rate: η.
      eps: ε.

    Returns:
      A transformation.
""")


@_root_docs
def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Scalar = 0.1,
    eps: Scalar = 1e-7,
) -> GradientTransformation:
    r"""Makes AdaGrad, for sparse gradients.

    .. math:: s \leftarrow s + g^2, \quad p \leftarrow p - \eta g / \sqrt{s + \epsilon}

    Args:
      initial_accumulator_value: s at the beginning.

    Example:
      >>> tx = optim.adagrad(1.0, 7.0, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.75]

    Reference: Duchi, Hazan, Singer 2011.
    """
    return chain(
        scale_by_rss(initial_accumulator_value, eps),
        scale_by_learning_rate(learning_rate),
    )


@_root_docs
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
      initial_scale: v at the beginning.
      eps_in_sqrt: whether ε is added under the root (as above) or to the root.
      centered: whether the mean gradient's square is subtracted from v.
      momentum: decay of a sum of the steps; None means none.
      nesterov: whether momentum looks ahead.
      bias_correction: whether v is divided by the weights it holds.

    Example:
      >>> tx = optim.rmsprop(1.0, 0.75, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-2.0]

    Reference: Tieleman and Hinton 2012; Graves 2013 (centred).
    """
    by = scale_by_stddev if centered else scale_by_rms
    return chain(
        by(decay, eps, initial_scale, eps_in_sqrt, bias_correction),
        scale_by_learning_rate(learning_rate),
        identity() if momentum is None else trace(momentum, nesterov),
    )


@_root_docs
def adadelta(
    learning_rate: ScalarOrSchedule = 1.0,
    rho: Scalar = 0.9,
    eps: Scalar = 1e-6,
    weight_decay: ScalarOrSchedule = 0.0,
    weight_decay_mask: Mask = None,
) -> GradientTransformation:
    """Makes AdaDelta, which finds its step size itself.

    Args:
      learning_rate: factor of the steps.
      rho: decay of the moments.
      eps: added under the roots.
      weight_decay: λ, added to the gradients.
      weight_decay_mask: which parameters decay; see `masked`.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> tx = optim.adadelta()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Zeiler 2012.
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_adadelta(rho, eps),
        scale_by_learning_rate(learning_rate),
    )
