"""Maximum likelihood: parameters of a distribution from a sample.

The parameters are functions of real numbers, such that every number gives a
distribution whose support has all of the sample; `minimize` finds the best. Derivatives
by the sample follow from the likelihood equations, not from the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.optimize.minimization import minimize
from fxflow.transforms.grad import grad
from fxflow.transforms.vmap import vmap


def fitted(
    name: str,
    domains: Mapping[str, Any],
    bounds: Callable[[list[Any]], tuple[Any, Any]],
    closed: bool,
    loglikelihood: Callable[..., Any],
    ppf: Callable[..., Any],
    known: Callable[..., Any] | None,
    data: Any,
    args: tuple[Any, ...],
    options: dict[str, Any],
) -> tuple[tuple[Array, ...], Array]:
    """Returns the parameters of `Continuous.fit`, and whether they allow the sample.

    Args:
      name: of the distribution.
      domains: of its shapes.
      bounds: the ends of the standard support, of shapes.
      closed: whether the ends are in the support.
      loglikelihood: the mean of it, of the data and all parameters.
      ppf: the standard quantile function.
      known: the closed form, of the data and what is fixed; or None. It returns None
        where there is none for what is fixed.
      data: the sample.
      args: guesses of the first shapes.
      options: guesses of others, and what is fixed.
    """
    names = [*domains, "loc", "scale"]
    fixed, guess = _parsed(name, list(domains), args, options)
    given = [*fixed.values(), *guess.values()]
    x, *values = promote_inexact(f"{name}.fit", data, *given)
    x = x.reshape(-1)
    strong: Any = lambda v: lax.convert_element_type(v, x.aval.dtype)
    fixed = {n: strong(v) for n, v in zip(fixed, values, strict=False)}
    guess = {n: strong(v) for n, v in zip(guess, values[len(fixed) :], strict=True)}
    if known is not None and (found := known(x, fixed)) is not None:
        found = tuple(fnp.asarray(v, x.dtype) for v in found)
        return found, _allows(found, bounds, closed, x)
    free = [n for n in names if n not in fixed]
    start, place = _parametrized(domains, bounds, ppf, x, fixed, guess, free)

    def cost(u: Any) -> Any:
        value = -loglikelihood(x, *place(u))
        return fnp.where(value == value, value, math.inf)

    slope = grad(cost)
    eps = float(fnp.finfo(x.dtype).eps)

    def solve(_: Any, u: Any) -> Any:
        return minimize(cost, u, method="BFGS", tol=10 * eps**0.6).x

    def tangent(linear: Any, y: Any) -> Any:
        matrix = vmap(linear, out_axes=1)(fnp.eye(len(free), dtype=x.dtype))
        return fnp.linalg.solve(matrix, y)

    found = tuple(place(lax.custom_root(slope, start, solve, tangent)))
    return found, _allows(found, bounds, closed, x)


def _allows(parameters: Any, bounds: Any, closed: bool, x: Any) -> Any:
    """Returns whether a sample is finite, and in the support but for roundings."""
    *shapes, loc, scale = parameters
    inside = fnp.all(abs(x) < math.inf) & (scale >= 0)
    for shape in shapes:
        inside = inside & (shape == shape)
    least, most = fnp.min(x), fnp.max(x)
    slack = 8 * float(fnp.finfo(x.dtype).eps)
    for sign, extreme, end in zip((-1, 1), (least, most), bounds(shapes), strict=True):
        finite = abs(end) < math.inf
        at = loc + scale * fnp.where(finite, end, 0)
        room = slack * (abs(loc) + abs(at) + scale)
        beyond = sign * (extreme - at)
        good = beyond <= room if closed else (beyond < 0) | (scale == 0)
        inside = inside & (good | ~fnp.asarray(finite))
    return inside


def require_sample(name: str, data: Any) -> None:
    """Raises an error for a sample that is empty, or known not to be finite."""
    if not is_arraylike(data):
        raise not_an_array(data, f"{name}.fit: data is")
    if not math.prod(typeof(data).shape):
        raise ArgumentError(f"{name}.fit: data is empty: {typeof(data)}")
    if isinstance(data, Tracer):
        return
    values = np.asarray(data)
    if not dtypes.is_complex(values.dtype) and not np.isfinite(values).all():
        odd = values[~np.isfinite(values)][0]
        raise ArgumentError(
            f"{name}.fit: data must be finite, but {odd} is in {typeof(data)}: "
            "drop what is missing first, as by x[fnp.isfinite(x)]"
        )


def require_within(name: str, data: Any, within: Any, options: Any) -> None:
    """Raises an error for a sample known to be outside of every support left."""
    if isinstance(within, Tracer) or isinstance(data, Tracer) or bool(within):
        return
    held = {k: v for k, v in options.items() if k.startswith("f")}
    told = ", ".join(f"{k}={v}" for k, v in held.items()) or "nothing fixed"
    values = np.asarray(data)
    raise ArgumentError(
        f"{name}.fit: the data, from {values.min()} to {values.max()}, is not inside "
        f"the support of any {name} distribution with {told}"
    )


def _parsed(
    name: str, shapes: list[str], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns what is fixed, and guesses, by the names of the parameters."""
    if len(args) > len(shapes):
        raise ArgumentError(
            f"{name}.fit: takes guesses of {len(shapes)} shapes, got {len(args)}"
        )
    guess, fixed = dict(zip(shapes, args, strict=False)), {}
    given = options.pop("method", "MLE")
    if str(given).lower() != "mle":
        raise ArgumentError(
            f'{name}.fit: method must be "MLE", maximum likelihood, got {given!r}: '
            "by the method of moments, solve for the parameters whose stats() are "
            "those of the sample, with fxflow.scipy.optimize.root"
        )
    forms = {n: {f"f{n}", f"fix_{n}", f"f{i}"} for i, n in enumerate(shapes)}
    forms |= {n: {f"f{n}"} for n in ("loc", "scale")}
    for key, value in options.items():
        held = [n for n, keys in forms.items() if key in keys]
        if held and held[0] in fixed:
            raise ArgumentError(f"{name}.fit: {held[0]} is fixed twice")
        if held:
            fixed[held[0]] = value
        elif key in forms:
            guess[key] = value
        else:
            listed = ", ".join(sorted(k for keys in forms.values() for k in keys))
            raise ArgumentError(
                f"{name}.fit: unknown argument {key!r}: parameters are fixed by "
                f"{listed}, and guessed by {', '.join(forms)}"
            )
    fixed = {n: v for n, v in fixed.items() if v is not None}
    if len(fixed) == len(forms):
        raise ArgumentError(f"{name}.fit: all parameters are fixed")
    return fixed, {n: v for n, v in guess.items() if n not in fixed}


