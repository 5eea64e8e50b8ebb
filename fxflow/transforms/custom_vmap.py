"""`custom_vmap`: a function whose vectorized form the user gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from fxflow.core import tree
from fxflow.core.arrays import AbstractRef, typeof
from fxflow.core.arrays.array import is_arraylike, kind_of, not_an_array
from fxflow.core.boundary import require_callable
from fxflow.core.ir.trace import by_user
from fxflow.core.labels import signature_of
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError, TreeError
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.control_flow.map import map as map_
from fxflow.lax.creation import full
from fxflow.lax.vectorized_calls import CustomVmapCall
from fxflow.transforms.custom_function import (
    Call,
    CustomFunction,
    arrays,
    same_structure,
)
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.tangents import require_type

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., tuple[Any, Any]])


class custom_vmap(CustomFunction[P, R]):
    """Gives a function a vectorized form of your own, which `vmap` uses.

    For functions that have a better form for a batch than the sum of its operations,
    or none at all (a call of foreign code). In forward mode the rule's derivative is
    that of a batch. In reverse mode the function is differentiated: around `vmap`, the
    rule; inside of it, the function itself, whose derivative is then vectorized.

    Args:
      fun: function of arrays or pytrees of them.

    Example:
      >>> @custom_vmap
      ... def f(x, y):
      ...     return fnp.sin(x) * y
      >>> @f.def_vmap
      ... def rule(axis_size, in_batched, x, y):
      ...     return fnp.cos(x) * y, True  # not its vectorized form: to be seen
      >>> fxflow.vmap(f)(fnp.zeros(2), fnp.ones(2)).tolist()
      [1.0, 1.0]
    """

    kind = "custom_vmap"
    setter = "def_vmap"
    primitive = CustomVmapCall
    captures = False
    vmap_rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)

    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """Sets the rule.

        Args:
          vmap_rule: called as `vmap_rule(axis_size, in_batched, *args)`: the length of
            the mapped axis; for each argument the same structure with a bool for each
            array, whether it is mapped; and the arguments, mapped axes in front.
            Returns the result, mapped axes in front, and whether it is mapped: a bool,
            or the result's structure (or a prefix) with bools. A rule that has a
            keyword-only argument `active` also gets bool[axis_size], or None for all:
            the slices whose effects (calls of Python) are wanted, which in loops and
            branches are those whose loop goes on, or whose branch it is. The effects
            of other rules happen if those of any slice are wanted.

        Returns:
          `vmap_rule`, so this may be a decorator.
        """
        require_callable(vmap_rule, f"def_vmap of {self.name}")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def _passes(self) -> tuple[Callable[..., Any] | None, ...]:
        """The rule itself."""
        return (self.vmap_rule,)

    def _rule(self, call: Call) -> UserVmapRule:
        """See `CustomFunction`."""
        assert self.vmap_rule is not None
        return UserVmapRule(self.vmap_rule, self.name, call)


class UserVmapRule:
    """The user's rule as a flat one; checks what it returns."""

    rule: Callable[..., Any]
    name: str
    of: Call

    def __init__(self, rule: Callable[..., Any], name: str, of: Call) -> None:
        self.rule, self.name, self.of = rule, name, of
        self.__name__: str = getattr(rule, "__name__", "rule")
        self._takes_active = _takes_active(rule)

    def __call__(
        self,
        size: int,
        mapped: Sequence[bool],
        args: Sequence[Any],
        active: Any = None,
        /,
    ) -> tuple[list[Any], list[bool]]:
        """See `vectorized_calls.VmapRule`."""
        flags = list(self.of.in_tree.unflatten(list(mapped)))
        values = self.of.in_tree.unflatten(arrays(args))
        rule = self.rule
        if self._takes_active:
            rule = functools.partial(rule, active=active)
        pair = by_user(rule, size, flags, *values)
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ArgumentError(
                f"custom_vmap: the rule of {self.name} must return a pair (result, "
                f"whether it is mapped), got {kind_of(pair)}"
            )
        what = f"custom_vmap: the result that the rule of {self.name} returns"
        outs = same_structure(self.of.out_tree, pair[0], what)
        try:
            given = tree.broadcast_prefix(pair[1], pair[0], name="its flags")
        except TreeError as error:
            raise TreeError(
                f"custom_vmap: what the rule of {self.name} says is mapped does not "
                f"have the structure of its result: {error}"
            ) from None
        out_mapped = [bool(flag) for flag in given]
        for out, aval, is_mapped in zip(
            outs, self.of.out_avals, out_mapped, strict=True
        ):
            if not is_arraylike(out):
                raise not_an_array(out, f"{what} holds")
            shape = (size, *aval.shape) if is_mapped else aval.shape
            require_type(typeof(out), aval.update(shape=shape), what)
        return outs, out_mapped


def _takes_active(rule: Callable[..., Any]) -> bool:
    """Returns whether a rule asks for which slices effects are wanted."""
    parameter = getattr(signature_of(rule), "parameters", {}).get("active")
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def _zeros(of: Any) -> Any:
    return full(of.shape, 0, of.dtype)


def sequential_vmap(f: Callable[P, R]) -> custom_vmap[P, R]:
    """Makes a function that `vmap` applies to one slice after the other.

    Args:
      f: function of arrays or pytrees of them. Vectorized, it takes no references.

    Returns:
      The same function as a `custom_vmap` whose rule is `lax.map`.

    Raises:
      ArgumentError: `f` is not callable.

    Example:
      >>> twice = sequential_vmap(lambda x: x * 2)
      >>> graph = fxflow.make_graph(fxflow.vmap(twice))(fnp.ones(3))
      >>> [node.primitive.name for node in graph.nodes]
      ['scan']
    """
    function = custom_vmap(f)
    called: Callable[..., Any] = function

    @function.def_vmap
    def rule(
        axis_size: int, in_batched: Any, *args: Any, active: Any = None
    ) -> tuple[Any, Any]:
        leaves, treedef = tree.flatten(args)
        flags = tree.leaves(in_batched)
        if any(type(typeof(leaf)) is AbstractRef for leaf in leaves):
            raise ArgumentError(
                f"sequential_vmap: {name_of(f)} is given a reference, which has no "
                "slices: use custom_vmap, with a rule that reads and writes all rows"
            )

        def one(slices: Sequence[Any]) -> Any:
            given = iter(slices)
            values = [
                next(given) if flag else leaf
                for leaf, flag in zip(leaves, flags, strict=True)
            ]
            return called(*treedef.unflatten(values))

        def one_of(slices: Sequence[Any]) -> Any:
            wanted, *rest = slices
            none = lambda *_: tree.map(_zeros, eval_shape(one, rest))
            return cond(wanted, lambda *rest: one(rest), none, *rest)

        mapped = [leaf for leaf, flag in zip(leaves, flags, strict=True) if flag]
        out = map_(one, mapped) if active is None else map_(one_of, [active, *mapped])
        return out, tree.map(lambda _: True, out)

    return function
