"""`jax.extend.source_info_util`: the user's lines and scopes that operations come from.

An interpreter of jaxprs that runs each equation within `user_context` keeps both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.core import source
from fxflow.core.ir.trace import state


def register_exclusion(path: str) -> None:
    """Does nothing: fxflow leaves only its own frames out."""


@dataclass(frozen=True)
class Scope:
    """A part of a name stack.

    Attributes:
      name: of the scope.
    """

    name: str


@dataclass(frozen=True)
class Transform:
    """A transformation, around the scopes that follow it.

    Attributes:
      name: of the transformation.
    """

    name: str


@dataclass(frozen=True)
class NameStack:
    """The scopes (`jax.named_scope`) that an operation is in, the outermost first.

    Attributes:
      stack: scopes and transformations.
    """

    stack: tuple[Scope | Transform, ...] = ()

    def extend(self, name: str) -> NameStack:
        """Returns the stack with one more scope."""
        return NameStack((*self.stack, Scope(name)))

    def transform(self, transform_name: str) -> NameStack:
        """Returns the stack with a transformation."""
        return NameStack((*self.stack, Transform(transform_name)))

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __getitem__(self, index: slice) -> NameStack:
        return NameStack(self.stack[index])

    def __len__(self) -> int:
        return len(self.stack)

    def __str__(self) -> str:
        text = ""
        for entry in reversed(self.stack):
            if isinstance(entry, Transform):
                text = f"{entry.name}({text})"
            else:
                text = f"{entry.name}/{text}" if text else entry.name
        return text


@dataclass(frozen=True)
class SourceInfo:
    """The user's line that an equation comes from.

    Attributes:
      traceback: the line; `summarize` names it.
      name_stack: the scopes.
    """

    traceback: Any
    name_stack: NameStack

    def replace(self, **parts: Any) -> SourceInfo:
        """Returns a copy with some parts replaced."""
        return replace(self, **parts)

    def __repr__(self) -> str:
        return source.describe(self.traceback)


def new_name_stack(name: str = "") -> NameStack:
    """Returns a stack of one scope, or an empty one.

    Args:
      name: of the scope.

    Returns:
      A `NameStack`.
    """
    return of_scopes((name,) if name else ())


def of_scopes(scopes: tuple[str, ...]) -> NameStack:
    """Returns fxflow's scopes as a stack.

    Args:
      scopes: their names, the outermost first.

    Returns:
      A `NameStack`.
    """
    return NameStack(tuple(map(Scope, scopes)))


def current_name_stack() -> NameStack:
    """Returns the scopes that operations are now in.

    Returns:
      A `NameStack`.
    """
    return of_scopes(state.scope)


def current() -> SourceInfo:
    """Returns the user's line that is being run, and its scopes.

    Returns:
      A `SourceInfo`.
    """
    return SourceInfo(state.source or source.here(), current_name_stack())


def new_source_info() -> SourceInfo:
    """Returns what is known of an unknown line.

    Returns:
      A `SourceInfo`.
    """
    return SourceInfo(None, NameStack())


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Returns the file, the line and the function as text.

    Args:
      source_info: of an equation, or `current()`.
      num_frames: has no effect: one line is known.

    Returns:
      The text.
    """
    return source.describe(source_info.traceback)


@contextmanager
def user_context(
    traceback: Any, *, name_stack: NameStack | None = None
) -> Iterator[None]:
    """Makes operations within a block come from another line.

    Args:
      traceback: of a `SourceInfo`; None leaves the line.
      name_stack: the scopes; None leaves them.

    Returns:
      A context manager.
    """
    before = state.source, state.scope
    if traceback is not None:
        state.source = traceback
    if name_stack is not None:
        text = str(name_stack)
        state.scope = tuple(text.split("/")) if text else ()
    try:
        yield
    finally:
        state.source, state.scope = before


def set_name_stack(name_stack: NameStack) -> AbstractContextManager[None]:
    """Sets the scopes of operations within a block.

    Args:
      name_stack: the scopes.

    Returns:
      A context manager.
    """
    return user_context(None, name_stack=name_stack)


def reset_name_stack() -> AbstractContextManager[None]:
    """Takes operations within a block out of all scopes.

    Returns:
      A context manager.
    """
    return set_name_stack(NameStack())


@contextmanager
def extend_name_stack(name: str) -> Iterator[NameStack]:
    """Puts operations within a block into one more scope; gives the stack.

    Args:
      name: of the scope.

    Returns:
      A context manager.
    """
    stack = current_name_stack().extend(name)
    with set_name_stack(stack):
        yield stack


__all__ = [
    "NameStack",
    "SourceInfo",
    "current",
    "current_name_stack",
    "extend_name_stack",
    "new_name_stack",
    "new_source_info",
    "register_exclusion",
    "reset_name_stack",
    "set_name_stack",
    "summarize",
    "user_context",
]

listen(globals())
