"""Selection policies: choose or weight models based on their losses.

All policies share the same state, the number and the sum of losses of each model.
Losses change it linearly, with exponential decay, so that changes can be combined
(`Change.then`) and servers can share a state. Losses are from 0 (right) to 1 (wrong).
Models are numbered.

`Exp3`, `EpsilonGreedy` and `Thompson` choose one model for each request and learn from
its loss; `Exp4` weights the answers of all models and learns from all losses. A model
that is not ready is a sleeping expert: it gets the policy's own loss, which makes it
neither better nor worse relative to the others.

Sources: Auer, Cesa-Bianchi, Freund, Schapire, The Nonstochastic Multiarmed Bandit
Problem, 2002; Bubeck, Cesa-Bianchi, Regret Analysis of Stochastic and Nonstochastic
Multi-armed Bandit Problems, 2012; Crankshaw et al., Clipper, 2017, section 5; for
sleeping experts: Freund, Schapire, Singer, Warmuth, Using and Combining Predictors That
Specialize, 1997.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple

import numpy as np

Floats = tuple[float, ...]


class Change(NamedTuple):
    """The effect of losses on a state: multiplies it by `keep`, then adds.

    Attributes:
      keep: decay factor.
      counts, loss: addends by model.
    """

    keep: float
    counts: Floats
    loss: Floats

    def then(self, later: Change) -> Change:
        """Returns the composition of this change and a later one.

        Args:
          later: the later change.

        Returns:
          The change.
        """
        return Change(
            self.keep * later.keep,
            _decayed(self.counts, later.keep, later.counts),
            _decayed(self.loss, later.keep, later.loss),
        )


class LossTotals(NamedTuple):
    """The state of a policy.

    Attributes:
      counts: number of losses by model.
      loss: sum of losses by model; for `Exp3`, of their estimates.

    Example:
      >>> LossTotals.start(2).after(Change(0.5, (1.0, 0.0), (0.25, 0.0)))
      LossTotals(counts=(1.0, 0.0), loss=(0.25, 0.0))
    """

    counts: Floats
    loss: Floats

    @classmethod
    def start(cls, models: int) -> LossTotals:
        """Returns the state before the first loss.

        Args:
          models: number of models.

        Returns:
          The state.
        """
        return cls((0.0,) * models, (0.0,) * models)

    def after(self, change: Change) -> LossTotals:
        """Returns the state after a change.

        Args:
          change: from `SelectionPolicy.learn`.

        Returns:
          The state.
        """
        return LossTotals(
            _decayed(self.counts, change.keep, change.counts),
            _decayed(self.loss, change.keep, change.loss),
        )


class Choice(NamedTuple):
    """The model chosen for a request.

    Attributes:
      model: the model's number; -1: all ready models.
      probability: probability of the choice among the ready models.
      ready: the models that were ready.
    """

    model: int
    probability: float
    ready: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class SelectionPolicy(abc.ABC):
    """Decides which models answer.

    Attributes:
      window: losses after which an old loss has decayed to 1/e; inf: no decay.
    """

    #: The policy's name in configurations.
    name: ClassVar[str]
    #: Whether each request goes to all models, not to one.
    runs_all: ClassVar[bool] = False

    window: float = 1000.0

    def __post_init__(self) -> None:
        if not self.window >= 1:
            raise ValueError(f"window must be at least 1 loss, got {self.window}")

    @property
    def keep(self) -> float:
        """The decay factor of old losses for each new loss."""
        return 1 - 1 / self.window

    @abc.abstractmethod
    def weights(self, state: LossTotals) -> Floats:
        """Returns each model's weight or probability; they sum to 1."""

    @abc.abstractmethod
    def choose(self, state: LossTotals, ready: Collection[int], key: int) -> Choice:
        """Returns the models to call."""

    @abc.abstractmethod
    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns the change of the state for the losses of a request."""


def _check_rate(rate: float | None) -> None:
    if rate is not None and not 0 < rate < math.inf:
        raise ValueError(f"rate must be above 0, got {rate}")


def _check_share(explore: float) -> None:
    if not 0 <= explore <= 1:
        raise ValueError(f"explore must be from 0 to 1, got {explore}")


def _decayed(old: Floats, keep: float, new: Floats) -> Floats:
    return tuple(keep * a + b for a, b in zip(old, new, strict=True))


def _softmax(logits: Floats) -> Floats:
    most = max(logits)
    powers = [math.exp(x - most) for x in logits]
    total = sum(powers)
    return tuple(p / total for p in powers)


def _generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def among(weights: Floats, ready: Collection[int]) -> Floats:
    """Renormalizes the weights among the ready models; the others get 0.

    Args:
      weights: weights of all models, at least 0.
      ready: numbers of the ready models, at least one.

    Returns:
      Weights of all models.

    Example:
      >>> among((0.5, 0.25, 0.25), (1, 2))
      (0.0, 0.5, 0.5)
    """
    total = sum(weights[k] for k in ready)
    if total <= 0.0:  # all ready models have weight 0
        return tuple(float(k in ready) / len(ready) for k in range(len(weights)))
    return tuple(weights[k] / total if k in ready else 0.0 for k in range(len(weights)))


def _draw(weights: Floats, ready: Collection[int], key: int) -> Choice:
    left = among(weights, ready)
    point = float(_generator(key).random())
    order = sorted(ready)
    for model in order:
        point -= left[model]
        if point < 0 and left[model] > 0:
            return Choice(model, left[model], tuple(order))
    model = max(order, key=left.__getitem__)  # rounding made the sum less than 1
    return Choice(model, left[model], tuple(order))


def _change(keep: float, count: Mapping[int, float], loss: Floats) -> Change:
    counts = tuple(float(count.get(k, 0.0)) for k in range(len(loss)))
    return Change(keep, counts, loss)


@dataclass(frozen=True, kw_only=True)
class Exp3(SelectionPolicy):
    """Draws one model by exponential weights of estimated losses.

    A model is drawn with probability p ∝ exp(−η L), where L is the sum of its losses,
    each divided by the probability of the draw. With η = √(ln K / (K t)) after t losses
    the expected regret against the best of K models is at most 2 √(T K ln K), for any
    losses.

    Attributes:
      rate: η; None: as above.
      explore: share of requests for which all models are equally likely.
      window: as for `SelectionPolicy`.

    Example:
      >>> policy, state = Exp3(), LossTotals.start(2)
      >>> choice = policy.choose(state, (0, 1), key=1)
      >>> for _ in range(5):
      ...     state = state.after(policy.learn(state, choice, {choice.model: 1.0}, 0))
      >>> policy.weights(state)[choice.model] < 0.1
      True

    Source: Auer et al., 2002, section 3; the bound: Bubeck, Cesa-Bianchi, 2012,
    theorem 3.1.
    """

    name = "exp3"

    rate: float | None = None
    explore: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rate(self.rate)
        _check_share(self.explore)

    def weights(self, state: LossTotals) -> Floats:
        """Returns the probability of each model."""
        models = len(state.loss)
        seen = max(1.0, sum(state.counts))
        rate = self.rate or math.sqrt(math.log(max(models, 2)) / (models * seen))
        found = _softmax(tuple(-rate * loss for loss in state.loss))
        even = self.explore / models
        return tuple((1 - self.explore) * p + even for p in found)

    def choose(self, state: LossTotals, ready: Collection[int], key: int) -> Choice:
        """Returns a model, drawn by the weights."""
        return _draw(self.weights(state), ready, key)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns the change for the loss of the chosen model."""
        own = losses[choice.model]
        found = tuple(
            own / choice.probability
            if k == choice.model
            else (0.0 if k in choice.ready else own)
            for k in range(len(state.loss))
        )
        return _change(self.keep, {choice.model: 1.0}, found)


