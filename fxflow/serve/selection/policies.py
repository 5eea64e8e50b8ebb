"""Which model answers, and how much each counts: learned from losses.

All policies keep the same state, a number of losses and their sum for each model, and
differ in what they make of it. A loss changes it linearly, old ones fading, so that
changes can be put together and made elsewhere (`Change.then`): several servers can
share a state. Losses are from 0 (right) to 1 (wrong). Models are numbered.

`Exp3`, `EpsilonGreedy` and `Thompson` choose one model for a request and learn from its
loss alone; `Exp4` weighs the answers of all and learns from all their losses. A model
that cannot be asked is asleep: it is given the loss that the policy had itself, which
makes it neither better nor worse among the others.

Sources: Auer, Cesa-Bianchi, Freund, Schapire, The Nonstochastic Multiarmed Bandit
Problem, 2002; Bubeck, Cesa-Bianchi, Regret Analysis of Stochastic and Nonstochastic
Multi-armed Bandit Problems, 2012; Crankshaw et al., Clipper, 2017, section 5; for those
that sleep: Freund, Schapire, Singer, Warmuth, Using and Combining Predictors That
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
    """The effect of a loss on a state: it fades by `keep`, then numbers are added.

    Attributes:
      keep: what is left of each number.
      counts, loss: what is added, by model.
    """

    keep: float
    counts: Floats
    loss: Floats

    def then(self, later: Change) -> Change:
        """Returns the one change that does what this one and then another do.

        Args:
          later: the other.

        Returns:
          The change.
        """
        return Change(
            self.keep * later.keep,
            _faded(self.counts, later.keep, later.counts),
            _faded(self.loss, later.keep, later.loss),
        )


class LossTotals(NamedTuple):
    """What is known of the models.

    Attributes:
      counts: how many losses, by model.
      loss: their sum; for `Exp3` of estimates.

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
          models: how many there are.

        Returns:
          The state.
        """
        return cls((0.0,) * models, (0.0,) * models)

    def after(self, change: Change) -> LossTotals:
        """Returns the state after a change.

        Args:
          change: of `Policy.learn`.

        Returns:
          The state.
        """
        return LossTotals(
            _faded(self.counts, change.keep, change.counts),
            _faded(self.loss, change.keep, change.loss),
        )


class Choice(NamedTuple):
    """Which model was asked, and how likely that was.

    Attributes:
      model: its number; -1: all that were awake.
      probability: with which it was chosen among those awake.
      awake: the models that could be asked.
    """

    model: int
    probability: float
    awake: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class SelectionPolicy(abc.ABC):
    """Decides which models answer.

    Attributes:
      window: losses after which an old one has faded to 1/e; inf: they do not fade.
    """

    #: The policy's name in configurations.
    name: ClassVar[str]
    #: Whether each request is for all models, not for one.
    asks_all: ClassVar[bool] = False

    window: float = 1000.0

    def __post_init__(self) -> None:
        if not self.window >= 1:
            raise ValueError(f"window must be at least 1 loss, got {self.window}")

    @property
    def keep(self) -> float:
        """What is left of an old loss after each new one."""
        return 1 - 1 / self.window

    @abc.abstractmethod
    def weights(self, state: LossTotals) -> Floats:
        """Returns how much each model counts, or how likely it is; 1 together."""

    @abc.abstractmethod
    def choose(self, state: LossTotals, awake: Collection[int], key: int) -> Choice:
        """Returns which models to ask."""

    @abc.abstractmethod
    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns what the losses of a request change."""


def _check_rate(rate: float | None) -> None:
    if rate is not None and not 0 < rate < math.inf:
        raise ValueError(f"rate must be above 0, got {rate}")


def _check_share(explore: float) -> None:
    if not 0 <= explore <= 1:
        raise ValueError(f"explore must be a share, 0 to 1, got {explore}")


def _faded(old: Floats, keep: float, new: Floats) -> Floats:
    return tuple(keep * a + b for a, b in zip(old, new, strict=True))


def _softmax(logits: Floats) -> Floats:
    most = max(logits)
    powers = [math.exp(x - most) for x in logits]
    total = sum(powers)
    return tuple(p / total for p in powers)


def _generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def among(weights: Floats, awake: Collection[int]) -> Floats:
    """Returns the weights with those asleep at 0, again with sum 1.

    Args:
      weights: of all models, at least 0.
      awake: numbers of those that can be asked, at least one.

    Returns:
      Weights of all models.

    Example:
      >>> among((0.5, 0.25, 0.25), (1, 2))
      (0.0, 0.5, 0.5)
    """
    total = sum(weights[k] for k in awake)
    if total <= 0.0:  # all that is awake was thought hopeless
        return tuple(float(k in awake) / len(awake) for k in range(len(weights)))
    return tuple(weights[k] / total if k in awake else 0.0 for k in range(len(weights)))


def _draw(weights: Floats, awake: Collection[int], key: int) -> Choice:
    left = among(weights, awake)
    point = float(_generator(key).random())
    order = sorted(awake)
    for model in order:
        point -= left[model]
        if point < 0 and left[model] > 0:
            return Choice(model, left[model], tuple(order))
    model = max(order, key=left.__getitem__)  # the sum was rounded below 1
    return Choice(model, left[model], tuple(order))


def _change(keep: float, count: Mapping[int, float], loss: Floats) -> Change:
    counts = tuple(float(count.get(k, 0.0)) for k in range(len(loss)))
    return Change(keep, counts, loss)


