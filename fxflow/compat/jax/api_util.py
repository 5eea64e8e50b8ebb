"""`jax.api_util`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.compat.jax._jaxprs import DebugInfo
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.extend.linear_util import (
    Store,
    WrappedFun,
    transformation_with_aux2,
)
from fxflow.core import tree
from fxflow.core.arrays import typeof


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Any, kwargs: Any, **options: Any
) -> DebugInfo:
    """Returns where a function comes from.

    Args:
      traced_for: by which transform.
      fun: the function.
      args: has no effect.
      kwargs: likewise.
      **options: JAX's, which have no effect.
    """
    return DebugInfo(traced_for, getattr(fun, "__name__", str(fun)))


@transformation_with_aux2
def flatten_fun(f: Any, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """A function of `(args, kwargs)` as one of leaves; the thunk gives the out tree."""
    args, kwargs = tree.unflatten(in_tree, leaves)
    outs, out_tree = tree.flatten(f(*args, **kwargs))
    store.store(out_tree)
    return outs


@transformation_with_aux2
def flatten_fun_nokwargs(f: Any, store: Store, in_tree: Any, *leaves: Any) -> list[Any]:
    """A function of `args` as one of leaves; the thunk gives the out tree."""
    outs, out_tree = tree.flatten(f(*tree.unflatten(in_tree, leaves)))
    store.store(out_tree)
    return outs


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], **options: Any
) -> tuple[WrappedFun, list[Any]]:
    """Returns a function of some arguments, the others being fixed, and those."""
    given = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    chosen = [i % len(args) for i in given]
    inner = f.f_transformed

    def call(*dynamic: Any, **kwargs: Any) -> Any:
        full = list(args)
        for i, value in zip(chosen, dynamic, strict=True):
            full[i] = value
        return inner(*full, **kwargs)

    return f.wrap(call), [args[i] for i in chosen]


def flatten_axes(name: str, treedef: Any, axis_tree: Any, **options: Any) -> list[Any]:
    """Returns an entry of a prefix tree for each leaf of a structure."""
    full = treedef.unflatten(range(treedef.num_leaves))
    return list(
        tree.broadcast_prefix(axis_tree, full, is_leaf=lambda x: x is None, name=name)
    )


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns a list of results, after checking that the lists are of one length.

    Raises:
      ValueError: they are not.
    """
    return [f(*values) for values in zip(*map(list, args), strict=True)]


def donation_vector(
    donate_argnums: Sequence[int],
    donate_argnames: Sequence[str],
    in_tree: Any,
    kws: bool = True,
) -> tuple[bool, ...]:
    """Returns for each leaf of the arguments whether it is donated.

    Args:
      donate_argnums: positions.
      donate_argnames: names.
      in_tree: structure of `(args, kwargs)`, or of the positional ones.
      kws: whether it has both.
    """
    children = in_tree.children()
    args, kwargs = children if kws else (in_tree, None)
    given = [
        (i in tuple(donate_argnums), part.num_leaves)
        for i, part in enumerate(args.children())
    ]
    if kwargs is not None:
        names = sorted(kwargs.unflatten([0] * kwargs.num_leaves))
        given += [
            (name in tuple(donate_argnames), part.num_leaves)
            for name, part in zip(names, kwargs.children(), strict=True)
        ]
    return tuple(donated for donated, count in given for _ in range(count))


def rebase_donate_argnums(
    donate_argnums: Sequence[int], static_argnums: Sequence[int]
) -> tuple[int, ...]:
    """Returns positions counted without the static arguments.

    Raises:
      ValueError: an argument is static and donated.
    """
    static = sorted(set(static_argnums))
    if both := sorted(set(donate_argnums) & set(static)):
        raise ValueError(f"static_argnums and donate_argnums cannot intersect: {both}")
    return tuple(sorted({i - sum(s < i for s in static) for i in donate_argnums}))


def shaped_abstractify(x: Any) -> Any:
    """Returns the type of a value."""
    return typeof(x)


__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]

listen(globals())
