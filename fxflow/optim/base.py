"""Gradient transformations: the parts of optimizers.

A `GradientTransformation` is a pair of pure functions. `init(params)` makes a state;
`update(updates, state, params)` maps gradients to updates and the state to the next
state. There is no hidden state, so a whole training step can be compiled, and states
are pytrees whose leaves keep their shapes and dtypes: they can be donated, scanned,
sharded and saved.

    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))
    state = optimizer.init(params)
    updates, state = optimizer.update(gradients, state, params)
    params = optim.apply_updates(params, updates)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from fxflow import numpy as fnp
from fxflow._names import answer_attributes
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import shown
from fxflow.core.source import at_fault
from fxflow.errors import ArgumentError, ShapeError, TreeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.numerics import widened
from fxflow.optim.tree import norm

T = TypeVar("T")
Params = Any
Updates = Any
State = Any
Scalar = Any
Rate = Any
Schedule = Callable[[Any], Any]
ScalarOrSchedule = Any
Mask = Any
TransformInitFn = Callable[[Params], State]

MAX_COUNT = 2**31 - 1


class TransformUpdateFn(Protocol):
    """The type of a transformation's `update`."""

    def __call__(
        self, updates: Updates, state: State, params: Params | None = None
    ) -> tuple[Updates, State]:
        """Returns updates and the next state."""
        ...


class TransformUpdateExtraArgsFn(Protocol):
    """The type of an `update` that takes extra keyword arguments."""

    def __call__(
        self,
        updates: Updates,
        state: State,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, State]:
        """Returns updates and the next state."""
        ...


class GradientTransformation(NamedTuple):
    """A pair of pure functions that turn gradients into updates.

    Attributes:
      init: `init(params) -> state`.
      update: `update(updates, state, params=None) -> (updates, state)`.
    """

    init: TransformInitFn
    update: TransformUpdateFn


answer_attributes(GradientTransformation)
Tx = TypeVar("Tx", bound=GradientTransformation)


class GradientTransformationExtraArgs(GradientTransformation):
    """A transformation whose `update` takes extra keyword arguments.

    For example `value`, the loss. `chain` and the wrappers pass extra arguments only to
    parts of this class.
    """

    if TYPE_CHECKING:

        @property
        def update(self) -> TransformUpdateExtraArgsFn:
            """Takes extra keyword arguments."""


def with_extra_args_support(
    tx: GradientTransformation,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that accepts extra keyword arguments.

    Args:
      tx: a transformation.

    Returns:
      `tx` itself if it takes extra arguments, else one that ignores them.

    Example:
      >>> tx = optim.with_extra_args_support(optim.identity())
      >>> tx.update(1.5, tx.init(0.0), value=3.0)[0]
      1.5
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    if not (hasattr(tx, "init") and hasattr(tx, "update")):
        raise ArgumentError(
            f"{at_fault(tx)}expected a gradient transformation, such as optim.sgd(0.1) "
            f"makes, got {shown(tx)}"
        )

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra: Any
    ) -> tuple[Updates, State]:
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


class EmptyState(NamedTuple):
    """The state of a stateless transformation."""


def stateless(
    f: Callable[[Updates, Params | None], Updates],
) -> GradientTransformation:
    """Makes a transformation from a function of updates and parameters.

    Args:
      f: `f(updates, params) -> updates`.

    Returns:
      A transformation without state.

    Example:
      >>> double = optim.stateless(lambda updates, params: 2 * updates)
      >>> double.update(1.5, double.init(0.0))[0]
      3.0
    """

    def init(params: Params) -> EmptyState:
        return EmptyState()

    def update(
        updates: Updates, state: EmptyState, params: Params | None = None
    ) -> tuple[Updates, EmptyState]:
        return f(updates, params), state

    return GradientTransformation(init, update)


def stateless_with_tree_map(
    f: Callable[[Any, Any], Any],
) -> GradientTransformation:
    """Makes a transformation from a function of one update and one parameter.

    Args:
      f: `f(update, param) -> update`, called for each array; `param` is None if
        `update` is called without parameters.

    Returns:
      A transformation without state.

    Example:
      >>> tx = optim.stateless_with_tree_map(lambda u, p: u * p)
      >>> tx.update([2.0], tx.init([3.0]), [3.0])[0]
      [6.0]
    """

    def all_of(updates: Updates, params: Params | None) -> Updates:
        if params is None:
            return tree.map(lambda u: f(u, None), updates)
        return tree.map(f, updates, params)

    return stateless(all_of)


def identity() -> GradientTransformation:
    """Makes the transformation that leaves updates unchanged.

    Returns:
      A transformation without state.

    Example:
      >>> optim.identity().update(1.5, optim.EmptyState())[0]
      1.5
    """
    return stateless(lambda updates, params: updates)


def set_to_zero() -> GradientTransformation:
    """Makes the transformation that sets updates to 0: parameters do not change.

    Returns:
      A transformation without state.

    Example:
      >>> optim.set_to_zero().update(fnp.ones(2), optim.EmptyState())[0].tolist()
      [0.0, 0.0]
    """
    return stateless(lambda updates, params: tree.map(fnp.zeros_like, updates))


