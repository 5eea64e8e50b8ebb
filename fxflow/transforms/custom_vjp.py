"""`custom_vjp`: a function whose reverse derivative the user gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import is_arraylike
from fxflow.core.arrays.array import kind_of
from fxflow.core.boundary import require_callable
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.trace import by_user
from fxflow.core.tree.paths import describe, keystr
from fxflow.errors import ArgumentError, TreeError
from fxflow.lax.custom_calls import CustomVJPCall
from fxflow.lax.custom_rules import Backward, TracedVJPRule
from fxflow.transforms.arguments import joined
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


@dataclass(frozen=True, slots=True)
class CustomVJPPrimal:
    """An argument of a forward pass with `symbolic_zeros=True`.

    Attributes:
      value: the array.
      perturbed: whether its cotangent is wanted.
    """

    value: Any
    perturbed: bool


class custom_vjp(CustomFunction[P, R]):
    """Gives a function a reverse derivative of your own.

    For functions whose backward pass should be something else: gradient clipping, a
    fixed point solved by its own equation, less memory. Forward mode is not defined.
    The passes may use traced values from outside, which have no derivative through
    them; the function itself may not use one that is being differentiated.

    Args:
      fun: function of arrays or pytrees of them.
      nondiff_argnums: positions of arguments that are not arrays to differentiate with
        respect to (functions, options); the backward pass gets them first.
      nondiff_argnames: the same by name.

    Example:
      >>> @custom_vjp
      ... def clipped(x):
      ...     return x
      >>> clipped.defvjp(
      ...     lambda x: (x, None), lambda _, ct: (lax.clamp(-1.0, ct, 1.0),)
      ... )
      >>> float(fxflow.grad(lambda x: lax.mul(clipped(x), 5.0))(2.0))
      1.0

    Source: the pullback as primitive; Griewank & Walther, Evaluating Derivatives, 2008.
    """

    kind = "custom_vjp"
    setter = "defvjp(fwd, bwd)"
    primitive = CustomVJPCall
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
    ) -> None:
        """Sets the rule.

        Args:
          fwd: called like the function; returns the result and the residuals: what the
            backward pass needs (any pytree).
          bwd: called as `bwd(*nondiff, residuals, cotangent)`; returns a tuple with the
            cotangent of each differentiable argument (None for zero).
          symbolic_zeros: whether `fwd` gets `CustomVJPPrimal(value, perturbed)` in
            place of each array, and `bwd` gets `SymbolicZero` objects for cotangents
            known to be zero.
        """
        require_callable(fwd, f"defvjp of {self.name}: fwd")
        require_callable(bwd, f"defvjp of {self.name}: bwd")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros: bool = bool(symbolic_zeros)

    def _passes(self) -> tuple[Callable[..., Any] | None, ...]:
        """The forward and the backward pass."""
        return self.fwd, self.bwd

    def _rule(self, call: Call) -> UserVJPRule:
        """See `CustomFunction`."""
        assert self.fwd is not None and self.bwd is not None
        return UserVJPRule(self.fwd, self.bwd, self.name, call, self.symbolic_zeros)

    def _recorded(self, rule: UserVJPRule, call: Call) -> TracedVJPRule:
        """See `CustomFunction`."""
        return TracedVJPRule(rule, call.in_avals, call.out_avals)


class UserVJPRule(Frozen, eq=False):
    """The user's passes as flat ones; checks what they return."""

    fwd: Callable[..., Any]
    bwd: Callable[..., Any]
    name: str
    of: Call
    symbolic_zeros: bool

    def forward(
        self, consts: Sequence[Any], primals: Sequence[Any], active: Sequence[bool]
    ) -> tuple[list[Any], list[Any], Backward]:
        """See `custom_rules.VJPRule`."""
        primals = arrays(primals)
        if self.symbolic_zeros:
            primals = [
                CustomVJPPrimal(p, bool(live))
                for p, live in zip(primals, active, strict=True)
            ]
        of = self.of
        others = of.in_tree.unflatten(primals)
        pair = by_user(self.fwd, *joined(of.positions, of.fixed, others))
        if not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ArgumentError(
                f"custom_vjp: the forward pass of {self.name} must return a pair "
                f"(result, what the backward pass needs), got {kind_of(pair)}"
            )
        what = f"custom_vjp: the result that the forward pass of {self.name} returns"
        outs = same_structure(of.out_tree, pair[0], what)
        outs = checked_values(outs, of.out_avals, what)
        leaves, treedef = tree.flatten(pair[1])
        # Arrays alone can be operands; other leaves stay in the closure.
        residuals = [x for x in leaves if _is_residual(x)]
        # In a tuple, to tell the option None from no option.
        options = [None if _is_residual(x) else (x,) for x in leaves]
        return outs, residuals, _UserBackward(self, treedef, options)


