"""Selects models for requests, and learns from feedback: pure decisions, without I/O.

Reading order: `policies` (selection from losses), `losses` (how wrong an answer is),
`memory` (predictions that wait for feedback, and states by context), `ensembles` (one
answer from several).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.selection.ensembles import confidence, mean, substituted, vote
from fxflow.serve.selection.memory import Contexts, Exchange, Journal, PredictionRecord
from fxflow.serve.selection.policies import (
    Change, Choice, EpsilonGreedy, Exp3, Exp4, LossTotals, SelectionPolicy, Thompson,
    selection_policy,
)

__all__ = [
    "Change", "Choice", "EpsilonGreedy", "Exp3", "Exp4", "LossTotals",
    "SelectionPolicy", "Thompson", "selection_policy",
    "Contexts", "Exchange", "Journal", "PredictionRecord",
    "confidence", "mean", "substituted", "vote",
]

_public(globals(), __all__)
# fmt: on