def apply_updates(params: T, updates: Updates) -> T:
    """Adds updates to parameters.

    Args:
      params: pytree of arrays.
      updates: pytree of the same structure.

    Returns:
      The sums, in the dtypes of the parameters.

    Raises:
      TreeError: the structures differ.

    Example:
      >>> optim.apply_updates({"w": fnp.ones(2)}, {"w": fnp.ones(2)})["w"].tolist()
      [2.0, 2.0]

      A step of training:

      >>> adam = optim.adam(0.1)
      >>> params = {"w": fnp.array([1.0, -2.0])}
      >>> state = adam.init(params)
      >>> gradient = fxflow.grad(lambda p: fnp.sum(p["w"] ** 2))(params)
      >>> updates, state = adam.update(gradient, state, params)
      >>> print(optim.apply_updates(params, updates)["w"].round(1))
      [ 0.9 -1.9]
    """

    def add(param: Any, update: Any) -> Any:
        return cast_like(fnp.add(param, update), param)

    try:
        new: T = tree.map(add, params, updates)
    except TreeError as error:
        # What `update` returns, not unpacked.
        pair = isinstance(updates, tuple) and len(updates) == 2
        raise TreeError(
            "apply_updates: the updates must have the structure of the parameters: "
            f"{str(error).removeprefix('tree.map: ')}"
            + "; update returns a pair, (updates, state)"
            * pair
        ) from None
    return new


# -- composition -----------------------------------------------------------------------


def chain(
    *transformations: GradientTransformation,
) -> GradientTransformationExtraArgs:
    """Composes transformations, applied in order.

    Args:
      *transformations: the transformations; the first one gets the gradients.

    Returns:
      A transformation whose state is the tuple of their states. Its `update` passes
      extra keyword arguments to those that take them.

    Raises:
      ArgumentError: (from `update`) the state belongs to another chain.

    Example:
      >>> both = optim.chain(optim.clip(1.0), optim.scale(-0.5))
      >>> state = both.init(fnp.zeros(2))
      >>> both.update(fnp.array([3.0, 0.5]), state)[0].tolist()
      [-0.5, -0.25]
    """
    parts = tuple(map(with_extra_args_support, transformations))

    def init(params: Params) -> tuple[State, ...]:
        return tuple(part.init(params) for part in parts)

    def update(
        updates: Updates,
        state: tuple[State, ...],
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, tuple[State, ...]]:
        held_by: Any = state
        held = len(held_by) if isinstance(held_by, tuple | list) else None
        if held != len(parts):
            given = f"{held}"
            if held is None:
                kind = type(held_by).__name__
                given = "None" if kind == "NoneType" else f"a {kind}"
            raise ArgumentError(
                f"update: the state must hold the states of {len(parts)} "
                f"transformations, from this optimizer's init, got {given}: call "
                "update(updates, state, params)"
            )
        new = []
        for part, own in zip(parts, state, strict=True):
            try:
                updates, own = part.update(updates, own, params, **extra)
            except (TreeError, ShapeError) as error:
                error.args = (f"{error}{_misfit(own, updates)}",)
                raise
            new.append(own)
        return updates, tuple(new)

    return GradientTransformationExtraArgs(init, update)


def _misfit(state: State, updates: Updates) -> str:
    """Describes a tree of a state whose structure is not that of the updates, or ""."""
    wanted = tree.structure(updates)
    for field in getattr(state, "_fields", ()):
        value = getattr(state, field)
        kept = tree.structure(value)
        # Counts and the states of wrapped transformations have other structures.
        nested = isinstance(value, tuple) and not isinstance(updates, tuple)
        if not nested and not tree.treedef_is_leaf(kept) and kept != wanted:
            return (
                f": .{field} of the optimizer's {type(state).__name__} is "
                f"{tree.written(kept)}, the updates are {tree.written(wanted)}, each * "
                "an array: a state belongs to the parameters that init got"
            )
        if kept != wanted:
            continue
        for (path, old), new in zip(
            tree.leaves_with_path(value), tree.leaves(updates), strict=True
        ):
            if typeof(old).shape != typeof(new).shape:
                return (
                    f": .{field}{tree.keystr(path)} of the optimizer's "
                    f"{type(state).__name__} is {typeof(old)}, the update is "
                    f"{typeof(new)}: a state belongs to the parameters that init got"
                )
    return ""