@dataclass(frozen=True, kw_only=True)
class Exp4(SelectionPolicy):
    """Weights the answers of all models by exponential weights.

    The experts are the models, and their advice is their answers. Feedback gives the
    loss of every expert, which need not be estimated: weights are ∝ exp(−η L). With η =
    √(8 ln K / t) after t losses the regret of the weighted mean of losses against the
    best of K models is at most √(2 T ln K) + √(ln K / 8).

    Attributes:
      rate: η; None: as above.
      window: as for `SelectionPolicy`.

    Example:
      >>> policy, state = Exp4(rate=1.0), LossTotals.start(2)
      >>> choice = policy.choose(state, (0, 1), key=0)
      >>> state = state.after(policy.learn(state, choice, {0: 0.0, 1: 1.0}, 0))
      >>> [round(w, 3) for w in policy.weights(state)]
      [0.731, 0.269]

    Source: Auer et al., 2002, section 7; Crankshaw et al., 2017, section 5.2; the
    bound: Cesa-Bianchi, Lugosi, Prediction, Learning, and Games, 2006, theorem 2.3.
    """

    name = "exp4"
    runs_all = True

    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rate(self.rate)

    def weights(self, state: LossTotals) -> Floats:
        """Returns the weight of each model's answer."""
        seen = max(1.0, *state.counts)
        models = max(len(state.loss), 2)
        rate = self.rate or math.sqrt(8 * math.log(models) / seen)
        return _softmax(tuple(-rate * loss for loss in state.loss))

    def choose(self, state: LossTotals, ready: Collection[int], key: int) -> Choice:
        """Returns all ready models."""
        return Choice(-1, 1.0, tuple(sorted(ready)))

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns the change for the losses of the models with known answers."""
        left = among(self.weights(state), losses.keys())
        own = sum(left[k] * loss for k, loss in losses.items())
        models = range(len(state.loss))
        found = tuple(losses.get(k, own) for k in models)
        return _change(self.keep, dict.fromkeys(models, 1.0), found)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(SelectionPolicy):
    """Chooses the model with the least mean loss, or any model for a share of requests.

    Models without a loss come first. The regret is linear in the share: each of its
    requests costs the gap between the mean model and the best one.

    Attributes:
      explore: the share, ε.
      window: as for `SelectionPolicy`.

    Example:
      >>> state = LossTotals(counts=(10.0, 10.0), loss=(2.0, 5.0))
      >>> [round(w, 3) for w in EpsilonGreedy(explore=0.1).weights(state)]
      [0.95, 0.05]

    Source: Sutton, Barto, Reinforcement Learning, 2018, section 2.2; Auer,
    Cesa-Bianchi, Fischer, Finite-time Analysis of the Multiarmed Bandit Problem, 2002.
    """

    name = "epsilon-greedy"

    explore: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_share(self.explore)

    def weights(self, state: LossTotals) -> Floats:
        """Returns the probability of each model."""
        return self._weights(state, range(len(state.loss)))

    def _weights(self, state: LossTotals, ready: Collection[int]) -> Floats:
        means = {
            k: state.loss[k] / state.counts[k] if state.counts[k] > 0 else -1.0
            for k in ready
        }
        least = min(means.values())
        best = [k for k in means if means[k] == least]
        even = self.explore / len(means)
        return tuple(
            (even if k in means else 0.0)
            + ((1 - self.explore) / len(best) if k in best else 0.0)
            for k in range(len(state.loss))
        )

    def choose(self, state: LossTotals, ready: Collection[int], key: int) -> Choice:
        """Returns a model, drawn by the weights of the ready models."""
        return _draw(self._weights(state, ready), ready, key)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns the change for the loss of the chosen model."""
        loss = tuple(
            losses[k] if k == choice.model else 0.0 for k in range(len(state.loss))
        )
        return _change(self.keep, {choice.model: 1.0}, loss)


