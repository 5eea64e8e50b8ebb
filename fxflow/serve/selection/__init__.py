"""Selects models for requests, and learns from feedback: pure decisions, without I/O.

Reading order: `policies` (selection from losses), `losses` (how wrong an answer is),
`memory` (predictions that wait for feedback, and states by context), `ensembles` (one
answer from several), `rollouts` (a new version's share).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.selection.ensembles import confidence, mean, substituted, vote
from fxflow.serve.selection.memory import Contexts, Exchange, Journal, PredictionRecord
from fxflow.serve.selection.policies import (
    Change, Choice, EpsilonGreedy, Exp3, Exp4, LossTotals, SelectionPolicy, Thompson,
    selection_policy,
)
from fxflow.serve.selection.rollouts import RolloutPlan, Rollout, point_of

__all__ = [
    "Change", "Choice", "EpsilonGreedy", "Exp3", "Exp4", "LossTotals",
    "SelectionPolicy", "Thompson", "selection_policy",
    "Contexts", "Exchange", "Journal", "PredictionRecord",
    "confidence", "mean", "substituted", "vote",
    "RolloutPlan", "Rollout", "point_of",
]

_public(globals(), __all__)
# fmt: on
