"""Gamma-distributed numbers: a rejection loop with an implicit derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.higher_order import run_host
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax import sampling
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, ge, le
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.exponential import exp, log
from fxflow.lax.families import FLOAT, require_kind
from fxflow.lax.incomplete_gamma import RandomGammaGrad
from fxflow.lax.powers import pow, sqrt, square
from fxflow.lax.reduction import reduce_or
from fxflow.lax.select import select


@register
class RandomGamma(Primitive):
    """One gamma number for each key and parameter. dtypes: u32 keys, float parameters.

    Lowered to a loop. The derivative with respect to the parameter is that of the
    quantile: -(∂F/∂a) / density.

    Params:
      log_space: whether the logarithm is drawn, which does not underflow for small
        parameters.
    """

    name = "random_gamma"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.drawn

    def abstract(self, *avals: Aval, log_space: bool) -> Aval:
        """The parameters' type."""
        key_data, alpha = avals
        require_kind(self.name, alpha, FLOAT)
        if key_data.dtype != dtypes.uint32:
            raise DtypeError(f"random_gamma: keys are data u32[..., 2], got {key_data}")
        if key_data.shape != (*alpha.shape, 2):
            raise ShapeError(
                f"random_gamma: takes one key for each parameter, got {key_data} of "
                f"keys for {alpha}"
            )
        return alpha.strong()

    def lower(self, ctx: Context, *operands: str, log_space: bool) -> str:
        """A loop until every number is accepted."""
        (name,) = ctx.compose(lambda w, a: _sample(w, a, log_space), operands)
        return str(name)

    def evaluate(self, *values: Any, log_space: bool) -> Any:
        """The same loop on the host."""
        avals = [Aval(v.shape, v.dtype) for v in values]
        graph, _ = trace_flat(lambda w, a: [_sample(w, a, log_space)], avals)
        return run_host(graph, values)[0]

    def jvp(self, primals: Values, tangents: Values, *, log_space: bool) -> Dual:
        """The derivative of the quantile at the number drawn."""
        key_data, alpha = primals
        out = self.bind(key_data, alpha, log_space=log_space)
        tangent = tangents[1]
        if type(tangent) is Zero:
            return out, Zero(typeof(out).tangent())
        sample = out
        if log_space:
            tiny = full_like(out, float(dtypes.finfo(typeof(out).dtype).tiny))
            sample = exp(out)
            # exp underflows where the logarithm is still a number.
            sample = select(eq(sample, 0.0), tiny, sample)
        slope = RandomGammaGrad.bind(alpha, sample)
        if log_space:
            slope = div(slope, sample)
        return out, arith.mul(tangent, slope)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Elementwise."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both, **params), True


def _choose(which: Any, new: Any, old: Any) -> Any:
    """Returns new state where `which`, for keys (one axis more) as well."""
    shape = typeof(new).shape
    have = typeof(which).shape
    if have != shape:
        which = broadcast_in_dim(which, shape, tuple(range(len(have))))
    return select(which, new, old)


def _sample(key_data: Any, alpha: Any, log_space: bool) -> Any:
    """Draws gamma numbers: u32[*shape, 2] keys and float[*shape] parameters.

    For a < 1 a number of parameter a + 1 is multiplied by u^(1/a) (Stuart 1962).
    """
    dtype = typeof(alpha).dtype
    large = ge(alpha, 1.0)
    # Below 1 by Γ(a) ~ Γ(a + 1) U^(1/a).
    d = sub(select(large, alpha, add(alpha, 1.0)), 1 / 3)
    c = div(1 / 3, sqrt(d))
    loop_key, boost_key = sampling.split(key_data, 2)
    v = _accepted(loop_key, c, d)
    if log_space:
        log_u = neg(sampling.exponential(boost_key, (), dtype))
        none = bitwise_or(large, eq(log_u, 0.0))
        boost = mul(log_u, div(1.0, alpha))
        boost = select(none, full_like(boost, 0), boost)
        return add(add(log(d), log(v)), boost)
    # In (0, 1]: a zero would make the number zero.
    u = sub(1.0, sampling.uniform(boost_key, (), dtype))
    boost = pow(u, div(1.0, alpha))
    return mul(mul(d, v), select(large, full_like(boost, 1), boost))


def _accepted(key_data: Any, c: Any, d: Any) -> Any:
    """Returns v such that d·v has the gamma distribution of parameter d + 1/3.

    Marsaglia and Tsang 2000, "A simple method for generating gamma variables": v is
    (1 + c x)³ of a normal x, accepted with a probability that the first comparison
    mostly decides.
    """
    shape, dtype = typeof(d).shape, typeof(d).dtype
    axes = tuple(range(len(shape)))

    def wrong(x2: Any, v: Any, u: Any) -> Any:
        # The squeeze of Marsaglia and Tsang (2000), then the density itself.
        by_bound = ge(u, sub(1.0, mul(0.0331, square(x2))))
        density = add(mul(x2, 0.5), mul(d, add(sub(1.0, v), log(v))))
        return bitwise_and(by_bound, ge(log(u), density))

    def going(state: Any) -> Any:
        _, x2, v, u = state
        return reduce_or(wrong(x2, v, u), axes)

    def again(state: Any) -> Any:
        key_data, x2, v, u = state
        next_key, normal_key, unit_key = sampling.split(key_data, 3)
        x, root = _positive(normal_key, c)
        new = (
            next_key,
            square(x),
            mul(square(root), root),
            sampling.uniform(unit_key, (), dtype),
        )
        active = wrong(x2, v, u)
        return tuple(_choose(active, n, o) for n, o in zip(new, state, strict=True))

    # A state that is not accepted.
    start = (key_data, full_like(d, 0), full_like(d, 1), full_like(d, 2))
    return while_loop(going, again, start)[2]


def _positive(key_data: Any, c: Any) -> tuple[Any, Any]:
    """Returns normal numbers x for which 1 + c x is positive, and that."""
    dtype = typeof(c).dtype
    axes = tuple(range(typeof(c).ndim))

    def going(state: Any) -> Any:
        return reduce_or(le(state[2], 0.0), axes)

    def again(state: Any) -> Any:
        next_key, normal_key = sampling.split(state[0], 2)
        x = sampling.normal(normal_key, (), dtype)
        new = (next_key, x, add(1.0, mul(x, c)))
        active = le(state[2], 0.0)
        return tuple(_choose(active, n, o) for n, o in zip(new, state, strict=True))

    _, x, root = while_loop(going, again, (key_data, full_like(c, 0), full_like(c, -1)))
    return x, root


def random_gamma(key: Any, a: Any, /, *, log_space: bool = False) -> Array:
    """Draws gamma numbers, each from a key of its own.

    Args:
      key: one typed key.
      a: parameters, float, any shape.
      log_space: whether to draw the logarithm.

    Returns:
      An array of the type of `a`; differentiable with respect to `a`.

    Raises:
      DtypeError: `a` is not a float array.

    Example:
      >>> from fxflow.lax.random_bits import random_seed
      >>> random_gamma(random_seed(0), np.ones(3, np.float32)).shape
      (3,)

    Source: Marsaglia and Tsang 2000; derivative: Figurnov, Mohamed, Mnih 2018,
    "Implicit reparameterization gradients".
    """
    shape = typeof(a).shape
    each = sampling.threefry_data(sampling.new_keys(key, shape))
    return RandomGamma.bind(each, a, log_space=log_space)