@dataclass(frozen=True, kw_only=True)
class Thompson(SelectionPolicy):
    """Chooses the best model by a sample of each model's posterior.

    The posterior of a model's mean loss is Beta(1 + losses, 1 + count − losses). A loss
    between 0 and 1 is rounded to 0 or 1 at random, with the loss as its mean.

    Attributes:
      window: as for `SelectionPolicy`.

    Example:
      >>> state = LossTotals(counts=(99.0, 99.0), loss=(20.0, 50.0))
      >>> Thompson().choose(state, (0, 1), key=3).model
      0

    Source: Thompson, On the Likelihood that One Unknown Probability Exceeds Another,
    1933; Agrawal, Goyal, Analysis of Thompson Sampling for the Multi-armed Bandit
    Problem, 2012, algorithm 2; decay: Raj, Kalyani, Taming Non-stationary Bandits,
    2017.
    """

    name = "thompson"

    def _samples(self, state: LossTotals, key: int, times: int) -> np.ndarray:
        loss = np.asarray(state.loss)
        rest = np.maximum(np.asarray(state.counts) - loss, 0.0)
        size = (times, len(loss))
        found: np.ndarray = _generator(key).beta(1 + loss, 1 + rest, size)
        return found

    def weights(self, state: LossTotals) -> Floats:
        """Returns how often each model is the best, in 1,000 samples."""
        best = self._samples(state, 0, 1000).argmin(axis=1)
        return tuple(np.bincount(best, minlength=len(state.loss)) / 1000)

    def choose(self, state: LossTotals, ready: Collection[int], key: int) -> Choice:
        """Returns the best model by one sample."""
        draw = self._samples(state, key, 1)[0]
        order = tuple(sorted(ready))
        return Choice(min(order, key=draw.__getitem__), 1.0, order)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns the change for the loss of the chosen model."""
        lost = float(_generator(key).random() < losses[choice.model])
        loss = tuple(lost if k == choice.model else 0.0 for k in range(len(state.loss)))
        return _change(self.keep, {choice.model: 1.0}, loss)


#: Name in configurations → policy.
POLICIES: dict[str, type[SelectionPolicy]] = {
    policy.name: policy for policy in (Exp3, Exp4, EpsilonGreedy, Thompson)
}


def selection_policy(name: str, **options: float) -> SelectionPolicy:
    """Returns a policy by its name in configurations.

    Args:
      name: ``exp3``, ``exp4``, ``epsilon-greedy`` or ``thompson``.
      **options: attributes of the policy.

    Returns:
      The policy.

    Raises:
      ValueError: the name or an option is unknown, or an option is out of range.

    Example:
      >>> selection_policy("exp3", window=200)
      Exp3(window=200, rate=None, explore=0.05)
    """
    if name not in POLICIES:
        *others, last = map(repr, POLICIES)
        raise ValueError(f"policy must be {', '.join(others)} or {last}, got {name!r}")
    known = sorted(field.name for field in fields(POLICIES[name]))
    if unknown := options.keys() - set(known):
        raise ValueError(
            f"policy {name!r} has no option {min(unknown)!r}; options: "
            f"{', '.join(map(repr, known))}"
        )
    return POLICIES[name](**options)
