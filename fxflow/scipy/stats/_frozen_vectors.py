"""Distributions of vectors with their parameters: `multivariate_normal(mean, cov)`."""

from __future__ import annotations

import functools
import inspect
import sys
from types import ModuleType
from typing import Any

from fxflow.core.arrays import is_arraylike, not_an_array
from fxflow.core.tree import register_pytree_node_class
from fxflow.scipy.stats.covariance import Covariance


class VectorLaw(ModuleType):
    """A module of the functions of a distribution that is called with its parameters.

    Attributes:
      parameters: their names.
      defaults: numbers for those that may be left out.
    """

    parameters: tuple[str, ...]
    defaults: dict[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> FrozenVector:
        """Returns the distribution with its parameters.

        Args:
          *args: the parameters, in their order.
          **kwargs: parameters by name.

        Raises:
          TypeError: a parameter is missing, or there is none of a name.
          ArgumentError: a parameter is not an array.
        """
        of: Any = inspect.Parameter
        signature = inspect.Signature(
            [
                of(p, of.POSITIONAL_OR_KEYWORD, default=self.defaults.get(p, of.empty))
                for p in self.parameters
            ]
        )
        name = self.__name__.rpartition(".")[2]
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}: {error}; it takes {signature}") from None
        bound.apply_defaults()
        for key, value in bound.arguments.items():
            if not isinstance(value, Covariance) and not is_arraylike(value):
                raise not_an_array(value, f"{name}: {key} is")
        return FrozenVector(self, dict(bound.arguments))


@register_pytree_node_class
class FrozenVector:
    """A distribution of vectors with its parameters.

    It has the functions of the distribution's module without the parameters, and is a
    pytree whose leaves are the parameters.

    Attributes:
      dist: the distribution's module.
      kwds: its parameters by name.

    Example:
      >>> from fxflow.scipy import stats
      >>> law = stats.multivariate_normal(np.zeros(2), np.eye(2))
      >>> law.logpdf(np.zeros(2)).round(4)
      Array(-1.8379, dtype=float32)
    """

    def __init__(self, dist: VectorLaw, kwds: dict[str, Any]) -> None:
        self.dist, self.kwds = dist, kwds

    def __repr__(self) -> str:
        name = self.dist.__name__.rpartition(".")[2]
        return f"{name}({', '.join(f'{k}={v}' for k, v in self.kwds.items())})"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.dist.__all__})

    def __getattr__(self, name: str) -> Any:
        dist = vars(self).get("dist")
        if dist is None or name not in dist.__all__ or name == "fit":
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        function = getattr(dist, name)
        known = inspect.signature(function).parameters
        given = {k: v for k, v in self.kwds.items() if k in known}
        made = functools.partial(function, **given)
        made.__doc__ = function.__doc__
        return made

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the parameters, and the distribution with their names."""
        return tuple(self.kwds.values()), (self.dist, tuple(self.kwds))

    @classmethod
    def tree_unflatten(cls, structure: Any, values: Any) -> FrozenVector:
        """Returns the distribution with parameters."""
        dist, names = structure
        return cls(dist, dict(zip(names, values, strict=True)))


def freezable(name: str, *parameters: str, **defaults: Any) -> None:
    """Makes a module one that is called with the parameters of its distribution.

    Args:
      name: of the module.
      *parameters: names of its parameters, in their order.
      **defaults: numbers for those that may be left out.
    """
    module: Any = sys.modules[name]
    module.__class__ = VectorLaw
    module.parameters, module.defaults = (*parameters, *defaults), defaults
