"""Responses of linear systems: to inputs, impulses and steps, and by frequency."""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.signal.systems import continuous_system, sampled_system

_docs = shared("""
    Args:
      system: (num, den), (zeros, poles, gain), (A, B, C, D), or an object of `lti`.
      X0: float array-like[n]: the state at the first time; None is 0.
      T: real array-like[t]: times, evenly spaced; None is 7 time constants of the
        slowest pole.
      N: the number of times, if `T` is not given; None is 100.
      w: real array-like[f]: angular frequencies; None: from poles and zeros.
      n: the number of frequencies, if `w` is not given.

    Raises:
      ArgumentError: the system is sampled, or the times are not evenly spaced.
      ConcretizationError: the system is traced, and frequencies are to be chosen.
      ShapeError: the shapes are incompatible.

    Source: `scipy.signal.{name}`.
""")

_docs_of_samples = shared("""
    Args:
      system: (num, den, dt), (zeros, poles, gain, dt), (A, B, C, D, dt), or an object
        of `dlti`.
      x0: float array-like[k]: the state at the first sample; None is 0.
      t: real array-like[m]: times, which are known; None is every sample.
      n: the number of samples, if `t` is not given; None is 100.

    Raises:
      ArgumentError: the system is continuous.
      ConcretizationError: `t` is traced.
      ShapeError: the shapes are incompatible.

    Source: `scipy.signal.{name}`.
""")


# -- continuous systems ----------------------------------------------------------------


@_docs
def lsim(
    system: Any, U: Any, T: ArrayLike, X0: ArrayLike | None = None, interp: bool = True
) -> tuple[Array, Array, Array]:
    """Returns the response of a continuous system to an input.

    Args:
      U: array-like[t] or [t, p]: the input; None or 0 is a system without input.
      T: real array-like[t]: times, evenly spaced, the first one not negative; the
        system is at rest, or at `X0`, at time 0.
      interp: whether the input is linear between times, or constant.

    Returns:
      The times, float array[t]; the outputs, array[t, q]; and the states, array[t, n].
      Axes of length 1 are left out.

    Example:
      >>> lsim(([1.0], [1.0, 0.0]), [1.0, 1.0, 1.0], [0.0, 1.0, 2.0])[1]
      Array([0., 1., 2.], dtype=float32)
    """
    found = continuous_system("lsim", system).output(U, T, X0, interp)
    return found[0], found[1], found[2]


@_docs
def impulse(
    system: Any,
    X0: ArrayLike | None = None,
    T: ArrayLike | None = None,
    N: int | None = None,
) -> tuple[Array, Array]:
    """Returns the response of a continuous system to an impulse at time 0.

    Returns:
      The times, float array[t], and the outputs, array[t].

    Example:
      >>> impulse(([1.0], [1.0, 1.0]), T=[0.0, 1.0])[1].round(3)
      Array([1.   , 0.368], dtype=float32)
    """
    times, y = continuous_system("impulse", system).impulse(X0, T, N)
    return times, y


@_docs
def step(
    system: Any,
    X0: ArrayLike | None = None,
    T: ArrayLike | None = None,
    N: int | None = None,
) -> tuple[Array, Array]:
    """Returns the response of a continuous system to an input of 1.

    Returns:
      The times, float array[t], and the outputs, array[t].

    Example:
      >>> step(([1.0], [1.0, 1.0]), T=[0.0, 1.0])[1].round(3)
      Array([0.   , 0.632], dtype=float32)
    """
    times, y = continuous_system("step", system).step(X0, T, N)
    return times, y


@_docs
def freqresp(
    system: Any, w: ArrayLike | None = None, n: int = 10000
) -> tuple[Array, Array]:
    """Returns the frequency response of a continuous system.

    Returns:
      The frequencies, float array[f], and the response, complex array[f].

    Example:
      >>> abs(freqresp(([1.0], [1.0, 1.0]), [0.0, 1.0])[1]).round(3)
      Array([1.   , 0.707], dtype=float32)
    """
    return continuous_system("freqresp", system).freqresp(w, n)


