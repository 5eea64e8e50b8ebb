"""Optimizers: chains of transformations under the names they are known by.

All go down the gradient; `learning_rate` is a number or a schedule (a function of the
number of updates so far).
"""

from __future__ import annotations

from typing import Any

from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Scalar,
    ScalarOrSchedule,
    chain,
    identity,
)
from fxflow.optim.masking import masked
from fxflow.optim.moments import (
    scale_by_adadelta,
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_lion,
    scale_by_radam,
    scale_by_rms,
    scale_by_rss,
    scale_by_stddev,
    scale_by_yogi,
    trace,
)
from fxflow.optim.scaling import (
    add_decayed_weights,
    add_noise,
    scale_by_learning_rate,
    scale_by_sign,
    scale_by_trust_ratio,
)


def sgd(
    learning_rate: ScalarOrSchedule,
    momentum: Scalar | None = None,
    nesterov: bool = False,
    accumulator_dtype: Any = None,
) -> GradientTransformation:
    r"""Makes stochastic gradient descent: :math:`p \leftarrow p - \eta g`.

    Args:
      learning_rate: η.
      momentum: decay of the sum of gradients that stands for g; None means none.
      nesterov: whether momentum looks ahead.
      accumulator_dtype: of the sum; None means that of the parameters.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.sgd(0.5)
      >>> tx.update(fnp.array([2.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-1.0]

    Reference: Robbins and Monro 1951; Sutskever, Martens, Dahl, Hinton 2013.
    """
    first = (
        identity() if momentum is None else trace(momentum, nesterov, accumulator_dtype)
    )
    return chain(first, scale_by_learning_rate(learning_rate))


def momentum(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    accumulator_dtype: Any = None,
) -> GradientTransformation:
    r"""Makes gradient descent with momentum.

    .. math:: m \leftarrow g + \beta m, \quad p \leftarrow p - \eta m

    Args:
      learning_rate: η.
      decay: β.
      accumulator_dtype: of m; None means that of the parameters.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.momentum(1.0, 0.5)
      >>> _, state = tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))
      >>> tx.update(fnp.ones(1), state)[0].tolist()
      [-1.5]

    Reference: Polyak 1964.
    """
    return sgd(learning_rate, decay, False, accumulator_dtype)


def nesterov(
    learning_rate: ScalarOrSchedule,
    decay: Scalar = 0.9,
    accumulator_dtype: Any = None,
) -> GradientTransformation:
    r"""Makes gradient descent with Nesterov's momentum.

    .. math:: m \leftarrow g + \beta m, \quad p \leftarrow p - \eta (g + \beta m)

    Args:
      learning_rate: η.
      decay: β.
      accumulator_dtype: of m; None means that of the parameters.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.nesterov(1.0, 0.5)
      >>> tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))[0].tolist()
      [-1.5]

    Reference: Nesterov 1983; Sutskever, Martens, Dahl, Hinton 2013.
    """
    return sgd(learning_rate, decay, True, accumulator_dtype)


def adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Scalar = 0.1,
    eps: Scalar = 1e-7,
) -> GradientTransformation:
    r"""Makes AdaGrad, for sparse gradients.

    .. math:: s \leftarrow s + g^2, \quad p \leftarrow p - \eta g / \sqrt{s + \epsilon}

    Args:
      learning_rate: η.
      initial_accumulator_value: s at the beginning.
      eps: ε.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adagrad(1.0, 7.0, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.75]

    Reference: Duchi, Hazan, Singer 2011.
    """
    return chain(
        scale_by_rss(initial_accumulator_value, eps),
        scale_by_learning_rate(learning_rate),
    )


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
      learning_rate: η.
      decay: β.
      eps: ε.
      initial_scale: v at the beginning.
      eps_in_sqrt: whether ε is added under the root (as above) or to the root.
      centered: whether the mean gradient's square is subtracted from v.
      momentum: decay of a sum of the steps; None means none.
      nesterov: whether momentum looks ahead.
      bias_correction: whether v is divided by the weights it holds.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
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


