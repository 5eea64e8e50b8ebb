"""Transformations of some of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow.core import tree
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    Params,
    State,
    Updates,
    set_to_zero,
    with_extra_args_support,
)
from fxflow.optim.states import is_placeholder


class MaskedNode(NamedTuple):
    """Replaces a parameter that is masked out: a pytree without leaves."""


class MaskedState(NamedTuple):
    """State of `masked`: the state of the inner transformation."""

    inner_state: State


class PartitionState(NamedTuple):
    """State of `multi_transform`: the state of each transformation."""

    inner_states: Mapping[Any, State]


def _only(chosen: Any, values: Any) -> Any:
    """Returns `values` with a `MaskedNode` wherever `chosen` (a prefix) is False."""

    def one(keep: Any, value: Any) -> Any:
        return value if keep else MaskedNode()

    return tree.map(one, chosen, values)


def _is_masked(x: Any) -> bool:
    return isinstance(x, MaskedNode)


def _merged(new: Updates, old: Updates) -> Updates:
    """Returns `new`, with the masked parts taken from `old`."""

    def one(made: Any, given: Any) -> Any:
        return given if _is_masked(made) else made

    return tree.map(one, new, old, is_leaf=_is_masked)


def masked(
    inner: GradientTransformation,
    mask: Mask,
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that changes only the updates of some parameters.

    Args:
      inner: the transformation.
      mask: the parameters it acts on: a pytree of bools (or a prefix of one), or a
        function from parameters (or updates) to such a pytree. The bools are Python's.
      mask_compatible_extra_args: whether to mask extra keyword arguments with the
        structure of the updates as well.

    Returns:
      A transformation; it keeps no state for masked parameters.

    Raises:
      TreeError: the mask is not a prefix of the parameters.

    Example:
      >>> params = {"w": fnp.ones(1), "b": fnp.ones(1)}
      >>> tx = optim.masked(optim.scale(0.0), {"w": True, "b": False})
      >>> new, _ = tx.update(params, tx.init(params))
      >>> float(new["w"][0]), float(new["b"][0])
      (0.0, 1.0)
    """
    inner = with_extra_args_support(inner)

    def chosen(values: Any) -> Any:
        return mask(values) if callable(mask) else mask

    def init(params: Params) -> MaskedState:
        if is_placeholder(params):
            return MaskedState(inner.init(params))
        return MaskedState(inner.init(_only(chosen(params), params)))

    def update(
        updates: Updates,
        state: MaskedState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, MaskedState]:
        where = chosen(updates)
        some = None if params is None else _only(where, params)
        if mask_compatible_extra_args:
            kind = tree.structure(updates)
            extra = {
                name: _only(where, value) if tree.structure(value) == kind else value
                for name, value in extra.items()
            }
        new, own = inner.update(_only(where, updates), state.inner_state, some, **extra)
        return _merged(new, updates), MaskedState(own)

    return GradientTransformationExtraArgs(init, update)


def multi_transform(
    transforms: Mapping[Any, GradientTransformation],
    param_labels: Any | Callable[[Params], Any],
    *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that treats groups of parameters differently.

    Args:
      transforms: a transformation for each label.
      param_labels: the label of each parameter: a pytree of labels (or a prefix of
        one), or a function from parameters to such a pytree.
      mask_compatible_extra_args: see `masked`.

    Returns:
      A transformation whose state holds the states of all.

    Raises:
      ArgumentError: a label has no transformation.
      TreeError: the labels are not a prefix of the parameters.

    Example:
      >>> params = {"w": fnp.ones(1), "b": fnp.ones(1)}
      >>> tx = optim.multi_transform(
      ...     {"fast": optim.sgd(1.0), "frozen": optim.set_to_zero()},
      ...     {"w": "fast", "b": "frozen"},
      ... )
      >>> new, _ = tx.update(params, tx.init(params))
      >>> float(new["w"][0]), float(new["b"][0])
      (-1.0, 0.0)
    """

    def labels_of(values: Any) -> Any:
        return param_labels(values) if callable(param_labels) else param_labels

    def group(label: Any) -> GradientTransformationExtraArgs:
        def mask(values: Any) -> Any:
            return tree.map(lambda own: own == label, labels_of(values))

        return masked(
            transforms[label],
            mask,
            mask_compatible_extra_args=mask_compatible_extra_args,
        )

    groups = {label: group(label) for label in transforms}

    def init(params: Params) -> PartitionState:
        if is_placeholder(params):
            return PartitionState({n: tx.init(params) for n, tx in groups.items()})
        used = set(tree.leaves(labels_of(params)))
        unknown = sorted(map(repr, used - set(transforms)))
        if unknown:
            raise ArgumentError(
                f"multi_transform: labels {', '.join(unknown)} have no transformation; "
                f"the known labels are {', '.join(map(repr, transforms))}"
            )
        return PartitionState({label: tx.init(params) for label, tx in groups.items()})

    def update(
        updates: Updates,
        state: PartitionState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, PartitionState]:
        new = {}
        for label, tx in groups.items():
            updates, new[label] = tx.update(
                updates, state.inner_states[label], params, **extra
            )
        return updates, PartitionState(new)

    return GradientTransformationExtraArgs(init, update)


def freeze(mask: Mask) -> GradientTransformationExtraArgs:
    """Makes a transformation that sets the gradients of some parameters to 0.

    Args:
      mask: these parameters: a pytree of bools (or a prefix of one), or a function from
        parameters to such a pytree.

    Returns:
      A transformation; it does not change other gradients.

    Example:
      >>> tx = optim.freeze({"w": True, "b": False})
      >>> params = {"w": fnp.ones(1), "b": fnp.ones(1)}
      >>> new, _ = tx.update(params, tx.init(params))
      >>> float(new["w"][0]), float(new["b"][0])
      (0.0, 1.0)
    """
    return masked(set_to_zero(), mask)


def selective_transform(
    optimizer: GradientTransformation, *, freeze_mask: Mask
) -> GradientTransformationExtraArgs:
    """Makes an optimizer that does not change some parameters.

    Args:
      optimizer: the optimizer of the others.
      freeze_mask: the parameters to freeze: a pytree of bools (or a prefix of one), or
        a function from parameters to such a pytree.

    Returns:
      A transformation; it keeps no state for frozen parameters.

    Example:
      >>> tx = optim.selective_transform(
      ...     optim.sgd(1.0), freeze_mask={"w": True, "b": False}
      ... )
      >>> params = {"w": fnp.ones(1), "b": fnp.ones(1)}
      >>> new, _ = tx.update(params, tx.init(params))
      >>> float(new["w"][0]), float(new["b"][0])
      (0.0, -1.0)
    """

    def labels(params: Params) -> Any:
        mask = freeze_mask(params) if callable(freeze_mask) else freeze_mask
        return tree.map(lambda stays: "freeze" if stays else "train", mask)

    return multi_transform({"train": optimizer, "freeze": set_to_zero()}, labels)