@_docs
def bode(
    system: Any, w: ArrayLike | None = None, n: int = 100
) -> tuple[Array, Array, Array]:
    """Returns magnitudes and phases of the frequency response of a continuous system.

    Returns:
      The frequencies; decibels; and degrees, without jumps. Float arrays[f].

    Example:
      >>> bode(([1.0], [1.0, 1.0]), [0.0, 1.0])[2].round(3)
      Array([  0., -45.], dtype=float32)
    """
    return continuous_system("bode", system).bode(w, n)


# -- sampled systems -------------------------------------------------------------------


@_docs_of_samples
def dlsim(
    system: Any, u: ArrayLike, t: ArrayLike | None = None, x0: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Returns the response of a sampled system to an input.

    Args:
      u: array-like[m] or [m, p]: the input; with `t`, its values at these times,
        between which it is linear.

    Returns:
      The times, float array[s]; the outputs, array[s, q]; and of a state space also the
      states, array[s, k].

    Example:
      >>> dlsim(([1.0], [1.0, -0.5], 1.0), [1.0, 1.0, 1.0])[1][:, 0]
      Array([0. , 1. , 1.5], dtype=float32)
    """
    return sampled_system("dlsim", system).output(u, t, x0)


@_docs_of_samples
def dimpulse(
    system: Any,
    x0: ArrayLike | None = None,
    t: ArrayLike | None = None,
    n: int | None = None,
) -> tuple[Array, tuple[Array, ...]]:
    """Returns the responses of a sampled system to an impulse in each input.

    Returns:
      The times, float array[s], and for each input the outputs, array[s, q].

    Example:
      >>> dimpulse(([1.0], [1.0, -0.5], 1.0), n=3)[1][0][:, 0]
      Array([0. , 1. , 0.5], dtype=float32)
    """
    times, each = sampled_system("dimpulse", system).impulse(x0, t, n)
    return times, each


@_docs_of_samples
def dstep(
    system: Any,
    x0: ArrayLike | None = None,
    t: ArrayLike | None = None,
    n: int | None = None,
) -> tuple[Array, tuple[Array, ...]]:
    """Returns the responses of a sampled system to 1 in each input.

    Returns:
      The times, float array[s], and for each input the outputs, array[s, q].

    Example:
      >>> dstep(([1.0], [1.0, -0.5], 1.0), n=3)[1][0][:, 0]
      Array([0. , 1. , 1.5], dtype=float32)
    """
    times, each = sampled_system("dstep", system).step(x0, t, n)
    return times, each


@_docs_of_samples
def dfreqresp(
    system: Any, w: ArrayLike | None = None, n: int = 10000, whole: bool = False
) -> tuple[Array, Array]:
    """Returns the frequency response of a sampled system.

    Args:
      w: real array-like[f]: angles in a sample; None is evenly spaced ones.
      n: the number of angles, if `w` is not given.
      whole: whether these go round the circle, or half of it.

    Returns:
      The angles, float array[f], and the response, complex array[f].

    Example:
      >>> abs(dfreqresp(([1.0], [1.0, -0.5], 1.0), [0.0])[1])
      Array([2.], dtype=float32)
    """
    return sampled_system("dfreqresp", system).freqresp(w, n, whole)


@_docs_of_samples
def dbode(
    system: Any, w: ArrayLike | None = None, n: int = 100
) -> tuple[Array, Array, Array]:
    """Returns magnitudes and phases of the frequency response of a sampled system.

    Args:
      w: real array-like[f]: angles in a sample; None is evenly spaced ones.
      n: the number of angles, if `w` is not given.

    Returns:
      The angular frequencies, angles divided by `dt`; decibels; and degrees, without
      jumps. Float arrays[f].

    Example:
      >>> dbode(([1.0], [1.0, -0.5], 0.1), [0.0])[1].round(3)
      Array([6.021], dtype=float32)
    """
    return sampled_system("dbode", system).bode(w, n)
