"""Containers: how a class joins the trees, and functions that are trees."""

from __future__ import annotations

import copyreg
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from fxflow.core.tree.paths import describe
from fxflow.devices import trees
from fxflow.devices.trees import GetAttrKey, registry
from fxflow.errors import ArgumentError

T = TypeVar("T")
C = TypeVar("C", bound=type)

# -- registration ----------------------------------------------------------------------


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: (
        Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]] | None
    ) = None,
) -> None:
    """Makes a class a container.

    Args:
      nodetype: the class; its subclasses are not meant.
      flatten_func: returns `(children, auxiliary data)` of an object. The data is
        hashable and can be compared.
      unflatten_func: makes an object of auxiliary data and children. It must not look
        into the children: they may be anything.
      flatten_with_keys_func: as `flatten_func`, with `(key, child)` for children.

    Raises:
      ArgumentError: `nodetype` is not a class.
      ValueError: the class is a container already.

    Example:
      >>> from fxflow.core import tree
      >>> class Pair:
      ...     def __init__(self, x, y):
      ...         self.x, self.y = x, y
      >>> register_pytree_node(
      ...     Pair, lambda p: ((p.x, p.y), None), lambda _, children: Pair(*children)
      ... )
      >>> tree.leaves(Pair(1, [2, 3]))
      [1, 2, 3]
    """
    _check_new(nodetype, "tree.register_pytree_node")
    registry.register_node(
        nodetype, flatten_func, unflatten_func, flatten_with_keys_func
    )


def register_pytree_node_class(cls: C) -> C:
    """Makes a class a container by its methods; a decorator.

    Args:
      cls: a class with `tree_flatten(self) -> (children, auxiliary data)` and
        a classmethod `tree_unflatten(cls, auxiliary data, children)`.

    Returns:
      The class.

    Raises:
      ArgumentError: it is not a class, or a method is missing.
      ValueError: the class is a container already.
    """
    _check_methods(cls, "register_pytree_node_class", "tree_flatten", "tree_unflatten")
    register_pytree_node(cls, _call_flatten, cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def _call_flatten(x: Any) -> Any:
    return x.tree_flatten()


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Makes a class a container whose children have keys.

    Args:
      nodetype: the class.
      flatten_with_keys: returns `([(key, child), ...], auxiliary data)`.
      unflatten_func: makes an object of auxiliary data and children.
      flatten_func: returns `(children, auxiliary data)`; faster than the other.

    Raises:
      ArgumentError: `nodetype` is not a class.
      ValueError: the class is a container already.
    """

    def without_keys(x: T) -> tuple[Iterable[Any], Hashable]:
        pairs, aux = flatten_with_keys(x)
        return tuple(child for _, child in pairs), aux

    register_pytree_node(
        nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys
    )


def register_pytree_with_keys_class(cls: C) -> C:
    """Makes a class a container with keys by its methods; a decorator.

    Args:
      cls: a class with `tree_flatten_with_keys(self)`, a classmethod
        `tree_unflatten(cls, auxiliary data, children)` and, if it has it,
        `tree_flatten(self)`.

    Returns:
      The class.

    Raises:
      ArgumentError: it is not a class, or a method is missing.
      ValueError: the class is a container already.
    """
    _check_methods(
        cls,
        "register_pytree_with_keys_class",
        "tree_flatten_with_keys",
        "tree_unflatten",
    )
    register_pytree_with_keys(
        cls,
        lambda x: x.tree_flatten_with_keys(),
        cls.tree_unflatten,  # type: ignore[attr-defined]
        _call_flatten if hasattr(cls, "tree_flatten") else None,
    )
    return cls


def register_dataclass(
    nodetype: C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> C:
    """Makes a dataclass a container; a decorator.

    Args:
      nodetype: a dataclass, or a class whose constructor takes the fields by name.
      data_fields: the fields that are children; left out together with
        `meta_fields`, all but those marked `static()`.
      meta_fields: the fields that belong to the structure: hashable and comparable.
      drop_fields: fields with `init=True` that are left to their defaults.

    Returns:
      The class.

    Raises:
      ArgumentError: it is not a class, or fields are needed and not given.
      ValueError: the fields are not those of the constructor, or the class is a
        container already.

    Example:
      >>> from fxflow.core import tree
      >>> @register_dataclass
      ... @dataclasses.dataclass
      ... class Layer:
      ...     weight: float
      ...     name: str = static(default="")
      >>> tree.map(lambda x: 2 * x, Layer(1.5, "first"))
      Layer(weight=3.0, name='first')
    """
    name = "tree.register_dataclass"
    _check_new(nodetype, name)
    if (data_fields is None) != (meta_fields is None):
        raise ArgumentError(
            f"{name}: give both data_fields and meta_fields, or neither; got "
            f"data_fields={data_fields!r}, meta_fields={meta_fields!r}"
        )
    fields = (
        dataclasses.fields(nodetype) if dataclasses.is_dataclass(nodetype) else None
    )
    dropped = set(drop_fields)
    if data_fields is None or meta_fields is None:
        if fields is None:
            raise ArgumentError(
                f"{name}: {nodetype.__name__} is not a dataclass, so data_fields and "
                "meta_fields are needed"
            )
        used = [f for f in fields if f.name not in dropped]
        meta_fields = [f.name for f in used if f.metadata.get("static")]
        data_fields = [f.name for f in used if not f.metadata.get("static")]
    named = [*data_fields, *meta_fields]
    twice = sorted({f for f in named if named.count(f) > 1})
    if twice:
        raise ValueError(
            f"{name}: {nodetype.__name__}: fields named twice: {', '.join(twice)}"
        )
    if fields is not None:
        wanted = {f.name for f in fields if f.init} - dropped
        missing, extra = sorted(wanted - set(named)), sorted(set(named) - wanted)
        if missing:
            raise ValueError(
                f"{name}: {nodetype.__name__}: fields not named: {', '.join(missing)}; "
                "add them to data_fields, meta_fields or drop_fields"
            )
        if extra:
            raise ValueError(
                f"{name}: {nodetype.__name__}: its constructor does not take "
                f"{', '.join(extra)} (no such field, init=False, or dropped); the "
                f"fields are {', '.join(sorted(wanted))}"
            )
    registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def static(**kwargs: Any) -> Any:
    """Returns a dataclass field that belongs to the structure, not to the leaves.

    Args:
      **kwargs: what `dataclasses.field` takes. A `"static"` in `metadata` has the
        last word.

    Returns:
      A field for `register_dataclass`.
    """
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: C) -> C:
    """Makes objects of a class part of the structure, without leaves; a decorator.

    Args:
      cls: a class whose objects are hashable and can be compared.

    Returns:
      The class.

    Raises:
      ArgumentError: it is not a class.
      ValueError: the class is a container already.

    Example:
      >>> from fxflow.core import tree
      >>> @register_static
      ... class Mode(str):
      ...     pass
      >>> tree.leaves([Mode("train"), 1])
      [1]
    """
    _check_new(cls, "tree.register_static")
    registry.register_node(cls, lambda x: ((), x), lambda x, _: x, lambda x: ((), x))
    return cls


def _check_new(cls: Any, name: str) -> None:
    if not isinstance(cls, type):
        raise ArgumentError(f"{name}: expected a class, got {describe(cls)}")
    # Every namedtuple is a container until its class is made one of its own kind.
    if registry.is_node(cls) and not hasattr(cls, "_fields"):
        raise ValueError(f"{name}: {cls.__name__} is a container already")


def _check_methods(cls: Any, name: str, *methods: str) -> None:
    _check_new(cls, f"tree.{name}")
    for method in methods:
        if not callable(getattr(cls, method, None)):
            raise ArgumentError(f"tree.{name}: {cls.__name__} has no method {method}")


# -- functions as trees ----------------------------------------------------------------


class _Opaque:
    """A `functools.partial` that is one function, compared by its parts' identity.

    Without it, `Partial(functools.partial(f, x))` would be merged by `functools` into
    `Partial(f, x)`, and `x` would become a leaf.
    """

    __slots__ = ("_parts", "function")

    def __init__(self, function: functools.partial[Any]) -> None:
        self.function = function
        self._parts = (
            id(function.func),
            tuple(map(id, function.args)),
            tuple((k, id(v)) for k, v in sorted(function.keywords.items())),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opaque) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Opaque, (self.function,)

    def __repr__(self) -> str:
        return repr(self.function)


class Partial(functools.partial[Any]):
    """A `functools.partial` that is a tree: its arguments are its children.

    So a function that closes over arrays can be passed to and returned from a compiled
    function. Functions are compared by `==`, that is by identity for most.

    Args:
      func: the function. A `Partial` is extended; a `functools.partial` is one
        function, its arguments no leaves.
      *args: its first arguments.
      **keywords: its arguments by name.

    Example:
      >>> from fxflow.core import tree
      >>> add_one = Partial(lambda x, y: x + y, 1)
      >>> add_one(2), tree.leaves(add_one)
      (3, [1])
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **keywords: Any) -> Partial:
        """Merges a `Partial`, keeps a `functools.partial` whole."""
        if isinstance(func, Partial):
            args, keywords = (*func.args, *args), {**func.keywords, **keywords}
            func = func.func
        elif isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **keywords)


registry.register_node(
    Partial,
    lambda x: ((x.args, x.keywords), x.func),
    lambda func, parts: Partial(func, *parts[0], **parts[1]),
    lambda x: (
        ((GetAttrKey("args"), x.args), (GetAttrKey("keywords"), x.keywords)),
        x.func,
    ),
)


# -- pickling: a structure refers to its registry --------------------------------------


def _own_registry() -> Any:
    return registry


def _reduce_registry(x: Any) -> Any:
    return (_own_registry, ()) if x is registry else x.__reduce__()


# jaxlib can pickle its default registry alone; others go their own way as before.
copyreg.pickle(trees.PyTreeRegistry, _reduce_registry)
