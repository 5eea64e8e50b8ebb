"""Losses: how wrong an answer is, from 0 (right) to 1 (wrong).

The rows of an output are classes (integers, strings, or one score per class, of which
the largest counts) or numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.errors import ServeError

Array = np.ndarray[Any, Any]
Loss = Callable[[Array, Array], float]
NAMES = ("auto", "zero_one", "absolute", "squared")


def is_scores(array: Array) -> bool:
    """Returns whether an output has one score per class.

    Args:
      array: an output, rows first.
    """
    # NumPy's kind of bfloat16 is "V".
    return array.ndim >= 2 and array.shape[-1] > 1 and array.dtype.kind in "fV"


def decisions(array: Array) -> Array:
    """Returns the classes of scores, or the values of any other output.

    Args:
      array: an output, rows first.

    Returns:
      An array, rows first.

    Example:
      >>> decisions(np.array([[0.1, 0.7, 0.2], [0.9, 0.1, 0.0]])).tolist()
      [1, 0]
    """
    if is_scores(array):
        found: Array = array.astype(np.float64).argmax(axis=-1)
        return found
    if array.ndim >= 2 and array.shape[-1] == 1:
        return array[..., 0]
    return array


def is_numbers(decided: Array) -> bool:
    """Whether decisions are numbers, which can be nearly right.

    Args:
      decided: of `decisions`.
    """
    return decided.dtype.kind in "fV"


def parse_label(value: Any, rows: int) -> Array:
    """Returns the labels in a request for feedback.

    Args:
      value: the label of a single row, or a list of labels.
      rows: rows of the request that the feedback is for.

    Returns:
      An array, rows first; strings as bytes.

    Raises:
      ServeError: status 400; a label has the wrong type or is not finite, or their
        number differs from `rows`.

    Example:
      >>> parse_label([3, 5], rows=2), parse_label("cat", rows=1)
      (array([3, 5]), array([b'cat'], dtype=object))
    """
    given = value.tolist() if isinstance(value, np.ndarray) else value
    items = given if isinstance(given, list) else [given]
    if len(items) != rows:
        raise ServeError(
            f"'label' must have one label per row, {rows} in all; got {len(items)}", 400
        )
    if all(isinstance(item, str | bytes) for item in items):
        texts = np.empty(rows, object)
        texts[:] = [i.encode() if isinstance(i, str) else i for i in items]
        return texts
    flat = items
    while flat and all(isinstance(item, list) for item in flat):
        flat = [x for item in flat for x in item]
    if not flat or not all(isinstance(x, bool | int | float) for x in flat):
        raise ServeError(f"'label' must be numbers or strings, got {value!r:.60}", 400)
    try:
        array = np.array(items)
    except (ValueError, OverflowError):
        raise ServeError("'label' has lists of different lengths", 400) from None
    if array.dtype == object or not np.isfinite(array).all():
        raise ServeError(f"'label' must be finite, got {value!r:.60}", 400)
    return array


def parse_loss(value: Any, name: str = "'loss'") -> float:
    """Checks a loss from a request.

    Args:
      value: a number from 0 to 1.
      name: its name in errors.

    Returns:
      The number.

    Raises:
      ServeError: status 400; it is not a number from 0 to 1.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise ServeError(
            f"{name} must be a number from 0 (right) to 1 (wrong), got {value!r:.60}",
            400,
        )
    return float(value)


def _shapes_agree(answer: Array, label: Array) -> None:
    if answer.shape != label.shape:
        raise ServeError(
            f"'label' must have shape {list(answer.shape)}, got {list(label.shape)}",
            400,
        )


def zero_one(answer: Array, label: Array) -> float:
    """Returns the share of rows whose class is wrong.

    Args:
      answer: an output, rows first.
      label: the right classes.

    Returns:
      The loss.

    Raises:
      ServeError: status 400; shapes differ, or one has strings and one numbers.

    Example:
      >>> zero_one(np.array([[0.1, 0.9], [0.8, 0.2]]), np.array([1, 1]))
      0.5
    """
    decided = decisions(answer)
    _shapes_agree(decided, label)
    if (decided.dtype == object) != (label.dtype == object):
        kind = "strings" if decided.dtype == object else "numbers"
        raise ServeError(f"'label' must be {kind}, like the model's answers", 400)
    return float(np.mean(decided != label))


def _distance(answer: Array, label: Array) -> Array:
    if answer.dtype == object or label.dtype == object:
        raise ServeError("strings have no distance: the loss must be 'zero_one'", 400)
    value = answer.astype(np.float64)
    if value.shape != label.shape and value.shape == (*label.shape, 1):
        value = value[..., 0]
    _shapes_agree(value, label)
    # NaN counts as entirely wrong.
    found: Array = np.nan_to_num(np.abs(value - label), nan=math.inf)
    return found


def absolute(answer: Array, label: Array) -> float:
    """Returns the mean absolute difference, each clipped at 1.

    Args:
      answer: an output, rows first.
      label: the right numbers.

    Returns:
      The loss.

    Raises:
      ServeError: status 400; shapes differ, or there are strings.

    Example:
      >>> absolute(np.array([0.5, 9.0]), np.array([1, 2]))
      0.75
    """
    return float(np.minimum(_distance(answer, label), 1).mean())


def squared(answer: Array, label: Array) -> float:
    """Returns the mean squared difference, each clipped at 1.

    Args:
      answer: an output, rows first.
      label: the right numbers.

    Returns:
      The loss.

    Raises:
      ServeError: status 400; shapes differ, or there are strings.
    """
    return float((np.minimum(_distance(answer, label), 1) ** 2).mean())


def auto(answer: Array, label: Array) -> float:
    """Returns `zero_one` for classes and `absolute` for numbers.

    Args:
      answer: an output, rows first.
      label: the right answer.

    Returns:
      The loss.

    Raises:
      ServeError: status 400; shapes or kinds differ.
    """
    scores = is_scores(answer) and label.shape == answer.shape[:-1]
    numbers = is_numbers(answer) and not scores
    return absolute(answer, label) if numbers else zero_one(answer, label)


def loss_of(function: Loss, answer: Array, label: Array) -> float:
    """Computes a loss, and checks its range.

    Args:
      function: a loss function, possibly the user's.
      answer: an output, rows first.
      label: the right answer.

    Returns:
      The loss, from 0 to 1.

    Raises:
      ServeError: the function failed, or its result is out of range.
    """
    try:
        found = float(function(answer, label))
    except ServeError:
        raise
    except Exception as error:  # the user's function may raise anything
        raise ServeError(
            f"the loss function failed: {type(error).__name__}: {error}"
        ) from None
    if not 0 <= found <= 1:
        raise ServeError(f"a loss must be from 0 to 1, but the function gave {found}")
    return found
