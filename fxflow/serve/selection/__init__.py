"""Which models answer a request, and what is learned of them: decisions without I/O.

To be read in this order: `policies` (whom to ask, by what was lost), `contexts` (what
is known where), `losses` (how wrong an answer was), `journal` (what was answered, until
that is known), `ensembles` (one answer of several), `rollouts` (a new version's share).
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.serve.selection.contexts import Contexts, Exchange
from fxflow.serve.selection.ensembles import confidence, mean, substituted, vote
from fxflow.serve.selection.journal import Journal, Record
from fxflow.serve.selection.policies import (
    Change, Choice, EpsilonGreedy, Exp3, Exp4, SelectionPolicy, State, Thompson,
    selection_policy,
)
from fxflow.serve.selection.rollouts import Plan, Rollout, point_of

__all__ = [
    "Change", "Choice", "EpsilonGreedy", "Exp3", "Exp4", "SelectionPolicy", "State",
    "Thompson", "selection_policy",
    "Contexts", "Exchange", "Journal", "Record",
    "confidence", "mean", "substituted", "vote",
    "Plan", "Rollout", "point_of",
]

_public(globals(), __all__)
# fmt: on