@dataclass(frozen=True, kw_only=True)
class Exp3(SelectionPolicy):
    """Exponential weights by estimated losses; one model is drawn by them.

    A model is drawn with probability p ∝ exp(−η L), where L is the sum of its
    losses, each divided by the probability with which it was drawn then. With η =
    √(ln K / (K t)) after t losses the expected regret against the best of K models
    is at most 2 √(T K ln K), whatever the losses are.

    Attributes:
      rate: η; None: as above.
      explore: share of requests for which all models are equally likely.
      window: as of `SelectionPolicy`.

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

    def choose(self, state: LossTotals, awake: Collection[int], key: int) -> Choice:
        """Returns a model, drawn by the weights."""
        return _draw(self.weights(state), awake, key)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns what the loss of the model that was drawn changes."""
        own = losses[choice.model]
        found = tuple(
            own / choice.probability
            if k == choice.model
            else (0.0 if k in choice.awake else own)
            for k in range(len(state.loss))
        )
        return _change(self.keep, {choice.model: 1.0}, found)


@dataclass(frozen=True, kw_only=True)
class Exp4(SelectionPolicy):
    """Exponential weights of experts, whose advice is combined by them.

    The experts are the models, and what they advise are answers. When the right
    answer is known so is the loss of each expert, and need not be estimated: weights
    are ∝ exp(−η L). With η = √(8 ln K / t) after t losses the regret of the weighted
    mean of losses against the best of K models is at most √(2 T ln K) + √(ln K / 8).

    Attributes:
      rate: η; None: as above.
      window: as of `SelectionPolicy`.

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
    asks_all = True

    rate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_rate(self.rate)

    def weights(self, state: LossTotals) -> Floats:
        """Returns how much the answer of each model counts."""
        seen = max(1.0, *state.counts)
        models = max(len(state.loss), 2)
        rate = self.rate or math.sqrt(8 * math.log(models) / seen)
        return _softmax(tuple(-rate * loss for loss in state.loss))

    def choose(self, state: LossTotals, awake: Collection[int], key: int) -> Choice:
        """Returns all that are awake."""
        return Choice(-1, 1.0, tuple(sorted(awake)))

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns what the losses of those models change whose answers are known."""
        left = among(self.weights(state), losses.keys())
        own = sum(left[k] * loss for k, loss in losses.items())
        models = range(len(state.loss))
        found = tuple(losses.get(k, own) for k in models)
        return _change(self.keep, dict.fromkeys(models, 1.0), found)


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(SelectionPolicy):
    """The model with the least mean loss; a share of requests goes to any.

    Models of which nothing is known come first. What the share costs is linear: its
    requests lose on average what the mean model is worse than the best.

    Attributes:
      explore: the share, ε.
      window: as of `SelectionPolicy`.

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

    def _weights(self, state: LossTotals, awake: Collection[int]) -> Floats:
        means = {
            k: state.loss[k] / state.counts[k] if state.counts[k] > 0 else -1.0
            for k in awake
        }
        least = min(means.values())
        best = [k for k in means if means[k] == least]
        even = self.explore / len(means)
        return tuple(
            (even if k in means else 0.0)
            + ((1 - self.explore) / len(best) if k in best else 0.0)
            for k in range(len(state.loss))
        )

    def choose(self, state: LossTotals, awake: Collection[int], key: int) -> Choice:
        """Returns a model, drawn by the weights of those awake."""
        return _draw(self._weights(state, awake), awake, key)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns what the loss of the model that was drawn changes."""
        loss = tuple(
            losses[k] if k == choice.model else 0.0 for k in range(len(state.loss))
        )
        return _change(self.keep, {choice.model: 1.0}, loss)


@dataclass(frozen=True, kw_only=True)
class Thompson(SelectionPolicy):
    """The model that is best by a draw from what may be true of each.

    What is known of a model's loss is Beta(1 + losses, 1 + count − losses). A loss
    between 0 and 1 is made into one of them by a coin that it weighs.

    Attributes:
      window: as of `SelectionPolicy`.

    Example:
      >>> state = LossTotals(counts=(99.0, 99.0), loss=(20.0, 50.0))
      >>> Thompson().choose(state, (0, 1), key=3).model
      0

    Source: Thompson, On the Likelihood that One Unknown Probability Exceeds Another,
    1933; Agrawal, Goyal, Analysis of Thompson Sampling for the Multi-armed Bandit
    Problem, 2012, algorithm 2; fading: Raj, Kalyani, Taming Non-stationary Bandits,
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
        """Returns how often each model is the best of 1,000 draws."""
        best = self._samples(state, 0, 1000).argmin(axis=1)
        return tuple(np.bincount(best, minlength=len(state.loss)) / 1000)

    def choose(self, state: LossTotals, awake: Collection[int], key: int) -> Choice:
        """Returns the best of one draw."""
        draw = self._samples(state, key, 1)[0]
        order = tuple(sorted(awake))
        return Choice(min(order, key=draw.__getitem__), 1.0, order)

    def learn(
        self, state: LossTotals, choice: Choice, losses: Mapping[int, float], key: int
    ) -> Change:
        """Returns what the loss of the model that was drawn changes."""
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
      **options: of that policy.

    Returns:
      The policy.

    Raises:
      ValueError: there is no policy of that name; it does not take an option; or an
        option is out of range.

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
            f"policy {name!r} does not take {min(unknown)!r}: it takes "
            f"{', '.join(map(repr, known))}"
        )
    return POLICIES[name](**options)
