"""Creates symbolic sizes: `symbolic_shape`, `symbolic_args_specs`, `SymbolicScope`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import ShapeDtypeStruct
from fxflow.core.arrays.array import like_type
from fxflow.core.sizes import Monomial, Scope, Size, quotient_of
from fxflow.core.sizes.bounds import bounds_of_name, upper_bound
from fxflow.core.sizes.texts import parsed
from fxflow.errors import ArgumentError, ShapeError

_CONSTRAINT = re.compile(r"^(.*?)(>=|<=|==)(.*)$")


class SymbolicScope(Scope):
    """A scope of names of symbolic sizes, with constraints on them.

    Sizes of different scopes cannot be combined, even if their names are equal.

    Args:
      constraints: constraints that hold in each call, which checks them, such as
        `"b >= 4"`, `"t <= 2*b"`, `"mod(b, 8) == 0"`. Names are always at least 1.

    Raises:
      ArgumentError: a constraint cannot be parsed, or contradicts the previous ones.

    Example:
      >>> scope = SymbolicScope(["b >= 4", "mod(t, 2) == 0"])
      >>> b, t = symbolic_shape("b, t", scope=scope)
      >>> b >= 3, t // 2 * 2 == t
      (True, True)

    Source: `jax.export.SymbolicScope`.
    """

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        super().__init__()
        if isinstance(constraints, str):
            raise ArgumentError(
                "symbolic_shape: constraints must be a sequence of strings, got "
                f"{constraints!r}: write [{constraints!r}]"
            )
        for text in constraints:
            self._add(text)

    def _add(self, text: str) -> None:
        found = _CONSTRAINT.match(text) if isinstance(text, str) else None
        if found is None:
            raise ArgumentError(
                "symbolic_shape: a constraint must be a string such as 'b >= 4', "
                f"'b <= t' or 'mod(b, 8) == 0', got {text!r}"
            )
        left, right = (self._read(part, text) for part in (found[1], found[3]))
        difference = right - left if found[2] == "<=" else left - right
        exact = found[2] == "=="
        if isinstance(difference, int):
            if difference != 0 if exact else difference < 0:
                raise ArgumentError(
                    f"symbolic_shape: no size satisfies the constraint {text!r} "
                    f"({self.describe()})"
                )
            return
        self.checks.append((text.strip(), difference, exact))
        self.facts.append(difference)
        if exact:
            self.facts.append(-difference)
            self._rewrite(difference)
        # Cached bounds did not use the new constraint.
        self.least.clear()
        for fact in self.facts:
            ends = [bounds_of_name(name, self) for name in fact.names()]
            if upper_bound(fact) < 0 or any(low > high for low, high in ends):
                raise ArgumentError(
                    f"symbolic_shape: the constraint {text!r} contradicts the others "
                    f"({self.describe()})"
                )

    def _read(self, part: str, text: str) -> Any:
        try:
            return parsed(part, self)
        except ValueError as error:
            raise ArgumentError(
                f"symbolic_shape: in the constraint {text!r}, {error} is not a size"
            ) from None

    def _rewrite(self, zero: Size) -> None:
        """Adds a rewrite rule for an equality."""
        found: list[Monomial] = [m for m, c in zero.terms.items() if m and abs(c) == 1]
        if not found:
            return
        # Quotients and remainders before names, longer products before shorter ones.
        lead = max(found, key=_weight)
        rest = {m: c for m, c in zero.terms.items() if m != lead}
        if any(quotient_of(m, lead) is not None for m in rest):
            return
        other: Any = 0
        for monomial, count in rest.items():
            other = other + Size({monomial: count}, self)
        self.rewrites[lead] = other * -zero.terms[lead]

    def __repr__(self) -> str:
        return f"SymbolicScope({[text for text, *_ in self.checks]})"


def _weight(monomial: Monomial) -> tuple[int, int, str]:
    made_of = sum(not isinstance(atom, str) for atom, _ in monomial)
    return made_of, sum(power for _, power in monomial), str(monomial)


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """Returns a shape with symbolic sizes, which each call determines.

    Sizes support integer arithmetic (`+`, `*`, `//`, `%`, `divmod`; `max` and `min`
    arise from the shapes of `fnp` functions). A comparison whose result is not the same
    in all calls raises an error. Each name is an integer of at least 1.

    Args:
      shape_spec: comma-separated lengths, such as `"b, 2*t, 3"`, of names, integers,
        `+ - * ^`, `floordiv(a, b)`, `mod(a, b)`, `max(a, b)`, `min(a, b)`. `_` is the
        length of that axis of `like`, and `...` all remaining ones. None is `"..."`.
      constraints: constraints that hold in each call, such as `"b >= 4"`,
        `"mod(b, 8) == 0"`.
      scope: scope of the names, with its constraints; share one so that equal names are
        equal sizes. None: a new scope.
      like: the shape for `_` and `...`.

    Returns:
      A tuple of integers and sizes, for `ShapeDtypeStruct`.

    Raises:
      ArgumentError: `shape_spec` cannot be parsed, or both a scope and constraints are
        given.
      ShapeError: a length is negative, or `like` has another number of axes.

    Example:
      >>> shape = symbolic_shape("b, 2*t", constraints=["b >= 4"])
      >>> shape
      (b, 2*t)
      >>> f = fxflow.jit(lambda x: x.reshape(-1, 2).sum(1))
      >>> exported = fxflow.export.export(f)(fxflow.ShapeDtypeStruct(shape, "float32"))
      >>> exported
      <Exported <lambda>(f32[b,2*t]) -> (f32[b*t])>
      >>> exported.call(fnp.ones((4, 6))).shape
      (12,)

    Source: `jax.export.symbolic_shape`.
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif not isinstance(scope, SymbolicScope):
        raise ArgumentError(
            f"symbolic_shape: scope must be a SymbolicScope, got {type(scope).__name__}"
        )
    elif constraints:
        raise ArgumentError(
            "symbolic_shape: constraints belong to the scope: give them to "
            "SymbolicScope(constraints)"
        )
    if shape_spec is None:
        shape_spec = "..."
    if not isinstance(shape_spec, str):
        raise ArgumentError(
            f"symbolic_shape: the shape must be a string such as 'b, 4', got "
            f"{shape_spec!r}"
        )
    return tuple(
        _dimension(text, shape_spec, scope, known)
        for text, known in _filled(shape_spec, like)
    )


