"""Combines the answers of several models, and measures how much they agree.

Every model that was called has a weight. Late models are left out, or get the combined
answer of the others (`substituted`), for functions that need all models. The confidence
of a row is the share of the called models that agree with the combined answer; late
models count as disagreeing.

Source: Crankshaw et al., Clipper, 2017, section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.selection.losses import decisions, is_numbers

Array = np.ndarray[Any, Any]
Outputs = dict[str, Array]
#: Takes the models' outputs and weights by name, and returns outputs.
Combine = Callable[[Mapping[str, Outputs], Mapping[str, float]], Outputs]
#: Ways to combine by name.
NAMES = ("vote", "mean")


def _items(decided: Array) -> list[Any]:
    """Returns one hashable value per row."""
    rows = decided.reshape(len(decided), -1).tolist() if decided.size else []
    return [tuple(row) for row in rows]


def vote(
    arrived: Mapping[str, Outputs], weights: Mapping[str, float], output: str
) -> Outputs:
    """Returns, for each row, the answer with the largest total weight.

    All outputs of a row come from the heaviest model that gave this answer.

    Args:
      arrived: outputs of models, rows first.
      weights: weights of the models.
      output: name of the output that is voted on.

    Returns:
      Outputs by name.

    Example:
      >>> said = {m: {"y": np.array([k])} for m, k in zip("abc", [7, 3, 3])}
      >>> vote(said, {"a": 0.4, "b": 0.3, "c": 0.3}, "y")["y"].tolist()
      [3]
    """
    order = sorted(arrived, key=lambda m: -weights[m])
    ballots = [_items(decisions(arrived[m][output])) for m in order]
    sources = []
    for row in zip(*ballots, strict=True):
        tally: dict[Any, float] = {}
        for model, voted in zip(order, row, strict=True):
            tally[voted] = tally.get(voted, 0.0) + weights[model]
        winner = max(tally, key=tally.__getitem__)
        sources.append(row.index(winner))
    first = arrived[order[0]]
    found = {}
    for name, value in first.items():
        value = value.copy()
        for row_number, source in enumerate(sources):
            value[row_number] = arrived[order[source]][name][row_number]
        found[name] = value
    return found


def mean(arrived: Mapping[str, Outputs], weights: Mapping[str, float]) -> Outputs:
    """Returns the weighted mean of the outputs.

    Args:
      arrived: outputs of models, all of floating point.
      weights: weights of the models.

    Returns:
      Outputs by name.

    Raises:
      ServeError: an output does not have a floating-point dtype.

    Example:
      >>> said = {"a": {"y": np.array([1.0])}, "b": {"y": np.array([2.0])}}
      >>> mean(said, {"a": 0.25, "b": 0.5, "c": 0.25})["y"].tolist()
      [1.6666666666666665]
    """
    total = sum(weights[m] for m in arrived)
    shares = {m: weights[m] / total if total else 1 / len(arrived) for m in arrived}
    first = next(iter(arrived.values()))
    found = {}
    for name, value in first.items():
        if not is_numbers(value):
            raise ServeError(
                f"output {name!r} has dtype {value.dtype}, which has no mean: use "
                "combine 'vote'"
            )
        parts = [shares[m] * arrived[m][name].astype(np.float64) for m in arrived]
        found[name] = np.sum(parts, axis=0).astype(value.dtype)
    return found


def by_function(
    function: Combine, arrived: Mapping[str, Outputs], weights: Mapping[str, float]
) -> Outputs:
    """Combines the outputs by a user's function.

    Args:
      function: the function.
      arrived: outputs of models.
      weights: weights of the models.

    Returns:
      Outputs by name.

    Raises:
      ServeError: the function raised, or its result lacks an output or differs from
        the models' in dtype or shape.

    Example:
      >>> said = {"a": {"y": np.array([1.0])}, "b": {"y": np.array([2.0])}}
      >>> by_function(lambda outputs, weights: outputs["b"], said, {})["y"].tolist()
      [2.0]
    """
    try:
        given = dict(function(arrived, weights))
    except Exception as error:  # the user's function may raise anything
        raise ServeError(
            f"the 'combine' function failed: {type(error).__name__}: {error}"
        ) from None
    like = next(iter(arrived.values()))
    found = {name: np.asarray(given[name]) for name in like if name in given}
    for name, value in like.items():
        got = found.get(name)
        if got is None or got.shape != value.shape or got.dtype != value.dtype:
            wrong = "nothing" if got is None else f"{got.dtype}{list(got.shape)}"
            raise ServeError(
                f"the 'combine' function must return {name!r} as "
                f"{value.dtype}{list(value.shape)}, got {wrong}"
            )
    return found


def substituted(
    arrived: Mapping[str, Outputs], weights: Mapping[str, float], output: str
) -> dict[str, Outputs]:
    """Returns the outputs of all models, with the others' answer for missing ones.

    Args:
      arrived: outputs of models.
      weights: weights of all models that were called.
      output: name of the output that is voted on if the outputs have no mean.

    Returns:
      Outputs of each model that has a weight.
    """
    missing = [m for m in weights if m not in arrived]
    if not missing:
        return dict(arrived)
    numbers = all(is_numbers(v) for o in arrived.values() for v in o.values())
    stand_in = mean(arrived, weights) if numbers else vote(arrived, weights, output)
    return {m: arrived.get(m, stand_in) for m in weights}


def confidence(
    answer: Array, arrived: Mapping[str, Array], called: int, tolerance: float
) -> Array:
    """Returns the share of models that agree with the answer, row by row.

    Args:
      answer: an output of the combined answer.
      arrived: the same output of each model that has answered.
      called: number of models that were called.
      tolerance: relative and absolute tolerance for numbers.

    Returns:
      float64[rows].

    Example:
      >>> said = {"a": np.array([1, 2]), "b": np.array([1, 3])}
      >>> confidence(np.array([1, 3]), said, called=4, tolerance=0.1).tolist()
      [0.5, 0.25]
    """
    decided = decisions(answer)
    rows = len(decided)
    agree = np.zeros(rows)
    for value in arrived.values():
        theirs = decisions(value)
        if is_numbers(decided):
            near = np.isclose(
                theirs.astype(np.float64),
                decided.astype(np.float64),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            )
        else:
            near = np.asarray(theirs == decided)
        agree += near.reshape(rows, -1).all(axis=1)
    return agree / max(called, 1)
