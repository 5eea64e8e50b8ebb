"""Line searches: find the step size in a given direction.

A line search is the last part of a chain and scales the direction it gets. `update`
needs the loss at the parameters (`value`), its gradient (`grad`) and the function
(`value_fn`), to which it passes other keyword arguments:

    value, grad = value_and_grad(loss)(params)
    updates, state = tx.update(grad, state, params, value=value, grad=grad,
                               value_fn=loss)
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.lax.callbacks import debug_callback
from fxflow.optim.base import (
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    Updates,
    need_extra,
    need_params,
)
from fxflow.optim.states import get
from fxflow.optim.tree import add_scale, cast_like, norm, scale, vdot, zeros_like
from fxflow.transforms.grad import value_and_grad


class BacktrackingLinesearchInfo(NamedTuple):
    """Result of a backtracking search.

    Attributes:
      num_linesearch_steps: number of evaluations of the loss, int32[].
      decrease_error: violation of the decrease condition by the last step; 0 is
        success.
    """

    num_linesearch_steps: Array
    decrease_error: Array


class ScaleByBacktrackingLinesearchState(NamedTuple):
    """State of `scale_by_backtracking_linesearch`.

    Attributes:
      learning_rate: the last step size.
      value: the loss after the step.
      grad: the gradient after the step, or None.
      info: result of the search.
    """

    learning_rate: Array
    value: Array
    grad: Updates | None
    info: BacktrackingLinesearchInfo


class ZoomLinesearchInfo(NamedTuple):
    """Result of a zoom search.

    Attributes:
      num_linesearch_steps: number of evaluations of the loss and its gradient, int32[].
      decrease_error: violation of the decrease condition; 0 is success.
      curvature_error: violation of the curvature condition; 0 is success.
    """

    num_linesearch_steps: Array
    decrease_error: Array
    curvature_error: Array


class ScaleByZoomLinesearchState(NamedTuple):
    """State of `scale_by_zoom_linesearch`.

    Attributes:
      learning_rate: the last step size.
      value: the loss after the step.
      grad: the gradient after the step.
      info: result of the search.
    """

    learning_rate: Array
    value: Array
    grad: Updates
    info: ZoomLinesearchInfo


_docs = {
    "value": "the loss at the parameters",
    "grad": "its gradient there",
    "value_fn": "the loss, a function of the parameters",
}


def _given(
    name: str, params: Params | None, extra: dict[str, Any]
) -> tuple[Params, Any, Updates, Callable[..., Any]]:
    """Returns the arguments of a search; `value_fn` with its extra arguments bound."""
    params = need_params(name, params)
    value, grad, value_fn = (need_extra(name, what, extra.get(what)) for what in _docs)
    others = {k: v for k, v in extra.items() if k not in _docs}
    kinds = inspect.signature(value_fn).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in kinds):
        taken = {p.name for p in kinds if p.kind is not p.POSITIONAL_ONLY}
        others = {k: v for k, v in others.items() if k in taken}
    return params, value, grad, lambda at: value_fn(at, **others)


def _slope(updates: Updates, grad: Updates) -> Any:
    return fnp.real(vdot(updates, grad))


def _report(verbose: bool, name: str, info: Any) -> None:
    if verbose:
        debug_callback(
            lambda *values: print(f"{name}: {type(info)(*map(float, values))}"), *info
        )


def scale_by_backtracking_linesearch(
    max_backtracking_steps: int,
    slope_rtol: Scalar = 1e-4,
    decrease_factor: Scalar = 0.8,
    increase_factor: Scalar = 1.5,
    max_learning_rate: Scalar | None = 1.0,
    atol: Scalar = 0.0,
    rtol: Scalar = 0.0,
    store_grad: bool = False,
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    r"""Makes a search that shortens the step until the loss decreases enough.

    For a direction u it finds the first of :math:`\eta, c\eta, c^2\eta, \ldots` with

    .. math:: f(p + \eta u) \le (1 + \rho) f(p) + \alpha + c_1 \eta \langle u, g\rangle

    Args:
      max_backtracking_steps: maximum number of times the step is shortened.
      slope_rtol: :math:`c_1`, the required fraction of the decrease that the slope
        predicts.
      decrease_factor: c, below 1.
      increase_factor: ratio of the first step size to the previous one; infinity means
        to start with `max_learning_rate`.
      max_learning_rate: the largest step size; None means no bound.
      atol: α.
      rtol: ρ.
      store_grad: whether to keep the gradient after the step, for
        `value_and_grad_from_state`.
      verbose: whether to print the result of each search.

    Returns:
      A transformation. If all steps are too long it takes the last one; if the loss is
      not finite, the step is 0.

    Raises:
      ArgumentError: the first step would be unbounded, or (from `update`) an argument
        is missing.

    Example:
      >>> def loss(x):
      ...     return fnp.sum(x**2)
      >>> tx = optim.chain(optim.sgd(4.0), optim.scale_by_backtracking_linesearch(20))
      >>> x = fnp.array([1.0, -1.0])
      >>> value, grad = fxflow.value_and_grad(loss)(x)
      >>> u, _ = tx.update(grad, tx.init(x), x, value=value, grad=grad, value_fn=loss)
      >>> bool(loss(x + u) < value)
      True

    Reference: Armijo 1966; Vaswani et al. 2019, "Painless stochastic gradient".
    """
    unbounded = isinstance(increase_factor, float) and math.isinf(increase_factor)
    if unbounded and max_learning_rate is None:
        raise ArgumentError(
            "scale_by_backtracking_linesearch: an infinite increase_factor needs "
            "max_learning_rate, where the search begins"
        )
    name = "scale_by_backtracking_linesearch"

    def init(params: Params) -> ScaleByBacktrackingLinesearchState:
        kind = norm(params).dtype
        info = BacktrackingLinesearchInfo(
            fnp.zeros((), "int32"), fnp.full((), math.inf, kind)
        )
        return ScaleByBacktrackingLinesearchState(
            fnp.ones((), kind),
            fnp.full((), math.inf, kind),
            zeros_like(params) if store_grad else None,
            info,
        )

    def update(
        updates: Updates,
        state: ScaleByBacktrackingLinesearchState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ScaleByBacktrackingLinesearchState]:
        params, value, grad, value_fn = _given(name, params, extra)
        kind = state.learning_rate.dtype
        # The loop carries them: constants in its graph would need a new program for
        # each value.
        allowed = fnp.add(fnp.multiply(fnp.add(1.0, rtol), value), atol)
        fixed = fnp.astype(allowed, kind), fnp.astype(_slope(updates, grad), kind)

        def tried(rate: Any, allowed: Any, slope: Any) -> tuple[Any, Any]:
            new = fnp.astype(value_fn(add_scale(params, rate, updates)), kind)
            promised = fnp.multiply(fnp.multiply(rate, slope), slope_rtol)
            allowed = fnp.add(allowed, promised)
            error = fnp.maximum(fnp.subtract(new, allowed), 0.0)
            error = fnp.where(fnp.isfinite(new), error, math.inf)
            return new, fnp.astype(error, kind)

        def goes_on(carry: Any) -> Any:
            _, _, error, count, *_ = carry
            return fnp.logical_and(
                fnp.greater(error, 0.0), fnp.less_equal(count, max_backtracking_steps)
            )

        def shorten(carry: Any) -> Any:
            rate, _, _, count, *fixed = carry
            rate = fnp.astype(fnp.multiply(decrease_factor, rate), kind)
            return rate, *tried(rate, *fixed), fnp.add(count, 1), *fixed

        if unbounded:
            first = fnp.asarray(max_learning_rate, kind)
        else:
            first = fnp.multiply(increase_factor, state.learning_rate)
            if max_learning_rate is not None:
                first = fnp.minimum(first, max_learning_rate)
            first = fnp.astype(first, kind)
        start = (first, *tried(first, *fixed), fnp.ones((), "int32"), *fixed)
        rate, new, error, count, *_ = lax.while_loop(goes_on, shorten, start)
        rate = fnp.where(fnp.isfinite(error), rate, 0)
        info = BacktrackingLinesearchInfo(count, error)
        _report(verbose, name, info)
        out = cast_like(scale(rate, updates), updates)
        after = None
        if store_grad:
            new, after = value_and_grad(value_fn)(add_scale(params, rate, updates))
            new, after = fnp.astype(new, kind), cast_like(after, params)
        return out, ScaleByBacktrackingLinesearchState(rate, new, after, info)

    return GradientTransformationExtraArgs(init, update)


# -- zoom ------------------------------------------------------------------------------


class Point(NamedTuple):
    """A step size with the loss and the slope there."""

    at: Any
    value: Any
    slope: Any


class ZoomSearch(NamedTuple):
    """The state of a zoom search.

    Until an interval is found, `high` is the previous point; then a minimum is between
    `low`, the best point so far, and `high`.
    """

    start: Point
    count: Any
    done: Any
    found: Any  # whether an interval is known
    low: Point
    high: Point
    ref: Point  # the end replaced last, for the cubic
    next: Any  # the next step size
    best: Point
    grad: Any  # the gradient at `best`
    decrease_error: Any
    curvature_error: Any


def _pick(which: Any, new: Any, old: Any) -> Any:
    return tree.map(lambda n, o: fnp.where(which, n, o), new, old)


def _cubic(a: Point, b: Point, c: Point) -> Any:
    """Returns the minimum of the cubic through three values and the slope at `a`."""
    db, dc = b.at - a.at, c.at - a.at
    below = (db * dc) ** 2 * (db - dc)
    over_b = b.value - a.value - a.slope * db
    over_c = c.value - a.value - a.slope * dc
    third = (dc**2 * over_b - db**2 * over_c) / below
    second = (-(dc**3) * over_b + db**3 * over_c) / below
    root = fnp.sqrt(second * second - 3.0 * third * a.slope)
    return a.at + (root - second) / (3.0 * third)


def _quadratic(a: Point, b: Point) -> Any:
    """Returns the minimum of the parabola through two values and the slope at `a`."""
    db = b.at - a.at
    curve = (b.value - a.value - a.slope * db) / (db * db)
    return a.at - a.slope / (2.0 * curve)


def _within(search: ZoomSearch) -> Any:
    """Returns a step in the interval: by a cubic, else a parabola, else the middle.

    Rejects an estimate near an end, which would hardly shorten the interval. The
    margins of a fifth and a tenth are those of Moré and Thuente, and of MINPACK.
    """
    low, high = search.low, search.high
    length = fnp.abs(high.at - low.at)
    left, right = fnp.minimum(low.at, high.at), fnp.maximum(low.at, high.at)

    def inside(x: Any, margin: float) -> Any:
        return fnp.logical_and(
            fnp.greater(x, left + margin * length), fnp.less(x, right - margin * length)
        )

    cubic, quadratic = _cubic(low, high, search.ref), _quadratic(low, high)
    other = fnp.where(inside(quadratic, 0.1), quadratic, (low.at + high.at) / 2.0)
    return fnp.where(inside(cubic, 0.2), cubic, other)


def zoom_search(
    tried: Callable[[Any], tuple[Point, Any]],
    start: Point,
    grad: Any,
    first: Any,
    *,
    max_linesearch_steps: int,
    longest: Scalar = math.inf,
    tol: Scalar = 0.0,
    increase_factor: Scalar = 2.0,
    slope_rtol: Scalar = 1e-4,
    curv_rtol: Scalar = 0.9,
    approx_dec_rtol: Scalar | None = 1e-6,
    stepsize_precision: Scalar = 1e-5,
    accepted: Callable[[Point, Any], Any] | None = None,
) -> ZoomSearch:
    """Searches along a line for a step that satisfies the strong Wolfe conditions.

    Args:
      tried: function of a step size that returns the point there and the gradient.
      start: the point at the step size 0.
      grad: the gradient there, in the types that `tried` returns.
      first: the step size to try first.
      longest: the largest step size.
      max_linesearch_steps, tol, increase_factor, slope_rtol, curv_rtol: see
        `scale_by_zoom_linesearch`.
      approx_dec_rtol, stepsize_precision: see `scale_by_zoom_linesearch`.
      accepted: function of a point and the gradient there that returns whether a step
        may end the search; None accepts all.

    Returns:
      The last state of the search: its `best` point with the gradient `grad`.
    """
    kind = start.value.dtype

    def number(x: Any) -> Any:
        return fnp.asarray(x, kind)

    def missed(start: Point, at: Point) -> tuple[Any, Any]:
        slope = start.slope
        decrease = at.value - (start.value + slope_rtol * at.at * slope)
        if approx_dec_rtol is not None:
            over = at.value - (start.value + approx_dec_rtol * fnp.abs(start.value))
            steep = at.slope - (2 * slope_rtol - 1.0) * slope
            decrease = fnp.minimum(decrease, fnp.maximum(over, steep))
        curvature = fnp.abs(at.slope) - curv_rtol * fnp.abs(slope)
        errors = (fnp.maximum(x, 0.0) for x in (decrease, curvature))
        first, second = (fnp.where(fnp.isnan(x), math.inf, x) for x in errors)
        return number(first), number(second)

    def goes_on(search: ZoomSearch) -> Any:
        return fnp.logical_not(search.done)

    def step(search: ZoomSearch) -> ZoomSearch:
        count = fnp.add(search.count, 1)
        at, after = tried(search.next)
        decrease, curvature = missed(search.start, at)
        success = fnp.less_equal(fnp.maximum(decrease, curvature), tol)
        if accepted is not None:
            success = fnp.logical_and(success, accepted(at, after))
        low, high, found = search.low, search.high, search.found
        # Too far: the loss is too large, or not below that of the best step.
        far = fnp.logical_or(
            fnp.greater(decrease, 0.0),
            fnp.logical_and(
                fnp.logical_or(found, fnp.greater(count, 1)),
                fnp.greater_equal(at.value, low.value),
            ),
        )
        far = fnp.logical_or(far, fnp.isnan(at.value))
        upwards = fnp.where(
            found,
            fnp.greater_equal(at.slope * (high.at - low.at), 0.0),
            fnp.greater_equal(at.slope, 0.0),
        )
        # The new step replaces an end, so that a minimum stays in the interval.
        ended = fnp.logical_or(far, upwards)
        ref = _pick(found, _pick(ended, high, low), search.start)
        new_high = _pick(far, at, _pick(upwards, low, high))
        new_low = _pick(far, low, at)
        bracket = fnp.logical_or(found, ended)
        next_search = search._replace(
            count=count, found=bracket, low=new_low, high=new_high, ref=ref
        )
        longer = fnp.minimum(increase_factor * at.at, longest)
        following = number(fnp.where(bracket, _within(next_search), longer))
        # If the search fails, the result is the step with the smallest loss.
        better = fnp.logical_or(success, fnp.less(at.value, search.best.value))
        short = fnp.less_equal(fnp.abs(new_high.at - new_low.at), stepsize_precision)
        over = fnp.where(bracket, short, fnp.greater_equal(at.at, longest))
        done = fnp.logical_or(success, fnp.greater_equal(count, max_linesearch_steps))
        return next_search._replace(
            done=fnp.logical_or(done, over),
            next=following,
            best=_pick(better, at, search.best),
            grad=_pick(better, after, search.grad),
            decrease_error=fnp.where(better, decrease, search.decrease_error),
            curvature_error=fnp.where(better, curvature, search.curvature_error),
        )

    _, curvature = missed(start, start)
    # The loop carries these values: constants in its graph would need a new program
    # for each value.
    begin = ZoomSearch(
        start=start,
        count=fnp.zeros((), "int32"),
        done=fnp.full((), False),
        found=fnp.full((), False),
        low=start,
        high=start,
        ref=start,
        next=number(fnp.minimum(first, longest)),
        best=start,
        grad=grad,
        decrease_error=number(math.inf),
        curvature_error=curvature,
    )
    return lax.while_loop(goes_on, step, begin)


def scale_by_zoom_linesearch(
    max_linesearch_steps: int,
    max_learning_rate: Scalar | None = None,
    tol: Scalar = 0.0,
    increase_factor: Scalar = 2.0,
    slope_rtol: Scalar = 1e-4,
    curv_rtol: Scalar = 0.9,
    approx_dec_rtol: Scalar | None = 1e-6,
    stepsize_precision: Scalar = 1e-5,
    initial_guess_strategy: str = "keep",
    verbose: bool = False,
) -> GradientTransformationExtraArgs:
    r"""Makes a search for a step that satisfies the strong Wolfe conditions.

    With :math:`\varphi(\eta) = f(p + \eta u)` these are

    .. math:: \varphi(\eta) \le \varphi(0) + c_1 \eta \varphi'(0), \qquad
       |\varphi'(\eta)| \le c_2 |\varphi'(0)|

    Steps grow until a minimum is between two of them; then the interval shrinks.

    Args:
      max_linesearch_steps: maximum number of steps to try.
      max_learning_rate: the largest step size; None means no bound.
      tol: tolerance of the conditions.
      increase_factor: the factor by which steps grow.
      slope_rtol: :math:`c_1`.
      curv_rtol: :math:`c_2`; infinity means no condition on the slope.
      approx_dec_rtol: ε of an alternative to the first condition,
        :math:`\varphi(\eta) \le \varphi(0) + \epsilon |\varphi(0)|` and
        :math:`\varphi'(\eta) \le (2 c_1 - 1) \varphi'(0)`, which remains accurate near
        a minimum, where losses differ only by rounding errors; None means no
        alternative.
      stepsize_precision: the length at which an interval is not divided further.
      initial_guess_strategy: the first step size: `"keep"` for the previous one,
        `"one"` for 1.
      verbose: whether to print the result of each search.

    Returns:
      A transformation. If no step satisfies the conditions, it takes the step with the
      smallest loss.

    Raises:
      ArgumentError: the strategy is unknown, or (from `update`) an argument is missing.

    Example:
      >>> def loss(x):
      ...     return fnp.sum(x**2)
      >>> tx = optim.chain(optim.sgd(0.01), optim.scale_by_zoom_linesearch(20))
      >>> x = fnp.array([1.0, -1.0])
      >>> value, grad = fxflow.value_and_grad(loss)(x)
      >>> u, _ = tx.update(grad, tx.init(x), x, value=value, grad=grad, value_fn=loss)
      >>> bool(loss(x + u) < 0.9 * value)
      True

    Reference: Nocedal and Wright 2006, "Numerical optimization", algorithms 3.5 and
    3.6; Hager and Zhang 2006 (the approximate condition).
    """
    name = "scale_by_zoom_linesearch"
    if initial_guess_strategy not in ("keep", "one"):
        raise ArgumentError(
            f'{name}: initial_guess_strategy must be "keep" or "one", got '
            f"{initial_guess_strategy!r}"
        )
    longest = math.inf if max_learning_rate is None else max_learning_rate

    def init(params: Params) -> ScaleByZoomLinesearchState:
        kind = norm(params).dtype
        value, *errors = (fnp.full((), math.inf, kind) for _ in range(3))
        return ScaleByZoomLinesearchState(
            fnp.ones((), kind),
            value,
            zeros_like(params),
            ZoomLinesearchInfo(fnp.zeros((), "int32"), *errors),
        )

    def update(
        updates: Updates,
        state: ScaleByZoomLinesearchState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, ScaleByZoomLinesearchState]:
        params, value, grad, value_fn = _given(name, params, extra)
        kind = state.learning_rate.dtype

        def number(x: Any) -> Any:
            return fnp.asarray(x, kind)

        slope = number(_slope(updates, grad))
        start = Point(number(0.0), number(value), slope)

        def tried(rate: Any) -> tuple[Point, Any]:
            new, after = value_and_grad(value_fn)(add_scale(params, rate, updates))
            at = Point(rate, number(new), number(_slope(updates, after)))
            return at, cast_like(after, params)

        guess = number(1.0) if initial_guess_strategy == "one" else state.learning_rate
        guess = fnp.where(fnp.greater(guess, 0.0), guess, 1.0)
        end = zoom_search(
            tried,
            start,
            cast_like(grad, params),
            guess,
            max_linesearch_steps=max_linesearch_steps,
            longest=longest,
            tol=tol,
            increase_factor=increase_factor,
            slope_rtol=slope_rtol,
            curv_rtol=curv_rtol,
            approx_dec_rtol=approx_dec_rtol,
            stepsize_precision=stepsize_precision,
        )
        info = ZoomLinesearchInfo(end.count, end.decrease_error, end.curvature_error)
        _report(verbose, name, info)
        out = cast_like(scale(end.best.at, updates), updates)
        return out, ScaleByZoomLinesearchState(
            end.best.at, end.best.value, end.grad, info
        )

    return GradientTransformationExtraArgs(init, update)


# -- the loss in the state -------------------------------------------------------------


def value_and_grad_from_state(
    value_fn: Callable[..., Any],
) -> Callable[..., tuple[Array, Updates]]:
    """Makes a `value_and_grad` that reuses the results of the last line search.

    A search ends at the parameters of the next step, and has the loss and its gradient
    there. The function computes them only if the state does not have them, as before
    the first step.

    Args:
      value_fn: the loss, a function of parameters and other arguments.

    Returns:
      A function of these arguments and of `state`, the optimizer's state, that returns
      the loss and its gradient. The loss must be the same function at each step, so it
      must not use mini-batches.

    Raises:
      ArgumentError: (when called) the state has no loss or no gradient.

    Example:
      >>> def loss(x):
      ...     return fnp.sum(x**2)
      >>> tx = optim.lbfgs()
      >>> x = fnp.array([1.0, -1.0])
      >>> value, grad = optim.value_and_grad_from_state(loss)(x, state=tx.init(x))
      >>> float(value), grad.tolist()
      (2.0, [2.0, -2.0])
    """

    def call(params: Params, *args: Any, state: Any, **kwargs: Any) -> Any:
        def is_search(path: Any, part: Any) -> bool:
            return "LinesearchState" in getattr(path[-1], "tuple_name", "")

        value = get(state, "value", filtering=is_search)
        grad = get(state, "grad", filtering=is_search)
        if value is None or grad is None:
            raise ArgumentError(
                "value_and_grad_from_state: the state has no loss with a gradient: the "
                "optimizer has no line search, or one without store_grad=True"
            )

        def compute(_: Any) -> Any:
            new, slope = value_and_grad(value_fn)(params, *args, **kwargs)
            return fnp.astype(new, typeof(value).dtype), cast_like(slope, grad)

        known = fnp.logical_and(fnp.isfinite(value), fnp.isfinite(vdot(grad, grad)))
        return lax.cond(known, lambda _: (value, grad), compute, None)

    return call
