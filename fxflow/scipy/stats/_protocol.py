"""The protocol of distributions: one set of functions, made of a few formulas.

A distribution is a module of functions, as in JAX: `norm.logpdf(x, loc, scale)`. None
of these modules is a file. A `Distribution` is made of a signature, which names its
parameters, and of formulas of the standard distribution (`loc` 0, `scale` 1) at points
inside its support:

    expon = Continuous(
        "expon", "The exponential distribution.", no_shape,
        support=(0, math.inf), logpdf=lambda z: -z, sf=..., ppf=...,
    )

The protocol does the rest: operands, their domains, the support with its ends, moving
and scaling, functions that follow from others, docstrings, and plans of eager calls.
Each function is made when it is first used, and has the parameters by their names.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Generic, ParamSpec, TypeVar, cast

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import boundary, leaving
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax import sampling
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    ShapeLike,
    joint_shape,
    promote_inexact,
)
from fxflow.random._arguments import arguments
from fxflow.scipy.stats._domains import POSITIVE, Domain
from fxflow.scipy.stats._examples import example_of
from fxflow.scipy.stats.frozen import Frozen, freeze

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
Formula = Callable[..., Any]

PACKAGE = "fxflow.scipy.stats"
_COMMON = """
    Args:
      x: real array-like: where to evaluate.
      k: real array-like: the integers at which to evaluate.
      q: real array-like, probabilities from 0 to 1.
      p: real array-like, probabilities from 0 to 1.
      order: a positive integer.
      confidence: real array-like, a probability.
      moments: letters of "mvsk".
    {parameters}
      loc: real array-like: location, the shift of the distribution.
      scale: positive real array-like: scale, the factor of its width.

    Returns:
      Float array of the broadcast shape; nan where a parameter is invalid, such as a
      negative scale.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.
      ShapeError: the shapes do not broadcast.

    Source: `scipy.stats.{distribution}.{name}`.
"""


class _Method:
    """A function of each distribution, made when it is first used.

    Attributes:
      body: a function of the distribution, operands, and the parameters.
      static: names of parameters that are not arrays.
      compiled: whether an eager call is one plan: not one that calls the user's
        functions.
      literal: whether its `*args` are just that, not the parameters.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        static: tuple[str, ...],
        compiled: bool,
        literal: bool,
    ) -> None:
        self.body, self.static = body, static
        self.compiled, self.literal = compiled, literal
        self.__doc__ = body.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self.body
        made = instance._make(self)
        # Found first from now on: this descriptor has no `__set__`.
        vars(instance)[self.body.__name__] = made
        return made


def method(
    *static: str, compiled: bool = True, literal: bool = False
) -> Callable[[F], F]:
    """Makes a method one of the functions of a distribution.

    Its `*args` and `**kwargs` stand for the distribution's parameters; the functions
    that are made of it name them.

    Args:
      *static: names of parameters that are not arrays.
      compiled: whether an eager call is one plan.
      literal: whether `*args` and `**kwargs` are just that.

    Returns:
      A decorator of methods.
    """

    def decorate(body: F) -> F:
        made: Any = _Method(body, static, compiled, literal)
        return cast(F, made)

    return decorate


class Given:
    """The operands of a call.

    Attributes:
      first: the operands before the parameters.
      shapes: the shape parameters, valid numbers all of them.
      loc: location, the shift of the distribution.
      scale: scale; positive.
      valid: where the parameters describe a distribution.
      shape: the joint shape of all operands.
    """

    def __init__(
        self, distribution: Distribution[Any], name: str, first: Any, parameters: Any
    ) -> None:
        name = f"{distribution.name}.{name}"
        out = promote_inexact(name, *first, *parameters)
        if dtypes.is_complex(out[0].aval.dtype):
            raise DtypeError(f"{name}: takes real numbers, got {out[0].aval}")
        self.shape = joint_shape(name, [a.aval for a in out])
        self.first, out = out[: len(first)], out[len(first) :]
        count = len(distribution.domains)
        shapes, (self.loc, *scale) = out[:count], out[count:]
        self.valid, self.shapes = distribution.checked(shapes)
        self.valid = self.valid & (self.loc == self.loc)
        self.scale: Any = None
        if scale:
            positive = (scale[0] > 0) & (scale[0] < math.inf)
            self.valid = self.valid & positive
            self.scale = fnp.where(positive, scale[0], 1)
            self.loc = distribution.moved(self.shapes, self.loc, self.scale)

    def result(self, value: Any, valid: Any = True) -> Array:
        """Returns a result of the joint shape, nan where nothing is described."""
        return repeated(fnp.where(self.valid & valid, value, math.nan), self.shape)


