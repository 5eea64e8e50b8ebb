"""`checkpoint`: rematerialization, values computed again in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar, overload

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import (
    Array,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    is_arraylike,
    not_an_array,
    typeof,
)
from fxflow.core.arrays.array import ArrayOrNumber
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.primitive import Primitive, table
from fxflow.core.ir.references import Ref
from fxflow.core.ir.trace import state
from fxflow.core.labels import signature_of
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.runtime.eager import EvalTrace
from fxflow.core.source import name_of, wraps
from fxflow.errors import ArgumentError
from fxflow.lax.remat import Checkpoint, Name, Offload
from fxflow.transforms.arguments import (
    as_indices,
    as_names,
    normalize_indices,
    with_fixed,
    without,
)
from fxflow.transforms.budgets import Budget, CheckpointPlan, bytes_of, plan_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Policy = Callable[..., bool | Offload]


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    budget: str | float | None = None,
    host_budget: str | float | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    budget: str | float | None = None,
    host_budget: str | float | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    budget: str | float | None = None,
    host_budget: str | float | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
) -> Any:
    """Makes a function whose backward pass computes intermediate values again.

    Differentiating keeps only the arguments, and what `policy` wants kept: less memory
    for more arithmetic. Results and derivatives are the same. The function is traced
    whether it is differentiated or not; outside of `jit`, one that refers to objects
    with a state of their own at each call.

    Args:
      fun: function of arrays or pytrees of them (None: returns a decorator).
      prevent_cse: whether to keep the compiler from merging the two computations, by
        an optimization barrier. Only turn it off where it cannot merge them, as in the
        body of a `scan`. (XLA's CPU compiler ignores barriers: there, only what is in
        the body of a loop needs less memory.)
      policy: which intermediate values may be kept (see `checkpoint_policies`), and
        which of them in host memory; a function of a primitive, the types of its
        operands and its parameters. None keeps none.
      budget: bytes of intermediate values that may be kept, as `"8GB"` or a number, in
        place of a policy: what is kept is then chosen so that least is computed again.
        Arguments do not count. In the body of a loop it holds for one iteration.
        `print(checkpoint(f, budget="8GB").plan(*args))` shows the choice.
      host_budget: with a budget, bytes that may be moved to the memory of the host and
        back, where that takes less than computing them again. How long that takes is
        measured once, on the default device.
      static_argnums: positions of arguments that are not arrays.
      static_argnames: the same by name.

    Returns:
      A function with the arguments and results of `fun`; with a budget it has a method
      `plan`, which takes arrays or `ShapeDtypeStruct`s.

    Raises:
      ArgumentError: `fun` is not callable, an argument is not an array, `budget` is not
        a number of bytes, both it and a policy are given, or a host budget alone.
      PlacementError: the default device cannot address the memory of the host.

    Example:
      >>> f = checkpoint(lambda x: lax.sin(lax.sin(x)))
      >>> round(float(fxflow.grad(f)(0.0)), 6)
      1.0

    Source: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost,
    2016; Griewank & Walther, Algorithm 799: revolve, 2000.
    """
    if fun is None:
        return functools.partial(
            checkpoint,
            prevent_cse=prevent_cse,
            policy=policy,
            budget=budget,
            host_budget=host_budget,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
        )
    require_callable(fun, "checkpoint")
    chosen = _chosen(policy, budget, host_budget)
    name = name_of(fun)
    numbers = as_indices(static_argnums, "checkpoint: static_argnums")
    names = as_names(static_argnames, "checkpoint: static_argnames")
    signature = signature_of(fun)
    if signature is not None:
        known = list(signature.parameters)
        for option in names:
            if option not in known:
                raise ArgumentError(
                    f"checkpoint: {name} has no argument {option!r} (static_argnames): "
                    f"it has {', '.join(known)}"
                )
        numbers += tuple(known.index(option) for option in names)
    function: Callable[..., Any] = fun

    def traced(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Body, list[Any]]:
        return _traced(function, name, numbers, names, args, kwargs)

    @boundary
    @wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        body, leaves = traced(args, kwargs)
        # Nothing is differentiated, so there is nothing to keep or to compute again.
        if isinstance(state.trace, EvalTrace):
            arrays = [x if isinstance(x, Ref) else as_array(x) for x in leaves]
            return body.out_tree.unflatten(body.graph.evaluate(*body.consts, *arrays))
        outs = Checkpoint.bind(
            *body.consts,
            *leaves,
            graph=body.graph,
            policy=chosen,
            prevent_cse=bool(prevent_cse),
            again=False,
        )
        return body.out_tree.unflatten(outs)

    if isinstance(chosen, Budget):
        nbytes = chosen.nbytes, chosen.host

        def plan(*args: Any, **kwargs: Any) -> CheckpointPlan:
            args, kwargs = tree.map(_of_type, (args, kwargs))
            return plan_of(traced(args, kwargs)[0].graph, *nbytes)

        checkpointed.plan = boundary(plan)  # type: ignore[attr-defined]
    return checkpointed


def _chosen(
    policy: Policy | None,
    budget: str | float | None,
    host_budget: str | float | None,
) -> Any:
    """Returns what decides what is kept; None keeps nothing."""
    if policy is not None:
        if budget is not None:
            raise ArgumentError("checkpoint: give a policy or a budget, not both")
        if isinstance(policy, str):
            raise ArgumentError(
                f"checkpoint: policy must be a function, got {policy!r}: take one of "
                "fxflow.checkpoint_policies, such as checkpoint_policies.dots_saveable"
            )
        require_callable(policy, "checkpoint: policy")
    if budget is not None:
        host = 0
        if host_budget is not None:
            host = bytes_of(host_budget, "checkpoint: host_budget")
        return Budget(bytes_of(budget, "checkpoint: budget"), host)
    if host_budget is not None:
        raise ArgumentError("checkpoint: host_budget needs a budget, too")
    return policy


def _of_type(leaf: Any) -> Any:
    """Returns an array that takes no memory for a `ShapeDtypeStruct`."""
    if isinstance(leaf, ShapeDtypeStruct) and not dtypes.is_key(leaf.dtype):
        return np.broadcast_to(np.zeros((), leaf.dtype), leaf.shape)
    return leaf


def _traced(
    function: Callable[..., Any],
    name: str,
    numbers: Sequence[int],
    names: Sequence[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Body, list[Any]]:
    """Returns the graph of a function, and the leaves of its arguments.

    Args:
      function: the user's.
      name: of it.
      numbers: positions of static arguments.
      names: those by name.
      args: of a call.
      kwargs: likewise.
    """
    given = [n for n in numbers if n < len(args)]
    positions = sorted(
        normalize_indices(given, len(args), "checkpoint: static_argnums", name)
    )
    fixed = tuple(args[i] for i in positions)
    options = {k: v for k, v in kwargs.items() if k in names}
    rest = {k: v for k, v in kwargs.items() if k not in names}
    leaves, in_tree = tree.flatten((without(args, positions), rest))
    for leaf in leaves:
        if not is_arraylike(leaf) and not isinstance(leaf, Ref):
            error = not_an_array(leaf, f"checkpoint: {name} got")
            raise ArgumentError(
                f"{error}; or name it in static_argnums if it is an option"
            )
    run = with_fixed(function, positions, fixed)
    body = trace_body(
        functools.partial(run, **options) if options else run,
        in_tree,
        [typeof(x) for x in leaves],
        name=f"checkpoint_{name}",
        keywords=True,
    )
    return body, leaves


@overload
def checkpoint_name(x: ArrayOrNumber, name: str) -> Array: ...
@overload
def checkpoint_name(x: T, name: str) -> T: ...
def checkpoint_name(x: Any, name: str) -> Any:
    """Gives values a name that policies of `checkpoint` can refer to.

    Args:
      x: a pytree of arrays.
      name: the name.

    Returns:
      `x`, unchanged.

    Raises:
      ArgumentError: `name` is not a string, or a leaf is not an array.

    Example:
      >>> float(checkpoint_name(1.5, "activations"))
      1.5
    """
    if not isinstance(name, str):
        raise ArgumentError(f"checkpoint_name: name must be a string, got {name!r}")

    def named(leaf: Any) -> Any:
        if not is_arraylike(leaf):
            raise not_an_array(leaf, "checkpoint_name: got")
        aval = typeof(leaf)
        if dtypes.is_key(aval.dtype):
            # A primitive's rules know nothing of keys, so their words get the name.
            data = table["random_unwrap"].bind(leaf)
            wrap = table["random_wrap"]
            return wrap.bind(Name.bind(data, label=name), dtype=aval.dtype)
        return Name.bind(leaf, label=name)

    return tree.map(named, x)


# -- policies --------------------------------------------------------------------------


def everything_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keeps every value: as if there were no `checkpoint`."""
    return True


