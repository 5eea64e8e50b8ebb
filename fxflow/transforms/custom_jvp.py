"""`custom_jvp`: a function whose derivative the user gives, for both modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.arrays.array import kind_of
from fxflow.core.boundary import require_callable
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.trace import by_user
from fxflow.errors import ArgumentError
from fxflow.lax.custom_calls import CustomJVPCall
from fxflow.lax.custom_rules import TracedJVPRule
from fxflow.transforms.custom_function import (
    Call,
    CustomFunction,
    arrays,
    checked_values,
    same_structure,
)
from fxflow.transforms.tangents import checked_tangent

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., tuple[Any, Any]])


class custom_jvp(CustomFunction[P, R]):
    """Gives a function a derivative of your own, for forward and reverse mode.

    For functions whose derivative is not what their operations say: more stable,
    cheaper or defined where they are not. The rule is used by all that differentiates,
    in any nesting; it is itself differentiated for second derivatives.

    Args:
      fun: function of arrays or pytrees of them.
      nondiff_argnums: positions of arguments that are not arrays to differentiate with
        respect to (functions, options); the rule gets them first.
      nondiff_argnames: the same by name.

    Example:
      >>> @custom_jvp
      ... def log1pexp(x):
      ...     return lax.log(lax.add(1.0, lax.exp(x)))
      >>> @log1pexp.defjvp
      ... def rule(primals, tangents):
      ...     (x,), (t,) = primals, tangents
      ...     return log1pexp(x), lax.mul(t, lax.logistic(x))
      >>> float(fxflow.grad(log1pexp)(100.0))
      1.0

    Source: the pushforward as primitive; Griewank & Walther, Evaluating Derivatives,
    2008.
    """

    kind = "custom_jvp"
    setter = "defjvp"
    primitive = CustomJVPCall
    jvp: Callable[..., Any] | None = None

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Sets the rule.

        Args:
          jvp: called as `jvp(*nondiff, primals, tangents)` with two tuples that have
            one entry for each differentiable argument; returns the result and its
            tangent, linear in `tangents`. Tangents of integers have dtype float0.
          symbolic_zeros: whether tangents known to be zero are `SymbolicZero` objects
            (with `shape` and `dtype`) and not arrays of zeros.

        Returns:
          `jvp`, so this may be a decorator.
        """
        require_callable(jvp, f"defjvp of {self.name}")
        self.jvp = jvp
        self.symbolic_zeros: bool = bool(symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets the rule as one function for each argument.

        Args:
          *jvps: for each argument None (no derivative with respect to it) or a function
            `jvp(tangent, result, *primals)` that returns its contribution to the
            tangent of the result.

        Raises:
          ArgumentError: there are `nondiff_argnums`.
        """
        if self._fixed:
            raise ArgumentError(
                f"defjvps of {self.name}: rules for each argument do not go with "
                "nondiff_argnums: use defjvp"
            )

        function: Callable[..., Any] = self

        def rule(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise ArgumentError(
                    f"defjvps of {self.name}: {len(jvps)} rules were given for "
                    f"{len(primals)} arguments: give one, or None, for each"
                )
            out = function(*primals)
            leaves, treedef = tree.flatten(out)
            # Symbolic zeros, so that rules of constant arguments are never run.
            total: list[Any] = [Zero(typeof(leaf).tangent()) for leaf in leaves]
            for jvp, tangent in zip(jvps, tangents, strict=True):
                parts = tree.leaves(tangent)
                if jvp is None or all(type(t) is Zero for t in parts):
                    continue
                part = jvp(tree.map(arith.instantiate, tangent), out, *primals)
                given = same_structure(
                    treedef, part, f"defjvps: a tangent of {self.name}"
                )
                total = [arith.add(t, g) for t, g in zip(total, given, strict=True)]
            return out, treedef.unflatten(total)

        self.defjvp(rule, symbolic_zeros=True)

    def _passes(self) -> tuple[Callable[..., Any] | None, ...]:
        """The rule itself."""
        return (self.jvp,)

    def _rule(self, call: Call) -> UserJVPRule:
        """See `CustomFunction`."""
        assert self.jvp is not None
        return UserJVPRule(self.jvp, self.name, call, self.symbolic_zeros)

    def _recorded(self, rule: UserJVPRule, call: Call) -> TracedJVPRule:
        """See `CustomFunction`."""
        return TracedJVPRule(rule, call.in_avals)


class UserJVPRule(Frozen, eq=False):
    """The user's rule as a flat one; checks what it returns."""

    jvp: Callable[..., Any]
    name: str
    of: Call
    symbolic_zeros: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """What is equal for the rule of each trace of the function."""
        return self.jvp, *map(id, self.of.fixed)

    def __call__(
        self, consts: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """See `custom_rules.JVPRule`."""
        if not self.symbolic_zeros:
            tangents = [arith.instantiate(t) for t in tangents]
        of = self.of
        pair = by_user(
            self.jvp,
            *of.fixed,
            of.in_tree.unflatten(arrays(primals)),
            of.in_tree.unflatten(arrays(tangents)),
        )
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ArgumentError(
                f"custom_jvp: the rule of {self.name} must return a pair (result, "
                f"tangent), got {kind_of(pair)}"
            )
        what = f"custom_jvp: the result that the rule of {self.name} returns"
        outs = same_structure(of.out_tree, pair[0], what)
        outs = checked_values(outs, of.out_avals, what)
        what = f"custom_jvp: the tangent that the rule of {self.name} returns"
        given = same_structure(of.out_tree, pair[1], what)
        return outs, [
            checked_tangent(t, aval, what)
            for t, aval in zip(given, of.out_avals, strict=True)
        ]