def named_chain(
    *transformations: tuple[str, GradientTransformation],
) -> GradientTransformationExtraArgs:
    """Composes named transformations; like `chain`, with states by name.

    Args:
      *transformations: pairs of a name and a transformation.

    Returns:
      A transformation whose state is a dictionary of their states. Its `update` passes
      extra keyword arguments to those that take them.

    Raises:
      ArgumentError: a name occurs twice.

    Example:
      >>> both = optim.named_chain(("clip", optim.clip(1.0)), ("lr", optim.scale(0.1)))
      >>> sorted(both.init(0.0))
      ['clip', 'lr']
    """
    for part in transformations:
        if not (
            isinstance(part, tuple | list)
            and len(part) == 2
            and isinstance(part[0], str)
        ):
            raise ArgumentError(
                f"named_chain: expected pairs (name, transformation), got {part!r}"
            )
    names = [name for name, _ in transformations]
    if len(set(names)) != len(names):
        raise ArgumentError(f"named_chain: names must differ, got {names}")
    parts = {name: with_extra_args_support(tx) for name, tx in transformations}

    def init(params: Params) -> dict[str, State]:
        return {name: part.init(params) for name, part in parts.items()}

    def update(
        updates: Updates,
        state: dict[str, State],
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, dict[str, State]]:
        new = {}
        for name, part in parts.items():
            updates, new[name] = part.update(updates, state[name], params, **extra)
        return updates, new

    return GradientTransformationExtraArgs(init, update)


# -- helpers of transformations --------------------------------------------------------


def need_params(name: str, params: Params | None) -> Params:
    """Returns the parameters.

    Args:
      name: name of the transformation, for messages.
      params: the argument of `update`.

    Returns:
      `params`.

    Raises:
      ArgumentError: `params` is None.
    """
    if params is None:
        raise ArgumentError(
            f"{name}: needs the parameters: call update(updates, state, params)"
        )
    return params


def need_extra(name: str, what: str, given: Any) -> Any:
    """Returns an extra keyword argument of `update`.

    Args:
      name: name of the transformation, for messages.
      what: the argument's name.
      given: the argument of `update`.

    Returns:
      `given`.

    Raises:
      ArgumentError: `given` is None.
    """
    if given is None:
        raise ArgumentError(
            f"{name}: needs {what}: call update(updates, state, params, {what}=...)"
        )
    return given


def in_float32(tx: Tx) -> Tx:
    """Makes a transformation that computes in float32 if gradients have 16 bits.

    Moments, norms and ε are too inaccurate in float16 and bfloat16: squares overflow or
    underflow, and a decay of 0.999 rounds to 1. Therefore `tx` gets its arguments in
    float32, and updates and the state are converted back to their dtypes; a new state
    has the dtypes that `tx.init` gives for float32 parameters.

    Args:
      tx: a transformation whose updates have the structure of the gradients.

    Returns:
      A transformation of the same class.
    """

    def init(params: Params) -> State:
        return tx.init(tree.map(widened, params))

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra: Any
    ) -> tuple[Updates, State]:
        wide = [tree.map(widened, part) for part in (updates, state, params)]
        new, kept = tx.update(*wide, **extra)
        new = tree.map(_narrowed, new, updates)
        return new, tree.map(cast_like, kept, state)

    update.within = tx  # type: ignore[attr-defined] # for `wide_chain`
    return type(tx)(init, update)


def wide_chain(
    *transformations: GradientTransformation,
) -> GradientTransformationExtraArgs:
    """Composes transformations in float32, without rounding between them.

    Args:
      *transformations: the transformations; the first one gets the gradients.

    Returns:
      A transformation whose state is the tuple of their states.
    """
    # Convert once: the parts need not check each array again.
    parts = [getattr(part.update, "within", part) for part in transformations]
    return in_float32(chain(*parts))


def cast_like(x: Any, other: Any) -> Any:
    """Returns an array in the dtype of another.

    Args:
      x: array.
      other: array.

    Returns:
      `x` in the dtype of `other`.
    """
    dtype = typeof(other).dtype
    return x if typeof(x).dtype == dtype else fnp.astype(x, dtype)


def _narrowed(update: Any, gradient: Any) -> Any:
    """Returns an update in the dtype of its gradient, unless that is an integer."""
    inexact = dtypes.is_inexact(typeof(gradient).dtype)
    return cast_like(update, gradient) if inexact else update


def zero_count() -> Array:
    """Returns the initial number of updates.

    Returns:
      int32[], 0.
    """
    return fnp.zeros((), dtypes.int32)


def safe_increment(count: ArrayLike) -> Array:
    """Returns a count plus one, at most the largest int32.

    Args:
      count: int32[].

    Returns:
      int32[].

    Example:
      >>> int(optim.safe_increment(fnp.asarray(2**31 - 1)))
      2147483647
    """
    return fnp.where(fnp.less(count, MAX_COUNT), fnp.add(count, 1), MAX_COUNT)


def global_norm(updates: Updates) -> Array:
    r"""Returns the Euclidean norm of all arrays of a pytree: :math:`\sqrt{\sum |x|^2}`.

    Args:
      updates: pytree of arrays.

    Returns:
      A 0-d float array.

    Special cases:
      The derivative at 0 is 0.

    Example:
      >>> float(optim.global_norm([fnp.array([3.0]), fnp.array(4.0)]))
      5.0
    """
    return norm(updates)


def real_parts(params: Params) -> Params:
    """Returns the real parts of parameters, as a template for squares."""
    return tree.map(lambda p: fnp.real(p) if fnp.iscomplexobj(p) else p, params)
