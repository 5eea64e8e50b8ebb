"""What methods for initial value problems share: their interface, and their steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.arrays.promotion import result_type
from fxflow.scipy.integrate._ode.tableaus import Weights

#: How the size of a step follows from its error (Hairer, Nørsett, Wanner, II.4).
SAFETY, SMALLEST, LARGEST = 0.9, 0.2, 10.0


class Problem(NamedTuple):
    """An initial value problem and its tolerances; arrays may be traced.

    Attributes:
      fun: of the time and the state to the slope.
      jacobian: of the time and the state to the matrix of derivatives.
      end: the last time, inf if steps may go beyond it.
      direction: 1.0, or -1.0 if the time runs backward.
      rtol: relative tolerance.
      atol: absolute tolerance.
      longest: the longest step.
    """

    fun: Callable[[Any, Any], Array]
    jacobian: Callable[[Any, Any], Array]
    end: Array
    direction: Array
    rtol: Array
    atol: Array
    longest: Array


class Counts(NamedTuple):
    """How often a function, a Jacobian and a factorization were computed."""

    nfev: Any = 0
    njev: Any = 0
    nlu: Any = 0

    def plus(self, nfev: Any = 0, njev: Any = 0, nlu: Any = 0) -> Counts:
        """Returns greater counts."""
        return Counts(self.nfev + nfev, self.njev + njev, self.nlu + nlu)


class Step(NamedTuple):
    """A step that was tried.

    Attributes:
      accepted: whether its error is small enough.
      end: the time where it ends.
      y: the state there.
      row: coefficients of the interpolant, array[k, n]; None if they are not wanted.
      note: what `Method.again` needs in order to repeat the step.
    """

    accepted: Any
    end: Array
    y: Array
    row: Array | None
    note: Any


class Method(Frozen):
    """A method for initial value problems.

    Its *state* is a named tuple with the fields `t`, `y`, `size` (of the next step),
    `failed` and `counts`, and what else the method keeps from step to step.

    Attributes:
      name: as users write it.
      order: order of the estimate of the error.
      terms: the number of coefficients of the interpolant.
      implicit: whether it uses the Jacobian.
    """

    implicit: ClassVar[bool] = False
    name: str
    order: int
    terms: int

    def start(self, p: Problem, t: Array, y: Array, f: Array, size: Array) -> Any:
        """Returns the first state, given the slope and the size of the first step."""
        raise NotImplementedError

    def attempt(self, p: Problem, state: Any, dense: bool) -> tuple[Any, Step]:
        """Tries a step, and returns the state after it."""
        raise NotImplementedError

    def memory(self, p: Problem, t: Array, y: Array, size: Array) -> Any:
        """Returns what `again` carries from step to step, before the first step."""
        raise NotImplementedError

    def again(
        self, p: Problem, memory: Any, t: Array, size: Array, note: Any, dense: bool
    ) -> tuple[Any, Array, Array | None]:
        """Repeats an accepted step, differentiably.

        Args:
          p: the problem.
          memory: see `memory`.
          t: where the step starts.
          size: size of the step, with its sign.
          note: that of the step.
          dense: whether the coefficients of the interpolant are wanted.

        Returns:
          The memory after the step, the state, and the coefficients.
        """
        raise NotImplementedError

    def basis(self, part: Array) -> list[Array]:
        """Returns the polynomials that the coefficients belong to, at a part of a step.

        The first one is 1, and belongs to the state where the step starts, or ends.
        """
        out = [fnp.ones_like(part)]
        for _ in range(1, self.terms):
            out.append(out[-1] * part)
        return out

    def between(self, row: Array, part: Array) -> Array:
        """Returns the state at a part of a step, array[n]."""
        out: Array = weighted(dict(enumerate(self.basis(part))), row)
        return out


def weighted(weights: Weights | dict[int, Any], values: Sequence[Any] | Array) -> Any:
    """Returns the sum of weights times values; the weights are by number."""
    total: Any = None
    for i, weight in weights.items():
        term = values[i] * weight
        total = term if total is None else total + term
    return total


def size_of(x: Array) -> Array:
    """Returns the root of the mean square."""
    total = fnp.sum(fnp.square(fnp.real(x)))
    if dtypes.is_complex(x.dtype):
        total = total + fnp.sum(fnp.square(fnp.imag(x)))
    return fnp.sqrt(total / max(x.size, 1))


def scale_of(p: Problem, *states: Array) -> Array:
    """Returns what errors of states are measured by."""
    largest = fnp.abs(states[0])
    for y in states[1:]:
        largest = fnp.maximum(largest, fnp.abs(y))
    return p.atol + p.rtol * largest


def shortest(p: Problem, t: Array) -> Array:
    """Returns the shortest step that changes a time."""
    return 10 * fnp.abs(fnp.nextafter(t, p.direction * fnp.inf) - t)


def limited(p: Problem, t: Array, size: Array) -> tuple[Array, Array]:
    """Returns a step, with its sign, and its end, not beyond the end of the problem."""
    end = t + p.direction * size
    end = fnp.where(p.direction * (end - p.end) > 0, p.end, end)
    return end - t, end


def first_size(
    p: Problem, order: int, t: Array, y: Array, f: Array, length: Array
) -> Array:
    """Returns the size of the first step (Hairer, Nørsett, Wanner, II.4)."""
    scale = scale_of(p, y)
    far, fast = size_of(y / scale), size_of(f / scale)
    small = (far < 1e-5) | (fast < 1e-5)
    guess = fnp.where(small, 1e-6, 0.01 * far / fnp.where(small, 1, fast))
    guess = fnp.minimum(guess, length)
    step = p.direction * guess
    bent = size_of((p.fun(t + step, y + step * f) - f) / scale)
    bent = bent / fnp.where(guess == 0, 1, guess)
    most = fnp.maximum(fast, bent)
    flat = most <= 1e-15
    usual = (0.01 / fnp.where(flat, 1, most)) ** (1 / (order + 1))
    size = fnp.where(flat, fnp.maximum(1e-6, guess * 1e-3), usual)
    return fnp.minimum(fnp.minimum(100 * guess, size), fnp.minimum(length, p.longest))


def chosen(which: Any, new: Any, old: Any) -> Any:
    """Returns one of two arrays of one shape, of the dtype of the first."""
    old = fnp.astype(old, new.dtype)
    return lax.select(fnp.broadcast_to(which, new.shape), new, old)


def vector_of(like: Any) -> tuple[Callable[[Any], Array], Callable[[Array], Any]]:
    """Returns functions from pytrees of arrays of these types to vectors, and back.

    The vectors have the dtype that all promote to. Real leaves are the real parts.
    """
    leaves, structure = tree.flatten(like)
    shapes = [fnp.shape(x) for x in leaves]
    kinds = [typeof(x).dtype for x in leaves]
    dtype = result_type(*leaves)
    ends = np.cumsum([math.prod(s) for s in shapes])[:-1].tolist()

    def join(values: Any) -> Array:
        return fnp.concatenate(
            [fnp.astype(fnp.ravel(x), dtype) for x in tree.leaves(values)]
        )

    def part(vector: Array) -> Any:
        parts = []
        for kind, shape, v in zip(kinds, shapes, fnp.split(vector, ends), strict=True):
            v = v if dtypes.is_complex(kind) else fnp.real(v)
            parts.append(fnp.astype(fnp.reshape(v, shape), kind))
        return structure.unflatten(parts)

    return join, part