def _is_residual(value: Any) -> bool:
    """Returns whether a leaf is an array; Python numbers and objects stay as is."""
    return is_arraylike(value) and not isinstance(value, bool | int | float | complex)


class _UserBackward(Frozen, eq=False):
    """The user's backward pass as a flat one.

    Attributes:
      rule: it belongs to.
      treedef: structure of the residuals, as the forward pass returned them.
      options: for each leaf of them None if it is an array, else `(leaf,)`.
    """

    rule: UserVJPRule
    treedef: Any
    options: list[tuple[Any] | None]

    def __call__(
        self, residuals: Sequence[Any], cotangents: Sequence[Any]
    ) -> list[Any]:
        """Returns a cotangent for each primal."""
        rule = self.rule
        rest = iter(residuals)
        needed = [next(rest) if o is None else o[0] for o in self.options]
        if not rule.symbolic_zeros:
            cotangents = [arith.instantiate(ct) for ct in cotangents]
        out = by_user(
            rule.bwd,
            *rule.of.fixed,
            self.treedef.unflatten(needed),
            rule.of.out_tree.unflatten(arrays(cotangents)),
        )
        parts = rule.of.in_tree.children()
        if not isinstance(out, tuple | list) or len(out) != len(parts):
            count = f"{len(parts)} entr{'y' if len(parts) == 1 else 'ies'}"
            raise TreeError(
                f"custom_vjp: the backward pass of {rule.name} must return a tuple of "
                f"{count}, the cotangents of its arguments, got {describe(out)}"
            )
        what = (
            f"custom_vjp: the cotangent that the backward pass of {rule.name} returns "
            "for argument "
        )
        flat: list[Any] = []
        labels: list[str] = []
        for i, (part, ct) in enumerate(zip(parts, out, strict=True)):
            flat += matched_leaves(part, ct, f"{what}{i}")
            inside = tree.leaves_with_path(part.unflatten(range(part.num_leaves)))
            labels += [f"{what}{i}{keystr(path)}" for path, _ in inside]
        return [
            Zero(aval.tangent())
            if ct is None
            else checked_tangent(ct, aval, label, numbers=True)
            for ct, aval, label in zip(flat, rule.of.in_avals, labels, strict=True)
        ]


_PYTHON = (tuple, list, dict)


def matched_leaves(treedef: Any, value: Any, what: str) -> list[Any]:
    """Returns the leaves of cotangents; None stands for zeros in a whole subtree.

    Raises:
      TreeError: the structure is not that of the argument.
    """
    if value is None:
        return [None] * treedef.num_leaves
    if tree.treedef_is_leaf(treedef):
        if not tree.all_leaves([value]):
            raise TreeError(f"{what} must be an array, got {describe(value)}")
        return [value]
    leaves, given = tree.flatten(value)
    if given == treedef:
        return leaves
    # An argument that is None has no cotangent; rules for JAX may return one.
    if not treedef.num_leaves and tree.all_leaves([value]):
        return []
    data = treedef.node_data()
    children = treedef.children()
    is_leaf = tree.all_leaves([value])
    # A class around one array, such as a parameter: the array itself will do.
    if is_leaf and treedef.num_leaves == 1 and data and data[0] not in _PYTHON:
        return [value]
    parts = [] if is_leaf else list(tree.flatten_one_level(value)[0])
    # The structures differ; that is right only where None stands for a subtree.
    if data is None or type(value) is not data[0] or len(parts) != len(children):
        raise TreeError(
            f"{what} must have the structure of the argument, "
            f"{tree.written(treedef)}, got {tree.written(given)}"
        )
    return [
        leaf
        for child, part in zip(children, parts, strict=True)
        for leaf in matched_leaves(child, part, what)
    ]
