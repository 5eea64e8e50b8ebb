"""Linear systems as objects: state spaces, ratios of polynomials, zeros and poles.

All are immutable pytrees of their arrays; the time between samples is static. So `jit`,
`vmap` and `grad` go through them, by matrices, coefficients, zeros and poles.
"""

from __future__ import annotations

import abc
import math
from typing import Any, TypeVar

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.arrays.array import kind_of
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.interpolate import make_interp_spline
from fxflow.scipy.signal._recursions import known, numbers
from fxflow.scipy.signal._simulation import (
    continuous,
    discrete,
    inputs,
    require_even,
    require_one,
    require_parts,
    state,
)
from fxflow.scipy.signal.band_changes import normalize
from fxflow.scipy.signal.frequency_responses import (
    freqs,
    freqs_zpk,
    freqz,
    freqz_zpk,
)
from fxflow.scipy.signal.state_spaces import (
    Matrices,
    abcd_normalize,
    cont2discrete,
    ss2tf,
    ss2zpk,
    tf2ss,
    zpk2ss,
)
from fxflow.scipy.signal.transfer_functions import tf2zpk, zpk2tf

S = TypeVar("S", bound="System")

_docs_of_responses = shared("""
    Args:
      X0: float array-like[n]: the state at the first time; None is 0.
      T: real array-like[t]: times, evenly spaced; None is chosen: of a continuous
        system by its slowest pole.
      N: the number of times, if `T` is not given; None is 100.
      w: real array-like[f]: angular frequencies (in a sample, if the system is
        sampled); None is chosen.
      n: the number of frequencies, if `w` is not given.
""")


def _sampling(name: str, dt: Any) -> float | bool | None:
    """Returns the time between samples, None for continuous systems."""
    if dt is None or dt is True:
        return dt
    if isinstance(dt, Tracer):
        raise ConcretizationError(
            f"{name}: the time between samples of a system is static, got a traced dt: "
            "give cont2discrete a tuple, such as (A, B, C, D)"
        )
    step = number(name, "dt", dt)
    if not step > 0:
        raise ArgumentError(f"{name}: dt must be positive, got {dt}")
    return step


