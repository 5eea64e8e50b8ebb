"""Adam and its variants.

All descend along the gradient; `learning_rate` is a number or a schedule (a function of
the number of updates so far).
"""

from __future__ import annotations

from fxflow.core.docs import Completes, shared
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Scalar,
    ScalarOrSchedule,
    wide_chain,
)
from fxflow.optim.moments import (
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_radam,
    scale_by_yogi,
)
from fxflow.optim.scaling import (
    add_decayed_weights,
    scale_by_learning_rate,
    scale_by_trust_ratio,
)

# For all optimizers with Adam's moments, including those of other modules.
adam_docs: Completes = shared("""
    Args:
      learning_rate: η, a number or a schedule.
      b1: β₁, decay of the first moments m.
      b2: β₂, decay of the second moments v.
      eps: ε, added to the square root.
      eps_root: ε̄, added under the square root.
      mu_dtype: dtype of the first moments; None means that of the parameters, but at
        least float32.
      nesterov: whether to use Nesterov momentum.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation.
""")


@adam_docs
def adam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes Adam.

    .. math::
       m \leftarrow (1-\beta_1) g + \beta_1 m, \quad v \leftarrow (1-\beta_2) g^2 +
       \beta_2 v, \quad p \leftarrow p - \eta \frac{m / (1-\beta_1^t)}
       {\sqrt{v / (1-\beta_2^t) + \bar\epsilon} + \epsilon}

    Args:
      eps_root: ε̄; must be positive to differentiate through the update.
      mu_dtype: dtype of m; None means that of the parameters, but at least float32.
      nesterov: whether to use Nesterov momentum (NAdam).

    Example:
      >>> tx = optim.adam(0.5, eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))
      >>> round(float(u[0]), 5)
      -0.5

    Reference: Kingma and Ba 2015.
    """
    return wide_chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes Adam with decoupled weight decay: Adam's u becomes :math:`u + \lambda p`.

    Args:
      learning_rate: η, which also scales the decay.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.adamw(0.5, eps=0.0, weight_decay=0.25)
      >>> params = fnp.array([4.0])
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(params), params)
      >>> round(float(u[0]), 5)
      -1.0

    Reference: Loshchilov and Hutter 2019, "Decoupled weight decay regularization".
    """
    return wide_chain(
        # Decoupled: Adam's division, which comes first, does not affect the decay.
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = True,
) -> GradientTransformation:
    """Makes Adam with Nesterov's momentum.

    Example:
      >>> tx = optim.nadam(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Dozat 2016.
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov)


@adam_docs
def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = True,
) -> GradientTransformation:
    """Makes Adam with Nesterov's momentum and decoupled weight decay.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.nadamw(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Dozat 2016; Loshchilov and Hutter 2019.
    """
    return adamw(
        learning_rate,
        b1,
        b2,
        eps,
        eps_root,
        mu_dtype,
        weight_decay,
        mask,
        nesterov=nesterov,
    )


@adam_docs
def adamax(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
) -> GradientTransformation:
    r"""Makes AdaMax: Adam with the maximum norm.

    Args:
      b1: decay of the first moments.
      b2: decay of the maximum.
      eps: added to gradients' sizes.

    Example:
      >>> tx = optim.adamax(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Kingma and Ba 2015, section 7.
    """
    return wide_chain(
        scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate)
    )


@adam_docs
def adamaxw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes AdaMax with decoupled weight decay.

    Args:
      b1: decay of the first moments.
      b2: decay of the maximum.
      eps: added to gradients' sizes.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.adamaxw(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Kingma and Ba 2015; Loshchilov and Hutter 2019.
    """
    return wide_chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformation:
    """Makes AMSGrad: Adam with the largest second moments so far.

    Args:
      bias_correction_mu: whether to correct the bias of the first moments.
      bias_correction_nu: whether to correct the bias of the second moments.

    Example:
      >>> tx = optim.amsgrad(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Reddi, Kale, Kumar 2018, "On the convergence of Adam and beyond".
    """
    return wide_chain(
        scale_by_amsgrad(
            b1, b2, eps, eps_root, mu_dtype, bias_correction_mu, bias_correction_nu
        ),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Makes AdaBelief: Adam with the variance of gradients as the second moments.

    Example:
      >>> tx = optim.adabelief(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zhuang et al. 2020, "AdaBelief optimizer".
    """
    return wide_chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def yogi(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-3,
) -> GradientTransformation:
    """Makes Yogi: Adam with bounded changes of the second moments.

    Example:
      >>> tx = optim.yogi(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zaheer et al. 2018, "Adaptive methods for nonconvex optimization".
    """
    return wide_chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


@adam_docs
def radam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Makes rectified Adam, which needs no warm-up.

    Args:
      threshold: length of the averages from which second moments are used.

    Example:
      >>> tx = optim.radam(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Liu et al. 2020, "On the variance of the adaptive learning rate".
    """
    return wide_chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-6,
    eps_root: Scalar = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes LAMB, for large batches: Adam with steps scaled by each layer's norms.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.lamb(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: You et al. 2020, "Large batch optimization for deep learning".
    """
    return wide_chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )
