"""`jax.extend.linear_util`: functions of flat lists with transforms around them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fxflow.compat.jax._mirror import listen


class StoreException(Exception):
    """A result was asked for before it was there, or stored twice."""


class Store:
    """A place that a transform writes to once, when the function runs."""

    _EMPTY: Any = object()

    def __init__(self) -> None:
        self._value = self._EMPTY

    def store(self, value: Any) -> None:
        """Writes."""
        self._value = value

    @property
    def val(self) -> Any:
        """What was written.

        Raises:
          StoreException: nothing was.
        """
        if self._value is self._EMPTY:
            raise StoreException("Store empty")
        return self._value


class WrappedFun:
    """A function and the transforms around it, the outermost first.

    Attributes:
      f: the function.
      params: keyword arguments of every call.
      debug_info: where it comes from.
    """

    f: Callable[..., Any]
    f_transformed: Callable[..., Any]
    params: dict[Any, Any]
    debug_info: Any

    def __init__(
        self, f: Callable[..., Any], params: Any = None, debug_info: Any = None
    ) -> None:
        self.f, self.f_transformed = f, f
        self.params, self.debug_info = dict(params or {}), debug_info
        self.stores: tuple[Store, ...] = ()

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrap(self, transformed: Callable[..., Any]) -> WrappedFun:
        """Returns the same with another function around it."""
        new = WrappedFun(self.f, self.params, self.debug_info)
        new.f_transformed = transformed
        return new

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with its transforms."""
        return self.f_transformed(*args, **self.params, **kwargs)


def wrap_init(
    f: Callable[..., Any], params: Any = None, *, debug_info: Any = None
) -> WrappedFun:
    """Makes a `WrappedFun` without transforms.

    Args:
      f: the function.
      params: keyword arguments of every call.
      debug_info: where it comes from.
    """
    return WrappedFun(f, params, debug_info)


def transformation2(transform: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Makes a transform of `transform(f, *its_own_arguments, *args, **kwargs)`."""

    def apply(fun: WrappedFun, *own: Any) -> WrappedFun:
        return fun.wrap(partial(transform, fun.f_transformed, *own))

    return apply


def transformation_with_aux2(transform: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a transform that takes a `Store` after the function, and writes it.

    The transform's result is `(wrapped, thunk)`; the thunk reads what was stored.
    """

    def apply(fun: WrappedFun, *own: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store = Store()
        wrapped = fun.wrap(partial(transform, fun.f_transformed, store, *own))
        return wrapped, lambda: store.val

    return apply


def _drive(generator: Any, function: Callable[..., Any]) -> Any:
    """Runs a transform that yields the inner arguments, then its result."""
    args, kwargs = next(generator)
    return generator.send(function(*args, **kwargs))


def transformation(generator: Callable[..., Any]) -> Callable[..., WrappedFun]:
    """Makes a transform of a generator that yields `args, kwargs`, then the result."""

    def apply(fun: WrappedFun, *own: Any) -> WrappedFun:
        inner = fun.f_transformed
        return fun.wrap(lambda *a, **k: _drive(generator(*own, *a, **k), inner))

    return apply


def transformation_with_aux(generator: Callable[..., Any]) -> Callable[..., Any]:
    """The same where the generator yields `(result, auxiliary)` at last."""

    def apply(fun: WrappedFun, *own: Any) -> tuple[WrappedFun, Callable[[], Any]]:
        store, inner = Store(), fun.f_transformed

        def call(*args: Any, **kwargs: Any) -> Any:
            out, aux = _drive(generator(*own, *args, **kwargs), inner)
            store.store(aux)
            return out

        return fun.wrap(call), lambda: store.val

    return apply


def merge_linear_aux(aux1: Callable[[], Any], aux2: Callable[[], Any]) -> Any:
    """Returns `(True, value)` of the first thunk that has one, `(False, …)` else."""
    try:
        return True, aux1()
    except StoreException:
        return False, aux2()


def cache(call: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Returns the function as it is; nothing is remembered."""
    return call


listen(globals())