def nothing_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keeps nothing but the arguments: the default."""
    return False


def dots_saveable(primitive: Primitive, *avals: Any, **params: Any) -> bool:
    """Keeps results of matrix products and convolutions."""
    return primitive.name in ("dot_general", "conv_general_dilated")


def dots_with_no_batch_dims_saveable(
    primitive: Primitive, *avals: Any, **params: Any
) -> bool:
    """Keeps results of matrix products without batch dimensions: with weights."""
    if primitive.name != "dot_general":
        return False
    _, (batch, _) = params["dimension_numbers"]
    return not batch


class _Policy:
    """A policy that a function below makes.

    Args:
      kind: name of that function.
      given: its arguments, as they are shown.
      key: what is equal for policies of one kind that do the same.
      verdict: answers for it.
      excluded: names of values not to keep whatever operation makes them.
    """

    def __init__(
        self,
        kind: str,
        given: Sequence[Any],
        key: Any,
        verdict: Policy,
        excluded: frozenset[str] = frozenset(),
    ) -> None:
        self.kind, self.given, self.key = kind, tuple(given), (kind, key)
        self.verdict, self.excluded = verdict, excluded

    def __call__(
        self, primitive: Primitive, *avals: Any, **params: Any
    ) -> bool | Offload:
        return self.verdict(primitive, *avals, **params)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Policy and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(map(str, self.given))})"


def _of_names(
    kind: str,
    names: Sequence[str],
    verdict: Callable[[str | None], bool | Offload],
    key: Any = None,
    excluded: frozenset[str] = frozenset(),
) -> _Policy:
    """Returns a policy that asks the name of a value, which is None for most."""
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"{kind}: names must be strings, got {name!r}")

    def asked(primitive: Primitive, *avals: Any, **params: Any) -> bool | Offload:
        return verdict(params["name"] if primitive.name == Name.name else None)

    shown = map(repr, names)
    return _Policy(kind, [*shown], (frozenset(names), key), asked, excluded)


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Returns a policy that keeps the values of these names (see `checkpoint_name`).

    Args:
      *names_which_can_be_saved: the names.
    """
    names = frozenset(names_which_can_be_saved)
    return _of_names(
        "save_only_these_names", names_which_can_be_saved, lambda name: name in names
    )


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Returns a policy that keeps all named values but these, and no unnamed ones.

    Args:
      *names_not_to_save: the names.
    """
    names = frozenset(names_not_to_save)
    return _of_names(
        "save_any_names_but_these",
        names_not_to_save,
        lambda name: name is not None and name not in names,
    )


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Returns a policy that keeps every value, named or not, but those of these names.

    Args:
      *names_not_to_save: the names.
    """
    names = frozenset(names_not_to_save)
    return _of_names(
        "save_anything_except_these_names",
        names_not_to_save,
        lambda name: name not in names,
        # The operation that makes a named value is asked, too, and knows no name: by
        # this the rule (`lax/remat`) leaves out both.
        excluded=names,
    )


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Returns a policy that keeps the values of some names, those of others elsewhere.

    Values to offload are copied to the other memory when they are computed, and back
    when the backward pass needs them, so that meanwhile the device's memory is free.
    (On the CPU both are host memory: nothing is gained, and nothing lost.)

    Args:
      names_which_can_be_saved: names of values to keep.
      names_which_can_be_offloaded: names of values to keep in another memory.
      offload_src: kind of the memory the values are in, "device".
      offload_dst: kind of the memory to keep them in, such as "pinned_host".

    Raises:
      ArgumentError: a name is in both lists, or no string.

    Example:
      >>> offload = save_and_offload_only_these_names(
      ...     names_which_can_be_saved=[],
      ...     names_which_can_be_offloaded=["hidden"],
      ...     offload_src="device",
      ...     offload_dst="pinned_host",
      ... )
      >>> layer = checkpoint(
      ...     lambda x: lax.sin(checkpoint_name(lax.sin(x), "hidden")), policy=offload
      ... )
      >>> round(float(fxflow.grad(layer)(0.0)), 6)
      1.0
    """
    kind = "save_and_offload_only_these_names"
    _require_memories(kind, offload_src, offload_dst)
    twice = sorted(set(names_which_can_be_saved) & set(names_which_can_be_offloaded))
    if twice:
        raise ArgumentError(
            f"{kind}: names are either saved or offloaded, but {', '.join(twice)} "
            f"{'is' if len(twice) == 1 else 'are'} in both lists"
        )
    verdicts: dict[str | None, bool | Offload] = {
        **dict.fromkeys(names_which_can_be_saved, True),
        **dict.fromkeys(
            names_which_can_be_offloaded, Offload(offload_src, offload_dst)
        ),
    }
    names = (*names_which_can_be_saved, *names_which_can_be_offloaded)
    key = frozenset(verdicts.items())
    return _of_names(kind, names, lambda name: verdicts.get(name, False), key)


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Returns a policy that keeps matrix products without batch dimensions elsewhere.

    See `save_and_offload_only_these_names`.

    Args:
      offload_src: kind of the memory the values are in, "device".
      offload_dst: kind of the memory to keep them in, such as "pinned_host".

    Raises:
      ArgumentError: a kind is not a string.
    """
    kind = "offload_dot_with_no_batch_dims"
    _require_memories(kind, offload_src, offload_dst)
    verdict = Offload(offload_src, offload_dst)

    def asked(primitive: Primitive, *avals: Any, **params: Any) -> bool | Offload:
        kept = dots_with_no_batch_dims_saveable(primitive, *avals, **params)
        return verdict if kept else False

    return _Policy(kind, [*map(repr, verdict)], verdict, asked)