class Distribution(ModuleType, Generic[P]):
    """A module of the functions of one distribution.

    Attributes:
      name: the distribution's.
      domains: the domain of each shape parameter, in their order.
      signature: of all parameters.
    """

    name: str
    domains: dict[str, Domain]
    signature: inspect.Signature

    def __init__(
        self,
        name: str,
        summary: str,
        parameters: Callable[P, None],
        support: tuple[Any, Any],
        formulas: Mapping[str, Any],
        domains: Mapping[str, Domain],
        joint: Formula | None = None,
        first: Mapping[str, str] | None = None,
    ) -> None:
        full = f"{PACKAGE}.{name}"
        super().__init__(full, summary + example_of(name))
        self.__spec__: ModuleSpec | None = ModuleSpec(full, None)
        self.__file__: str | None = parameters.__code__.co_filename
        # So that `from fxflow.scipy.stats.norm import logpdf` finds it, as in JAX.
        sys.modules[full] = self
        self.name, self._joint, self._support = name, joint, support
        self.signature = inspect.signature(parameters)
        self._first = first or {}
        own = [n for n in self.signature.parameters if n not in ("loc", "scale")]
        self.domains = {n: domains.get(n, POSITIVE) for n in own}
        self._formulas: dict[str, Formula] = {k: f for k, f in formulas.items() if f}
        self.__all__ = [
            key
            for kind in type(self).__mro__
            for key, value in vars(kind).items()
            if isinstance(value, _Method)
        ]

    def __repr__(self) -> str:
        return f"<distribution {self.__name__}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Frozen:
        """Returns the distribution with its parameters: an object with its functions.

        Args:
          *args: the parameters, as `pdf` takes them after the first operand.
          **kwargs: parameters by name.

        Raises:
          TypeError: a parameter is missing, or there is none of a name.
          ArgumentError: a parameter is not an array.
        """
        return freeze(self, args, kwargs)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters: the shapes, `loc`, and `scale` if it has one."""
        return tuple(self.signature.parameters)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__all__})

    def checked(self, shapes: list[Any]) -> tuple[Any, list[Any]]:
        """Returns where shape parameters are valid, and valid numbers everywhere."""
        valid: Any = True
        for shape, domain in zip(shapes, self.domains.values(), strict=True):
            valid = valid & domain.holds(shape)
        if self._joint is not None:
            valid = valid & self._joint(*shapes)
        kept = [
            fnp.where(valid, shape, domain.inside)
            for shape, domain in zip(shapes, self.domains.values(), strict=True)
        ]
        return valid, kept

    def moved(self, shapes: list[Any], loc: Any, scale: Any) -> Any:
        """Returns how far the standard distribution is moved after it is scaled."""
        return loc

    def bounds(self, shapes: list[Any]) -> tuple[Any, Any]:
        """Returns the ends of the support of the standard distribution."""
        low, high = (s(*shapes) if callable(s) else s for s in self._support)
        return low, high

    def formula(self, name: str) -> Formula:
        """Returns a formula, which may follow from others; it is kept."""
        found = self._formulas.get(name)
        if found is None:
            found = self._formulas[name] = self._derived(name)
        return found

    def has(self, *names: str) -> bool:
        """Returns whether formulas are known."""
        return all(name in self._formulas for name in names)

    def _derived(self, name: str) -> Formula:
        raise NotImplementedError

    @method("shape", "dtype")
    def rvs(
        self,
        key: Array,
        *args: ArrayLike,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        **kwargs: ArrayLike,
    ) -> Array:
        """Draws numbers of the distribution.

        `fxflow.random` has faster samplers of the usual distributions. What is drawn
        here of a continuous distribution is differentiable by all parameters.

        Args:
          key: a key of `fxflow.random`.
          shape: shape of the result, to which the parameters are broadcast; None means
            their joint shape.
          dtype: a float dtype; None means the default.

        Returns:
          Float array of that shape.

        Raises:
          ArgumentError: `key` is not a key, or an argument is not an array.
          DtypeError: `dtype` is not a float dtype, or a parameter not real.
          ShapeError: the parameters do not broadcast to the shape.
        """
        return self.drawn(key, args, shape, dtype)

    def drawn(self, key: Any, args: Any, shape: Any, dtype: Any) -> Array:
        """Returns what `rvs` does: here, quantiles of uniform numbers."""
        name = f"{self.name}.rvs"
        key_data, full, chosen, *given = arguments(name, key, shape, dtype, *args)
        u = sampling.positive_uniform(key_data, full, chosen)
        quantiles: Any = self
        found: Array = quantiles.ppf(u, *given)
        return found

    def _make(self, method: _Method) -> Any:
        """Returns a function of this distribution, with its signature and docstring."""
        body = method.body
        name, (_, *parameters) = (
            body.__name__,
            inspect.signature(body).parameters.values(),
        )
        listed: list[inspect.Parameter] = []
        for p in parameters:
            if method.literal:
                listed.append(p)
            elif p.kind is p.VAR_POSITIONAL:
                listed += self.signature.parameters.values()
            elif p.kind is not p.VAR_KEYWORD:
                new = self._first.get(name, p.name) if p.name in "xkq" else p.name
                listed.append(p.replace(name=new))
        signature = inspect.Signature(listed)
        forms: dict[Any, str] = {
            inspect.Parameter.KEYWORD_ONLY: "{0}={0}",
            inspect.Parameter.VAR_POSITIONAL: "*{0}",
            inspect.Parameter.VAR_KEYWORD: "**{0}",
        }
        passed = ", ".join(forms.get(p.kind, "{0}").format(p.name) for p in listed)
        shown = _unannotated(signature)
        code = f"def {name}{shown}:\n    return _body(_self, {passed})"
        scope: dict[str, Any] = {
            "_body": body,
            "_self": self,
            "__name__": self.__name__,
        }
        exec(code, scope)
        function: FunctionType = scope[name]
        function.__code__ = function.__code__.replace(
            co_filename=body.__code__.co_filename,
            co_firstlineno=body.__code__.co_firstlineno,
        )
        function.__module__ = self.__name__
        if body.__doc__:  # not under python -OO
            function.__doc__ = body.__doc__.replace("{distribution}", self.name)
        function.__annotations__ = {
            **{p.name: p.annotation for p in listed},
            "return": body.__annotations__["return"],
        }
        entries = "".join(
            f"\n      {n}: {d.words}: a parameter of the distribution."
            for n, d in self.domains.items()
        )
        common = _COMMON.replace("\n    {parameters}", entries)
        made: Any = shared(common.replace("{distribution}", self.name))(function)
        if not method.compiled:
            return boundary(made)
        # Quick: most inverses and integrals take XLA longer than their use takes.
        made = library(*method.static, quick=True)(made)
        made.leave = leaving(made)
        return made


def _unannotated(signature: inspect.Signature) -> inspect.Signature:
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(parameters)


def log_of(value: Any) -> Any:
    """Returns the logarithm of a probability; its derivative at 0 is taken for 0."""
    none = value <= 0
    return fnp.where(none, -math.inf, lax.log(fnp.where(none, 1, value)))


def require_letters(name: str, moments: str) -> None:
    """Raises an error for letters that stand for no moments."""
    if not isinstance(moments, str) or set(moments) - set("mvsk"):
        raise ArgumentError(
            f'{name}: moments must be letters of "mvsk", got {moments!r}'
        )


def raw_moment(
    d: Distribution[Any], order: int, shapes: Any, loc: Any, scale: Any, average: Any
) -> Any:
    """Returns the mean of (loc + scale Z)ⁿ, of the moments that are known."""
    needed = ("mean", "var", "skew", "kurtosis")[:order]
    if (order > 4 or not d.has(*needed)) and d.has("raw"):
        powers = [1.0, *(d.formula("raw")(k, *shapes) for k in range(1, order + 1))]
        endless = powers[order] == math.inf
        total = sum(
            math.comb(order, k)
            * loc ** (order - k)
            * scale**k
            * fnp.where(endless, 0, powers[k])
            for k in range(order + 1)
        )
        return fnp.where(endless, math.inf, total)
    if order > 4 or not d.has(*needed):
        return average(
            lambda z, loc, scale: (loc + scale * z) ** order, shapes, loc, scale
        )
    known = [d.formula(name)(*shapes) for name in needed]
    mean = loc + scale * known[0]
    central = [1, 0, *(scale * scale * v for v in known[1:2])]
    for k, ratio in enumerate(known[2:], 3):
        # A constant has no skewness, and its central moments are 0.
        part = (ratio + 3 * (k == 4)) * central[2] ** (k / 2)
        central.append(fnp.where(central[2] == 0, 0, part))
    return sum(
        math.comb(order, k) * mean ** (order - k) * central[k]
        for k in range(order + 1)
        if k != 1
    )
