"""A function of pytrees as a function of leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, not_an_array
from fxflow.core.arrays.convert import kind_of
from fxflow.core.labels import tree_labels
from fxflow.errors import ArgumentError


def _as_result(value: Any) -> Any:
    # A derivative by integers stays the NumPy array of nothing that it is; what is no
    # array is what `is_leaf` took for one.
    if isinstance(value, Array) or getattr(value, "dtype", None) == dtypes.float0:
        return value
    return as_array(value) if is_arraylike(value) else value


class FlatFunction:
    """Takes and returns flat lists; remembers the structure of what was returned.

    Args:
      fun: function of pytrees.
      in_tree: structure of `(args, kwargs)` if `keywords`, else of `args`.
      name: of the function, for messages.
      has_aux: whether it returns `(result, aux)`.
      keywords: see `in_tree`.
      labels: gives the names of the leaves in messages, if `fun` does not tell.
    """

    __slots__ = (
        "aux_tree",
        "count",
        "fun",
        "has_aux",
        "in_tree",
        "keywords",
        "labels",
        "name",
        "out_tree",
    )

    fun: Callable[..., Any]
    in_tree: Any
    name: str
    has_aux: bool
    keywords: bool
    count: int

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: Any,
        name: str,
        *,
        has_aux: bool = False,
        keywords: bool = False,
        labels: Callable[[], list[str]] | None = None,
    ) -> None:
        self.labels = labels or (lambda: tree_labels(fun, in_tree, keywords))
        self.fun, self.in_tree, self.name = fun, in_tree, name
        self.has_aux, self.keywords = has_aux, keywords
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.count = 0

    def __call__(self, *leaves: Any) -> list[Any]:
        """Returns the leaves of the result, then those of `aux`.

        Raises:
          ArgumentError: a leaf is no array, or there is no pair although `has_aux`.
        """
        if self.keywords:
            args, kwargs = self.in_tree.unflatten(leaves)
            out = self.fun(*args, **kwargs)
        else:
            out = self.fun(*self.in_tree.unflatten(leaves))
        aux: Any = None
        if self.has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise ArgumentError(
                    f"has_aux=True needs {self.name} to return a pair (result, aux), "
                    f"got {kind_of(out)}"
                )
            out, aux = out
        flat, self.out_tree = tree.flatten(out)
        self.count = len(flat)
        for i, leaf in enumerate(flat):
            if not is_arraylike(leaf):
                path = tree.leaves_with_path(out)[i][0]
                where = tree.keystr(path)
                raise not_an_array(
                    leaf,
                    f"{self.name} returned{f' at {where}' if where else ''}",
                )
        if self.has_aux:
            extra, self.aux_tree = tree.flatten(aux)
            flat = [*flat, *extra]
        return flat

    def result(self, outs: Sequence[Any]) -> Any:
        """Returns the result from the flat list; numbers become arrays."""
        return self.out_tree.unflatten(map(_as_result, outs[: self.count]))

    def aux(self, outs: Sequence[Any]) -> Any:
        """Returns `aux` from the flat list."""
        return self.aux_tree.unflatten(outs[self.count :])