def _require_memories(kind: str, *memories: str) -> None:
    for memory in memories:
        if not isinstance(memory, str):
            raise ArgumentError(
                f'{kind}: memories are named by strings, such as "pinned_host", got '
                f"{memory!r}"
            )


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Returns a policy that keeps what either of two policies keeps.

    Args:
      policy_1: a policy.
      policy_2: a policy.
    """
    kind = "save_from_both_policies"
    require_callable(policy_1, f"{kind}: policy_1")
    require_callable(policy_2, f"{kind}: policy_2")
    both = policy_1, policy_2

    def asked(primitive: Primitive, *avals: Any, **params: Any) -> bool | Offload:
        first = policy_1(primitive, *avals, **params)
        return first or policy_2(primitive, *avals, **params)

    none: frozenset[str] = frozenset()
    first, second = (getattr(policy, "excluded", none) for policy in both)
    return _Policy(kind, both, both, asked, first & second)


class checkpoint_policies:
    """What `checkpoint(..., policy=...)` may keep."""

    everything_saveable: Final = staticmethod(everything_saveable)
    nothing_saveable: Final = staticmethod(nothing_saveable)
    dots_saveable: Final = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable: Final = staticmethod(
        dots_with_no_batch_dims_saveable
    )
    save_only_these_names: Final = staticmethod(save_only_these_names)
    save_any_names_but_these: Final = staticmethod(save_any_names_but_these)
    save_anything_except_these_names: Final = staticmethod(
        save_anything_except_these_names
    )
    save_from_both_policies: Final = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names: Final = staticmethod(
        save_and_offload_only_these_names
    )
    offload_dot_with_no_batch_dims: Final = staticmethod(offload_dot_with_no_batch_dims)