def adam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes Adam.

    .. math::
       m \leftarrow (1-\beta_1) g + \beta_1 m, \quad v \leftarrow (1-\beta_2) g^2 +
       \beta_2 v, \quad p \leftarrow p - \eta \frac{m / (1-\beta_1^t)}
       {\sqrt{v / (1-\beta_2^t) + \bar\epsilon} + \epsilon}

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄; above 0 if gradients flow through the update.
      mu_dtype: of m; None means that of the parameters.
      nesterov: whether to look ahead (NAdam).

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adam(0.5, eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))
      >>> round(float(u[0]), 5)
      -0.5

    Reference: Kingma and Ba 2015.
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def adamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes Adam with decoupled weight decay: Adam's u becomes :math:`u + \lambda p`.

    Args:
      learning_rate: η, which also multiplies the decay.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      mu_dtype: of the first moments; None means that of the parameters.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.
      nesterov: whether to look ahead.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adamw(0.5, eps=0.0, weight_decay=0.25)
      >>> params = fnp.array([4.0])
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(params), params)
      >>> round(float(u[0]), 5)
      -1.0

    Reference: Loshchilov and Hutter 2019, "Decoupled weight decay regularization".
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def nadam(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Makes Adam with Nesterov's momentum.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      mu_dtype: of the first moments; None means that of the parameters.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.nadam(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Dozat 2016.
    """
    return adam(learning_rate, b1, b2, eps, eps_root, mu_dtype, nesterov=True)


def nadamw(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-4,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes Adam with Nesterov's momentum and decoupled weight decay.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      mu_dtype: of the first moments; None means that of the parameters.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
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
        nesterov=True,
    )


def adamax(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
) -> GradientTransformation:
    r"""Makes AdaMax: Adam with the maximum norm.

    Args:
      learning_rate: η.
      b1: decay of the first moments.
      b2: decay of the maximum.
      eps: added to gradients' sizes.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adamax(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Kingma and Ba 2015, section 7.
    """
    return chain(scale_by_adamax(b1, b2, eps), scale_by_learning_rate(learning_rate))


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
      learning_rate: η.
      b1: decay of the first moments.
      b2: decay of the maximum.
      eps: added to gradients' sizes.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adamaxw(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Kingma and Ba 2015; Loshchilov and Hutter 2019.
    """
    return chain(
        scale_by_adamax(b1, b2, eps),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def amsgrad(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: Any = None,
) -> GradientTransformation:
    """Makes AMSGrad: Adam whose steps never grow back.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      mu_dtype: of the first moments; None means that of the parameters.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.amsgrad(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Reddi, Kale, Kumar 2018, "On the convergence of Adam and beyond".
    """
    return chain(
        scale_by_amsgrad(b1, b2, eps, eps_root, mu_dtype),
        scale_by_learning_rate(learning_rate),
    )


def adabelief(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Makes AdaBelief: Adam whose steps are large where gradients are as expected.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      nesterov: whether to look ahead.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.adabelief(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zhuang et al. 2020, "AdaBelief optimizer".
    """
    return chain(
        scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


def yogi(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-3,
) -> GradientTransformation:
    """Makes Yogi: Adam whose second moments change by bounded steps.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.yogi(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zaheer et al. 2018, "Adaptive methods for nonconvex optimization".
    """
    return chain(scale_by_yogi(b1, b2, eps), scale_by_learning_rate(learning_rate))


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
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      threshold: from which on second moments are trusted.
      nesterov: whether to look ahead.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.radam(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Liu et al. 2020, "On the variance of the adaptive learning rate".
    """
    return chain(
        scale_by_radam(b1, b2, eps, eps_root, threshold, nesterov=nesterov),
        scale_by_learning_rate(learning_rate),
    )


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
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
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


def lion(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.99,
    mu_dtype: Any = None,
    weight_decay: ScalarOrSchedule = 1e-3,
    mask: Mask = None,
) -> GradientTransformation:
    r"""Makes Lion: steps of one size in the direction of an interpolated momentum.

    .. math:: p \leftarrow p - \eta (\operatorname{sign}((1-\beta_1) g + \beta_1 m) +
       \lambda p), \quad m \leftarrow (1-\beta_2) g + \beta_2 m

    Args:
      learning_rate: η: a third to a tenth of Adam's.
      b1: β₁.
      b2: β₂.
      mu_dtype: of m; None means that of the parameters.
      weight_decay: λ: three to ten times that of AdamW.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.lion(0.5, weight_decay=0.0)
      >>> params = fnp.zeros(2)
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(params), params)[0].tolist()
      [-0.5, 0.5]

    Reference: Chen et al. 2023, "Symbolic discovery of optimization algorithms".
    """
    return chain(
        scale_by_lion(b1, b2, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def lamb(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-6,
    eps_root: Scalar = 0.0,
    weight_decay: ScalarOrSchedule = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes LAMB, for large batches: Adam with steps as long as the parameters say.

    Args:
      learning_rate: η.
      b1: β₁.
      b2: β₂.
      eps: ε.
      eps_root: ε̄.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.lamb(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: You et al. 2020, "Large batch optimization for deep learning".
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_trust_ratio(),
        scale_by_learning_rate(learning_rate),
    )


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
    """Makes LARS, for large batches: momentum with steps as long as the parameters say.

    Args:
      learning_rate: η.
      weight_decay: λ.
      weight_decay_mask: which parameters decay; see `masked`.
      trust_coefficient: ratio of the norms of step and parameters.
      eps: added to the norm of the gradient.
      trust_ratio_mask: which parameters the ratio is taken for.
      momentum: decay of the sum of steps.
      nesterov: whether momentum looks ahead.

    Returns:
      A transformation, which needs the parameters.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.lars(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: You, Gitman, Ginsburg 2017, "Large batch training of convolutional
    networks".
    """
    return chain(
        add_decayed_weights(weight_decay, weight_decay_mask),
        masked(
            scale_by_trust_ratio(trust_coefficient=trust_coefficient, eps=eps),
            trust_ratio_mask,
        ),
        scale_by_learning_rate(learning_rate),
        trace(momentum, nesterov),
    )


def sign_sgd(learning_rate: ScalarOrSchedule) -> GradientTransformation:
    r"""Makes descent by signs: :math:`p \leftarrow p - \eta \operatorname{sign} g`.

    Args:
      learning_rate: η.

    Returns:
      A transformation.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.sign_sgd(0.5)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [-0.5]

    Reference: Bernstein et al. 2018, "signSGD".
    """
    return chain(scale_by_sign(), scale_by_learning_rate(learning_rate))


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
      eta: the first variance.
      gamma: how fast it decreases.
      key: a random key.
      seed: makes a key, if there is none.

    Returns:
      A transformation.

    Raises:
      ArgumentError: there is neither a key nor a seed, or both.

    Example:
      >>> from fxflow import numpy as fnp
      >>> from fxflow import optim
      >>> tx = optim.noisy_sgd(0.5, seed=0)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Neelakantan et al. 2015, "Adding gradient noise improves learning".
    """
    return chain(
        add_noise(eta, gamma, key, seed=seed), scale_by_learning_rate(learning_rate)
    )