def _filled(spec: str, like: Sequence[int | None] | None) -> list[tuple[str, Any]]:
    """Returns the text of each axis, and its length in `like`."""
    text = spec.strip()
    if text.startswith("(") and _closes(text) == len(text) - 1:
        text = text[1:-1].strip()
    parts = _split(text)
    if parts and not parts[-1]:
        parts.pop()
    known = None if like is None else tuple(like)
    if "..." in parts:
        at = parts.index("...")
        if known is None or parts.count("...") > 1:
            raise ArgumentError(
                f"symbolic_shape: '...' in {spec!r} stands for the axes of like=, once"
            )
        count = len(known) - len(parts) + 1
        parts[at : at + 1] = ["_"] * count
    if known is not None and len(known) != len(parts):
        raise ShapeError(
            f"symbolic_shape: {spec!r} has {len(parts)} axes, but like={known} has "
            f"{len(known)}"
        )
    return list(zip(parts, known or [None] * len(parts), strict=True))


def _closes(text: str) -> int:
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return i
    return -1


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts] if text else []


def _dimension(text: str, spec: str, scope: Scope, known: Any) -> Any:
    if text == "_":
        if known is None:
            raise ArgumentError(
                f"symbolic_shape: '_' in {spec!r} is the length of that axis of like="
            )
        return known
    try:
        size = parsed(text, scope)
    except ValueError as error:
        raise ArgumentError(
            f"symbolic_shape: in {spec!r}, {error} is not a size: write names, "
            "integers, + - * ^, floordiv, mod, max, min"
        ) from None
    if isinstance(size, int) and size < 0:
        raise ShapeError(f"symbolic_shape: the length {text} in {spec!r} is negative")
    return size


def symbolic_args_specs(
    args: Any,
    shapes_specs: Any,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """Returns types with symbolic sizes for given arguments.

    Args:
      args: a pytree of arrays, or of objects with a shape and a dtype.
      shapes_specs: a string for `symbolic_shape`, with `_` and `...` for the lengths of
        the arguments; or None for all their lengths; or a pytree of these that is a
        prefix of `args`.
      constraints: see `symbolic_shape`.
      scope: see `symbolic_shape`.

    Returns:
      The pytree with a `ShapeDtypeStruct` for each array.

    Raises:
      ArgumentError: a string cannot be parsed, or a leaf has no shape and dtype.
      ShapeError: a string has another number of axes than its leaves.

    Example:
      >>> params = {"w": fnp.ones((3, 2)), "b": fnp.ones(2)}
      >>> symbolic_args_specs((params, fnp.ones((8, 3))), (None, "batch, ..."))
      ({'b': ShapeDtypeStruct(f32[2]), 'w': ShapeDtypeStruct(f32[3,2])}, \
ShapeDtypeStruct(f32[batch,3]))

    Source: `jax.export.symbolic_args_specs`.
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ArgumentError(
            "symbolic_args_specs: constraints belong to the scope: give them to "
            "SymbolicScope(constraints)"
        )
    leaves, treedef = tree.flatten(args)
    texts = tree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    specs = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = like_type(leaf)
        shape = symbolic_shape(text, scope=scope, like=aval.shape)
        specs.append(ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
    return treedef.unflatten(specs)