def _parametrized(
    domains: Mapping[str, Any],
    bounds: Any,
    ppf: Any,
    x: Any,
    fixed: dict[str, Any],
    guess: dict[str, Any],
    free: list[str],
) -> tuple[Any, Callable[[Any], list[Any]]]:
    """Returns where to start, and the parameters of a vector of real numbers."""
    least, most = fnp.min(x), fnp.max(x)
    shapes = []
    for n, domain in domains.items():
        default = fnp.asarray(domain.inside, x.dtype)
        shapes.append(fixed.get(n, guess.get(n, default)))
    low, high = bounds(shapes)
    ends = [isinstance(end, int | float) and abs(end) < math.inf for end in (low, high)]
    # Quartiles are there where moments are not.
    quarters = fnp.quantile(x, fnp.asarray([0.25, 0.5, 0.75], x.dtype))
    q = [ppf(fnp.asarray(p, x.dtype), *shapes) for p in (0.25, 0.5, 0.75)]
    width = fnp.maximum(quarters[2] - quarters[0], 1e-3 * (most - least))
    scale = fixed.get("scale", guess.get("scale", width / (q[2] - q[0])))
    loc = fixed.get("loc", guess.get("loc", quarters[1] - scale * q[1]))
    if "loc" in fixed and "scale" in free and "scale" not in guess and all(ends[:1]):
        scale = (quarters[1] - loc) / q[1]
    margin = (most - least) / (2.0 + x.aval.size)
    # How far the support reaches beyond the sample on either side, as logarithms.
    first = fnp.where(loc + scale * low < least, least - loc - scale * low, margin)
    last = fnp.where(loc + scale * high > most, loc + scale * high - most, margin)
    first, last = (
        lax.log(fnp.where(v < math.inf, fnp.maximum(v, margin), 1))
        for v in (first, last)
    )
    both = all(ends) and "loc" in free and "scale" in free
    start: dict[str, Any] = {
        n: domain.back(shape)
        for (n, domain), shape in zip(domains.items(), shapes, strict=True)
        if n in free
    }
    if both:
        start |= {"loc": first, "scale": last}
    else:
        limit = ends[0] or ends[1]
        edge = first if ends[0] else last
        start |= {"loc": edge if limit else loc, "scale": lax.log(scale)}
        if ends[1] and "loc" in fixed:
            start["scale"] = last
    vector = fnp.stack([fnp.asarray(start[n], x.dtype) for n in free])

    def place(u: Any) -> list[Any]:
        at = {n: u[i] for i, n in enumerate(free)}
        found = [
            fixed[n] if n in fixed else domain.line(at[n])
            for n, domain in domains.items()
        ]
        if both:
            left, right = least - lax.exp(at["loc"]), most + lax.exp(at["scale"])
            width = (right - left) / (high - low)
            return [*found, left - width * low, width]
        width = fixed.get("scale")
        if width is None and ends[1] and "loc" in fixed and high > 0:
            width = (most + lax.exp(at["scale"]) - fixed["loc"]) / high
        elif width is None:
            width = lax.exp(at["scale"])
        if "loc" in fixed:
            return [*found, fixed["loc"], width]
        if ends[0]:
            return [*found, least - width * low - lax.exp(at["loc"]), width]
        if ends[1]:
            return [*found, most - width * high + lax.exp(at["loc"]), width]
        return [*found, at["loc"], width]

    return lax.stop_gradient(vector), place
