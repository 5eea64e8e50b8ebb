"""What messages call the arguments of a function: `x`, `params['w']`, `rest[0]`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import Any

from fxflow.core import tree


def signature_of(function: Any) -> inspect.Signature | None:
    """Returns a function's signature, or None where Python cannot tell."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def parameter_names(function: Any, count: int) -> list[str]:
    """Returns the names of the first `count` positional parameters."""
    signature = signature_of(function)
    names: list[str] = []
    if signature is not None:
        for parameter in signature.parameters.values():
            if parameter.kind in (
                parameter.POSITIONAL_ONLY,
                parameter.POSITIONAL_OR_KEYWORD,
            ):
                names.append(parameter.name)
            elif parameter.kind is parameter.VAR_POSITIONAL:
                names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
    # Some built-in functions have no signature.
    names += [f"#{i}" for i in range(len(names), count)]
    return names[:count]


def leaf_labels(
    function: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    positions: Sequence[int] | None = None,
) -> list[str]:
    """Returns for each leaf of the arguments its name, as in `params['w']`.

    Args:
      function: that takes them.
      args: by position.
      kwargs: by name.
      positions: of those of `args` that are meant, in this order; None: all.
    """
    names = parameter_names(function, len(args))
    if positions is None:
        positions = range(len(args))
    pairs = [(names[i], args[i]) for i in positions]
    return [
        f"{name}{tree.keystr(path)}"
        for name, arg in (*pairs, *sorted((kwargs or {}).items()))
        for path, _ in tree.leaves_with_path(arg)
    ]


def tree_labels(function: Any, in_tree: Any, keywords: bool = False) -> list[str]:
    """Returns for each leaf of a structure of arguments its name.

    Args:
      function: that takes them.
      in_tree: structure of `(args, kwargs)` if `keywords`, else of `args`.
      keywords: see `in_tree`.
    """
    given = in_tree.unflatten(range(in_tree.num_leaves))
    return leaf_labels(function, *given) if keywords else leaf_labels(function, given)


def dotted_names(in_tree: Any, labels: Sequence[str]) -> list[str]:
    """Returns names of the leaves of `(args, kwargs)` for files: `params.layers.0`.

    Args:
      in_tree: structure of `(args, kwargs)`.
      labels: of its leaves, as `leaf_labels` gives them.
    """
    paths = [p for p, _ in tree.leaves_with_path(in_tree.unflatten(range(len(labels))))]
    names = []
    for path, label in zip(paths, labels, strict=True):
        # The first two keys are the place in `(args, kwargs)`: the label knows a name.
        inside = path[2:]
        base = label.removesuffix(tree.keystr(inside)).strip("*#")
        names.append(re.sub(r"\[(\w+)\]", r".\1", base) + dotted_path(inside))
    return names


def dotted_path(path: Any) -> str:
    """Returns a place in a tree as part of a name: `.layers.0`."""
    return "".join(f".{tree.keystr((key,), simple=True)}" for key in path)


def listed(labels: Sequence[str], function: str) -> str:
    """Returns names of arguments in words: `arguments x and y of f`."""
    many = len(labels) > 4
    shown = [*labels[:3], f"{len(labels) - 3} others"] if many else list(labels)
    words = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"argument{'s' * (len(shown) > 1)} {words} of {function}"
