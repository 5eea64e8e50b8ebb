"""Classes of named values, without the methods that `dataclasses` compiles for each.

Those take 0.3 ms a class: for the twenty that come with `import fxflow`, a tenth of
what that takes. Here all classes share one set of methods. Classes that users make
themselves (`lax.DotAlgorithm`, …) stay dataclasses, which show a signature.
"""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, ClassVar, NoReturn, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Frozen:
    """Base of classes of named values that do not change.

    Fields are what a class annotates, those of its bases in front; what it assigns to
    one is its default. Type checkers see a frozen dataclass. Instances are equal if
    they have one class and equal values; with `eq=False` only if they are one.

    Example:
      >>> class Point(Frozen):
      ...     x: int
      ...     y: int = 0
      >>> Point(1), Point(1).replace(y=2) == Point(x=1, y=2)
      (Point(x=1, y=0), True)
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, eq: bool = True) -> None:
        super().__init_subclass__()
        own = get_annotations(cls)
        fields = (name for name, note in own.items() if not note.startswith("ClassVar"))
        cls._fields = (*cls._fields, *fields)
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        kind, fields, own = type(self), self._fields, self.__dict__
        try:
            own.update(zip(fields, values))
            for name in fields[len(values) :]:
                own[name] = named.pop(name) if name in named else getattr(kind, name)
            left = len(values) > len(fields) or named
        except AttributeError:
            left = True
        if left:
            raise TypeError(f"{kind.__name__} takes {', '.join(fields)}")

    def replace(self, **changed: Any) -> Self:
        """Returns a copy in which some values are others."""
        return type(self)(**{**self.__dict__, **changed})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__qualname__}({shown})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} does not change: use replace")