class System(abc.ABC):
    """What all forms of a linear system have in common.

    Attributes:
      dt: the time between samples; True is a sampled system with an unknown one, None a
        continuous system.
    """

    dt: float | bool | None

    @abc.abstractmethod
    def to_ss(self) -> StateSpace:
        """Returns the system as a state space."""

    @abc.abstractmethod
    def to_tf(self, input: int = 0) -> TransferFunction:
        """Returns the system as a ratio of polynomials.

        Args:
          input: which one, of a state space.
        """

    @abc.abstractmethod
    def to_zpk(self, input: int = 0) -> ZerosPolesGain:
        """Returns the system as zeros, poles and a gain.

        Args:
          input: which one, of a state space.
        """

    @property
    def zeros(self) -> Array:
        """The zeros, of a system with one output."""
        return self.to_zpk().zeros

    @property
    def poles(self) -> Array:
        """The poles."""
        return self.to_zpk().poles

    def _step(self) -> float:
        return float(self.dt or 1.0)

    def to_discrete(self: S, dt: float, method: str = "zoh", alpha: Any = None) -> S:
        """Returns the sampled system of a continuous one.

        Args:
          dt: the time between samples.
          method: see `cont2discrete`.
          alpha: see `cont2discrete`.

        Returns:
          A system of the same form.

        Raises:
          ArgumentError: the system is sampled, or as `cont2discrete`.
        """
        if self.dt is not None:
            raise ArgumentError(
                f"{type(self).__name__}.to_discrete: the system is sampled, with "
                f"dt={self.dt}"
            )
        _sampling("to_discrete", dt)
        parts = cont2discrete(self._parts(), dt, method, alpha)
        make: Any = type(self)
        out: S = make(*parts[:-1], dt=dt)
        return out

    @abc.abstractmethod
    def _parts(self) -> tuple[Any, ...]:
        """Returns the arrays that make the system."""

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the arrays, and the time between samples."""
        return self._parts(), self.dt

    @classmethod
    def tree_unflatten(cls: type[S], aux: Any, children: Any) -> S:
        """Rebuilds a system from its parts."""
        out = object.__new__(cls)
        out._set(*children)
        out.dt = aux
        return out

    @abc.abstractmethod
    def _set(self, *parts: Any) -> None: ...

    # -- responses ---------------------------------------------------------------------

    @_docs_of_responses
    def output(
        self, U: Any, T: Any = None, X0: Any = None, interp: bool = True
    ) -> tuple[Array, ...]:
        """Returns the response to an input.

        Args:
          U: array-like[t] or [t, p]: the input; None or 0 is a system without input.
          interp: whether the input of a continuous system is linear between times, or
            constant.

        Returns:
          See `lsim`, and `dlsim` of a sampled system.
        """
        if self.dt is None:
            return self._simulated("output", U, T, X0, interp)
        return self._sampled_run("output", U, T, X0)

    @_docs_of_responses
    def impulse(self, X0: Any = None, T: Any = None, N: int | None = None) -> Any:
        """Returns the response to an impulse.

        Returns:
          See `impulse`, and `dimpulse` of a sampled system.
        """
        if self.dt is not None:
            return self._each_input("impulse", X0, T, N, lambda n: np.eye(n, 1)[:, 0])
        system = self.to_ss()
        require_one("impulse", "input", system.B.shape[1])
        start = system.B[:, 0]
        if X0 is not None:
            start = start + state("impulse", X0, system)
        T = system._times(T, N)
        times, y, _ = system._simulated("impulse", None, T, start, False)
        return times, y

    @_docs_of_responses
    def step(self, X0: Any = None, T: Any = None, N: int | None = None) -> Any:
        """Returns the response to an input that is 1 from the first time on.

        Returns:
          See `step`, and `dstep` of a sampled system.
        """
        if self.dt is not None:
            return self._each_input("step", X0, T, N, np.ones)
        system = self.to_ss()
        require_one("step", "input", system.B.shape[1])
        T = system._times(T, N)
        u = fnp.ones(np.shape(T), system.A.dtype)
        times, y, _ = system._simulated("step", u, T, X0, False)
        return times, y

    @_docs_of_responses
    def freqresp(
        self, w: Any = None, n: int = 10000, whole: bool = False
    ) -> tuple[Array, Array]:
        """Returns the frequency response of a system of one input and one output.

        Args:
          whole: whether the chosen frequencies of a sampled system go round the circle.

        Returns:
          The angular frequencies, float array[f], and the response, complex array[f].
        """
        where = n if w is None else w
        if self.dt is not None:
            return self._on_circle(where, whole)
        return self._on_axis(where)

    @_docs_of_responses
    def bode(self, w: Any = None, n: int = 100) -> tuple[Array, Array, Array]:
        """Returns the magnitudes and the phases of the frequency response.

        Returns:
          The angular frequencies, in the unit of 1 / dt; decibels; and degrees, without
          jumps. Float arrays[f].
        """
        w, h = self.freqresp(w, n)
        decibels = 20 * fnp.log10(fnp.abs(h))
        degrees = fnp.unwrap(fnp.angle(h)) * (180 / math.pi)
        return (w if self.dt is None else w / self._step()), decibels, degrees

    @abc.abstractmethod
    def _on_axis(self, where: Any) -> tuple[Array, Array]:
        """Returns the response of a continuous system by frequency."""

    @abc.abstractmethod
    def _on_circle(self, where: Any, whole: bool) -> tuple[Array, Array]:
        """Returns the response of a sampled system by angle."""

    # -- simulations -------------------------------------------------------------------

    def _times(self, T: Any, N: int | None) -> Any:
        """Returns given times, or those of 7 time constants of the slowest pole."""
        if T is not None:
            return T
        count = 100 if N is None else natural("N", "N", N)
        rates = fnp.abs(fnp.real(fnp.linalg.eigvals(self.to_ss().A)))
        slowest = fnp.min(rates) if rates.size else fnp.ones(())
        span = 7 / fnp.where(slowest == 0, 1, slowest)
        return fnp.asarray(np.linspace(0, 1, count), span.dtype) * span

    def _simulated(
        self, name: str, U: Any, T: Any, X0: Any, interp: bool
    ) -> tuple[Array, Array, Array]:
        system = self.to_ss()
        require_parts(name, system)
        (times,) = promote_inexact(name, numbers(T))
        times = fnp.atleast_1d(times)
        if times.ndim != 1 or not times.size:
            raise ShapeError(f"{name}: T must be a vector of times, got {times.aval}")
        require_even(name, times)
        p = system.B.shape[1]
        none = U is None or (isinstance(U, int | float) and not U)
        u = None if none else inputs(name, U, times.size, p)
        x0 = state(name, X0, system)
        *matrices, times, x0 = promote_inexact(name, *system._parts(), times, x0)
        a, b, c, d = matrices
        if u is not None:
            a, b, c, d, x0, u = promote_inexact(name, a, b, c, d, x0, u)
        y, x = continuous((a, b, c, d), u, fnp.real(times), x0, bool(interp))
        return fnp.real(times), fnp.squeeze(y), fnp.squeeze(x)

    def _sampled_run(self, name: str, U: Any, T: Any, X0: Any) -> tuple[Array, ...]:
        system = self.to_ss()
        require_parts(name, system)
        step, p = system._step(), system.B.shape[1]
        (u,) = promote_inexact(name, numbers(U))
        u = inputs(name, u, None, p)
        if T is None:
            count, stop = u.shape[0], (u.shape[0] - 1) * step
        else:
            given = known(numbers(T), name)
            if given is None:
                raise ConcretizationError(
                    f"{name}: how many samples there are depends on the times, which "
                    "are traced: give times that are known"
                )
            at = np.atleast_1d(given).astype(float)
            if at.ndim != 1 or at.size != u.shape[0]:
                raise ShapeError(
                    f"{name}: t must be a vector with a time for each of {u.shape[0]} "
                    f"inputs, got {at.shape}"
                )
            stop = float(at[-1])
            count = math.floor(stop / step + 1e-9) + 1
            if at.size > 1:
                grid = np.linspace(0.0, stop, count)
                u = make_interp_spline(at, u, 1)(
                    fnp.asarray(grid, dtypes.to_real(u.dtype))
                )
            else:
                u = fnp.broadcast_to(u, (count, p))
        x0 = state(name, X0, system)
        a, b, c, d, u, x0 = promote_inexact(name, *system._parts(), u, x0)
        y, x = discrete((a, b, c, d), u, x0)
        times = fnp.asarray(np.linspace(0.0, stop, count), dtypes.to_real(a.dtype))
        return (times, y, x) if isinstance(self, StateSpace) else (times, y)

    def _each_input(
        self, name: str, X0: Any, T: Any, N: int | None, signal: Any
    ) -> tuple[Array, tuple[Array, ...]]:
        """Returns times, and for each input the outputs if it alone is a signal."""
        system = self.to_ss()
        require_parts(name, system)
        if T is None:
            count = 100 if N is None else natural(name, "N", N)
            T = np.arange(count) * system._step()
        size, p = int(np.shape(T)[0]), system.B.shape[1]
        found = []
        for i in range(p):
            u = np.zeros((size, p), np.float32)
            u[:, i] = signal(size)
            times, y, _ = system._sampled_run(name, u, T, X0)
            found.append(y)
        return times, tuple(found)


@register_pytree_node_class
class TransferFunction(System):
    """A linear system as a ratio of polynomials, in s or in z.

    Args:
      *system: the numerator, array-like[m] or [q, m], and the denominator,
        array-like[k], the highest power first; or another system.
      dt: the time between samples; None is a continuous system.

    Attributes:
      num: the numerator, without zeros that lead.
      den: the denominator; its first coefficient is 1.
      dt: as given.
      zeros: the zeros.
      poles: the poles.

    Raises:
      ArgumentError: the denominator is 0, or `dt` is not positive.
      ShapeError: the shapes are incompatible.

    Example:
      >>> TransferFunction([1.0], [1.0, 2.0]).poles.real
      Array([-2.], dtype=float32)

    Source: `scipy.signal.TransferFunction`.
    """

    num: Array
    den: Array

    def __init__(self, *system: Any, dt: Any = None) -> None:
        name = "TransferFunction"
        if len(system) == 1 and isinstance(system[0], System):
            other = system[0].to_tf()
            self.num, self.den, self.dt = other.num, other.den, other.dt
            return
        _require_count(name, system, 2)
        self.num, self.den = normalize(*system)
        self.dt = _sampling(name, dt)

    def _set(self, *parts: Any) -> None:
        self.num, self.den = parts

    def _parts(self) -> tuple[Any, ...]:
        return self.num, self.den

    def to_ss(self) -> StateSpace:
        """Returns the system as a state space, in controller form."""
        return StateSpace(*tf2ss(self.num, self.den), dt=self.dt)

    def to_tf(self, input: int = 0) -> TransferFunction:
        """Returns the system itself.

        Args:
          input: has no effect.
        """
        return self

    def to_zpk(self, input: int = 0) -> ZerosPolesGain:
        """Returns the system as zeros, poles and a gain.

        Args:
          input: has no effect.
        """
        return ZerosPolesGain(*tf2zpk(self._row(), self.den), dt=self.dt)

    def _row(self) -> Array:
        rows = fnp.atleast_2d(self.num)
        require_one("TransferFunction", "output", rows.shape[0])
        return rows[0]

    def _on_axis(self, where: Any) -> tuple[Array, Array]:
        return freqs(self._row(), self.den, where)

    def _on_circle(self, where: Any, whole: bool) -> tuple[Array, Array]:
        num, den = self._row(), self.den
        size = max(num.size, den.size)
        num, den = (fnp.pad(v, (size - v.size, 0)) for v in (num, den))
        return freqz(num, den, where, whole)


@register_pytree_node_class
class ZerosPolesGain(System):
    """A linear system as zeros, poles and a gain.

    Args:
      *system: the zeros, array-like[m]; the poles, array-like[n]; and the gain, a
        number; or another system.
      dt: the time between samples; None is a continuous system.

    Attributes:
      zeros: the zeros.
      poles: the poles.
      gain: the gain.
      dt: as given.

    Raises:
      ArgumentError: `dt` is not positive.
      ShapeError: the shapes are incompatible.

    Example:
      >>> ZerosPolesGain([], [-2.0], 3.0).to_tf().den
      Array([1., 2.], dtype=float32)

    Source: `scipy.signal.ZerosPolesGain`.
    """

    _zeros: Array
    _poles: Array
    gain: Array

    def __init__(self, *system: Any, dt: Any = None) -> None:
        name = "ZerosPolesGain"
        if len(system) == 1 and isinstance(system[0], System):
            other = system[0].to_zpk()
            self._set(*other._parts())
            self.dt = other.dt
            return
        _require_count(name, system, 3)
        values = []
        for what, given in zip(("zeros", "poles", "gain"), system, strict=True):
            (value,) = promote_inexact(name, numbers(given))
            value = value if what == "gain" else fnp.atleast_1d(value)
            if value.ndim != (what != "gain"):
                form = "a number" if what == "gain" else "a vector"
                raise ShapeError(f"{name}: {what} must be {form}, got {value.aval}")
            values.append(value)
        self._set(*values)
        self.dt = _sampling(name, dt)

    def _set(self, *parts: Any) -> None:
        self._zeros, self._poles, self.gain = parts

    def _parts(self) -> tuple[Any, Any, Any]:
        return self._zeros, self._poles, self.gain

    @property
    def zeros(self) -> Array:
        """The zeros."""
        return self._zeros

    @property
    def poles(self) -> Array:
        """The poles."""
        return self._poles

    def to_ss(self) -> StateSpace:
        """Returns the system as a state space, in controller form."""
        return StateSpace(*zpk2ss(*self._parts()), dt=self.dt)

    def to_tf(self, input: int = 0) -> TransferFunction:
        """Returns the system as a ratio of polynomials.

        Args:
          input: has no effect.
        """
        return TransferFunction(*zpk2tf(*self._parts()), dt=self.dt)

    def to_zpk(self, input: int = 0) -> ZerosPolesGain:
        """Returns the system itself.

        Args:
          input: has no effect.
        """
        return self

    def _on_axis(self, where: Any) -> tuple[Array, Array]:
        return freqs_zpk(*self._parts(), where)

    def _on_circle(self, where: Any, whole: bool) -> tuple[Array, Array]:
        return freqz_zpk(*self._parts(), where, whole)


@register_pytree_node_class
class StateSpace(System):
    """A linear system as matrices: x' = A x + B u, y = C x + D u.

    If the system is sampled, x' is the state at the next sample. Sums, products (one
    system behind another) and multiples by numbers are systems.

    Args:
      *system: `A`, array-like[n, n]; `B`, [n, p]; `C`, [q, n]; `D`, [q, p]; or another
        system.
      dt: the time between samples; None is a continuous system.

    Attributes:
      A: the matrix of the states.
      B: that of the inputs.
      C: that of the outputs.
      D: from inputs to outputs.
      dt: as given.
      zeros: the zeros, of one input and one output.
      poles: the eigenvalues of `A`.

    Raises:
      ArgumentError: `dt` is not positive.
      ShapeError: the shapes are incompatible.

    Example:
      >>> system = StateSpace([[-2.0]], [[1.0]], [[3.0]], [[0.0]])
      >>> system.step(T=np.array([0.0, 1.0]))[1]
      Array([0.       , 1.2969971], dtype=float32)

    Source: `scipy.signal.StateSpace`.
    """

    __array_priority__ = 100.0

    A: Array
    B: Array
    C: Array
    D: Array

    def __init__(self, *system: Any, dt: Any = None) -> None:
        name = "StateSpace"
        if len(system) == 1 and isinstance(system[0], System):
            other = system[0].to_ss()
            self._set(*other._parts())
            self.dt = other.dt
            return
        _require_count(name, system, 4)
        self._set(*abcd_normalize(*system))
        self.dt = _sampling(name, dt)

    def _set(self, *parts: Any) -> None:
        self.A, self.B, self.C, self.D = parts

    def _parts(self) -> tuple[Any, Any, Any, Any]:
        return self.A, self.B, self.C, self.D

    @property
    def poles(self) -> Array:
        """The eigenvalues of `A`."""
        return fnp.linalg.eigvals(self.A)

    def to_ss(self) -> StateSpace:
        """Returns the system itself."""
        return self

    def to_tf(self, input: int = 0) -> TransferFunction:
        """Returns the system as a ratio of polynomials.

        Args:
          input: which one.
        """
        return TransferFunction(*ss2tf(*self._parts(), input), dt=self.dt)

    def to_zpk(self, input: int = 0) -> ZerosPolesGain:
        """Returns the system as zeros, poles and a gain.

        Args:
          input: which one.
        """
        return ZerosPolesGain(*ss2zpk(*self._parts(), input), dt=self.dt)

    def _on_axis(self, where: Any) -> tuple[Array, Array]:
        require_one("freqresp", "input", self.B.shape[1])
        if known(self.A, "freqresp") is None:
            return self.to_tf()._on_axis(where)
        return self.to_zpk()._on_axis(where)

    def _on_circle(self, where: Any, whole: bool) -> tuple[Array, Array]:
        require_one("freqresp", "input", self.B.shape[1])
        return self.to_tf()._on_circle(where, whole)

    # -- arithmetic --------------------------------------------------------------------

    def _made(self, a: Any, b: Any, c: Any, d: Any) -> StateSpace:
        out = object.__new__(StateSpace)
        out._set(*promote_inexact("StateSpace", a, b, c, d))
        out.dt = self.dt
        return out

    def _fitted(self, other: StateSpace, shapes: bool) -> Matrices:
        if other.dt != self.dt:
            raise ArgumentError(
                f"StateSpace: systems must have one dt, got {self.dt} and {other.dt}"
            )
        if shapes and self.D.shape != other.D.shape:
            raise ShapeError(
                "StateSpace: systems must have the same inputs and outputs, got D "
                f"{self.D.aval} and {other.D.aval}"
            )
        return other.A, other.B, other.C, other.D

    def __neg__(self) -> StateSpace:
        return self._made(self.A, self.B, -self.C, -self.D)

    def __add__(self, other: Any) -> StateSpace:
        if not isinstance(other, StateSpace):
            if isinstance(other, System):
                return NotImplemented
            return self._made(self.A, self.B, self.C, self.D + other)
        a, b, c, d = self._fitted(other, True)
        corner = fnp.zeros((self.A.shape[0], a.shape[0]), self.A.dtype)
        joined = fnp.block([[self.A, corner], [corner.T.astype(a.dtype), a]])
        return self._made(
            joined,
            fnp.concatenate([self.B, b], 0),
            fnp.concatenate([self.C, c], 1),
            self.D + d,
        )

    __radd__ = __add__

    def __sub__(self, other: Any) -> StateSpace:
        out: StateSpace = self + (-other)
        return out

    def __rsub__(self, other: Any) -> StateSpace:
        out: StateSpace = -self + other
        return out

    def __mul__(self, other: Any) -> StateSpace:
        """Returns this system behind another, or with inputs times a number."""
        if not isinstance(other, StateSpace):
            if isinstance(other, System):
                return NotImplemented
            return self._made(self.A, self.B * other, self.C, self.D * other)
        a, b, c, d = self._fitted(other, False)
        if c.shape[0] != self.B.shape[1]:
            raise ShapeError(
                f"StateSpace: {c.shape[0]} outputs do not fit {self.B.shape[1]} inputs"
            )
        corner = fnp.zeros((a.shape[0], self.A.shape[0]), a.dtype)
        return self._made(
            fnp.block([[self.A, self.B @ c], [corner, a]]),
            fnp.concatenate([self.B @ d, b], 0),
            fnp.concatenate([self.C, self.D @ c], 1),
            self.D @ d,
        )

    def __rmul__(self, other: Any) -> StateSpace:
        """Returns the system with outputs times a number."""
        return self._made(self.A, self.B, self.C * other, self.D * other)

    def __truediv__(self, other: Any) -> StateSpace:
        out: StateSpace = self * (1 / other)
        return out


def _require_count(name: str, system: tuple[Any, ...], count: int) -> None:
    if len(system) != count:
        raise ArgumentError(
            f"{name}: the system must be {count} arrays or another system, got "
            f"{len(system)}"
        )


_FORMS: dict[int, Any] = {
    2: TransferFunction,
    3: ZerosPolesGain,
    4: StateSpace,
}


def _formed(name: str, system: tuple[Any, ...], dt: Any) -> Any:
    if len(system) not in _FORMS:
        raise ArgumentError(
            f"{name}: the system must be (num, den), (zeros, poles, gain) or "
            f"(A, B, C, D), got {len(system)} values"
        )
    return _FORMS[len(system)](*system, dt=dt)


def lti(*system: Any) -> Any:
    """Returns a continuous linear system.

    Args:
      *system: (num, den), a `TransferFunction`; (zeros, poles, gain), a
        `ZerosPolesGain`; or (A, B, C, D), a `StateSpace`.

    Returns:
      An object of one of these classes.

    Raises:
      ArgumentError: there are fewer or more arguments.
      ShapeError: the shapes are incompatible.

    Example:
      >>> lti([1.0], [1.0, 3.0, 2.0]).poles.real
      Array([-2., -1.], dtype=float32)

    Source: `scipy.signal.lti`, here a function; `dt` of a continuous system is None.
    """
    return _formed("lti", system, None)


def dlti(*system: Any, dt: Any = True) -> Any:
    """Returns a sampled linear system.

    Args:
      *system: (num, den), a `TransferFunction`; (zeros, poles, gain), a
        `ZerosPolesGain`; or (A, B, C, D), a `StateSpace`.
      dt: the time between samples; True is unknown, for which 1 stands.

    Returns:
      An object of one of these classes.

    Raises:
      ArgumentError: there are fewer or more arguments, or `dt` is not positive.
      ShapeError: the shapes are incompatible.

    Example:
      >>> dlti([1.0], [1.0, -0.5], dt=0.1).poles.real
      Array([0.5], dtype=float32)

    Source: `scipy.signal.dlti`, here a function.
    """
    if dt is None:
        raise ArgumentError("dlti: dt must be a number or True, got None")
    return _formed("dlti", system, dt)


def _require_system(name: str, system: Any) -> None:
    if not isinstance(system, System | tuple | list):
        raise ArgumentError(
            f"{name}: system must be a tuple of its parts or an object such as "
            f"StateSpace, got {kind_of(system)}"
        )


def continuous_system(name: str, system: Any) -> System:
    """Returns a continuous system, of a tuple or an object."""
    _require_system(name, system)
    found: System = system if isinstance(system, System) else lti(*system)
    if found.dt is not None:
        raise ArgumentError(
            f"{name}: the system must be continuous, got one with dt={found.dt}"
        )
    return found


def sampled_system(name: str, system: Any) -> System:
    """Returns a sampled system, of a tuple with dt behind or an object."""
    _require_system(name, system)
    found: System = (
        system if isinstance(system, System) else dlti(*system[:-1], dt=system[-1])
    )
    if found.dt is None:
        raise ArgumentError(f"{name}: the system must be sampled, got a continuous one")
    return found
